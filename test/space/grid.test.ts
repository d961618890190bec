import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ChunkWalk, cellOf, gridOf, TouchedChunks } from '../../src/space/grid.ts';
import { runs } from '../seed.ts';

const extents = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 7 })), { minLength: 0, maxLength: 3 })
  .chain((dimensions) =>
    fc.record({
      shape: fc.constant(dimensions.map(([size]) => size)),
      chunk: fc.constant(dimensions.map(([, size]) => size)),
      // Boxes may be empty, and reach out of the shape.
      boxes: fc.array(
        fc.tuple(
          ...dimensions.map(([size]) =>
            fc.tuple(fc.integer({ min: 0, max: size + 2 }), fc.integer({ min: 0, max: 9 })),
          ),
        ),
        { maxLength: 6 },
      ),
    }),
  );

function listsOf(rank: number, boxes: readonly (readonly (readonly [number, number])[])[]) {
  const starts = Float64Array.from(boxes.flatMap((box) => box.map(([start]) => start)));
  const counts = Float64Array.from(boxes.flatMap((box) => box.map(([, size]) => size)));
  return { rank, length: boxes.length, starts, counts };
}

/** Numbers of the chunks that hold an element of a box, found by looking at every element. */
function expected(
  shape: readonly number[],
  chunk: readonly number[],
  box: readonly (readonly [number, number])[],
): number[] {
  const grid = gridOf(shape, chunk);
  const found = new Set<number>();
  const visit = (d: number, number: number): void => {
    if (d === shape.length) found.add(number);
    else
      for (let i = box[d]?.[0] ?? 0; i < Math.min(shape[d] as number, (box[d]?.[0] ?? 0) + (box[d]?.[1] ?? 0)); i++)
        visit(d + 1, number * (grid[d] as number) + Math.floor(i / (chunk[d] as number)));
  };
  visit(0, 0);
  return [...found].sort((a, b) => a - b);
}

test('a walk goes through the chunks that a box touches, in row-major order', () => {
  const property = fc.property(extents, ({ shape, chunk, boxes }) => {
    const rank = shape.length;
    const walk = new ChunkWalk(shape, chunk);
    const { starts, counts } = listsOf(rank, boxes);
    boxes.forEach((box, i) => {
      const found: number[] = [];
      for (let left = walk.begin(starts, counts, i * rank); left > 0; left--, walk.next()) {
        found.push(walk.number);
        expect([...walk.cell]).toEqual(cellOf(walk.number, gridOf(shape, chunk)));
      }
      expect(found).toEqual(expected(shape, chunk, box));
    });
  });
  fc.assert(property, runs('chunk walks', 2000));
});

test('touched chunks are those of all boxes, each once', () => {
  const property = fc.property(extents, ({ shape, chunk, boxes }) => {
    const touched = new TouchedChunks(shape, chunk);
    touched.add(listsOf(shape.length, boxes));
    const all = new Set(boxes.flatMap((box) => expected(shape, chunk, box)));
    expect([...touched.numbers()]).toEqual([...all].sort((a, b) => a - b));
  });
  fc.assert(property, runs('touched chunks', 1000));
});

test('touched chunks of a grid that is too large for a list of all are kept by number', () => {
  const touched = new TouchedChunks([1e6, 1e6], [10, 10]);
  touched.add({ rank: 2, length: 1, starts: Float64Array.of(999_985, 25), counts: Float64Array.of(20, 10) });
  expect([...touched.numbers()]).toEqual([99_998 * 1e5 + 2, 99_998 * 1e5 + 3, 99_999 * 1e5 + 2, 99_999 * 1e5 + 3]);
});
