import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { errorOf } from '../storage/scratch.ts';

/** Mistakes of people who come from numpy, and what the message tells them to write instead. */
describe('a message says what to write instead', () => {
  const file = File.createSync(memoryStorage());
  const grid = file.createDataset('grid', { dtype: 'float64', shape: [2, 2] });

  test.each<[string, () => unknown, string, RegExp]>([
    [
      'nested lists',
      () =>
        grid.write([
          [1, 2],
          [3, 4],
        ] as never),
      'SHAPE',
      /\/grid: .*flat: .*\.flat\(\)/,
    ],
    ['nested lists', () => grid.writeMany([[1, 2]] as never, [0, 0], [1, 2]), 'SHAPE', /\.flat\(\)/],
    ['too few values', () => grid.write([1, 2]), 'SHAPE', /^\/grid: 2 values for a selection of 4 elements$/],
    [
      'a code of numpy',
      () => file.createDataset('a', { dtype: 'f8' as never, shape: [1] }),
      'DTYPE',
      /'float64'.*got string 'f8'/,
    ],
    ["'string'", () => file.createDataset('b', { dtype: 'string' as never, shape: [1] }), 'DTYPE', /T\.string\(/],
    ["'bool'", () => file.createDataset('c', { dtype: 'bool' as never, shape: [1] }), 'DTYPE', /T\.bool/],
    [
      'an attribute without a value',
      () => file.attributes.set('x', undefined as never),
      'DTYPE',
      /attribute x: .*got undefined/,
    ],
    ['a date as attribute', () => file.attributes.set('x', new Date(0)), 'DTYPE', /attribute x: .*string.*\{ dtype \}/],
    [
      'a mixed list as attribute',
      () => file.attributes.set('x', [1, 'a'] as never),
      'DTYPE',
      /attribute x: .*one kind.*\{ dtype \}/,
    ],
  ])('%s', async (_, mistake, code, message) => {
    expect(await errorOf(mistake)).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
