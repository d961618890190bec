import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { projectSource, unusedExports } from './exports.ts';
import { source } from './sources.ts';

describe('exported names of src', () => {
  test('are all used by another file', () => {
    const paths = ['src', 'test', 'bench', 'scripts', 'examples', 'packages/browse/src'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => /\.tsx?$/.test(path))
        .map((path) => `${folder}/${path.replaceAll('\\', '/')}`),
    );
    expect(unusedExports(paths.map(projectSource))).toEqual([]);
  });

  test('are found when nobody uses them', () => {
    const maps = {
      entries: new Map([['h5log', 'src/index.ts']]),
      seams: new Map([['#platform', ['src/platform/node.ts', 'src/platform/browser.ts']]]),
    };
    const files = [
      source('src/index.ts', "export { open } from './open.ts';\nexport type { Mode } from './mode.ts';"),
      source(
        'src/open.ts',
        "import * as bits from './bits.ts';\nexport const open = bits.one;\nexport const lost1 = open;",
      ),
      source('src/mode.ts', 'export type Mode = number;\nexport interface Lost2 {}\n// export const lost = 1'),
      source('src/bits.ts', 'export const one = 1;\nexport const lost3 = 2;'),
      source('src/platform/node.ts', 'export function inflate() {}\nexport function lost4() {}'),
      source(
        'src/platform/browser.ts',
        "export { inflate } from '../inflate.ts';\nexport { lost5 } from '../inflate.ts';",
      ),
      source('src/inflate.ts', 'export const inflate = 1;\nexport const lost5 = 2;'),
      source('src/late.ts', 'export const a = 1;\nexport const b = 2;\nexport const c = 3;\nexport const lost6 = 4;'),
      source('src/rank.ts', 'export default () => {};'),
      source(
        'test/a.test.ts',
        "import { inflate } from '#platform';\nconst { a, b: x } = await import('../src/late.ts');",
      ),
      source('test/b.ts', "(await import('../src/late.ts')).c;"),
    ];
    const lost = ['open', 'mode', 'bits', 'platform/node', 'platform/browser', 'inflate', 'late'];
    expect(unusedExports(files, maps).sort()).toEqual(
      [
        ...lost.map((name, i) => `src/${name}.ts: ${i === 1 ? 'L' : 'l'}ost${Math.min(i + 1, i < 5 ? 5 : i)}`),
        'src/rank.ts: default',
      ].sort(),
    );
  });
});
