import {
  type Coordinates,
  isCoordinate,
  isList,
  notACoordinate,
  outside,
  type Slab,
  selectionError,
  wrongRank,
} from './coordinates.ts';
import { Selected, type Where } from './select.ts';

/** A slab that is one box. */
export interface PlainBox extends Slab {
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
    (where as Slab).block === undefined
  );
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
  // The same loop twice: V8 keeps what it saw per place in the source, and lists of both kinds in one place are slow.
  if (Array.isArray(start) && Array.isArray(count)) return arraysInto(start, count, shape, starts, counts, at);
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

/** Says what is wrong with a box; 0 if it is only empty. */
function refuse(start: unknown, count: unknown, shape: readonly number[]): 0 {
  if (!isList(start)) throw selectionError(`start is a list of numbers, not ${String(start)}`);
  if (!isList(count)) throw selectionError(`count is a list of numbers, not ${String(count)}`);
  if (start.length !== shape.length) throw wrongRank('start', start.length, shape);
  if (count.length !== shape.length) throw wrongRank('count', count.length, shape);
  refuseBox(start, count, shape);
  return 0;
}

/** Throws what is wrong with a box; returns if it is right, or empty. `block` counts the boxes of a list. */
export function refuseBox(
  start: ArrayLike<unknown>,
  count: ArrayLike<unknown>,
  shape: readonly number[],
  block = -1,
): void {
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
