// Numbers between JavaScript and the file, in either byte order, with HDF5's conversion rules (see kernels.ts).

import { H5LogError } from '../base/errors.ts';
import { readUnusual, writeUnusual } from './bits.ts';
import { describeType, describeValue } from './describe.ts';
import {
  CHUNK,
  crossSign,
  input,
  narrow,
  output,
  type Scratch,
  storeInt64,
  storeUint64,
  swapBytes,
  widen,
  wideToSingle,
} from './kernels.ts';
import {
  type DType,
  type FloatType,
  type IntegerType,
  isBool,
  type NumberType,
  numberName,
  storedNumber,
  type TypedArray,
} from './model.ts';

/** Up to this many elements or bytes a loop is faster than a view and a call of `set`. */
const LOOPED = 48;

const ARRAYS = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: Float32Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;

/** The number type of each class of typed arrays. */
const KINDS: Readonly<Record<string, NumberType>> = {
  Uint8ClampedArray: 'uint8',
  ...Object.fromEntries(Object.entries(ARRAYS).map(([kind, { name }]) => [name, kind])),
};

/** A number type as the loops need it; `kind` is undefined for a type of unusual layout (see bits.ts). */
interface Layout {
  readonly kind: NumberType | undefined;
  readonly big: boolean;
  readonly size: number;
  readonly type: IntegerType | FloatType;
}

const layouts = new Map<string, Layout>();
const describedLayouts = new WeakMap<object, Layout>();

function layoutOf(dtype: DType): Layout {
  const known = typeof dtype === 'string' ? layouts.get(dtype) : describedLayouts.get(dtype);
  if (known) return known;
  const type = storedNumber(dtype);
  if (!type) throw new H5LogError('DTYPE', `expected a number type, got ${describeType(dtype)}`);
  const layout = { kind: numberName(type), big: type.order === 'big' && type.size > 1, size: type.size, type };
  if (typeof dtype === 'string') layouts.set(dtype, layout);
  else describedLayouts.set(dtype, layout);
  return layout;
}

/** The number type whose bytes a typed array holds; undefined for anything else. */
export function arrayKind(array: unknown): NumberType | undefined {
  // The common classes first: every small write calls this, and reading the tag costs ten times as much.
  if (array instanceof Float64Array) return 'float64';
  if (array instanceof Float32Array) return 'float32';
  if (array instanceof Int32Array) return 'int32';
  if (!ArrayBuffer.isView(array)) return undefined;
  // By tag and not by instanceof: the array may come from another realm, and a Buffer is a Uint8Array.
  return KINDS[(array as TypedArray)[Symbol.toStringTag]];
}

/** The typed array that a read of such numbers returns; enums and bitfields count as their numbers. */
export function numberArray(dtype: DType, length: number): TypedArray {
  const { kind } = layoutOf(dtype);
  if (kind === undefined) throw new H5LogError('DTYPE', `${describeType(dtype)} has no typed array`);
  return new (isBool(dtype) ? Uint8Array : ARRAYS[kind])(length);
}

/**
 * JavaScript numbers to file bytes. A typed array counts as its own type, plain numbers as float64, bigints as 64-bit
 * integers. `out` need not be aligned.
 */
export function packNumbers(
  source: TypedArray | ArrayLike<number | bigint>,
  sourceAt: number,
  count: number,
  type: DType,
  out: Uint8Array,
  outAt: number,
): void {
  const layout = layoutOf(type);
  checkRange('source', source.length, sourceAt, count, 'elements');
  checkRange('output', out.length, outAt, count * layout.size, 'bytes');
  const kind = arrayKind(source);
  if (layout.kind === undefined) {
    const values = checked(source, sourceAt, count, type);
    writeUnusual(layout.type, values, sourceAt, count, out, outAt);
  } else if (kind === undefined) packPlain(source, sourceAt, count, type, layout.kind, layout.big, out, outAt);
  else if (!import.meta.page && count <= LOOPED) {
    loadFew(source as TypedArray, kind, sourceAt, count);
    if (kind !== layout.kind) convertChunk(kind, layout.kind, count);
    const result = kind === layout.kind ? input : output;
    if (layout.big) swapBytes(result, layout.size, count);
    copyBytes(result.bytes, 0, count * layout.size, out, outAt);
  } else {
    const bytes = bytesOf(source as TypedArray);
    const at = sourceAt * (source as TypedArray).BYTES_PER_ELEMENT;
    convert(bytes, at, kind, false, out, outAt, layout.kind, layout.big, count);
  }
}

