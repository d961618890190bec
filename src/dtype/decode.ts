// File bytes to JavaScript values. Everything here may come from a damaged file: lengths are checked before use.

import { formatError } from '../base/errors.ts';
import { readUnusual } from './bits.ts';
import { checkSound } from './check.ts';
import { numberArray, unpackNumbers } from './convert.ts';
import { describeType } from './describe.ts';
import { readAddress, readAddressOf, readHeapId, readUint32, standardReference } from './heap-ids.ts';
import { copyStrided } from './kernels.ts';
import {
  arrayLength,
  type Columns,
  type CompoundType,
  type DType,
  type FullType,
  fullType,
  HEAP_ID_SIZE,
  isBool,
  isPlainNumber,
  numberName,
  type ReferenceType,
  type StringType,
  storedNumber,
} from './model.ts';
import { textOf } from './text.ts';

/** Where a heap object is, until the next one is looked up. */
export interface HeapPlace {
  bytes: Uint8Array;
  start: number;
  length: number;
  /** All of `bytes`, a character a byte: short texts are cut out of it. */
  text(): string;
}

/** Heap objects by the address of their collection and their index in it. */
export interface HeapObjects {
  (address: number, index: number): Uint8Array | undefined;
  /** Finds a heap object without making a view of its bytes: most objects are short, and a view takes more memory than they do. */
  readonly place?: (address: number, index: number) => HeapPlace | undefined;
}

/** What element bytes refer to: objects of global heaps, and the paths of objects by the address of their header. */
export interface Resolver {
  heap: HeapObjects;
  path(address: number): string;
  /** The selection at a position of a heap object, of elements of the object at an address. */
  selection?(content: Uint8Array, at: number, address: number): unknown;
}

/**
 * Decodes `count` elements into what a read returns: typed arrays for numbers, enums and bitfields (plain arrays if of
 * an unusual size), string[] for strings and object references, arrays of objects, Uint8Arrays or arrays for the rest.
 */
export function decodeValues(dtype: DType, bytes: Uint8Array, count: number, resolve: Resolver): unknown {
  const { size } = checkSound(dtype);
  if (count * size > bytes.length) {
    throw formatError(`${count} elements of ${describeType(dtype)} need ${count * size} bytes, got ${bytes.length}`);
  }
  return decodeFrom(dtype, bytes, 0, size, count, resolve);
}

/** Fields of `count` records, one array each, as {@link decodeValues} gives it for the type of the field. */
export function decodeColumns(
  dtype: DType,
  names: readonly string[],
  bytes: Uint8Array,
  count: number,
  resolve: Resolver,
): Columns {
  const { fields, size } = checkSound(dtype) as CompoundType;
  const columns: [string, ArrayLike<unknown>][] = [];
  for (const { name, offset, dtype: field } of fields)
    if (names.includes(name)) columns.push([name, decodeFrom(field, bytes, offset, size, count, resolve)]);
  return Object.fromEntries(columns);
}

/** The one element of a scalar: a number, bigint, string, boolean (of h5py's enum), object, ... */
export function decodeOne(dtype: DType, bytes: Uint8Array, resolve: Resolver): unknown {
  const element = (decodeValues(dtype, bytes, 1, resolve) as ArrayLike<unknown>)[0];
  return isBool(dtype) ? element !== 0 : element;
}

