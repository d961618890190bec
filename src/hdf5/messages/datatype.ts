// The datatype message: all classes and versions are read, versions 1 and 3 are written (HDF5 file format specification, IV.A.2.d).

import { H5LogError } from '../../base/errors.ts';
import { readUnusual, writeUnusual } from '../../dtype/bits.ts';
import {
  type ByteOrder,
  type CompoundField,
  type DType,
  type EnumType,
  type FullType,
  fullType,
  type IntegerType,
  publicType,
  type StringPad,
} from '../../dtype/model.ts';
import { sizeOf } from '../../space/shape.ts';
import { ByteWriter, bytesFor } from '../format/byte-writer.ts';
import { type Cursor, textFrom } from '../format/cursor.ts';

const MAX_DEPTH = 64;
const CLASS = {
  integer: 0,
  float: 1,
  time: 2,
  string: 3,
  bitfield: 4,
  opaque: 5,
  compound: 6,
  reference: 7,
  enum: 8,
  vlen: 9,
  array: 10,
} as const;
const PADS: readonly StringPad[] = ['zero', 'null', 'space'];

/** Parses a datatype; the cursor ends behind it. */
export function parseDatatype(cursor: Cursor, depth = 0): FullType {
  if (depth > MAX_DEPTH) cursor.fail('datatype nested too deep');
  const first = cursor.u8();
  const kind = first & 15;
  const version = first >> 4;
  if (version < 1 || version > 5) cursor.fail(`datatype version ${version} is not known`);
  const bits = cursor.uint(3);
  const size = cursor.u32();
  if (size === 0) cursor.fail('datatype of 0 bytes');
  const order: ByteOrder = bits & 1 ? 'big' : 'little';
  switch (kind) {
    case CLASS.integer: {
      const { bitOffset, precision } = bitRange(cursor, size);
      return { class: 'integer', size, signed: (bits & 8) !== 0, order, bitOffset, precision };
    }
    case CLASS.float:
      return parseFloatType(cursor, size, bits);
    case CLASS.string: {
      const pad = PADS[bits & 15];
      if (!pad) cursor.fail(`string padding ${bits & 15} is not known`);
      return { class: 'string', size, variable: false, pad, charset: charset(cursor, (bits >> 4) & 15) };
    }
    case CLASS.bitfield: {
      const { bitOffset, precision } = bitRange(cursor, size);
      return { class: 'bitfield', size, order, bitOffset, precision };
    }
    case CLASS.opaque: {
      const tag = cursor.take(Math.ceil((bits & 255) / 8) * 8, 'opaque tag');
      const stop = tag.indexOf(0);
      return { class: 'opaque', size, tag: textFrom(stop < 0 ? tag : tag.subarray(0, stop)) };
    }
    case CLASS.compound:
      return { class: 'compound', size, fields: parseFields(cursor, version, bits & 0xffff, size, depth) };
    case CLASS.reference:
      return { class: 'reference', size, to: (['object', 'region'] as const)[bits & 15] ?? 'other' };
    case CLASS.enum:
      return parseEnum(cursor, version, bits & 0xffff, size, depth);
    case CLASS.vlen: {
      const base = parseDatatype(cursor, depth + 1);
      if ((bits & 15) === 1) {
        const pad = PADS[(bits >> 4) & 15];
        if (!pad) cursor.fail(`string padding ${(bits >> 4) & 15} is not known`);
        return { class: 'string', size, variable: true, pad, charset: charset(cursor, (bits >> 8) & 15) };
      }
      return { class: 'vlen', size, base: publicType(base) };
    }
    case CLASS.array: {
      const rank = cursor.u8();
      if (rank === 0 || rank > 32) cursor.fail(`array type of ${rank} dimensions`);
      if (version < 3) cursor.skip(3);
      const shape: number[] = [];
      for (let d = 0; d < rank; d++) shape.push(cursor.u32());
      if (version < 3) cursor.skip(4 * rank);
      const base = parseDatatype(cursor, depth + 1);
      if (base.size * sizeOf(shape) !== size) cursor.fail(`array type of ${size} bytes does not fit its shape`);
      return { class: 'array', size, base: publicType(base), shape };
    }
    case CLASS.time:
      // Obsolete; its bytes are given as they are.
      cursor.skip(2);
      return { class: 'opaque', size, tag: 'H5T_TIME' };
    case 11: {
      // A complex number of HDF5 2.0: two floats one after the other.
      const base = publicType(parseDatatype(cursor, depth + 1));
      const half = size / 2;
      return {
        class: 'compound',
        size,
        fields: [
          { name: 'r', offset: 0, dtype: base },
          { name: 'i', offset: half, dtype: base },
        ],
      };
    }
    default:
      return cursor.fail(`datatype class ${kind} is not known`);
  }
}

