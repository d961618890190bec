import { formatError } from '../base/errors.ts';

/*
 * A small zlib decoder (RFC 1950, RFC 1951) for platforms without node:zlib. Browsers have only an asynchronous one, and blocking
 * reads cannot wait for it.
 */

/** Base and extra bits of the length or distance codes: from the second row of `width` codes on, one more bit in each row. */
function ranges(first: number, codes: number, width: number): { base: number[]; extra: number[] } {
  const base: number[] = [];
  const extra: number[] = [];
  for (let i = 0, next = first; i < codes; i++) {
    const bits = Math.max(0, Math.floor(i / width) - 1);
    base.push(next);
    extra.push(bits);
    next += 2 ** bits;
  }
  return { base, extra };
}

const LENGTHS = ranges(3, 28, 4);
// The greatest length, 258, has a code of its own.
LENGTHS.base.push(258);
LENGTHS.extra.push(0);
const DISTANCES = ranges(1, 30, 2);
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** A canonical Huffman code: how many codes of each length, and the symbols in order. */
interface Code {
  readonly counts: Uint16Array;
  readonly symbols: Uint16Array;
}

function makeCode(lengths: ArrayLike<number>): Code {
  const counts = new Uint16Array(16);
  for (let i = 0; i < lengths.length; i++) counts[lengths[i] as number] = (counts[lengths[i] as number] as number) + 1;
  counts[0] = 0;
  const offsets = new Uint16Array(16);
  for (let i = 1; i < 16; i++) offsets[i] = (offsets[i - 1] as number) + (counts[i - 1] as number);
  const symbols = new Uint16Array(lengths.length);
  for (let i = 0; i < lengths.length; i++) {
    const length = lengths[i] as number;
    if (length === 0) continue;
    symbols[offsets[length] as number] = i;
    offsets[length] = (offsets[length] as number) + 1;
  }
  return { counts, symbols };
}

const FIXED_LENGTHS = makeCode(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)));
const FIXED_DISTANCES = makeCode(new Uint8Array(30).fill(5));

class Inflater {
  readonly #input: Uint8Array;
  readonly #limit: number;
  #at = 2;
  #bits = 0;
  #held = 0;
  out: Uint8Array;
  length = 0;

  constructor(input: Uint8Array, limit: number) {
    this.#input = input;
    this.#limit = limit;
    this.out = new Uint8Array(Math.min(limit, Math.max(1024, input.length * 4)));
  }

