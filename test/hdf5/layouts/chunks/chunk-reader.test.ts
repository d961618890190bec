import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, type Filter } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { random, seed } from '../../../seed.ts';
import { temporaryDirectory } from '../../../temporary.ts';

const folder = temporaryDirectory();

/** An ordinary file with a dataset of numbers; `written` of them are written, from the start on, and a few at the end. */
function make(name: string, shape: readonly [number, number], chunks: readonly number[], filters?: readonly Filter[]) {
  const [rows, columns] = shape;
  const path = join(folder, name);
  const model = new Int32Array(rows * columns).fill(7);
  const file = File.createSync(path, { connector: 'native' });
  const dataset = file.createDataset('x', { dtype: 'int32', shape, chunks, fill: 7, ...(filters && { filters }) });
  const some = Math.ceil(rows * 0.7);
  const data = Int32Array.from({ length: some * columns }, (_, i) => i >> 3);
  model.set(data);
  dataset.write(data, { start: [0, 0], count: [some, columns] });
  file.closeSync();
  return { path, model, rows, columns };
}

function boxOf(model: Int32Array, columns: number, [row, column]: readonly number[], [high, wide]: readonly number[]) {
  const box = new Int32Array((high as number) * (wide as number));
  for (let r = 0; r < (high as number); r++) {
    const from = ((row as number) + r) * columns + (column as number);
    box.set(model.subarray(from, from + (wide as number)), r * (wide as number));
  }
  return box;
}

describe('chunks are read straight into place', () => {
  const { path, model, rows, columns } = make('rows.h5', [300, 1600], [64, 512]);
  const next = random(seed('boxes of chunks'));
  const below = (n: number): number => Math.floor(next() * n);
  const boxes = Array.from({ length: 40 }, () => {
    const start = [below(rows), below(columns)];
    return { start, count: [1 + below(rows - (start[0] as number)), 1 + below(columns - (start[1] as number))] };
  });

  test.each(['a path', 'memory'])('from %s: all of it, and boxes', async (from) => {
    const source = from === 'memory' ? memoryStorage(readFileSync(path)) : path;
    const file = await File.open(source);
    const x = file.dataset('x');
    expect(Buffer.compare(bytes(x.readSync()), bytes(model))).toBe(0);
    expect(Buffer.compare(bytes(await x.read()), bytes(model))).toBe(0);
    for (const box of boxes) {
      const expected = bytes(boxOf(model, columns, box.start, box.count));
      expect(Buffer.compare(bytes(x.readSync(box)), expected)).toBe(0);
      expect(Buffer.compare(bytes(await x.read(box)), expected)).toBe(0);
    }
    await file.close();
  });

  test('into an array of the caller, over what was in it', () => {
    const file = File.openSync(path);
    const into = new Int32Array(rows * columns).fill(-1);
    file.dataset('x').readSync(undefined, { into });
    expect(Buffer.compare(bytes(into), bytes(model))).toBe(0);
    file.closeSync();
  });

  test('those that lie together in the file in one request', () => {
    const file = File.openSync(path);
    const x = file.dataset('x');
    x.readSync({ start: [0, 0], count: [1, 1] });
    const before = file.storageStatistics().requests;
    // Two rows of three chunks; the fourth of each is cut by the edge.
    x.readSync({ start: [0, 0], count: [128, 1536] });
    expect(file.storageStatistics().requests - before).toBeLessThanOrEqual(3);
    file.closeSync();
  });
});

describe('rows of every length are put where they belong', () => {
  // Rows of 8 bytes to 16 KiB, whole chunks of 16 KiB to 4 MiB, and a few boxes of each.
  const chunks: [number, number][] = [
    [2048, 2],
    [300, 16],
    [64, 64],
    [512, 256],
    [256, 900],
    [2, 4096],
    [600, 1800],
  ];
  const filters: (Filter[] | undefined)[] = [
    undefined,
    ['shuffle'],
    ['shuffle', 'fletcher32'],
    ['shuffle', { deflate: 1 }],
  ];
  const next = random(seed('rows of chunks'));
  const below = (n: number): number => Math.floor(next() * n);
  test.each(chunks)('chunks of %d x %d', async (high, wide) => {
    for (const [i, list] of filters.entries()) {
      const { path, model, rows, columns } = make(`rows-${high}-${wide}-${i}.h5`, [2300, 4100], [high, wide], list);
      const file = File.openSync(path);
      const x = file.dataset('x');
      expect(Buffer.compare(bytes(x.readSync()), bytes(model))).toBe(0);
      expect(Buffer.compare(bytes(await x.read()), bytes(model))).toBe(0);
      for (let k = 0; k < 10; k++) {
        const start = [below(rows), below(columns)];
        const count = [1 + below(rows - (start[0] as number)), 1 + below(columns - (start[1] as number))];
        const expected = bytes(boxOf(model, columns, start, count));
        expect(Buffer.compare(bytes(x.readSync({ start, count })), expected)).toBe(0);
        if (k < 3) expect(Buffer.compare(bytes(await x.read({ start, count })), expected)).toBe(0);
      }
      file.closeSync();
    }
  });
});

test('more chunks than the cache holds are decoded into the same buffers', () => {
  const filters: Filter[][] = [['shuffle', { deflate: 1 }, 'fletcher32'], ['shuffle']];
  for (const [i, list] of filters.entries()) {
    const { path, model, columns } = make(`filtered-${i}.h5`, [3500, 4096], [256, 1024], list);
    const file = File.openSync(path);
    const x = file.dataset('x');
    expect(Buffer.compare(bytes(x.readSync()), bytes(model))).toBe(0);
    const box = { start: [100, 1000], count: [400, 50] };
    for (let again = 0; again < 2; again++)
      expect(Buffer.compare(bytes(x.readSync(box)), bytes(boxOf(model, columns, box.start, box.count)))).toBe(0);
    file.closeSync();
  }
});

test('a grid of more chunks than a round has, of which few are there', () => {
  const path = join(folder, 'grid.h5');
  const file = File.createSync(path, { connector: 'native' });
  const shape = [1100, 1100];
  const x = file.createDataset('x', { dtype: 'uint8', shape, chunks: [1, 1], fill: 9 });
  const model = new Uint8Array(1100 * 1100).fill(9);
  const next = random(seed('sparse grid'));
  for (let i = 0; i < 50; i++) {
    const at = Math.floor(next() * model.length);
    model[at] = i;
    x.write(Uint8Array.of(i), { start: [Math.floor(at / 1100), at % 1100], count: [1, 1] });
  }
  file.closeSync();
  const again = File.openSync(path);
  expect(Buffer.compare(bytes(again.dataset('x').readSync()), model)).toBe(0);
  again.closeSync();
});

function bytes(values: unknown): Uint8Array {
  const { buffer, byteOffset, byteLength } = values as Int32Array;
  return new Uint8Array(buffer, byteOffset, byteLength);
}
