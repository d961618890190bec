// Rows of chunks: parts of chunks that lie in the file, or in a buffer, as one run of bytes, and go into the result as rows of some
// length. To make a view of a short row takes as long as to copy it, so that views are used again.

import { isContiguous } from '../../../space/box.ts';
import type { RowPlaces } from '../../../space/copy.ts';
import { sizeOf } from '../../../space/shape.ts';
import type { Io } from '../../../storage/io.ts';
import type { FileBytes } from '../../format/file-bytes.ts';
import { CACHED } from '../row-major.ts';

/** A blocking read copies shorter rows than this, down to SHORT_ROW, out of a buffer that stays in the processor's cache. */
export const LISTED_ROW = 4096;
export const SHORT_ROW = 64;
const ROW_BUFFER = 2 ** 19;

/** The part of a box that lies in a chunk: where it begins in either, and its count. */
export interface Part {
  /** The shape of the chunk. */
  readonly chunk: Float64Array;
  readonly inChunk: Float64Array;
  readonly inBox: Float64Array;
  readonly count: Float64Array;
}

/** Views of the rows in buffers that are filled again and again: to make one takes as long as to copy the row. */
export class RowViews {
  readonly #known = new Map<
    ArrayBufferLike,
    { readonly at: number; readonly run: number; readonly rows: Uint8Array[] }
  >();

  /** At least `count` rows of `run` bytes, which follow one another in `bytes` from `from` on. */
  of(bytes: Uint8Array, from: number, run: number, count: number): readonly Uint8Array[] {
    const at = bytes.byteOffset + from;
    let known = this.#known.get(bytes.buffer);
    if (known?.at !== at || known.run !== run) {
      known = { at, run, rows: [] };
      this.#known.set(bytes.buffer, known);
    }
    const { rows } = known;
    while (rows.length < count) rows.push(new Uint8Array(bytes.buffer, at + rows.length * run, run));
    return rows;
  }
}

/** Rows that follow one another in a file, on their way to where they belong. */
export class RowBuffer {
  readonly #file: FileBytes;
  readonly #out: Uint8Array;
  readonly #views = new RowViews();
  #bytes = new Uint8Array(0);
  /** Where the rows belong that will be read next, from an address on. */
  #waiting: Float64Array[] = [];
  #address = 0;
  #run = 1;
  #count = 0;

  constructor(file: FileBytes, out: Uint8Array) {
    this.#file = file;
    this.#out = out;
  }

  /** Rows from an address on, each with its place. They are read with those before them if these lie there in the file. */
  *add(address: number, { places, run }: RowPlaces): Io<void> {
    const most = Math.floor(ROW_BUFFER / run);
    for (let done = 0; done < places.length; ) {
      const begin = address + done * run;
      const continues = run === this.#run && begin === this.#address + this.#count * run;
      if (!continues || this.#count >= most) {
        yield* this.read();
        this.#address = begin;
        this.#run = run;
      }
      const some = places.subarray(done, done + most - this.#count);
      this.#waiting.push(some);
      this.#count += some.length;
      done += some.length;
    }
  }

  /** Reads what waits. */
  *read(): Io<void> {
    const bytes = this.#count * this.#run;
    if (bytes === 0) return;
    if (this.#bytes.length < bytes) this.#bytes = new Uint8Array(bytes);
    yield* this.#file.readInto(this.#bytes.subarray(0, bytes), this.#address, 'chunk');
    const rows = this.#views.of(this.#bytes, 0, this.#run, this.#count);
    let next = 0;
    for (const places of this.#waiting)
      for (let i = 0; i < places.length; i++) this.#out.set(rows[next++] as Uint8Array, places[i]);
    this.#waiting = [];
    this.#count = 0;
  }
}

/** Bytes of a row of a part in its box, if the part is a run of some length in its chunk; else 0. */
export function rowIn({ chunk, count }: Part, box: Float64Array, size: number): number {
  if (!isContiguous(chunk, count) || size * sizeOf(count) <= CACHED) return 0;
  // The last dimensions that the part fills, and the one before them, are a row.
  let row = size;
  for (let d = count.length - 1; d >= 0; d--) {
    row *= count[d] as number;
    if (count[d] !== box[d]) break;
  }
  return row;
}
