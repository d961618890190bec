// JavaScript values to file bytes. What does not lie in the element itself (variable-length contents, the addresses of
// referenced objects) is listed beside the bytes, for the caller to store and to patch in.

import { allocate } from '../base/buffers.ts';
import { addContext, H5LogError } from '../base/errors.ts';
import { arrayKind, packNumbers } from './convert.ts';
import { describeType, describeValue } from './describe.ts';
import { copyStrided } from './kernels.ts';
import {
  type ArrayType,
  arrayLength,
  type Columns,
  type CompoundType,
  type DType,
  type EnumType,
  fullType,
  HEAP_ID_SIZE,
  isBool,
  isPlainNumber,
  numberName,
  type ReferenceType,
  type StringType,
  storedNumber,
  type TypedArray,
  type VlenType,
} from './model.ts';
import { textBytes } from './text.ts';

/** The content of one variable-length value: `length` elements (bytes, of a string) for the heap id at `at`. */
interface HeapItem {
  readonly at: number;
  readonly length: number;
  readonly content: Encoded;
}

/**
 * Takes what does not lie in the elements: contents of variable-length values, and references. A content is opened, written to
 * `chunk` from `at` on, and closed. See hdf5/format/pending-heap.ts.
 */
export interface ValueSink {
  readonly chunk: Uint8Array;
  readonly at: number;
  /** Makes room for a content of up to `size` bytes, in place of one that was opened and not closed. */
  open(size: number): void;
  /** Ends a content of `size` bytes, and writes the heap id of `length` elements to `bytes`. */
  close(size: number, length: number, bytes: Uint8Array, idAt: number): void;
  /** Writes a reference to the object at a path to `bytes`. */
  reference(path: string, bytes: Uint8Array, at: number): void;
}

export interface Encoded {
  readonly bytes: Uint8Array;
  /** Takes contents and references, instead of the two lists. */
  readonly sink?: ValueSink | undefined;
  /** Heap ids in `bytes` whose address (at + 4, u64) and index (at + 12, u32) are still 0; empty sequences are not listed. */
  readonly heap: HeapItem[];
  /** References in `bytes` that are still 0, those to regions with a selection; null references are not listed. */
  readonly references: { readonly at: number; readonly path: string; readonly where?: object }[];
}

/** Data of a compound as one array a field, in place of a list of records. */
export class ColumnRows {
  readonly columns: Columns;
  readonly length: number;

  constructor(dtype: DType, columns: unknown) {
    const type = fullType(dtype);
    if (type.class !== 'compound') throw mismatch('no columns', dtype, columns);
    if (typeof columns !== 'object' || columns === null || isArrayLike(columns))
      throw mismatch('an object with an array a field', dtype, columns);
    this.columns = columns as Columns;
    const names = new Set(type.fields.map(({ name }) => name));
    const extra = Object.keys(columns).find((name) => !names.has(name));
    if (extra !== undefined) throw new H5LogError('DTYPE', `${describeType(dtype)} has no field '${extra}'`);
    let length = -1;
    for (const name of names) {
      const column = fieldOf(columns as Record<string, unknown>, name, type);
      if (!isArrayLike(column)) throw mismatch(`an array for the field '${name}'`, dtype, column);
      if (length >= 0 && column.length !== length)
        throw new H5LogError('SHAPE', `${column.length} values for the field '${name}', ${length} for those before it`);
      length = column.length;
    }
    this.length = length;
  }
}

/**
 * Encodes `count` elements: a typed array, an array of values, or, for a count of 1, also the value alone.
 * Numbers are converted with HDF5's rules; everything else must fit exactly or throws DTYPE.
 */
export function encodeValues(dtype: DType, values: unknown, count: number, sink?: ValueSink): Encoded {
  if (values instanceof ColumnRows && values.length === count)
    return encodeRows(dtype, values, allocate(count * fullType(dtype).size), 0, sink);
  let list: ArrayLike<unknown>;
  if (isList(dtype, values, count)) list = values;
  else if (count === 1) list = [values];
  else
    throw new H5LogError('SHAPE', `expected ${count} values of ${describeType(dtype)}, got ${describeValue(values)}`);
  if (list.length !== count) {
    throw new H5LogError('SHAPE', `expected ${count} values of ${describeType(dtype)}, got ${list.length}`);
  }
  return encodeList(dtype, list, sink);
}

