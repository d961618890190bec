import { describe, expect, test } from 'vitest';
import type { DType, EnumType, IntegerType } from '../../../src/dtype/model.ts';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { encodeDatatype, parseDatatype } from '../../../src/hdf5/messages/datatype.ts';

const integer = (size: number, more: Partial<IntegerType> = {}): IntegerType => ({
  class: 'integer',
  size,
  signed: true,
  order: 'little',
  bitOffset: 0,
  precision: size * 8,
  ...more,
});

const overInteger = (base: IntegerType, ...values: (number | bigint)[]): EnumType => ({
  class: 'enum',
  size: base.size,
  base: base as DType,
  members: values.map((value, i) => [`m${i}`, value] as const),
});

describe('the members of an enum', () => {
  test.each([
    ['one byte', overInteger(integer(1), -128, 0, 127)],
    ['big-endian', overInteger(integer(4, { order: 'big' }), -2, 2 ** 31 - 1)],
    ['64 bits', overInteger(integer(8, { signed: false }), 0n, 2n ** 64n - 1n)],
    ['56 bits', overInteger(integer(7), -(2n ** 55n), 2n ** 53n + 1n)],
    ['16 bits in the middle of four bytes', overInteger(integer(4, { bitOffset: 8, precision: 16 }), -32768, 5)],
    ['12 bits in eight bytes', overInteger(integer(8, { precision: 12, signed: false }), 0, 4095)],
  ])('%s: are read as they were written', (_name, type) => {
    const { members } = parseDatatype(new Cursor(encodeDatatype(type as DType), 0)) as EnumType;
    expect(members).toEqual(type.members);
  });

  test('lie in the bits of their integer', () => {
    const bytes = encodeDatatype(overInteger(integer(4, { bitOffset: 8, precision: 16 }), -2) as DType);
    expect([...bytes.subarray(-4)]).toEqual([0, 0xfe, 0xff, 0]);
  });
});
