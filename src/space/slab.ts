import { BoxList, tooMany } from './box-list.ts';
import { checkCoordinates, describe, outside, type Slab, selectionError, sizeOf, wrongRank } from './shape.ts';

/** A slab whose numbers were looked at. Rank -1: nothing in it tells. */
export interface CheckedSlab {
  readonly rank: number;
  readonly start: Float64Array | null;
  readonly count: Float64Array | null;
  readonly stride: Float64Array | null;
  readonly block: Float64Array | null;
}

/** The product of equally spaced ranges, one set of them per dimension: `count` ranges of `block`, `step` apart. */
export interface Grid {
  readonly rank: number;
  readonly start: Float64Array;
  readonly count: Float64Array;
  readonly step: Float64Array;
  readonly block: Float64Array;
}

const PARTS = ['start', 'count', 'stride', 'block'] as const;

/** Copies the slab, so that the caller may change it afterwards. */
export function checkSlab(slab: Slab): CheckedSlab {
  if (typeof slab !== 'object' || slab === null || Array.isArray(slab) || ArrayBuffer.isView(slab)) {
    throw selectionError(`a selection is an object with start and count, or made by select, not ${String(slab)}`);
  }
  const parts = PARTS.map((name) => (slab[name] === undefined ? null : checkCoordinates(slab[name], name)));
  const [start, count, stride, block] = parts as [
    CheckedSlab['start'],
    CheckedSlab['count'],
    CheckedSlab['stride'],
    CheckedSlab['block'],
  ];
  // Without a count everything up to the end is selected: too much to leave to a misspelt name.
  if (count === null) {
    const unknown = Object.keys(slab).find((key) => !(PARTS as readonly string[]).includes(key));
    if (unknown !== undefined) throw selectionError(`a slab has start, count, stride and block, but no '${unknown}'`);
  }
  let rank = -1;
  for (let i = 0; i < PARTS.length; i++) {
    const part = parts[i];
    if (!part) continue;
    if (rank !== -1 && part.length !== rank) {
      throw selectionError(`${PARTS[i]} ${describe(part)} has ${part.length} dimensions, the rest of the slab ${rank}`);
    }
    rank = part.length;
  }
  const still = stride ? stride.indexOf(0) : -1;
  if (stride && still >= 0)
    throw selectionError(`dimension ${still} of stride ${describe(stride)} is 0, it must be at least 1`);
  return { rank, start, count, stride, block };
}

/** The slab with every number known; null if it is empty. Without a shape the count must be there. */
export function gridOf(slab: CheckedSlab, shape: ArrayLike<number> | null): Grid | null {
  const rank = slab.rank === -1 ? (shape?.length ?? 0) : slab.rank;
  if (shape && rank !== shape.length) throw wrongRank('the selection', rank, shape);
  const start = slab.start?.slice() ?? new Float64Array(rank);
  const count = slab.count?.slice() ?? new Float64Array(rank);
  const step = slab.stride?.slice() ?? new Float64Array(rank).fill(1);
  const block = slab.block?.slice() ?? new Float64Array(rank).fill(1);
  if (slab.count === null && shape) for (let d = 0; d < rank; d++) count[d] = countToEnd(d, start, step, block, shape);
  for (let d = 0; d < rank; d++) if (count[d] === 0 || block[d] === 0) return null;
  for (let d = 0; d < rank; d++) {
    const span = ((count[d] as number) - 1) * (step[d] as number) + (block[d] as number);
    if ((start[d] as number) + span > Number.MAX_SAFE_INTEGER) {
      throw selectionError(`dimension ${d}: the selection starts at ${start[d]} and spans ${span}, beyond 2^53-1`);
    }
    // Ranges that touch or overlap are one: a slab is a set.
    if (count[d] === 1 || (step[d] as number) <= (block[d] as number)) {
      count[d] = 1;
      step[d] = block[d] = span;
    }
  }
  return { rank, start, count, step, block };
}

/** A missing count is as many whole blocks as fit, as in h5py. */
function countToEnd(
  d: number,
  start: Float64Array,
  step: Float64Array,
  block: Float64Array,
  shape: ArrayLike<number>,
): number {
  const size = shape[d] as number;
  const from = start[d] as number;
  if (from > size) throw outside(d, from, from + (block[d] as number), shape);
  const room = size - from - (block[d] as number);
  return room < 0 ? 0 : Math.floor(room / (step[d] as number)) + 1;
}

export function gridBounds(grid: Grid): { lo: Float64Array; hi: Float64Array } {
  const hi = grid.start.slice();
  for (let d = 0; d < grid.rank; d++) {
    const span = ((grid.count[d] as number) - 1) * (grid.step[d] as number) + (grid.block[d] as number);
    hi[d] = (grid.start[d] as number) + span;
  }
  return { lo: grid.start, hi };
}

export function gridSize(grid: Grid): number {
  let size = 1;
  for (let d = 0; d < grid.rank; d++) size *= (grid.count[d] as number) * (grid.block[d] as number);
  return size;
}

/** The part of a grid whose ranges reach into the window; null if none does. The other ranges are of no use there. */
export function gridWithin(grid: Grid, lo: Float64Array, hi: Float64Array): Grid | null {
  const start = grid.start.slice();
  const count = grid.count.slice();
  for (let d = 0; d < grid.rank; d++) {
    const from = start[d] as number;
    const step = grid.step[d] as number;
    const first = Math.max(0, Math.floor(((lo[d] as number) - from - (grid.block[d] as number)) / step) + 1);
    const end = Math.min(count[d] as number, Math.ceil(((hi[d] as number) - from) / step));
    if (first >= end) return null;
    start[d] = from + first * step;
    count[d] = end - first;
  }
  return { ...grid, start, count };
}

/** The grid as boxes. Row-major order needs single rows in every dimension before the last divided one. */
export function gridBoxes(grid: Grid, ordered: boolean): BoxList {
  const { rank } = grid;
  let divided = rank - 1;
  while (divided >= 0 && grid.count[divided] === 1) divided--;
  const parts = grid.count.slice();
  if (ordered) for (let d = 0; d < divided; d++) parts[d] = (grid.count[d] as number) * (grid.block[d] as number);
  const length = sizeOf(parts);
  if (length * rank > Number.MAX_SAFE_INTEGER) throw tooMany(rank);
  const list = new BoxList(rank, length);
  const at = new Float64Array(rank);
  for (let i = 0, k = 0; i < length; i++) {
    for (let d = 0; d < rank; d++, k++) {
      const part = at[d] as number;
      const block = grid.block[d] as number;
      const rows = ordered && d < divided;
      const low =
        (grid.start[d] as number) +
        (rows ? Math.floor(part / block) * (grid.step[d] as number) + (part % block) : part * (grid.step[d] as number));
      list.lo[k] = low;
      list.hi[k] = low + (rows ? 1 : block);
    }
    for (let d = rank - 1; d >= 0; d--) {
      at[d] = (at[d] as number) + 1;
      if ((at[d] as number) < (parts[d] as number)) break;
      at[d] = 0;
    }
  }
  list.length = length;
  return list;
}