function bitRange(cursor: Cursor, size: number): { bitOffset: number; precision: number } {
  const bitOffset = cursor.u16();
  const precision = cursor.u16();
  if (precision === 0 || bitOffset + precision > size * 8)
    cursor.fail(`${precision} bits from bit ${bitOffset} in ${size} bytes`);
  return { bitOffset, precision };
}

function charset(cursor: Cursor, value: number): 'ascii' | 'utf8' {
  if (value > 1) cursor.fail(`character set ${value} is not known`);
  return value === 0 ? 'ascii' : 'utf8';
}

function parseFloatType(cursor: Cursor, size: number, bits: number): FullType {
  const { bitOffset, precision } = bitRange(cursor, size);
  const exponentAt = cursor.u8();
  const exponentBits = cursor.u8();
  const mantissaAt = cursor.u8();
  const mantissaBits = cursor.u8();
  const exponentBias = cursor.u32();
  const signBit = (bits >> 8) & 255;
  const limit = size * 8;
  if (bits & 0x40)
    throw new H5LogError('UNSUPPORTED', 'VAX floating-point numbers are not supported', { offset: cursor.offset });
  if (
    signBit >= limit ||
    exponentAt + exponentBits > limit ||
    mantissaAt + mantissaBits > limit ||
    exponentBits === 0
  ) {
    cursor.fail('floating-point fields outside the number');
  }
  return {
    class: 'float',
    size,
    order: bits & 1 ? 'big' : 'little',
    bitOffset,
    precision,
    signBit,
    exponentAt,
    exponentBits,
    mantissaAt,
    mantissaBits,
    exponentBias,
    normalization: (bits >> 4) & 3,
  };
}

/** The name of a member; up to version 2 it is padded to a multiple of 8 bytes. */
function memberName(cursor: Cursor, version: number): string {
  const from = cursor.at;
  const name = cursor.cstring('member name');
  if (version < 3) cursor.skip((8 - ((cursor.at - from) % 8)) % 8);
  return name;
}

function parseFields(cursor: Cursor, version: number, count: number, size: number, depth: number): CompoundField[] {
  if (count === 0) cursor.fail('compound type without members');
  const fields: CompoundField[] = [];
  for (let i = 0; i < count; i++) {
    const name = memberName(cursor, version);
    const offset = version < 3 ? cursor.u32() : cursor.uint(bytesFor(size));
    let shape: number[] = [];
    if (version === 1) {
      const rank = cursor.u8();
      if (rank > 4) cursor.fail(`compound member of ${rank} dimensions`);
      cursor.skip(11);
      shape = [cursor.u32(), cursor.u32(), cursor.u32(), cursor.u32()].slice(0, rank);
    }
    let type = parseDatatype(cursor, depth + 1);
    if (shape.length > 0) {
      const total = type.size * sizeOf(shape);
      type = { class: 'array', size: total, base: publicType(type), shape };
    }
    if (offset + type.size > size) cursor.fail(`member ${name} reaches beyond the ${size} bytes of its compound`);
    fields.push({ name, offset, dtype: publicType(type) });
  }
  refuseOverlap(cursor, fields);
  return fields;
}

/** Refuses members that overlap, as libhdf5 does: otherwise a short message could name the same bytes thousands of times. */
function refuseOverlap(cursor: Cursor, fields: readonly CompoundField[]): void {
  let end = 0;
  for (const { name, offset, dtype } of [...fields].sort((a, b) => a.offset - b.offset)) {
    if (offset < end) cursor.fail(`member ${name} overlaps another one`);
    end = offset + fullType(dtype).size;
  }
}

function parseEnum(cursor: Cursor, version: number, count: number, size: number, depth: number): EnumType {
  const base = parseDatatype(cursor, depth + 1);
  if (base.class !== 'integer') cursor.fail(`enum over a ${base.class}`);
  if (base.size !== size) cursor.fail(`enum of ${size} bytes over an integer of ${base.size}`);
  const names: string[] = [];
  for (let i = 0; i < count; i++) names.push(memberName(cursor, version));
  const values = readUnusual(base, cursor.take(count * size), 0, count);
  const entries = names.map((name, i) => [name, values[i] as number | bigint] as const);
  return { class: 'enum', size, base: publicType(base), members: Object.fromEntries(entries), entries };
}

// ------------------------------------------------------------------ writing

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

/** Whether elements of the type that is encoded from `from` on may refer to objects; false only if they surely do not. */
export function mayRefer(bytes: Uint8Array, from: number, to: number): boolean {
  if (from + 8 > to) return true;
  switch ((bytes[from] as number) & 15) {
    case CLASS.vlen:
      return ((bytes[from + 1] as number) & 15) !== 1; // strings are in every other file
    case CLASS.reference:
    case CLASS.compound:
    case CLASS.array:
      return true;
    default:
      return false;
  }
}
