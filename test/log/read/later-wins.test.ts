import { type CreateOptions, type Dataset, File, type OpenOptions, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { handleOf } from '../../../src/api/handle.ts';
import { count } from '../../counts.ts';
import { random, repeats, seed } from '../../seed.ts';
import { below, chance } from '../model/types.ts';

// Reading gives the newest value of every element, however it was written and wherever the older ones are.

const tables: readonly NonNullable<CreateOptions['table']>[] = [true, false].flatMap((merge) =>
  [true, false].flatMap((encode) =>
    [true, false].flatMap((share) => [2, false].map((compress) => ({ merge, encode, share, compress }))),
  ),
);

type Reopened = (check: (file: File) => void) => void;

/** Runs a program with every combination of table options; `reopened` shows the file through an index and without. */
function everyTable(program: (file: File, reopened: Reopened) => void): void {
  for (const table of tables) {
    const storage = memoryStorage();
    const file = File.createSync(storage, { table });
    program(file, (check) => {
      check(file);
      file.flushSync();
      check(file);
      const options: OpenOptions[] = [{}, { indexLimit: 0 }, { asOf: file.sequence }];
      for (const option of options) {
        const reader = File.openSync(memoryStorage(storage.bytes()), option);
        check(reader);
        reader.closeSync();
      }
    });
    file.closeSync();
  }
}

const values = (dataset: Dataset<'int32'>): number[] => Array.from(dataset.readSync());
const line = (file: File, name = 'd', length = 8): Dataset<'int32'> =>
  file.createDataset(name, { dtype: 'int32', shape: [length] });

describe('later wins', () => {
  test('in one flush', () => {
    everyTable((file, reopened) => {
      const d = line(file);
      d.write([1, 1, 1, 1, 1, 1, 1, 1]);
      d.write([2, 2, 2, 2], { start: [2], count: [4] });
      d.write([3], { start: [3], count: [1] });
      d.write([4, 4], select.points([[7], [0]]));
      d.write([5, 6], select.points([[1], [1]]));
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([4, 6, 2, 3, 2, 2, 1, 4]));
    });
  });

  test('in one writeMany', () => {
    everyTable((file, reopened) => {
      const d = line(file);
      d.writeMany([1, 2, 3, 4, 5, 6, 7, 8], [0, 1, 2, 1], [2]);
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([1, 7, 8, 6, 0, 0, 0, 0]));
    });
  });

  test('across flushes, a small one over a large one and the other way round', () => {
    everyTable((file, reopened) => {
      const d = line(file);
      d.write([1, 1, 1, 1, 1, 1, 1, 1]);
      file.flushSync();
      d.write([2], { start: [4], count: [1] });
      file.flushSync();
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([1, 1, 1, 1, 2, 1, 1, 1]));
      d.write([3, 3, 3, 3, 3, 3], { start: [1], count: [6] });
      file.flushSync();
      d.write([4, 4], { start: [6], count: [2] });
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([1, 3, 3, 3, 3, 3, 4, 4]));
    });
  });

  test('through references: one selection for several datasets, several times', () => {
    everyTable((file, reopened) => {
      const shared = select.hyperslab({ start: [0], stride: [2], count: [4] });
      const all = ['a', 'b', 'c'].map((name) => line(file, name));
      for (let round = 1; round <= 3; round++) {
        all.forEach((d, k) => {
          d.write(new Int32Array(8).fill(round * 10 + k));
          d.write(
            [1, 2, 3, 4].map((v) => v + round * 100 + k * 1000),
            shared,
          );
        });
        if (round === 2) file.flushSync();
      }
      reopened((f) => {
        ['a', 'b', 'c'].forEach((name, k) => {
          const expected = [1, 2, 3, 4].flatMap((v) => [v + 300 + k * 1000, 30 + k]);
          expect(values(f.dataset(name, 'int32'))).toEqual(expected);
        });
      });
    });
  });

  test('through references after the dataset that held the selection was deleted', () => {
    everyTable((file, reopened) => {
      const shared = select.hyperslab({ start: [0], stride: [2], count: [4] });
      const [a, b] = [line(file, 'a'), line(file, 'b')];
      a.write([1, 2, 3, 4], shared);
      b.write([5, 6, 7, 8], shared);
      file.flushSync();
      file.delete('a');
      reopened((f) => expect(values(f.dataset('b', 'int32'))).toEqual([5, 0, 6, 0, 7, 0, 8, 0]));
      for (let i = 0; i < 40; i++) {
        b.write([i], { start: [1], count: [1] });
        file.flushSync();
      }
      reopened((f) => expect(values(f.dataset('b', 'int32'))).toEqual([5, 39, 6, 0, 7, 0, 8, 0]));
    });
  });

  test('in records, and over them', () => {
    everyTable((file, reopened) => {
      const d = file.createDataset('d', { dtype: 'int32', shape: [3, 4], maxShape: [null, 4] });
      const cells = (record: number) => select.hyperslab({ start: [record, 0], stride: [1, 2], count: [1, 2] });
      for (let record = 0; record < 3; record++) {
        d.write([1, 1, 1, 1], { start: [record, 0], count: [1, 4] });
        d.write([2, 2], cells(record));
        d.write([3], { start: [record, 1], count: [1, 1] });
      }
      d.write([4, 4, 4], { start: [0, 3], count: [3, 1] });
      d.write([5], { start: [1, 0], count: [1, 1] });
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([2, 3, 2, 4, 5, 3, 2, 4, 2, 3, 2, 4]));
      const e = file.createDataset('e', { dtype: 'int32', shape: [3], maxShape: [null] });
      for (let i = 1; i <= 4; i++) e.write([i], { start: [1], count: [1] });
      reopened((f) => expect(values(f.dataset('e', 'int32'))).toEqual([0, 4, 0]));
    });
  });

  test('in a scalar written again and again', () => {
    everyTable((file, reopened) => {
      const d = file.createDataset('d', { dtype: 'int32', shape: [] });
      for (let i = 1; i <= 5; i++) {
        d.write(i);
        d.write(i * 10);
        if (i % 2 === 0) file.flushSync();
      }
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([50]));
    });
  });

  test('in filtered data, cut at chunks', () => {
    everyTable((file, reopened) => {
      const d = file.createDataset('d', {
        dtype: 'int32',
        shape: [8],
        chunks: [3],
        filters: ['shuffle', { deflate: 6 }, 'fletcher32'],
      });
      d.write([1, 1, 1, 1, 1, 1, 1, 1]);
      d.write([2, 2, 2, 2], { start: [2], count: [4] });
      file.flushSync();
      d.write([3, 3], { start: [5], count: [2] });
      d.write([4], select.points([[6]]));
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([1, 1, 2, 2, 2, 3, 4, 1]));
    });
  });

  test('after a resize: what was cut off is fill, what is written afterwards counts', () => {
    everyTable((file, reopened) => {
      const d = file.createDataset('d', { dtype: 'int32', shape: [6], maxShape: [null], fill: -1 });
      d.write([1, 1, 1, 1, 1, 1]);
      file.flushSync();
      d.write([2], { start: [5], count: [1] });
      d.resize([3]);
      d.resize([6]);
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([1, 1, 1, -1, -1, -1]));
      d.write([3], { start: [4], count: [1] });
      reopened((f) => expect(values(f.dataset('d', 'int32'))).toEqual([1, 1, 1, -1, 3, -1]));
    });
  });
});

