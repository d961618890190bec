// Reading parts of arrays that lie in a file in row-major order: contiguous datasets, chunks without filters, blocks of a log.

import { isContiguous, positionIn } from '../../space/box.ts';
import { copyBox } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import type { FileBytes } from '../format/file-bytes.ts';

/** Pieces closer together than this in the file are read together. */
export const GAP = 16 * 1024;
/** At most this much is read at once into memory of our own. */
export const WINDOW = 8 * 2 ** 20;
/** Windows up to this size go through the page cache, for many small reads in the same area. */
export const CACHED = 16 * 1024;

/** What arrays are read from: a file, or several. */
type Bytes = Pick<FileBytes, 'read' | 'readInto' | 'mustHold'>;

/** A box in an array: the shape of the array, and where the box begins in it. */
interface Within {
  readonly shape: Float64Array;
  readonly start: Float64Array;
}

/**
 * Reads boxes out of row-major arrays in files. It keeps a buffer for all boxes of one read. Each read has a reader of its own:
 * several may be under way together.
 */
export class RowMajorReader {
  readonly #what: string;
  #window = new Uint8Array(0);

  /** `what` is the name of the data in messages. */
  constructor(what: string) {
    this.#what = what;
  }

  /** Reads a box of `count` elements of `size` bytes: from the array at `address`, into the array at byte `at` of `out`. */
  *read(
    file: Bytes,
    address: number,
    from: Within,
    count: Float64Array,
    size: number,
    out: Uint8Array,
    at: number,
    to: Within,
  ): Io<void> {
    const rank = count.length;
    const first = positionIn(from.shape, from.start);
    const span = (spanOf(from.shape, count) + 1) * size;
    const begin = address + first * size;
    if (isContiguous(from.shape, count) && isContiguous(to.shape, count)) {
      const place = at + positionIn(to.shape, to.start) * size;
      if (span > CACHED) yield* this.direct(file, out.subarray(place, place + span), begin);
      else out.set(yield* file.read(begin, span, this.#what), place);
      return;
    }
    if (span <= WINDOW) {
      const bytes = yield* this.fetch(file, begin, span);
      copyBox(bytes, -first * size, from.shape, from.start, out, at, to.shape, to.start, count, size);
      return;
    }
    // Slices along the first dimension in which there are several, without what lies between them if that is much.
    let cut = 0;
    while (cut < rank - 1 && count[cut] === 1) cut++;
    const step = size * sizeOf(from.shape.subarray(cut + 1));
    const gap = step - (span - ((count[cut] as number) - 1) * step);
    const rows = gap > GAP ? 1 : Math.max(1, Math.floor(WINDOW / step));
    for (let done = 0; done < (count[cut] as number); done += rows) {
      const source = { shape: from.shape, start: from.start.slice() };
      const target = { shape: to.shape, start: to.start.slice() };
      const part = count.slice();
      source.start[cut] = (from.start[cut] as number) + done;
      target.start[cut] = (to.start[cut] as number) + done;
      part[cut] = Math.min(rows, (count[cut] as number) - done);
      yield* this.read(file, address, source, part, size, out, at, target);
    }
  }

  /** Bytes of a file, from pages or in a buffer that the next call uses again. */
  *fetch(file: Bytes, from: number, length: number): Io<Uint8Array> {
    if (length <= CACHED) return yield* file.read(from, length, this.#what);
    file.mustHold(from, length, this.#what);
    if (this.#window.length < length)
      this.#window = new Uint8Array(Math.max(length, Math.min(WINDOW, this.#window.length * 2)));
    const window = this.#window.subarray(0, length);
    yield* this.direct(file, window, from);
    return window;
  }

  *direct(file: Bytes, into: Uint8Array, address: number): Io<void> {
    yield* file.readInto(into, address, this.#what);
  }
}

/** How far the last element of a box lies behind its first one. */
function spanOf(shape: Float64Array, count: Float64Array): number {
  let span = 0;
  for (let d = 0; d < count.length; d++) span = span * (shape[d] as number) + (count[d] as number) - 1;
  return span;
}
