// What a mapping of a virtual dataset pairs: element i of one selection, counted in its order, with element i of another.

import { formatError, H5LogError } from '../../base/errors.ts';
import type { StoredSelection } from '../../hdf5/messages/selection.ts';
import { boxSize, overlaps, rowBoxes } from '../../space/box.ts';
import { BoxList } from '../../space/box-list.ts';
import { union } from '../../space/sets.ts';
import { sizeOf } from '../../space/shape.ts';
import { NumberList, PackedTree } from './rtree.ts';

/** Along each dimension `count` coordinates, in ranges of `block` that begin every `step`; the last range may be shorter. */
interface Grid {
  readonly start: Float64Array;
  readonly step: Float64Array;
  readonly block: Float64Array;
  readonly count: Float64Array;
}

/** The slab of a selection with an unlimited dimension. */
export type Unlimited = Extract<StoredSelection, { kind: 'slab' }>;

/** How many coordinates of the unlimited dimension lie within an extent. */
export function slicesWithin({ slab, unlimited: d }: Unlimited, extent: number): number {
  const room = extent - (slab.start[d] as number);
  if (room <= 0) return 0;
  const [step, block] = [slab.step[d] as number, slab.block[d] as number];
  if (block === Infinity || block === step) return room;
  return Math.floor(room / step) * block + Math.min(room % step, block);
}

/** The extent that ends with the last of so many coordinates; 0 without any. */
export function extentOf({ slab, unlimited: d }: Unlimited, slices: number): number {
  if (slices === 0) return 0;
  const [start, step, block] = [slab.start[d] as number, slab.step[d] as number, slab.block[d] as number];
  if (block === Infinity || block === step) return start + slices;
  return start + Math.floor((slices - 1) / block) * step + ((slices - 1) % block) + 1;
}

/** An unlimited selection that ends after so many coordinates. */
export function gridOfSlices({ slab, unlimited: d }: Unlimited, slices: number): Grid {
  const { start } = slab;
  const count = slab.count.map((times, k) => (k === d ? slices : times * (slab.block[k] as number)));
  const [step, block] = [slab.step.slice(), slab.block.slice()];
  if (block[d] === Infinity || block[d] === step[d]) step[d] = block[d] = slices;
  return { start, step, block, count };
}

/** Block number j of the unlimited dimension. */
export function gridOfBlock({ slab, unlimited: d }: Unlimited, j: number): Grid {
  const start = slab.start.slice();
  start[d] = (start[d] as number) + j * (slab.step[d] as number);
  const count = slab.count.map((times, k) => (k === d ? 1 : times) * (slab.block[k] as number));
  return { start, step: slab.step, block: slab.block, count };
}

/** The elements of a selection in their order. */
export type Ordered = Grid | OrderedBoxes;

/** A selection without an unlimited dimension, in an array of this shape. */
export function orderedIn(selection: StoredSelection, shape: readonly number[]): Ordered {
  switch (selection.kind) {
    case 'none':
      return new OrderedBoxes(new BoxList(shape.length, 0));
    case 'all': {
      const size = Float64Array.from(shape);
      return { start: new Float64Array(shape.length), step: size, block: size, count: size };
    }
    case 'slab': {
      const { start, step, block, count } = selection.slab;
      return { start, step, block, count: count.map((times, d) => times * (block[d] as number)) };
    }
    case 'boxes': {
      const { boxes } = selection;
      let rows = 0;
      for (let i = 0; i < boxes.length; i++) {
        let size = 1;
        for (let d = 0, k = i * boxes.rank; d < boxes.rank - 1; d++, k++)
          size *= (boxes.hi[k] as number) - (boxes.lo[k] as number);
        rows += size;
      }
      mustBeFew(rows);
      return new OrderedBoxes(union(boxes, true));
    }
    case 'points': {
      const { at, rank, length } = selection.points;
      const boxes = new BoxList(rank, length);
      boxes.lo.set(at);
      boxes.hi.set(at.map((x) => x + 1));
      boxes.length = length;
      return new OrderedBoxes(boxes);
    }
  }
}

/** Pieces of a selection that are kept in memory. */
const MOST_PIECES = 2 ** 22;

function mustBeFew(pieces: number): void {
  if (pieces > MOST_PIECES)
    throw new H5LogError('UNSUPPORTED', `a mapping of a virtual dataset falls apart into ${pieces} pieces`);
}

