import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advance,
  boxAt,
  boxesAt,
  boxSize,
  clip,
  clipInto,
  countOf,
  covers,
  endOf,
  halves,
  intersectInto,
  isContiguous,
  overlaps,
  positionIn,
  totalSize,
} from '../../src/space/box.ts';
import { sizeOf } from '../../src/space/shape.ts';
import { runs } from '../seed.ts';
import { boxesIn, covered, shapes } from './model.ts';

/** Boxes of a shape, and the elements of each by their row-major positions. */
const withElements = shapes(4).chain((shape) =>
  boxesIn(shape, 6).map((boxes) => ({
    shape,
    boxes,
    elements: Array.from({ length: boxes.length }, (_, i) => covered(one(boxes, i), shape)),
  })),
);

function one(boxes: Parameters<typeof boxAt>[0], i: number) {
  const { start, count } = boxAt(boxes, i);
  return { rank: boxes.rank, length: 1, starts: start, counts: count };
}

describe('boxes in flat lists', () => {
  test('have as many elements as they cover, one by one and all together', () => {
    fc.assert(
      fc.property(withElements, ({ boxes, elements }) => {
        for (let i = 0; i < boxes.length; i++) {
          expect(boxSize(boxes.counts, i * boxes.rank, boxes.rank)).toBe(elements[i]!.length);
          expect(boxSize(boxes.counts, i * boxes.rank, boxes.rank, 8)).toBe(elements[i]!.length * 8);
        }
        expect(totalSize(boxes)).toBe(elements.flat().length);
      }),
      runs('sizes of boxes', 500),
    );
  });

  test('are compared, clipped and intersected as the sets of their elements', () => {
    fc.assert(
      fc.property(withElements, ({ shape, boxes, elements }) => {
        const { rank, starts, counts } = boxes;
        for (let i = 0; i < boxes.length; i++) {
          const { start, count } = boxAt(boxes, i);
          const end = endOf(start, count);
          expect(countOf(start, end)).toEqual(count);
          for (let k = 0; k < boxes.length; k++) {
            const both = elements[k]!.filter((x) => elements[i]!.includes(x));
            const [outStarts, outCounts] = [new Float64Array(rank + 1), new Float64Array(rank + 1)];
            expect(clipInto(starts, counts, k * rank, rank, start, end, outStarts, outCounts, 1)).toBe(both.length);
            const clipped = { rank, length: 1, starts: outStarts.subarray(1), counts: outCounts.subarray(1) };
            expect(covered(clipped, shape)).toEqual(both);
            if (elements[i]!.length === 0 || elements[k]!.length === 0) continue;
            expect(overlaps(starts, counts, k * rank, rank, start, end)).toBe(both.length > 0);
            expect(covers(starts, counts, k * rank, rank, start, end)).toBe(both.length === elements[i]!.length);
            if (both.length === 0) continue;
            const [inListed, inBox, shared] = [1, 2, 3].map(() => new Float64Array(rank)) as [
              Float64Array,
              Float64Array,
              Float64Array,
            ];
            intersectInto(starts, counts, k * rank, start, count, inListed, inBox, shared);
            expect(shared).toEqual(clipped.counts);
            expect(inBox.map((x, d) => x + start[d]!)).toEqual(clipped.starts);
            expect(inListed.map((x, d) => x + starts[k * rank + d]!)).toEqual(clipped.starts);
          }
        }
      }),
      runs('pairs of boxes', 500),
    );
  });

  test('are copied by their numbers', () => {
    const boxes = {
      rank: 2,
      length: 3,
      starts: Float64Array.of(0, 1, 2, 3, 4, 5),
      counts: Float64Array.of(1, 1, 2, 2, 3, 3),
    };
    expect(boxesAt(boxes, Uint32Array.of(2, 0))).toEqual({
      rank: 2,
      length: 2,
      starts: Float64Array.of(4, 5, 0, 1),
      counts: Float64Array.of(3, 3, 1, 1),
    });
    expect(boxesAt(boxes, new Uint32Array(0)).length).toBe(0);
  });

  test('clip leaves what is inside the smaller shape', () => {
    fc.assert(
      fc.property(
        shapes(4).chain((shape) =>
          fc.record({
            shape: fc.constant(shape),
            boxes: boxesIn(shape, 6),
            cut: fc.array(fc.nat(6), { minLength: 32, maxLength: 32 }),
          }),
        ),
        ({ shape, boxes, cut }) => {
          const smaller = shape.map((n, d) => Math.max(0, n - cut[d]!));
          const inside = (flat: number) => {
            let rest = flat;
            return [...shape.keys()].reverse().every((d) => {
              const x = rest % shape[d]!;
              rest = (rest - x) / shape[d]!;
              return x < smaller[d]!;
            });
          };
          const pieces = clip(boxes, smaller);
          expect(covered(pieces, shape)).toEqual(covered(boxes, shape).filter(inside));
          expect(pieces.size).toBe(covered(pieces, shape).length);
          for (let i = 0; i < pieces.length; i++) {
            const of = pieces.from[i]! * shape.length;
            expect(pieces.starts.slice(i * shape.length, (i + 1) * shape.length)).toEqual(
              boxes.starts.slice(of, of + shape.length),
            );
          }
        },
      ),
      runs('boxes inside a shape', 1000),
    );
  });
});

describe('a box', () => {
  test('is walked through in row-major order, and is contiguous if its positions are', () => {
    fc.assert(
      fc.property(withElements, ({ shape, boxes, elements }) => {
        for (let i = 0; i < boxes.length; i++) {
          if (elements[i]!.length === 0) continue;
          const { start, count } = boxAt(boxes, i);
          const end = endOf(start, count);
          const at = start.slice();
          const walked: number[] = [];
          do walked.push(positionIn(shape, at));
          while (advance(at, start, end, shape.length));
          expect(walked).toEqual(elements[i]);
          expect(at).toEqual(start);
          const isRun = walked.every((x, n) => x === walked[0]! + n);
          // Dimensions of size 1 may hide that a box is a run: it is never called one without being one.
          if (isContiguous(shape, count)) expect(isRun).toBe(true);
          else if (shape.every((n) => n > 1)) expect(isRun).toBe(false);
        }
      }),
      runs('walks through boxes', 500),
    );
  });

  test('falls into two halves that follow one another', () => {
    fc.assert(
      fc.property(withElements, ({ shape, boxes, elements }) => {
        for (let i = 0; i < boxes.length; i++) {
          const { start, count } = boxAt(boxes, i);
          if (sizeOf(count) < 2) continue;
          const { first, later, second } = halves(start, count);
          const inside = (starts: Float64Array, counts: Float64Array) =>
            covered({ rank: shape.length, length: 1, starts, counts }, shape);
          expect([...inside(start, first), ...inside(later, second)]).toEqual(elements[i]);
          expect(Math.min(sizeOf(first), sizeOf(second))).toBeGreaterThan(0);
        }
      }),
      runs('halves of boxes', 300),
    );
  });
});
