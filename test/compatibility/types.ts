import { type DType, type NumberType, T } from 'h5log';

// Element types and values as JSON: what fixtures say of their contents, worked out without the library.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export interface Field {
  readonly name: string;
  readonly dtype: TypeText;
  readonly offset: number;
}

/** An element type. A number alone is little-endian. */
export type TypeText =
  | NumberType
  | 'bool'
  | 'reference'
  | { readonly bigEndian: NumberType }
  | {
      readonly string: number | 'variable';
      readonly pad: 'zero' | 'null' | 'space';
      readonly charset: 'utf8' | 'ascii';
    }
  | { readonly enum: NumberType; readonly members: Readonly<Record<string, number | string>> }
  | { readonly compound: readonly Field[]; readonly size: number }
  | { readonly array: TypeText; readonly shape: readonly number[] }
  | { readonly vlen: TypeText }
  | { readonly opaque: number; readonly tag: string }
  | { readonly bitfield: 1 | 2 | 4 | 8 };

/** Fields one after the other, without gaps. */
export function compoundOf(fields: Readonly<Record<string, TypeText>>): TypeText {
  let size = 0;
  const compound = Object.entries(fields).map(([name, dtype]) => {
    const offset = size;
    size += sizeOf(dtype);
    return { name, dtype, offset };
  });
  return { compound, size };
}

export function sizeOf(type: TypeText): number {
  const number = numberOf(type);
  if (number) return Number(/\d+/.exec(number.name)?.[0]) / 8;
  if (type === 'reference') return 8;
  if (typeof type === 'string' || 'bigEndian' in type || 'enum' in type) throw new Error('a number has its size');
  if ('string' in type) return type.string === 'variable' ? 16 : type.string;
  if ('compound' in type) return type.size;
  if ('array' in type) return sizeOf(type.array) * product(type.shape);
  if ('vlen' in type) return 16;
  return 'opaque' in type ? type.opaque : type.bitfield;
}

export const product = (sizes: readonly number[]): number => sizes.reduce((a, b) => a * b, 1);

/** The number that an element is stored as: also of an enum, a bool and a bitfield. */
function numberOf(type: TypeText): { name: NumberType; big: boolean } | undefined {
  if (type === 'bool') return { name: 'int8', big: false };
  if (type === 'reference') return undefined;
  if (typeof type === 'string') return { name: type, big: false };
  if ('bigEndian' in type) return { name: type.bigEndian, big: true };
  if ('enum' in type) return { name: type.enum, big: false };
  if ('bitfield' in type) return { name: `uint${type.bitfield * 8}` as NumberType, big: false };
  return undefined;
}

export function dtypeOf(type: TypeText): DType {
  if (type === 'bool') return T.bool;
  if (type === 'reference') return T.reference;
  if (typeof type === 'string') return type;
  if ('bigEndian' in type) return T.bigEndian(type.bigEndian);
  if ('string' in type) {
    const { string: length, pad, charset } = type;
    return length === 'variable' ? T.string({ charset }) : T.string({ length, pad, charset });
  }
  if ('enum' in type) {
    const members = Object.entries(type.members).map(([name, value]) => [
      name,
      typeof value === 'string' ? BigInt(value) : value,
    ]);
    return T.enum(type.enum, Object.fromEntries(members));
  }
  if ('compound' in type) {
    const fields = Object.fromEntries(type.compound.map(({ name, dtype }) => [name, dtypeOf(dtype)]));
    const offsets = Object.fromEntries(type.compound.map(({ name, offset }) => [name, offset]));
    return T.compound(fields, { offsets, size: type.size });
  }
  if ('array' in type) return T.array(dtypeOf(type.array), type.shape);
  if ('vlen' in type) return T.vlen(dtypeOf(type.vlen));
  return 'opaque' in type ? T.opaque(type.opaque, type.tag) : T.bitfield(type.bitfield);
}

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

const is64 = (name: NumberType): boolean => name === 'int64' || name === 'uint64';

