// What is visible of the blocks of a dataset, where a newer block hides older ones: which blocks, how many elements of each, which
// parts of one, and what all of them cover. Reads, resizing, publishing and the tools ask here.
//
// Few blocks are cut out of one another. Of many blocks in a small box the elements are marked one by one, from the newest block
// on. A large box with many blocks is halved.

import {
  advance,
  type Box,
  type Boxes,
  boxAt,
  boxesAt,
  clipInto,
  covers,
  endOf,
  halves,
  overlaps,
  positionIn,
  totalSize,
} from '../../space/box.ts';
import { BoxList } from '../../space/box-list.ts';
import { subtractMany, union } from '../../space/sets.ts';
import { sizeOf } from '../../space/shape.ts';
import type { BlockIndex } from './index.ts';

/** Up to this many blocks are cut out of one another. */
const MOST_CUT = 16;
/** Boxes of more elements than this are not marked; smaller ones are, if elements of each block are counted. */
const MOST_MARKS = 4 * 2 ** 20;
const MOST_COUNTED = 2 ** 16;

/** What can be seen of some blocks in a box. */
interface Visible {
  /** Numbers of the blocks of which something can be seen, ascending. */
  readonly blocks: Uint32Array;
  /** Every element of the box is covered by some block. */
  readonly complete: boolean;
  /** If each of the blocks is one run of the box, and there are many. */
  readonly runs?: Runs;
}

/** Blocks that are each one run of elements of a box. */
export interface Runs {
  /** Numbers of the blocks. */
  readonly blocks: Uint32Array;
  /** In elements: where in the box each begins, and how long it is. */
  readonly at: Int32Array;
  readonly lengths: Int32Array;
  /** Where the box begins in the last dimension: elements of a block before that are skipped. */
  readonly low: number;
}

