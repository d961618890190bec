// szip (filter 4): adaptive entropy coding after Rice, CCSDS 121.0-B. A chunk has its size without the filter ahead, in 4 bytes.
// Parameters: [options, pixels per block, bits per pixel, pixels per scanline].
//
// Each block of pixels begins with the code that suits it best: fundamental sequences (unary numbers) with k low bits split off,
// pairs of small numbers as one, runs of blocks of zeros, or plain numbers. With the option NN the pixels are differences from the
// one before, and the first pixel of a scanline is stored as it is. Scanlines are filled up to whole blocks. Pixels of 32 and 64
// bits are bytes: the first ones of all pixels, then the second ones, as shuffle arranges them.

import { formatError } from '../base/errors.ts';
import { unshuffle } from './shuffle.ts';

const MSB = 16;
const NN = 32;
/** Blocks of a segment: a run of zero blocks ends with it. */
const SEGMENT = 64;
/** The run of zero blocks that goes up to the end of the segment. */
const REST_OF_SEGMENT = 5;
/** No encoder writes longer unary numbers: plain numbers would be shorter. */
const MOST_UNARY = 2 ** 20;
/** Bytes of a block of 32 pixels of 32 bits, and some more. */
const PADDING = 160;
/** The largest code of a pair of numbers. */
const MOST_PAIR = 90;

/** Undoes the filter; the result has at most `limit` bytes. */
export function decodeSzip(bytes: Uint8Array, parameters: readonly number[], limit: number): Uint8Array {
  const [options, block, bits, scanline] = parameters;
  if (options === undefined || block === undefined || bits === undefined || scanline === undefined)
    throw formatError(`szip filter with ${parameters.length} parameters`);
  const interleaved = bits === 32 || bits === 64;
  if (block < 2 || block > 32 || block % 2 !== 0 || bits < 1 || (bits > 32 && bits !== 64) || scanline < 1)
    throw formatError(`szip filter with blocks of ${block} pixels of ${bits} bits, ${scanline} pixels a line`);
  if (bytes.length < 4) throw formatError(`szip data of ${bytes.length} bytes`);
  const size = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  if (size > limit) throw formatError(`szip data of ${size} bytes where ${limit} were expected`);
  const width = interleaved ? 8 : bits;
  const bytesOfPixel = width > 16 ? 4 : width > 8 ? 2 : 1;
  const out = new Uint8Array(size);
  const decoder = new SzipDecoder(bytes.subarray(4), width, block, (options & NN) !== 0);
  const pixels = Math.floor(size / bytesOfPixel);
  for (let at = 0; at < pixels; at += scanline) {
    const count = Math.min(scanline, pixels - at);
    decoder.scanline(Math.ceil(scanline / block), count, out, at, bytesOfPixel, (options & MSB) !== 0);
  }
  return interleaved ? unshuffle(out, bits / 8) : out;
}

class SzipDecoder {
  readonly #view: DataView;
  readonly #end: number;
  /** The next bit is bit `#bit` (0: the most significant one) from byte `#at` on. */
  #at = 0;
  #bit = 0;
  readonly #bits: number;
  readonly #block: number;
  readonly #differences: boolean;
  readonly #codeBits: number;
  readonly #values: Uint32Array;
  /** Blocks of zeros that are still to come. */
  #zeros = 0;

  constructor(bytes: Uint8Array, bits: number, block: number, differences: boolean) {
    // Loads may read behind the end, where zeros are: up to a whole block.
    const padded = new Uint8Array(bytes.length + PADDING);
    padded.set(bytes);
    this.#view = new DataView(padded.buffer);
    this.#end = bytes.length;
    this.#bits = bits;
    this.#block = block;
    this.#differences = differences;
    this.#codeBits = bits <= 8 ? 3 : bits <= 16 ? 4 : 5;
    this.#values = new Uint32Array(block);
  }

