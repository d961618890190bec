import type { BlockIndex } from '../../log/read/index.ts';
import { covered, visible } from '../../log/read/visible.ts';
import { boxSize, clipInto, countOf, endOf } from '../../space/box.ts';
import { BoxList } from '../../space/box-list.ts';
import { ChunkWalk, cellOf, gridOf } from '../../space/grid.ts';
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

/** Blocks on a grid, cell by cell: a filtered one that is alone in its cell is kept. */
export function* liveCells(index: BlockIndex, window: Window, chunk: readonly number[]): Iterable<LivePieces> {
  const { rank } = index;
  for (const [cell, blocks] of touchedChunks(index, window, chunk)) {
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

/** The chunks that blocks touch inside a window, in row-major order, with the numbers of those blocks. */
function* touchedChunks(
  index: BlockIndex,
  { lo, hi }: Window,
  chunk: readonly number[],
): Iterable<[cell: readonly number[], blocks: number[]]> {
  const { rank, starts, counts } = index;
  const walk = new ChunkWalk(hi, chunk);
  const found = new Map<number, number[]>();
  const [start, count] = [new Float64Array(rank), new Float64Array(rank)];
  for (let i = 0; i < index.length; i++) {
    if (clipInto(starts, counts, i * rank, rank, lo, hi, start, count, 0) === 0) continue;
    for (let left = walk.begin(start, count, 0); left > 0; left--, walk.next()) {
      const blocks = found.get(walk.number);
      if (blocks) blocks.push(i);
      else found.set(walk.number, [i]);
    }
  }
  const grid = gridOf([...hi], chunk);
  for (const [number, blocks] of [...found].sort(([a], [b]) => a - b)) yield [cellOf(number, grid), blocks];
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
