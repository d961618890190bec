import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { readSources, type Source, source } from './sources.ts';

// From the top down. A file imports from its own layer and from those below it.
const layers: readonly (readonly string[])[] = [
  ['cli'],
  ['bench'],
  ['tools'],
  ['index', 'threads', 'mpi', 'netcdf'],
  ['api'],
  ['connector'],
  ['log'],
  ['hdf5'],
  ['space', 'dtype', 'filter', 'storage', 'comm'],
  ['base'],
];
// These do not import one another, although they are one layer.
const apart = ['space', 'dtype', 'filter', 'storage', 'comm'];
// The platform files stand beside the layers: they give node's storage, communicators and zlib to whoever is above those.
const platformImports = ['storage', 'comm', 'filter', 'base', 'platform'];
const platformImporters = /^(?!storage$|comm$|base$)/;
// The entry point h5log/storage: a page must be able to import httpStorage from where nodeStorage is.
const platformEntry = 'storage.ts';

const publicClasses = /^(api|netcdf)\//;
const sources = readSources();

describe('imports', () => {
  test('go downward only', () => {
    expect(sources.flatMap(wrongImports)).toEqual([]);
  });

  test('are caught when they go upward or sideways', () => {
    const wrong = [
      source('hdf5/a.ts', "import { b } from '../log/b.ts';"),
      source('dtype/a.ts', "export { b } from '../space/b.ts';"),
      source('base/errors.ts', "import type {\n  B,\n} from '../dtype/b.ts';"),
      source('storage/node/file.ts', "import { b } from '#platform';"),
      source('platform/node.ts', "import { b } from '../hdf5/b.ts';"),
      source('log/a.ts', "import { b } from 'h5log';"),
    ];
    expect(wrong.flatMap(wrongImports)).toHaveLength(wrong.length);
  });

  test('of hdf5 go from each folder only to those before it', () => {
    const folders = ['format', 'messages', 'read', 'graph', 'layouts', 'write', 'open.ts', 'prepare-writing.ts'];
    const place = (path: string): number => folders.indexOf(path.split('/')[1] ?? '');
    const wrong = sources
      .filter(({ path }) => path.startsWith('hdf5/'))
      .flatMap(({ path, imports }) =>
        imports
          .map((from) => posix.join(posix.dirname(path), from))
          .filter((to) => to.startsWith('hdf5/') && (place(path) < 0 || place(to) > place(path)))
          .map((to) => `${path}: ${to}`),
      );
    expect(wrong).toEqual([]);
  });

  test('form no cycles, types included, but for those that docs/architecture.md names', () => {
    const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
    const named = [...page.matchAll(/^- Cycle: (.*?)\. /gm)].map(([, files = '']) => files.replaceAll('`', ''));
    expect(cycles(sources)).toEqual(named.map((files) => files.split(', ')));
  });

  test('are caught when they form a cycle', () => {
    const text = (to: string): string => `import type { X } from './${to}.ts';`;
    const files = [source('log/a.ts', text('b')), source('log/b.ts', text('c')), source('log/c.ts', text('a'))];
    expect(cycles([...files, source('log/d.ts', text('a'))])).toEqual([['log/a.ts', 'log/b.ts', 'log/c.ts']]);
  });

  test('name the file, with its extension', () => {
    const bare = sources.flatMap(({ path, imports }) =>
      imports.filter((from) => from.startsWith('.') && !from.endsWith('.ts')).map((from) => `${path}: ${from}`),
    );
    expect(bare).toEqual([]);
  });

  test('know no package: there are no runtime dependencies', () => {
    // An optional peer, loaded when it is first needed.
    const peers: Record<string, RegExp> = { koffi: /^comm\/mpi/ };
    const wrong = sources.flatMap(({ path, imports }) =>
      imports
        .filter((from) => !/^(\.|node:|#platform$)/.test(from) && !peers[from.split('/')[0] ?? '']?.test(path))
        .map((from) => `${path}: ${from}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe('a platform', () => {
  const mayUseNode = /^(storage\/node\/|comm\/|cli\/|bench\/|platform\/node\.ts$)/;

  test('is touched only by node storage, communicators, the command line with its benchmarks, and platform/node.ts', () => {
    const wrong: string[] = [];
    for (const { path, code, imports } of sources) {
      if (mayUseNode.test(path)) continue;
      for (const from of imports) if (from.startsWith('node:')) wrong.push(`${path}: ${from}`);
      for (const [word] of code.matchAll(/(?<![.#\w])(?:process\.|Buffer\b|__dirname|__filename|require\()/g)) {
        wrong.push(`${path}: ${word}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('is not brought along by benchmarks: only the command line imports them', () => {
    const wrong = sources.filter(
      ({ path, imports }) => !/^(cli|bench)\//.test(path) && imports.some((from) => from.includes('/bench/')),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test.each([['#platform', '../../src/platform/node.ts', '../../src/platform/browser.ts']])(
    '%s offers the same names for node and for browsers',
    async (_name, there, elsewhere) => {
      const node = (await import(there)) as object;
      const browser = (await import(elsewhere)) as object;
      expect(Object.keys(browser).sort()).toEqual(Object.keys(node).sort());
    },
  );
});

describe('functions', () => {
  // Tools and commands stand on top of the public classes and await them; the platform files hand storage through.
  const mayWait = /^(storage|comm|tools|bench|cli|platform)\//;

  test('are async, or end in Sync, only in storage, communicators and the public classes', () => {
    const waiting = sources.filter(({ path }) => !mayWait.test(path) && !publicClasses.test(path));
    expect(waiting.flatMap(twins)).toEqual([]);
  });

  test('are caught when they do so elsewhere', () => {
    const text = [
      'async function a() {}',
      'export function bSync() {}',
      'const cSync = () => 0;',
      'class D {\n  static dSync(): void {}\n  async e() {}\n}',
      '// async and fSync() in a comment, and driveSync(x) called, are fine',
    ].join('\n');
    expect(twins(source('log/a.ts', text))).toHaveLength(5);
    expect(twins(source('log/a.ts', 'const x = driveSync(storage, io);\n  driveSync(a, b);\n'))).toEqual([]);
  });
});

describe('files', () => {
  test('are named after what they hold', () => {
    expect(sources.filter(({ path }) => /(utils?|helpers?|misc|common|manager)\.ts$/i.test(path))).toEqual([]);
  });

  test('are at most 326', () => {
    expect(sources.length).toBeLessThanOrEqual(326);
  });

  test('have at most 500 lines', () => {
    const long = sources.filter(({ text }) => text.split('\n').length > 501);
    expect(long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1}`)).toEqual([]);
  });
});

/** Sets of files each of which reaches all the others through imports, sorted. */
function cycles(files: readonly Source[]): string[][] {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports.filter((to) => to.startsWith('.')).map((to) => posix.join(posix.dirname(path), to)),
    ]),
  );
  const reached = (from: string): Set<string> => {
    const found = new Set<string>();
    const waiting = [...(targets.get(from) ?? [])];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (found.has(path)) continue;
      found.add(path);
      waiting.push(...(targets.get(path) ?? []));
    }
    return found;
  };
  const reach = new Map([...targets.keys()].map((path) => [path, reached(path)]));
  const groups = new Map<string, string[]>();
  for (const path of [...targets.keys()].sort()) {
    const group = [...(reach.get(path) ?? [])].filter((other) => reach.get(other)?.has(path)).sort();
    if (group.length > 0) groups.set(group.join(), group);
  }
  return [...groups.values()];
}

function wrongImports({ path, imports }: Source): string[] {
  const from = unit(path);
  return imports.filter((target) => !allowed(from, path, target)).map((target) => `${path}: ${target}`);
}

function allowed(from: string, path: string, target: string): boolean {
  if (target === '#platform') return platformImporters.test(from) || path === platformEntry;
  if (!target.startsWith('.')) return !/^h5log(\/|$)/.test(target);
  const to = unit(posix.join(posix.dirname(path), target));
  if (from === to) return true;
  if (from === 'platform') return platformImports.includes(to);
  // Only through '#platform', so that a browser gets the other file.
  if (to === 'platform' || (apart.includes(from) && apart.includes(to))) return false;
  const [above, below] = [from, to].map((name) => layers.findIndex((layer) => layer.includes(name)));
  if (above === undefined || below === undefined || above < 0 || below < 0) return false;
  return above <= below;
}

/** The folder, or for a file directly in src/ its name without extension. */
function unit(path: string): string {
  return path.split('/')[0]?.replace(/\.ts$/, '') ?? '';
}

function twins({ path, code }: Source): string[] {
  const patterns = [
    /\basync\b/g,
    /\bfunction\*?\s+\w+Sync\b/g,
    /\b(?:const|let)\s+\w+Sync\b/g,
    /^\s+(?:(?:static|private|protected|public|override)\s+)*\*?#?\w+Sync(?:<[^>]*>)?\([^;]*\)(?:\s*:[^;{]+)?\s*\{/gm,
  ];
  return patterns.flatMap((pattern) => [...code.matchAll(pattern)].map(([found]) => `${path}: ${found.trim()}`));
}