/** File bytes into any typed array, converted with the same rules. `bytes` need not be aligned. */
export function unpackNumbers(
  bytes: Uint8Array,
  at: number,
  count: number,
  type: DType,
  into: TypedArray,
  intoAt: number,
): void {
  const layout = layoutOf(type);
  checkRange('input', bytes.length, at, count * layout.size, 'bytes');
  checkRange('target', into.length, intoAt, count, 'elements');
  const kind = arrayKind(into);
  if (kind === undefined) {
    throw new H5LogError('DTYPE', `expected a typed array to read into, got ${describeValue(into)}`);
  }
  const target = bytesOf(into);
  if (layout.kind === undefined) {
    packNumbers(readUnusual(layout.type, bytes, at, count), 0, count, kind, target, intoAt * into.BYTES_PER_ELEMENT);
  } else {
    convert(bytes, at, layout.kind, layout.big, target, intoAt * into.BYTES_PER_ELEMENT, kind, false, count);
  }
}

/** Converts bytes of one kind and byte order to another, a chunk at a time: copy in, swap, convert, swap, copy out. */
function convert(
  from: Uint8Array,
  fromAt: number,
  fromKind: NumberType,
  fromBig: boolean,
  to: Uint8Array,
  toAt: number,
  toKind: NumberType,
  toBig: boolean,
  count: number,
): void {
  const fromSize = sizeOf(fromKind);
  const toSize = sizeOf(toKind);
  const swapOnly = fromKind === toKind;
  if (swapOnly && fromBig === toBig) {
    copyBytes(from, fromAt, count * fromSize, to, toAt);
    return;
  }
  for (let done = 0; done < count; done += CHUNK) {
    const n = Math.min(CHUNK, count - done);
    copyBytes(from, fromAt + done * fromSize, n * fromSize, input.bytes, 0);
    let result: Scratch = input;
    if (swapOnly) swapBytes(input, fromSize, n);
    else {
      if (fromBig) swapBytes(input, fromSize, n);
      convertChunk(fromKind, toKind, n);
      if (toBig) swapBytes(output, toSize, n);
      result = output;
    }
    copyBytes(result.bytes, 0, n * toSize, to, toAt + done * toSize);
  }
}

function convertChunk(from: NumberType, to: NumberType, n: number): void {
  // Through float64, which is exact except between 64-bit integers, and rounds twice from those to float32.
  if (from === 'int64' || from === 'uint64') {
    if (to === 'int64' || to === 'uint64') {
      crossSign(from === 'int64', n);
      return;
    }
    if (to === 'float32') {
      wideToSingle(from === 'int64', n);
      return;
    }
  }
  narrow(widen(from, n), to, n);
}

const plain = new Float64Array(CHUNK);

function packPlain(
  source: ArrayLike<unknown>,
  sourceAt: number,
  count: number,
  type: DType,
  kind: NumberType,
  big: boolean,
  out: Uint8Array,
  outAt: number,
): void {
  const size = sizeOf(kind);
  for (let done = 0; done < count; done += CHUNK) {
    const n = Math.min(CHUNK, count - done);
    const wide = kind === 'int64' || kind === 'uint64';
    for (let i = 0; i < n; i++) {
      const value = source[sourceAt + done + i];
      if (typeof value === 'number') {
        if (!wide) plain[i] = value;
        else if (kind === 'int64') storeInt64(value, i);
        else storeUint64(value, i);
      } else if (typeof value === 'bigint') {
        if (kind === 'int64') output.int64[i] = clampBigInt(value, -(2n ** 63n), 2n ** 63n - 1n);
        else if (kind === 'uint64') output.uint64[i] = clampBigInt(value, 0n, 2n ** 64n - 1n);
        else plain[i] = kind === 'float32' ? singleOf(value) : Number(value);
      } else throw notANumber(value, sourceAt + done + i, type);
    }
    if (!wide) narrow(plain, kind, n);
    if (big) swapBytes(output, size, n);
    copyBytes(output.bytes, 0, n * size, out, outAt + done * size);
  }
}

