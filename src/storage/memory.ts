import { H5LogError } from '../base/errors.ts';
import { type BlockingStorage, type ByteStorage, checkPosition } from './storage.ts';

/** A storage in memory; `bytes()` is a copy of what it holds now. */
export interface MemoryStorage extends ByteStorage {
  readonly blocking: BlockingStorage;
  write(parts: readonly Uint8Array[], offset: number): Promise<void>;
  truncate(size: number): Promise<void>;
  sync(): Promise<void>;
  bytes(): Uint8Array<ArrayBuffer>;
}

/**
 * A file in memory, empty or with the contents of `bytes`, which are never changed. Closing it has no effect: it is the medium
 * and not a handle, so the same object can be passed to the next `File.open`, as a path could.
 *
 * ```ts
 * const storage = memoryStorage();
 * await (await File.create(storage)).close();
 * const file = await File.open(storage);
 * ```
 */
export function memoryStorage(bytes: Uint8Array | ArrayBuffer = new Uint8Array(0)): MemoryStorage {
  const name = 'memory';
  const given = bytesOf(bytes);
  if (!given) throw new H5LogError('OPTION', 'an ArrayBuffer or a Uint8Array is needed');
  const contents = new Contents(given);
  const blocking: BlockingStorage = {
    size: () => contents.size,
    read(into, offset) {
      checkPosition(name, offset);
      return contents.read(into, offset);
    },
    write(parts, offset) {
      checkPosition(name, offset);
      for (const part of parts) {
        contents.write(part, offset);
        offset += part.byteLength;
      }
    },
    truncate(size) {
      checkPosition(name, size);
      contents.truncate(size);
    },
    sync() {},
    close() {},
  };
  // `async` only turns exceptions of the blocking half into rejections: the work is done when the call returns.
  return {
    name,
    blocking,
    size: async () => blocking.size(),
    read: async (into, offset) => blocking.read(into, offset),
    write: async (parts, offset) => blocking.write(parts, offset),
    truncate: async (size) => blocking.truncate(size),
    sync: async () => {},
    close: async () => {},
    bytes: () => contents.copy(),
  };
}

/** The bytes of an ArrayBuffer or a Uint8Array, also of another realm, where `instanceof` fails; undefined for anything else. */
export function bytesOf(source: unknown): Uint8Array | undefined {
  switch (Object.prototype.toString.call(source)) {
    case '[object Uint8Array]':
      return source as Uint8Array;
    case '[object ArrayBuffer]':
    case '[object SharedArrayBuffer]':
      return new Uint8Array(source as ArrayBuffer);
    default:
      return undefined;
  }
}

/** Bytes that grow like a file: a write beyond the end leaves a gap of zeros, and truncated bytes are gone. */
export class Contents {
  size: number;
  #bytes: Uint8Array;
  #owned = false;

  /** The given bytes are never changed: they are copied at the first change. */
  constructor(bytes: Uint8Array = new Uint8Array(0)) {
    this.#bytes = bytes;
    this.size = bytes.byteLength;
  }

  read(into: Uint8Array, offset: number): number {
    const length = Math.max(0, Math.min(into.byteLength, this.size - offset));
    if (length > 0) into.set(this.#bytes.subarray(offset, offset + length));
    return length;
  }

  write(bytes: Uint8Array, offset: number): void {
    // As with pwrite, an empty write beyond the end does not grow the file.
    if (bytes.byteLength === 0) return;
    const end = offset + bytes.byteLength;
    this.#reserve(end);
    this.#bytes.set(bytes, offset);
    this.size = Math.max(this.size, end);
  }

  truncate(size: number): void {
    this.#reserve(size);
    // Bytes beyond `size` are always zero, so that growing needs no clearing.
    if (size < this.size) this.#bytes.fill(0, size, this.size);
    this.size = size;
  }

  /** A copy of everything. */
  copy(): Uint8Array<ArrayBuffer> {
    const copy = new Uint8Array(this.size);
    copy.set(this.#bytes.subarray(0, this.size));
    return copy;
  }

  /** An independent copy. */
  clone(): Contents {
    const clone = new Contents(this.copy());
    clone.#owned = true;
    return clone;
  }

  #reserve(size: number): void {
    const capacity = this.#bytes.byteLength;
    if (this.#owned && size <= capacity) return;
    const grown = allocate(size <= capacity ? capacity : Math.max(size, 2 * capacity, 1024), size);
    grown.set(this.#bytes.subarray(0, this.size));
    this.#bytes = grown;
    this.#owned = true;
  }
}

function allocate(wanted: number, needed: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(wanted);
  } catch (cause) {
    // Close to the size limit of one buffer, doubling fails before memory runs out.
    if (wanted > needed) return allocate(needed, needed);
    throw new H5LogError('STORAGE', `no memory for ${needed} bytes`, { cause });
  }
}
