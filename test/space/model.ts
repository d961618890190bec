import fc from 'fast-check';
import { type Selection, select, type Where } from '../../src/space/select.ts';
import type { Slab } from '../../src/space/shape.ts';

/** A selection and what it means, as positions in the row-major order: in list order for points, else ascending. */
export interface Modelled {
  readonly where: Where;
  readonly positions: readonly number[];
}

export const shapes = (maxRank = 5, maxSize = 6): fc.Arbitrary<number[]> =>
  fc.oneof(
    { weight: 9, arbitrary: fc.array(fc.integer({ min: 1, max: maxSize }), { maxLength: maxRank }) },
    { weight: 1, arbitrary: fc.array(fc.integer({ min: 0, max: maxSize }), { maxLength: maxRank }) },
    {
      weight: 1,
      arbitrary: fc
        .array(fc.constantFrom<number>(1, 1, 1, 1, 1, 1, 2), { minLength: 20, maxLength: 32 })
        .filter((s) => s.reduce((a, b) => a * b, 1) <= 1024),
    },
  );

export function position(at: ArrayLike<number>, shape: readonly number[]): number {
  let flat = 0;
  for (let d = 0; d < shape.length; d++) flat = flat * (shape[d] as number) + (at[d] as number);
  return flat;
}

/** Every combination of one number from each list, row-major. */
export function product(lists: readonly (readonly number[])[]): number[][] {
  return lists.reduce<number[][]>((done, list) => done.flatMap((head) => list.map((x) => [...head, x])), [[]]);
}

export function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

const ascending = (positions: Iterable<number>): number[] => [...new Set(positions)].sort((a, b) => a - b);

function boxes(shape: readonly number[]): fc.Arbitrary<{ start: number[]; count: number[] }> {
  return fc.tuple(...shape.map((n) => fc.tuple(fc.nat(n), fc.nat(n)))).map((pairs) => ({
    start: pairs.map(([a, b]) => Math.min(a, b)),
    count: pairs.map(([a, b]) => Math.abs(a - b)),
  }));
}

/** Boxes in flat lists, anywhere in the shape; some are empty. */
export const boxesIn = (shape: readonly number[], max: number) =>
  fc
    .array(fc.tuple(...shape.map((n) => fc.tuple(fc.nat(n), fc.nat(n)))), { maxLength: max, size: 'max' })
    .map((list) => ({
      rank: shape.length,
      length: list.length,
      starts: Float64Array.from(list.flatMap((box) => box.map(([a, b]) => Math.min(a, b)))),
      counts: Float64Array.from(list.flatMap((box) => box.map(([a, b]) => Math.abs(a - b)))),
    }));

/** Slabs inside the shape, some with missing parts, some with blocks that touch or overlap. */
export function slabs(shape: readonly number[]): fc.Arbitrary<Modelled> {
  const dimension = (n: number) =>
    fc.record({
      start: fc.nat(n),
      stride: fc.integer({ min: 1, max: 4 }),
      block: fc.integer({ min: 0, max: 3 }),
      share: fc.nat(100),
    });
  return fc
    .tuple(
      fc.tuple(...shape.map(dimension)),
      fc.record({ start: fc.boolean(), count: fc.boolean(), stride: fc.boolean(), block: fc.boolean() }),
    )
    .map(([dims, has]) => {
      const start = dims.map((x) => (has.start ? x.start : 0));
      const stride = dims.map((x) => (has.stride ? x.stride : 1));
      const block = dims.map((x) => (has.block ? x.block : 1));
      const most = shape.map((n, d) => Math.max(0, Math.floor((n - start[d]! - block[d]!) / stride[d]!) + 1));
      const count = most.map((n, d) => (has.count ? Math.round((n * dims[d]!.share) / 100) : n));
      const slab: Slab = {
        ...(has.start && { start }),
        ...(has.count && { count }),
        ...(has.stride && { stride }),
        ...(has.block && { block }),
      };
      const lists = shape.map((_, d) =>
        range(0, count[d]!).flatMap((k) => range(start[d]! + k * stride[d]!, block[d]!)),
      );
      return { where: slab, positions: ascending(product(lists).map((at) => position(at, shape))) };
    });
}

export function lists(shape: readonly number[]): fc.Arbitrary<Modelled> {
  return fc.array(boxes(shape), { maxLength: 8 }).map((list) => ({
    where: select.blocks(
      list.map((b) => b.start),
      list.map((b) => b.count),
    ),
    positions: ascending(
      list.flatMap((b) => product(b.start.map((s, d) => range(s, b.count[d]!))).map((at) => position(at, shape))),
    ),
  }));
}

export function pointLists(shape: readonly number[]): fc.Arbitrary<Modelled> {
  if (shape.includes(0)) return fc.constant({ where: select.points([]), positions: [] });
  return fc
    .tuple(fc.array(fc.tuple(...shape.map((n) => fc.nat(n - 1))), { maxLength: 20 }), fc.boolean())
    .map(([points, flat]) => ({
      where:
        flat && shape.length > 0 ? select.points(Int32Array.from(points.flat()), shape.length) : select.points(points),
      positions: points.map((at) => position(at, shape)),
    }));
}

export function leaves(shape: readonly number[]): fc.Arbitrary<Modelled> {
  const size = shape.reduce((a, b) => a * b, 1);
  return fc.oneof(
    slabs(shape),
    slabs(shape).map((m) => ({ ...m, where: select.hyperslab(m.where as Slab) })),
    boxes(shape).map(({ start, count }) => ({
      where: select.box(start, count),
      positions: product(start.map((s, d) => range(s, count[d]!))).map((at) => position(at, shape)),
    })),
    lists(shape),
    pointLists(shape),
    fc.constant({ where: select.all(), positions: range(0, size) }),
    fc.constant({ where: select.none(), positions: [] }),
  );
}

type Operation = 'or' | 'and' | 'xor' | 'minus';

export function applied(operation: Operation, a: Modelled, b: Modelled): Modelled {
  const left = new Set(a.positions);
  const right = new Set(b.positions);
  const whole = ascending([...left, ...right]);
  const keep = {
    or: () => true,
    and: (x: number) => left.has(x) && right.has(x),
    xor: (x: number) => left.has(x) !== right.has(x),
    minus: (x: number) => left.has(x) && !right.has(x),
  }[operation];
  const first = 'or' in a.where ? (a.where as Selection) : select.hyperslab(a.where as Slab);
  return { where: first[operation](b.where), positions: whole.filter(keep) };
}

/** Trees of set operations over leaves of every kind. */
export function trees(shape: readonly number[]): fc.Arbitrary<Modelled> {
  const { tree } = fc.letrec<{ tree: Modelled }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaves(shape),
      fc
        .tuple(fc.constantFrom<Operation>('or', 'and', 'xor', 'minus'), tie('tree'), tie('tree'))
        .map(([op, a, b]) => applied(op, a, b)),
    ),
  }));
  return tree;
}

/** The positions that blocks cover, in the order of their data. */
export function covered(
  blocks: { rank: number; length: number; starts: Float64Array; counts: Float64Array },
  shape: readonly number[],
): number[] {
  return range(0, blocks.length).flatMap((i) => {
    const lists = shape.map((_, d) => range(blocks.starts[i * blocks.rank + d]!, blocks.counts[i * blocks.rank + d]!));
    return product(lists).map((at) => position(at, shape));
  });
}
