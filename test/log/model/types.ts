import { type DType, type Filter, T, type TypedArray } from 'h5log';

type NumberType =
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

/** Numbers in [0, 1). */
export type Random = () => number;

export const below = (random: Random, limit: number): number => Math.floor(random() * limit);
export const pick = <X>(random: Random, list: readonly X[]): X => list[below(random, list.length)] as X;
export const chance = (random: Random, share: number): boolean => random() < share;

/** The model keeps a small number for every element, from 0 to here; it is exact in every number type. */
export const MOST = 100;

/** How a small number looks as an element of a type, in JavaScript and in the file. Zero is always zero bytes. */
export interface ModelType {
  readonly name: string;
  readonly dtype: DType;
  readonly size: number;
  /** Any typed array and any list of numbers is taken. */
  readonly isNumber: boolean;
  value(v: number): unknown;
  raw(v: number): number[];
  /** Bytes that an element has in a heap; only of types whose elements point elsewhere, and have no bytes of their own. */
  heap?(v: number): number;
}

const NUMBERS: readonly [NumberType, number][] = [
  ['int8', 1],
  ['uint8', 1],
  ['int16', 2],
  ['uint16', 2],
  ['int32', 4],
  ['uint32', 4],
  ['int64', 8],
  ['uint64', 8],
  ['float16', 2],
  ['float32', 4],
  ['float64', 8],
];

/** The bytes of a number from 0 to 100, worked out here: nothing of the library is asked. */
function numberBytes(name: NumberType, size: number, v: number, big: boolean): number[] {
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  if (name === 'float64') view.setFloat64(0, v, true);
  else if (name === 'float32') view.setFloat32(0, v, true);
  else if (name === 'float16') {
    const exponent = v === 0 ? 0 : Math.floor(Math.log2(v));
    view.setUint16(0, v === 0 ? 0 : ((exponent + 15) << 10) | Math.round((v / 2 ** exponent - 1) * 1024), true);
  } else view.setUint8(0, v);
  return big ? [...bytes].reverse() : [...bytes];
}

function numberType(name: NumberType, size: number, order: '' | 'big' | 'little'): ModelType {
  const dtype: DType = order === '' ? name : order === 'big' ? T.bigEndian(name) : T.littleEndian(name);
  const big = order === 'big';
  const value = name === 'int64' || name === 'uint64' ? (v: number) => BigInt(v) : (v: number) => v;
  return { name: `${order}${name}`, dtype, size, isNumber: true, value, raw: (v) => numberBytes(name, size, v, big) };
}

const text = (v: number): string => (v === 0 ? '' : `s${v}`);
const chars = (v: number, size: number): number[] =>
  [...Buffer.alloc(size, 0).fill(text(v), 0, text(v).length)].slice(0, size);

const fancy: readonly ModelType[] = [
  {
    name: 'string',
    dtype: T.string({ length: 5, pad: 'null' }),
    size: 5,
    isNumber: false,
    value: text,
    raw: (v) => (v === 0 ? [0, 0, 0, 0, 0] : chars(v, 5)),
  },
  {
    name: 'enum',
    dtype: T.enum('int16', { none: 0, one: 1, two: 2, three: 3 }),
    size: 2,
    isNumber: true,
    value: (v) => v & 3,
    raw: (v) => [v & 3, 0],
  },
  {
    name: 'opaque',
    dtype: T.opaque(3, 'three'),
    size: 3,
    isNumber: false,
    value: (v) => Uint8Array.of(v, 0, v),
    raw: (v) => [v, 0, v],
  },
  {
    name: 'array',
    dtype: T.array('int16', [2]),
    size: 4,
    isNumber: false,
    value: (v) => Int16Array.of(v, -v),
    raw: (v) => [v, 0, -v & 255, v === 0 ? 0 : 255],
  },
  {
    name: 'compound',
    dtype: T.compound({ a: 'int32', b: T.bigEndian('float64'), c: 'int8' }),
    size: 13,
    isNumber: false,
    value: (v) => ({ a: v, b: v, c: -v }),
    raw: (v) => [v, 0, 0, 0, ...numberBytes('float64', 8, v, true), -v & 255],
  },
];

