import { H5LogError } from '../../base/errors.ts';

/** Chunks start small, because a file may have 10,000 datasets with one each, and double up to the large size. */
const SMALL_CHUNK = 512;
const LARGE_CHUNK = 4 * 2 ** 20;
/** Bytes of free chunks that the pool holds without a buffer limit, and the largest of them. */
const POOL_SIZE = 96 * 2 ** 20;
const LARGEST_KEPT = 16 * 2 ** 20;
/** V8 takes longer to make an empty array than one of a few bytes, and a flush has two arenas. */
const NO_CHUNK = new Uint8Array(0);

/**
 * Memory chunks of committed stages, for reuse: filling fresh memory takes half as long again, and several times as long in a virtual
 * machine, where the first touch of every page is slow. With a buffer limit as many are kept as were in use at once: the garbage
 * collector leaves large buffers so long that a process would hold the limit two or three times over.
 */
export class ArenaPool {
  /** Free chunks by their size. */
  readonly #free = new Map<number, Uint8Array[]>();
  readonly #isBounded: boolean;
  /** Bytes of free chunks, of those in use, and the most that were in use at once. */
  #bytes = 0;
  #used = 0;
  #mostUsed = 0;

  constructor(bufferLimit = Infinity) {
    this.#isBounded = bufferLimit < Infinity;
    this.#mostUsed = this.#isBounded ? bufferLimit : 0;
  }

  take(size: number): Uint8Array {
    this.#used += size;
    const chunk = this.#free.get(size)?.pop();
    if (chunk) {
      this.#bytes -= size;
      return chunk;
    }
    // Free chunks of other sizes are given up: kept, they would add to what the buffer limit allows.
    if (this.#isBounded && this.#used + this.#bytes > this.#mostUsed) {
      this.#free.clear();
      this.#bytes = 0;
      this.#mostUsed = Math.max(this.#mostUsed, this.#used);
    }
    return new Uint8Array(size);
  }

