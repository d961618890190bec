import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { snapshotPath } from '../../scripts/api.ts';
import { internalNames } from '../../scripts/internal-names.ts';
import { root } from '../../scripts/root.ts';

// The setup of the tests has built dist/.
describe.each(['node', 'browser'])('dist/%s', (platform) => {
  const folder = join(root, 'dist', platform);
  const names = readdirSync(folder);
  const programs = names.filter((name) => name.endsWith('.js'));

  test('holds each module once, so that there is one of every class', () => {
    const homes = new Map<string, string[]>();
    for (const name of programs) {
      const map = JSON.parse(readFileSync(join(folder, `${name}.map`), 'utf8')) as { sources: string[] };
      // The build makes the entry of the chunk that writes, and the module that loads the core.
      for (const source of map.sources.filter((path) => !/^writing:writing$|core-compiled.js$/.test(path)))
        homes.set(source, [...(homes.get(source) ?? []), name]);
    }
    expect(homes.size).toBeGreaterThan(100);
    expect([...homes].filter(([, found]) => found.length > 1)).toEqual([]);
    const missing = [...homes.keys()].filter((source) => !existsSync(join(folder, source)));
    expect(missing).toEqual([]);
    expect(
      [...homes.keys()].filter((source) => relative(join(root, 'src'), join(folder, source)).startsWith('..')),
    ).toEqual([]);
  });

  test('imports only its own files, modules of Node where there are any, and the optional peers', () => {
    const known = platform === 'node' ? /^(\.\/|#core$|node:|koffi$|h5wasm)/ : /^(\.\/|h5wasm$)/;
    const wrong = programs.flatMap((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      const found = [...text.matchAll(/^(?:import|export)\b[^'"]*?["']([^'"]+)["'];$/gm)].map(([, from]) => from ?? '');
      return found.filter((from) => !known.test(from)).map((from) => `${name}: ${from}`);
    });
    expect(wrong).toEqual([]);
  });
});

describe('names in the bundles for browsers', () => {
  const publicWords = new Set(readFileSync(snapshotPath, 'utf8').match(/[\w$]+/g));

  /** What an entry point exports, and every property of it that can be reached without calling anything. */
  async function shown(platform: string, entry: string): Promise<string[]> {
    const module: object = await import(join(root, 'dist', platform, `${entry}.js`));
    const found: string[] = [];
    for (const [name, value] of Object.entries(module)) {
      found.push(name);
      for (const held of [value, value?.prototype])
        if (held instanceof Object) found.push(...Object.getOwnPropertyNames(held).map((each) => `${name}.${each}`));
    }
    return found;
  }

  test.each(['index', 'netcdf', 'storage'])('are those of Node in %s, but for what nobody else sees', async (entry) => {
    const [ofNode, ofPage] = await Promise.all([shown('node', entry), shown('browser', entry)]);
    const missing = ofNode.filter((name) => !ofPage.includes(name));
    expect(missing.filter((name) => publicWords.has(name.replace(/^.*\./, '')))).toEqual([]);
    expect(ofPage.length).toBe(ofNode.length);
  });

  test('are short where nobody else sees them', () => {
    const folder = join(root, 'dist', 'browser');
    const programs = readdirSync(folder).filter((name) => name.endsWith('.js'));
    const text = programs.map((name) => readFileSync(join(folder, name), 'utf8')).join('');
    expect(['.addressSize', 'storageStatistics'].filter((name) => text.includes(name))).toEqual(['storageStatistics']);
  });

  test('stay where a name is public, the language has it, or it is looked up by its text', () => {
    const modules = ['read/object-header', 'messages/message-types', 'messages/filter-pipeline', 'format/cursor'];
    const names = internalNames(
      modules.map((name) => `src/hdf5/${name}.ts`),
      'interface Cursor { u16(): number }',
    );
    expect(names).toEqual(expect.arrayContaining(['u32', 'skip']));
    // A public word, a method of strings, a member of a namespace, and a key of Object.entries().
    for (const kept of ['u16', 'slice', 'continuation', 'nbit']) expect(names).not.toContain(kept);
  });
});

test('dist/types names no type that TypeScript 5.4 does not know', () => {
  const folder = join(root, 'dist', 'types');
  const declarations = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.d.ts'),
  );
  expect(declarations.length).toBeGreaterThan(100);
  // Typed arrays are generic since 5.7. `npm run runtimes` compiles a program with the real 5.4.
  const generic = declarations.filter((name) => /Array<ArrayBuffer/.test(readFileSync(join(folder, name), 'utf8')));
  expect(generic).toEqual([]);
});

test('the modules that threads and the command line start are in dist/node', () => {
  const names = readdirSync(join(root, 'dist', 'node'));
  const started = ['cli', 'worker', 'demo-rank', 'replay-rank', 'e3sm-rank', 'small-heap', 'warm-up'].map(
    (name) => `${name}.js`,
  );
  expect(names).toEqual(expect.arrayContaining(started));
});
