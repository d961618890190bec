import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';

// Classic tables have an entry for each block: they are soon larger than what a reader keeps in any case.
const DATASETS = 20;
const FLUSHES = 8;
const BLOCKS = 5000;

test('datasets that are read one after the other do not read large tables again each time', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage, { table: { format: 'classic' }, publish: 'never' });
  const options = { dtype: 'int8', shape: [3 * BLOCKS * FLUSHES] } as const;
  const all = Array.from({ length: DATASETS }, (_, i) => file.createDataset(`d${i}`, options));
  const starts = new Float64Array(BLOCKS);
  for (let flush = 0; flush < FLUSHES; flush++) {
    // No two blocks touch, and every other one has two elements, so that they are no points.
    for (let i = 0; i < BLOCKS; i++) starts[i] = 3 * (flush * BLOCKS + i);
    const counts = starts.map((_, i) => 1 + (i % 2));
    const data = new Int8Array(counts.reduce((sum, count) => sum + count)).fill(flush + 1);
    for (const dataset of all) dataset.writeMany(data, starts, counts);
    file.flushSync();
  }
  file.closeSync();
  const { size } = new Blob([storage.bytes()]);
  const reader = File.openSync(storage);
  // The storage has counted what was written to it, too.
  const before = reader.storageStatistics().bytes;
  for (let i = 0; i < DATASETS; i++) {
    const values = reader.dataset(`d${i}`, 'int8').readSync();
    expect([values[0], values[3 * BLOCKS], values[3 * BLOCKS + 1], values.at(-3)]).toEqual([1, 2, 0, FLUSHES]);
  }
  expect(size).toBeGreaterThan(33 * 2 ** 20);
  expect(reader.storageStatistics().bytes - before).toBeLessThan(2 * size);
  reader.closeSync();
}, 60_000);
