// The scale-offset filter (6). A chunk has 21 bytes ahead: the width of its numbers in bits (4 bytes), the size of the minimum
// (1 byte, 8) and the minimum. Then come the numbers less the minimum, most significant bit first. The number whose bits are all
// set stands for the fill value, if one is defined. Floats are first multiplied by a power of ten. A chunk whose numbers need all
// bits is stored as it is, in the byte order of the writer: little-endian.

import { formatError, H5LogError } from '../base/errors.ts';
import {
  BLOCK,
  isLoadable,
  NARROW,
  type NumberBlock,
  numberBlock,
  swapBytes,
  unpackBits,
  unpackNarrow,
} from './nbit.ts';
import { newRoom, type Room } from './shuffle.ts';

export const HEADER = 21;

/** The parameters of the filter, as libhdf5 stores them. */
export interface Parameters {
  readonly count: number;
  readonly size: number;
  readonly float: boolean;
  readonly signed: boolean;
  readonly big: boolean;
  /** Integers: the width that the user chose, or 0. Floats: decimal digits that are kept. */
  readonly factor: number;
  /** The fill value's bytes, little-endian, as two words; null: undefined. */
  readonly fill: { readonly low: number; readonly high: number } | null;
}

export function parse(values: readonly number[]): Parameters {
  const [kind, factor, count, type, size, sign, order, filled] = values.map((value) => value >>> 0);
  if (filled === undefined || factor === undefined || count === undefined || size === undefined)
    throw formatError(`scale-offset filter with ${values.length} parameters`);
  const float = type === 1;
  if ((type !== 0 && !float) || !(float ? [4, 8] : [1, 2, 4, 8]).includes(size))
    throw formatError(`scale-offset filter of class ${type} and ${size} bytes`);
  if (kind === 1) throw new H5LogError('UNSUPPORTED', 'scale-offset with a variable exponent; libhdf5 has none either');
  if (kind !== (float ? 0 : 2)) throw formatError(`scale-offset filter of kind ${kind} for class ${type}`);
  const fill = filled === 1 ? { low: (values[8] ?? 0) >>> 0, high: (values[9] ?? 0) >>> 0 } : null;
  return { count, size, float, signed: sign === 1, big: order === 1, factor: factor | 0, fill };
}