const clampBigInt = (v: bigint, low: bigint, high: bigint): bigint => (v < low ? low : v > high ? high : v);

/** A bigint on its way to float32, made short enough for float64 to hold exactly; see wideToSingle. */
function singleOf(value: bigint): number {
  const inRange = clampBigInt(value, -(2n ** 63n), 2n ** 64n - 1n);
  if (Number.isSafeInteger(Number(inRange))) return Number(inRange);
  const top = inRange & ~0x7ffn;
  return Number(top === inRange ? top : top | 0x800n);
}

/** For the slow path: every element is checked before the first one is written. */
function checked(source: ArrayLike<unknown>, at: number, count: number, type: DType): ArrayLike<number | bigint> {
  for (let i = at; i < at + count; i++) {
    const value = source[i];
    if (typeof value !== 'number' && typeof value !== 'bigint') throw notANumber(value, i, type);
  }
  return source as ArrayLike<number | bigint>;
}

function notANumber(value: unknown, index: number, type: DType): H5LogError {
  const got = `${describeValue(value)} at index ${index}`;
  return new H5LogError('DTYPE', `expected a number or bigint for ${describeType(type)}, got ${got}`);
}

function checkRange(what: string, length: number, at: number, count: number, unit: string): void {
  if (!(at >= 0 && count >= 0 && at + count <= length)) {
    throw new H5LogError('SHAPE', `the ${what} has ${length} ${unit}, ${count} from ${at} on do not fit`);
  }
}

const sizeOf = (kind: NumberType): number => layoutOf(kind).size;

const bytesOf = (array: TypedArray): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

function copyBytes(from: Uint8Array, fromAt: number, length: number, to: Uint8Array, toAt: number): void {
  if (length <= LOOPED) for (let i = 0; i < length; i++) to[toAt + i] = from[fromAt + i] as number;
  else to.set(from.subarray(fromAt, fromAt + length), toAt);
}

/** A few elements into `input` as they are, without a view of the source. One loop a kind: see kernels.ts. */
function loadFew(source: TypedArray, kind: NumberType, at: number, n: number): void {
  switch (kind) {
    case 'int8':
      for (let i = 0; i < n; i++) input.int8[i] = (source as Int8Array)[at + i] as number;
      return;
    case 'uint8':
      for (let i = 0; i < n; i++) input.uint8[i] = (source as Uint8Array)[at + i] as number;
      return;
    case 'int16':
      for (let i = 0; i < n; i++) input.int16[i] = (source as Int16Array)[at + i] as number;
      return;
    case 'uint16':
      for (let i = 0; i < n; i++) input.uint16[i] = (source as Uint16Array)[at + i] as number;
      return;
    case 'int32':
      for (let i = 0; i < n; i++) input.int32[i] = (source as Int32Array)[at + i] as number;
      return;
    case 'uint32':
      for (let i = 0; i < n; i++) input.uint32[i] = (source as Uint32Array)[at + i] as number;
      return;
    case 'int64':
      for (let i = 0; i < n; i++) input.int64[i] = (source as BigInt64Array)[at + i] as bigint;
      return;
    case 'uint64':
      for (let i = 0; i < n; i++) input.uint64[i] = (source as BigUint64Array)[at + i] as bigint;
      return;
    case 'float32':
      // Not a loop: on the way through a JavaScript number a signaling NaN would become a quiet one.
      input.float32.set((source as Float32Array).subarray(at, at + n));
      return;
    case 'float64':
      for (let i = 0; i < n; i++) input.float64[i] = (source as Float64Array)[at + i] as number;
      return;
  }
}
