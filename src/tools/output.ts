import { H5LogError } from '../base/errors.ts';
import type { Appender } from '../hdf5/write/appender.ts';
import { type Io, onStorage } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';

/** Writes shorter than this are gathered in a batch. */
const SMALL = 128 * 1024;
const BATCH = 2 ** 20;
/** Data begins at a multiple of this; so neighbours in a batch are less than this apart. */
const PADDING = 8;
/** Data from this size on begins at a page: it can be mapped, and two ranks never write to the same page. */
const LARGE = 2 ** 20;
const PAGE = 4096;
/** Bytes that are copied from one file to another at a time. */
const WINDOW = 8 * 2 ** 20;

interface OutputOptions {
  /** The file, if it is not the one that the runner works on. */
  readonly on?: ByteStorage;
  /** Makes room before a write: it would take a size that it did not give the file for the work of another program. */
  readonly appender?: Appender;
  /** Gets all bytes in the order of writing, while they are on their way. */
  readonly onBytes?: (bytes: Uint8Array) => void;
}

/** The data that a tool writes. Positions are file offsets. */
export class Output {
  /** First byte that nothing has yet. */
  end: number;
  /** Bytes written so far. */
  written = 0;
  readonly #options: OutputOptions;
  #batch: Uint8Array = new Uint8Array(0);
  #batchAt = 0;
  #batched = 0;
  /** A write of the caller's own buffer may be under way. */
  #isLent = false;

  constructor(end: number, options: OutputOptions = {}) {
    this.end = end;
    this.#options = options;
  }

  /** Aligned room for so many bytes. */
  take(size: number): number {
    const alignment = size >= LARGE ? PAGE : PADDING;
    const at = Math.ceil(this.end / alignment) * alignment;
    this.end = at + size;
    return at;
  }

  /** Writes bytes right behind the last ones; gives their offset. As for {@link write}, they must stay as they are. */
  *append(bytes: Uint8Array): Io<number> {
    const at = this.end;
    this.end += bytes.length;
    yield* this.write(bytes, at);
    return at;
  }

  /**
   * Writes bytes into room that was taken. They must stay as they are until the next write has returned, because the runner only
   * begins writes.
   */
  *write(bytes: Uint8Array, at: number): Io<void> {
    this.written += bytes.length;
    if (bytes.length >= SMALL) {
      yield* this.flush();
      yield* this.#put(bytes, at);
      this.#isLent = true;
      return;
    }
    // These bytes are copied, but the caller may use the buffer of the write before again.
    if (this.#isLent) yield* this.#wait(at);
    const gap = at - (this.#batchAt + this.#batched);
    const isNear = gap >= 0 && gap < PADDING && this.#batched + gap + bytes.length <= BATCH;
    if (this.#batched > 0 && !isNear) yield* this.flush();
    if (this.#batched === 0) {
      // Each batch has a buffer of its own: the one before may still be on its way.
      this.#batch = new Uint8Array(BATCH);
      this.#batchAt = at;
    }
    this.#batch.set(bytes, at - this.#batchAt);
    this.#batched = at - this.#batchAt + bytes.length;
  }

  /** Writes what was gathered. */
  *flush(): Io<void> {
    if (this.#batched === 0) return;
    const bytes = this.#batch.subarray(0, this.#batched);
    this.#batched = 0;
    yield* this.#put(bytes, this.#batchAt);
  }

  /** The runner lets a write wait for the one before it, also one without bytes. */
  *#wait(offset: number): Io<void> {
    yield { op: 'write', parts: [], offset, on: this.#options.on };
    this.#isLent = false;
  }

  *#put(bytes: Uint8Array, offset: number): Io<void> {
    const { on, appender, onBytes } = this.#options;
    if (appender) {
      const room = appender.reserve(offset + bytes.length - appender.base);
      yield* on ? onStorage(on, room) : room;
    }
    yield { op: 'write', parts: [bytes], offset, on, meanwhile: () => onBytes?.(bytes) };
  }
}

/** Two buffers in turn, so that one can be written while the next is filled. */
export class TwoBuffers {
  readonly #buffers: [Uint8Array, Uint8Array] = [new Uint8Array(0), new Uint8Array(0)];
  #turn: 0 | 1 = 0;

  next(size: number): Uint8Array {
    this.#turn = this.#turn === 0 ? 1 : 0;
    if (this.#buffers[this.#turn].length < size) this.#buffers[this.#turn] = new Uint8Array(size);
    return this.#buffers[this.#turn].subarray(0, size);
  }
}

/** Copies the first bytes of another file. */
export function* copyBytes(from: ByteStorage, end: number): Io<void> {
  const buffers = new TwoBuffers();
  for (let at = 0; at < end; ) {
    const bytes = buffers.next(Math.min(WINDOW, end - at));
    const count = yield { op: 'read', into: bytes, offset: at, on: from };
    if (count < bytes.length)
      throw new H5LogError('FORMAT', `${from.name} ends at byte ${at + count}, before its ${end} bytes`, {
        file: from.name,
        offset: at + count,
      });
    yield { op: 'write', parts: [bytes], offset: at };
    at += bytes.length;
  }
}
