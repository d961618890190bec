// The nbit filter (5): of each number only the bits that its type uses, one after the other, most significant bit first. The
// parameters describe the type: [number of parameters, 1 if nothing is packed, number of elements, type ...]. A type is an atomic
// one [1, size, order, precision, offset], an array [2, size, type], a compound [3, size, members, (offset, type) ...] or anything
// else, whose bytes are kept [4, size].

import { formatError, H5LogError } from '../base/errors.ts';

/** Types within types, at most. */
const MOST_DEPTH = 32;

export interface Atomic {
  readonly kind: 'atomic';
  readonly size: number;
  /** Bits that an element takes in the packed data. */
  readonly bits: number;
  readonly big: boolean;
  readonly offset: number;
}

type Type =
  | Atomic
  | { readonly kind: 'bytes'; readonly size: number; readonly bits: number }
  | { readonly kind: 'array'; readonly size: number; readonly bits: number; readonly base: Type }
  | { readonly kind: 'compound'; readonly size: number; readonly bits: number; readonly members: readonly Member[] };

interface Member {
  readonly at: number;
  readonly type: Type;
}

class ParameterReader {
  readonly #values: readonly number[];
  #at = 3;
  /** libhdf5 packs members behind an array of arrays or compounds with parameters of that array: they are lost. */
  #mustEnd = false;

  constructor(values: readonly number[]) {
    this.#values = values;
  }

  #next(): number {
    if (this.#mustEnd)
      throw new H5LogError(
        'UNSUPPORTED',
        'nbit with members behind an array of compounds, which libhdf5 packs wrongly',
      );
    const value = this.#values[this.#at++];
    if (value === undefined) throw formatError(`nbit filter with only ${this.#values.length} parameters`);
    return value >>> 0;
  }

  type(depth = 0): Type {
    if (depth > MOST_DEPTH) throw formatError(`nbit filter with more than ${MOST_DEPTH} types within one another`);
    const kind = this.#next();
    const size = this.#next();
    if (size === 0) throw formatError('nbit filter with a type of no bytes');
    switch (kind) {
      case 1: {
        const order = this.#next();
        const bits = this.#next();
        const offset = this.#next();
        if (order > 1 || bits === 0 || bits + offset > size * 8)
          throw formatError(`nbit filter with ${bits} bits from bit ${offset} of ${size} bytes, byte order ${order}`);
        return { kind: 'atomic', size, bits, big: order === 1, offset };
      }
      case 2: {
        const base = this.type(depth + 1);
        if (base.kind === 'array' || base.kind === 'compound') this.#mustEnd = true;
        if (size % base.size !== 0)
          throw formatError(`nbit filter with an array of ${size} bytes of ${base.size} each`);
        return { kind: 'array', size, bits: (size / base.size) * base.bits, base };
      }
      case 3: {
        const members: Member[] = [];
        let bits = 0;
        for (let left = this.#next(); left > 0; left--) {
          const at = this.#next();
          const type = this.type(depth + 1);
          if (at + type.size > size)
            throw formatError(`nbit filter with a member beyond the ${size} bytes of its compound`);
          members.push({ at, type });
          bits += type.bits;
        }
        return { kind: 'compound', size, bits, members };
      }
      case 4:
        return { kind: 'bytes', size, bits: size * 8 };
      default:
        throw formatError(`nbit filter with a type of kind ${kind}`);
    }
  }
}

/** The number of elements and their type; null if the filter leaves the data as it is. */
export function parse(values: readonly number[]): { count: number; type: Type } | null {
  const [, unchanged, count] = values;
  if (count === undefined) throw formatError(`nbit filter with ${values.length} parameters`);
  return unchanged ? null : { count: count >>> 0, type: new ParameterReader(values).type() };
}

