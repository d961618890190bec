// The loops of the number conversion. Each works on one chunk in scratch memory that is aligned and made once, so that
// a conversion allocates nothing. Every loop sees one kind of typed array only: a loop shared by several kinds is
// megamorphic in V8 and about ten times slower. For the same reason 64-bit integers are taken as two u32 halves.
//
// The rules, found out with libhdf5 1.10.8 (H5Tconvert on x86-64) over edge values:
// - out of range saturates, negative to unsigned is 0, +-Infinity saturates, fractions are cut toward zero;
// - integer to float and float64 to float32 round to nearest even, overflow gives Infinity, subnormals are kept.
// Where libhdf5 disagrees with itself (native order takes a C cast, foreign order a bit loop) or is plainly wrong, we take
// the IEEE answer:
// - NaN to integer: bit loop 0, C cast 0 or the smallest value, by size and platform. Here always 0.
// - 2^63 to int64 and 2^64 to uint64: bit loop saturates, C cast is undefined behaviour (x86: smallest value, 0). Saturate.
// - just above the largest float32: C cast Infinity, bit loop the largest float32. Here rounded to nearest even.
// - ties and subnormals of a float narrowed in the bit loop (always so for float16): it rounds ties up and does not round
//   the last bits of subnormals; here rounded to nearest even.
// - integers from 65536 to 131071 to float16: 1.10.8 makes NaN of all but the first. Here Infinity.
// - negative float16 to int64: 1.10.8 returns garbage (-1 becomes -9223370937343148033). Here the right integer.

import { H5LogError } from '../base/errors.ts';
import type { NumberType } from './model.ts';

if (new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1) {
  throw new H5LogError('UNSUPPORTED', 'h5log needs a little-endian machine');
}

/** Elements in one chunk: three scratch areas of 8 KiB stay in the first-level cache. */
export const CHUNK = 1024;

function scratch() {
  const buffer = new ArrayBuffer(CHUNK * 8);
  return {
    bytes: new Uint8Array(buffer),
    int8: new Int8Array(buffer),
    uint8: new Uint8Array(buffer),
    int16: new Int16Array(buffer),
    uint16: new Uint16Array(buffer),
    int32: new Int32Array(buffer),
    uint32: new Uint32Array(buffer),
    int64: new BigInt64Array(buffer),
    uint64: new BigUint64Array(buffer),
    float32: new Float32Array(buffer),
    float64: new Float64Array(buffer),
  };
}
export type Scratch = ReturnType<typeof scratch>;

/** Where a chunk arrives, and where its converted form is left. */
export const input: Scratch = scratch();
export const output: Scratch = scratch();
const widened = new Float64Array(CHUNK);

const TWO_32 = 2 ** 32;

/** `input` of the given kind as float64: exact, but for 64-bit integers, which are rounded to nearest even. */
export function widen(kind: NumberType, count: number): Float64Array<ArrayBuffer> {
  const to = widened;
  switch (kind) {
    case 'int64':
      // The product is exact and the sum rounds once, so this is the correctly rounded value.
      for (let i = 0; i < count; i++) {
        to[i] = (input.int32[2 * i + 1] as number) * TWO_32 + (input.uint32[2 * i] as number);
      }
      return to;
    case 'uint64':
      for (let i = 0; i < count; i++) {
        to[i] = (input.uint32[2 * i + 1] as number) * TWO_32 + (input.uint32[2 * i] as number);
      }
      return to;
    case 'float16':
      for (let i = 0; i < count; i++) to[i] = fromHalf(input.uint16[i] as number);
      return to;
    case 'float64':
      return input.float64;
    default:
      to.set(input[kind].subarray(0, count));
      return to;
  }
}

