import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { root } from '../../scripts/root.ts';
import { type Source, source } from './sources.ts';

/** An exported name of a module, as `path name`; the name `*` stands for all of them. */
type Name = string;

/** What one file exports, and what it takes from others. */
interface Trade {
  readonly exported: Set<string>;
  /** Names that it only passes on: its own name for each, and those that it stands for. */
  readonly passedOn: Map<string, Name[]>;
  readonly used: Name[];
}

/** Exported names of `src/` that no other file uses, as `path: name`; names of the package's entry points are its users'. */
export function unusedExports(files: readonly Source[], maps: PackageMaps = readMaps()): string[] {
  const trades = new Map(files.map((file) => [file.path, tradeOf(file, maps)]));
  const used = new Set<Name>();
  const use = (name: Name): void => {
    if (used.has(name)) return;
    used.add(name);
    const [path = '', own = ''] = name.split(' ');
    const trade = trades.get(path);
    if (own === '*') for (const each of trade?.exported ?? []) use(`${path} ${each}`);
    for (const other of trade?.passedOn.get(own) ?? []) use(other);
    // Whatever a file passes on with a star may be what was meant.
    if (own !== '*') for (const all of trade?.passedOn.get('*') ?? []) use(all.replace(/\*$/, own));
  };
  for (const entry of maps.entries.values()) use(`${entry} *`);
  for (const { used: names } of trades.values()) for (const name of names) use(name);
  return [...trades]
    .filter(([path]) => path.startsWith('src/'))
    .flatMap(([path, { exported }]) => [...exported].map((name) => [path, name] as const))
    .filter(([path, name]) => !used.has(`${path} ${name}`))
    .map(([path, name]) => `${path}: ${name}`);
}

/** The package's own names: of entry points, and of modules that differ between platforms. */
export interface PackageMaps {
  readonly entries: ReadonlyMap<string, string>;
  readonly seams: ReadonlyMap<string, readonly string[]>;
}

function readMaps(): PackageMaps {
  type Conditions = { readonly 'h5log-source'?: string | Readonly<Record<string, string>> };
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, Conditions>;
    imports: Record<string, Conditions>;
  };
  const sources = (conditions: Conditions): string[] => {
    const found = conditions['h5log-source'] ?? {};
    return (typeof found === 'string' ? [found] : Object.values(found)).map((path) => posix.normalize(path));
  };
  const entries = Object.entries(manifest.exports).flatMap(([key, to]) =>
    sources(to).map((path) => [posix.join('h5log', key), path] as const),
  );
  return {
    entries: new Map(entries),
    seams: new Map(Object.entries(manifest.imports).map(([key, to]) => [key, sources(to)])),
  };
}

function tradeOf(file: Source, maps: PackageMaps): Trade {
  const trade: Trade = { exported: new Set(), passedOn: new Map(), used: [] };
  const { path, plain } = file;
  const targets = (from: string): readonly string[] => {
    if (from.startsWith('.')) return [posix.join(posix.dirname(path), from)];
    const entry = maps.entries.get(from);
    return entry === undefined ? (maps.seams.get(from) ?? []) : [entry];
  };
  const use = (from: string, name: string): void => {
    trade.used.push(...targets(from).map((target) => `${target} ${name}`));
  };

  const declared =
    /^export (?:declare )?(?:(default)|(?:abstract |async )?(?:class|interface|type|const|let|function\*?|enum) (\w+))/gm;
  for (const [, byDefault, name = 'default'] of file.code.matchAll(declared)) trade.exported.add(byDefault ?? name);

  for (const [, list = '', from] of plain.matchAll(/^export (?:type )?\{([^}]*)\}(?: from ['"]([^'"]+)['"])?/gm)) {
    for (const [name, alias] of namesIn(list)) {
      trade.exported.add(alias);
      if (from !== undefined)
        trade.passedOn.set(
          alias,
          targets(from).map((target) => `${target} ${name}`),
        );
    }
  }
  for (const [, alias = '*', from = ''] of plain.matchAll(/^export \*(?: as (\w+))? from ['"]([^'"]+)['"]/gm)) {
    if (alias !== '*') trade.exported.add(alias);
    const all = targets(from).map((target) => `${target} *`);
    trade.passedOn.set(alias, [...(trade.passedOn.get(alias) ?? []), ...all]);
  }

  const imports = /^import (?:type )?(?:(\w+)(?:, )?)?(?:\{([^}]*)\}|\* as (\w+))? ?from ['"]([^'"]+)['"]/gm;
  for (const [statement, byDefault, list = '', space, from = ''] of plain.matchAll(imports)) {
    if (byDefault !== undefined) use(from, 'default');
    for (const [name] of namesIn(list)) use(from, name);
    if (space === undefined) continue;
    const rest = file.code.replace(statement, '');
    const members = [...rest.matchAll(new RegExp(`(?<![\\w.])${space}\\b(?:\\.(\\w+))?`, 'g'))];
    for (const [, member = '*'] of members.slice(1)) use(from, member);
  }

  // import('./x.ts') with the names that are taken from it: before it, behind it, or through a promise.
  const calls =
    /(?:\{([^{}]*)\} = (?:await )?)?\bimport\(['"]([^'"]+)['"]\)(?:\)?\.(?:then\(\(\{([^{}]*)\}\)|(\w+))| as Promise<\{ (\w+))?/g;
  for (const [, before, from = '', then, member, promised] of plain.matchAll(calls)) {
    const list = before ?? then;
    if (list !== undefined) for (const [name] of namesIn(list.replaceAll(':', ' as '))) use(from, name);
    else use(from, member ?? promised ?? '*');
  }

  // Modules that threads run.
  for (const [, name = ''] of plain.matchAll(/\brankModule\(['"]([^'"]+)['"]/g)) use(`./${name}.ts`, 'default');
  return trade;
}

/** The names of a list in braces: each as it is there, and as it is called here. */
function namesIn(list: string): [name: string, alias: string][] {
  return list
    .split(',')
    .map((item) => item.trim().replace(/^type /, ''))
    .filter((item) => item !== '')
    .map((item) => {
      const [name = '', alias = name] = item.split(/\s+as\s+/);
      return [name, alias];
    });
}

/** A file by its path in the project. */
export function projectSource(path: string): Source {
  return source(path, readFileSync(join(root, path), 'utf8'));
}
