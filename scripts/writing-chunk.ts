import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Plugin } from 'esbuild';
import { root } from './root.ts';

/**
 * Modules that a page needs when it writes, and not before: they become a chunk of their own. The modules around them may use what they
 * export only for files that are written: not while they are loaded themselves, and not as a base class.
 */
const writing = new RegExp(
  `^src/(${[
    'api/(attribute-values|new-dataset|scales)',
    'connector/(commit-jobs|new-state)',
    'dtype/encode',
    'filter/(apply|.*-encode)',
    'hdf5/format/pending-heap',
    'hdf5/graph/(references|survey)',
    'hdf5/layouts/(new-dataset|raw-references|record-tree|chunks/chunk-tree)',
    'hdf5/messages/encode',
    'hdf5/prepare-writing',
    'hdf5/write/(?!structure\\.ts).*',
    'log/flush/.*',
    'log/format/(new-.*|.*-write|scales|table-merge)',
    'log/post/(arena|resize)',
    'log/publish/.*',
    'space/chunk-shape',
  ].join('|')})\\.ts$`,
);
/** Says whether the code that writes is there; this plugin replaces it. */
const SEAM = 'src/platform/writing.ts';
/** The chunk. */
const CHUNK = 'writing';

const importLine = /^import (?!type )(.*?) from '(\.[^']+)';/gms;

/**
 * Puts the code that writes into a chunk that is imported when it is needed. The sources import it as they import everything: here, such
 * imports become imports of variables that the chunk sets once it is loaded.
 */
export function writingChunk(modules: readonly string[]): Plugin {
  const chunk = modules.filter((path) => writing.test(path));
  /** The variable of an export of a module. */
  const variable = (path: string, name: string): string => `${name}_${chunk.indexOf(path)}`;
  const used = new Map<string, { path: string; name: string }>();
  const sources = new Map<string, string>();
  for (const path of modules) {
    const text = readFileSync(join(root, path), 'utf8');
    if (writing.test(path)) continue;
    const changed = text.replace(importLine, (line, clause: string, from: string) => {
      const target = relative(root, resolve(root, dirname(path), from)).replaceAll('\\', '/');
      if (!chunk.includes(target)) return line;
      const names = /^\{(.*)\}$/s.exec(clause)?.[1];
      if (names === undefined) throw new Error(`${path}: only names can be imported from ${target}`);
      const imports: string[] = [];
      for (const part of names.split(',')) {
        const match = /^\s*(type )?(\w+)(?: as (\w+))?\s*$/.exec(part);
        if (!match) continue;
        const [, isType, name = '', local = name] = match;
        if (isType) continue;
        used.set(variable(target, name), { path: target, name });
        imports.push(`${variable(target, name)} as ${local}`);
      }
      return `import { ${imports.join(', ')} } from ${JSON.stringify(join(root, SEAM))};`;
    });
    if (changed !== text) sources.set(path, changed);
  }
  return {
    name: 'writing chunk',
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /^h5log:writing$/ }, () => ({ path: CHUNK, namespace: CHUNK, sideEffects: true }));
      onLoad({ filter: /./, namespace: CHUNK }, () => ({ contents: chunkOf(used), resolveDir: root }));
      onLoad({ filter: /\.ts$/ }, (module) => {
        const path = relative(root, module.path).replaceAll('\\', '/');
        if (path === SEAM)
          return { contents: seamOf([...used.keys()]), loader: 'ts', resolveDir: dirname(module.path) };
        const contents = sources.get(path);
        return contents === undefined ? undefined : { contents, loader: 'ts' };
      });
    },
  };
}

/** The entry of the chunk: gives what others use to the seam. */
function chunkOf(used: ReadonlyMap<string, { path: string; name: string }>): string {
  const imports = Array.from(
    used,
    ([variable, { path, name }]) => `import { ${name} as ${variable} } from ${JSON.stringify(join(root, path))};`,
  );
  return [
    ...imports,
    `import { setWriting } from ${JSON.stringify(join(root, SEAM))};`,
    `export function install() { setWriting(${[...used.keys()].join(', ')}); }`,
  ].join('\n');
}

/** What stands for the code that writes until it is loaded: every function of it says that it is missing. */
function seamOf(variables: readonly string[]): string {
  return `
    import { H5LogError } from '../base/errors.ts';
    let isLoaded = false;
    export function mustHaveWriting() {
      if (!isLoaded) throw new H5LogError('UNSUPPORTED', 'a page loads the code that writes when it is first needed, which a blocking call cannot wait for: use await File.create() or await File.open() first');
    }
    export let ${variables.map((name) => `${name} = mustHaveWriting`).join(', ')};
    export function setWriting(...all) {
      [${variables.join(', ')}] = all;
      isLoaded = true;
    }
    export async function loadWriting() {
      if (isLoaded) return;
      let chunk;
      try {
        chunk = await import('h5log:writing');
      } catch (cause) {
        throw new H5LogError('STORAGE', 'the code that writes could not be loaded: ' + cause, { cause });
      }
      chunk.install();
    }`;
}