/** Float64 values into `output` of the given kind. A typed array store cuts fractions and makes NaN 0. */
export function narrow(from: Float64Array, kind: NumberType, count: number): void {
  switch (kind) {
    case 'int8':
      for (let i = 0; i < count; i++) output.int8[i] = Math.max(-128, Math.min(127, from[i] as number));
      return;
    case 'uint8':
      for (let i = 0; i < count; i++) output.uint8[i] = Math.max(0, Math.min(255, from[i] as number));
      return;
    case 'int16':
      for (let i = 0; i < count; i++) output.int16[i] = Math.max(-32768, Math.min(32767, from[i] as number));
      return;
    case 'uint16':
      for (let i = 0; i < count; i++) output.uint16[i] = Math.max(0, Math.min(65535, from[i] as number));
      return;
    case 'int32':
      for (let i = 0; i < count; i++) output.int32[i] = Math.max(-2147483648, Math.min(2147483647, from[i] as number));
      return;
    case 'uint32':
      for (let i = 0; i < count; i++) output.uint32[i] = Math.max(0, Math.min(4294967295, from[i] as number));
      return;
    case 'int64':
      for (let i = 0; i < count; i++) storeInt64(from[i] as number, i);
      return;
    case 'uint64':
      for (let i = 0; i < count; i++) storeUint64(from[i] as number, i);
      return;
    case 'float16':
      for (let i = 0; i < count; i++) output.uint16[i] = toHalf(from[i] as number);
      return;
    case 'float32':
      for (let i = 0; i < count; i++) output.float32[i] = from[i] as number;
      return;
    case 'float64':
      for (let i = 0; i < count; i++) output.float64[i] = from[i] as number;
      return;
  }
}

/** One number as the int64 at `output[i]`: exact for every integer in range, saturated beyond. */
export function storeInt64(value: number, i: number): void {
  if (value >= 2 ** 63) storeHalves(0x7fffffff, 0xffffffff, i);
  else if (value <= -(2 ** 63)) storeHalves(0x80000000, 0, i);
  else storeWhole(Math.trunc(value), i);
}

/** One number as the uint64 at `output[i]`. */
export function storeUint64(value: number, i: number): void {
  if (value >= 2 ** 64) storeHalves(0xffffffff, 0xffffffff, i);
  else storeWhole(value > 0 ? Math.floor(value) : 0, i);
}

function storeWhole(whole: number, i: number): void {
  // Dividing by a power of two is exact, so floor gives the true upper half and the remainder is never negative.
  const high = Math.floor(whole / TWO_32);
  storeHalves(high, whole - high * TWO_32, i);
}

function storeHalves(high: number, low: number, i: number): void {
  output.uint32[2 * i] = low;
  output.uint32[2 * i + 1] = high;
}

/** `input` int64 to `output` uint64 or the reverse: both keep their bits if the sign bit is 0, else saturate. */
export function crossSign(fromSigned: boolean, count: number): void {
  for (let i = 0; i < count; i++) {
    const high = input.uint32[2 * i + 1] as number;
    if (high < 0x80000000) storeHalves(high, input.uint32[2 * i] as number, i);
    else if (fromSigned) storeHalves(0, 0, i);
    else storeHalves(0x7fffffff, 0xffffffff, i);
  }
}

/**
 * `input` of 64-bit integers to `output` float32. Going through float64 would round twice, so from 2^53 on the low
 * 11 bits, all far below the last bit of a float32, are first folded into one sticky bit; what is left is exact.
 */
export function wideToSingle(signed: boolean, count: number): void {
  for (let i = 0; i < count; i++) {
    const bits = input.uint32[2 * i + 1] as number;
    const high = signed ? bits | 0 : bits;
    let low = input.uint32[2 * i] as number;
    if (high >= 0x200000 || high < -0x200000) low = foldSticky(low);
    output.float32[i] = high * TWO_32 + low;
  }
}

const foldSticky = (low: number): number => (low & 0x7ff ? (low & 0xfffff800) | 0x800 : low) >>> 0;

/** Reverses the bytes of each element in place. */
export function swapBytes(data: Scratch, size: number, count: number): void {
  const { uint16, uint32 } = data;
  if (size === 2) {
    for (let i = 0; i < count; i++) {
      const v = uint16[i] as number;
      uint16[i] = (v << 8) | (v >>> 8);
    }
  } else if (size === 4) {
    for (let i = 0; i < count; i++) uint32[i] = swap32(uint32[i] as number);
  } else if (size === 8) {
    for (let i = 0; i < 2 * count; i += 2) {
      const low = uint32[i] as number;
      uint32[i] = swap32(uint32[i + 1] as number);
      uint32[i + 1] = swap32(low);
    }
  }
}

