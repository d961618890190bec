import { H5LogError } from '../base/errors.ts';

/** Bytes that grow like a file: a write beyond the end leaves zeros, and what was cut off does not come back. */
export class Contents {
  size: number;
  #bytes: Uint8Array;
  #owned = false;

  /** The given bytes are not copied before the first change and never changed. */
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
    // As pwrite: an empty write beyond the end does not grow the file.
    if (bytes.byteLength === 0) return;
    const end = offset + bytes.byteLength;
    this.#reserve(end);
    this.#bytes.set(bytes, offset);
    this.size = Math.max(this.size, end);
  }

  truncate(size: number): void {
    this.#reserve(size);
    // Bytes behind `size` are always zero, so that growing needs no clearing.
    if (size < this.size) this.#bytes.fill(0, size, this.size);
    this.size = size;
  }

  /** A copy of everything. */
  copy(): Uint8Array<ArrayBuffer> {
    const copy = new Uint8Array(this.size);
    copy.set(this.#bytes.subarray(0, this.size));
    return copy;
  }

  /** The same again, to be changed apart. */
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
    // Close to the limit of one buffer doubling fails before the memory is full.
    if (wanted > needed) return allocate(needed, needed);
    throw new H5LogError('STORAGE', `no memory for ${needed} bytes`, { cause });
  }
}
