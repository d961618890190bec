// The scale-offset filter, for writing: see scale-offset.ts.

import { formatError } from '../base/errors.ts';
import { BLOCK, numberBlock, swapBytes } from './nbit.ts';
import { packBits } from './nbit-encode.ts';
import { floatOf, HEADER, isPassed, type Parameters, parse } from './scale-offset.ts';

/** Applies the filter. Integers keep their values, unless the user chose a width that is too small; floats keep decimal digits. */
export function encodeScaleOffset(bytes: Uint8Array, values: readonly number[]): Uint8Array {
  const parameters = parse(values);
  if (isPassed(parameters)) return bytes;
  const { size, big, count } = parameters;
  if (count * size !== bytes.length)
    throw formatError(`scale-offset filter of ${count * size} bytes for ${bytes.length} bytes`);
  const native = new Uint8Array(bytes);
  if (big) swapBytes(native, size);
  const packed = parameters.float ? packFloats(native, parameters) : packIntegers(native, parameters);
  if (packed) return packed;
  const out = new Uint8Array(HEADER + native.length);
  header(out, size * 8, 0, 0);
  out.set(native, HEADER);
  return out;
}

function header(out: Uint8Array, bits: number, low: number, high: number): void {
  const view = new DataView(out.buffer);
  view.setUint32(0, bits, true);
  view.setUint8(4, 8);
  view.setUint32(5, low, true);
  view.setUint32(9, high, true);
}

/** The size that libhdf5 gives a chunk: there may be a byte more than the bits need. */
function packedSize(count: number, bits: number): number {
  return HEADER + Math.floor((count * bits) / 8) + 1;
}

/** Null: all bits are needed. */
function packIntegers(native: Uint8Array, { count, size, signed, factor, fill }: Parameters): Uint8Array | null {
  const words = widened(native, size, signed);
  // Compared as (high, low): high is signed where the numbers are.
  const highOf = (i: number): number => (signed ? (words[2 * i + 1] as number) | 0 : (words[2 * i + 1] as number));
  const fillWords = fill && widened(wordBytes(fill.low, fill.high).subarray(0, size), size, signed);
  const isFill = (i: number): boolean =>
    fillWords !== null && words[2 * i] === fillWords[0] && words[2 * i + 1] === fillWords[1];
  let [low, high, most, mostHigh] = [0, 0, 0, 0];
  let some = false;
  for (let i = 0; i < count; i++) {
    if (isFill(i)) continue;
    const a = words[2 * i] as number;
    const b = highOf(i);
    if (!some || b < high || (b === high && a < low)) [low, high] = [a, b];
    if (!some || b > mostHigh || (b === mostHigh && a > most)) [most, mostHigh] = [a, b];
    some = true;
  }
  const least = { low, high: high >>> 0 };
  const span = { low: (most - low) >>> 0, high: (mostHigh - high - (most < low ? 1 : 0)) >>> 0 };
  const bits = factor > 0 ? factor : neededBits(span.low, span.high, fill !== null);
  if (bits >= size * 8) return null;
  const out = new Uint8Array(packedSize(count, bits));
  header(out, bits, least.low, least.high);
  if (bits === 0) return out;
  const block = numberBlock();
  for (let first = 0; first < count; first += BLOCK) {
    const n = Math.min(BLOCK, count - first);
    for (let i = 0; i < n; i++) {
      const at = first + i;
      const a = words[2 * at] as number;
      const filled = isFill(at);
      block.low[i] = filled ? 0xffffffff : a - least.low;
      block.high[i] = filled ? 0xffffffff : (words[2 * at + 1] as number) - least.high - (a < least.low ? 1 : 0);
    }
    packBits(block, n, bits, out, HEADER + (first / 8) * bits);
  }
  return out;
}

/** Integers of any size as 64 bits: two words each. */
function widened(bytes: Uint8Array, size: number, signed: boolean): Uint32Array {
  const { buffer, byteOffset } = bytes;
  const count = bytes.length / size;
  if (size === 8) return new Uint32Array(buffer, byteOffset, 2 * count);
  const words = new Uint32Array(2 * count);
  const view = new DataView(buffer, byteOffset, bytes.length);
  for (let i = 0; i < count; i++) {
    const value =
      size === 1 ? view.getUint8(i) : size === 2 ? view.getUint16(2 * i, true) : view.getUint32(4 * i, true);
    const shift = 32 - 8 * size;
    const extended = signed ? (value << shift) >> shift : value;
    words[2 * i] = extended;
    words[2 * i + 1] = extended < 0 ? -1 : 0;
  }
  return words;
}

function wordBytes(low: number, high: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(low, high).buffer);
}

/** Bits of the largest number, and of one more that stands for the fill value. */
function neededBits(low: number, high: number, filled: boolean): number {
  const a = filled ? (low + 1) >>> 0 : low;
  const b = filled && a === 0 ? high + 1 : high;
  if (b > 0xffffffff) return 64;
  return b > 0 ? 64 - Math.clz32(b) : 32 - Math.clz32(a);
}

/** Null: all bits are needed, or there are values without a place on the scale. */
function packFloats(native: Uint8Array, { count, size, factor, fill }: Parameters): Uint8Array | null {
  const numbers = size === 4 ? new Float32Array(native.buffer) : new Float64Array(native.buffer);
  const scale = Number(`1e${factor}`);
  const fillValue = fill ? floatOf(fill.low, fill.high, size) : Number.NaN;
  const isFill = (value: number): boolean => fill !== null && Math.abs(value - fillValue) < 1 / scale;
  let least = Infinity;
  let most = -Infinity;
  for (let i = 0; i < count; i++) {
    const value = numbers[i] as number;
    if (isFill(value)) continue;
    if (!Number.isFinite(value)) return null;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if (most < least) least = most = 0;
  const span = Math.round(most * scale - least * scale);
  // Beyond 2^53 a difference of two floats says nothing about single numbers.
  if (!(span < 2 ** (size === 4 ? 31 : 53))) return null;
  const bits = neededBits(span >>> 0, Math.floor(span / 2 ** 32), fill !== null);
  if (bits >= size * 8) return null;
  const out = new Uint8Array(packedSize(count, bits));
  const view = new DataView(new ArrayBuffer(8));
  if (size === 4) view.setFloat32(0, least, true);
  else view.setFloat64(0, least, true);
  header(out, bits, view.getUint32(0, true), view.getUint32(4, true));
  if (bits === 0) return out;
  const block = numberBlock();
  for (let first = 0; first < count; first += BLOCK) {
    const n = Math.min(BLOCK, count - first);
    for (let i = 0; i < n; i++) {
      const value = numbers[first + i] as number;
      const code = isFill(value) ? -1 : Math.round(value * scale - least * scale);
      block.low[i] = code;
      block.high[i] = code < 0 ? -1 : code / 2 ** 32;
    }
    packBits(block, n, bits, out, HEADER + (first / 8) * bits);
  }
  return out;
}