/** Up to this many boxes looking at each is cheaper than a tree. */
const FEW = 16;

/** Boxes whose elements, one box after the other, are those of a selection in its order. */
class OrderedBoxes {
  readonly boxes: BoxList;
  /** Number of elements before each box. */
  readonly before: Float64Array;
  readonly size: number;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
  #tree: PackedTree | null = null;

  constructor(boxes: BoxList) {
    this.boxes = boxes;
    const { rank, length, starts, counts } = boxes.toBoxes();
    this.starts = starts;
    this.counts = counts;
    this.before = new Float64Array(length);
    let size = 0;
    for (let i = 0; i < length; i++) {
      this.before[i] = size;
      size += boxSize(counts, i * rank, rank);
    }
    this.size = size;
  }

  /** Numbers of the boxes that share an element with [low, high). */
  touching(low: Float64Array, high: Float64Array): Uint32Array {
    const { starts, counts, boxes } = this;
    const found = new NumberList();
    if (boxes.length > FEW) {
      this.#tree ??= new PackedTree({ rank: boxes.rank, starts, counts }, 0, boxes.length);
      this.#tree.query(low, high, found);
    } else {
      for (let i = 0; i < boxes.length; i++)
        if (overlaps(starts, counts, i * boxes.rank, boxes.rank, low, high)) found.push(i);
    }
    return found.sorted();
  }

  /** Adds the boxes of elements [from, to) to a list. */
  range(from: number, to: number, list: BoxList): void {
    const { before, boxes, counts } = this;
    const { rank, lo } = boxes;
    let low = 0;
    for (let high = boxes.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if ((before[middle] as number) <= from) low = middle;
      else high = middle;
    }
    for (let i = low; from < to; i++) {
      const first = before[i] as number;
      const end = Math.min(to, first + boxSize(counts, i * rank, rank));
      const shape = [...counts.subarray(i * rank, (i + 1) * rank)];
      for (const { start, count } of rowBoxes(shape, from - first, end - first)) {
        const corner = start.map((x, d) => x + (lo[i * rank + d] as number));
        list.push(
          corner,
          corner.map((x, d) => x + (count[d] as number)),
        );
      }
      from = end;
    }
  }
}

/** The boxes of a grid, in row-major order: single rows in every dimension before the last one with several ranges. */
function boxesOf(grid: Grid): OrderedBoxes {
  const { start, step, block, count } = grid;
  const rank = start.length;
  let divided = rank - 1;
  while (divided >= 0 && (count[divided] as number) <= (block[divided] as number)) divided--;
  const parts = count.map((n, d) => (d < divided ? n : Math.ceil(n / (block[d] as number))));
  const length = sizeOf(parts);
  mustBeFew(length * Math.max(1, rank));
  const list = new BoxList(rank, length);
  const at = new Float64Array(rank);
  for (let i = 0, k = 0; i < length; i++) {
    for (let d = 0; d < rank; d++, k++) {
      const width = block[d] as number;
      const index = d < divided ? (at[d] as number) : (at[d] as number) * width;
      const low = (start[d] as number) + Math.floor(index / width) * (step[d] as number) + (index % width);
      list.lo[k] = low;
      list.hi[k] = low + (d < divided ? 1 : Math.min(width, (count[d] as number) - index));
    }
    for (let d = rank - 1; d >= 0; d--) {
      at[d] = (at[d] as number) + 1;
      if ((at[d] as number) < (parts[d] as number)) break;
      at[d] = 0;
    }
  }
  list.length = length;
  return new OrderedBoxes(list);
}

const isGrid = (ordered: Ordered): ordered is Grid => 'step' in ordered;

export function lengthOf(ordered: Ordered): number {
  return isGrid(ordered) ? sizeOf(ordered.count) : ordered.size;
}

/** The box around all elements as [low, high); null if there are none. */
export function boundsOf(ordered: Ordered): { low: Float64Array; high: Float64Array } | null {
  if (lengthOf(ordered) === 0) return null;
  if (!isGrid(ordered)) {
    const { lo, hi } = ordered.boxes.bounds();
    return { low: lo, high: hi };
  }
  const { start, count } = ordered;
  return { low: start, high: start.map((_, d) => coordinate(ordered, d, (count[d] as number) - 1) + 1) };
}