test('hundreds of flushes of overlapping blocks, with tables merged, closed and opened again', () => {
  const programs = repeats(200);
  const next = random(seed('later wins'));
  let flushes = 0;
  let merges = 0;
  for (let n = 0; n < programs; n++) {
    const storage = memoryStorage();
    let file = File.createSync(storage, { table: tables[n % tables.length] ?? {} });
    const shape = [1 + below(next, 6), 1 + below(next, 10)];
    const model = new Int32Array((shape[0] as number) * (shape[1] as number));
    file.createDataset('d', { dtype: 'int32', shape, maxShape: [null, null] });
    for (let i = 1, count = 100 + below(next, 250); i < count; i++) {
      const d = file.dataset('d', 'int32');
      for (let k = below(next, 3); k >= 0; k--) {
        const start = shape.map((size) => below(next, size));
        const size = shape.map((most, dim) => 1 + below(next, most - (start[dim] as number)));
        d.write(new Int32Array(size.reduce((a, b) => a * b, 1)).fill(i * 4 + k), { start, count: size });
        for (let y = 0; y < (size[0] as number); y++) {
          const from = ((start[0] as number) + y) * (shape[1] as number) + (start[1] as number);
          model.fill(i * 4 + k, from, from + (size[1] as number));
        }
      }
      file.flushSync();
      flushes++;
      merges++;
      if (chance(next, 0.02)) {
        file.closeSync();
        file = File.openSync(storage, { mode: 'r+', ...(chance(next, 0.5) && { indexLimit: 100 }) });
      }
      if (chance(next, 0.1)) expect(file.dataset('d', 'int32').readSync()).toEqual(model);
    }
    expect(file.dataset('d', 'int32').readSync()).toEqual(model);
    merges -= [...(handleOf(file).node.links.get('_LOG')?.node?.links.keys() ?? [])].filter((name) =>
      name.startsWith('_md_'),
    ).length;
    file.closeSync();
    for (const indexLimit of [Infinity, 0]) {
      const reader = File.openSync(storage, { indexLimit });
      expect(reader.dataset('d', 'int32').readSync()).toEqual(model);
    }
  }
  count('later wins', { programs, flushes, 'tables merged away': merges });
});
