import { File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

/** What is left of the numbers 0, 1, 2 ... in one shape when it becomes another one. */
function cut(from: readonly [number, number], to: readonly [number, number]): Float64Array {
  return Float64Array.from({ length: to[0] * to[1] }, (_, i) => Math.floor(i / to[1]) * from[1] + (i % to[1]));
}

/** Values in a shape that becomes larger: zeros, the fill value, around them. */
function widened(values: Float64Array, from: readonly [number, number], to: readonly [number, number]): Float64Array {
  const all = new Float64Array(to[0] * to[1]);
  values.forEach((value, i) => {
    all[Math.floor(i / from[1]) * to[1] + (i % from[1])] = value;
  });
  return all;
}

const counted = (length: number): Float64Array => Float64Array.from({ length }, (_, i) => i);

/** What other programs read, and the largest shape that they see. */
function asOthersSee(bytes: Uint8Array): { shape: readonly number[]; chunks: readonly number[] | null; data: unknown } {
  const file = File.openSync(bytes, { connector: 'native' });
  const dataset = file.dataset('a');
  const seen = { shape: dataset.shape, chunks: dataset.chunks, data: dataset.readSync() };
  file.closeSync();
  return seen;
}

const SHAPES = [
  [
    [4, 4],
    [2, 2],
  ],
  [
    [4, 4],
    [4, 2],
  ],
  [
    [4, 4],
    [2, 4],
  ],
  [
    [400, 600],
    [400, 500],
  ],
  [
    [400, 600],
    [300, 500],
  ],
] as const;

describe.each(SHAPES)('a dataset without chunks, published as %j, that becomes %j', (from, to) => {
  const make = (): { storage: ReturnType<typeof memoryStorage>; file: File } => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'flush' });
    file.createDataset('a', { dtype: 'float64', shape: from }).write(counted(from[0] * from[1]));
    file.flushSync();
    return { storage, file };
  };

  test.each([false, true])('is seen so (and an element is written: %s)', (isWritten) => {
    const { storage, file } = make();
    const dataset = file.dataset('a', 'float64');
    dataset.resize(to);
    const expected = cut(from, to);
    if (isWritten) {
      dataset.write(Float64Array.of(-1), { start: [1, 1], count: [1, 1] });
      expected[to[1] + 1] = -1;
    }
    file.flushSync();
    expect(dataset.readSync()).toEqual(expected);
    expect(dataset.published?.sequence).toBe(file.published);
    expect(asOthersSee(storage.bytes())).toMatchObject({ shape: to, data: expected });
    // HDF5 has no contiguous datasets that may grow.
    expect(asOthersSee(storage.bytes()).chunks).not.toBeNull();
    dataset.resize(from);
    file.flushSync();
    const grown = widened(expected, to, from);
    expect(dataset.readSync()).toEqual(grown);
    file.closeSync();
    expect(asOthersSee(storage.bytes())).toMatchObject({ shape: from, data: grown });
  });

  test('and grows again before it is published is fill where it was cut', () => {
    const { storage, file } = make();
    const dataset = file.dataset('a', 'float64');
    dataset.resize(to);
    dataset.resize(from);
    file.flushSync();
    const kept = widened(cut(from, to), to, from);
    expect(dataset.readSync()).toEqual(kept);
    expect(asOthersSee(storage.bytes())).toMatchObject({ shape: from, data: kept });
    file.closeSync();
  });

  test('is changed so in an ordinary file', () => {
    for (const isWritten of [false, true]) {
      const storage = memoryStorage();
      const made = File.createSync(storage, { connector: 'native' });
      made.createDataset('a', { dtype: 'float64', shape: from }).write(counted(from[0] * from[1]));
      made.closeSync();
      const file = File.openSync(storage, { mode: 'r+' });
      const dataset = file.dataset('a', 'float64');
      dataset.resize(to);
      const expected = cut(from, to);
      if (isWritten) {
        dataset.write(Float64Array.of(-1), { start: [1, 1], count: [1, 1] });
        expected[to[1] + 1] = -1;
      }
      expect(dataset.readSync()).toEqual(expected);
      file.flushSync();
      expect(dataset.readSync()).toEqual(expected);
      expect(asOthersSee(storage.bytes())).toMatchObject({ shape: to, data: expected });
      dataset.resize(from);
      file.closeSync();
      const grown = widened(expected, to, from);
      expect(asOthersSee(storage.bytes())).toMatchObject({ shape: from, data: grown });
    }
  });
});

test('declared chunks are those that others see, with filters too, whatever was written at once', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'close' });
  const options = { dtype: 'float64', shape: [64, 1024], chunks: [32, 1024], filters: [{ deflate: 1 }] } as const;
  const dataset = file.createDataset('a', options);
  for (let row = 0; row < 64; row += 16) {
    dataset.write(new Float64Array(16 * 1024).fill(row), { start: [row, 0], count: [16, 1024] });
    file.flushSync();
  }
  file.closeSync();
  const { chunks, data } = asOthersSee(storage.bytes());
  expect(chunks).toEqual([32, 1024]);
  expect(data).toEqual(Float64Array.from({ length: 64 * 1024 }, (_, i) => 16 * Math.floor(i / 1024 / 16)));
});

test('texts and empty shapes: a dataset without chunks shrinks to nothing, and comes back', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'flush' });
  const dataset = file.createDataset('a', { dtype: T.string(), shape: [2, 2] });
  dataset.write(['a', 'b', 'c', 'd']);
  file.flushSync();
  dataset.resize([0, 2]);
  file.flushSync();
  expect(asOthersSee(storage.bytes())).toMatchObject({ shape: [0, 2], data: [] });
  dataset.resize([1, 2]);
  dataset.write(['e'], { start: [0, 1], count: [1, 1] });
  file.closeSync();
  expect(asOthersSee(storage.bytes())).toMatchObject({ shape: [1, 2], data: ['', 'e'] });
});
