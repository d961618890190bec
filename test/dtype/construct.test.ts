import { describe, expect, expectTypeOf, test } from 'vitest';
import { checkType } from '../../src/dtype/check.ts';
import { T } from '../../src/dtype/construct.ts';
import { containsReference, containsVlen, describeType, sameType } from '../../src/dtype/describe.ts';
import {
  type ArrayOf,
  type CompoundType,
  type DType,
  type EnumType,
  fullType,
  type InputOf,
  type ValueOf,
} from '../../src/dtype/model.ts';

const wrong = (message: RegExp) => expect.objectContaining({ code: 'DTYPE', message: expect.stringMatching(message) });

describe('numbers', () => {
  test('have a byte order', () => {
    expect(T.bigEndian('int16')).toMatchObject({
      class: 'integer',
      size: 2,
      order: 'big',
      signed: true,
      precision: 16,
    });
    expect(T.littleEndian('float64')).toMatchObject({ class: 'float', size: 8, order: 'little', exponentBias: 1023 });
  });

  test('are the same type by name and by description', () => {
    expect(sameType('float32', T.littleEndian('float32'))).toBe(true);
    expect(sameType('float32', T.bigEndian('float32'))).toBe(false);
    expect(sameType('int8', T.bigEndian('int8'))).toBe(true);
    expect(sameType('int32', 'uint32')).toBe(false);
  });

  test('need a known name', () => {
    expect(() => T.bigEndian('int7' as 'int8')).toThrow(wrong(/name of a number type, got string 'int7'/));
  });
});

describe('strings', () => {
  test('are variable-length UTF-8 unless told otherwise', () => {
    expect(T.string()).toMatchObject({ size: 16, variable: true, charset: 'utf8' });
    expect(T.string({ length: 10 })).toMatchObject({ size: 10, variable: false, pad: 'null', charset: 'utf8' });
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 32])('have a length that is not %d', (length) => {
    expect(() => T.string({ length })).toThrow(wrong(/length of a string must be a whole number/));
  });

  test('have one of three paddings and two character sets', () => {
    expect(() => T.string({ length: 4, pad: 'none' as 'null' })).toThrow(wrong(/padding/));
    expect(() => T.string({ charset: 'latin1' as 'utf8' })).toThrow(wrong(/character set/));
  });
});

describe('enums', () => {
  test('bool is what h5py writes', () => {
    const { base, entries } = fullType(T.bool) as EnumType;
    expect(base).toBe('int8');
    expect(entries).toEqual([
      ['FALSE', 0],
      ['TRUE', 1],
    ]);
  });

  test('of 64 bits have bigints as values, others numbers', () => {
    expect((fullType(T.enum('uint64', { a: 1, b: 2n ** 64n - 1n })) as EnumType).entries).toEqual([
      ['a', 1n],
      ['b', 2n ** 64n - 1n],
    ]);
    expect((fullType(T.enum('int16', { a: -5n })) as EnumType).entries).toEqual([['a', -5]]);
  });

  test.each<[string, () => unknown, RegExp]>([
    ['over a float', () => T.enum('float32', { a: 1 }), /integer type, got float32/],
    ['without members', () => T.enum('int8', {}), /at least one member/],
    ['with one value twice', () => T.enum('int8', { a: 1, b: 1n }), /'a' and 'b' both have the value 1/],
    ['with a value that does not fit', () => T.enum('uint8', { a: -1 }), /'a' is -1, which does not fit uint8/],
    ['with a fraction', () => T.enum('int8', { a: 0.5 }), /'a' needs a whole number, got number 0.5/],
    ['with an empty name', () => T.enum('int8', { '': 0 }), /needs a name/],
  ])('are refused %s', (_, make, message) => {
    expect(make).toThrow(wrong(message));
  });
});

describe('compounds', () => {
  test('are packed without a layout', () => {
    const type = fullType(T.compound({ a: 'int8', b: 'float64', c: T.array('int16', [3]) })) as CompoundType;
    expect(type.size).toBe(15);
    expect(type.fields.map(({ offset }) => offset)).toEqual([0, 1, 9]);
  });

  test('keep a layout with gaps and fields in any order', () => {
    const type = T.compound({ a: 'int8', b: 'float64' }, { offsets: { a: 8, b: 0 }, size: 16 });
    expect(type.size).toBe(16);
    expect(sameType(type, T.compound({ b: 'float64', a: 'int8' }, { offsets: { b: 0, a: 8 }, size: 16 }))).toBe(true);
    expect(sameType(type, T.compound({ b: 'float64', a: 'int8' }))).toBe(false);
  });

  test.each<[string, () => unknown, RegExp]>([
    ['without fields', () => T.compound({}), /at least one field/],
    ['of unknown types', () => T.compound({ a: 'int9' as 'int8' }), /expected an element type.*got string 'int9'/],
    [
      'with overlapping fields',
      () => T.compound({ a: 'int32', b: 'int32' }, { offsets: { a: 0, b: 3 }, size: 8 }),
      /'b' at 3 overlaps 'a', which ends at 4/,
    ],
    [
      'with fields outside',
      () => T.compound({ a: 'int32' }, { offsets: { a: 6 }, size: 8 }),
      /'a' ends at 10, outside the compound of 8 bytes/,
    ],
    ['with a negative offset', () => T.compound({ a: 'int8' }, { offsets: { a: -1 }, size: 8 }), /offset from 0 on/],
    [
      'with an offset missing',
      () => T.compound({ a: 'int8' }, { offsets: {} as { a: number }, size: 8 }),
      /no offset for the field 'a'/,
    ],
    [
      'with an offset too many',
      () => T.compound({ a: 'int8' }, { offsets: { a: 0, b: 1 } as { a: number }, size: 8 }),
      /'b', which is not a field/,
    ],
  ])('are refused %s', (_, make, message) => {
    expect(make).toThrow(wrong(message));
  });
});

