import { checkNames } from '../base/options.ts';
import { BoxList, tooMany } from './box-list.ts';
import { checkCoordinates, describe, outside, type Slab, selectionError, sizeOf, wrongRank } from './shape.ts';

/** A copy of a slab with checked numbers. Rank -1: it depends on the dataset. */
export interface CheckedSlab {
  readonly rank: number;
  readonly start: Float64Array | null;
  readonly count: Float64Array | null;
  readonly stride: Float64Array | null;
  readonly block: Float64Array | null;
}

/** A regular hyperslab with every number known: in each dimension `count` ranges of `block` elements, `step` apart. */
export interface RegularSlab {
  readonly rank: number;
  readonly start: Float64Array;
  readonly count: Float64Array;
  readonly step: Float64Array;
  readonly block: Float64Array;
}

const PARTS = ['start', 'count', 'stride', 'block'] as const;
const NAMES: Required<Slab> = { start: [], count: [], stride: [], block: [] };

/** Checks a slab and copies it: the caller may change it afterwards. */
export function checkSlab(slab: Slab): CheckedSlab {
  if (typeof slab !== 'object' || slab === null || Array.isArray(slab) || ArrayBuffer.isView(slab)) {
    throw selectionError(`a selection is an object with start and count, or made by select, not ${String(slab)}`);
  }
  // A bundle may hold two copies of h5log. This one sees no start and count in a selection of the other, and would take everything.
  if ((slab as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] === 'Selection')
    throw selectionError('a selection that another copy of h5log has made cannot be used');
  checkNames('a slab', slab, NAMES);
  const parts = PARTS.map((name) => (slab[name] === undefined ? null : checkCoordinates(slab[name], name)));
  const [start, count, stride, block] = parts as [
    CheckedSlab['start'],
    CheckedSlab['count'],
    CheckedSlab['stride'],
    CheckedSlab['block'],
  ];
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

/** Completes a slab with the defaults; null if it is empty. Without a shape its count must be known. */
export function regularSlab(slab: CheckedSlab, shape: ArrayLike<number> | null): RegularSlab | null {
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
    // Ranges that touch or overlap become one: a slab is a set.
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

export function slabBounds(slab: RegularSlab): { lo: Float64Array; hi: Float64Array } {
  const hi = slab.start.slice();
  for (let d = 0; d < slab.rank; d++) {
    const span = ((slab.count[d] as number) - 1) * (slab.step[d] as number) + (slab.block[d] as number);
    hi[d] = (slab.start[d] as number) + span;
  }
  return { lo: slab.start, hi };
}

export function slabSize(slab: RegularSlab): number {
  let size = 1;
  for (let d = 0; d < slab.rank; d++) size *= (slab.count[d] as number) * (slab.block[d] as number);
  return size;
}

/** The ranges of a slab that reach into the window [lo, hi); null if none does. */
export function slabWithin(slab: RegularSlab, lo: Float64Array, hi: Float64Array): RegularSlab | null {
  const start = slab.start.slice();
  const count = slab.count.slice();
  for (let d = 0; d < slab.rank; d++) {
    const from = start[d] as number;
    const step = slab.step[d] as number;
    const first = Math.max(0, Math.floor(((lo[d] as number) - from - (slab.block[d] as number)) / step) + 1);
    const end = Math.min(count[d] as number, Math.ceil(((hi[d] as number) - from) / step));
    if (first >= end) return null;
    start[d] = from + first * step;
    count[d] = end - first;
  }
  return { ...slab, start, count };
}

/** The boxes of a slab. In row-major order they are single rows in every dimension before the last divided one. */
export function slabBoxes(slab: RegularSlab, ordered: boolean): BoxList {
  const { rank } = slab;
  let divided = rank - 1;
  while (divided >= 0 && slab.count[divided] === 1) divided--;
  const parts = slab.count.slice();
  if (ordered) for (let d = 0; d < divided; d++) parts[d] = (slab.count[d] as number) * (slab.block[d] as number);
  const length = sizeOf(parts);
  if (length * rank > Number.MAX_SAFE_INTEGER) throw tooMany(rank);
  const list = new BoxList(rank, length);
  const at = new Float64Array(rank);
  for (let i = 0, k = 0; i < length; i++) {
    for (let d = 0; d < rank; d++, k++) {
      const part = at[d] as number;
      const block = slab.block[d] as number;
      const rows = ordered && d < divided;
      const low =
        (slab.start[d] as number) +
        (rows ? Math.floor(part / block) * (slab.step[d] as number) + (part % block) : part * (slab.step[d] as number));
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
