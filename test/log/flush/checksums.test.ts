import { File, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { repeats, seed } from '../../seed.ts';
import { type FaultyStorage, faultyStorage } from '../../storage/faulty.ts';
import { checkSums } from '../format/check-sums.ts';

// The sums in commit records (docs/format.md) are those of the bytes in the file, however these got there.

describe('checksums of commits', () => {
  test('after blocking flushes with merged tables, filters, resizes and deletions', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    const a = file.createDataset('a', { dtype: 'float64', shape: [50], maxShape: [null] });
    const z = file.createDataset('z', { dtype: 'int32', shape: [50], filters: [{ deflate: 3 }] });
    for (let i = 0; i < 60; i++) {
      a.write(Float64Array.of(i, i), { start: [i % 49], count: [2] });
      if (i % 3 === 0) z.write([i, i], select.points([[i % 50], [(i * 7) % 50]]));
      if (i === 20) a.resize([30]);
      if (i === 25) a.resize([50]);
      if (i === 40) file.delete('z');
      if (i === 41) file.attributes.set('x', 'y'.repeat(100));
      file.flushSync();
      if (i === 40) break;
    }
    file.closeSync();
    // The last commit publishes.
    expect(checkSums(storage.bytes())).toBe(43);
  });

  test('after overlapping, taken over and failed flushes, with lent buffers', async () => {
    const first = seed('log checksums');
    for (let n = 0; n < repeats(60); n++) {
      const disk: FaultyStorage = faultyStorage({ delays: true, seed: first + n });
      const file = await File.create(disk);
      const d = file.createDataset('d', { dtype: 'int32', shape: [4000] });
      const flushes: Promise<unknown>[] = [];
      for (let i = 0; i < 12; i++) {
        const lent = new Int32Array(1000).fill(i);
        d.write(lent, { start: [i * 100], count: [1000] }, { copy: false });
        d.write(new Int32Array(10).fill(-i), { start: [i], count: [10] });
        if (i === 6) disk.fail({ op: 'write', at: disk.counts.write + (n % 4), landed: 'none' });
        flushes.push(
          file.flush().then(
            () => lent.fill(99),
            () => {},
          ),
        );
        if ((i + n) % 5 === 4) {
          try {
            file.flushSync();
          } catch {
            // The one that was to fail.
          }
        }
        if (i % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(flushes);
      disk.heal();
      await file.close();
      expect(checkSums(disk.processImage())).toBeGreaterThan(3);
    }
    count('log checksums', { programs: repeats(60) });
  });

  test('are left out with checksum: false', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { checksum: false });
    file.createDataset('d', { dtype: 'int8', shape: [2] }).write([1, 2]);
    file.closeSync();
    expect(checkSums(storage.bytes())).toBe(2);
  });
});