/** Element i lies at `at + i * stride`. The caller has checked that all of them lie inside `bytes`. */
function decodeFrom(
  dtype: DType,
  bytes: Uint8Array,
  at: number,
  stride: number,
  count: number,
  resolve: Resolver,
): ArrayLike<unknown> {
  const type = fullType(dtype);
  const each = <V>(decode: (at: number) => V): V[] => {
    const values: V[] = [];
    for (let i = 0; i < count; i++) values.push(decode(at + i * stride));
    return values;
  };
  switch (type.class) {
    case 'integer':
    case 'float':
    case 'bitfield':
    case 'enum':
      return decodeNumbers(dtype, bytes, at, stride, count);
    case 'string':
      if (!type.variable) return each((from) => textOf(bytes, from, from + type.size, type));
      return import.meta.page
        ? each((from) => variableText(type, bytes, from, resolve))
        : variableTexts(type, bytes, at, stride, count, resolve);
    case 'opaque':
      return each((from) => copyOf(bytes, from, type.size));
    case 'reference':
      return each((from) => decodeReference(type, bytes, from, resolve));
    case 'compound':
      return decodeCompound(type, bytes, at, stride, count, resolve);
    case 'array': {
      const length = arrayLength(type);
      const { size } = fullType(type.base);
      return each((from) => decodeFrom(type.base, bytes, from, size, length, resolve));
    }
    case 'vlen':
      return each((from) => {
        const { length, content } = heapContent(type, bytes, from, fullType(type.base).size, resolve);
        return decodeValues(type.base, content, length, resolve);
      });
  }
}

function copyOf(bytes: Uint8Array, at: number, length: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(at, at + length));
  return copy;
}

function decodeNumbers(
  dtype: DType,
  bytes: Uint8Array,
  at: number,
  stride: number,
  count: number,
): ArrayLike<number | bigint> {
  const { size } = fullType(dtype);
  let from = bytes;
  let start = at;
  if (stride !== size && count !== 1) {
    if (isPlainNumber(dtype)) {
      const values = numberArray(dtype, count);
      copyStrided(bytes, at, stride, new Uint8Array(values.buffer), 0, size, size, count);
      return values;
    }
    // Gathered first, so that the whole column is converted at once.
    from = new Uint8Array(count * size);
    start = 0;
    copyStrided(bytes, at, stride, from, 0, size, size, count);
  }
  const stored = storedNumber(dtype);
  if (stored && numberName(stored) === undefined) return readUnusual(stored, from, start, count);
  const values = numberArray(dtype, count);
  // The Uint8Array of a bool takes the bytes as they are: converting from int8 would turn a stray -1 into false.
  unpackNumbers(from, start, count, isBool(dtype) ? 'uint8' : dtype, values, 0);
  return values;
}

const EMPTY = new Uint8Array(0);

function heapContent(
  type: FullType,
  bytes: Uint8Array,
  at: number,
  elementSize: number,
  resolve: Resolver,
): { length: number; content: Uint8Array } {
  const { length, address, index } = readHeapId(bytes, at, type.size);
  if (length === 0) return { length, content: EMPTY };
  const content = address === 0 ? undefined : resolve.heap(address, index);
  if (content === undefined) {
    throw formatError(`${describeType(type)} of length ${length} points to no heap object (${address}, ${index})`);
  }
  // Checked before anything of that length is allocated.
  if (length * elementSize > content.length) {
    const needed = `${length * elementSize} bytes, heap object ${index} at ${address} has ${content.length}`;
    throw formatError(`${describeType(type)} of length ${length} needs ${needed}`);
  }
  return { length, content };
}

/** A text up to this length is copied when it is cut out of another; a longer one would keep the other in memory. */
const CUT = 12;

function variableTexts(
  type: StringType,
  bytes: Uint8Array,
  at: number,
  stride: number,
  count: number,
  resolve: Resolver,
): string[] {
  const texts: string[] = new Array(count);
  const { place: find } = resolve.heap;
  // Ids of 16 bytes, as nearly all files have them, are read as words: length, address, index.
  const start = bytes.byteOffset + at;
  const isAligned = count > 0 && type.size === HEAP_ID_SIZE && (start | stride) % 4 === 0;
  const words = new Uint32Array(
    bytes.buffer,
    isAligned ? start : 0,
    isAligned ? Math.floor((bytes.length - at) / 4) : 0,
  );
  let [low, high, address] = [0, 0, 0];
  for (let i = 0; i < count; i++) {
    const from = at + i * stride;
    const word = (i * stride) / 4;
    const length = words[word] ?? 0;
    if (find && length > 0 && length <= CUT) {
      if (words[word + 1] !== low || words[word + 2] !== high) {
        low = words[word + 1] as number;
        high = words[word + 2] as number;
        address = readAddress(bytes, from + 4);
      }
      const place = find(address, words[word + 3] as number);
      if (place && length <= place.length && isPlain(place.bytes, place.start, place.start + length)) {
        texts[i] = place.text().substring(place.start, place.start + length);
        continue;
      }
    }
    texts[i] = variableText(type, bytes, from, resolve);
  }
  return texts;
}

