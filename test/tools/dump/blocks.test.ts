import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { blocks, stat } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { slow } from '../../cli/command.ts';
import { errorOf } from '../../storage/scratch.ts';
import { fileOfRanks } from '../samples.ts';

/** Three commits to `x`, of which the last hides part of the first; `y` has one block. */
async function log(): Promise<ReturnType<typeof memoryStorage>> {
  const storage = memoryStorage();
  const file = await File.create(storage);
  const x = file.createDataset('x', { dtype: 'int32', shape: [4, 6] });
  file.createDataset('y', { dtype: 'int8', shape: [2] }).write([1, 2]);
  x.write(new Int32Array(24));
  await file.flush();
  x.write(new Int32Array(6), { start: [1, 0], count: [1, 6] });
  await file.flush();
  x.write(new Int32Array(12), { start: [1, 0], count: [2, 6] });
  await file.close();
  return storage;
}

describe('blocks', () => {
  test('come in the order of their writing, with what is still visible of each', async () => {
    const found = await blocks(await log());
    expect(found).toEqual({
      dataset: '/x',
      shape: [4, 6],
      length: 3,
      starts: Float64Array.of(0, 0, 1, 0, 1, 0),
      counts: Float64Array.of(4, 6, 1, 6, 2, 6),
      ranks: Int32Array.of(0, 0, 0),
      flushes: Int32Array.of(1, 2, 3),
      bytes: Float64Array.of(96, 24, 48),
      visible: Float64Array.of(12, 0, 12),
    });
    expect(await blocks(await log(), { dataset: 'y' })).toMatchObject({ dataset: 'y', length: 1 });
  });

  test('of an earlier commit are those that were known then; the file stays open', async () => {
    const file = await File.open(await log(), { asOf: 2 });
    const found = await blocks(file, { dataset: '/x' });
    expect([...found.flushes]).toEqual([1, 2]);
    expect([...found.visible]).toEqual([18, 6]);
    const { flushes, data } = await stat(file);
    expect(flushes.map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
    expect(data).toEqual({ bytes: 122, live: 98, dead: 24 });
    expect(file.closed).toBe(false);
    await file.close();
  });

  test('know their ranks, and stat counts the ranks of a flush', slow, async () => {
    const path = await fileOfRanks(4);
    const { ranks } = await blocks(path);
    expect([...new Set(ranks)].sort()).toEqual([0, 1, 2, 3]);
    const { flushes } = await stat(path);
    expect(Math.max(...flushes.map((flush) => flush.ranks ?? 0))).toBe(4);
    for (const flush of flushes) expect((flush.ranks ?? 0) > 0).toBe(flush.data > 0);
  });

  test('are refused where there is no log, or the dataset is not in it', async () => {
    const storage = memoryStorage();
    await (await File.create(storage, { connector: 'native' })).close();
    expect(await errorOf(() => blocks(storage))).toMatchObject({ code: 'UNSUPPORTED' });
    expect(await errorOf(async () => blocks(await log(), { dataset: 'z' }))).toMatchObject({ code: 'NOT_FOUND' });
  });
});