const swap32 = (v: number): number => (v << 24) | ((v & 0xff00) << 8) | ((v >>> 8) & 0xff00) | (v >>> 24);

// IEEE half precision by hand: Node 20 has no Float16Array.

const f64 = new Float64Array(1);
const halves = new Uint32Array(f64.buffer);

/** 2 ** (e - 25) for the exponent field e: what one unit of the mantissa is worth in a normal number. */
const UNIT = Float64Array.from({ length: 31 }, (_, e) => 2 ** (e - 25));

/** The nearest half, ties to even, as its 16 bits. From 65520 on it is infinity; a NaN becomes the quiet one. */
export function toHalf(value: number): number {
  f64[0] = value;
  const high = halves[1] as number;
  const sign = (high >>> 16) & 0x8000;
  const magnitude = Math.abs(value);
  // Subnormal, zero, or rounding up to the smallest normal, whose bits come out of the same integer.
  // Adding and taking away 2^52 rounds to an integer, ties to even, in hardware.
  if (magnitude < 2 ** -14) return sign | (magnitude * 2 ** 24 + 2 ** 52 - 2 ** 52);
  if (magnitude >= 65520) return sign | 0x7c00;
  if (Number.isNaN(magnitude)) return sign | 0x7e00;
  // Exponent and mantissa as one integer: a carry out of the mantissa raises the exponent, as it should.
  const kept = ((high & 0x7fffffff) >>> 10) - ((1023 - 15) << 10);
  const rest = high & 0x3ff;
  const up = rest > 0x200 || (rest === 0x200 && (halves[0] !== 0 || (kept & 1) === 1));
  return sign | (kept + (up ? 1 : 0));
}

/** The number behind 16 bits; exact. */
export function fromHalf(bits: number): number {
  const exponent = (bits >>> 10) & 31;
  const mantissa = bits & 0x3ff;
  let magnitude: number;
  if (exponent === 0) magnitude = mantissa * 2 ** -24;
  else if (exponent === 31) magnitude = mantissa === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
  else magnitude = (1024 + mantissa) * (UNIT[exponent] as number);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/** Copies elements of `size` bytes that lie `fromStep` bytes apart to places `toStep` bytes apart: a field of records, and back. */
export function copyStrided(
  from: Uint8Array,
  fromAt: number,
  fromStep: number,
  to: Uint8Array,
  toAt: number,
  toStep: number,
  size: number,
  count: number,
): void {
  if (count === 0) return;
  if (import.meta.page || (size | fromStep | toStep | (from.byteOffset + fromAt) | (to.byteOffset + toAt)) & 3) {
    for (let i = 0, f = fromAt, t = toAt; i < count; i++, f += fromStep, t += toStep) {
      for (let b = 0; b < size; b++) to[t + b] = from[f + b] as number;
    }
    return;
  }
  // Four bytes at a time where everything is aligned. Not eight: as a float64 the bits of a NaN may change on the way.
  const source = new Uint32Array(from.buffer, from.byteOffset + fromAt, (from.length - fromAt) >> 2);
  const target = new Uint32Array(to.buffer, to.byteOffset + toAt, (to.length - toAt) >> 2);
  const [words, fromWords, toWords] = [size >> 2, fromStep >> 2, toStep >> 2];
  // One loop a width: a loop inside the loop costs more than the copying.
  if (words === 1) {
    for (let i = 0, f = 0, t = 0; i < count; i++, f += fromWords, t += toWords) target[t] = source[f] as number;
  } else if (words === 2) {
    for (let i = 0, f = 0, t = 0; i < count; i++, f += fromWords, t += toWords) {
      target[t] = source[f] as number;
      target[t + 1] = source[f + 1] as number;
    }
  } else {
    for (let i = 0, f = 0, t = 0; i < count; i++, f += fromWords, t += toWords) {
      for (let w = 0; w < words; w++) target[t + w] = source[f + w] as number;
    }
  }
}
