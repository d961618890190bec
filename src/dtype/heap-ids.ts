// Heap ids (16 bytes that stand for a variable-length value) and references inside element bytes: how they are read, and
// walks over them for code that copies, moves or translates them.

import { formatError } from '../base/errors.ts';
import { checkSound } from './check.ts';
import { containsReference, containsVlen, describeType } from './describe.ts';
import { type DType, fullType, type ReferenceType } from './model.ts';

/** Ids of contents and references that have no place in a file yet are from here on: no file is that long. */
export const PENDING = 2 ** 52;

/** A u64 address. Null (0) and the undefined address (all ones) both give 0; beyond 2^53-1 no file reaches. */
export function readAddress(bytes: Uint8Array, at: number): number {
  const low = readUint32(bytes, at);
  const high = readUint32(bytes, at + 4);
  if (low === 0xffffffff && high === 0xffffffff) return 0;
  const address = high * 2 ** 32 + low;
  if (!Number.isSafeInteger(address))
    throw formatError(`address 0x${high.toString(16)}${low.toString(16).padStart(8, '0')} is beyond 2^53-1`);
  return address;
}

export function readUint32(bytes: Uint8Array, at: number): number {
  const a = bytes[at];
  const b = bytes[at + 1];
  const c = bytes[at + 2];
  const d = bytes[at + 3];
  if (a === undefined || b === undefined || c === undefined || d === undefined) {
    throw formatError(`4 bytes are needed, ${Math.max(0, bytes.length - at)} are left`);
  }
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
}

interface HeapId {
  /** Elements of a sequence, bytes of a string. */
  readonly length: number;
  /** Of a heap collection; 0 is null. */
  readonly address: number;
  readonly index: number;
}

/** `size` is that of the heap id: 16 bytes, fewer in files with short addresses. */
export function readHeapId(bytes: Uint8Array, at: number, size: number): HeapId {
  return {
    length: readUint32(bytes, at),
    address: readAddressOf(bytes, at + 4, size - 8),
    index: readUint32(bytes, at + size - 4),
  };
}

/** An address of 1 to 8 bytes. All ones is the undefined address, which gives 0. */
export function readAddressOf(bytes: Uint8Array, at: number, size: number): number {
  if (size === 8) return readAddress(bytes, at);
  let address = 0;
  for (let i = size - 1; i >= 0; i--) address = address * 256 + (bytes[at + i] ?? 0);
  return address === 2 ** (8 * size) - 1 ? 0 : address;
}

/** One variable-length value in element bytes. */
interface HeapSlot extends HeapId {
  /** Where its 16 bytes begin; fewer in files with short addresses. */
  readonly at: number;
  readonly size: number;
  /** What its content is made of; uint8 for a string. */
  readonly base: DType;
}

/** A part of an element that points elsewhere: a heap id, or a reference. Parts of arrays are repeated. */
export interface Pointer {
  /** Where it begins, from the start of what it is a part of. */
  readonly at: number;
  /** null: a group of pointers that is repeated. */
  readonly kind: 'heap' | 'object' | 'region' | 'standard' | null;
  /** Bytes of a heap id, or of a reference. */
  readonly size: number;
  /** What the content of a heap id is made of; uint8 for a string. */
  readonly base: DType;
  readonly repeat: number;
  readonly stride: number;
  readonly inner: readonly Pointer[];
}

const NO_POINTERS: readonly Pointer[] = [];
const known = new WeakMap<object, readonly Pointer[]>();

/** The pointers in an element of a type; none for most types. References of HDF5 1.12 are 'standard'. */
export function pointersOf(dtype: DType): readonly Pointer[] {
  if (typeof dtype === 'string') return NO_POINTERS;
  let list = known.get(dtype);
  if (!list) {
    list = containsVlen(dtype) || containsReference(dtype) ? findPointers(dtype, 0) : NO_POINTERS;
    known.set(dtype, list);
  }
  return list;
}

/** Whether all references in a type are to objects, and in the elements themselves: not in sequences. */
export function hasPlainReferences(dtype: DType): boolean {
  const isPlain = ({ kind, base, inner }: Pointer): boolean =>
    kind === 'object' || (kind === 'heap' ? !containsReference(base) : kind === null && inner.every(isPlain));
  return pointersOf(dtype).every(isPlain);
}

function findPointers(dtype: DType, at: number): Pointer[] {
  const type = fullType(dtype);
  const one = { at, size: type.size, base: 'uint8' as DType, repeat: 1, stride: 0, inner: NO_POINTERS };
  switch (type.class) {
    case 'compound':
      return type.fields.flatMap((field) => findPointers(field.dtype, at + field.offset));
    case 'array': {
      const inner = findPointers(type.base, 0);
      const stride = fullType(type.base).size;
      return inner.length === 0 ? [] : [{ ...one, kind: null, repeat: type.size / stride, stride, inner }];
    }
    case 'vlen':
      return [{ ...one, kind: 'heap', base: type.base }];
    case 'string':
      return type.variable ? [{ ...one, kind: 'heap' }] : [];
    case 'reference':
      return [{ ...one, kind: type.to === 'other' ? 'standard' : type.to }];
    default:
      return [];
  }
}

