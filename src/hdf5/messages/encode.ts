// Encoding the messages of object headers. How each is parsed is in the file of its name; links, which readers encode as well, are in
// link.ts.

import { allocate } from '../../base/buffers.ts';
import { H5LogError } from '../../base/errors.ts';
import { writeUnusual } from '../../dtype/bits.ts';
import { type DType, type FullType, fullType, type IntegerType } from '../../dtype/model.ts';
import { ByteWriter, bytesFor, textLength } from '../format/byte-writer.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import type { Dataspace } from './dataspace.ts';
import { CLASS, PADS } from './datatype.ts';
import type { AllocationTime, FillMessage } from './fill-value.ts';
import type { FilterEntry } from './filter-pipeline.ts';
import type { Layout } from './layout.ts';
import { MAX_SIZE } from './message-types.ts';

// ---------------------------------------------------------------- datatypes

/** Encodes a datatype: version 1 for plain ones, version 3 wherever types are nested, as libhdf5 does. */
export function encodeDatatype(dtype: DType): Uint8Array {
  const type = fullType(dtype);
  const nested =
    ['compound', 'enum', 'vlen', 'array'].includes(type.class) || (type.class === 'string' && type.variable);
  const out = new ByteWriter(64);
  putDatatype(out, type, nested ? 3 : 1);
  return out.done();
}

function putDatatype(out: ByteWriter, type: FullType, version: number): void {
  const head = (kind: number, bits: number, size = type.size): void => {
    out
      .u8(kind | (version << 4))
      .uint(bits, 3)
      .u32(size);
  };
  const big = 'order' in type && type.order === 'big' ? 1 : 0;
  switch (type.class) {
    case 'integer':
      head(CLASS.integer, big | (type.signed ? 8 : 0));
      out.u16(type.bitOffset).u16(type.precision);
      return;
    case 'float':
      head(CLASS.float, big | (type.normalization << 4) | (type.signBit << 8));
      out.u16(type.bitOffset).u16(type.precision).u8(type.exponentAt).u8(type.exponentBits);
      out.u8(type.mantissaAt).u8(type.mantissaBits).u32(type.exponentBias);
      return;
    case 'string': {
      const pad = PADS.indexOf(type.pad);
      const set = type.charset === 'utf8' ? 1 : 0;
      if (!type.variable) {
        head(CLASS.string, pad | (set << 4));
        return;
      }
      head(CLASS.vlen, 1 | (pad << 4) | (set << 8));
      // libhdf5 stores a one-byte unsigned integer as what a variable-length string is made of.
      putDatatype(out, fullType('uint8'), version);
      return;
    }
    case 'bitfield':
      head(CLASS.bitfield, big);
      out.u16(type.bitOffset).u16(type.precision);
      return;
    case 'opaque': {
      const tag = new TextEncoder().encode(type.tag);
      const padded = Math.ceil(tag.length / 8) * 8;
      head(CLASS.opaque, padded);
      out.put(tag).zeros(padded - tag.length);
      return;
    }
    case 'compound': {
      head(CLASS.compound, type.fields.length);
      const offsetSize = bytesFor(type.size);
      for (const field of type.fields) {
        out.text(field.name).u8(0).uint(field.offset, offsetSize);
        putDatatype(out, fullType(field.dtype), version);
      }
      return;
    }
    case 'reference':
      if (type.to === 'other') throw new H5LogError('UNSUPPORTED', 'references of HDF5 1.12 cannot be written');
      head(CLASS.reference, type.to === 'object' ? 0 : 1);
      return;
    case 'enum': {
      head(CLASS.enum, type.entries.length);
      putDatatype(out, fullType(type.base), version);
      for (const [name] of type.entries) out.text(name).u8(0);
      const values = type.entries.map(([, value]) => value);
      const bytes = new Uint8Array(type.size * values.length);
      writeUnusual(fullType(type.base) as IntegerType, values, 0, values.length, bytes, 0);
      out.put(bytes);
      return;
    }
    case 'vlen':
      head(CLASS.vlen, 0);
      putDatatype(out, fullType(type.base), version);
      return;
    case 'array':
      head(CLASS.array, 0);
      out.u8(type.shape.length);
      for (const size of type.shape) out.u32(size);
      putDatatype(out, fullType(type.base), version);
      return;
  }
}

// ---------------------------------------------------------------- dataspaces, fill values, filters, layouts

const ENCODED = { scalar: Uint8Array.of(2, 0, 0, 0), null: Uint8Array.of(2, 0, 0, 2) } as const;