/** Undoes the filter; the result has at most `limit` bytes. Bits that the type does not use are zero. */
export function decodeNbit(bytes: Uint8Array, values: readonly number[], limit: number): Uint8Array {
  const parameters = parse(values);
  if (!parameters) return bytes;
  const { count, type } = parameters;
  if (count * type.size > limit)
    throw formatError(`nbit filter of ${count * type.size} bytes where ${limit} were expected`);
  if (Math.ceil((count * type.bits) / 8) > bytes.length)
    throw formatError(`nbit data of ${bytes.length} bytes for ${count} elements of ${type.bits} bits`);
  const out = new Uint8Array(count * type.size);
  if (isWord(type)) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const block = numberBlock();
    for (let i = 0; i < count; i += BLOCK) {
      const n = Math.min(BLOCK, count - i);
      unpackBits(view, (i / 8) * type.bits, type.bits, n, block);
      storeWords(block, n, type, out, i);
    }
    if (type.big) swapBytes(out, type.size);
  } else {
    const reader = new BitReader(bytes);
    const take = (at: number, shift: number, bits: number): void => {
      out[at] = (out[at] as number) | (reader.take(bits) << shift);
    };
    for (let i = 0; i < count; i++) visitBits(type, i * type.size, take);
  }
  return out;
}

/** Numbers of the sizes that typed arrays have. */
export function isWord(type: Type): type is Atomic {
  return type.kind === 'atomic' && (type.size === 1 || type.size === 2 || type.size === 4 || type.size === 8);
}

function storeWords({ low, high }: NumberBlock, count: number, type: Atomic, out: Uint8Array, first: number): void {
  const { size, offset, bits } = type;
  if (size === 8) {
    const words = new Uint32Array(out.buffer);
    for (let i = 0, to = 2 * first; i < count; i++, to += 2) {
      const a = low[i] as number;
      const b = bits > 32 ? (high[i] as number) : 0;
      words[to] = offset < 32 ? a << offset : 0;
      words[to + 1] = offset === 0 ? b : offset < 32 ? (b << offset) | (a >>> (32 - offset)) : a << (offset - 32);
    }
    return;
  }
  const numbers = size === 1 ? out : size === 2 ? new Uint16Array(out.buffer) : new Uint32Array(out.buffer);
  for (let i = 0; i < count; i++) numbers[first + i] = (low[i] as number) << offset;
}

/** Visits the bits of an element that its type uses, in their order: up to eight at a time, from bit `shift` of a byte on. */
export function visitBits(type: Type, at: number, visit: (at: number, shift: number, bits: number) => void): void {
  switch (type.kind) {
    case 'bytes':
      for (let i = 0; i < type.size; i++) visit(at + i, 0, 8);
      return;
    case 'array':
      for (let from = 0; from < type.size; from += type.base.size) visitBits(type.base, at + from, visit);
      return;
    case 'compound':
      for (const member of type.members) visitBits(member.type, at + member.at, visit);
      return;
    case 'atomic': {
      const { size, offset, bits, big } = type;
      for (let end = offset + bits; end > offset; ) {
        const byte = (end - 1) >>> 3;
        const start = Math.max(offset, byte * 8);
        visit(at + (big ? size - 1 - byte : byte), start & 7, end - start);
        end = start;
      }
    }
  }
}

// ---------------------------------------------------------------- packed numbers, for scale-offset as well

/** Numbers that are packed or unpacked at a time. A multiple of 8, so that every block begins at a byte. */
export const BLOCK = 1024;

/** A block of numbers as two halves of 32 bits. `high` is not touched for numbers of at most 32 bits. */
export interface NumberBlock {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
}

export function numberBlock(): NumberBlock {
  return { low: new Uint32Array(BLOCK), high: new Uint32Array(BLOCK) };
}

/** Room for the widest block and for what a load may read behind it. */
const tail = new DataView(new ArrayBuffer(BLOCK * 8 + 32));

/** Unpacks `count` numbers of `bits` (1 to 64) bits that begin at byte `at`. The caller checks that they are there. */
export function unpackBits(bytes: DataView, at: number, bits: number, count: number, into: NumberBlock): void {
  let [view, from] = [bytes, at];
  if (!isLoadable(bytes, at, bits, count)) {
    const length = Math.ceil((bits * count) / 8);
    new Uint8Array(tail.buffer).set(new Uint8Array(bytes.buffer, bytes.byteOffset + at, length));
    [view, from] = [tail, 0];
  }
  if (!import.meta.page && bits <= NARROW) unpackNarrow(view, from, bits, count, 0, -1, 0, into.low, 0);
  else unpackWide(view, from, bits, count, into);
}

