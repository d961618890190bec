import { advance, clipInto, endOf, positionIn, totalSize } from '../../space/box.ts';
import { subtractMany } from '../../space/sets.ts';
import { sizeOf } from '../../space/shape.ts';
import type { BlockIndex } from './index.ts';
import { type Visible, visibleRuns } from './runs.ts';

/** Up to so many blocks are compared with one another; beyond, elements are ticked off one by one. */
const COMPARED = 16;

/** Which of the candidates (ascending, the later hides the earlier) can be seen in the box (start, count). */
export function visible(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Visible {
  if (candidates.length === 0) return { blocks: candidates, complete: false };
  if (index.rank === 0) return { blocks: candidates.subarray(candidates.length - 1), complete: true };
  const n = candidates.length;
  if (n <= COMPARED) return compare(index, candidates, start, count);
  // Tiles of a large box: to compare each with each is still less work than to tick off every element.
  if (n * n < sizeOf(count)) {
    const clipped = cutToBox(index, candidates, start, count);
    if (disjoint(clipped, n, index.rank)) return allOf(candidates, clipped, count);
  }
  return tickOff(index, candidates, start, count);
}

function allOf(candidates: Uint32Array, { starts, counts }: Clipped, count: Float64Array): Visible {
  const seen = totalSize({ rank: count.length, length: candidates.length, starts, counts });
  return { blocks: candidates, complete: seen === sizeOf(count) };
}

interface Clipped {
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/** The candidates cut to the box, newest first, so that those newer than one are the list up to it. */
function cutToBox(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Clipped {
  const { rank } = index;
  const n = candidates.length;
  const starts = new Float64Array(n * rank);
  const counts = new Float64Array(n * rank);
  const end = endOf(start, count);
  for (let i = 0; i < n; i++) {
    const k = (candidates[n - 1 - i] as number) * rank;
    clipInto(index.starts, index.counts, k, rank, start, end, starts, counts, i * rank);
  }
  return { starts, counts };
}

function compare(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Visible {
  const { rank } = index;
  const n = candidates.length;
  const clipped = cutToBox(index, candidates, start, count);
  if (disjoint(clipped, n, rank)) return allOf(candidates, clipped, count);
  const { starts, counts } = clipped;
  const seen = new Uint32Array(n);
  let found = 0;
  for (let i = n - 1; i >= 0; i--) {
    const newer = { rank, length: i, starts, counts };
    if (i === 0 || subtractMany(starts, counts, newer, i * rank).length > 0)
      seen[found++] = candidates[n - 1 - i] as number;
  }
  const complete = subtractMany(start, count, { rank, length: n, starts, counts }).length === 0;
  return { blocks: seen.subarray(0, found), complete };
}

/** Most blocks do not overlap, and to find that out is cheap. */
function disjoint({ starts, counts }: Clipped, n: number, rank: number): boolean {
  for (let i = 1; i < n; i++) {
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

let ticks = new Uint8Array(0);

function tickOff(index: BlockIndex, candidates: Uint32Array, start: Float64Array, count: Float64Array): Visible {
  const { rank } = index;
  const size = sizeOf(count);
  if (ticks.length < size) ticks = new Uint8Array(size);
  else ticks.fill(0, 0, size);
  const runs = visibleRuns(index, candidates, start, count, ticks);
  if (runs) return runs;
  let left = size;
  const seen = new Uint32Array(candidates.length);
  let first = candidates.length;
  for (let i = candidates.length - 1; i >= 0 && left > 0; i--) {
    const block = candidates[i] as number;
    const fresh = tick(index, block * rank, start, count, rank);
    if (fresh === 0) continue;
    left -= fresh;
    seen[--first] = block;
  }
  return { blocks: seen.subarray(first), complete: left === 0 };
}

const position = new Float64Array(32);
const lows = new Float64Array(32);
const highs = new Float64Array(32);

/** Ticks the elements of a block in the box; returns how many were not ticked before. */
function tick(index: BlockIndex, k: number, start: Float64Array, count: Float64Array, rank: number): number {
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
      if (ticks[i] === 0) {
        ticks[i] = 1;
        fresh++;
      }
    }
    if (!advance(position, lows, highs, last)) return fresh;
  }
}
