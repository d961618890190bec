import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BoxList, isRowMajor } from '../../src/space/box-list.ts';
import { combine, subtractMany, union } from '../../src/space/sets.ts';
import type { SetOperation } from '../../src/space/sweep.ts';
import { runs } from '../seed.ts';
import { boxesIn, covered, shapes } from './model.ts';

/** Boxes of the kinds that hurt: small ones, tall and wide ones, nested and staggered ones. */
function boxes(n: number, shape: readonly number[], kind: string, seed: number): BoxList {
  const list = new BoxList(shape.length);
  let x = seed * 2 + 1;
  const random = (below: number) => {
    x = (x * 48271) % 2147483647;
    return x % below;
  };
  for (let i = 0; i < n; i++) {
    const long = kind === 'bars' ? random(shape.length) : -1;
    const lo = shape.map((size, d) =>
      kind === 'nested'
        ? Math.min(i, (size >> 1) - 1)
        : kind === 'staggered'
          ? i % size
          : d === long
            ? 0
            : random(size),
    );
    const hi = shape.map((size, d) => {
      if (kind === 'nested') return size - lo[d]!;
      if (kind === 'staggered') return Math.min(size, lo[d]! + (size >> 1));
      return d === long ? size : Math.min(size, lo[d]! + 1 + random(4));
    });
    list.push(lo, hi);
  }
  return list;
}

const RULES: Record<SetOperation, (a: boolean, b: boolean) => boolean> = {
  or: (a, b) => a || b,
  and: (a, b) => a && b,
  xor: (a, b) => a !== b,
  minus: (a, b) => a && !b,
};

describe('set operations on crowds of boxes', () => {
  const kinds = ['small', 'bars', 'nested', 'staggered'];

  test('give the elements they should, each once, in row-major order when asked', () => {
    fc.assert(
      fc.property(
        fc.constantFrom([400], [60, 60], [3, 40, 40], [12, 12, 12], [2, 3, 20, 20]),
        fc.constantFrom(...kinds),
        fc.constantFrom(...kinds),
        fc.constantFrom<SetOperation>('or', 'and', 'xor', 'minus'),
        fc.constantFrom(5, 70, 700),
        fc.nat(1000),
        (shape, kindA, kindB, operation, n, seed) => {
          const a = boxes(n, shape, kindA, seed);
          const b = boxes(n, shape, kindB, seed + 7);
          const inA = new Set(covered(a.toBoxes(), shape));
          const inB = new Set(covered(b.toBoxes(), shape));
          const wanted = [...new Set([...inA, ...inB])]
            .filter((p) => RULES[operation](inA.has(p), inB.has(p)))
            .sort((p, q) => p - q);
          const loose = combine(a, b, operation, false);
          // As text: comparing long arrays item by item is what would take most of the time here.
          expect(String(covered(loose.toBoxes(), shape).sort((p, q) => p - q))).toBe(String(wanted));
          const ordered = combine(a, b, operation, true);
          expect(String(covered(ordered.toBoxes(), shape))).toBe(String(wanted));
          expect(isRowMajor(ordered)).toBe(true);
        },
      ),
      runs('crowds of boxes', 1500),
    );
  });

  test.each(['small', 'nested', 'staggered'])(
    '100,000 %s boxes against 100,000 take no quadratic time',
    (kind) => {
      const shape = [300_000, 300_000];
      const a = boxes(100_000, shape, kind, 1);
      const b = boxes(100_000, shape, 'small', 2);
      const begin = performance.now();
      for (const operation of ['or', 'minus'] as const) combine(a, b, operation, kind === 'small');
      // About 2 s here; quadratic would be minutes.
      expect(performance.now() - begin).toBeLessThan(30_000);
    },
    60_000,
  );

  test('a union of nested boxes is the outermost', () => {
    const list = boxes(100_000, [300_000, 300_000], 'nested', 1);
    expect(union(list, true).toBoxes()).toMatchObject({ length: 1, counts: Float64Array.of(300_000, 300_000) });
  });
});

describe('boxes without others', () => {
  test('subtractMany leaves what no box covers, in disjoint pieces', () => {
    fc.assert(
      fc.property(
        shapes(4, 9).chain((shape) =>
          fc.record({
            shape: fc.constant(shape),
            whole: boxesIn(shape, 3),
            covers: fc.oneof(boxesIn(shape, 4), boxesIn(shape, 60)),
          }),
        ),
        ({ shape, whole, covers }) => {
          const hidden = new Set(covered(covers, shape));
          const before = [...covers.starts];
          for (let i = 0; i < whole.length; i++) {
            const at = i * shape.length;
            const one = { ...whole, length: 1, starts: whole.starts.subarray(at), counts: whole.counts.subarray(at) };
            const pieces = subtractMany(whole.starts, whole.counts, covers, at);
            const left = covered(one, shape).filter((x) => !hidden.has(x));
            expect(covered(pieces, shape).sort((a, b) => a - b)).toEqual(left);
          }
          expect([...covers.starts]).toEqual(before);
        },
      ),
      runs('boxes without others', 4000),
    );
    expect(
      subtractMany([0, 0], [4, 0], { rank: 2, length: 0, starts: new Float64Array(), counts: new Float64Array() })
        .length,
    ).toBe(0);
  });
});
