import type { FileBytes } from '../../hdf5/format/file-bytes.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import type { BlockIndex } from './index.ts';

// Blocks that are each one run of the box that is read, as most small ones are: much less work than boxes in general.

/** Positions beyond this are no 32-bit integers, which are twice as fast in loops. */
const MAX_SIZE = 2 ** 31;
/** At most so many are copied together. */
const RUNS_A_READ = 65_536;

interface Runs {
  /** Numbers of the blocks. */
  readonly blocks: Uint32Array;
  /** In elements: where in the box each begins, and how long it is. */
  readonly at: Int32Array;
  readonly lengths: Int32Array;
  /** Where the box begins in the last dimension: elements of a block before that are skipped. */
  readonly low: number;
}

/** What can be seen of some blocks in a box. */
export interface Visible {
  /** Numbers of the blocks of which something can be seen, ascending. */
  readonly blocks: Uint32Array;
  /** Every element of the box is covered by some block. */
  readonly complete: boolean;
  /** If each of them is one run of the box, and there are many. */
  readonly runs?: Runs;
}

/** The parts of blocks inside a box; null unless each of them is one run. */
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

/** As `visible`, if all candidates are runs and stored as they are, otherwise null; `ticks` has a zero for every element of the box. */
export function visibleRuns(
  index: BlockIndex,
  candidates: Uint32Array,
  start: Float64Array,
  count: Float64Array,
  ticks: Uint8Array,
): Visible | null {
  let left = sizeOf(count);
  const all = index.stored || left > MAX_SIZE ? null : runsIn(index, candidates, start, count);
  if (!all) return null;
  const { blocks, at, lengths, low } = all;
  let first = blocks.length;
  const seen = new Uint32Array(first);
  for (let i = first - 1; i >= 0 && left > 0; i--) {
    const begin = at[i] as number;
    const end = begin + (lengths[i] as number);
    const before = left;
    for (let k = begin; k < end; k++) {
      if (ticks[k] !== 0) continue;
      ticks[k] = 1;
      left--;
    }
    if (left === before) continue;
    first--;
    seen[first] = blocks[i] as number;
    at[first] = begin;
    lengths[first] = end - begin;
  }
  const runs: Runs = {
    blocks: seen.subarray(first),
    at: at.subarray(first),
    lengths: lengths.subarray(first),
    low,
  };
  return { blocks: runs.blocks, complete: left === 0, runs };
}

/** How runs are read. */
interface RunReader {
  readonly index: BlockIndex;
  /** Bytes of an element. */
  readonly size: number;
  fileOf(block: number): FileBytes;
  fetch(file: FileBytes, from: number, length: number): Io<Uint8Array>;
  direct(file: FileBytes, into: Uint8Array, from: number): Io<void>;
}

/** Reads runs, neighbours in the file together, into a box whose first byte is `at`; later ones over earlier ones. */
export function* readRuns(reader: RunReader, runs: Runs, out: Uint8Array, at: number): Io<void> {
  const { size } = reader;
  const { offsets, stores, starts, rank } = reader.index;
  const { blocks, lengths, low } = runs;
  const firstByte = (block: number): number =>
    (offsets[block] as number) + Math.max(0, low - (starts[block * rank + rank - 1] as number)) * size;
  const inWindow = new Int32Array(Math.min(blocks.length, RUNS_A_READ));
  for (let i = 0; i < blocks.length; ) {
    const block = blocks[i] as number;
    const from = firstByte(block);
    let end = from + (lengths[i] as number) * size;
    let next = i + 1;
    for (; next < blocks.length && next - i < RUNS_A_READ; next++) {
      const candidate = blocks[next] as number;
      const a = firstByte(candidate);
      const b = a + (lengths[next] as number) * size;
      if (a < end || a > end + GAP || b - from > WINDOW) break;
      if (stores && stores[candidate] !== stores[block]) break;
      inWindow[next - i] = a - from;
      end = b;
    }
    const file = reader.fileOf(block);
    if (next === i + 1 && end - from > CACHED) {
      const to = at + (runs.at[i] as number) * size;
      yield* reader.direct(file, out.subarray(to, to + end - from), from);
    } else copyRuns(yield* reader.fetch(file, from, end - from), inWindow, runs, i, next, out, at, size);
    i = next;
  }
}

/** Copies runs [first, end); `from` says where they begin in the source. */
function copyRuns(
  source: Uint8Array,
  from: Int32Array,
  { at: places, lengths }: Runs,
  first: number,
  end: number,
  out: Uint8Array,
  at: number,
  size: number,
): void {
  let odd = source.byteOffset | out.byteOffset | (at % 4) | size;
  for (let i = first; i < end; i++) odd |= from[i - first] as number;
  // Words of 4 bytes also for 8-byte elements: float64 need not keep the bits of a NaN.
  const make = odd & 3 ? Uint8Array : Int32Array;
  const unit = make.BYTES_PER_ELEMENT;
  const wordsOf = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array | Int32Array =>
    new make(buffer as ArrayBuffer, byteOffset, Math.floor(length / unit));
  const words = wordsOf(source);
  const target = wordsOf(out);
  for (let i = first; i < end; i++) {
    let position = (from[i - first] as number) / unit;
    let to = (at + (places[i] as number) * size) / unit;
    for (const stop = to + ((lengths[i] as number) * size) / unit; to < stop; )
      target[to++] = words[position++] as number;
  }
}

/** Pieces closer together than this in the file are read together. */
export const GAP = 16 * 1024;
/** At most this much is read at once into memory of our own. */
export const WINDOW = 8 * 2 ** 20;
/** Windows up to this size go through the page cache, for many small reads in the same area. */
export const CACHED = 16 * 1024;
