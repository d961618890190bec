// Box arithmetic. A box is given by its start and count, or as [low, high) with an exclusive end. A box in a flat list is
// named by the index `k` of its first number, so that loops over many boxes allocate nothing.

import { sizeOf } from './shape.ts';

type Numbers = ArrayLike<number>;

/** n-d boxes in flat arrays: box i has its coordinates at `i * rank`. */
export interface Boxes {
  readonly rank: number;
  readonly length: number;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/** A box with lists of its own. */
export interface Box {
  readonly start: Float64Array;
  readonly count: Float64Array;
}

export function boxAt({ rank, starts, counts }: Boxes, i: number): Box {
  return { start: starts.slice(i * rank, (i + 1) * rank), count: counts.slice(i * rank, (i + 1) * rank) };
}

/** Copies some boxes of a flat list, given by their numbers. */
export function boxesAt({ rank, starts, counts }: Omit<Boxes, 'length'>, numbers: Uint32Array): Boxes {
  const some = {
    rank,
    length: numbers.length,
    starts: new Float64Array(numbers.length * rank),
    counts: new Float64Array(numbers.length * rank),
  };
  for (let i = 0; i < numbers.length; i++) {
    const from = (numbers[i] as number) * rank;
    some.starts.set(starts.subarray(from, from + rank), i * rank);
    some.counts.set(counts.subarray(from, from + rank), i * rank);
  }
  return some;
}

/** The exclusive end of a box. */
export function endOf(start: Float64Array, count: Numbers): Float64Array {
  const end = new Float64Array(start.length);
  for (let d = 0; d < end.length; d++) end[d] = (start[d] as number) + (count[d] as number);
  return end;
}

/** The count of the box [low, high). */
export function countOf(low: Float64Array, high: Float64Array): Float64Array {
  const count = new Float64Array(low.length);
  for (let d = 0; d < count.length; d++) count[d] = (high[d] as number) - (low[d] as number);
  return count;
}

/** The number of elements of a box in a flat list, or of bytes with the size of an element as `unit`. */
export function boxSize(counts: Float64Array, k: number, rank: number, unit = 1): number {
  let size = unit;
  for (let d = 0; d < rank; d++) size *= counts[k + d] as number;
  return size;
}

/** The number of elements of all boxes; one that is in several counts for each. */
export function totalSize({ rank, length, counts }: Boxes): number {
  let total = 0;
  for (let i = 0; i < length; i++) total += boxSize(counts, i * rank, rank);
  return total;
}

/** Whether a box of a flat list shares an element with the box [low, high). */
export function overlaps(
  starts: Float64Array,
  counts: Float64Array,
  k: number,
  rank: number,
  low: Float64Array,
  high: Float64Array,
): boolean {
  for (let d = 0; d < rank; d++) {
    const start = starts[k + d] as number;
    if (start >= (high[d] as number) || start + (counts[k + d] as number) <= (low[d] as number)) return false;
  }
  return true;
}

/** Whether a box of a flat list contains the box [low, high). */
export function covers(
  starts: Float64Array,
  counts: Float64Array,
  k: number,
  rank: number,
  low: Float64Array,
  high: Float64Array,
): boolean {
  for (let d = 0; d < rank; d++) {
    const start = starts[k + d] as number;
    if (start > (low[d] as number) || start + (counts[k + d] as number) < (high[d] as number)) return false;
  }
  return true;
}

/**
 * Clips a box of a flat list to the box [low, high) and writes what is left to `outStarts` and `outCounts` from index `to` on.
 * Returns its number of elements, 0 if nothing is left.
 */
export function clipInto(
  starts: Float64Array,
  counts: Float64Array,
  k: number,
  rank: number,
  low: Numbers,
  high: Numbers,
  outStarts: Float64Array,
  outCounts: Float64Array,
  to: number,
): number {
  let size = 1;
  for (let d = 0; d < rank; d++) {
    const start = starts[k + d] as number;
    const end = start + (counts[k + d] as number);
    const from = Math.max(start, low[d] as number);
    const count = Math.max(0, Math.min(end, high[d] as number) - from);
    outStarts[to + d] = from;
    outCounts[to + d] = count;
    size *= count;
  }
  return size;
}

/**
 * Writes the part that a box of a flat list shares with the box (start, count): where it begins in the one and in the other, and
 * its count. They must overlap.
 */
export function intersectInto(
  starts: Float64Array,
  counts: Float64Array,
  k: number,
  start: Float64Array,
  count: Float64Array,
  inListed: Float64Array,
  inBox: Float64Array,
  shared: Float64Array,
): void {
  for (let d = 0; d < start.length; d++) {
    const listed = starts[k + d] as number;
    const box = start[d] as number;
    const low = listed > box ? listed : box;
    const listedEnd = listed + (counts[k + d] as number);
    const boxEnd = box + (count[d] as number);
    inListed[d] = low - listed;
    inBox[d] = low - box;
    shared[d] = (listedEnd < boxEnd ? listedEnd : boxEnd) - low;
  }
}

/** Boxes cut out of other boxes; `from[i]` is the box that piece i is a part of. */
interface Pieces extends Boxes {
  readonly size: number;
  readonly from: Uint32Array;
}

/** Clips boxes to a smaller shape; those outside are left out. Every piece starts where its box does. */
export function clip(boxes: Boxes, shape: ArrayLike<number>): Pieces {
  const { rank } = boxes;
  const starts = new Float64Array(boxes.length * rank);
  const counts = new Float64Array(boxes.length * rank);
  const from = new Uint32Array(boxes.length);
  const origin = new Float64Array(rank);
  let length = 0;
  let total = 0;
  for (let i = 0; i < boxes.length; i++) {
    const size = clipInto(boxes.starts, boxes.counts, i * rank, rank, origin, shape, starts, counts, length * rank);
    if (size === 0) continue;
    from[length++] = i;
    total += size;
  }
  const end = length * rank;
  return {
    rank,
    length,
    size: total,
    starts: starts.slice(0, end),
    counts: counts.slice(0, end),
    from: from.slice(0, length),
  };
}

/** Divides a box of more than one element into (start, first) and (later, second), which follow one another in row-major order. */
export function halves(
  start: Float64Array,
  count: Float64Array,
): { first: Float64Array; later: Float64Array; second: Float64Array } {
  const d = count.findIndex((n) => n > 1);
  const half = Math.ceil((count[d] as number) / 2);
  const [first, later, second] = [count.slice(), start.slice(), count.slice()];
  first[d] = half;
  later[d] = (start[d] as number) + half;
  second[d] = (count[d] as number) - half;
  return { first, later, second };
}

/** The position of an element in the row-major order of an array of this shape. */
export function positionIn(shape: Numbers, at: Numbers): number {
  let position = 0;
  for (let d = 0; d < shape.length; d++) position = position * (shape[d] as number) + (at[d] as number);
  return position;
}

/** Whether a box of this count is contiguous in an array of this shape: one run of elements in row-major order. */
export function isContiguous(shape: Numbers, count: Numbers): boolean {
  let d = 0;
  while (d < shape.length && count[d] === 1) d++;
  for (d++; d < shape.length; d++) if (count[d] !== shape[d]) return false;
  return true;
}

/**
 * Moves `at` to the next position of the box [low, high) in row-major order, the first `rank` dimensions of it; false, and back at
 * the first position, after the last one.
 */
export function advance(at: Float64Array, low: Numbers, high: Numbers, rank: number): boolean {
  for (let d = rank - 1; d >= 0; d--) {
    const next = (at[d] as number) + 1;
    if (next < (high[d] as number)) {
      at[d] = next;
      return true;
    }
    at[d] = low[d] as number;
  }
  return false;
}

/** A box whose elements are neighbours in row-major order. */
export interface RowBox {
  readonly start: number[];
  readonly count: number[];
  /** Row-major number of its first element, and how many there are. */
  readonly from: number;
  readonly size: number;
}

/**
 * Cuts the elements [from, to) of an array, counted in row-major order, into boxes of at most `limit` elements: as few as
 * possible, in order. Rows, planes and so on stay whole as far as they fit.
 */
export function* rowBoxes(
  shape: readonly number[],
  from: number,
  to: number,
  limit = Infinity,
): Generator<RowBox, void, undefined> {
  const rank = shape.length;
  const inner: number[] = new Array(rank).fill(1);
  for (let d = rank - 2; d >= 0; d--) inner[d] = (inner[d + 1] as number) * (shape[d + 1] as number);
  for (let at = from; at < to; ) {
    const left = Math.max(1, Math.min(limit, to - at));
    // The outermost dimension that the box can grow along.
    let along = 0;
    while (along < rank - 1 && (at % (inner[along] as number) !== 0 || (inner[along] as number) > left)) along++;
    const start: number[] = [];
    for (let d = 0, rest = at; d < rank; d++) {
      start.push(Math.floor(rest / (inner[d] as number)));
      rest %= inner[d] as number;
    }
    const count = shape.map((size, d) => (d < along ? 1 : size));
    if (rank > 0) {
      const most = Math.floor(left / (inner[along] as number));
      count[along] = Math.min(most, (shape[along] as number) - (start[along] as number));
    }
    const size = sizeOf(count);
    yield { start, count, from: at, size };
    at += size;
  }
}