/** One element as the library takes and gives it. */
export function elementOf(type: TypeText, json: Json): unknown {
  if (type === 'bool' || type === 'reference') return json;
  const number = numberOf(type);
  if (number) return is64(number.name) ? BigInt(json as string) : Number(json);
  if (typeof type === 'string' || 'string' in type) return json;
  if ('opaque' in type) return new Uint8Array(Buffer.from(json as string, 'hex'));
  if ('compound' in type) {
    return Object.fromEntries(
      type.compound.map(({ name, dtype }) => [name, elementOf(dtype, (json as Record<string, Json>)[name] as Json)]),
    );
  }
  if ('array' in type) return dataOf(type.array, json as readonly Json[]);
  return dataOf((type as { vlen: TypeText }).vlen, json as readonly Json[]);
}

/** Elements as the library takes and gives them: numbers in their typed array, others in a list. */
export function dataOf(type: TypeText, values: readonly Json[]): ArrayLike<unknown> {
  const list = values.map((json) => elementOf(type, json));
  const name = typeof type === 'string' ? type : 'bigEndian' in type ? type.bigEndian : undefined;
  if (name === undefined || name === 'bool' || name === 'reference') return list;
  const array = new ARRAYS[name](list.length);
  for (const [i, value] of list.entries()) array[i] = value as never;
  return array;
}

/** The opposite of {@link elementOf}. */
export function jsonOf(type: TypeText, value: unknown): Json {
  if (type === 'bool') return Boolean(value);
  const number = numberOf(type);
  if (number) {
    if (is64(number.name)) return String(value);
    const plain = value as number;
    return Number.isFinite(plain) && !Object.is(plain, -0) ? plain : Object.is(plain, -0) ? '-0' : String(plain);
  }
  if (typeof type === 'string' || 'string' in type) return value as string;
  if ('opaque' in type) return Buffer.from(value as Uint8Array).toString('hex');
  if ('compound' in type) {
    const record = value as Readonly<Record<string, unknown>>;
    return Object.fromEntries(type.compound.map(({ name, dtype }) => [name, jsonOf(dtype, record[name])]));
  }
  const base = 'array' in type ? type.array : (type as { vlen: TypeText }).vlen;
  return jsonList(base, value as ArrayLike<unknown>);
}

export const jsonList = (type: TypeText, data: ArrayLike<unknown>): Json[] =>
  Array.from(data, (value) => jsonOf(type, value));

/** What is read where nothing was written and no fill value was given: all bytes zero. */
export function zeroOf(type: TypeText): Json {
  if (type === 'bool') return false;
  const number = numberOf(type);
  if (number) return is64(number.name) ? '0' : 0;
  if (typeof type === 'string' || 'string' in type) return '';
  if ('opaque' in type) return '00'.repeat(type.opaque);
  if ('compound' in type) return Object.fromEntries(type.compound.map(({ name, dtype }) => [name, zeroOf(dtype)]));
  if ('array' in type) return Array.from({ length: product(type.shape) }, () => zeroOf(type.array));
  return [];
}

/** The bytes of elements in a file. */
export function bytesOf(type: TypeText, values: readonly Json[]): Uint8Array {
  const size = sizeOf(type);
  const bytes = new Uint8Array(size * values.length);
  for (const [i, json] of values.entries()) putElement(type, json, bytes.subarray(i * size, (i + 1) * size));
  return bytes;
}

function putElement(type: TypeText, json: Json, into: Uint8Array): void {
  const number = numberOf(type);
  if (number) putNumber(number.name, json, into, number.big);
  else if (typeof type === 'object' && 'string' in type) {
    into.fill(type.pad === 'space' ? 0x20 : 0);
    into.set(Buffer.from(json as string, 'utf8'));
  } else if (typeof type === 'object' && 'opaque' in type) into.set(Buffer.from(json as string, 'hex'));
  else if (typeof type === 'object' && 'compound' in type) {
    for (const { name, dtype, offset } of type.compound) {
      const field = into.subarray(offset, offset + sizeOf(dtype));
      putElement(dtype, (json as Record<string, Json>)[name] as Json, field);
    }
  } else if (typeof type === 'object' && 'array' in type) into.set(bytesOf(type.array, json as readonly Json[]));
  else throw new Error(`elements of ${JSON.stringify(type)} are not in one place`);
}