function encodeList(dtype: DType, list: ArrayLike<unknown>, sink: ValueSink | undefined): Encoded {
  const { size } = fullType(dtype);
  const encoded: Encoded = { bytes: allocate(list.length * size), sink, heap: [], references: [] };
  encodeInto(encoded, dtype, list, list.length, 0, size);
  return encoded;
}

/** Encodes rows into `bytes` from `at` on. */
export function encodeRows(
  dtype: DType,
  { columns, length }: ColumnRows,
  bytes: Uint8Array,
  at: number,
  sink?: ValueSink,
): Encoded {
  const type = fullType(dtype) as CompoundType;
  const encoded: Encoded = { bytes, sink, heap: [], references: [] };
  encodeFields(encoded, type, length, at, type.size, (name) => columns[name] as ArrayLike<unknown>);
  return encoded;
}

const isArrayLike = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** With a count of 1, an array may be the list of one element or the element itself. */
function isList(dtype: DType, values: unknown, count: number): values is ArrayLike<unknown> {
  if (!isArrayLike(values)) return false;
  if (count !== 1) return true;
  const type = fullType(dtype);
  if (type.class === 'opaque') return Array.isArray(values);
  if (type.class !== 'array' && type.class !== 'vlen') return true;
  return values.length === 1 && isElement(dtype, values[0]);
}

/** How many elements a caller's data holds; undefined if it is one element itself. */
export function elementsIn(dtype: DType, data: unknown): number | undefined {
  if (data instanceof ColumnRows) return data.length;
  if (!isArrayLike(data)) return undefined;
  switch (fullType(dtype).class) {
    case 'array':
    case 'vlen':
    case 'opaque':
      // Of empty lists inside lists both may be true: then it is a list of elements.
      for (let i = 0; i < data.length; i++) if (!isElement(dtype, data[i])) return undefined;
      return data.length === 0 ? undefined : data.length;
    default:
      return data.length;
  }
}

/** Whether a value is nested as deeply as one element of the type is. */
function isElement(dtype: DType, value: unknown): boolean {
  const type = fullType(dtype);
  switch (type.class) {
    case 'array':
    case 'vlen':
      return isArrayLike(value) && (value.length === 0 || isElement(type.base, value[0]));
    case 'opaque':
      return ArrayBuffer.isView(value);
    default:
      return !isArrayLike(value);
  }
}

/** Element i goes to `at + i * stride`; a stride above the type's size leaves room for the rest of a record. */
function encodeInto(
  to: Encoded,
  dtype: DType,
  list: ArrayLike<unknown>,
  count: number,
  at: number,
  stride: number,
): void {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
    case 'float':
    case 'bitfield':
      encodeNumbers(to.bytes, dtype, list, count, at, stride);
      return;
    case 'enum':
      encodeNumbers(to.bytes, dtype, membersToNumbers(type, list, count), count, at, stride);
      return;
    case 'compound':
      encodeCompound(to, type, list, count, at, stride);
      return;
    case 'array':
      for (let i = 0; i < count; i++) encodeArray(to, type, list[i], at + i * stride);
      return;
    case 'vlen':
      for (let i = 0; i < count; i++) {
        const value = list[i];
        if (!isArrayLike(value)) throw mismatch('an array', type, value);
        if (value.length === 0) continue;
        encodeSequence(to, type, value, at + i * stride);
      }
      return;
    case 'string':
      for (let i = 0; i < count; i++) encodeString(to, type, list[i], at + i * stride);
      return;
    case 'opaque':
      for (let i = 0; i < count; i++) encodeOpaque(to.bytes, type, list[i], at + i * stride);
      return;
    case 'reference':
      for (let i = 0; i < count; i++) encodeReference(to, type, list[i], at + i * stride);
      return;
  }
}

function mismatch(expected: string, dtype: DType, got: unknown): H5LogError {
  return new H5LogError('DTYPE', `expected ${expected} for ${describeType(dtype)}, got ${describeValue(got)}`);
}

