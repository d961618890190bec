/** The number types that have a name of their own; all of them little-endian in the file. */
export type NumberType =
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float16'
  | 'float32'
  | 'float64';

interface NumberArrays {
  int8: Int8Array<ArrayBuffer>;
  uint8: Uint8Array<ArrayBuffer>;
  int16: Int16Array<ArrayBuffer>;
  uint16: Uint16Array<ArrayBuffer>;
  int32: Int32Array<ArrayBuffer>;
  uint32: Uint32Array<ArrayBuffer>;
  int64: BigInt64Array<ArrayBuffer>;
  uint64: BigUint64Array<ArrayBuffer>;
  float16: Float32Array<ArrayBuffer>;
  float32: Float32Array<ArrayBuffer>;
  float64: Float64Array<ArrayBuffer>;
}

export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** A described type: V is one element in JavaScript, A what a read returns, W what may be written in place of V. */
export interface Described<V = unknown, A = ArrayLike<unknown>, W = V> {
  readonly class:
    | 'integer'
    | 'float'
    | 'string'
    | 'bitfield'
    | 'opaque'
    | 'compound'
    | 'reference'
    | 'enum'
    | 'vlen'
    | 'array';
  readonly size: number;
  readonly _value?: V;
  readonly _array?: A;
  readonly _input?: W;
}

export type DType = NumberType | Described;

export type ValueOf<D> = D extends 'int64' | 'uint64'
  ? bigint
  : D extends NumberType
    ? number
    : D extends Described<infer V, infer _A, infer _W>
      ? V
      : never;

/** What may be written for one element: of an enum, for example, also the name of a member. */
export type InputOf<D> = D extends NumberType
  ? ValueOf<D>
  : D extends Described<infer _V, infer _A, infer W>
    ? W
    : never;

export type ArrayOf<D> = D extends NumberType
  ? NumberArrays[D]
  : D extends Described<infer _V, infer A, infer _W>
    ? A
    : never;

/** One array a field of a compound. */
export type Columns = Readonly<Record<string, ArrayLike<unknown>>>;

// ------------------------------------------------------------------ what a described type really holds

export type ByteOrder = 'little' | 'big';

/** `size` is in bytes; the value sits in `precision` bits from bit `bitOffset` on. Ordinary integers fill all their bytes. */
export interface IntegerType extends Described {
  readonly class: 'integer';
  readonly signed: boolean;
  readonly order: ByteOrder;
  readonly bitOffset: number;
  readonly precision: number;
}

/** The bit positions of a floating-point number, as HDF5 describes them; IEEE half, single and double in practice. */
export interface FloatType extends Described {
  readonly class: 'float';
  readonly order: ByteOrder;
  readonly bitOffset: number;
  readonly precision: number;
  readonly signBit: number;
  readonly exponentAt: number;
  readonly exponentBits: number;
  readonly mantissaAt: number;
  readonly mantissaBits: number;
  readonly exponentBias: number;
  /** 0 none, 1 most significant bit always set, 2 implied (IEEE). */
  readonly normalization: number;
}

/** Zero: ends at the first NUL. Null: filled with NULs, all bytes may be used. Space: filled with blanks. */
export type StringPad = 'zero' | 'null' | 'space';
export type Charset = 'utf8' | 'ascii';

/** Fixed length: `size` bytes. Variable length: size 16, a length and the address of the bytes in a heap. */
export interface StringType extends Described<string, string[]> {
  readonly class: 'string';
  readonly variable: boolean;
  readonly pad: StringPad;
  readonly charset: Charset;
}

export interface BitfieldType extends Described {
  readonly class: 'bitfield';
  readonly order: ByteOrder;
  readonly bitOffset: number;
  readonly precision: number;
}

export interface OpaqueType extends Described<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>[]> {
  readonly class: 'opaque';
  readonly tag: string;
}

export interface CompoundField {
  readonly name: string;
  readonly offset: number;
  readonly dtype: DType;
}

export interface CompoundType extends Described {
  readonly class: 'compound';
  readonly fields: readonly CompoundField[];
}

/** Object references hold the address of an object header; region references a heap id; others, of HDF5 1.12, either. */
export interface ReferenceType extends Described {
  readonly class: 'reference';
  readonly to: 'object' | 'region' | 'other';
}

export interface EnumType extends Described {
  readonly class: 'enum';
  readonly base: DType;
  /** By name, for users. */
  readonly members: Readonly<Record<string, number | bigint>>;
  /** In the order of the file; values as numbers, or as bigints when the base has 64 bits. */
  readonly entries: readonly (readonly [name: string, value: number | bigint])[];
}

export interface VlenType extends Described {
  readonly class: 'vlen';
  readonly base: DType;
}

export interface ArrayType extends Described {
  readonly class: 'array';
  readonly base: DType;
  readonly shape: readonly number[];
}

