import { type ByteStorage, File, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { sessionOf } from '../../../src/api/handle.ts';
import type { BlockingStorage } from '../../../src/storage/storage.ts';

/** A storage that counts what is read from it. */
function counting(): { storage: ByteStorage; reads: { count: number; bytes: number } } {
  const inner = memoryStorage() as ByteStorage & { blocking: BlockingStorage };
  const reads = { count: 0, bytes: 0 };
  const blocking: BlockingStorage = {
    ...inner.blocking,
    read(into, offset) {
      reads.count++;
      reads.bytes += into.length;
      return inner.blocking.read(into, offset);
    },
  };
  return { storage: { ...inner, blocking }, reads };
}

/** What a read costs once structure and index are in memory. */
function cost(reads: { count: number; bytes: number }, work: () => void): { count: number; bytes: number } {
  work();
  reads.count = reads.bytes = 0;
  work();
  return { ...reads };
}

describe('reading', () => {
  const SIZE = 100_000;

  test('leaves alone what newer blocks hide, few of them or many', () => {
    for (const times of [3, 40]) {
      const { storage, reads } = counting();
      const file = File.createSync(storage);
      const dataset = file.createDataset('x', { dtype: 'uint8', shape: [SIZE] });
      for (let i = 0; i < times; i++) {
        dataset.write(new Uint8Array(SIZE).fill(i));
        file.flushSync();
      }
      const { bytes } = cost(reads, () => expect(dataset.readSync()[17]).toBe(times - 1));
      expect(bytes).toBe(SIZE);
      file.closeSync();
    }
  });

  test('takes neighbours in the file together', () => {
    const { storage, reads } = counting();
    const file = File.createSync(storage);
    const dataset = file.createDataset('x', { dtype: 'uint8', shape: [2, 50_000] });
    // Every other element of the first row, each a block of its own: 25,000 blocks that lie side by side in the file.
    dataset.writeMany(
      new Uint8Array(25_000).map((_, i) => i % 251),
      Float64Array.from({ length: 50_000 }, (_, i) => (i % 2 === 0 ? 0 : i - 1)),
      [1, 1],
    );
    file.flushSync();
    const { count } = cost(reads, () => expect(dataset.readSync()[2 * 300]).toBe(300 % 251));
    expect(count).toBeLessThanOrEqual(2);
    file.closeSync();
  });

  test('of one large block goes straight into the result, in one read', () => {
    const { storage, reads } = counting();
    const file = File.createSync(storage);
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [1000, 1000] });
    dataset.write(new Float64Array(1e6).fill(3));
    file.flushSync();
    const { count, bytes } = cost(reads, () => dataset.readSync({ start: [100, 0], count: [500, 1000] }));
    expect({ count, bytes }).toEqual({ count: 1, bytes: 500 * 1000 * 8 });
    file.closeSync();
  });

  test('extends its index with a flush instead of reading the tables again', () => {
    const { storage, reads } = counting();
    const file = File.createSync(storage);
    const dataset = file.createDataset('x', { dtype: 'int32', shape: [100_000] });
    for (let i = 0; i < 100_000; i += 2) dataset.write([i], { start: [i], count: [1] });
    file.flushSync();
    dataset.readSync({ start: [0], count: [10] });
    reads.bytes = 0;
    dataset.write([-1], { start: [4], count: [1] });
    file.flushSync();
    expect([...(dataset.readSync({ start: [0], count: [6] }) as Int32Array)]).toEqual([0, 0, 2, 0, -1, 0]);
    expect(reads.bytes).toBeLessThan(64 * 1024);
    file.closeSync();
  });
});

describe('a selection used for many datasets', () => {
  test('is worked out once and written once', () => {
    const tableBytes = (datasets: number): number => {
      const file = File.createSync(memoryStorage(), { table: { compress: false } });
      const scattered = select.points(
        Float64Array.from({ length: 2000 }, (_, i) => (i * 7) % 997),
        2,
      );
      for (let i = 0; i < datasets; i++) {
        const dataset = file.createDataset(`d${i}`, { dtype: i % 2 === 0 ? 'int16' : 'float64', shape: [1000, 1000] });
        dataset.write(new Int16Array(1000).fill(i), scattered);
      }
      file.flushSync();
      const size = sessionOf(file).log?.main.state.tables[0]?.size ?? 0;
      file.closeSync();
      return size;
    };
    expect(tableBytes(11) - tableBytes(1)).toBe(10 * 36);
  });
});
