// Splits what dist/node/core.js exports from how its code is loaded: other files import `#core`, which package.json leads to one of two.
// core.js is the module itself, for bundlers, Deno and Bun. core-compiled.js runs the same text with the code that V8 has compiled before.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { type Body, loadCore } from '../src/cli/code-cache/core.ts';
import { root } from './root.ts';

/** A module that is nowhere but in the core. */
const IN_CORE = 'src/api/file.ts';

/** Makes core.js of the chunk that has the core, and core-compiled.js beside it. */
export async function splitCore(folder: string, { outputs }: Metafile): Promise<void> {
  const chunk = Object.keys(outputs).find((path) => path.endsWith('.js') && IN_CORE in (outputs[path]?.inputs ?? {}));
  if (chunk === undefined) throw new Error(`no chunk has ${IN_CORE}`);
  const name = basename(chunk);
  for (const [from, to] of [
    [name, 'core.js'],
    [`${name}.map`, 'core.js.map'],
  ] as const)
    renameSync(join(folder, from), join(folder, to));
  const text = readFileSync(join(folder, 'core.js'), 'utf8').replace(`${name}.map`, 'core.js.map');
  const core = takeApart(text);
  writeFileSync(join(folder, 'core.js'), core.text);
  for (const other of Object.keys(outputs).map((path) => basename(path))) {
    if (!other.endsWith('.js') || other === name) continue;
    const path = join(folder, other);
    const before = readFileSync(path, 'utf8');
    const after = before.replaceAll(`"./${name}"`, '"#core"');
    if (after !== before) writeFileSync(path, after);
  }
  await build({
    stdin: { contents: compiledCore(core), resolveDir: root, sourcefile: 'core-compiled.js' },
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    external: ['./chunk-*'],
    sourcemap: 'linked',
    sourcesContent: false,
    outfile: join(folder, 'core-compiled.js'),
    logLevel: 'warning',
  });
}

interface Core {
  /** All imports in the first line, all exports in the last but one. */
  readonly text: string;
  readonly body: Body;
  readonly imports: string;
  readonly imported: readonly string[];
  readonly exported: readonly string[];
}

/** esbuild writes each import and export statement on lines of its own. Lines keep their numbers, which the source map has. */
function takeApart(text: string): Core {
  const imports: string[] = [];
  const imported: string[] = [];
  const withoutImports = text.replaceAll(/^import\s([^'"]*?)\sfrom\s"[^"]+";$/gm, (statement, names: string) => {
    imports.push(statement.replaceAll(/\s+/g, ' '));
    imported.push(...listed(names).map((one) => one.replace(/^.* as /, '')));
    return statement.replaceAll(/[^\n]/g, '');
  });
  const at = withoutImports.indexOf('\nexport {\n') + 1;
  const end = withoutImports.indexOf('};', at);
  const [names, body, rest] = [withoutImports.slice(at, end), withoutImports.slice(0, at), withoutImports.slice(end)];
  if (at === 0 || !withoutImports.startsWith('\n') || /^(import|export)\b|\bimport\(|\bimport\.meta\b/m.test(body))
    throw new Error('the core is not written as expected');
  const first = imports.join(' ');
  const exported = listed(names.replace(/^export/, ''));
  const result = exported.map((one) => one.replace(/^(\S+) as (\S+)$/, '$2: $1')).join();
  return {
    text: `${first}${body}${names}${rest}`,
    body: { from: first.length + 1, to: first.length + body.length, parameters: imported.join(), result },
    imports: first,
    imported,
    exported: exported.map((one) => one.replace(/^.* as /, '')),
  };
}

function listed(names: string): string[] {
  const list = names.replaceAll(/[{}]/g, '').split(',');
  return list.map((one) => one.trim().replaceAll(/\s+/g, ' ')).filter((one) => one !== '');
}

function compiledCore({ imports, imported, exported, body }: Core): string {
  // Modules of Node without `import`, for the reason that loadCore has.
  const direct = imports.replaceAll(
    /import (?:\* as )?([^"]*?) from "(node:[^"]+)";/g,
    (_, names: string, from: string) => {
      const taken = names.replaceAll(' as ', ': ');
      return `const ${taken} = process.getBuiltinModule("${from}");`;
    },
  );
  return `${direct}
import { ${loadCore.name} } from './src/cli/code-cache/core.ts';
const core = ${loadCore.name}(new URL('./core.js', import.meta.url), ${JSON.stringify(body)}, [${imported}]);
export const { ${exported.join(', ')} } = core;
`;
}