function putNumber(name: NumberType, json: Json, into: Uint8Array, big: boolean): void {
  const view = new DataView(into.buffer, into.byteOffset, into.byteLength);
  if (name === 'float64') view.setFloat64(0, Number(json), !big);
  else if (name === 'float32') view.setFloat32(0, Number(json), !big);
  else if (name === 'float16') view.setUint16(0, halfBits(Number(json)), !big);
  else {
    const bits = BigInt.asUintN(64, BigInt(json as number | string | boolean));
    for (let i = 0; i < into.length; i++) {
      into[big ? into.length - 1 - i : i] = Number((bits >> BigInt(8 * i)) & 255n);
    }
  }
}

/** IEEE half precision of a value that it can hold. */
function halfBits(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === Infinity) return sign | 0x7c00;
  const exponent = size < 2 ** -14 ? -15 : Math.floor(Math.log2(size));
  const mantissa = exponent === -15 ? size / 2 ** -24 : (size / 2 ** exponent - 1) * 1024;
  if (!Number.isInteger(mantissa) || exponent > 15) throw new Error(`${value} is not a float16`);
  return sign | ((exponent + 15) << 10) | mantissa;
}

/** Some element of a type, another one for every k. Every eighth float is a special one. */
export function sample(type: TypeText, k: number): Json {
  if (type === 'bool') return k % 3 === 0;
  if (type === 'reference') return '/';
  if (typeof type === 'object') {
    if ('enum' in type) return Object.values(type.members)[k % Object.keys(type.members).length] as number | string;
    if ('string' in type) return sampleText(type, k);
    if ('opaque' in type)
      return Buffer.from(Array.from({ length: type.opaque }, (_, i) => (k * 7 + i) & 255)).toString('hex');
    if ('compound' in type) {
      return Object.fromEntries(type.compound.map(({ name, dtype }, i) => [name, sample(dtype, k + i)]));
    }
    if ('array' in type) return Array.from({ length: product(type.shape) }, (_, i) => sample(type.array, k + i));
    if ('vlen' in type) return Array.from({ length: k % 4 }, (_, i) => sample(type.vlen, k + i));
  }
  return sampleNumber(numberOf(type)?.name as NumberType, k);
}

export const samples = (type: TypeText, count: number, from: number): Json[] =>
  Array.from({ length: count }, (_, i) => sample(type, from + i));

function sampleNumber(name: NumberType, k: number): Json {
  if (name.startsWith('float')) {
    const special = ['NaN', '-0', 'Infinity', '-Infinity'][(k >> 3) & 3] as string;
    return k % 8 === 7 ? special : ((k * 5) % 400) / 4 - 50;
  }
  const bits = Number(/\d+/.exec(name)?.[0]);
  const scrambled = BigInt(k) * 0x9e3779b97f4a7c15n;
  const value = name.startsWith('u') ? BigInt.asUintN(bits, scrambled) : BigInt.asIntN(bits, scrambled);
  return bits === 64 ? String(value) : Number(value);
}

function sampleText(type: { string: number | 'variable'; pad: string; charset: string }, k: number): string {
  const { string: length, pad, charset } = type;
  const word = charset === 'utf8' && k % 4 === 1 ? `é${k}` : `t${k}-${'abcdefgh'.slice(0, k % 9)}`;
  if (length === 'variable') return k % 7 === 3 ? '' : word;
  const room = pad === 'zero' ? length - 1 : length;
  const isLong = Buffer.byteLength(word) > room;
  return isLong ? `${k}`.padStart(room, 'x').slice(-room) : word;
}