function encodeNumbers(
  bytes: Uint8Array,
  dtype: DType,
  list: ArrayLike<unknown>,
  count: number,
  at: number,
  stride: number,
): void {
  // packNumbers checks each element of a plain array and throws if it is not a number.
  const numbers = list as ArrayLike<number | bigint>;
  const { size } = fullType(dtype);
  if (stride === size || count === 1) {
    packNumbers(numbers, 0, count, dtype, bytes, at);
    return;
  }
  const stored = storedNumber(dtype);
  if (isPlainNumber(dtype) && stored && arrayKind(list) === numberName(stored)) {
    const { buffer, byteOffset, byteLength } = list as TypedArray;
    copyStrided(new Uint8Array(buffer, byteOffset, byteLength), 0, size, bytes, at, stride, size, count);
    return;
  }
  const column = new Uint8Array(count * size);
  packNumbers(numbers, 0, count, dtype, column, 0);
  copyStrided(column, 0, size, bytes, at, stride, size, count);
}

/** Members may be given by name, h5py's booleans as booleans. Numbers pass, known or not, as in libhdf5. */
function membersToNumbers(type: EnumType, list: ArrayLike<unknown>, count: number): ArrayLike<unknown> {
  if (arrayKind(list) !== undefined) return list;
  const bool = isBool(type);
  const values = new Map(type.entries);
  const numbers: unknown[] = [];
  for (let i = 0; i < count; i++) {
    const value = list[i];
    if (typeof value === 'string') {
      const member = values.get(value);
      if (member === undefined) throw mismatch('the name of a member', type, value);
      numbers.push(member);
    } else if (bool && typeof value === 'boolean') numbers.push(value ? 1 : 0);
    else numbers.push(value);
  }
  return numbers;
}

function encodeCompound(
  to: Encoded,
  type: CompoundType,
  list: ArrayLike<unknown>,
  count: number,
  at: number,
  stride: number,
): void {
  for (let i = 0; i < count; i++) {
    const record = list[i];
    if (typeof record !== 'object' || record === null || isArrayLike(record)) throw mismatch('an object', type, record);
  }
  encodeFields(to, type, count, at, stride, (name) => {
    const column: unknown[] = [];
    for (let i = 0; i < count; i++) column.push(fieldOf(list[i] as Record<string, unknown>, name, type));
    return column;
  });
}

/** Field by field and not record by record: the numbers of a field are converted at once. */
function encodeFields(
  to: Encoded,
  type: CompoundType,
  count: number,
  at: number,
  stride: number,
  columnOf: (name: string) => ArrayLike<unknown>,
): void {
  for (const { name, offset, dtype } of type.fields) {
    try {
      encodeInto(to, dtype, columnOf(name), count, at + offset, stride);
    } catch (error) {
      throw addContext(error, `field '${name}': `, {});
    }
  }
}

function fieldOf(record: Record<string, unknown>, name: string, type: CompoundType): unknown {
  // What every object inherits ('constructor', 'toString') is not a field somebody set; a getter of a class is.
  const inherited = (Object.prototype as Record<string, unknown>)[name];
  if (Object.hasOwn(record, name) || (name in record && record[name] !== inherited)) return record[name];
  throw new H5LogError('DTYPE', `the field '${name}' of ${describeType(type)} is missing in ${describeValue(record)}`);
}

function encodeArray(to: Encoded, type: ArrayType, value: unknown, at: number): void {
  const length = arrayLength(type);
  if (!isArrayLike(value)) throw mismatch(`an array of ${length}`, type, value);
  if (value.length !== length) {
    throw new H5LogError('SHAPE', `expected ${length} values for ${describeType(type)}, got ${value.length}`);
  }
  encodeInto(to, type.base, value, length, at, fullType(type.base).size);
}

function encodeSequence(to: Encoded, type: VlenType, value: ArrayLike<unknown>, at: number): void {
  const { sink } = to;
  const { length } = value;
  if (!sink) {
    addHeapItem(to, type, at, length, encodeList(type.base, value, undefined));
    return;
  }
  checkHeapItem(type, length);
  const { size } = fullType(type.base);
  const bytes = length * size;
  if (storedNumber(type.base)) {
    sink.open(bytes);
    encodeInto({ ...to, bytes: sink.chunk }, type.base, value, length, sink.at, size);
  } else {
    // Contents inside of it come before it.
    const content = encodeList(type.base, value, sink);
    sink.open(bytes);
    sink.chunk.set(content.bytes, sink.at);
  }
  sink.close(bytes, length, to.bytes, at);
}

