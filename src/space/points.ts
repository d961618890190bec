import { BoxList, joinNeighbours } from './box-list.ts';
import { copyCoordinates, isCoordinate, isList, MAX_RANK, selectionError, sizeOf, stridesOf } from './shape.ts';
import { sortByKeys } from './sort.ts';

/** A list of points in the caller's order. */
export interface PointList {
  readonly rank: number;
  readonly length: number;
  readonly at: Float64Array;
}

/** Points as blocks, with the maps between the caller's list and the elements of the blocks; see `Blocks` in select.ts. */
interface SortedPoints {
  readonly boxes: BoxList;
  readonly itemOf: Float64Array | null;
  readonly elementOf: Float64Array | null;
}

/** Either a list of points, or a flat list with `rank` numbers for each. */
export function checkPoints(points: unknown, rank?: number): PointList {
  if (!isList(points)) throw selectionError(`points are a list, not ${String(points)}`);
  if (rank === undefined) return { length: points.length, ...flatten(points, 'point') };
  checkWhole(points, rank, 'points');
  const at = new Float64Array(points.length);
  copyCoordinates(points, at, 0, 'points');
  return { rank, length: at.length / rank, at };
}

/** Refuses a flat list that does not have `rank` numbers for each of its points, or corners of boxes. */
export function checkWhole(list: ArrayLike<unknown>, rank: number, name: string): void {
  if (!isCoordinate(rank) || rank < 1 || rank > MAX_RANK)
    throw selectionError(`the rank of a flat list of ${name} is 1 to ${MAX_RANK}, not ${String(rank)}`);
  if (list.length % rank !== 0)
    throw selectionError(`${list.length} numbers are no whole ${name} of ${rank} dimensions`);
}

/** A list of coordinate lists of the same length, made flat. Rank -1 if there are none. */
export function flatten(lists: ArrayLike<unknown>, name: string): { rank: number; at: Float64Array } {
  const first = lists[0];
  if (lists.length === 0) return { rank: -1, at: new Float64Array(0) };
  const rank = isList(first) ? first.length : 0;
  if (rank > MAX_RANK)
    throw selectionError(`${name} 0 has ${rank} numbers, more than the ${MAX_RANK} dimensions there can be`);
  const at = new Float64Array(lists.length * rank);
  for (let i = 0; i < lists.length; i++) {
    const list = lists[i];
    if (!isList(list)) throw selectionError(`${name} ${i} is a list of numbers, not ${String(list)}`);
    if (list.length !== rank) throw selectionError(`${name} ${i} has ${list.length} dimensions, ${name} 0 has ${rank}`);
    copyCoordinates(list, at, i * rank, name, i);
  }
  return { rank, at };
}

/** Puts points in row-major order and joins neighbours. */
export function sortPoints(points: PointList): SortedPoints {
  const { rank, length, at } = points;
  const sorted = isAscending(points) ? null : sortedIndices(points);
  const boxes = new BoxList(rank, 64);
  const itemOf = sorted && new Float64Array(length);
  const elementOf = sorted && new Float64Array(length);
  let elements = 0;
  let before = -1;
  for (let i = 0; i < length; i++) {
    const item = sorted ? (sorted[i] as number) : i;
    const step = before < 0 ? 1 : compare(at, rank, before, item);
    if (step !== 0) {
      // A point right behind the one before lengthens its run along the last dimension; joinNeighbours does the others.
      const last = boxes.length * rank - 1;
      if (step === NEXT && boxes.hi[last] === at[(item + 1) * rank - 1])
        boxes.hi[last] = (boxes.hi[last] as number) + 1;
      else pushPoint(boxes, at, item * rank);
      elements++;
    }
    // Equal points follow one another in list order, so the last one wins.
    if (itemOf) itemOf[elements - 1] = item;
    if (elementOf) elementOf[item] = elements - 1;
    before = item;
  }
  joinNeighbours(boxes);
  return { boxes, itemOf: itemOf?.slice(0, elements) ?? null, elementOf };
}

function pushPoint(boxes: BoxList, at: Float64Array, from: number): void {
  boxes.reserve(1);
  const { rank, lo, hi } = boxes;
  const to = boxes.length * rank;
  for (let d = 0; d < rank; d++) {
    const x = at[from + d] as number;
    lo[to + d] = x;
    hi[to + d] = x + 1;
  }
  boxes.length++;
}

const NEXT = -2;

/** Row-major comparison: 0 if equal, above 0 if a is after b, NEXT if they differ only in the last dimension. */
function compare(at: Float64Array, rank: number, a: number, b: number): number {
  for (let d = 0; d < rank; d++) {
    const difference = (at[a * rank + d] as number) - (at[b * rank + d] as number);
    if (difference !== 0) return difference > 0 ? 1 : d === rank - 1 ? NEXT : -1;
  }
  return 0;
}

function isAscending({ at, rank, length }: PointList): boolean {
  for (let i = 1; i < length; i++) if (compare(at, rank, i - 1, i) >= 0) return false;
  return true;
}

/** The list's indices in row-major order of the points, equal points in list order. */
function sortedIndices({ at, rank, length }: PointList): Uint32Array<ArrayBuffer> {
  const extent = new Float64Array(rank);
  for (let i = 0; i < at.length; i++) extent[i % rank] = Math.max(extent[i % rank] as number, (at[i] as number) + 1);
  const indices = new Uint32Array(length);
  for (let i = 0; i < length; i++) indices[i] = i;
  const size = sizeOf(extent);
  // Coordinates too large for any dataset still have an order, but no exact position in it.
  return import.meta.page || length < 2048 || size > Number.MAX_SAFE_INTEGER
    ? indices.sort((a, b) => compare(at, rank, a, b) || a - b)
    : byPosition(at, indices, extent);
}

/** Sorts points by their position in an array of that extent. */
function byPosition(
  at: Float64Array,
  indices: Uint32Array<ArrayBuffer>,
  extent: Float64Array,
): Uint32Array<ArrayBuffer> {
  const { length } = indices;
  const rank = extent.length;
  const strides = stridesOf(extent);
  // The position in row-major order, in two halves.
  const low = new Uint32Array(length);
  const high = new Uint32Array(length);
  for (let i = 0, k = 0; i < length; i++) {
    let key = 0;
    for (let d = 0; d < rank; d++, k++) key += (at[k] as number) * (strides[d] as number);
    high[i] = key / 2 ** 32;
    low[i] = key - (high[i] as number) * 2 ** 32;
  }
  const bits = Math.floor(Math.log2(sizeOf(extent))) + 1;
  const byLow = sortByKeys(low, indices, Math.min(bits, 32));
  return bits > 32 ? sortByKeys(high, byLow, bits - 32) : byLow;
}
