// Decodes the little-endian fields of HDF5 structures, and refuses what a damaged file may contain.

import { lookup3 } from '../../base/checksum.ts';
import { formatError } from '../../base/errors.ts';

/** The undefined address: all bits one in the file, -1 here. */
export const UNDEFINED = -1;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Text of the file. A byte order mark stays part of a name: without it two different names could become one. */
export function textFrom(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/**
 * Reads fields one after the other from bytes of the file. Every read is checked against the end, and every count and address
 * against 2^53 - 1, so that a damaged file always gives FORMAT with the offset.
 */
export class Cursor {
  readonly bytes: Uint8Array;
  /** File offset of bytes[0], for error messages. */
  readonly base: number;
  at: number;
  end: number;

  constructor(bytes: Uint8Array, base: number, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.base = base;
    this.at = at;
    // A damaged length must not lead behind the bytes.
    this.end = Math.min(end, bytes.length);
  }

  get left(): number {
    return this.end - this.at;
  }

  /** The file offset of the next byte. */
  get offset(): number {
    return this.base + this.at;
  }

  fail(message: string): never {
    throw formatError(message, this.offset);
  }

  /** Consumes `count` bytes and gives their position; throws if there are fewer. */
  need(count: number, what = 'field'): number {
    if (count > this.end - this.at) this.fail(`${what} of ${count} bytes where only ${this.end - this.at} are left`);
    const at = this.at;
    this.at += count;
    return at;
  }

  skip(count: number): void {
    this.need(count, 'padding');
  }

  /** A file with thousands of objects has hundreds of thousands of cursors: each would need a DataView of its own. */
  #byte(at: number): number {
    return this.bytes[at] as number;
  }

  u8(): number {
    return this.bytes[this.need(1)] as number;
  }

  u16(): number {
    const at = this.need(2);
    return this.#byte(at) | (this.#byte(at + 1) << 8);
  }

  u32(): number {
    return this.i32() >>> 0;
  }

  /** An unsigned integer of 1 to 8 bytes; beyond 2^53 - 1 is refused. */
  uint(size: number): number {
    const at = this.need(size);
    let value = 0;
    for (let i = size - 1; i >= 0; i--) value = value * 256 + this.#byte(at + i);
    if (value > Number.MAX_SAFE_INTEGER) {
      this.at = at;
      this.fail('number beyond 2^53 - 1');
    }
    return value;
  }

  u64(): number {
    return this.uint(8);
  }

  /** An address or a size of `size` bytes; UNDEFINED if all bits are one, which for a size means unlimited. */
  address(size: number): number {
    const at = this.at;
    this.need(size);
    for (let i = 0; i < size; i++) {
      if (this.bytes[at + i] !== 0xff) {
        this.at = at;
        return this.uint(size);
      }
    }
    return UNDEFINED;
  }

  /** A size that nothing reaches, as {@link address}: one beyond 2^53 - 1 counts as that. */
  limit(size: number): number {
    const isLarge = size === 8 && ((this.bytes[this.at + 7] ?? 0) > 0 || (this.bytes[this.at + 6] ?? 0) > 31);
    if (!isLarge || this.left < 8) return this.address(size);
    const isUnlimited = this.take(8).every((byte) => byte === 0xff);
    return isUnlimited ? UNDEFINED : Number.MAX_SAFE_INTEGER;
  }

  i32(): number {
    const at = this.need(4);
    return this.#byte(at) | (this.#byte(at + 1) << 8) | (this.#byte(at + 2) << 16) | (this.#byte(at + 3) << 24);
  }

  take(count: number, what = 'bytes'): Uint8Array {
    const at = this.need(count, what);
    return this.bytes.subarray(at, at + count);
  }

  /** Text that ends with a NUL, which is consumed. */
  cstring(what = 'name'): string {
    const stop = this.bytes.indexOf(0, this.at);
    if (stop < 0 || stop >= this.end) this.fail(`${what} without an end`);
    const value = textFrom(this.bytes.subarray(this.at, stop));
    this.at = stop + 1;
    return value;
  }

  string(count: number, what = 'name'): string {
    return textFrom(this.take(count, what));
  }

  /** A byte that must have this value, such as a version. */
  expect(value: number, what: string): void {
    const at = this.at;
    const got = this.u8();
    if (got !== value) {
      this.at = at;
      this.fail(`${what} is ${got}, expected ${value}`);
    }
  }

  /** Four letters that a structure begins with, such as OHDR. */
  signature(letters: string): void {
    const at = this.at;
    const got = this.string(4, 'signature');
    if (got !== letters) {
      this.at = at;
      this.fail(`signature ${letters} not found`);
    }
  }
}

/** Compares the checksum stored at `at` with that of all bytes before it; `offset` is the file offset of the structure. */
export function checkSum(cursor: Cursor, at: number, offset: number, what = ''): void {
  cursor.at = at;
  if (cursor.u32() !== lookup3(cursor.bytes, 0, at)) throw formatError(`checksum${what} is wrong`, offset);
}
