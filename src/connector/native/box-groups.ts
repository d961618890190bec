import type { Blocks } from '../../space/blocks.ts';

/** A call of h5wasm opens the dataset, reads and closes it: as long as it takes to copy about this many bytes. */
const CALL = 128 * 1024;
/** What is in h5wasm's memory at a time, unless one row of chunks is larger. */
export const PIECE = 32 * 2 ** 20;

/** What a call costs depends on how the data is kept: of a chunked dataset whole chunks are read. */
export interface Cost {
  readonly size: number;
  readonly chunk: readonly number[] | null;
}

/** Consecutive boxes of a selection, `from` up to `to`, and the box around them. */
export interface BoxGroup {
  readonly from: number;
  readonly to: number;
  readonly start: number[];
  readonly count: number[];
}

/**
 * Cuts a selection into calls: boxes that lie close to one another, or in the same chunks, are read as one box. In row-major
 * order, so one look at each box is enough.
 */
export function* groupBoxes(blocks: Blocks, cost: Cost, together: boolean): Generator<BoxGroup, void, undefined> {
  const { rank, length, starts, counts } = blocks;
  let from = 0;
  let low: number[] = [];
  let high: number[] = [];
  let price = 0;
  for (let i = 0; i < length; i++) {
    const lo: number[] = [];
    const hi: number[] = [];
    for (let d = 0, k = i * rank; d < rank; d++, k++) {
      lo.push(starts[k] as number);
      hi.push((starts[k] as number) + (counts[k] as number));
    }
    const own = CALL + bytesTouched(lo, hi, cost);
    if (i > from && together) {
      const bothLow = lo.map((x, d) => Math.min(x, low[d] as number));
      const bothHigh = hi.map((x, d) => Math.max(x, high[d] as number));
      const both = CALL + bytesTouched(bothLow, bothHigh, cost);
      if (both <= price + own && volume(bothLow, bothHigh) * cost.size <= PIECE) {
        [low, high, price] = [bothLow, bothHigh, both];
        continue;
      }
    }
    if (i > from) yield group(from, i, low, high);
    [from, low, high, price] = [i, lo, hi, own];
  }
  if (length > from) yield group(from, length, low, high);
}

function group(from: number, to: number, low: number[], high: number[]): BoxGroup {
  return { from, to, start: low, count: high.map((x, d) => x - (low[d] as number)) };
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

/** A part of a box: where it begins in it, and its extent. */
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
  const d = count.findIndex((n, i) => n > (chunk?.[i] ?? 1));
  if (bytes <= PIECE || d < 0) {
    yield { start: [...start], count: [...count] };
    return;
  }
  const side = chunk?.[d] ?? 1;
  const first = start[d] as number;
  const end = first + (count[d] as number);
  const perRow = bytes / (count[d] as number);
  const rows = Math.max(side, Math.floor(PIECE / perRow / side) * side);
  for (let at = first; at < end; ) {
    // The next border of a piece is a border of chunks, counted from the beginning of the dataset.
    const next = Math.min(end, Math.floor(at / side) * side + rows);
    const from = start.map((x, i) => (i === d ? at : x));
    const part = count.map((n, i) => (i === d ? next - at : n));
    if (next - at === count[d]) yield { start: from, count: part };
    else yield* cutBox(from, part, { size, chunk });
    at = next;
  }
}
