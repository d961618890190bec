import fc from 'fast-check';
import { type CreateOptions, type Dataset, type DType, File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { stat } from 'h5log/tools';
import { describe, expect, test, vi } from 'vitest';
import { ArenaPool } from '../../../src/log/post/arena.ts';
import { random, runs } from '../../seed.ts';
import { faultyStorage } from '../../storage/faulty.ts';

/** The numbers below `n` in random order. */
function shuffled(n: number, seed: number): number[] {
  const next = random(seed);
  const list = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const k = Math.floor(next() * (i + 1));
    [list[i], list[k]] = [list[k] as number, list[i] as number];
  }
  return list;
}

/** How many blocks the log of a file has. */
async function blocksOf(bytes: Uint8Array): Promise<number> {
  const report = await stat(memoryStorage(bytes));
  return report.datasets.reduce((sum, { blocks }) => sum + blocks, 0);
}

const ROWS = 4096;

function writeRows(dataset: Dataset<'float64'>, order: readonly number[]): void {
  for (const row of order) dataset.write(Float64Array.of(row, -row, NaN), { start: [row, 0], count: [1, 3] });
}

const rows = Float64Array.from(
  { length: 3 * ROWS },
  (_, i) => [Math.floor(i / 3), -Math.floor(i / 3), NaN][i % 3] as number,
);

describe('many rows in random order', () => {
  test('are one block after a flush', async () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3] });
    writeRows(dataset, shuffled(ROWS, 1));
    expect(dataset.readSync()).toEqual(rows);
    expect(file.flushSync().requests).toBe(ROWS);
    expect(dataset.readSync()).toEqual(rows);
    file.closeSync();
    expect(await blocksOf(storage.bytes())).toBe(1);
    const again = File.openSync(storage.bytes());
    expect(again.dataset('x').readSync()).toEqual(rows);
    again.closeSync();
  });

  test('stay as they are where the table says so', async () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never', table: { merge: false } });
    writeRows(file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3] }), shuffled(ROWS, 1));
    file.closeSync();
    expect(await blocksOf(storage.bytes())).toBeGreaterThan(ROWS / 2);
  });

  test('are published without a copy', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'close' });
    writeRows(file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3] }), shuffled(ROWS, 2));
    file.closeSync();
    expect(storage.bytes().length).toBeLessThan(1.2 * 24 * ROWS);
    const others = File.openSync(storage.bytes(), { connector: 'native' });
    expect(others.dataset('x').readSync()).toEqual(rows);
    others.closeSync();
  });

  test('are compressed together', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const dataset = file.createDataset('x', {
      dtype: 'float64',
      shape: [ROWS, 3],
      chunks: [1024, 3],
      filters: ['shuffle', { deflate: 1 }],
    });
    writeRows(dataset, shuffled(ROWS, 3));
    file.closeSync();
    expect(storage.bytes().length).toBeLessThan(0.5 * 24 * ROWS);
    const again = File.openSync(storage.bytes());
    expect(again.dataset('x').readSync()).toEqual(rows);
    again.closeSync();
  });

  test('are pending again, and can be cut, after a flush that failed', () => {
    const disk = faultyStorage({ faults: [{ op: 'write', at: 6, code: 'ENOSPC' }] });
    const file = File.createSync(disk, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3], maxShape: [null, 3] });
    file.flushSync();
    writeRows(dataset, shuffled(ROWS, 4));
    let failed = 0;
    for (let tries = 0; tries < 8 && failed === 0; tries++) {
      dataset.write(rows.subarray(0, 3), { start: [0, 0], count: [1, 3] });
      try {
        file.flushSync();
      } catch {
        failed++;
      }
    }
    expect(failed).toBe(1);
    expect(dataset.readSync()).toEqual(rows);
    dataset.write(Float64Array.of(7, 7, 7), { start: [5, 0], count: [1, 3] });
    dataset.resize([ROWS / 2, 3]);
    const expected = rows.slice(0, (3 * ROWS) / 2);
    expected.fill(7, 15, 18);
    expect(dataset.readSync()).toEqual(expected);
    file.closeSync();
    const again = File.openSync(disk.processImageAfter(disk.log.length));
    expect(again.dataset('x').readSync()).toEqual(expected);
    again.closeSync();
  });

  test('keep the buffer limit', () => {
    const file = File.createSync(memoryStorage(), {
      publish: 'never',
      bufferLimit: 24 * ROWS + 4096,
      onBufferFull: 'flush',
    });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3] });
    for (let turn = 0; turn < 3; turn++) writeRows(dataset, shuffled(ROWS, turn));
    expect(dataset.readSync()).toEqual(rows);
    file.flushSync();
    expect(file.pending.bytes).toBe(0);
    writeRows(dataset, shuffled(ROWS, 4));
    expect(file.pending.bytes).toBe(24 * ROWS);
    file.closeSync();
  });
});

test('elements of a plane are joined, although some are neighbours across its rows and are posted one after the other', async () => {
  for (const shape of [
    [60, 50],
    [3, 20, 50],
  ]) {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'int32', shape });
    const place = (i: number): number[] =>
      shape.length === 2 ? [Math.floor(i / 50), i % 50] : [Math.floor(i / 1000), Math.floor(i / 50) % 20, i % 50];
    const one = shape.map(() => 1);
    const post = (i: number): void => dataset.write(Int32Array.of(i + 1), { start: place(i), count: one });
    for (const i of shuffled(3000, 7)) post(i);
    for (const i of [1040, 1090, 1140, 7, 57]) post(i);
    file.flushSync();
    expect(dataset.readSync()).toEqual(Int32Array.from({ length: 3000 }, (_, i) => i + 1));
    file.closeSync();
    expect(await blocksOf(storage.bytes())).toBe(1);
  }
});

