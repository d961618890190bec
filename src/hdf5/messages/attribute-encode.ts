// Encoding attribute messages: see attribute.ts.

import { allocate } from '../../base/buffers.ts';
import { H5LogError } from '../../base/errors.ts';
import type { DType } from '../../dtype/model.ts';
import { ByteWriter, textLength } from '../format/byte-writer.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import { type Dataspace, encodeDataspace } from './dataspace.ts';
import { encodeDatatype } from './datatype-encode.ts';
import { MAX_SIZE } from './message-types.ts';

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