/** Undoes the filter; the result has at most `limit` bytes. */
export function decodeScaleOffset(
  bytes: Uint8Array,
  values: readonly number[],
  limit: number,
  room: Room = newRoom,
): Uint8Array {
  const parameters = parse(values);
  const { count, size, big, float } = parameters;
  if (isPassed(parameters)) return bytes;
  if (count * size > limit)
    throw formatError(`scale-offset filter of ${count * size} bytes where ${limit} were expected`);
  if (bytes.length < HEADER) throw formatError(`scale-offset data of ${bytes.length} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const bits = view.getUint32(0, true);
  const full = bits === size * 8;
  const needed = HEADER + Math.ceil((count * bits) / 8);
  if (bits > size * 8 || needed > bytes.length)
    throw formatError(`scale-offset data of ${bytes.length} bytes for ${count} numbers of ${bits} bits`);
  const out = room(count * size);
  if (full) out.set(bytes.subarray(HEADER, needed));
  else {
    const width = Math.min(8, bytes[4] as number);
    const least = new DataView(new ArrayBuffer(8));
    for (let i = 0; i < width; i++) least.setUint8(i, bytes[5 + i] as number);
    if (float) restoreFloats(view, bits, parameters, least, out);
    else restoreIntegers(view, bits, parameters, least.getUint32(0, true), least.getUint32(4, true), out);
  }
  if (big) swapBytes(out, size);
  return out;
}

/** A width of all bits, chosen by the user: libhdf5 then leaves the data as it is. */
export function isPassed({ float, factor, size }: Parameters): boolean {
  return !float && factor === size * 8;
}

function restoreIntegers(
  bytes: DataView,
  bits: number,
  { count, size, fill }: Parameters,
  least: number,
  leastHigh: number,
  out: Uint8Array,
): void {
  const fillLow = fill ? lowCode(bits) : NEVER;
  const words = size > 2 ? new Uint32Array(out.buffer, out.byteOffset, out.length >> 2) : null;
  const shorts = size === 2 ? new Uint16Array(out.buffer, out.byteOffset, count) : null;
  const block = numberBlock();
  for (let first = 0; first < count; first += BLOCK) {
    const n = Math.min(BLOCK, count - first);
    const at = HEADER + (first / 8) * bits;
    if (
      !import.meta.page &&
      words &&
      size === 4 &&
      bits > 0 &&
      bits <= NARROW &&
      n === BLOCK &&
      isLoadable(bytes, at, bits, n)
    ) {
      unpackNarrow(bytes, at, bits, n, least, fillLow, fill?.low ?? 0, words, first);
      continue;
    }
    if (bits > 0) unpackBits(bytes, at, bits, n, block);
    if (!words) addNarrow(block.low, n, least, fillLow, fill?.low ?? 0, shorts ?? out, first);
    else if (size === 4) addWords(block.low, n, least, fillLow, fill?.low ?? 0, words, first);
    // Without a carry the upper words are all the same.
    else if (!import.meta.page && !fill && bits < 32 && least + lowCode(bits) <= 0xffffffff)
      addToLow(block.low, n, least, leastHigh, words, first);
    else addLong(block, n, { bits, fill, least, leastHigh }, words, first);
  }
}

/** No number is so: then nothing stands for the fill value. */
const NEVER = -1;

/** The number whose bits are all set, and which stands for the fill value: its lower 32 bits. */
function lowCode(bits: number): number {
  return 2 ** Math.min(bits, 32) - 1;
}

function highCode(bits: number): number {
  return bits > 32 ? 2 ** (bits - 32) - 1 : 0;
}

function addNarrow(
  from: Uint32Array,
  count: number,
  least: number,
  fillCode: number,
  fillValue: number,
  to: Uint8Array | Uint16Array,
  first: number,
): void {
  for (let i = 0; i < count; i++) {
    const a = from[i] as number;
    to[first + i] = a === fillCode ? fillValue : (a + least) | 0;
  }
}

function addWords(
  from: Uint32Array,
  count: number,
  least: number,
  fillCode: number,
  fillValue: number,
  to: Uint32Array,
  first: number,
): void {
  for (let i = 0; i < count; i++) {
    const a = from[i] as number;
    to[first + i] = a === fillCode ? fillValue : (a + least) | 0;
  }
}

function addToLow(
  from: Uint32Array,
  count: number,
  least: number,
  leastHigh: number,
  to: Uint32Array,
  first: number,
): void {
  for (let i = 0, at = 2 * first; i < count; i++, at += 2) {
    to[at] = ((from[i] as number) + least) | 0;
    to[at + 1] = leastHigh;
  }
}

function addLong(
  { low, high }: NumberBlock,
  count: number,
  parts: Pick<Parameters, 'fill'> & { readonly bits: number; readonly least: number; readonly leastHigh: number },
  to: Uint32Array,
  first: number,
): void {
  const { bits, fill, least, leastHigh } = parts;
  const fillLow = fill ? lowCode(bits) : NEVER;
  const fillHigh = highCode(bits);
  for (let i = 0, at = 2 * first; i < count; i++, at += 2) {
    const a = low[i] as number;
    const b = bits > 32 ? (high[i] as number) : 0;
    if (a === fillLow && b === fillHigh && fill) {
      to[at] = fill.low;
      to[at + 1] = fill.high;
    } else {
      const sum = a + least;
      to[at] = sum;
      to[at + 1] = b + leastHigh + (sum > 0xffffffff ? 1 : 0);
    }
  }
}

function restoreFloats(
  bytes: DataView,
  bits: number,
  { count, size, fill, factor }: Parameters,
  leastBytes: DataView,
  out: Uint8Array,
): void {
  const fillLow = fill ? lowCode(bits) : NEVER;
  const fillHigh = highCode(bits);
  const fillValue = fill ? floatOf(fill.low, fill.high, size) : 0;
  // Read as decimal: Math.pow may be off by a bit.
  const scale = Number(`1e${factor}`);
  const block = numberBlock();
  const { low, high } = block;
  const singles = size === 4 ? new Float32Array(out.buffer, out.byteOffset, count) : null;
  const doubles = size === 8 ? new Float64Array(out.buffer, out.byteOffset, count) : null;
  const least = size === 4 ? leastBytes.getFloat32(0, true) : leastBytes.getFloat64(0, true);
  const unit = Math.fround(scale);
  for (let first = 0; first < count; first += BLOCK) {
    const n = Math.min(BLOCK, count - first);
    if (bits > 0) unpackBits(bytes, HEADER + (first / 8) * bits, bits, n, block);
    if (singles) {
      // All steps in single precision, as libhdf5 does them.
      for (let i = 0; i < n; i++) {
        const a = low[i] as number;
        singles[first + i] = a === fillLow ? fillValue : Math.fround(Math.fround(a) / unit) + least;
      }
    } else if (doubles) {
      for (let i = 0; i < n; i++) {
        const a = low[i] as number;
        const b = high[i] as number;
        doubles[first + i] = a === fillLow && b === fillHigh ? fillValue : (b * 2 ** 32 + a) / scale + least;
      }
    }
  }
}

export function floatOf(low: number, high: number, size: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setUint32(0, low, true);
  view.setUint32(4, high, true);
  return size === 4 ? view.getFloat32(0, true) : view.getFloat64(0, true);
}
