import { type Selection, type Slab, select, type Where } from 'h5log';
import { position, product, range } from '../../space/model.ts';
import { below, chance, pick, type Random } from './types.ts';

/** A selection and the coordinates it means, in the order of data. */
export interface Chosen {
  readonly where: Where | undefined;
  readonly at: readonly (readonly number[])[];
}

type Point = readonly number[];

/** Each element once, row-major. */
function asSet(points: readonly Point[], shape: readonly number[]): Point[] {
  const byPosition = new Map(points.map((at) => [position(at, shape), at]));
  return [...byPosition.keys()].sort((a, b) => a - b).map((key) => byPosition.get(key) as Point);
}

function randomBox(random: Random, shape: readonly number[]): { start: number[]; count: number[] } {
  const ends = shape.map((n) => [below(random, n + 1), below(random, n + 1)] as const);
  // Empty boxes are legal, and boring.
  const boring = chance(random, 0.1) ? 0 : 1;
  return {
    start: ends.map(([a, b], d) => Math.min(a, b, Math.max(0, (shape[d] as number) - boring))),
    count: ends.map(([a, b], d) => Math.max(Math.abs(a - b), Math.min(boring, shape[d] as number))),
  };
}

const inside = ({ start, count }: { start: readonly number[]; count: readonly number[] }): Point[] =>
  product(start.map((from, d) => range(from, count[d] as number)));

function randomSlab(random: Random, shape: readonly number[], open: boolean): Chosen {
  const has = [0, 1, 2, 3].map(() => !open || chance(random, 0.7));
  const start = shape.map((n) => (has[0] ? below(random, n + 1) : 0));
  const stride = shape.map(() => (has[1] ? 1 + below(random, 4) : 1));
  const block = shape.map(() => (has[2] ? below(random, 4) || 1 : 1));
  const most = shape.map((n, d) =>
    Math.max(0, Math.floor((n - (start[d] as number) - (block[d] as number)) / (stride[d] as number)) + 1),
  );
  const count = most.map((n) => (has[3] ? n - below(random, Math.max(1, n)) : n));
  const slab: Slab = {
    ...(has[0] && { start }),
    ...(has[1] && { stride }),
    ...(has[2] && { block }),
    ...(has[3] && { count }),
  };
  const lists = shape.map((_, d) =>
    range(0, count[d] as number).flatMap((k) =>
      range((start[d] as number) + k * (stride[d] as number), block[d] as number),
    ),
  );
  return { where: chance(random, 0.5) ? slab : select.hyperslab(slab), at: asSet(product(lists), shape) };
}

function randomPoints(random: Random, shape: readonly number[]): Chosen {
  if (shape.includes(0)) return { where: select.points([]), at: [] };
  const at = range(0, below(random, 12)).map(() => shape.map((n) => below(random, n)));
  if (shape.length > 0 && chance(random, 0.5))
    return { where: select.points(Int32Array.from(at.flat()), shape.length), at };
  return { where: select.points(at), at };
}

function randomBlocks(random: Random, shape: readonly number[]): Chosen {
  const list = range(0, 1 + below(random, 5)).map(() => randomBox(random, shape));
  const where = select.blocks(
    list.map((box) => box.start),
    list.map((box) => box.count),
  );
  return { where, at: asSet(list.flatMap(inside), shape) };
}

function combined(random: Random, shape: readonly number[], fixed: boolean): Chosen {
  const a = randomWhere(random, shape, fixed);
  const b = randomWhere(random, shape, fixed);
  const operation = pick(random, ['or', 'and', 'xor', 'minus'] as const);
  const key = (at: Point): number => position(at, shape);
  const left = new Set(a.at.map(key));
  const right = new Set(b.at.map(key));
  const keep = {
    or: () => true,
    and: (at: Point) => left.has(key(at)) && right.has(key(at)),
    xor: (at: Point) => left.has(key(at)) !== right.has(key(at)),
    minus: (at: Point) => left.has(key(at)) && !right.has(key(at)),
  }[operation];
  const first = toSelection(a.where);
  return { where: first[operation](b.where ?? select.all()), at: asSet([...a.at, ...b.at], shape).filter(keep) };
}