/** Which of the candidates (ascending, all overlap the box, the later hides the earlier) can be seen in the box (start, count). */
export function visible(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Visible {
  const n = candidates.length;
  if (n === 0) return { blocks: candidates, complete: false };
  if (isHiding(index, candidates, start, count)) return { blocks: candidates.subarray(n - 1), complete: true };
  if (n <= MOST_CUT) return cut(index, candidates, start, count);
  const size = sizeOf(count);
  // Tiles of a large box: to compare each with each is still less work than to mark every element.
  if (n * n < size) {
    const clipped = clippedTo(index, candidates, start, count);
    if (areDisjoint(clipped)) return { blocks: candidates, complete: totalSize(clipped) === size };
  }
  return size > MOST_MARKS ? inHalves(index, candidates, start, count) : mark(index, candidates, start, count, size);
}

/** Whether the newest of the candidates covers the whole box. */
function isHiding(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): boolean {
  const { rank, starts, counts } = index;
  const k = (candidates[candidates.length - 1] as number) * rank;
  for (let d = 0; d < rank; d++) {
    const from = start[d] as number;
    const first = starts[k + d] as number;
    if (first > from || first + (counts[k + d] as number) < from + (count[d] as number)) return false;
  }
  return true;
}

// ---------------------------------------------------------------- few blocks

/** The candidates clipped to the box, newest first, so that those newer than one are the list up to it. */
function clippedTo(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Boxes {
  const { rank } = index;
  const length = candidates.length;
  const starts = new Float64Array(length * rank);
  const counts = new Float64Array(length * rank);
  const end = endOf(start, count);
  for (let i = 0; i < length; i++) {
    const k = (candidates[length - 1 - i] as number) * rank;
    clipInto(index.starts, index.counts, k, rank, start, end, starts, counts, i * rank);
  }
  return { rank, length, starts, counts };
}

/** Most blocks do not overlap, and to find that out is cheap. */
function areDisjoint({ rank, length, starts, counts }: Boxes): boolean {
  for (let i = 1; i < length; i++) {
    for (let k = 0; k < i; k++) {
      let d = 0;
      for (; d < rank; d++) {
        const a = starts[i * rank + d] as number;
        const b = starts[k * rank + d] as number;
        if (a >= b + (counts[k * rank + d] as number) || b >= a + (counts[i * rank + d] as number)) break;
      }
      if (d === rank) return false;
    }
  }
  return true;
}

function cut(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Visible {
  const clipped = clippedTo(index, candidates, start, count);
  if (areDisjoint(clipped)) return { blocks: candidates, complete: totalSize(clipped) === sizeOf(count) };
  const n = candidates.length;
  const seen = new Uint32Array(n);
  let found = 0;
  for (let i = n - 1; i >= 0; i--)
    if (i === 0 || leftOf(clipped, i).length > 0) seen[found++] = candidates[n - 1 - i] as number;
  return { blocks: seen.subarray(0, found), complete: subtractMany(start, count, clipped).length === 0 };
}

/** What those before box `i`, which are newer, leave of it. */
function leftOf({ rank, starts, counts }: Boxes, i: number): Boxes {
  return subtractMany(starts, counts, { rank, length: i, starts, counts }, i * rank);
}

// ---------------------------------------------------------------- many blocks

/** One byte for every element of a box: whether a newer block was found there. */
let marks = new Uint8Array(0);

function clearMarks(size: number): void {
  if (marks.length < size) marks = new Uint8Array(size);
  else marks.fill(0, 0, size);
}

function mark(
  index: BlockIndex,
  candidates: Uint32Array,
  start: Float64Array,
  count: Float64Array,
  size: number,
): Visible {
  clearMarks(size);
  const runs = index.stored ? null : runsIn(index, candidates, start, count);
  if (runs) return markRuns(runs, size);
  const { rank } = index;
  let left = size;
  const seen = new Uint32Array(candidates.length);
  let first = candidates.length;
  for (let i = candidates.length - 1; i >= 0 && left > 0; i--) {
    const block = candidates[i] as number;
    const fresh = markBlock(index, block * rank, start, count, rank);
    if (fresh === 0) continue;
    left -= fresh;
    seen[--first] = block;
  }
  return { blocks: seen.subarray(first), complete: left === 0 };
}

const position = new Float64Array(32);
const lows = new Float64Array(32);
const highs = new Float64Array(32);

/** Marks the elements of a block in the box; returns how many had no mark. */
function markBlock(index: BlockIndex, k: number, start: Float64Array, count: Float64Array, rank: number): number {
  const last = rank - 1;
  for (let d = 0; d < rank; d++) {
    const from = start[d] as number;
    lows[d] = Math.max(0, (index.starts[k + d] as number) - from);
    highs[d] = Math.min(count[d] as number, (index.starts[k + d] as number) + (index.counts[k + d] as number) - from);
    position[d] = lows[d] as number;
  }
  const run = (highs[last] as number) - (lows[last] as number);
  let fresh = 0;
  for (;;) {
    const at = positionIn(count, position);
    const end = at + run;
    for (let i = at; i < end; i++) {
      if (marks[i] === 0) {
        marks[i] = 1;
        fresh++;
      }
    }
    if (!advance(position, lows, highs, last)) return fresh;
  }
}

/** The parts of blocks inside a box, if each of them is one run, as most small blocks are: much less work than boxes in general. */
function runsIn(index: BlockIndex, blocks: Uint32Array, start: Float64Array, count: Float64Array): Runs | null {
  const { rank, starts, counts } = index;
  const n = blocks.length;
  const last = rank - 1;
  const low = start[last] as number;
  const runs = { blocks, at: new Int32Array(n), lengths: new Int32Array(n), low };
  const high = low + (count[last] as number);
  for (let i = 0; i < n; i++) {
    const k = (blocks[i] as number) * rank;
    let row = 0;
    for (let d = 0; d < last; d++) {
      if (counts[k + d] !== 1) return null;
      row = row * (count[d] as number) + (starts[k + d] as number) - (start[d] as number);
    }
    const begin = starts[k + last] as number;
    const from = Math.max(begin, low);
    runs.at[i] = row * (count[last] as number) + from - low;
    runs.lengths[i] = Math.min(begin + (counts[k + last] as number), high) - from;
  }
  return runs;
}

/** The runs of which something can be seen; `at` and `lengths` are used again for them. */
function markRuns({ blocks, at, lengths, low }: Runs, size: number): Visible {
  let left = size;
  let first = blocks.length;
  const seen = new Uint32Array(first);
  for (let i = first - 1; i >= 0 && left > 0; i--) {
    const begin = at[i] as number;
    const end = begin + (lengths[i] as number);
    const before = left;
    for (let k = begin; k < end; k++) {
      if (marks[k] !== 0) continue;
      marks[k] = 1;
      left--;
    }
    if (left === before) continue;
    first--;
    seen[first] = blocks[i] as number;
    at[first] = begin;
    lengths[first] = end - begin;
  }
  const runs = { blocks: seen.subarray(first), at: at.subarray(first), lengths: lengths.subarray(first), low };
  return { blocks: runs.blocks, complete: left === 0, runs };
}

function inHalves(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Visible {
  const { first, later, second } = halves(start, count);
  const a = visible(index, overlapping(index, candidates, start, first), start, first);
  const b = visible(index, overlapping(index, candidates, later, second), later, second);
  return { blocks: Uint32Array.from(new Set([...a.blocks, ...b.blocks])).sort(), complete: a.complete && b.complete };
}

/** Those of some blocks that overlap a box. */
export function overlapping(
  index: BlockIndex,
  blocks: Uint32Array,
  start: Float64Array,
  count: Float64Array,
): Uint32Array {
  const { starts, counts, rank } = index;
  const end = endOf(start, count);
  const found = new Uint32Array(blocks.length);
  let length = 0;
  for (let i = 0; i < blocks.length; i++) {
    const block = blocks[i] as number;
    if (overlaps(starts, counts, block * rank, rank, start, end)) found[length++] = block;
  }
  return found.subarray(0, length);
}

// ---------------------------------------------------------------- counting, parts, cover

/** How many elements of each block can be seen inside a shape. */
export function visibleElements(index: BlockIndex, shape: readonly number[]): Float64Array {
  const { rank, starts, counts } = index;
  const seen = new Float64Array(index.length);
  if (index.length === 0 || shape.includes(0)) return seen;
  if (rank === 0) {
    seen[index.length - 1] = 1;
    return seen;
  }
  const open: Box[] = [{ start: new Float64Array(rank), count: Float64Array.from(shape) }];
  for (let box = open.pop(); box; box = open.pop()) {
    const { start, count } = box;
    const end = endOf(start, count);
    const blocks = index.query(start, end);
    if (blocks.length === 0) continue;
    const size = sizeOf(count);
    const newest = blocks[blocks.length - 1] as number;
    if (covers(starts, counts, newest * rank, rank, start, end)) seen[newest] = (seen[newest] as number) + size;
    else if (blocks.length <= MOST_CUT) countByCutting(index, blocks, box, seen);
    else if (size <= MOST_COUNTED) countByMarking(index, blocks, box, size, seen);
    else {
      const { first, later, second } = halves(start, count);
      open.push({ start, count: first }, { start: later, count: second });
    }
  }
  return seen;
}

function countByCutting(index: BlockIndex, blocks: Uint32Array, { start, count }: Box, seen: Float64Array): void {
  const clipped = clippedTo(index, blocks, start, count);
  for (let i = 0; i < blocks.length; i++) {
    const block = blocks[blocks.length - 1 - i] as number;
    seen[block] = (seen[block] as number) + totalSize(leftOf(clipped, i));
  }
}

function countByMarking(
  index: BlockIndex,
  blocks: Uint32Array,
  { start, count }: Box,
  size: number,
  seen: Float64Array,
): void {
  const { rank } = index;
  clearMarks(size);
  let left = size;
  for (let i = blocks.length - 1; i >= 0 && left > 0; i--) {
    const block = blocks[i] as number;
    const fresh = markBlock(index, block * rank, start, count, rank);
    left -= fresh;
    seen[block] = (seen[block] as number) + fresh;
  }
}

/** The parts of one block that can be seen in the box [low, high): disjoint boxes, and how many newer blocks overlap the block. */
interface VisibleParts {
  readonly parts: Boxes;
  readonly newer: number;
}

/** Cuts newer blocks out of one; null if more than `most` of them overlap it. */
export function visibleParts(
  index: BlockIndex,
  block: number,
  low: Float64Array,
  high: Float64Array,
  most: number,
): VisibleParts | null {
  const { rank, starts, counts } = index;
  const { start, count } = boxAt(index, block);
  clipInto(starts, counts, block * rank, rank, low, high, start, count, 0);
  const newer = index.query(start, endOf(start, count)).filter((other) => other > block);
  if (newer.length > most) return null;
  return { parts: subtractMany(start, count, boxesAt(index, newer)), newer: newer.length };
}

/** What blocks cover of the box [low, high): disjoint boxes, each element once, in row-major order if that is asked for. */
export function covered(lists: Iterable<Boxes>, low: Float64Array, high: Float64Array, ordered: boolean): BoxList {
  const rank = low.length;
  const all = new BoxList(rank);
  for (const { length, starts, counts } of lists) {
    all.reserve(length);
    for (let i = 0; i < length; i++) {
      const to = all.length * rank;
      // Counts first; they become ends where something is left.
      if (clipInto(starts, counts, i * rank, rank, low, high, all.lo, all.hi, to) === 0) continue;
      for (let d = to; d < to + rank; d++) all.hi[d] = (all.lo[d] as number) + (all.hi[d] as number);
      all.length++;
    }
  }
  return union(all, ordered);
}
