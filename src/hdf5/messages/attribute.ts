// The attribute message and the attribute info message (HDF5 file format specification, IV.A.2.m and IV.A.2.v).

import { allocate } from '../../base/buffers.ts';
import { H5LogError } from '../../base/errors.ts';
import type { DType, FullType } from '../../dtype/model.ts';
import { ByteWriter, textLength } from '../format/byte-writer.ts';
import { Cursor, textFrom, UNDEFINED } from '../format/cursor.ts';
import { type Dataspace, encodeDataspace, parseDataspace } from './dataspace.ts';
import { encodeDatatype, mayRefer, parseDatatype } from './datatype.ts';
import { MAX_SIZE } from './message-types.ts';

/** A decoded attribute message. Positions count from the start of the message. */
export interface AttributeMessage {
  readonly name: string;
  /** The type, or the position of a record that points to a shared one. */
  readonly type: FullType | { readonly sharedAt: number; readonly sharedSize: number };
  readonly space: Dataspace | { readonly sharedAt: number; readonly sharedSize: number };
  readonly dataAt: number;
}

/** The name alone, without parsing type and space. */
export function attributeName(cursor: Cursor): string {
  return textFrom(attributeNameBytes(cursor));
}

/** The name as it is encoded. */
export function attributeNameBytes(cursor: Cursor): Uint8Array {
  const version = cursor.u8();
  if (version < 1 || version > 3) cursor.fail(`attribute version ${version} is not known`);
  cursor.skip(1);
  const nameSize = cursor.u16();
  cursor.skip(version === 3 ? 5 : 4);
  return trimName(cursor.take(nameSize, 'attribute name'));
}

function trimName(bytes: Uint8Array): Uint8Array {
  const stop = bytes.indexOf(0);
  return stop < 0 ? bytes : bytes.subarray(0, stop);
}

/** Parses an attribute message of version 1 (parts padded to 8 bytes), 2 or 3 (with a character set). */
export function parseAttribute(cursor: Cursor, lengthSize: number): AttributeMessage {
  const from = cursor.at;
  const version = cursor.u8();
  if (version < 1 || version > 3) cursor.fail(`attribute version ${version} is not known`);
  const second = cursor.u8();
  const flags = version === 1 ? 0 : second; // reserved in version 1
  const nameSize = cursor.u16();
  const typeSize = cursor.u16();
  const spaceSize = cursor.u16();
  if (version === 3) cursor.skip(1);
  const padded = (size: number): number => (version === 1 ? Math.ceil(size / 8) * 8 : size);
  const name = textFrom(trimName(cursor.take(padded(nameSize), 'attribute name').subarray(0, nameSize)));
  const typeAt = cursor.need(padded(typeSize), 'attribute type');
  const spaceAt = cursor.need(padded(spaceSize), 'attribute dataspace');
  const part = (at: number, size: number): Cursor => new Cursor(cursor.bytes, cursor.base, at, at + size);
  return {
    name,
    type: flags & 1 ? { sharedAt: typeAt - from, sharedSize: typeSize } : parseDatatype(part(typeAt, typeSize)),
    space:
      flags & 2
        ? { sharedAt: spaceAt - from, sharedSize: spaceSize }
        : parseDataspace(part(spaceAt, spaceSize), lengthSize),
    dataAt: cursor.at - from,
  };
}

/** Whether an attribute may refer to objects, by its value or because its type is elsewhere; false only if it surely does not. */
export function attributeMayRefer(bytes: Uint8Array, from: number, to: number): boolean {
  const version = bytes[from] as number;
  if (from + 9 > to || version < 1 || version > 3) return true;
  // In version 1 parts are padded, and none is shared.
  if (version > 1 && bytes[from + 1] !== 0) return true;
  const nameSize = (bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8);
  return mayRefer(bytes, from + (version === 1 ? 8 + Math.ceil(nameSize / 8) * 8 : version + 6 + nameSize), to);
}

/** Encodes an attribute message of version 3; `data` is the encoded value. */
export function encodeAttribute(
  name: string,
  dtype: DType,
  space: Dataspace,
  data: Uint8Array,
): { body: Uint8Array; dataAt: number } {
  const head = attributeHead(name, dtype, space);
  const body = allocate(head.length + data.length);
  body.set(head);
  body.set(data, head.length);
  return { body, dataAt: head.length };
}

/** Encodes an attribute message whose type is encoded already, or, if `shared`, a record that points to a committed datatype. */
export function encodeTypedAttribute(
  name: string,
  type: Uint8Array,
  shared: boolean,
  space: Dataspace,
  data: Uint8Array,
): { body: Uint8Array; typeAt: number; dataAt: number } {
  const spaceBytes = encodeDataspace(space);
  const head = encodeHead(name, type, shared ? 1 : 0, spaceBytes);
  const dataAt = head.length;
  const body = new Uint8Array(dataAt + data.length);
  body.set(head);
  body.set(data, dataAt);
  return { body, typeAt: dataAt - spaceBytes.length - type.length, dataAt };
}