  /** Takes a chunk back: for reuse, or because somebody may still read from it. */
  give(chunk: Uint8Array, reuse: boolean): void {
    const { length } = chunk;
    this.#used -= length;
    if (!reuse || (!this.#isBounded && (length > LARGEST_KEPT || this.#bytes + length > POOL_SIZE))) return;
    let list = this.#free.get(length);
    if (!list) {
      list = [];
      this.#free.set(length, list);
    }
    list.push(chunk);
    this.#bytes += length;
  }
}

let shared: WeakRef<ArenaPool> | null = null;

/** The pool of all files without a buffer limit. It outlives a file, until the garbage collector wants its memory. */
export function sharedPool(): ArenaPool {
  const known = shared?.deref();
  if (known) return known;
  const pool = new ArenaPool();
  shared = new WeakRef(pool);
  return pool;
}

/** A caller's buffer, read when it is flushed. */
export interface LentPart {
  readonly size: number;
  /** The bytes in the dataset's file type; throws when the buffer is gone. */
  bytes(): Uint8Array;
}

/** A stretch of a chunk, or a part lent by the caller. */
interface Part {
  readonly chunk: Uint8Array | null;
  readonly from: number;
  to: number;
  readonly lent: LentPart | null;
}

/** The data that was posted to one dataset, in order: stretches of chunks, and buffers lent by the caller. */
export class Arena {
  readonly #pool: ArenaPool;
  readonly #parts: Part[] = [];
  /** The part that grows. */
  #last: Part | null = null;
  readonly #chunks: Uint8Array[] = [];
  /** The chunk being filled and how far. */
  chunk: Uint8Array = NO_CHUNK;
  used = 0;
  #next = SMALL_CHUNK;
  /** Bytes in total, and those in chunks (not lent). */
  size = 0;
  held = 0;

  constructor(pool: ArenaPool) {
    this.#pool = pool;
  }

  /** Makes room for `count` bytes in one stretch of `chunk` from `used` on; the caller fills it and calls {@link advance}. */
  reserve(count: number): void {
    if (this.used + count <= this.chunk.length) return;
    const size = Math.max(this.#next, count);
    this.chunk = this.#pool.take(size);
    this.#chunks.push(this.chunk);
    this.used = 0;
    this.#next = Math.min(LARGE_CHUNK, Math.max(this.#next, size <= LARGE_CHUNK ? size : 0) * 2);
  }

  advance(count: number): void {
    const last = this.#last;
    if (last && last.chunk === this.chunk && last.to === this.used) last.to += count;
    else {
      this.#last = { chunk: this.chunk, from: this.used, to: this.used + count, lent: null };
      this.#parts.push(this.#last);
    }
    this.used += count;
    this.size += count;
    this.held += count;
  }

  /** Takes over a chunk of the pool that begins with `count` bytes of data, as the next part. */
  adopt(chunk: Uint8Array, count: number): void {
    this.#last = null;
    this.#chunks.push(chunk);
    this.#parts.push({ chunk, from: 0, to: count, lent: null });
    this.size += count;
    this.held += count;
  }

  lend(lent: LentPart): void {
    this.#last = null;
    this.#parts.push({ chunk: null, from: 0, to: lent.size, lent });
    this.size += lent.size;
  }

  /** Everything in order, for writing. */
  *contents(): Iterable<{ bytes: Uint8Array; lent: boolean }> {
    for (const { chunk, from, to, lent } of this.#parts) {
      yield chunk
        ? { bytes: chunk.subarray(from, to), lent: false }
        : { bytes: (lent as LentPart).bytes(), lent: true };
    }
  }

  /**
   * A function that gives so many bytes, each time those behind the last. They are copied together only if they lie in several
   * parts, into a buffer that the next call may use again.
   */
  reader(): (count: number) => Uint8Array {
    const parts = this.contents()[Symbol.iterator]();
    let [part, joined] = [new Uint8Array(0), new Uint8Array(0)] as [Uint8Array, Uint8Array];
    const nextPart = (): Uint8Array => {
      const { value } = parts.next();
      if (!value) throw new H5LogError('STORAGE', 'less data is held than was posted');
      return value.bytes;
    };
    return (count) => {
      if (part.length === 0) part = nextPart();
      if (count <= part.length) {
        const bytes = part.subarray(0, count);
        part = part.subarray(count);
        return bytes;
      }
      if (joined.length < count) joined = new Uint8Array(count);
      for (let filled = 0; filled < count; ) {
        if (part.length === 0) part = nextPart();
        const some = part.subarray(0, count - filled);
        joined.set(some, filled);
        filled += some.length;
        part = part.subarray(some.length);
      }
      return joined.subarray(0, count);
    };
  }

  /** The bytes [at, at + count), copied together only if they lie in several parts. */
  slice(at: number, count: number): Uint8Array {
    let start = 0;
    let out: Uint8Array | null = null;
    let filled = 0;
    for (const { chunk, from, to, lent } of this.#parts) {
      const end = start + (to - from);
      if (end > at && start < at + count) {
        const bytes = chunk ? chunk.subarray(from, to) : (lent as LentPart).bytes();
        const piece = bytes.subarray(Math.max(0, at - start), Math.min(bytes.length, at + count - start));
        if (piece.length === count) return piece;
        out ??= new Uint8Array(count);
        out.set(piece, filled);
        filled += piece.length;
      }
      start = end;
      if (start >= at + count) break;
    }
    return out ?? new Uint8Array(0);
  }

  /** The data is in the file, or not needed: the chunks may be filled again, unless a write may still be reading from them. */
  release(reuse = true): void {
    for (const chunk of this.#chunks) this.#pool.give(chunk, reuse);
    this.#chunks.length = 0;
    if (reuse) this.#parts.length = 0;
    if (reuse) this.#last = null;
  }
}

export function goneBuffer(path: string): H5LogError {
  const text = `${path}: a buffer posted with copy: false was detached or resized before it was in the file`;
  return new H5LogError('STORAGE', text, { object: path });
}
