import type { BlockIndex } from '../../log/read/index.ts';
import { covered, visible } from '../../log/read/visible.ts';
import { boxSize, clipInto, countOf, endOf } from '../../space/box.ts';
import { BoxList } from '../../space/box-list.ts';
import { union } from '../../space/sets.ts';
import { sizeOf } from '../../space/shape.ts';

/** What is left of a dataset: boxes to be read and written anew, and blocks that can be copied as they are stored. */
export interface LivePieces {
  /** Disjoint, in row-major order. */
  readonly boxes: BoxList;
  /** Numbers of blocks. */
  readonly kept: readonly number[];
}

/** A box [lo, hi). */
export interface Window {
  readonly lo: Float64Array;
  readonly hi: Float64Array;
}

/** Without filters all that was ever written inside the window, in as few boxes as possible. */
export function livePlain(index: BlockIndex, window: Window): LivePieces {
  return { boxes: covered([index], window.lo, window.hi, true), kept: [] };
}

/**
 * Filtered blocks without a grid: one of which everything can be seen is kept, unless it is small and others join on, or it reaches
 * into one of which only a part can be seen. Those would otherwise leave splinters.
 */
export function liveFiltered(index: BlockIndex, window: Window, elementSize: number): LivePieces {
  const whole: number[] = [];
  const isPart = new Uint8Array(index.length);
  const changed = new BoxList(index.rank);
  for (let i = 0; i < index.length; i++) {
    const box = clipped(index, i, window);
    if (!box) continue;
    const { blocks } = visible(index, index.query(box.lo, box.hi), box.lo, countOf(box.lo, box.hi));
    if (!blocks.includes(i)) continue;
    if (blocks.length === 1 && box.isWhole && isStream(index, i)) whole.push(i);
    else {
      changed.push(box.lo, box.hi);
      isPart[i] = 1;
    }
  }
  const kept: number[] = [];
  const small = new Map<string, number>();
  for (const i of whole) {
    const box = clipped(index, i, window);
    if (!box) continue;
    const isSmall = sizeOf(countOf(box.lo, box.hi)) * elementSize < SMALL_STREAM;
    if (isSmall || index.query(box.lo, box.hi).some((other) => isPart[other])) changed.push(box.lo, box.hi);
    else kept.push(i);
    if (isSmall) small.set(keyOf(box.lo, box.hi), i);
  }
  const boxes = new BoxList(index.rank);
  const joined = union(changed, true);
  for (let b = 0; b < joined.length; b++) {
    const from = b * joined.rank;
    const lo = joined.lo.subarray(from, from + joined.rank);
    const hi = joined.hi.subarray(from, from + joined.rank);
    const alone = small.get(keyOf(lo, hi));
    if (alone === undefined) boxes.push(lo, hi);
    else kept.push(alone);
  }
  return { boxes, kept };
}

/** Streams of less than this are put together: they pack badly, and each has an entry in the table. */
const SMALL_STREAM = 64 * 1024;

const keyOf = (lo: Float64Array, hi: Float64Array): string => `${lo.join()} ${hi.join()}`;

/** Filtered blocks on a grid, cell by cell: a block that is alone in its cell is kept. */
export function* liveCells(index: BlockIndex, window: Window, chunk: readonly number[]): Iterable<LivePieces> {
  const { rank } = index;
  for (const [cell, blocks] of cellsOf(index, window, chunk)) {
    const lo = Float64Array.from(cell, (c, d) => Math.max(c * (chunk[d] as number), window.lo[d] as number));
    const hi = Float64Array.from(cell, (c, d) => Math.min((c + 1) * (chunk[d] as number), window.hi[d] as number));
    const count = countOf(lo, hi);
    const seen = visible(index, Uint32Array.from(blocks), lo, count);
    const [only] = seen.blocks;
    if (seen.blocks.length === 1 && only !== undefined && isStream(index, only)) {
      if (clipped(index, only, { lo, hi })?.isWhole) {
        yield { boxes: new BoxList(rank), kept: [only] };
        continue;
      }
    }
    const list = new BoxList(rank);
    if (seen.complete) list.push(lo, hi);
    else for (const i of seen.blocks) pushClipped(index, i, { lo, hi }, list);
    yield { boxes: union(list, true), kept: [] };
  }
}

/** The cells that blocks reach into, in row-major order, with the numbers of those blocks. */
function* cellsOf(
  index: BlockIndex,
  window: Window,
  chunk: readonly number[],
): Iterable<[cell: readonly number[], blocks: number[]]> {
  const { rank } = index;
  const grid = chunk.map((size, d) => Math.ceil((window.hi[d] as number) / size));
  const found = new Map<number, number[]>();
  const first = new Float64Array(rank);
  const last = new Float64Array(rank);
  for (let i = 0; i < index.length; i++) {
    const box = clipped(index, i, window);
    if (!box) continue;
    for (let d = 0; d < rank; d++) {
      first[d] = Math.floor((box.lo[d] as number) / (chunk[d] as number));
      last[d] = Math.floor(((box.hi[d] as number) - 1) / (chunk[d] as number));
    }
    const cell = first.slice();
    for (let d = rank; d >= 0; ) {
      let number = 0;
      for (let k = 0; k < rank; k++) number = number * (grid[k] as number) + (cell[k] as number);
      const list = found.get(number);
      if (list) list.push(i);
      else found.set(number, [i]);
      for (d = rank - 1; d >= 0; d--) {
        cell[d] = (cell[d] as number) + 1;
        if ((cell[d] as number) <= (last[d] as number)) break;
        cell[d] = first[d] as number;
      }
    }
  }
  for (const number of [...found.keys()].sort((a, b) => a - b)) {
    const cell: number[] = new Array(rank).fill(0);
    let rest = number;
    for (let d = rank - 1; d >= 0; d--) {
      cell[d] = rest % (grid[d] as number);
      rest = Math.floor(rest / (grid[d] as number));
    }
    yield [cell, found.get(number) as number[]];
  }
}

/** A stream of its own; the original has several blocks in one. */
function isStream({ stored, whole }: BlockIndex, i: number): boolean {
  return (stored?.[i] ?? 0) > 0 && (whole?.[i] ?? 0) === 0;
}

function clipped(index: BlockIndex, i: number, { lo, hi }: Window): (Window & { isWhole: boolean }) | null {
  const { rank, starts, counts } = index;
  const start = new Float64Array(rank);
  const count = new Float64Array(rank);
  const size = clipInto(starts, counts, i * rank, rank, lo, hi, start, count, 0);
  if (size === 0) return null;
  return { lo: start, hi: endOf(start, count), isWhole: size === boxSize(counts, i * rank, rank) };
}

function pushClipped(index: BlockIndex, i: number, window: Window, list: BoxList): void {
  const box = clipped(index, i, window);
  if (box) list.push(box.lo, box.hi);
}