function coordinate({ start, step, block }: Grid, d: number, index: number): number {
  const width = block[d] as number;
  return (start[d] as number) + Math.floor(index / width) * (step[d] as number) + (index % width);
}

/** How many coordinates of a dimension are below `limit`. */
function below({ start, step, block, count }: Grid, d: number, limit: number): number {
  const room = limit - (start[d] as number);
  if (room <= 0) return 0;
  const ranges = Math.floor(room / (step[d] as number));
  const rest = room - ranges * (step[d] as number);
  return Math.min(count[d] as number, ranges * (block[d] as number) + Math.min(rest, block[d] as number));
}

/** Boxes of both sides of a mapping: the elements of the one list, in order, are those of the other. */
interface Pairs {
  readonly targets: BoxList;
  readonly sources: BoxList;
}

/** A part of a mapping between grids. */
interface Window {
  /** The box of the source, [lo, hi). */
  readonly lo: Float64Array;
  readonly hi: Float64Array;
  /** For each dimension of the target the one of the source, or -1. */
  readonly along: readonly number[];
  readonly targets: readonly Float64Array[];
  readonly sources: readonly Float64Array[];
}

/** Two selections of as many elements. */
export class Mapped {
  readonly size: number;
  readonly #target: Ordered;
  readonly #source: Ordered;
  /** For each dimension of the target the one of the source that it goes along with, or -1; null if they go separate ways. */
  readonly #along: readonly number[] | null;
  #boxes: { readonly target: OrderedBoxes; readonly source: OrderedBoxes } | null = null;

  constructor(target: Ordered, source: Ordered) {
    this.size = lengthOf(target);
    if (lengthOf(source) !== this.size)
      throw formatError(`a mapping of ${lengthOf(source)} elements of the source to ${this.size}`);
    this.#target = target;
    this.#source = source;
    this.#along = isGrid(target) && isGrid(source) ? together(target, source) : null;
  }

  /** Whether both are boxes, as most are. */
  get isBox(): boolean {
    return this.#along !== null && isBox(this.#target) && isBox(this.#source);
  }

