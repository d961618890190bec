import { H5LogError } from '../../base/errors.ts';

/** Chunks start small, because a file may have 10,000 datasets with one each, and double up to the large size. */
const SMALL_CHUNK = 512;
const LARGE_CHUNK = 4 * 2 ** 20;
/** Bytes of free chunks that the pool holds; filling fresh memory takes 1.5 times as long as reused memory. */
const POOL_SIZE = 32 * 2 ** 20;

/** Memory chunks of committed stages, for reuse. */
export class ArenaPool {
  readonly #free = new Map<number, Uint8Array[]>();
  #bytes = 0;

  take(size: number): Uint8Array {
    const list = this.#free.get(size);
    const chunk = list?.pop();
    if (!chunk) return new Uint8Array(size);
    this.#bytes -= size;
    return chunk;
  }

  give(chunk: Uint8Array): void {
    if (chunk.length > LARGE_CHUNK || this.#bytes + chunk.length > POOL_SIZE) return;
    let list = this.#free.get(chunk.length);
    if (!list) {
      list = [];
      this.#free.set(chunk.length, list);
    }
    list.push(chunk);
    this.#bytes += chunk.length;
  }
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
  readonly #chunks: Uint8Array[] = [];
  /** The chunk being filled and how far. */
  chunk: Uint8Array = new Uint8Array(0);
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
    const last = this.#parts.length > 0 ? (this.#parts[this.#parts.length - 1] as Part) : null;
    if (last && last.chunk === this.chunk && last.to === this.used) last.to += count;
    else this.#parts.push({ chunk: this.chunk, from: this.used, to: this.used + count, lent: null });
    this.used += count;
    this.size += count;
    this.held += count;
  }

  lend(lent: LentPart): void {
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

  /** The data is in the file: the chunks may be filled again. */
  release(): void {
    for (const chunk of this.#chunks) this.#pool.give(chunk);
    this.#chunks.length = 0;
    this.#parts.length = 0;
  }
}

export function goneBuffer(path: string): H5LogError {
  const text = `${path}: a buffer posted with copy: false was detached or resized before it was in the file`;
  return new H5LogError('STORAGE', text, { object: path });
}