test('the copy takes little more than the data: there may be thousands of datasets', () => {
  const file = File.createSync(memoryStorage(), { publish: 'never' });
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [1500] });
  for (const i of shuffled(1500, 5)) dataset.write(Float64Array.of(i), { start: [i], count: [1] });
  const take = vi.spyOn(ArenaPool.prototype, 'take');
  file.flushSync();
  const taken = take.mock.calls.reduce((sum, [size]) => sum + size, 0);
  take.mockRestore();
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(32 * 1024);
  file.closeSync();
});

test('what is joined to many blocks is still written, and found, in few pieces', () => {
  const storage = memoryStorage();
  const write = storage.blocking?.write;
  let most = 0;
  if (storage.blocking && write)
    storage.blocking.write = (parts, offset) => {
      most = Math.max(most, parts.length);
      write(parts, offset);
    };
  const file = File.createSync(storage, { publish: 'never' });
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [31 * 500] });
  for (const i of shuffled(30 * 500, 6))
    dataset.write(Float64Array.of(i + 1), { start: [31 * Math.floor(i / 30) + (i % 30)], count: [1] });
  file.flushSync();
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(50);
  const expected = Float64Array.from({ length: 31 * 500 }, (_, i) => (i % 31 === 30 ? 0 : i - Math.floor(i / 31) + 1));
  expect(dataset.readSync()).toEqual(expected);
  file.closeSync();
});

const types: readonly DType[] = [
  'int8',
  'int16',
  'float64',
  T.string({ length: 5 }),
  T.compound({ a: 'int16', b: 'float64' }),
];

function valueFor(dtype: DType, i: number): unknown {
  if (dtype === 'int8') return (i % 251) - 125;
  if (dtype === 'int16') return i % 30_011;
  if (typeof dtype === 'string') return i / 2;
  return dtype.class === 'string' ? `${i}`.slice(-5) : { a: i % 1000, b: i };
}

test('posts of any order, size and type read the same before and after a flush', () => {
  const program = fc.record({
    shape: fc.constantFrom([9000], [120, 75], [1500, 6], [40, 12, 20], [1, 9000], [9000, 1], [3, 3000]),
    // How many of the last dimensions a block has whole, and how long it is in the one before.
    whole: fc.nat(2),
    along: fc.integer({ min: 1, max: 7 }),
    part: fc.constantFrom(1, 0.9, 0.6, 0.3),
    again: fc.constantFrom(0, 50, 3000),
    dtype: fc.constantFrom(...types),
    options: fc.constantFrom<CreateOptions>(
      { publish: 'never' },
      { publish: 'close' },
      { publish: 'flush' },
      { connector: 'native' },
    ),
    stored: fc.constantFrom({}, { chunks: true }, { chunks: true, filters: [{ deflate: 1 }] as const }),
    seed: fc.nat(),
  });
  const property = fc.property(program, ({ shape, whole, along, part, again, dtype, options, stored, seed }) => {
    const next = random(seed);
    const rank = shape.length;
    const first = Math.max(0, rank - 1 - whole);
    const inner = shape.slice(first + 1).reduce<number>((a, b) => a * b, 1);
    const size = shape.reduce<number>((a, b) => a * b, 1);
    const model: unknown[] = Array.from({ length: size }, () => undefined);
    const storage = memoryStorage();
    const file = File.createSync(storage, options);
    const { chunks, ...others } = { filters: [], chunks: false, ...stored };
    const grid = chunks ? { chunks: shape.map((n) => Math.max(1, Math.ceil(n / 3))) } : {};
    const dataset = file.createDataset('x', { dtype, shape, ...grid, ...others }) as unknown as Dataset;
    const places = size / inner;
    let counter = 0;
    const post = (place: number): void => {
      const start = new Array<number>(rank).fill(0);
      for (let d = first, rest = place; d >= 0; d--) {
        start[d] = rest % (shape[d] as number);
        rest = Math.floor(rest / (shape[d] as number));
      }
      const count = shape.map((n, d) => (d < first ? 1 : d > first ? n : Math.min(along, n - (start[d] as number))));
      const values = Array.from({ length: (count[first] as number) * inner }, () => valueFor(dtype, ++counter));
      for (const [i, value] of values.entries()) model[place * inner + i] = value;
      dataset.write(values as never, { start, count });
    };
    for (const place of shuffled(places, seed)) if (next() < part) post(place);
    for (let i = 0; i < again; i++) post(Math.floor(next() * places));
    const fill = dtype === 'int8' || dtype === 'int16' || dtype === 'float64' ? 0 : undefined;
    const empty = fill ?? ((dtype as { class: string }).class === 'string' ? '' : { a: 0, b: 0 });
    const expected = model.map((value) => value ?? empty);
    const read = (from: Dataset): unknown[] => [...(from.readSync() as Iterable<unknown>)];
    expect(read(dataset)).toEqual(expected);
    file.flushSync();
    expect(read(dataset)).toEqual(expected);
    post(0);
    const changed = model.map((value) => value ?? empty);
    expect(read(dataset)).toEqual(changed);
    file.closeSync();
    const bytes = storage.bytes();
    const reopened = File.openSync(bytes);
    expect(read(reopened.dataset('x'))).toEqual(changed);
    reopened.closeSync();
    if ('connector' in options) return;
    const earlier = File.openSync(bytes, { asOf: 1 });
    expect(read(earlier.dataset('x'))).toEqual(expected);
    earlier.closeSync();
  });
  fc.assert(property, runs('blocks that are joined', 300));
});