/**
 * An attribute message with another name, as version 3. `shift` says how far the bytes behind the name moved. The parts of
 * version 1 are padded and therefore move by different distances, but in that version only the value holds addresses.
 */
export function renameAttributeMessage(body: Uint8Array, name: string): { bytes: Uint8Array; shift: number } {
  const cursor = new Cursor(body, 0);
  const version = cursor.u8();
  const second = cursor.u8();
  const nameSize = cursor.u16();
  const typeSize = cursor.u16();
  const spaceSize = cursor.u16();
  if (version === 3) cursor.skip(1);
  const padded = (size: number): number => (version === 1 ? Math.ceil(size / 8) * 8 : size);
  cursor.skip(padded(nameSize));
  const type = cursor.take(padded(typeSize), 'attribute type').subarray(0, typeSize);
  const space = cursor.take(padded(spaceSize), 'attribute dataspace').subarray(0, spaceSize);
  const head = encodeHead(name, type, version === 1 ? 0 : second, space);
  const value = body.subarray(cursor.at);
  const bytes = new Uint8Array(head.length + value.length);
  bytes.set(head);
  bytes.set(value, head.length);
  return { bytes, shift: head.length - cursor.at };
}

interface KnownHead {
  readonly dtype: DType;
  readonly space: Dataspace;
  readonly head: Uint8Array;
}

/** Encoded heads by attribute name: a few attributes (units, long_name) are set on thousands of objects. */
const knownHeads = new Map<string, KnownHead>();
const MOST_HEADS = 256;

/** What comes before the value: name, type and dataspace. */
export function attributeHead(name: string, dtype: DType, space: Dataspace): Uint8Array {
  const known = knownHeads.get(name);
  if (known && known.dtype === dtype && sameSpace(known.space, space)) return known.head;
  const head = encodeHead(name, encodeDatatype(dtype), 0, encodeDataspace(space));
  if (knownHeads.size >= MOST_HEADS) knownHeads.clear();
  knownHeads.set(name, { dtype, space, head });
  return head;
}

function encodeHead(name: string, type: Uint8Array, flags: number, space: Uint8Array): Uint8Array {
  const length = textLength(name);
  if (Math.max(length + 1, type.length, space.length) > MAX_SIZE)
    throw new H5LogError('UNSUPPORTED', `an attribute whose name has ${length} bytes and whose type ${type.length}`);
  const out = new ByteWriter(16 + length + type.length + space.length);
  out
    .u8(3)
    .u8(flags)
    .u16(length + 1)
    .u16(type.length)
    .u16(space.length)
    .u8(length === name.length ? 0 : 1);
  return out.text(name).u8(0).put(type).put(space).done();
}

function sameSpace(a: Dataspace, b: Dataspace): boolean {
  if (a.kind !== 'simple' || b.kind !== 'simple') return a.kind === b.kind;
  // Maximum sizes do not matter: attributes never grow.
  return a.shape.length === b.shape.length && a.shape.every((size, d) => size === b.shape[d]);
}

/** Where the attributes of an object are: in its header (`heap` is UNDEFINED), or in dense storage. */
interface AttributeInfo {
  readonly tracked: boolean;
  readonly indexed: boolean;
  /** The next creation order. */
  readonly nextOrder: number;
  /** Address of the fractal heap of dense storage, and of the version 2 B-tree that finds attributes in it by name. */
  readonly heap: number;
  readonly names: number;
}

export function parseAttributeInfo(cursor: Cursor, addressSize: number): AttributeInfo {
  cursor.expect(0, 'version of the attribute info message');
  const flags = cursor.u8();
  const nextOrder = flags & 1 ? cursor.u16() : 0;
  const heap = cursor.address(addressSize);
  const names = cursor.address(addressSize);
  return { tracked: (flags & 1) !== 0, indexed: (flags & 2) !== 0, nextOrder, heap, names };
}

/** Addresses of dense storage: the heap with the attributes, and the B-trees that find them by name and by creation order. */
interface DenseAddresses {
  readonly heap: number;
  readonly names: number;
  readonly orders: number;
}

const NOWHERE: DenseAddresses = { heap: UNDEFINED, names: UNDEFINED, orders: UNDEFINED };

/** Encodes the attribute info message of an object whose attributes are in its header, or in dense storage. */
export function encodeAttributeInfo(
  order: { tracked: boolean; indexed: boolean; next: number },
  { heap, names, orders } = NOWHERE,
): Uint8Array {
  const { tracked, indexed, next } = order;
  const out = new ByteWriter(28).u8(0).u8((tracked ? 1 : 0) | (indexed ? 2 : 0));
  if (tracked) out.u16(Math.min(next, 0xffff));
  out.u64(heap).u64(names);
  if (indexed) out.u64(orders);
  return out.done();
}