/** Visits every pointer in `count` elements, null ones too, with its place in `bytes`. Allocates nothing for an element. */
export function visitPointers(
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  visit: (at: number, pointer: Pointer) => void,
): void {
  const { size } = checkLength(dtype, bytes, count);
  const pointers = pointersOf(dtype);
  if (pointers.length > 0) repeatVisit(pointers, 0, count, size, visit);
}

function repeatVisit(
  pointers: readonly Pointer[],
  from: number,
  count: number,
  stride: number,
  visit: (at: number, pointer: Pointer) => void,
): void {
  for (let i = 0, at = from; i < count; i++, at += stride) {
    for (const pointer of pointers) {
      if (pointer.kind) visit(at + pointer.at, pointer);
      else repeatVisit(pointer.inner, at + pointer.at, pointer.repeat, pointer.stride, visit);
    }
  }
}

/** Every heap id in `bytes` itself, empty ones too, in ascending order within each element. */
export function* heapSlots(dtype: DType, bytes: Uint8Array, count: number): Generator<HeapSlot, void, undefined> {
  const { size } = checkLength(dtype, bytes, count);
  if (!containsVlen(dtype)) return;
  for (let i = 0; i < count; i++) {
    for (const { at, dtype: inner } of leaves(dtype, i * size)) {
      const type = fullType(inner);
      const { size } = type;
      if (type.class === 'vlen') yield { at, size, base: type.base, ...readHeapId(bytes, at, size) };
      else if (type.class === 'string' && type.variable)
        yield { at, size, base: 'uint8', ...readHeapId(bytes, at, size) };
    }
  }
}

/**
 * Every heap id that is not null, with its number of elements (bytes, of a string; 0 for a region reference, which does
 * not say). The ids inside a content are visited too, if `visit` returns that content.
 */
export function visitHeapIds(
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  visit: (address: number, index: number, length: number) => Uint8Array | undefined,
): void {
  visitPointers(dtype, bytes, count, (at, { kind, size, base }) => {
    if (kind === 'region') {
      const address = readAddress(bytes, at);
      if (address !== 0) visit(address, readUint32(bytes, at + 8), 0);
    }
    if (kind === 'standard') {
      const { blob } = standardReference(bytes, at, size);
      if (blob) visit(blob.address, blob.index, 0);
    }
    if (kind !== 'heap') return;
    const length = readUint32(bytes, at);
    const address = readAddressOf(bytes, at + 4, size - 8);
    if (address === 0 || length === 0) return;
    const content = visit(address, readUint32(bytes, at + size - 4), length);
    if (content && pointersOf(base).length > 0) visitHeapIds(base, content, length, visit);
  });
}

/** A reference of HDF5 1.12: an object of the same file as it is (kind 2), everything else in the heap. Kind 0 is none. */
interface StandardReference {
  readonly kind: number;
  readonly isExternal: boolean;
  readonly blob: { readonly address: number; readonly index: number } | null;
}

/** Reads the `size` bytes of a reference: kind, flags, and the bytes that follow or their size and heap id. */
export function standardReference(bytes: Uint8Array, at: number, size: number): StandardReference {
  const kind = bytes[at] ?? 0;
  const isExternal = ((bytes[at + 1] ?? 0) & 1) !== 0;
  if (kind === 0 || (kind === 2 && !isExternal)) return { kind, isExternal, blob: null };
  const address = readAddressOf(bytes, at + 6, Math.min(8, size - 10));
  return { kind, isExternal, blob: { address, index: readUint32(bytes, at + size - 4) } };
}

/**
 * Every reference in `bytes` itself that is not null: `visitObject` gets the address of an object header, `visitRegion`
 * the heap id of a region reference. For those inside variable-length contents go through {@link heapSlots}.
 */
export function visitReferences(
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  visitObject: (at: number, address: number) => void,
  visitRegion?: (at: number, address: number, index: number) => void,
): void {
  const { size } = checkLength(dtype, bytes, count);
  if (!containsReference(dtype)) return;
  for (let i = 0; i < count; i++) {
    for (const { at, dtype: inner } of leaves(dtype, i * size)) {
      const type = fullType(inner);
      if (type.class !== 'reference' || type.to === 'other') continue;
      const address = readAddress(bytes, at);
      if (address === 0) continue;
      if (isObject(type)) visitObject(at, address);
      else visitRegion?.(at, address, readUint32(bytes, at + 8));
    }
  }
}

const isObject = (type: ReferenceType): boolean => type.to === 'object';

function checkLength(dtype: DType, bytes: Uint8Array, count: number): { size: number } {
  const { size } = checkSound(dtype);
  if (count * size > bytes.length) {
    throw formatError(`${count} elements of ${describeType(dtype)} need ${count * size} bytes, got ${bytes.length}`);
  }
  return { size };
}

/** The parts of an element that are neither compound nor array, with their offsets. Arrays of plain data are skipped. */
function* leaves(dtype: DType, at: number): Generator<{ at: number; dtype: DType }, void, undefined> {
  const type = fullType(dtype);
  if (type.class === 'compound') {
    for (const field of type.fields) yield* leaves(field.dtype, at + field.offset);
  } else if (type.class === 'array') {
    if (!containsVlen(type.base) && !containsReference(type.base)) return;
    const { size } = fullType(type.base);
    for (let from = at; from < at + type.size; from += size) yield* leaves(type.base, from);
  } else {
    yield { at, dtype };
  }
}
