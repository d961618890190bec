import type { FileBytes, Place } from '../../hdf5/format/file-bytes.ts';
import { CACHED, GAP, WINDOW } from '../../hdf5/layouts/row-major.ts';
import type { Io } from '../../storage/io.ts';
import type { BlockIndex } from './index.ts';
import type { Runs } from './visible.ts';

/** At most so many are copied together. */
const RUNS_A_READ = 65_536;

/** How runs are read. */
interface RunReader {
  readonly index: BlockIndex;
  /** Bytes of an element. */
  readonly size: number;
  fileOf(block: number): FileBytes;
  mayOverlap(blocks: Uint32Array): boolean;
  together(blocks: Uint32Array, partOf: (block: number, i: number) => Place): Io<void>;
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
  if (reader.mayOverlap(blocks))
    yield* reader.together(blocks, (block, i) => ({
      address: firstByte(block),
      length: (lengths[i] as number) * size,
    }));
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