describe('other classes', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['an array of no dimensions', () => T.array('int8', []), /1 to 32 dimensions/],
    ['an array of 33 dimensions', () => T.array('int8', new Array(33).fill(1)), /1 to 32 dimensions/],
    ['an array with a dimension of 0', () => T.array('int8', [2, 0]), /each dimension/],
    ['an array beyond 4 GiB', () => T.array('int8', [65536, 65536]), /in bytes must be/],
    ['an opaque of no bytes', () => T.opaque(0), /size of an opaque/],
    ['an opaque with a tag of 256 bytes', () => T.opaque(1, 'é'.repeat(128)), /248 bytes, this one has 256/],
    ['a bitfield of 3 bytes', () => T.bitfield(3 as 4), /1, 2, 4 or 8 bytes/],
    ['a vlen of nothing', () => T.vlen(undefined as unknown as DType), /got undefined/],
  ])('%s is refused', (_, make, message) => {
    expect(make).toThrow(wrong(message));
  });

  test('checkType takes names and descriptions only', () => {
    expect(checkType('uint8')).toBe('uint8');
    expect(checkType(T.bool)).toBe(T.bool);
    for (const bad of ['toString', 5, null, {}, { class: 'thing' }])
      expect(() => checkType(bad)).toThrow(wrong(/element type/));
  });
});

test('types cannot be changed', () => {
  const type = fullType(
    T.compound({ a: 'int8', e: T.enum('int8', { x: 1 }), s: T.array('int8', [2]) }),
  ) as CompoundType;
  for (const part of [
    T,
    T.bool,
    T.reference,
    T.string(),
    T.opaque(1),
    T.bitfield(1),
    T.vlen('int8'),
    T.bigEndian('int8'),
  ]) {
    expect(Object.isFrozen(part)).toBe(true);
  }
  for (const part of [type, type.fields, ...type.fields]) expect(Object.isFrozen(part)).toBe(true);
  expect(Object.isFrozen((fullType(T.bool) as EnumType).entries)).toBe(true);
});

test('types have a short description', () => {
  const descriptions: [DType, string][] = [
    ['float64', 'float64'],
    [T.bigEndian('int16'), 'big-endian int16'],
    [T.string(), 'string'],
    [T.string({ length: 10 }), 'string(10)'],
    [T.string({ length: 10, pad: 'space', charset: 'ascii' }), 'ascii string(10, space)'],
    [T.bool, 'bool'],
    [T.enum('uint8', { red: 0, green: 1 }), 'enum uint8 {red: 0, green: 1}'],
    [T.compound({ x: 'float64', y: 'int32' }), 'compound {x: float64, y: int32}'],
    [T.array('float32', [2, 3]), 'array [2, 3] of float32'],
    [T.vlen(T.string()), 'vlen of string'],
    [T.opaque(4), 'opaque(4)'],
    [T.opaque(4, 'key'), "opaque(4, 'key')"],
    [T.bitfield(2), 'bitfield(16)'],
    [T.reference, 'object reference'],
  ];
  for (const [type, text] of descriptions) expect(describeType(type)).toBe(text);
});

test('what a type contains is found at any depth', () => {
  const deep = T.array(T.compound({ a: T.vlen(T.compound({ r: T.reference })) }), [2]);
  expect([containsVlen(deep), containsReference(deep)]).toEqual([true, true]);
  expect([containsVlen(T.string()), containsVlen(T.string({ length: 3 }))]).toEqual([true, false]);
  expect([containsVlen('int8'), containsReference('int8')]).toEqual([false, false]);
});

test('TypeScript knows the values', () => {
  const point = T.compound({
    x: 'float64',
    id: 'int64',
    tags: T.vlen(T.string()),
    at: T.array('int16', [2]),
    ok: T.bool,
  });
  type Point = { x: number; id: bigint; tags: string[]; at: Int16Array<ArrayBuffer>; ok: boolean };
  expectTypeOf<ValueOf<typeof point>>().branded.toEqualTypeOf<Readonly<Point>>();
  expectTypeOf<ArrayOf<typeof T.bool>>().toEqualTypeOf<Uint8Array<ArrayBuffer>>();
  const letters = T.enum('uint64', { a: 1, b: 2 });
  expectTypeOf<ArrayOf<typeof letters>>().toEqualTypeOf<BigUint64Array<ArrayBuffer>>();
  expectTypeOf<ValueOf<typeof letters>>().toEqualTypeOf<bigint>();
  expectTypeOf<InputOf<typeof letters>>().toEqualTypeOf<bigint | 'a' | 'b'>();
  expectTypeOf(letters.members).toEqualTypeOf<{ readonly a: 1; readonly b: 2 }>();
  expect(letters.members).toEqual({ a: 1, b: 2 });
  const colour = T.compound({ colour: letters, x: 'float64' });
  expectTypeOf<InputOf<typeof colour>['colour']>().toEqualTypeOf<bigint | 'a' | 'b'>();
});
