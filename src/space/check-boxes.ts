import { Selected, type Where } from './select.ts';
import {
  type Coordinates,
  describe,
  isCoordinate,
  isList,
  notACoordinate,
  outside,
  type Slab,
  selectionError,
  wrongRank,
} from './shape.ts';

/** A slab that is one box. */
interface PlainBox extends Slab {
  start: Coordinates;
  count: Coordinates;
}

/** True for `{ start, count }` and nothing else: the form of nearly all writes. */
export function isPlainBox(where: Where | undefined): where is PlainBox {
  return (
    typeof where === 'object' &&
    where !== null &&
    !(where instanceof Selected) &&
    (where as Slab).start !== undefined &&
    (where as Slab).count !== undefined &&
    (where as Slab).stride === undefined &&
    (where as Slab).block === undefined &&
    hasOnlyParts(where)
  );
}

/** Compared name by name: a post must not pay for a set or a list of names. */
function hasOnlyParts(slab: object): boolean {
  for (const name in slab) {
    if (name !== 'start' && name !== 'count' && name !== 'stride' && name !== 'block') return false;
  }
  return true;
}

/**
 * Checks a box against the shape and writes it to `starts` and `counts` from index `at` on; returns its number of
 * elements. Allocates nothing. An empty box (returns 0) may lie anywhere.
 */
export function boxInto(
  box: PlainBox,
  shape: readonly number[],
  starts: Float64Array,
  counts: Float64Array,
  at: number,
): number {
  const { start, count } = box;
  // Two copies of one loop: V8 records types per source location, and a loop that has seen arrays and typed arrays is slow.
  if (!import.meta.page && Array.isArray(start) && Array.isArray(count))
    return arraysInto(start, count, shape, starts, counts, at);
  return listsInto(start, count, shape, starts, counts, at);
}

function arraysInto(
  start: readonly number[],
  count: readonly number[],
  shape: readonly number[],
  starts: Float64Array,
  counts: Float64Array,
  at: number,
): number {
  const rank = shape.length;
  if (start.length !== rank || count.length !== rank) return refuse(start, count, shape);
  let size = 1;
  for (let d = 0; d < rank; d++) {
    const from = start[d] as number;
    const n = count[d] as number;
    // Any comparison with NaN fails, so NaN is refused as well. Adding 0 turns -0 into 0.
    if (
      typeof from !== 'number' ||
      typeof n !== 'number' ||
      !(from >= 0 && n >= 0 && from + n <= (shape[d] as number)) ||
      Math.floor(from) !== from ||
      Math.floor(n) !== n
    ) {
      return refuse(start, count, shape);
    }
    starts[at + d] = from + 0;
    counts[at + d] = n + 0;
    size *= n;
  }
  return size + 0;
}

function listsInto(
  start: Coordinates,
  count: Coordinates,
  shape: readonly number[],
  starts: Float64Array,
  counts: Float64Array,
  at: number,
): number {
  const rank = shape.length;
  if (!isList(start) || !isList(count) || start.length !== rank || count.length !== rank)
    return refuse(start, count, shape);
  let size = 1;
  for (let d = 0; d < rank; d++) {
    const from = start[d] as number;
    const n = count[d] as number;
    if (
      typeof from !== 'number' ||
      typeof n !== 'number' ||
      !(from >= 0 && n >= 0 && from + n <= (shape[d] as number)) ||
      Math.floor(from) !== from ||
      Math.floor(n) !== n
    ) {
      return refuse(start, count, shape);
    }
    starts[at + d] = from + 0;
    counts[at + d] = n + 0;
    size *= n;
  }
  return size + 0;
}

/** Throws what is wrong with a box that the fast loops refused; returns 0 if it is right, but empty. */
function refuse(start: unknown, count: unknown, shape: readonly number[]): 0 {
  if (!isList(start)) throw selectionError(`start is a list of numbers, not ${String(start)}`);
  if (!isList(count)) throw selectionError(`count is a list of numbers, not ${String(count)}`);
  if (start.length !== shape.length) throw wrongRank('start', start.length, shape);
  if (count.length !== shape.length) throw wrongRank('count', count.length, shape);
  refuseBox(start, count, shape);
  return 0;
}

/** Throws what is wrong with a box; returns if it is right, or empty. `block` counts the boxes of a list. */
function refuseBox(start: ArrayLike<unknown>, count: ArrayLike<unknown>, shape: readonly number[], block = -1): void {
  const of = block < 0 ? '' : ` of block ${block},`;
  let wrong = -1;
  let empty = false;
  for (let d = 0; d < shape.length; d++) {
    const from = start[d];
    const n = count[d];
    if (!isCoordinate(from)) throw notACoordinate(start, d, `start${of}`);
    if (!isCoordinate(n)) throw notACoordinate(count, d, `count${of}`);
    if (n === 0) empty = true;
    if (wrong < 0 && from + n > (shape[d] as number)) wrong = d;
  }
  if (empty || wrong < 0) return;
  const from = start[wrong] as number;
  throw outside(wrong, from, from + (count[wrong] as number), shape, block);
}

