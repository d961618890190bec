import { join } from 'node:path';
import { File } from 'h5log';
import { dump, replay, seal } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

const directory = temporaryDirectory();

/** Writes rows of 37 numbers into a filtered dataset without declared chunks. */
async function write(
  name: string,
  rows: number,
  blocks: (rows: number) => Iterable<[number, number]>,
): Promise<string> {
  const path = join(directory, name);
  const file = await File.create(path);
  const dataset = file.createDataset('t', {
    dtype: 'float64',
    shape: [rows, 37],
    maxShape: [null, 37],
    filters: [{ deflate: 1 }],
  });
  for (const [start, count] of blocks(rows)) {
    const values = new Float64Array(count * 37).map((_, i) => start * 37 + i);
    dataset.write(values, { start: [start, 0], count: [count, 37] });
  }
  await file.close();
  return path;
}

/** The boxes that the log holds, as [start, count] of rows. */
async function pieces(path: string): Promise<number[][]> {
  const { tables } = await dump(path);
  return tables
    .flatMap(({ sections }) => sections.flatMap(({ entries }) => entries.flatMap(({ blocks }) => blocks)))
    .map(({ start, count }) => [start[0] as number, count[0] as number]);
}

async function chunksOf(path: string): Promise<readonly number[] | null> {
  const file = await File.open(path);
  const { chunks } = file.dataset('t');
  await file.close();
  return chunks;
}

describe('a dataset without declared chunks', () => {
  test('has the same chunks in the log, when it is replayed and when it is sealed', async () => {
    const path = await write('whole.h5', 10_000, (rows) => [[0, rows]]);
    expect(await pieces(path)).toEqual([
      [0, 2048],
      [2048, 2048],
      [4096, 2048],
      [6144, 2048],
      [8192, 1808],
    ]);
    await replay(path, `${path}.replayed`);
    expect(await chunksOf(`${path}.replayed`)).toEqual([2048, 37]);
    const { datasets } = await seal(path, { to: `${path}.sealed` });
    expect(await chunksOf(`${path}.sealed`)).toEqual([2048, 37]);
    // Only the last chunk, which reaches beyond the dataset, is written again.
    expect(datasets[0]).toMatchObject({ way: 'chunked', pieces: 5 });
    expect(datasets[0]?.moved).toBeLessThan(2048 * 37 * 8);
  });

  test('is cut at its chunks only where the pieces stay large', async () => {
    // 600 rows around the border of two chunks have 173 KiB, 100 rows 29 KiB.
    const path = await write('blocks.h5', 10_000, () => [
      [1800, 600],
      [4050, 100],
      [100, 10],
    ]);
    expect((await pieces(path)).sort(([a = 0], [b = 0]) => a - b)).toEqual([
      [100, 10],
      [1800, 248],
      [2048, 352],
      [4050, 100],
    ]);
  });

  test('has blocks of any size that are cut into equal parts of at most 1 MiB', async () => {
    const path = join(directory, 'columns.h5');
    const file = await File.create(path);
    const dataset = file.createDataset('t', { dtype: 'float64', shape: [4096, 4096], filters: [{ deflate: 1 }] });
    // A column of 64 elements: the default chunks, 32 whole rows, would cut it into 128 pieces of 16 KiB.
    dataset.write(new Float64Array(4096 * 64).fill(1), { start: [0, 128], count: [4096, 64] });
    await file.close();
    expect(await pieces(path)).toEqual([
      [0, 2048],
      [2048, 2048],
    ]);
  });
});