  /** Decodes `count` pixels of a line of `blocks` blocks to pixel `to` of `out`. */
  scanline(blocks: number, count: number, out: Uint8Array, to: number, size: number, big: boolean): void {
    const values = this.#values;
    const most = 2 ** this.#bits - 1;
    let last = 0;
    this.#zeros = 0;
    for (let b = 0, done = 0; done < count; b++) {
      const first = b === 0 && this.#differences;
      this.#decodeBlock(b, blocks, first);
      const n = Math.min(this.#block, count - done);
      if (this.#differences) last = undoDifferences(values, n, last, most, first);
      store(values, n, out, (to + done) * size, size, big);
      done += n;
    }
  }

  #decodeBlock(b: number, blocks: number, first: boolean): void {
    const values = this.#values;
    const size = this.#block;
    if (this.#zeros > 0) {
      this.#zeros--;
      values.fill(0);
      return;
    }
    this.#at += this.#bit >>> 3;
    this.#bit &= 7;
    const code = this.#take(this.#codeBits);
    if (code === 2 ** this.#codeBits - 1) {
      for (let i = 0; i < size; i++) values[i] = this.#take(this.#bits);
    } else if (code === 0) {
      const pairs = this.#take(1) === 1;
      const from = first ? 1 : 0;
      if (first) values[0] = this.#take(this.#bits);
      if (pairs) this.#pairs(from);
      else {
        values.fill(0, from);
        this.#zeros = this.#zeroBlocks(b, blocks) - 1;
      }
    } else {
      if (first) values[0] = this.#take(this.#bits);
      this.#split(first ? 1 : 0, code - 1);
    }
    if (this.#at + ((this.#bit + 7) >>> 3) > this.#end) throw formatError('szip data ends too early');
  }

  /** Unary numbers, then `k` more bits of each. */
  #split(from: number, k: number): void {
    const values = this.#values;
    const view = this.#view;
    const at = this.#at;
    let bit = this.#bit;
    for (let i = from; i < values.length; i++) {
      const zeros = Math.clz32(view.getInt32(at + (bit >>> 3)) << (bit & 7));
      if (zeros < 25) {
        values[i] = zeros;
        bit += zeros + 1;
      } else {
        this.#bit = bit;
        values[i] = this.#unary();
        bit = this.#bit;
      }
    }
    if (k > 24) {
      this.#bit = bit;
      for (let i = from; i < values.length; i++) values[i] = ((values[i] as number) << k) | this.#take(k);
      return;
    }
    if (k > 0) {
      for (let i = from; i < values.length; i++, bit += k) {
        const low = (view.getInt32(at + (bit >>> 3)) << (bit & 7)) >>> (32 - k);
        values[i] = ((values[i] as number) << k) | low;
      }
    }
    this.#bit = bit;
  }

  #zeroBlocks(b: number, blocks: number): number {
    const count = this.#unary() + 1;
    const left = blocks - b;
    const run =
      count === REST_OF_SEGMENT ? Math.min(left, SEGMENT - (b % SEGMENT)) : count > REST_OF_SEGMENT ? count - 1 : count;
    if (run > left) throw formatError(`szip data with ${run} blocks of zeros where ${left} are left`);
    return run;
  }

  /** Two small numbers a and b as one: (a + b) (a + b + 1) / 2 + b. */
  #pairs(from: number): void {
    const values = this.#values;
    for (let i = from; i < values.length; ) {
      const pair = this.#unary();
      if (pair > MOST_PAIR) throw formatError('szip data with an impossible pair');
      const sum = Math.floor((Math.sqrt(8 * pair + 1) - 1) / 2);
      const second = pair - (sum * (sum + 1)) / 2;
      // With a first pixel in the block, the first number of the first pair takes its place and does not count.
      if (i % 2 === 0) values[i++] = sum - second;
      values[i++] = second;
    }
  }

  /** At least 25 bits, left-aligned. */
  #peek(): number {
    return this.#view.getInt32(this.#at + (this.#bit >>> 3)) << (this.#bit & 7);
  }

  #take(bits: number): number {
    if (bits > 24) {
      const high = this.#take(bits - 16);
      return ((high << 16) | this.#take(16)) >>> 0;
    }
    if (this.#at + (this.#bit >>> 3) > this.#end) throw formatError('szip data ends too early');
    const value = this.#peek() >>> (32 - bits);
    this.#bit += bits;
    return value;
  }

  /** The number of zeros before the next one. */
  #unary(): number {
    for (let count = 0; count < MOST_UNARY; ) {
      if (this.#at + (this.#bit >>> 3) > this.#end) break;
      const zeros = Math.clz32(this.#peek());
      if (zeros < 25) {
        this.#bit += zeros + 1;
        return count + zeros;
      }
      // What lies behind the 25th bit is not known yet.
      this.#bit += 25;
      count += 25;
    }
    throw formatError('szip data with an impossible code');
  }
}

/** Replaces mapped differences by pixels. Differences that the pixel before leaves no room for in one direction are in the other. */
function undoDifferences(values: Uint32Array, count: number, before: number, most: number, first: boolean): number {
  let last = first ? (values[0] as number) : before;
  for (let i = first ? 1 : 0; i < count; i++) {
    const mapped = values[i] as number;
    const lower = last <= most - last;
    const room = lower ? last : most - last;
    const half = (mapped >>> 1) + (mapped & 1);
    if (half > room) last = lower ? mapped : most - mapped;
    else last += mapped & 1 ? -half : half;
    values[i] = last;
    // Damaged data may leave the range.
    last = values[i] as number;
  }
  return last;
}

function store(values: Uint32Array, count: number, out: Uint8Array, at: number, size: number, big: boolean): void {
  if (size === 1) {
    for (let i = 0; i < count; i++) out[at + i] = values[i] as number;
    return;
  }
  for (let i = 0, to = at; i < count; i++, to += size) {
    const value = values[i] as number;
    for (let b = 0; b < size; b++) out[to + b] = value >>> (8 * (big ? size - 1 - b : b));
  }
}
