// The public API as one normalised text: every exported name of every entry point with its declaration, and the
// declarations they refer to. TypeScript 7 has no stable JavaScript API, so this reads the .d.ts files that it emits.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readManifest, root, tsc } from './root.ts';

/** The committed text that the API is compared with. */
export const snapshotPath = join(root, 'test', 'project', 'api.txt');

/** What one .d.ts file declares, imports and exports. */
interface Declarations {
  readonly declared: Map<string, string[]>;
  /** Local name to where it comes from; the name `*` stands for all that the file exports. */
  readonly imported: Map<string, Origin>;
  /** Public name to where it is declared: another file, or this one. */
  readonly exported: Map<string, Origin>;
  readonly passedOn: string[];
}

interface Origin {
  readonly file: string;
  readonly name: string;
}

/** Emits the declarations and gives the text. */
export function publicApi(): string {
  const folder = join(root, '.cache', 'api');
  rmSync(folder, { recursive: true, force: true });
  const flags = ['--emitDeclarationOnly', '--removeComments', '--declarationMap', 'false', '--sourceMap', 'false'];
  const { ok, output } = tsc(['-p', 'tsconfig.build.json', '--outDir', folder, ...flags]);
  if (!ok) throw new Error(`tsc cannot emit the declarations:\n${output}`);
  return apiIn(folder);
}

/** The text for declarations that have been emitted into a folder. */
export function apiIn(folder: string): string {
  return new ApiText(folder).text();
}

class ApiText {
  readonly #folder: string;
  readonly #files = new Map<string, Declarations>();
  readonly #reached = new Map<string, Origin>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  text(): string {
    const manifest = readManifest();
    const sections: string[] = [];
    const published = new Set<string>();
    for (const [subpath, target] of Object.entries(manifest.exports)) {
      if (typeof target === 'string') continue;
      const entry = join(this.#folder, (target.types ?? '').replace('./dist/types/', ''));
      const names = this.#exportsOf(entry);
      const lines = [`# ${manifest.name}${subpath.slice(1)}`];
      for (const name of [...names.keys()].sort()) {
        const origin = this.#declarationOf(names.get(name) ?? { file: entry, name });
        published.add(key(origin));
        if (origin.name === name) lines.push(...this.#statements(origin));
        else lines.push(`export { ${origin.name} as ${name} };`);
        this.#reach(origin);
      }
      sections.push(lines.join('\n'));
    }
    const others = [...this.#reached].filter(([id]) => !published.has(id)).sort(([a], [b]) => (a < b ? -1 : 1));
    const rest = others.flatMap(([, origin]) => [`// ${this.#short(origin.file)}`, ...this.#statements(origin)]);
    if (rest.length > 0) sections.push(['# referred to, not exported', ...rest].join('\n'));
    return `${sections.join('\n\n')}\n`;
  }

  #short(file: string): string {
    return relative(this.#folder, file).replaceAll('\\', '/').replace('.d.ts', '.ts');
  }

  #statements({ file, name }: Origin): string[] {
    return this.#read(file).declared.get(name) ?? [];
  }

  /** Marks a declaration and all that its words refer to. */
  #reach(origin: Origin): void {
    if (this.#reached.has(key(origin))) return;
    this.#reached.set(key(origin), origin);
    const { declared, imported } = this.#read(origin.file);
    for (const statement of declared.get(origin.name) ?? []) {
      // A word before a colon is the name of a property or parameter.
      for (const [word] of statement.matchAll(/[\p{ID_Start}$_][\p{ID_Continue}$]*(?!\??:|[\p{ID_Continue}$])/gu)) {
        const from = imported.get(word);
        if (from) this.#reach(this.#declarationOf(from));
        else if (declared.has(word)) this.#reach({ file: origin.file, name: word });
      }
      for (const [, path, word] of statement.matchAll(/import\("([^"]+)"\)\.(\w+)/g)) {
        const file = this.#resolve(origin.file, path ?? '');
        if (file && word) this.#reach(this.#declarationOf({ file, name: word }));
      }
    }
  }

  /** Follows re-exports to the file that declares the name. */
  #declarationOf(origin: Origin): Origin {
    const { declared, imported } = this.#read(origin.file);
    if (declared.has(origin.name)) return origin;
    const next = imported.get(origin.name) ?? this.#exportsOf(origin.file).get(origin.name);
    if (!next || key(next) === key(origin)) return origin;
    return this.#declarationOf(next);
  }

  #exportsOf(file: string): Map<string, Origin> {
    const { exported, passedOn } = this.#read(file);
    const all = new Map(exported);
    for (const other of passedOn) for (const [name, origin] of this.#exportsOf(other)) all.set(name, origin);
    return all;
  }

  #resolve(from: string, path: string): string | undefined {
    const base = path === '#platform' ? join(this.#folder, 'platform/node') : join(dirname(from), path);
    const file = base.replace(/\.(js|ts)$/, '').concat('.d.ts');
    return existsSync(file) ? file : undefined;
  }

  #read(file: string): Declarations {
    const known = this.#files.get(file);
    if (known) return known;
    const found: Declarations = { declared: new Map(), imported: new Map(), exported: new Map(), passedOn: [] };
    this.#files.set(file, found);
    for (const statement of topLevel(withoutComments(readFileSync(file, 'utf8')))) this.#take(file, statement, found);
    return found;
  }

  #take(file: string, statement: string, found: Declarations): void {
    const [, path = ''] = /\bfrom ['"]([^'"]+)['"];$/.exec(statement) ?? [];
    const origin = path === '' ? file : this.#resolve(file, path);
    const list = /^(import|export)(?: type)? \{([^}]*)\}/.exec(statement);
    if (list) {
      for (const item of (list[2] ?? '').split(',')) {
        const [name = '', alias = name] = item
          .trim()
          .replace(/^type /, '')
          .split(' as ');
        if (name === '' || origin === undefined) continue;
        (list[1] === 'import' ? found.imported : found.exported).set(alias, { file: origin, name });
      }
      return;
    }
    if (/^export \* from/.test(statement)) {
      if (origin) found.passedOn.push(origin);
      return;
    }
    const declaration =
      /^(export )?(?:default )?(?:declare )?(?:abstract )?(?:class|interface|type|const|let|function|namespace|enum) ([\w$]+)/;
    const [, isExported, name] = declaration.exec(statement) ?? [];
    if (name === undefined) return;
    found.declared.set(name, [...(found.declared.get(name) ?? []), statement]);
    if (isExported) found.exported.set(name, { file, name });
  }
}

function key({ file, name }: Origin): string {
  return `${file} ${name}`;
}

function withoutComments(text: string): string {
  return text.replaceAll(/^\s*\/\*[\s\S]*?\*\/\n|^\s*\/\/.*\n/gm, '');
}

/** The statements of a .d.ts file: each begins in the first column, and only its closing line may do so too. */
function topLevel(text: string): string[] {
  const statements: string[] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '' || /^\s+(private\b.*|#private);$/.test(line)) continue;
    if (/^[\s})\]|&]/.test(line) && statements.length > 0) statements[statements.length - 1] += `\n${line}`;
    else statements.push(line);
  }
  return statements;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const text = publicApi();
  if (process.argv.includes('--update')) {
    writeFileSync(snapshotPath, text);
    process.stdout.write(`written: ${relative(root, snapshotPath)}\n`);
  } else {
    process.stdout.write(text);
  }
}