function checkHeapItem(type: VlenType | StringType, length: number): void {
  if (type.size !== HEAP_ID_SIZE)
    throw new H5LogError('UNSUPPORTED', `${describeType(type)} of a file with short addresses cannot be written`);
  if (length > 0xffffffff)
    throw new H5LogError('SHAPE', `a variable-length value holds 2^32-1 elements, got ${length}`);
}

function addHeapItem(to: Encoded, type: VlenType | StringType, at: number, length: number, content: Encoded): void {
  checkHeapItem(type, length);
  for (let k = 0; k < 4; k++) to.bytes[at + k] = length >>> (8 * k);
  to.heap.push({ at, length, content });
}

function encodeString(to: Encoded, type: StringType, value: unknown, at: number): void {
  if (typeof value !== 'string') throw mismatch('a string', type, value);
  const { sink } = to;
  if (!import.meta.page && sink && type.variable && value.length <= SHORT) {
    checkHeapItem(type, value.length);
    sink.open(value.length);
    if (asciiInto(value, sink.chunk, sink.at)) {
      sink.close(value.length, value.length, to.bytes, at);
      return;
    }
  }
  if (!import.meta.page && !sink && type.variable && value.length <= LONG_TEXT) {
    const ascii = allocate(value.length);
    if (asciiInto(value, ascii, 0)) {
      addHeapItem(to, type, at, ascii.length, { bytes: ascii, heap: NOTHING, references: NOTHING });
      return;
    }
  }
  const bytes = textBytes(value, type);
  if (!type.variable) {
    to.bytes.set(bytes, at);
    if (type.pad === 'space') to.bytes.fill(0x20, at + bytes.length, at + type.size);
  } else if (sink) {
    checkHeapItem(type, bytes.length);
    sink.open(bytes.length);
    sink.chunk.set(bytes, sink.at);
    sink.close(bytes.length, bytes.length, to.bytes, at);
  } else {
    // An empty text is in the heap too, as libhdf5 has it: the null id is a null pointer in C, which tools show as NULL.
    addHeapItem(to, type, at, bytes.length, { bytes, heap: [], references: [] });
  }
}

/** Up to this length a loop is faster than the encoder. */
const SHORT = 48;
/** Up to this length a loop is faster than the encoder where the encoder would have to allocate. */
const LONG_TEXT = 128;
const NOTHING: never[] = [];

/** Writes a text of ASCII characters other than NUL; false if it has others. */
function asciiInto(text: string, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0 || code > 0x7f) return false;
    bytes[at + i] = code;
  }
  return true;
}

function encodeOpaque(bytes: Uint8Array, type: DType, value: unknown, at: number): void {
  const { size } = fullType(type);
  if (arrayKind(value) !== 'uint8') throw mismatch(`a Uint8Array of ${size}`, type, value);
  const content = value as Uint8Array;
  if (content.length !== size) throw mismatch(`a Uint8Array of ${size}`, type, value);
  bytes.set(content, at);
}

function encodeReference(to: Encoded, type: ReferenceType, value: unknown, at: number): void {
  if (type.to === 'other') throw new H5LogError('UNSUPPORTED', 'references of HDF5 1.12 cannot be written');
  if (type.to === 'region') {
    if (value === null) return;
    const { path, where } = (value ?? {}) as { readonly path?: unknown; readonly where?: unknown };
    if (typeof path !== 'string' || typeof where !== 'object' || where === null)
      throw mismatch('{ path, where } or null', type, value);
    if (to.sink) throw new H5LogError('UNSUPPORTED', 'region references can be written as attributes only');
    to.references.push({ at, path, where });
  } else if (typeof value !== 'string') throw mismatch('a path', type, value);
  else if (value === '') return;
  else if (to.sink) to.sink.reference(value, to.bytes, at);
  else to.references.push({ at, path: value });
}
