import { join } from 'node:path';
import { runThreads } from 'h5log/threads';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

// Small cases of what random programs of several ranks found.

const folder = temporaryDirectory();
const run = (name: string): Promise<number[][][]> =>
  runThreads<number[][]>(2, new URL('./model-found-rank.ts', import.meta.url), {
    name,
    path: join(folder, `${name}.h5`),
  });

test('every rank reads fill where a resize brought elements back, before the flush as well', async () => {
  const [first, second] = await run('shrink and grow');
  expect(first).toEqual([
    [1, -1, -1, -1],
    [1, -1, -1, -1],
    [1, -1, 9, -1],
  ]);
  expect(second).toEqual([
    [1, -1, -1, -1],
    [1, -1, 9, -1],
    [1, -1, 9, -1],
  ]);
});

test('blocks that come to an index of several subfiles are read from the right one', async () => {
  const all = [0, 1, 10, 11, 20, 21, 30, 31];
  const expected = [4, 6, 8].map((known) => all.map((value, i) => (i < known ? value : -1)));
  for (const seen of await run('two subfiles')) expect(seen).toEqual(expected);
});