/** Checked boxes of writeMany and readMany: how many there are without the empty ones, and their elements. */
interface Many {
  readonly length: number;
  readonly size: number;
}

/** The number of blocks in a flat list of starts; 1 for a scalar dataset, NaN if it is not a list. */
export function manyLength(starts: Coordinates, rank: number): number {
  return rank === 0 ? 1 : isList(starts) ? starts.length / rank : NaN;
}

/**
 * Checks the n blocks of writeMany or readMany and writes them to `outStarts` and `outCounts` from index `at` on, where there must
 * be room for all: `starts` has n * rank numbers, `counts` as many or, if all blocks are alike, rank numbers. They stay in the
 * caller's order and may overlap; empty ones are left out.
 */
export function manyInto(
  starts: Coordinates,
  counts: Coordinates,
  shape: readonly number[],
  outStarts: Float64Array,
  outCounts: Float64Array,
  at: number,
): Many {
  const rank = shape.length;
  if (!isList(starts) || !isList(counts)) throw selectionError('starts and counts are flat lists of numbers');
  const n = manyLength(starts, rank);
  const alike = counts.length === rank && n !== 1;
  if (!Number.isInteger(n) || (rank === 0 && starts.length > 0)) {
    throw selectionError(
      `${starts.length} starts are no whole blocks of ${rank} dimensions, the shape is ${describe(shape)}`,
    );
  }
  if (!alike && counts.length !== n * rank) {
    const wanted = n === 1 ? `${rank}` : `${rank} or ${n * rank}`;
    throw selectionError(`${n} blocks of ${rank} dimensions need ${wanted} counts, not ${counts.length}`);
  }
  // Copied first, so that the checking loop sees one kind of array only, whatever the caller's are.
  copyNumbers(starts, outStarts, at, 'starts');
  if (alike) return checkAlike(outStarts, at, n, counts, shape, outCounts);
  copyNumbers(counts, outCounts, at, 'counts');
  return checkEach(outStarts, outCounts, at, n, shape);
}

function checkEach(starts: Float64Array, counts: Float64Array, at: number, n: number, shape: readonly number[]): Many {
  const rank = shape.length;
  let total = 0;
  let to = at;
  for (let i = 0, k = at; i < n; i++, k += rank) {
    let size = 1;
    let right = true;
    for (let d = 0; d < rank; d++) {
      const from = starts[k + d] as number;
      const count = counts[k + d] as number;
      right &&= isWithin(from, count, shape[d] as number);
      size *= count;
      starts[to + d] = from;
      counts[to + d] = count;
    }
    // The block was moved down, over empty ones before it: it is complete at its new index.
    if (!right) {
      refuseBox(starts.subarray(to, to + rank), counts.subarray(to, to + rank), shape, i);
      continue;
    }
    if (size === 0) continue;
    total += size;
    to += rank;
  }
  return { length: rank === 0 ? n : (to - at) / rank, size: total };
}

function checkAlike(
  starts: Float64Array,
  at: number,
  n: number,
  counts: Coordinates,
  shape: readonly number[],
  outCounts: Float64Array,
): Many {
  const rank = shape.length;
  const count = new Float64Array(rank);
  copyNumbers(counts, count, 0, 'counts');
  let size = 1;
  for (let d = 0; d < rank; d++) {
    if (!isCoordinate(count[d])) throw notACoordinate(count, d, 'counts');
    size *= count[d] as number;
  }
  for (let i = 0, k = at; i < n; i++) {
    let right = true;
    for (let d = 0; d < rank; d++, k++) {
      right &&= isWithin(starts[k] as number, count[d] as number, shape[d] as number);
      outCounts[k] = count[d] as number;
    }
    if (!right) refuseBox(starts.subarray(k - rank, k), count, shape, i);
  }
  return size === 0 ? { length: 0, size: 0 } : { length: n, size: n * size };
}

function isWithin(from: number, count: number, size: number): boolean {
  return from >= 0 && count >= 0 && from + count <= size && Math.floor(from) === from && Math.floor(count) === count;
}

/** Typed arrays are copied at once; in other lists each item must be a number. */
function copyNumbers(list: Coordinates, target: Float64Array, at: number, name: string): void {
  if (ArrayBuffer.isView(list) && typeof list[0] === 'number') {
    target.set(list, at);
    return;
  }
  for (let i = 0; i < list.length; i++) {
    const value = list[i] as unknown;
    if (typeof value !== 'number') throw notACoordinate(list, i, name);
    target[at + i] = value + 0;
  }
}
