import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boxInto, isPlainBox, manyInto } from '../../src/space/check-boxes.ts';
import { select, type Where } from '../../src/space/select.ts';
import { runs } from '../seed.ts';
import { boxesIn, covered, shapes } from './model.ts';

const anyNumber = fc.oneof(
  { weight: 20, arbitrary: fc.nat(6) },
  fc.constantFrom(-1, 0.5, NaN, Infinity, -0, 2 ** 53, 2 ** 60),
);
/** Number of elements, or null if the box is refused. */
function model(start: readonly number[], count: readonly number[], shape: readonly number[]): number | null {
  if (start.length !== shape.length || count.length !== shape.length) return null;
  if (![...start, ...count].every((x) => Number.isSafeInteger(x) && x >= 0)) return null;
  if (count.includes(0)) return 0;
  return start.every((s, d) => s + count[d]! <= shape[d]!) ? count.reduce((a, b) => a * b, 1) : null;
}

describe('one box', () => {
  const room = () => [new Float64Array(12), new Float64Array(12)] as const;

  test('is checked and written where it is wanted, from arrays and typed arrays', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(9), { maxLength: 5 }),
        fc.array(anyNumber, { maxLength: 5 }),
        fc.array(anyNumber, { maxLength: 5 }),
        fc.boolean(),
        (shape, start, count, fit) => {
          const cut = (list: number[]) => (fit ? shape.map((_, d) => list[d] ?? 0) : list);
          const wanted = model(cut(start), cut(count), shape);
          for (const of of [(x: number[]) => x, (x: number[]) => Float64Array.from(x)]) {
            const [starts, counts] = room();
            const box = { start: of(cut(start)), count: of(cut(count)) };
            if (wanted === null) {
              expect(() => boxInto(box, shape, starts, counts, 3)).toThrow(
                expect.objectContaining({ code: 'SELECTION' }),
              );
              continue;
            }
            expect(boxInto(box, shape, starts, counts, 3)).toBe(wanted);
            if (wanted === 0) continue;
            expect([...starts.subarray(3, 3 + shape.length)]).toEqual(cut(start).map((x) => x + 0));
            expect([...counts.subarray(3, 3 + shape.length)]).toEqual(cut(count).map((x) => x + 0));
          }
        },
      ),
      runs('one box', 10_000),
    );
  });

  test('a wrong one is refused with the dimension, the range and the shape', () => {
    const into = (start: unknown, count: unknown) => () => boxInto({ start, count } as never, [4, 5], ...room(), 0);
    expect(into([0, 3], [1, 3])).toThrow(/dimension 1: .* 3 to 5, .* 0 to 4; the shape is \[4, 5\]/);
    expect(into(['0', 0], [1, 1])).toThrow(/dimension 0 of start \[0, 0\] is string 0/);
    expect(into([0n, 0], [1, 1])).toThrow(/bigint/);
    expect(into(new BigInt64Array(2), [1, 1])).toThrow(/bigint/);
    expect(into(0, [1, 1])).toThrow(/start is a list/);
    expect(into([0, 0], null)).toThrow(/count is a list/);
    expect(into([0], [1])).toThrow(/start has 1 dimensions/);
  });

  test('is told from other selections', () => {
    const box = { start: [0], count: [1] };
    expect(isPlainBox(box)).toBe(true);
    const others: (Where | undefined | null)[] = [
      undefined,
      null,
      {},
      { start: [0] },
      { count: [0] },
      { ...box, stride: [1] },
      { ...box, block: [1] },
    ];
    for (const where of [...others, select.all(), select.box([0], [1])]) expect(isPlainBox(where as Where)).toBe(false);
  });
});

describe('many boxes', () => {
  const into = (starts: ArrayLike<number>, counts: ArrayLike<number>, shape: readonly number[], at = 0) => {
    const outStarts = new Float64Array(at + starts.length);
    const outCounts = new Float64Array(at + starts.length);
    const { length, size } = manyInto(starts, counts, shape, outStarts, outCounts, at);
    const end = at + length * shape.length;
    return { rank: shape.length, length, size, starts: outStarts.slice(at, end), counts: outCounts.slice(at, end) };
  };

  test('keep their order; empty ones are left out', () => {
    fc.assert(
      fc.property(
        shapes(4)
          .filter((s) => s.length > 0)
          .chain((shape) => fc.record({ shape: fc.constant(shape), boxes: boxesIn(shape, 8) })),
        fc.constantFrom('array', 'float64', 'int32'),
        fc.nat(5),
        ({ shape, boxes }, kind, at) => {
          const of = (list: Float64Array) =>
            kind === 'array' ? [...list] : kind === 'int32' ? Int32Array.from(list) : list;
          const all = covered(boxes, shape);
          const found = into(of(boxes.starts), of(boxes.counts), shape, at);
          expect(covered(found, shape)).toEqual(all);
          expect(found.size).toBe(all.length);
          expect(found.counts.includes(0)).toBe(false);
        },
      ),
      runs('many boxes', 1000),
    );
  });

  test('of one size need one count', () => {
    expect(into([3, 0, 0, 1], [1, 2], [4, 3])).toMatchObject({
      length: 2,
      size: 4,
      counts: Float64Array.of(1, 2, 1, 2),
    });
    expect(into([3, 0, 0, 1], [0, 2], [4, 3])).toMatchObject({ length: 0, size: 0 });
    expect(into([], [9, 9], [4, 3])).toMatchObject({ length: 0, size: 0 });
    expect(into([], [], [4, 3])).toMatchObject({ length: 0, size: 0 });
    expect(into([], [], [])).toMatchObject({ length: 1, size: 1 });
  });

  test('a wrong one is named', () => {
    const code = { code: 'SELECTION' };
    expect(() => into([0, 0, 3, 2], [1, 1, 1, 2], [4, 3])).toThrow(/dimension 1: block 1 covers 2 to 3/);
    expect(() => into([0, 0, 3, 2], [1, 2], [4, 3])).toThrow(/dimension 1: block 1 covers 2 to 3/);
    for (const bad of [NaN, -1, 0.5, '1', 1n, undefined, 2 ** 60]) {
      for (const other of [0, 1]) {
        expect(() => into([0, bad as number, 0, 0], [1, other], [4, 3])).toThrow(expect.objectContaining(code));
        expect(() => into([0, 0, 0, 0], [other, bad as number], [4, 3])).toThrow(expect.objectContaining(code));
        expect(() => into([0, 0, 0, 0], [1, 1, other, bad as number], [4, 3])).toThrow(expect.objectContaining(code));
      }
    }
    expect(() => into([0, 0, 0], [1, 1], [4, 3])).toThrow(expect.objectContaining(code));
    expect(() => into([0, 0, 0, 0], [1, 1, 1], [4, 3])).toThrow(/2 or 4 counts, not 3/);
    expect(() => into(new BigInt64Array(2) as unknown as number[], [1, 1], [4, 3])).toThrow(/bigint/);
    expect(() => into([0], [1], [])).toThrow(expect.objectContaining(code));
  });
});