/** Whether numbers can be loaded where they are: eight at a time, and up to 8 bytes behind the last one. */
export function isLoadable(bytes: DataView, at: number, bits: number, count: number): boolean {
  return at + Math.ceil(count / 8) * bits + 8 <= bytes.byteLength;
}

/** A number of so many bits lies within four bytes wherever it begins. */
export const NARROW = 25;

/**
 * Unpacks numbers, eight at a time: then offsets and shifts are the same for all eights, three times as fast as working them out. Adds
 * `sum` to all but the number `code`, for which `value` stands.
 */
export function unpackNarrow(
  bytes: DataView,
  from: number,
  bits: number,
  count: number,
  sum: number,
  code: number,
  value: number,
  to: Uint32Array,
  first: number,
): void {
  const right = 32 - bits;
  const add = sum | 0;
  const [at1, at2, at3, at4] = [bits >>> 3, (2 * bits) >>> 3, (3 * bits) >>> 3, (4 * bits) >>> 3];
  const [at5, at6, at7] = [(5 * bits) >>> 3, (6 * bits) >>> 3, (7 * bits) >>> 3];
  const [by1, by2, by3, by4] = [bits & 7, (2 * bits) & 7, (3 * bits) & 7, (4 * bits) & 7];
  const [by5, by6, by7] = [(5 * bits) & 7, (6 * bits) & 7, (7 * bits) & 7];
  const end = (first + count) | 0;
  for (let i = first | 0, at = from | 0; i < end; i = (i + 8) | 0, at = (at + bits) | 0) {
    let a = (bytes.getInt32(at) >>> right) | 0;
    to[i] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at1) << by1) >>> right) | 0;
    to[i + 1] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at2) << by2) >>> right) | 0;
    to[i + 2] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at3) << by3) >>> right) | 0;
    to[i + 3] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at4) << by4) >>> right) | 0;
    to[i + 4] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at5) << by5) >>> right) | 0;
    to[i + 5] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at6) << by6) >>> right) | 0;
    to[i + 6] = a === code ? value : (a + add) | 0;
    a = ((bytes.getInt32(at + at7) << by7) >>> right) | 0;
    to[i + 7] = a === code ? value : (a + add) | 0;
  }
}

function unpackWide(bytes: DataView, from: number, bits: number, count: number, { low, high }: NumberBlock): void {
  const right = 64 - bits;
  for (let i = 0, bit = 0; i < count; i++, bit += bits) {
    const at = from + (bit >>> 3);
    const shift = bit & 7;
    let a = bytes.getInt32(at);
    let b = bytes.getInt32(at + 4);
    if (shift > 0) {
      a = (a << shift) | (b >>> (32 - shift));
      b = (b << shift) | (bytes.getUint8(at + 8) >>> (8 - shift));
    }
    // The number is now left-aligned in (a, b).
    if (right >= 32) {
      low[i] = a >>> (right - 32);
    } else if (right === 0) {
      low[i] = b;
      high[i] = a;
    } else {
      low[i] = (b >>> right) | (a << (32 - right));
      high[i] = a >>> right;
    }
  }
}

/** Reads up to 8 bits at a time, most significant bit first. Behind the end it reads zeros. */
class BitReader {
  readonly #bytes: Uint8Array;
  #at = 0;
  #held = 0;
  #window = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  take(bits: number): number {
    if (this.#held < bits) {
      this.#window =
        ((this.#window & 0xff) << 8) | (this.#at < this.#bytes.length ? (this.#bytes[this.#at] as number) : 0);
      this.#at++;
      this.#held += 8;
    }
    this.#held -= bits;
    return (this.#window >>> this.#held) & ((1 << bits) - 1);
  }
}

/** Reverses the bytes of each element, in place: the other byte order. */
export function swapBytes(bytes: Uint8Array, size: number): void {
  for (let from = 0; from + size <= bytes.length; from += size) {
    for (let a = from, b = from + size - 1; a < b; a++, b--) {
      const byte = bytes[a] as number;
      bytes[a] = bytes[b] as number;
      bytes[b] = byte;
    }
  }
}
