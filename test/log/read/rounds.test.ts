import { type ByteStorage, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import type { BlockingStorage } from '../../../src/storage/storage.ts';

/** What was read from a storage: how often, and in how many rounds of reads that were under way together. */
interface Reads {
  count: number;
  rounds: number;
}

const FLUSHES = 100;
const DATASETS = 20;

/** A log of many flushes, each of which has a row of every dataset, far from the rows of the flushes before. */
function manyFlushes(logs: 'shared' | 'dataset', isFiltered: boolean): BlockingStorage {
  const { blocking, ...storage } = memoryStorage() as ByteStorage & { blocking: BlockingStorage };
  const file = File.createSync({ ...storage, blocking }, { logs, publish: 'never' });
  const filters = isFiltered ? { chunks: [1, 1000], filters: [{ deflate: 1 }] } : {};
  const options = { dtype: 'float64', shape: [FLUSHES, 1000], ...filters } as const;
  const all = Array.from({ length: DATASETS }, (_, i) => file.createDataset(`d${i}`, options));
  for (let row = 0; row < FLUSHES; row++) {
    for (const dataset of all) dataset.write(new Float64Array(1000).fill(row), { start: [row, 0], count: [1, 1000] });
    file.flushSync();
  }
  file.closeSync();
  return blocking;
}

/** The same file where every read takes a while, as from a server. */
function distant({ read, size }: BlockingStorage): { storage: ByteStorage; reads: Reads } {
  const reads = { count: 0, rounds: 0 };
  let underWay = 0;
  const storage: ByteStorage = {
    name: 'distant',
    async read(into, offset) {
      reads.count++;
      if (underWay++ === 0) reads.rounds++;
      const count = read(into, offset);
      await new Promise((resolve) => setTimeout(resolve, 1));
      underWay--;
      return count;
    },
    size: async () => size(),
    close: async () => {},
  };
  return { storage, reads };
}

describe.each([
  ['shared', false],
  ['shared', true],
  ['dataset', false],
] as const)('a log of many flushes (%s, filters: %s)', (logs, isFiltered) => {
  const blocking = manyFlushes(logs, isFiltered);

  test('is opened, and a column of it read, in few rounds', async () => {
    const { storage, reads } = distant(blocking);
    const file = await File.open(storage);
    const opened = { ...reads };
    const values = await file.dataset('d7').read({ start: [0, 500], count: [FLUSHES, 1] });
    expect(values).toEqual(Float64Array.from({ length: FLUSHES }, (_, row) => row));
    expect(file.commits().map(({ sequence }) => sequence)).toEqual(Array.from({ length: FLUSHES + 1 }, (_, i) => i));
    await file.close();
    expect(opened.rounds).toBeLessThanOrEqual(10);
    expect(reads.rounds).toBeLessThanOrEqual(15);
    // A page of each flush, and what leads to them.
    expect(reads.count).toBeLessThanOrEqual(FLUSHES + 50);
  });

  test('is opened on a disk without a look at older commit records', () => {
    let reads = 0;
    const counted: BlockingStorage = {
      ...blocking,
      read(into, offset) {
        reads++;
        return blocking.read(into, offset);
      },
    };
    const storage = { ...distant(blocking).storage, blocking: counted };
    const file = File.openSync(storage);
    const opened = reads;
    expect(file.commits()).toHaveLength(FLUSHES + 1);
    expect(reads).toBeGreaterThanOrEqual(opened + 10);
    expect(opened).toBeLessThanOrEqual(15);
    file.closeSync();
  });
});
