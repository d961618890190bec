import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkChunkBytes, defaultChunks, ordinaryChunks } from '../../src/space/chunk-shape.ts';
import { runs } from '../seed.ts';

const chunks = (shape: number[], maxShape: (number | null)[], elementSize: number): number[] =>
  defaultChunks({ shape, maxShape, elementSize });
const product = (list: readonly number[]): number => list.reduce((a, b) => a * b, 1);

describe('chunks of a dataset that declares none', () => {
  test('follow the rule of docs/format.md', () => {
    expect(chunks([1000], [null], 8)).toEqual([1024]); // all there is
    expect(chunks([1e6], [null], 8)).toEqual([131_072]); // 1 MiB
    expect(chunks([0], [null], 8)).toEqual([512]); // 4 KiB
    expect(chunks([5, 3], [null, 3], 8)).toEqual([256, 3]);
    expect(chunks([100_000, 37], [null, 37], 8)).toEqual([2048, 37]);
    expect(chunks([1, 72, 866], [null, 72, 866], 8)).toEqual([1, 72, 866]); // one record
    expect(chunks([9, 72, 866], [null, 72, 866], 8)).toEqual([2, 72, 866]); // two records have 1 MiB
    expect(chunks([9, 720, 866], [null, 720, 866], 8)).toEqual([1, 144, 866]); // equal parts of a record
    expect(chunks([1000, 1000], [1000, 1000], 8)).toEqual([125, 1000]);
    expect(chunks([10, 20], [10, 20], 8)).toEqual([10, 20]);
    expect(chunks([1e4, 1e4], [null, null], 8)).toEqual([256, 512]);
    expect(chunks([10], [20], 2 ** 21)).toEqual([1]); // an element that is larger than any chunk
    expect(chunks([0, 4], [1e9, 4], 1)).toEqual([262_124, 4]); // 3815 equal parts
  });

  test('have at most 1 MiB, and from 64 KiB on unless the dataset has less', () => {
    const size = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 5000 }));
    const dimension = size.chain((n) => fc.tuple(fc.constant(n), fc.constantFrom(null, n)));
    const extent = fc.tuple(fc.array(dimension, { minLength: 1, maxLength: 4 }), fc.constantFrom(1, 2, 4, 8, 24, 1000));
    const property = fc.property(extent, ([dimensions, elementSize]) => {
      const shape = dimensions.map(([n]) => n);
      const maxShape = dimensions.map(([, most]) => most);
      const chunk = chunks(shape, maxShape, elementSize);
      const bytes = product(chunk) * elementSize;
      expect(bytes).toBeLessThanOrEqual(2 ** 20);
      expect(bytes).toBeGreaterThanOrEqual(Math.min(2 ** 16, product(shape) * elementSize));
      // Behind the dimension that is cut everything is whole.
      expect(chunk.every((n, d) => maxShape[d] === null || n <= (shape[d] as number))).toBe(true);
    });
    fc.assert(property, runs('default chunks', 2000));
  });

  test('nest when the dataset grows along its unlimited dimensions', () => {
    let before = chunks([1, 37], [null, 37], 8);
    for (let rows = 2; rows < 10_000; rows *= 3) {
      const now = chunks([rows, 37], [null, 37], 8);
      expect((now[0] as number) % (before[0] as number)).toBe(0);
      before = now;
    }
    expect(before).toEqual([2048, 37]);
  });
});

describe('the chunks of a dataset in ordinary HDF5', () => {
  const of = (shape: number[], maxShape: (number | null)[], declared: number[] | null, filtered = false) =>
    ordinaryChunks({ shape, maxShape, chunks: declared, elementSize: 4 }, filtered);

  test('are those that were declared, cut to the size of dimensions that cannot grow', () => {
    expect(of([10, 10], [10, null], [20, 20])).toEqual([10, 20]);
    expect(of([10], [10], [3])).toEqual([3]);
  });

  test('are default chunks for filters and for datasets that may grow; others are contiguous', () => {
    expect(of([10], [10], null)).toBeNull();
    expect(of([10], [10], null, true)).toEqual([10]);
    expect(of([10], [20], null)).toEqual([20]);
    expect(of([], [], [], true)).toBeNull();
    expect(of([0, 3], [0, 3], [1, 1], true)).toBeNull();
  });

  test('have a size of 32 bits', () => {
    checkChunkBytes([2 ** 30 - 1], 4);
    expect(() => checkChunkBytes([2 ** 30], 4)).toThrow(/of 4294967296 bytes; HDF5 has room for 4294967295/);
  });
});