  #take(count: number): number {
    while (this.#held < count) {
      const byte = this.#input[this.#at++];
      if (byte === undefined) throw formatError('compressed data ends too early');
      this.#bits |= byte << this.#held;
      this.#held += 8;
    }
    const value = this.#bits & ((1 << count) - 1);
    this.#bits >>>= count;
    this.#held -= count;
    return value;
  }

  #symbol(code: Code): number {
    let value = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length < 16; length++) {
      value |= this.#take(1);
      const count = code.counts[length] as number;
      if (value - count < first) return code.symbols[index + (value - first)] as number;
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    throw formatError('compressed data with an impossible code');
  }

  #room(count: number): void {
    const needed = this.length + count;
    if (needed > this.#limit) throw formatError(`compressed data holds more than the ${this.#limit} bytes expected`);
    if (needed <= this.out.length) return;
    const grown = new Uint8Array(Math.min(this.#limit, Math.max(needed, this.out.length * 2)));
    grown.set(this.out.subarray(0, this.length));
    this.out = grown;
  }

  run(): Uint8Array {
    for (let last = 0; last === 0; ) {
      last = this.#take(1);
      const kind = this.#take(2);
      if (kind === 0) this.#stored();
      else if (kind === 1) this.#compressed(FIXED_LENGTHS, FIXED_DISTANCES);
      else if (kind === 2) this.#dynamic();
      else throw formatError('compressed data with an impossible block');
    }
    this.#at -= this.#held >> 3;
    this.#checkAdler();
    return this.out.subarray(0, this.length);
  }

  #stored(): void {
    this.#at -= this.#held >> 3;
    this.#bits = this.#held = 0;
    const length = this.#take(16);
    if (length !== (~this.#take(16) & 0xffff)) throw formatError('compressed data with a damaged block');
    if (this.#at + length > this.#input.length) throw formatError('compressed data ends too early');
    this.#room(length);
    this.out.set(this.#input.subarray(this.#at, this.#at + length), this.length);
    this.#at += length;
    this.length += length;
  }

  #dynamic(): void {
    const literals = this.#take(5) + 257;
    const distances = this.#take(5) + 1;
    const codes = this.#take(4) + 4;
    const lengths = new Uint8Array(320);
    for (let i = 0; i < codes; i++) lengths[CODE_ORDER[i] as number] = this.#take(3);
    const lengthCode = makeCode(lengths.subarray(0, 19));
    lengths.fill(0);
    for (let i = 0; i < literals + distances; ) {
      const symbol = this.#symbol(lengthCode);
      if (symbol < 16) {
        lengths[i++] = symbol;
        continue;
      }
      if (symbol === 16 && i === 0) throw formatError('compressed data repeats nothing');
      const value = symbol === 16 ? (lengths[i - 1] as number) : 0;
      const times = symbol === 16 ? 3 + this.#take(2) : symbol === 17 ? 3 + this.#take(3) : 11 + this.#take(7);
      if (i + times > literals + distances) throw formatError('compressed data with too many code lengths');
      lengths.fill(value, i, i + times);
      i += times;
    }
    this.#compressed(
      makeCode(lengths.subarray(0, literals)),
      makeCode(lengths.subarray(literals, literals + distances)),
    );
  }

  #compressed(lengths: Code, distances: Code): void {
    for (;;) {
      const symbol = this.#symbol(lengths);
      if (symbol === 256) return;
      if (symbol < 256) {
        this.#room(1);
        this.out[this.length++] = symbol;
        continue;
      }
      const l = symbol - 257;
      const length = LENGTHS.base[l];
      if (length === undefined) throw formatError('compressed data with an impossible length');
      const count = length + this.#take(LENGTHS.extra[l] as number);
      const d = this.#symbol(distances);
      const base = DISTANCES.base[d];
      if (base === undefined) throw formatError('compressed data with an impossible distance');
      const distance = base + this.#take(DISTANCES.extra[d] as number);
      if (distance > this.length) throw formatError('compressed data refers to before its start');
      this.#room(count);
      for (let i = 0; i < count; i++, this.length++) this.out[this.length] = this.out[this.length - distance] as number;
    }
  }

  #checkAdler(): void {
    const { buffer, byteOffset, length } = this.#input;
    if (this.#at + 4 > length) throw formatError('compressed data ends too early');
    const stored = new DataView(buffer, byteOffset).getUint32(this.#at);
    if (stored !== adler32(this.out.subarray(0, this.length)))
      throw formatError('checksum of compressed data is wrong');
  }
}

function adler32(bytes: Uint8Array): number {
  let a = 1;
  let b = 0;
  for (let i = 0; i < bytes.length; ) {
    for (const stop = Math.min(i + 3800, bytes.length); i < stop; i++) {
      a += bytes[i] as number;
      b += a;
    }
    a %= 65521;
    b %= 65521;
  }
  return ((b << 16) | a) >>> 0;
}

/** Inflates a zlib stream of at most `limit` bytes. */
export function inflateZlib(bytes: Uint8Array, limit: number): Uint8Array {
  const [first, second] = [bytes[0] ?? 0, bytes[1] ?? 0];
  if ((first & 15) !== 8 || ((first << 8) | second) % 31 !== 0 || second & 0x20) throw formatError('not a zlib stream');
  return new Inflater(bytes, limit).run();
}

const blocksFor = (size: number): number => Math.max(1, Math.ceil(size / 0xffff));

/** The length that {@link storeZlib} makes of so many bytes. */
export function storedSize(size: number): number {
  return 2 + blocksFor(size) * 5 + size + 4;
}

/** A zlib stream of stored (uncompressed) blocks, for platforms without a compressor. */
export function storeZlib(bytes: Uint8Array): Uint8Array {
  const blocks = blocksFor(bytes.length);
  const out = new Uint8Array(storedSize(bytes.length));
  const view = new DataView(out.buffer);
  out.set([0x78, 0x01]);
  let at = 2;
  for (let i = 0; i < blocks; i++) {
    const part = bytes.subarray(i * 0xffff, (i + 1) * 0xffff);
    out[at] = i === blocks - 1 ? 1 : 0;
    view.setUint16(at + 1, part.length, true);
    view.setUint16(at + 3, ~part.length & 0xffff, true);
    out.set(part, at + 5);
    at += 5 + part.length;
  }
  view.setUint32(at, adler32(bytes), false);
  return out;
}