const toSelection = (where: Where | undefined): Selection =>
  where === undefined ? select.all() : 'or' in where ? where : select.hyperslab(where);

/** One of few patterns in one record, so that the same comes again in other records and other datasets. */
function recordCells(random: Random, shape: readonly number[]): Chosen {
  const stride = shape.map((_, d) => (d === 0 ? 1 : 1 + below(random, 2)));
  const start = shape.map((n, d) => (d === 0 ? below(random, n) : 0));
  const count = shape.map((n, d) => (d === 0 ? 1 : Math.ceil(n / (stride[d] as number))));
  const lists = shape.map((_, d) =>
    range(0, count[d] as number).map((k) => (start[d] as number) + k * (stride[d] as number)),
  );
  return { where: select.hyperslab({ start, stride, count }), at: asSet(product(lists), shape) };
}

/** Any kind of selection within a shape. `fixed`: one that means the same in larger shapes. */
export function randomWhere(random: Random, shape: readonly number[], fixed = false): Chosen {
  if (shape.length > 0 && !shape.includes(0) && chance(random, 0.12)) return recordCells(random, shape);
  const kind = random();
  if (kind < 0.35) {
    const box = randomBox(random, shape);
    const typed = { start: Float64Array.from(box.start), count: Int32Array.from(box.count) };
    const where = chance(random, 0.6) ? box : chance(random, 0.5) ? typed : select.box(box.start, box.count);
    return { where, at: inside(box) };
  }
  if (kind < 0.5) return randomSlab(random, shape, !fixed);
  if (kind < 0.65) return randomPoints(random, shape);
  if (kind < 0.75) return randomBlocks(random, shape);
  if (kind < 0.87) return combined(random, shape, fixed);
  if (kind < 0.9) return { where: select.none(), at: [] };
  if (fixed)
    return {
      where: select.box(
        shape.map(() => 0),
        shape,
      ),
      at: inside({ start: shape.map(() => 0), count: shape }),
    };
  const where = chance(random, 0.5) ? undefined : select.all();
  return { where, at: inside({ start: shape.map(() => 0), count: shape }) };
}

/** Where `count` elements lie in an array in memory: its shape, the selection, and the place of each element. */
export interface InMemory {
  readonly shape: number[];
  readonly where: Where | undefined;
  readonly places: readonly number[];
}

export function randomMemory(random: Random, count: number): InMemory {
  const kind = random();
  const width = 1 + below(random, 3);
  const first = below(random, width);
  if (kind < 0.25) {
    return { shape: [count + width], where: { start: [first], count: [count] }, places: range(first, count) };
  }
  if (kind < 0.5) {
    const where = { start: [0, first], count: [count, 1] };
    return { shape: [count, width], where, places: range(0, count).map((i) => i * width + first) };
  }
  if (kind < 0.6) return { shape: [count], where: undefined, places: range(0, count) };
  if (kind < 0.8) {
    const where = select.hyperslab({ start: [first], stride: [width], count: [count] });
    return { shape: [first + count * width], where, places: range(0, count).map((i) => first + i * width) };
  }
  const size = count + width;
  const places = range(0, count).map(() => below(random, size));
  return { shape: [size], where: select.points(places, 1), places };
}

/** Blocks for writeMany and readMany: flat starts and counts, and the coordinates in order. */
export function randomMany(
  random: Random,
  shape: readonly number[],
): { starts: number[]; counts: number[]; at: Point[] } {
  const alike = chance(random, 0.4);
  const n = shape.length === 0 ? 1 : 1 + below(random, 6);
  const first = randomBox(random, shape);
  const boxes = range(0, n).map(() => {
    if (!alike) return randomBox(random, shape);
    const start = shape.map((size, d) => below(random, size - (first.count[d] as number) + 1));
    return { start, count: first.count };
  });
  const counts = alike ? first.count : boxes.flatMap((box) => box.count);
  return { starts: boxes.flatMap((box) => box.start), counts, at: boxes.flatMap(inside) };
}
