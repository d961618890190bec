import { File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

const SIDE = 256;
const CHUNK = 64;
const BYTES = 8 * SIDE * SIDE;

/** What other programs read. */
function asOthersSee(bytes: Uint8Array, path: string): unknown {
  const file = File.openSync(bytes, { connector: 'native' });
  const values = file.dataset(path).readSync();
  file.closeSync();
  return values;
}

function chunksOthersSee(bytes: Uint8Array, path: string): readonly number[] | null {
  const file = File.openSync(bytes, { connector: 'native' });
  const { chunks } = file.dataset(path);
  file.closeSync();
  return chunks;
}

const field = (value: (i: number) => number): Float64Array =>
  Float64Array.from({ length: SIDE * SIDE }, (_, i) => value(i));

describe('a block of several chunks', () => {
  test.each(['flush', 'auto', 'close'] as const)('is in the file once (%s)', (publish) => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [SIDE, SIDE], chunks: [CHUNK, CHUNK] });
    const values = field((i) => i);
    dataset.write(values, undefined, { copy: publish !== 'flush' });
    if (publish === 'flush') file.flushSync();
    file.closeSync();
    const bytes = storage.bytes();
    expect(bytes.length).toBeLessThan(1.1 * BYTES);
    expect(asOthersSee(bytes, 'x')).toEqual(values);
    const again = File.openSync(bytes);
    expect(again.dataset('x').published).toMatchObject({ way: 'chunked' });
    expect(chunksOthersSee(bytes, 'x')).toEqual([CHUNK, CHUNK]);
    expect(again.dataset('x').readSync()).toEqual(values);
    again.closeSync();
  });

  test('is cut by flushes that come before the one that publishes', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'close' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [SIDE, SIDE], chunks: [CHUNK, CHUNK] });
    const half = { start: [SIDE / 2, 0], count: [SIDE / 2, SIDE] };
    dataset.write(field((i) => i));
    file.flushSync();
    dataset.write(new Float64Array((SIDE * SIDE) / 2).fill(1), half);
    file.flushSync();
    file.closeSync();
    const bytes = storage.bytes();
    expect(bytes.length).toBeLessThan(1.6 * BYTES);
    expect(chunksOthersSee(bytes, 'x')).toEqual([CHUNK, CHUNK]);
    expect(asOthersSee(bytes, 'x')).toEqual(field((i) => (i < (SIDE * SIDE) / 2 ? i : 1)));
  });

  test('that lies across the chunks is copied into those that are declared', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'close' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [SIDE, SIDE], chunks: [CHUNK, CHUNK] });
    for (let y = 0; y < SIDE; y += 32)
      dataset.write(new Float64Array(32 * SIDE).fill(y), { start: [y, 0], count: [32, SIDE] });
    file.closeSync();
    expect(chunksOthersSee(storage.bytes(), 'x')).toEqual([CHUNK, CHUNK]);
    expect(asOthersSee(storage.bytes(), 'x')).toEqual(field((i) => 32 * Math.floor(i / SIDE / 32)));
  });

  test('is cut at the grid that others see already', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'flush' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [SIDE, SIDE], chunks: [CHUNK, CHUNK] });
    dataset.write(field((i) => i));
    file.flushSync();
    dataset.write(field((i) => -i));
    expect(file.flushSync().bytes).toBeLessThan(1.1 * BYTES);
    expect(asOthersSee(storage.bytes(), 'x')).toEqual(field((i) => -i));
    // Nine whole chunks; what is at their sides is completed from what was there.
    const inner = SIDE - 2 * 10;
    dataset.write(new Float64Array(inner * inner).fill(7), { start: [10, 10], count: [inner, inner] });
    // Behind it in the same flush: the last post counts.
    dataset.write(new Float64Array(100).fill(8), { start: [100, 100], count: [10, 10] });
    file.flushSync();
    const expected = field((i) => {
      const [y, x] = [Math.floor(i / SIDE), i % SIDE];
      if (y >= 100 && y < 110 && x >= 100 && x < 110) return 8;
      return y >= 10 && y < SIDE - 10 && x >= 10 && x < SIDE - 10 ? 7 : -i;
    });
    expect(asOthersSee(storage.bytes(), 'x')).toEqual(expected);
    expect(dataset.readSync()).toEqual(expected);
    file.closeSync();
  });

  test('is cut with what its elements point to', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'flush' });
    const dataset = file.createDataset('names', { dtype: T.string(), shape: [64, 64], chunks: [16, 16] });
    const values = Array.from({ length: 64 * 64 }, (_, i) => `name ${i}`);
    dataset.write(values);
    file.flushSync();
    expect(dataset.readSync()).toEqual(values);
    expect(asOthersSee(storage.bytes(), 'names')).toEqual(values);
    file.closeSync();
  });

  test('stays whole in a file that does not publish', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [SIDE, SIDE], chunks: [CHUNK, CHUNK] });
    dataset.write(field((i) => i));
    const { bytes } = file.flushSync();
    expect(bytes).toBeLessThan(BYTES + 2000);
    file.closeSync();
  });
});