  /** How many elements the box around those of the source has for each of them; Infinity where they do not go along dimensions. */
  get spread(): number {
    const source = this.#source;
    if (!this.#along || !isGrid(source)) return Infinity;
    let spread = 1;
    source.count.forEach((n, d) => {
      if (n > (source.block[d] as number)) spread *= (source.step[d] as number) / (source.block[d] as number);
    });
    return spread;
  }

  /**
   * What the target has in the box [low, high), where both sides are grids: the box of the source around it and, for each dimension of
   * the target, the coordinates on both sides. null if it has nothing there.
   */
  window(low: Float64Array, high: Float64Array): Window | null {
    const [target, source, along] = [this.#target, this.#source, this.#along];
    if (this.size === 0 || !along || !isGrid(target) || !isGrid(source)) return null;
    const box = { lo: source.start.slice(), hi: source.start.map((x) => x + 1) };
    const [targets, sources]: [Float64Array[], Float64Array[]] = [[], []];
    for (const [d, s] of along.entries()) {
      const from = below(target, d, low[d] as number);
      const to = below(target, d, high[d] as number);
      if (from >= to) return null;
      targets.push(Float64Array.from({ length: to - from }, (_, i) => coordinate(target, d, from + i)));
      const at = Float64Array.from({ length: to - from }, (_, i) => (s < 0 ? 0 : coordinate(source, s, from + i)));
      sources.push(at);
      if (s < 0) continue;
      box.lo[s] = at[0] as number;
      box.hi[s] = (at[at.length - 1] as number) + 1;
    }
    return { ...box, along, targets, sources };
  }

  /** Adds what the target has in the box [low, high). Returns the number of elements. */
  collect(low: Float64Array, high: Float64Array, pairs: Pairs): number {
    if (this.size === 0) return 0;
    const [target, source] = [this.#target, this.#source];
    if (this.#along && isGrid(target) && isGrid(source))
      return alongDimensions(target, source, this.#along, low, high, pairs);
    this.#boxes ??= {
      target: isGrid(target) ? boxesOf(target) : target,
      source: isGrid(source) ? boxesOf(source) : source,
    };
    return inOrder(this.#boxes.target, this.#boxes.source, low, high, pairs);
  }
}

function isBox(ordered: Ordered): boolean {
  return isGrid(ordered) && ordered.count.every((n, d) => n <= (ordered.block[d] as number));
}

/** Dimensions of several coordinates must be as many on both sides, and of the same lengths. */
function together(target: Grid, source: Grid): number[] | null {
  const along: number[] = [];
  let s = 0;
  for (let d = 0; d < target.count.length; d++) {
    const n = target.count[d] as number;
    while (n !== 1 && s < source.count.length && source.count[s] === 1) s++;
    if (n !== 1 && source.count[s] !== n) return null;
    along.push(n === 1 ? -1 : s++);
  }
  while (source.count[s] === 1) s++;
  return s === source.count.length ? along : null;
}

function alongDimensions(
  target: Grid,
  source: Grid,
  along: readonly number[],
  low: Float64Array,
  high: Float64Array,
  { targets, sources }: Pairs,
): number {
  const rank = along.length;
  // Along each dimension the pieces that are one range on both sides: index and length.
  const pieces: Float64Array[] = [];
  let total = 1;
  for (let d = 0; d < rank; d++) {
    const from = below(target, d, low[d] as number);
    const to = below(target, d, high[d] as number);
    if (from >= to) return 0;
    const s = along[d] as number;
    pieces.push(cut(from, to, target.block[d] as number, s < 0 ? Infinity : (source.block[s] as number)));
    total *= to - from;
  }
  const at = new Float64Array(rank);
  const [lo, hi] = [new Float64Array(rank), new Float64Array(rank)];
  const [from, end] = [source.start.slice(), source.start.map((x) => x + 1)];
  for (;;) {
    for (let d = 0; d < rank; d++) {
      const index = pieces[d]?.[2 * (at[d] as number)] as number;
      const length = pieces[d]?.[2 * (at[d] as number) + 1] as number;
      lo[d] = coordinate(target, d, index);
      hi[d] = (lo[d] as number) + length;
      const s = along[d] as number;
      if (s < 0) continue;
      from[s] = coordinate(source, s, index);
      end[s] = (from[s] as number) + length;
    }
    targets.push(lo, hi);
    sources.push(from, end);
    let d = rank - 1;
    for (; d >= 0; d--) {
      at[d] = (at[d] as number) + 1;
      if (2 * (at[d] as number) < (pieces[d] as Float64Array).length) break;
      at[d] = 0;
    }
    if (d < 0) return total;
  }
}

/** Cuts [from, to) at the multiples of both sizes. */
function cut(from: number, to: number, one: number, other: number): Float64Array {
  const pieces: number[] = [];
  for (let at = from; at < to; ) {
    const end = Math.min(to, (Math.floor(at / one) + 1) * one, (Math.floor(at / other) + 1) * other);
    pieces.push(at, end - at);
    at = end;
  }
  return Float64Array.from(pieces);
}

function inOrder(
  target: OrderedBoxes,
  source: OrderedBoxes,
  low: Float64Array,
  high: Float64Array,
  { targets, sources }: Pairs,
): number {
  const { rank } = target.boxes;
  let [total, from, to] = [0, 0, 0];
  for (const i of target.touching(low, high)) {
    const k = i * rank;
    const whole = target.counts.subarray(k, k + rank);
    const start = target.starts.subarray(k, k + rank);
    const lo = start.map((x, d) => Math.max(x, low[d] as number));
    const hi = start.map((x, d) => Math.min(x + (whole[d] as number), high[d] as number));
    // Runs of elements that follow one another in the order of the target.
    let inner = rank - 1;
    while (inner > 0 && (hi[inner] as number) - (lo[inner] as number) === whole[inner]) inner--;
    const at = lo.slice();
    for (;;) {
      let first = 0;
      for (let d = 0; d < rank; d++) first = first * (whole[d] as number) + (at[d] as number) - (start[d] as number);
      first += target.before[i] as number;
      const end = at.map((x, d) => (d < inner ? x + 1 : (hi[d] as number)));
      let length = 1;
      for (let d = inner; d < rank; d++) length *= (end[d] as number) - (at[d] as number);
      targets.push(at, end);
      total += length;
      if (first !== to) {
        source.range(from, to, sources);
        from = first;
      }
      to = first + length;
      let d = inner - 1;
      for (; d >= 0; d--) {
        at[d] = (at[d] as number) + 1;
        if ((at[d] as number) < (hi[d] as number)) break;
        at[d] = lo[d] as number;
      }
      if (d < 0) break;
    }
  }
  source.range(from, to, sources);
  return total;
}