export function encodeDataspace(space: Dataspace): Uint8Array {
  if (space.kind !== 'simple') return ENCODED[space.kind];
  const { shape, maxShape } = space;
  const fixed = shape.every((size, d) => size === maxShape[d]);
  const out = new ByteWriter(32).u8(2).u8(shape.length);
  out.u8(fixed ? 0 : 1).u8(1);
  for (const size of shape) out.u64(size);
  if (!fixed) for (const size of maxShape) out.u64(size === null ? -1 : size);
  return out.done();
}

const ALLOCATION = { early: 1, late: 2, incremental: 3 } as const;
const defaultFill = (allocation: AllocationTime): Uint8Array => Uint8Array.of(3, ALLOCATION[allocation] | (2 << 2));
const DEFAULTS = {
  early: defaultFill('early'),
  late: defaultFill('late'),
  incremental: defaultFill('incremental'),
} as const;

export function encodeFill({ allocation, value }: FillMessage): Uint8Array {
  const always = ALLOCATION[allocation] | (2 << 2); // written to the file only if the user set it
  if (value === 'undefined') return Uint8Array.of(3, always | 0x10);
  if (value === 'default') return DEFAULTS[allocation];
  const out = new ByteWriter(8 + value.length).u8(3).u8(always | 0x20);
  return out.u32(value.length).put(value).done();
}

export function encodeFilters(filters: readonly FilterEntry[]): Uint8Array {
  const out = new ByteWriter(32).u8(2).u8(filters.length);
  for (const filter of filters) {
    const name = new TextEncoder().encode(filter.name);
    out.u16(filter.id);
    if (filter.id >= 256) out.u16(name.length === 0 ? 0 : name.length + 1);
    out.u16(filter.flags).u16(filter.values.length);
    if (filter.id >= 256 && name.length > 0) out.put(name).u8(0);
    for (const value of filter.values) out.u32(value);
  }
  return out.done();
}

/** Encodes a contiguous layout; the address is at {@link layoutAddressAt}. */
export function encodeContiguous(address: number, size: number): Uint8Array {
  return new ByteWriter(18).u8(3).u8(1).u64(address).u64(size).done();
}

/**
 * Position of the address in an encoded layout of `length` bytes: that of the data, of the chunk index, or of the heap
 * collection with the mappings of a virtual dataset.
 */
export function layoutAddressAt(layout: Layout, length: number): number {
  if (layout.kind !== 'chunked') return 2;
  return layout.index.kind === 'btree1' ? 3 : length - 8;
}

/** Encodes a layout: version 4 for the chunk indexes of HDF5 1.10 and for virtual datasets, else version 3. */
export function encodeLayout(layout: Layout): Uint8Array {
  const out = new ByteWriter(32);
  switch (layout.kind) {
    case 'compact':
      return out.u8(3).u8(0).u16(layout.data.length).put(layout.data).done();
    case 'contiguous':
      return encodeContiguous(layout.address, layout.size);
    case 'virtual':
      return out.u8(4).u8(3).u64(layout.heap).u32(layout.index).done();
    case 'chunked':
      return encodeChunked(out, layout);
  }
}

function encodeChunked(out: ByteWriter, layout: Layout & { kind: 'chunked' }): Uint8Array {
  const dims = [...layout.chunk, layout.elementSize];
  const { index } = layout;
  if (index.kind === 'btree1') {
    out.u8(3).u8(2).u8(dims.length).u64(index.address);
    for (const size of dims) out.u32(size);
    return out.done();
  }
  // HDF5 1.14 and later insist on the smallest width that holds every size.
  const width = Math.max(...dims.map(bytesFor));
  const filteredSingle = index.kind === 'single' && index.filtered !== null;
  out
    .u8(layout.wideSizes ? 5 : 4)
    .u8(2)
    .u8((filteredSingle ? 2 : 0) | (layout.edgesUnfiltered ? 1 : 0))
    .u8(dims.length)
    .u8(width);
  for (const size of dims) out.uint(size, width);
  switch (index.kind) {
    case 'single':
      out.u8(1);
      if (index.filtered) out.u64(index.filtered.size).u32(index.filtered.mask);
      break;
    case 'implicit':
      out.u8(2);
      break;
    case 'fixedArray':
      out.u8(3).u8(index.pageBits);
      break;
    default:
      out.u8(index.kind === 'extensibleArray' ? 4 : 5).put(index.parameters);
  }
  return out.u64(index.address).done();
}

// ---------------------------------------------------------------- attributes, and links in groups

/** Encodes the link info message of a group whose links are in its header. */
export function encodeLinkInfo(info: { tracked: boolean; indexed: boolean; nextOrder: number }): Uint8Array {
  const out = new ByteWriter(34).u8(0).u8((info.tracked ? 1 : 0) | (info.indexed ? 2 : 0));
  if (info.tracked) out.u64(info.nextOrder);
  out.u64(-1).u64(-1);
  if (info.indexed) out.u64(-1);
  return out.done();
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
