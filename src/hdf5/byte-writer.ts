const encoder = new TextEncoder();

/** Builds little-endian structures in a growing buffer. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  length = 0;

  constructor(capacity = 64) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  #room(count: number): number {
    const at = this.length;
    this.length = at + count;
    if (this.length > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(this.length, this.#bytes.length * 2));
      bytes.set(this.#bytes.subarray(0, at));
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    return at;
  }

  u8(value: number): this {
    this.#view.setUint8(this.#room(1), value);
    return this;
  }

  u16(value: number): this {
    this.#view.setUint16(this.#room(2), value, true);
    return this;
  }

  u32(value: number): this {
    this.#view.setUint32(this.#room(4), value, true);
    return this;
  }

  /** An unsigned integer, or -1 for all bits one. */
  u64(value: number): this {
    putU64(this.#view, this.#room(8), value);
    return this;
  }

  /** An unsigned integer in as few bytes as the caller says. */
  uint(value: number, size: number): this {
    const at = this.#room(size);
    for (let i = 0, rest = value; i < size; i++) {
      this.#view.setUint8(at + i, rest % 256);
      rest = Math.floor(rest / 256);
    }
    return this;
  }

  put(bytes: Uint8Array): this {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  text(value: string): this {
    return this.put(encoder.encode(value));
  }

  zeros(count: number): this {
    const at = this.#room(count);
    this.#bytes.fill(0, at, at + count);
    return this;
  }

  /** What was written so far, without a copy. */
  done(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}

/** Writes an address or a size; -1 becomes all bits one. */
export function putU64(view: DataView, at: number, value: number): void {
  if (value < 0) {
    view.setUint32(at, 0xffffffff, true);
    view.setUint32(at + 4, 0xffffffff, true);
  } else {
    view.setUint32(at, value % 0x100000000, true);
    view.setUint32(at + 4, Math.floor(value / 0x100000000), true);
  }
}

/** How many bytes a non-negative number needs, at least one. */
export function bytesFor(value: number): number {
  let size = 1;
  for (let rest = Math.floor(value / 256); rest > 0; rest = Math.floor(rest / 256)) size++;
  return size;
}