/** An object of a heap with its header. */
const inHeap = (bytes: number): number => 16 + Math.ceil(bytes / 8) * 8;

const pointing: readonly ModelType[] = [
  {
    name: 'variable string',
    dtype: T.string(),
    size: 16,
    isNumber: false,
    value: text,
    raw: () => [],
    heap: (v) => inHeap(text(v).length),
  },
  {
    name: 'sequence',
    dtype: T.vlen('int16'),
    size: 16,
    isNumber: false,
    value: (v) => (v === 0 ? new Int16Array(0) : new Int16Array(1 + (v % 3)).fill(v)),
    raw: () => [],
    heap: (v) => (v === 0 ? 0 : inHeap(2 + 2 * (v % 3))),
  },
  {
    name: 'nested sequence',
    dtype: T.vlen(T.vlen(T.string())),
    size: 16,
    isNumber: false,
    value: (v) => (v === 0 ? [] : [[text(v)], []]),
    raw: () => [],
    heap: (v) => (v === 0 ? 0 : inHeap(text(v).length) + inHeap(16) + inHeap(32)),
  },
  {
    name: 'pointing record',
    dtype: T.compound({ n: 'int32', s: T.string(), to: T.array(T.reference, [2]) }),
    size: 36,
    isNumber: false,
    value: (v) => ({ n: v, s: text(v), to: [v % 3 === 0 ? '' : '/', ''] }),
    raw: () => [],
    heap: (v) => inHeap(text(v).length),
  },
];

const plain = NUMBERS.map(([name, size]) => numberType(name, size, ''));
const ordered = NUMBERS.flatMap(([name, size]) => [numberType(name, size, 'big'), numberType(name, size, 'little')]);

export function randomType(random: Random): ModelType {
  const kind = random();
  return pick(random, kind < 0.6 ? plain : kind < 0.75 ? ordered : kind < 0.88 ? fancy : pointing);
}

const KINDS = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
] as const;

/** A typed array of any kind, all elements set to `v`. */
export function randomArray(random: Random, length: number, v: number): TypedArray {
  const make = pick(random, KINDS);
  const array: TypedArray = new make(length);
  for (let i = 0; i < length; i++)
    array[i] = array instanceof BigInt64Array || array instanceof BigUint64Array ? BigInt(v) : v;
  return array;
}

/** What to write so that the elements become `values`: of the own type mostly, of any other kind sometimes. */
export function source(
  random: Random,
  type: ModelType,
  values: readonly number[],
): { data: unknown; view: TypedArray | null } {
  if (values.length === 1 && chance(random, 0.3) && !type.heap)
    return { data: type.value(values[0] as number), view: null };
  if (!type.isNumber) return { data: values.map((v) => type.value(v)), view: null };
  const shown = values.map((v) => Number(type.value(v)));
  const kind = random();
  if (kind < 0.1) return { data: shown, view: null };
  if (kind < 0.2) return { data: shown.map((v) => BigInt(v)), view: null };
  const own = typeof type.dtype === 'string' && type.dtype !== 'float16' ? type.dtype : undefined;
  const array = own && kind < 0.7 ? ownArray(own, values.length) : randomArray(random, values.length, 0);
  shown.forEach((v, i) => {
    array[i] = array instanceof BigInt64Array || array instanceof BigUint64Array ? BigInt(v) : v;
  });
  return { data: array, view: array };
}

const OWN = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;

function ownArray(name: keyof typeof OWN, length: number): TypedArray {
  return new OWN[name](length);
}

/** Anything as something that compares by its text. */
export function shown(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => {
    if (typeof item === 'bigint') return Number(item);
    return ArrayBuffer.isView(item) && !(item instanceof DataView) ? Array.from(item as Uint8Array) : item;
  });
}

export function randomFilters(random: Random): Filter[] {
  if (chance(random, 0.6)) return [];
  const all: Filter[] = ['shuffle', { deflate: below(random, 10) }, 'fletcher32'];
  const chosen = all.filter(() => chance(random, 0.5));
  return chance(random, 0.2) ? chosen.reverse() : chosen;
}
