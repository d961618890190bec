// Walks over the heap ids and references inside element bytes, for code that copies, moves or translates them.

import { formatError } from '../base/errors.ts';
import { containsReference, containsVlen, describeType } from './describe.ts';
import { type HeapId, readAddress, readHeapId, readUint32 } from './heap-id.ts';
import { type DType, fullType, type ReferenceType } from './model.ts';
import { checkSound } from './sound.ts';

/** One variable-length value in element bytes. */
export interface HeapSlot extends HeapId {
  /** Where its 16 bytes begin. */
  readonly at: number;
  /** What its content is made of; uint8 for a string. */
  readonly base: DType;
}

/** Every vlen slot in `bytes` itself, empty ones too, in ascending order within each element. */
export function* heapSlots(dtype: DType, bytes: Uint8Array, count: number): Generator<HeapSlot, void, undefined> {
  const { size } = checkLength(dtype, bytes, count);
  if (!containsVlen(dtype)) return;
  for (let i = 0; i < count; i++) {
    for (const { at, dtype: inner } of leaves(dtype, i * size)) {
      const type = fullType(inner);
      if (type.class === 'vlen') yield { at, base: type.base, ...readHeapId(bytes, at) };
      else if (type.class === 'string' && type.variable) yield { at, base: 'uint8', ...readHeapId(bytes, at) };
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
  for (const { length, address, index, base } of heapSlots(dtype, bytes, count)) {
    if (address === 0 || length === 0) continue;
    const content = visit(address, index, length);
    if (content && (containsVlen(base) || containsReference(base))) visitHeapIds(base, content, length, visit);
  }
  visitReferences(
    dtype,
    bytes,
    count,
    () => {},
    (_at, address, index) => {
      visit(address, index, 0);
    },
  );
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

/** The parts of one element that are neither compound nor array, with their places. Plain data is passed over. */
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
