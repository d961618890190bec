import fc from 'fast-check';
import real from 'ndarray';
import { assign as realAssign } from 'ndarray-ops';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/seed.ts';
import { colouring, draw, explain, find, planeOf, WHOLE, zoomed } from '../src/page/block-picture.ts';
import { packed } from '../src/page/colours.ts';
import ours, { assign } from '../src/page/ndarray.ts';
import { type SomeBlocks, thinned } from '../src/reader/log-facts.ts';

describe('views of arrays', () => {
  test('do what those of the package ndarray do, without compiling code', () => {
    const shapes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(shapes, fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }), fc.nat(1000), (shape, picks, turn) => {
        const data = Float64Array.from({ length: shape.reduce((product, n) => product * n, 1) }, (_, i) => i);
        const order = shape.map((_, d) => (d + turn) % shape.length);
        const index = shape.map((n, d) => ((picks[d] ?? 0) % 2 === 0 ? null : (picks[d] ?? 0) % n));
        // What h5web does: turn, pick, copy.
        const theirView = real(data, shape).transpose(...order);
        const ourView = ours(data, shape).transpose(...order);
        const at = order.map((d) => index[d] ?? null);
        const [theirs, mine] = [theirView.pick(...at), ourView.pick(...at)];
        expect([mine.shape, mine.size, mine.dimension, mine.dtype]).toEqual([
          [...(theirs.shape ?? [])],
          theirs.size,
          theirs.dimension,
          theirs.dtype,
        ]);
        const [a, b] = [
          real(new Float64Array(theirs.size), theirs.shape),
          ours(new Float64Array(mine.size), mine.shape),
        ];
        realAssign(a, theirs);
        assign(b, mine);
        expect(b.data).toEqual(a.data);
        const place = mine.shape.map((n) => turn % n);
        expect(mine.get(...place)).toBe(theirs.get(...place));
        for (const [x, y] of [
          [ourView.lo(1), theirView.lo(1)],
          [ourView.hi(1), theirView.hi(1)],
          [ourView.step(-1), theirView.step(-1)],
        ] as const) {
          expect([x.shape, x.stride, x.offset]).toEqual([[...y.shape], [...y.stride], y.offset]);
        }
      }),
      runs('views of arrays', 3000),
    );
  });
});

/** Blocks of a dataset of two dimensions: row, column, height, width, rank, flush. */
function blocksOf(shape: number[], ...list: [number, number, number, number, number, number][]): SomeBlocks {
  const numbers = (at: number): Int32Array => Int32Array.from(list, (block) => block[at] as number);
  return {
    dataset: '/x',
    shape,
    length: list.length,
    total: list.length,
    step: 1,
    starts: Float64Array.from(list.flatMap((block) => block.slice(0, 2))),
    counts: Float64Array.from(list.flatMap(([, , height, width]) => [height, width])),
    ranks: numbers(4),
    flushes: numbers(5),
    bytes: Float64Array.from(list, ([, , height, width]) => height * width * 8),
    visible: Float64Array.from(list, ([, , height, width]) => height * width),
  };
}

describe('the picture of blocks', () => {
  const width = 40;
  const height = 30;

  /** What the newest block at each pixel is, by looking at all of them. */
  function slowly(blocks: SomeBlocks): Uint32Array {
    const { pixels } = colouring(blocks, 'rank');
    const { boxes, length } = planeOf(blocks);
    const out = new Uint32Array(width * height).fill(packed([1, 2, 3]));
    for (let i = 0; i < length; i++) {
      const [x = 0, y = 0, w = 0, h = 0] = [...boxes.subarray(i * 4, i * 4 + 4)];
      const [left, top, across, down] = [x * width, y * height, w * width, h * height];
      const right = Math.max(Math.floor(left) + 1, Math.round(left + across - (across > 4 ? 1 : 0)));
      const bottom = Math.max(Math.floor(top) + 1, Math.round(top + down - (down > 4 ? 1 : 0)));
      for (let row = Math.floor(top); row < Math.min(height, bottom); row++)
        for (let column = Math.floor(left); column < Math.min(width, right); column++)
          out[row * width + column] = pixels[i] as number;
    }
    return out;
  }

  test('has the newest block at every pixel', () => {
    const block = fc.tuple(
      fc.nat(19),
      fc.nat(24),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 9 }),
      fc.nat(3),
      fc.nat(5),
    );
    fc.assert(
      fc.property(fc.array(block, { maxLength: 30 }), (list) => {
        const blocks = blocksOf([28, 33], ...list);
        const image = { width, height, data: new Uint8ClampedArray(width * height * 4) };
        draw(image, planeOf(blocks), WHOLE, colouring(blocks, 'rank'), [1, 2, 3]);
        expect(new Uint32Array(image.data.buffer)).toEqual(slowly(blocks));
      }),
      runs('pictures of blocks', 1000),
    );
  });

  test('finds and explains the newest block under a point, also enlarged', () => {
    const blocks = blocksOf([10, 10], [0, 0, 10, 10, 0, 1], [5, 5, 2, 3, 1, 2]);
    const plane = planeOf(blocks);
    expect(find(plane, WHOLE, { x: 0.6, y: 0.6 })).toBe(1);
    expect(find(plane, WHOLE, { x: 0.1, y: 0.6 })).toBe(0);
    const near = zoomed(WHOLE, 4, { x: 0.6, y: 0.6 });
    expect(find(plane, near, { x: 0.6, y: 0.6 })).toBe(1);
    expect(find(plane, near, { x: 0, y: 0 })).toBe(0);
    expect(explain(blocks, 1, [])).toBe('[5 to 6, 5 to 7]; 6 elements; 48 bytes; by rank 1; in commit 2; all visible');
    expect(zoomed(near, 0.01)).toEqual(WHOLE);
  });

  test('names ranks and commits, at most sixteen of them', () => {
    const many = blocksOf(
      [100, 1],
      ...Array.from({ length: 40 }, (_, i) => [i, 0, 1, 1, i, i] as [number, number, number, number, number, number]),
    );
    expect(colouring(many, 'rank').legend.at(-1)).toEqual(['and 24 ranks', 'transparent']);
    expect(colouring(many, 'age').legend.map(([name]) => name)).toEqual(['oldest: commit 0', 'newest: commit 39']);
    const unknown = blocksOf([2, 1], [0, 0, 1, 1, -1, -1], [1, 0, 1, 1, 0, 1]);
    expect(colouring(unknown, 'rank').legend).toEqual([
      ['unknown', 'rgb(138, 143, 152)'],
      ['rank 0', 'rgb(47, 127, 193)'],
    ]);
  });

  test('is thinned out evenly, and keeps the newest', () => {
    const all = blocksOf(
      [100, 1],
      ...Array.from({ length: 100 }, (_, i) => [i, 0, 1, 1, i, i] as [number, number, number, number, number, number]),
    );
    const some = thinned(all, 30);
    expect([some.length, some.total, some.step]).toEqual([25, 100, 4]);
    expect([...some.ranks]).toEqual(Array.from({ length: 25 }, (_, i) => 3 + 4 * i));
    expect([...some.starts]).toEqual([...some.ranks].flatMap((row) => [row, 0]));
    expect(thinned(all, 100).step).toBe(1);
  });
});
