// The datatype message: all classes and versions are read, versions 1 and 3 are written (HDF5 file format specification, IV.A.2.d).

import { H5LogError } from '../../base/errors.ts';
import { readUnusual } from '../../dtype/bits.ts';
import {
  type ByteOrder,
  type CompoundField,
  type EnumType,
  type FullType,
  fullType,
  publicType,
  type StringPad,
} from '../../dtype/model.ts';
import { sizeOf } from '../../space/shape.ts';
import { bytesFor } from '../format/byte-writer.ts';
import { type Cursor, textFrom } from '../format/cursor.ts';

const MAX_DEPTH = 64;
export const CLASS = {
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
export const PADS: readonly StringPad[] = ['zero', 'null', 'space'];

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
