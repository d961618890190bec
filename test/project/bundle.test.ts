import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
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
      for (const source of map.sources) homes.set(source, [...(homes.get(source) ?? []), name]);
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
    const known = platform === 'node' ? /^(\.\/|node:|koffi$|h5wasm)/ : /^(\.\/|h5wasm$)/;
    const wrong = programs.flatMap((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      const found = [...text.matchAll(/^(?:import|export)\b[^'"]*?["']([^'"]+)["'];$/gm)].map(([, from]) => from ?? '');
      return found.filter((from) => !known.test(from)).map((from) => `${name}: ${from}`);
    });
    expect(wrong).toEqual([]);
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
  const started = ['cli', 'worker', 'demo-rank', 'replay-rank', 'e3sm-rank', 'small-heap'].map((name) => `${name}.js`);
  expect(names).toEqual(expect.arrayContaining(started));
});
