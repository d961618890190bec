// Encodes the little-endian fields of HDF5 structures.

const encoder = new TextEncoder();

// A header message is some 30 bytes long, and a file has thousands. A buffer for each would cost more time than everything
// else, so they are cut from slabs.
const SLAB = 64 * 1024;
let slab = new Uint8Array(0);
let slabView = new DataView(slab.buffer);
let slabUsed = 0;

/** Builds little-endian structures in a growing buffer. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #start: number;
  #limit: number;
  length = 0;

  constructor(capacity = 64) {
    if (slabUsed + capacity > slab.length) newSlab(capacity);
    this.#bytes = slab;
    this.#view = slabView;
    this.#start = slabUsed;
    slabUsed += capacity;
    this.#limit = slabUsed;
  }

  /** Adds `count` bytes at the end and gives their position in the slab. */
  #room(count: number): number {
    const at = this.#start + this.length;
    this.length += count;
    if (at + count <= this.#limit) return at;
    this.#extend(count);
    return this.#start + this.length - count;
  }

  #extend(count: number): void {
    const needed = this.#start + this.length;
    if (this.#bytes === slab && this.#limit === slabUsed && needed <= slab.length) {
      slabUsed = this.#limit = Math.min(slab.length, needed + count);
      return;
    }
    const old = this.#bytes.subarray(this.#start, needed - count);
    const capacity = this.length * 2;
    if (slabUsed + capacity > slab.length) newSlab(capacity);
    slab.set(old, slabUsed);
    this.#bytes = slab;
    this.#view = slabView;
    this.#start = slabUsed;
    slabUsed += capacity;
    this.#limit = slabUsed;
  }

  u8(value: number): this {
    const at = this.#room(1); // before the view is used: #room may change it
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    const at = this.#room(2); // before the view is used: #room may change it
    this.#view.setUint16(at, value, true);
    return this;
  }

  u32(value: number): this {
    const at = this.#room(4); // before the view is used: #room may change it
    this.#view.setUint32(at, value, true);
    return this;
  }

  /** An unsigned integer, or -1 for all bits one. */
  u64(value: number): this {
    const at = this.#room(8);
    putU64(this.#view, at, value);
    return this;
  }

  /** An unsigned integer of `size` bytes. */
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
    if (bytes.length > 24) this.#bytes.set(bytes, at);
    else for (let i = 0; i < bytes.length; i++) this.#bytes[at + i] = bytes[i] as number;
    return this;
  }

  text(value: string): this {
    const at = this.#room(value.length);
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code > 127) {
        this.length -= value.length;
        return this.put(encoder.encode(value));
      }
      this.#bytes[at + i] = code;
    }
    return this;
  }

  zeros(count: number): this {
    const at = this.#room(count);
    this.#bytes.fill(0, at, at + count);
    return this;
  }

  /** The bytes so far, without a copy. Writing may go on; it does not change them. */
  done(): Uint8Array {
    const end = this.#start + this.length;
    if (this.#bytes === slab && this.#limit === slabUsed) slabUsed = this.#limit = end;
    return this.#bytes.subarray(this.#start, end);
  }
}

function newSlab(capacity: number): void {
  slab = new Uint8Array(Math.max(SLAB, capacity));
  slabView = new DataView(slab.buffer);
  slabUsed = 0;
}

/** How many bytes a text takes in UTF-8. */
export function textLength(value: string): number {
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 127) return encoder.encode(value).length;
  return value.length;
}

/** Writes an address or a size; a negative one becomes all bits one: undefined, or unlimited. */
export function putU64(view: DataView, at: number, value: number): void {
  if (value < 0) {
    view.setUint32(at, 0xffffffff, true);
    view.setUint32(at + 4, 0xffffffff, true);
  } else {
    view.setUint32(at, value >>> 0, true); // modulo 2^32, also of what is larger
    view.setUint32(at + 4, Math.floor(value / 0x100000000), true);
  }
}

/** Puts an unsigned 64-bit number, or all ones for a negative one, without a view of the bytes: a commit writes a few addresses into many messages. */
export function putAddress(bytes: Uint8Array, at: number, value: number): void {
  const low = value < 0 ? -1 : value >>> 0;
  const high = value < 0 ? -1 : Math.floor(value / 0x100000000);
  for (let i = 0; i < 4; i++) {
    bytes[at + i] = low >>> (8 * i);
    bytes[at + 4 + i] = high >>> (8 * i);
  }
}

/** Writes an unsigned integer of `size` bytes and gives the position behind it. */
export function putUint(bytes: Uint8Array, at: number, value: number, size: number): number {
  for (let i = 0, rest = value; i < size; i++) {
    bytes[at + i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return at + size;
}

/** How many bytes a non-negative number needs, at least one. */
export function bytesFor(value: number): number {
  let size = 1;
  for (let rest = Math.floor(value / 256); rest > 0; rest = Math.floor(rest / 256)) size++;
  return size;
}
