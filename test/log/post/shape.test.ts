import { type Dataset, File, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { handleOf, sessionOf } from '../../../src/api/handle.ts';
import { sparseStorage } from '../../storage/sparse.ts';

/** Writes, closes, and shows the dataset as it is then. */
function reopened(storage: ReturnType<typeof memoryStorage>, check: (file: File) => void): void {
  for (const indexLimit of [Infinity, 0]) {
    const file = File.openSync(memoryStorage(storage.bytes()), { indexLimit });
    check(file);
    file.closeSync();
  }
}

function scene(
  shape: number[],
  maxShape: (number | null)[] | undefined,
  fill?: number,
): { storage: ReturnType<typeof memoryStorage>; file: File; d: Dataset<'int32'> } {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  const options = {
    dtype: 'int32' as const,
    shape,
    ...(maxShape && { maxShape }),
    ...(fill !== undefined && { fill }),
  };
  return { storage, file, d: file.createDataset('d', options) };
}

const values = (file: File): number[] => Array.from(file.dataset('d', 'int32').readSync());

describe('resize', () => {
  test('within maxShape, in any dimension', () => {
    const { storage, file, d } = scene([2, 2], [null, 4]);
    d.write([1, 2, 3, 4]);
    d.resize([3, 4]);
    expect(d.shape).toEqual([3, 4]);
    expect(d.maxShape).toEqual([null, 4]);
    expect([d.rank, d.size]).toEqual([2, 12]);
    expect(values(file)).toEqual([1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0]);
    file.flushSync();
    d.resize([1, 3]);
    expect(values(file)).toEqual([1, 2, 0]);
    d.resize([1000000, 4]);
    expect(d.readSync({ start: [999999, 0], count: [1, 4] })).toEqual(new Int32Array(4));
    d.resize([2, 1]);
    file.closeSync();
    reopened(storage, (f) => {
      expect(f.dataset('d').shape).toEqual([2, 1]);
      // What was cut off is gone for good, also when the dataset grew over it again and shrank once more.
      expect(values(f)).toEqual([1, 0]);
    });
  });

  test('is seen by readers with the flush, not before', () => {
    const { storage, file, d } = scene([2], [null]);
    d.write([1, 2]);
    file.flushSync();
    d.resize([3]);
    reopened(storage, (f) => expect(f.dataset('d').shape).toEqual([2]));
    const { sequence } = file.flushSync();
    reopened(storage, (f) => expect(f.dataset('d').shape).toEqual([3]));
    const earlier = File.openSync(memoryStorage(storage.bytes()), { asOf: sequence - 1 });
    expect(earlier.dataset('d').shape).toEqual([2]);
    file.closeSync();
  });

  for (const when of ['pending', 'under way', 'committed', 'in another session'] as const) {
    test(`shrinking and growing again shows fill where ${when} data was`, async () => {
      const { storage, file: first, d: before } = scene([4, 4], [null, null], -1);
      before.write(Int32Array.from({ length: 16 }, (_, i) => i + 1));
      before.write(
        [50, 51, 52],
        select.points([
          [3, 3],
          [0, 0],
          [1, 3],
        ]),
      );
      let file = first;
      if (when === 'committed') file.flushSync();
      if (when === 'under way') void file.flush();
      if (when === 'in another session') {
        file.closeSync();
        file = File.openSync(storage, { mode: 'r+' });
      }
      const d = file.dataset('d', 'int32');
      d.resize([2, 3]);
      if (when === 'in another session') file.flushSync();
      d.resize([4, 4]);
      const expected = [51, 2, 3, -1, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1, -1];
      expect(values(file)).toEqual(expected);
      await file.flush();
      expect(values(file)).toEqual(expected);
      d.write([9], { start: [3, 3], count: [1, 1] });
      await file.close();
      reopened(storage, (f) => expect(values(f)).toEqual([...expected.slice(0, 15), 9]));
    });
  }

  test('to nothing and back', () => {
    const { storage, file, d } = scene([3], [null], 7);
    d.write([1, 2, 3]);
    file.flushSync();
    d.resize([0]);
    expect(d.readSync()).toHaveLength(0);
    file.flushSync();
    d.resize([3]);
    file.closeSync();
    reopened(storage, (f) => expect(values(f)).toEqual([7, 7, 7]));
  });

  test('of a filtered dataset', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    const d = file.createDataset('d', {
      dtype: 'int32',
      shape: [6],
      maxShape: [null],
      chunks: [4],
      filters: [{ deflate: 1 }],
    });
    d.write([1, 2, 3, 4, 5, 6]);
    file.flushSync();
    d.resize([3]);
    d.resize([7]);
    file.closeSync();
    reopened(storage, (f) => expect(values(f)).toEqual([1, 2, 3, 0, 0, 0, 0]));
  });

  test('does not depend on the bufferLimit', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { bufferLimit: 16 });
    const d = file.createDataset('d', { dtype: 'int32', shape: [4], maxShape: [null] });
    for (let i = 0; i < 4; i++) {
      d.write([i + 1, i + 1, i + 1, i + 1]);
      file.flushSync();
    }
    d.resize([0]);
    d.resize([4]);
    expect(values(file)).toEqual([0, 0, 0, 0]);
    file.closeSync();
    reopened(storage, (f) => expect(values(f)).toEqual([0, 0, 0, 0]));
  });
});