function variableText(type: StringType, bytes: Uint8Array, at: number, resolve: Resolver): string {
  const { length, content } = heapContent(type, bytes, at, 1, resolve);
  return textOf(content, 0, length, type);
}

/** Whether bytes are ASCII characters other than NUL. */
function isPlain(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte === 0 || byte > 0x7f) return false;
  }
  return true;
}

/** An object as its path, '' for none; a region as the path and the selection, null for none. */
function decodeReference(type: ReferenceType, bytes: Uint8Array, at: number, resolve: Resolver): unknown {
  if (type.to === 'other') return decodeStandard(type, bytes, at, resolve);
  const address = readAddress(bytes, at);
  if (type.to === 'object') return address === 0 ? '' : resolve.path(address);
  if (address === 0) return null;
  const content = referred(address, readUint32(bytes, at + 8), resolve);
  const target = readAddress(content, 0);
  return { path: resolve.path(target), where: resolve.selection?.(content, 8, target) };
}

function referred(address: number, index: number, resolve: Resolver): Uint8Array {
  const content = resolve.heap(address, index);
  if (content === undefined) throw formatError(`reference to no heap object (${address}, ${index})`);
  return content;
}

/**
 * A reference of HDF5 1.12 (H5T_STD_REF): the path of an object; path and selection of a region; path and name of an attribute; null
 * for none. One to another file has its name as well, and no path: the address of an object there tells none here.
 */
function decodeStandard(type: ReferenceType, bytes: Uint8Array, at: number, resolve: Resolver): unknown {
  const { kind, isExternal, blob } = standardReference(bytes, at, type.size);
  if (kind === 0) return null;
  let content = bytes.subarray(at + 2, at + type.size);
  if (blob) content = referred(blob.address, blob.index, resolve);
  const token = content[0] ?? 0;
  let from = 1 + token;
  const text = (): string => {
    const length = (content[from] ?? 0) + 256 * (content[from + 1] ?? 0);
    from += 2 + length;
    if (from > content.length) throw formatError(`name of ${length} bytes in a reference of ${content.length}`);
    return textOf(content, from - length, from, NAME);
  };
  if (from > content.length || token < 1) throw formatError(`reference with an address of ${token} bytes`);
  const address = readAddressOf(content, 1, Math.min(token, 8));
  const path = isExternal ? '' : resolve.path(address);
  const file = isExternal ? { file: text() } : {};
  if (kind === 3) return { path, where: resolve.selection?.(content, from + 8, isExternal ? 0 : address), ...file };
  if (kind === 4) return { path, attribute: text(), ...file };
  if (kind !== 2) throw formatError(`reference of kind ${kind}`);
  return isExternal ? { path, ...file } : path;
}

const NAME: StringType = { class: 'string', size: 0, variable: true, pad: 'null', charset: 'utf8' };

function decodeCompound(
  type: CompoundType,
  bytes: Uint8Array,
  at: number,
  stride: number,
  count: number,
  resolve: Resolver,
): Record<string, unknown>[] {
  const records: Record<string, unknown>[] = [];
  for (let i = 0; i < count; i++) records.push({});
  for (const { name, offset, dtype } of type.fields) {
    const column = decodeFrom(dtype, bytes, at + offset, stride, count, resolve);
    const bool = isBool(dtype);
    // Assigning to __proto__ would replace the prototype instead of adding a field.
    const define = name === '__proto__';
    for (let i = 0; i < count; i++) {
      const value = bool ? column[i] !== 0 : column[i];
      const record = records[i] as Record<string, unknown>;
      if (define) Object.defineProperty(record, name, { value, enumerable: true, writable: true, configurable: true });
      else record[name] = value;
    }
  }
  return records;
}
