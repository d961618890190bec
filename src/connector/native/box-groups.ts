import type { Blocks } from '../../space/select.ts';

/** A call of h5wasm opens the dataset, reads and closes it: as long as it takes to copy about this many bytes. */
const CALL = 128 * 1024;
/** What is in h5wasm's memory at a time, unless one row of chunks is larger. */
export const PIECE = 32 * 2 ** 20;

/** What a call costs depends on how the data is kept: of a chunked dataset whole chunks are read. */
export interface Cost {
  readonly size: number;
  readonly chunk: readonly number[] | null;
}

/** Boxes of a selection that are moved in one call, and the box around them. */
interface BoxGroup {
  readonly boxes: readonly BoxPlace[];
  readonly start: number[];
  readonly count: number[];
}

export interface BoxPlace {
  /** The box is the i-th of the selection. */
  readonly i: number;
  /** The first of its elements among those of all boxes, one after the other. */
  readonly at: number;
}

/**
 * Cuts a selection into calls: boxes that lie close to one another, or in the same chunks, are moved as one box. `alone`: each
 * for itself.
 */
export function* groupBoxes(blocks: Blocks, cost: Cost, alone: boolean): Generator<BoxGroup, void, undefined> {
  let boxes: BoxPlace[] = [];
  let low: number[] = [];
  let high: number[] = [];
  let price = 0;
  for (const place of alone ? inOrder(blocks) : chunkByChunk(blocks, cost.chunk)) {
    const [lo, hi] = cornersOf(blocks, place.i);
    const own = CALL + bytesTouched(lo, hi, cost);
    if (boxes.length > 0 && !alone) {
      const bothLow = lo.map((x, d) => Math.min(x, low[d] as number));
      const bothHigh = hi.map((x, d) => Math.max(x, high[d] as number));
      const both = CALL + bytesTouched(bothLow, bothHigh, cost);
      if (both <= price + own && volume(bothLow, bothHigh) * cost.size <= PIECE) {
        boxes.push(place);
        [low, high, price] = [bothLow, bothHigh, both];
        continue;
      }
    }
    if (boxes.length > 0) yield group(boxes, low, high);
    [boxes, low, high, price] = [[place], lo, hi, own];
  }
  if (boxes.length > 0) yield group(boxes, low, high);
}

function group(boxes: readonly BoxPlace[], low: number[], high: number[]): BoxGroup {
  return { boxes, start: low, count: high.map((x, d) => x - (low[d] as number)) };
}

function cornersOf({ rank, starts, counts }: Blocks, i: number): [low: number[], high: number[]] {
  const low: number[] = [];
  const high: number[] = [];
  for (let d = 0, k = i * rank; d < rank; d++, k++) {
    low.push(starts[k] as number);
    high.push((starts[k] as number) + (counts[k] as number));
  }
  return [low, high];
}

function inOrder(blocks: Blocks): BoxPlace[] {
  const places: BoxPlace[] = [];
  for (let i = 0, at = 0; i < blocks.length; i++) {
    places.push({ i, at });
    const [low, high] = cornersOf(blocks, i);
    at += volume(low, high);
  }
  return places;
}

/** Those that begin in the same chunk follow one another: in row-major order a row of points comes back to each chunk again and again. */
function chunkByChunk(blocks: Blocks, chunk: readonly number[] | null): BoxPlace[] {
  const places = inOrder(blocks);
  if (!chunk || places.length < 2) return places;
  const { rank, starts } = blocks;
  const cell = (i: number, d: number): number => Math.floor((starts[i * rank + d] as number) / (chunk[d] as number));
  return places.sort((a, b) => {
    for (let d = 0; d < rank; d++) {
      const difference = cell(a.i, d) - cell(b.i, d);
      if (difference !== 0) return difference;
    }
    return a.i - b.i;
  });
}

const volume = (low: readonly number[], high: readonly number[]): number =>
  high.reduce((product, x, d) => product * (x - (low[d] as number)), 1);

function bytesTouched(low: readonly number[], high: readonly number[], { size, chunk }: Cost): number {
  if (!chunk) return volume(low, high) * size;
  return high.reduce((product, x, d) => {
    const side = chunk[d] as number;
    return product * (Math.ceil(x / side) - Math.floor((low[d] as number) / side)) * side;
  }, size);
}

/** A part of a box: where it begins in the dataset, and its extent. */
export interface Piece {
  readonly start: number[];
  readonly count: number[];
}

/** Cuts a box into pieces that fit into memory, along the chunks' borders so that no chunk is read twice. */
export function* cutBox(
  start: readonly number[],
  count: readonly number[],
  { size, chunk }: Cost,
): Generator<Piece, void, undefined> {
  const bytes = count.reduce((product, n) => product * n, size);
  const d = count.findIndex((n, i) => crossesBorder(start[i] as number, n, chunk?.[i] ?? 1));
  if (bytes <= PIECE || d < 0) {
    yield { start: [...start], count: [...count] };
    return;
  }
  const side = chunk?.[d] ?? 1;
  const end = (start[d] as number) + (count[d] as number);
  const perRow = bytes / (count[d] as number);
  const rows = Math.max(side, Math.floor(PIECE / perRow / side) * side);
  for (let at = start[d] as number; at < end; ) {
    // The next border of a piece is a border of chunks, counted from the beginning of the dataset.
    const next = Math.min(end, Math.floor(at / side) * side + rows);
    const from = start.map((x, i) => (i === d ? at : x));
    const part = count.map((n, i) => (i === d ? next - at : n));
    yield* cutBox(from, part, { size, chunk });
    at = next;
  }
}

function crossesBorder(start: number, count: number, side: number): boolean {
  return Math.floor(start / side) !== Math.floor((start + count - 1) / side);
}