export type FullType =
  | IntegerType
  | FloatType
  | StringType
  | BitfieldType
  | OpaqueType
  | CompoundType
  | ReferenceType
  | EnumType
  | VlenType
  | ArrayType;

/** How many elements of its base one element of an array type holds. */
export function arrayLength({ shape }: Pick<ArrayType, 'shape'>): number {
  let length = 1;
  for (const extent of shape) length *= extent;
  return length;
}

/** A length, the address of a global heap collection and an index in it: what stands for a variable-length value. */
export const HEAP_ID_SIZE = 16;
export const REFERENCE_SIZE = 8;
/** The heap id of a region reference, without a length. */
export const REGION_SIZE = 12;

const integer = (size: number, signed: boolean, order: ByteOrder): IntegerType => ({
  class: 'integer',
  size,
  signed,
  order,
  bitOffset: 0,
  precision: size * 8,
});

const ieee = (size: number, exponentBits: number, order: ByteOrder): FloatType => ({
  class: 'float',
  size,
  order,
  bitOffset: 0,
  precision: size * 8,
  signBit: size * 8 - 1,
  exponentAt: size * 8 - 1 - exponentBits,
  exponentBits,
  mantissaAt: 0,
  mantissaBits: size * 8 - 1 - exponentBits,
  exponentBias: 2 ** (exponentBits - 1) - 1,
  normalization: 2,
});

/** The full description of a named number type in either byte order. */
export function numberType(name: NumberType, order: ByteOrder = 'little'): IntegerType | FloatType {
  switch (name) {
    case 'float16':
      return ieee(2, 5, order);
    case 'float32':
      return ieee(4, 8, order);
    case 'float64':
      return ieee(8, 11, order);
    default: {
      const signed = name.startsWith('int');
      return integer(Number(name.slice(signed ? 3 : 4)) / 8, signed, order);
    }
  }
}

const named = new Map<NumberType, IntegerType | FloatType>();
for (const name of [
  'int8',
  'uint8',
  'int16',
  'uint16',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'float16',
  'float32',
  'float64',
] as const) {
  named.set(name, Object.freeze(numberType(name)));
}

/** Resolves the name of a type to its description; a description is returned as it is. */
export function fullType(dtype: DType): FullType {
  return (typeof dtype === 'string' ? named.get(dtype) : dtype) as FullType;
}

/**
 * The named number type with the same values, whatever its byte order, or undefined for anything unusual
 * (padding bits, other floats, other classes).
 */
export function numberName(dtype: DType): NumberType | undefined {
  if (typeof dtype === 'string') return dtype;
  const type = dtype as FullType;
  if (type.class === 'integer') {
    if (type.bitOffset !== 0 || type.precision !== type.size * 8) return undefined;
    if (![1, 2, 4, 8].includes(type.size)) return undefined;
    return `${type.signed ? 'int' : 'uint'}${type.size * 8}` as NumberType;
  }
  if (type.class === 'float') {
    const name = ({ 2: 'float16', 4: 'float32', 8: 'float64' } as const)[type.size as 2 | 4 | 8];
    if (!name) return undefined;
    const standard = named.get(name) as FloatType;
    const same = (Object.keys(standard) as (keyof FloatType)[]).every((k) => k === 'order' || standard[k] === type[k]);
    return same ? name : undefined;
  }
  return undefined;
}

/**
 * The number that is stored for one element: of an enum its base, of a bitfield an unsigned integer of the same bits,
 * of a number itself; undefined for the other classes.
 */
export function storedNumber(dtype: DType): IntegerType | FloatType | undefined {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
    case 'float':
      return type;
    case 'enum':
      return storedNumber(type.base);
    case 'bitfield':
      return { ...type, class: 'integer', signed: false };
    default:
      return undefined;
  }
}

/** Whether the elements of a typed array have the bytes that the file has: numbers in the byte order of the machine, but for float16. */
export function isPlainNumber(dtype: DType): boolean {
  const stored = storedNumber(dtype);
  const name = stored && numberName(stored);
  return name !== undefined && name !== 'float16' && (stored?.order === 'little' || stored?.size === 1);
}

/** h5py's boolean: an enum over int8 with exactly FALSE = 0 and TRUE = 1. */
export function isBool(dtype: DType): boolean {
  const type = fullType(dtype);
  if (type.class !== 'enum' || type.entries.length !== 2 || numberName(type.base) !== 'int8') return false;
  return type.entries.every(([name, value]) => (name === 'FALSE' && value === 0) || (name === 'TRUE' && value === 1));
}

/** The shortest notation of a type: the name of a little-endian standard number, else its description. */
export function publicType(type: FullType): DType {
  if ((type.class === 'integer' || type.class === 'float') && (type.order === 'little' || type.size === 1)) {
    return numberName(type) ?? type;
  }
  return type;
}