describe('ranks and sizes', () => {
  test('a scalar', () => {
    const { storage, file, d } = scene([], undefined, 3);
    expect([d.rank, d.size, d.shape]).toEqual([0, 1, []]);
    expect(d.readSync()).toEqual(Int32Array.of(3));
    d.write(5);
    d.write([6]);
    d.write(Int32Array.of(7), select.all());
    d.write([8], {}, { copy: false });
    d.writeMany([9], [], []);
    expect(d.readManySync([], [])).toEqual(Int32Array.of(9));
    d.resize([]);
    file.closeSync();
    reopened(storage, (f) => expect(values(f)).toEqual([9]));
  });

  test('from 1 to 32 dimensions', () => {
    for (let rank = 1; rank <= 32; rank++) {
      const shape = Array.from<unknown, number>({ length: rank }, (_, d) =>
        d === 0 || d === rank - 1 ? 3 : d % 8 === 3 ? 2 : 1,
      );
      const size = shape.reduce((a, b) => a * b, 1);
      const { storage, file, d } = scene(
        shape,
        shape.map(() => null),
      );
      const all = Int32Array.from({ length: size }, (_, i) => i + 1);
      d.write(all);
      const last = { start: shape.map((n) => n - 1), count: shape.map(() => 1) };
      d.write([-1], last);
      file.flushSync();
      // Two blocks that do not touch, so that there is something to encode.
      const corners = select.points([shape.map(() => 0), shape.map((n) => n - 1)]);
      d.write([-2, -3], corners);
      file.closeSync();
      const expected = [...all];
      expected[0] = -2;
      expected[size - 1] = -3;
      reopened(storage, (f) => {
        expect(values(f)).toEqual(expected);
        expect(f.dataset('d', 'int32').readSync(last)).toEqual(Int32Array.of(-3));
      });
    }
  });

  test('dimensions of size zero', async () => {
    const { storage, file, d } = scene([3, 0, 2], [3, null, 2]);
    expect(d.size).toBe(0);
    d.write([]);
    d.write(new Int32Array(0), select.all());
    d.write([], { start: [0, 0, 0], count: [3, 0, 2] });
    d.write([], select.none());
    d.writeMany([], [0, 0, 0], [1, 0, 1]);
    d.writeMany([], [], []);
    expect(file.pending).toEqual({ requests: 0, bytes: 0 });
    expect(d.readSync()).toHaveLength(0);
    expect(await d.read(select.none())).toHaveLength(0);
    expect(await d.readMany([], [])).toHaveLength(0);
    d.resize([3, 1, 2]);
    d.write([1, 2, 3, 4, 5, 6]);
    file.closeSync();
    reopened(storage, (f) => expect(values(f)).toEqual([1, 2, 3, 4, 5, 6]));
  });

  test('sizes whose product is near 2^53', () => {
    const { storage, file, d } = scene([2 ** 26, 2 ** 26], [null, null], 4);
    const far = { start: [2 ** 26 - 1, 2 ** 26 - 2], count: [1, 2] };
    d.write([1, 2], far);
    d.write(
      [3, 3],
      select.points([
        [0, 0],
        [2 ** 25, 5],
      ]),
    );
    file.closeSync();
    reopened(storage, (f) => {
      const e = f.dataset('d', 'int32');
      expect(e.readSync(far)).toEqual(Int32Array.of(1, 2));
      expect(e.readSync({ start: [2 ** 25, 4], count: [1, 3] })).toEqual(Int32Array.of(4, 3, 4));
    });
  });
});

describe('more than 2 GiB in one post', () => {
  const TWO = 2 ** 31;
  for (const shape of [[TWO + 24], [3, 1, TWO / 2 + 8]]) {
    test(`[${shape.join(', ')}] bytes are split into entries of less`, { timeout: 120_000 }, () => {
      const storage = sparseStorage();
      const file = File.createSync(storage, { checksum: false });
      const size = shape.reduce((a, b) => a * b, 1);
      const d = file.createDataset('d', { dtype: 'uint8', shape });
      const data = new Uint8Array(size);
      data[0] = 1;
      data[size - 1] = 2;
      d.write(data, undefined, { copy: false });
      file.closeSync();
      const reader = File.openSync(storage);
      const e = reader.dataset('d', 'uint8');
      const ends = select.points([shape.map((n) => n - 1), shape.map(() => 0), shape.map((n) => Math.floor(n / 2))]);
      expect(e.readSync(ends)).toEqual(Uint8Array.of(2, 1, 0));
      const session = sessionOf(reader);
      const index = session.now(
        session.log!.tables.index(session.logDataset(handleOf(e).node, '/d')!, null, session.log!.tables.committed),
      );
      expect(index.length).toBeGreaterThan(1);
      let next = index.offsets[0] as number;
      for (let i = 0; i < index.length; i++) {
        const bytes = shape.reduce((product, _, k) => product * (index.counts[i * shape.length + k] as number), 1);
        expect(bytes).toBeLessThan(TWO);
        expect(index.offsets[i]).toBe(next);
        next += bytes;
      }
      expect(next - (index.offsets[0] as number)).toBe(size);
      reader.closeSync();
    });
  }
});
