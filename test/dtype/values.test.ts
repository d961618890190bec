import { describe, expect, test } from 'vitest';
import { T } from '../../src/dtype/construct.ts';
import { decodeOne, decodeValues } from '../../src/dtype/decode.ts';
import { encodeValues } from '../../src/dtype/encode.ts';
import { heapSlots, visitHeapIds, visitReferences } from '../../src/dtype/heap-ids.ts';
import { type DType, type FloatType, type FullType, fullType, type ReferenceType } from '../../src/dtype/model.ts';
import { MemoryHeap, NO_RESOLVER } from './generate.ts';

const error = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });
const bytesOf = (dtype: DType, values: unknown, count: number) => Array.from(encodeValues(dtype, values, count).bytes);
const read = (dtype: DType, bytes: ArrayLike<number>, count: number) =>
  decodeValues(dtype, Uint8Array.from(bytes), count, NO_RESOLVER);

describe('the bytes in the file', () => {
  test('of numbers follow the byte order', () => {
    expect(bytesOf('int16', [1, -2], 2)).toEqual([1, 0, 0xfe, 0xff]);
    expect(bytesOf(T.bigEndian('int16'), [1, -2], 2)).toEqual([0, 1, 0xff, 0xfe]);
    expect(bytesOf(T.bigEndian('float32'), 1, 1)).toEqual([0x3f, 0x80, 0, 0]);
  });

  test('of fixed strings are padded', () => {
    expect(bytesOf(T.string({ length: 4 }), ['ab', 'abcd'], 2)).toEqual([97, 98, 0, 0, 97, 98, 99, 100]);
    expect(bytesOf(T.string({ length: 4, pad: 'space' }), 'ab', 1)).toEqual([97, 98, 32, 32]);
    expect(bytesOf(T.string({ length: 4, pad: 'zero' }), 'abc', 1)).toEqual([97, 98, 99, 0]);
  });

  test('of a variable-length string are its length and room for the heap id', () => {
    const { bytes, heap } = encodeValues(T.string(), ['é', ''], 2);
    expect(Array.from(bytes)).toEqual([2, ...new Array(31).fill(0)]);
    expect(heap).toEqual([
      { at: 0, length: 2, content: { bytes: new TextEncoder().encode('é'), heap: [], references: [] } },
      // In the heap as well: without an id it would be C's null pointer.
      { at: 16, length: 0, content: { bytes: new Uint8Array(0), heap: [], references: [] } },
    ]);
  });

  test('of a sequence count its elements', () => {
    const { bytes, heap } = encodeValues(T.compound({ a: 'int8', v: T.vlen('int32') }), { a: 1, v: [7, 8, 9] }, 1);
    expect(Array.from(bytes)).toEqual([1, 3, ...new Array(15).fill(0)]);
    expect(heap).toMatchObject([{ at: 1, length: 3, content: { bytes: expect.objectContaining({ length: 12 }) } }]);
  });

  test('of references are zeros, with the paths beside them', () => {
    const { bytes, references } = encodeValues(T.reference, ['/a', '', '/b'], 3);
    expect(bytes).toEqual(new Uint8Array(24));
    expect(references).toEqual([
      { at: 0, path: '/a' },
      { at: 16, path: '/b' },
    ]);
  });

  test('between the fields of a compound are zero', () => {
    const type = T.compound({ a: 'uint8', b: 'uint16' }, { offsets: { a: 1, b: 4 }, size: 7 });
    expect(bytesOf(type, [{ a: 1, b: 2 }], 1)).toEqual([0, 1, 0, 0, 2, 0, 0]);
  });
});

describe('writing takes', () => {
  test('numbers for 64-bit types and bigints for the others', () => {
    expect(encodeValues('int64', [1, -1n], 2).bytes).toEqual(encodeValues('int64', BigInt64Array.of(1n, -1n), 2).bytes);
    expect(encodeValues('float32', [1n, 2], 2).bytes).toEqual(encodeValues('float32', Float32Array.of(1, 2), 2).bytes);
    expect(bytesOf('uint8', [300n, -3], 2)).toEqual([255, 0]);
  });

  test('booleans and numbers for bool', () => {
    expect(bytesOf(T.bool, [true, false, 1, 0], 4)).toEqual([1, 0, 1, 0]);
    expect(bytesOf(T.bool, true, 1)).toEqual([1]);
    expect(bytesOf(T.bool, Uint8Array.of(0, 1), 2)).toEqual([0, 1]);
  });

  test('members of an enum by name or value', () => {
    const color = T.enum('uint8', { red: 3, green: 7 });
    expect(bytesOf(color, ['green', 3], 2)).toEqual([7, 3]);
    expect(bytesOf(color, 'red', 1)).toEqual([3]);
    expect(() => encodeValues(color, 'blue', 1)).toThrow(error('DTYPE', /name of a member.*got string 'blue'/));
  });

  test('an array element alone or in a list of one', () => {
    const pair = T.array('int8', [2]);
    expect(bytesOf(pair, [1, 2], 1)).toEqual([1, 2]);
    expect(bytesOf(pair, Int8Array.of(1, 2), 1)).toEqual([1, 2]);
    expect(bytesOf(pair, [[1, 2]], 1)).toEqual([1, 2]);
    expect(bytesOf(pair, [Float64Array.of(1, 2)], 1)).toEqual([1, 2]);
    expect(encodeValues(T.vlen('int8'), [5], 1).heap).toMatchObject([{ length: 1 }]);
    expect(encodeValues(T.vlen('int8'), [[5, 6]], 1).heap).toMatchObject([{ length: 2 }]);
    expect(encodeValues(T.vlen('int8'), [], 1).heap).toEqual([]);
    expect(bytesOf(T.opaque(2), Uint8Array.of(8, 9), 1)).toEqual([8, 9]);
    expect(bytesOf(T.array(T.opaque(2), [1]), [Uint8Array.of(8, 9)], 1)).toEqual([8, 9]);
  });

  test('records that are instances of a class', () => {
    class Point {
      readonly x = 1;
      get y(): number {
        return 2;
      }
    }
    expect(bytesOf(T.compound({ x: 'int8', y: 'int8' }), new Point(), 1)).toEqual([1, 2]);
  });
});

describe('writing refuses', () => {
  const point = T.compound({ x: 'float64', name: T.string({ length: 3 }) });
  test.each<[string, DType, unknown, RegExp]>([
    ['text for a number', 'float64', ['5'], /expected a number or bigint for float64, got string '5' at index 0/],
    ['a boolean for a number', 'int8', true, /got boolean true/],
    ['null', 'int8', null, /got null/],
    ['a number for a string', T.string(), 5, /expected a string for string, got number 5/],
    ['text that is too long', T.string({ length: 3 }), 'abcd', /text of 4 bytes where 3 fit/],
    ['text whose UTF-8 is too long', T.string({ length: 3 }), 'éé', /text of 4 bytes where 3 fit/],
    ['text without room for the NUL', T.string({ length: 3, pad: 'zero' }), 'abc', /where 2 fit before the final NUL/],
    ['other letters in ASCII', T.string({ charset: 'ascii' }), 'é', /beyond ASCII/],
    ['half a surrogate pair', T.string(), 'a\ud800', /half of a surrogate pair/],
    ['NUL in text', T.string(), 'a\0b', /NUL/],
    ['NUL at the end of padded text', T.string({ length: 3 }), 'a\0', /NUL/],
    ['an opaque of another size', T.opaque(4), Uint8Array.of(1), /expected a Uint8Array of 4.*got Uint8Array of 1/],
    ['an array for an opaque', T.opaque(1), [[1]], /expected a Uint8Array of 1.*got an array of 1/],
    ['a value for a sequence', T.vlen('int8'), 5, /expected an array for vlen of int8, got number 5/],
    ['a value for a record', point, 5, /expected an object for compound.*got number 5/],
    ['an array for a record', point, [[1, 2]], /expected an object.*got an array of 2/],
    ['a missing field', point, { x: 1 }, /the field 'name'.*is missing in object \{x\}/],
    ['what every object has', T.compound({ toString: 'int8' }), {}, /the field 'toString'.*is missing/],
    ['a bad field', point, { x: 'no', name: '' }, /field 'x': expected a number/],
    ['a number for a path', T.reference, 5, /expected a path/],
  ])('%s', (_, type, value, message) => {
    expect(() => encodeValues(type, value, 1)).toThrow(error('DTYPE', message));
  });

  test('a wrong count', () => {
    expect(() => encodeValues('int8', [1, 2], 3)).toThrow(error('SHAPE', /expected 3 values of int8, got 2/));
    expect(() => encodeValues('int8', 5, 3)).toThrow(error('SHAPE', /expected 3 values of int8, got number 5/));
    expect(() => encodeValues(T.array('int8', [2]), [[1]], 1)).toThrow(error('SHAPE', /expected 2 values/));
  });
});

describe('reading gives', () => {
  test('typed arrays for what is stored as numbers', () => {
    expect(read(T.bigEndian('uint16'), [1, 2, 3, 4], 2)).toEqual(Uint16Array.of(0x102, 0x304));
    expect(read('float16', [0, 0x3c], 1)).toEqual(Float32Array.of(1));
    expect(read('int64', new Array(8).fill(255), 1)).toEqual(BigInt64Array.of(-1n));
    expect(read(T.enum('int16', { a: 1 }), [1, 0], 1)).toEqual(Int16Array.of(1));
    expect(read(T.bool, [0, 1], 2)).toEqual(Uint8Array.of(0, 1));
    expect(read(T.bitfield(4), [1, 0, 0, 128], 1)).toEqual(Uint32Array.of(0x80000001));
    expect(read(T.bitfield(8), new Array(8).fill(255), 1)).toEqual(BigUint64Array.of(2n ** 64n - 1n));
  });

  test('plain arrays for numbers of unusual size', () => {
    const base = { class: 'integer', size: 3, signed: true, order: 'little', bitOffset: 0, precision: 24 } as const;
    expect(read(base as FullType, [255, 255, 255, 1, 2, 3], 2)).toEqual([-1, 0x030201]);
    expect(read({ ...base, size: 16, precision: 128 } as FullType, new Array(16).fill(255), 1)).toEqual([-1n]);
    expect(read({ class: 'enum', size: 3, base, members: {}, entries: [] } as FullType, [9, 0, 0], 1)).toEqual([9]);
    const bits = { class: 'bitfield', size: 1, order: 'little', bitOffset: 2, precision: 3 } as FullType;
    expect(read(bits, [0b11110111], 1)).toEqual([0b101]);
  });

  test('records with booleans, typed arrays and records inside', () => {
    const type = T.compound({ ok: T.bool, v: T.array('int8', [2]), in: T.compound({ big: 'int64' }) });
    const record = { ok: true, v: Int8Array.of(1, 2), in: { big: 3n } };
    expect(read(type, bytesOf(type, [record, record], 2), 2)).toEqual([record, record]);
  });

  test('text up to its padding', () => {
    expect(read(T.string({ length: 3, pad: 'zero' }), [97, 0, 98], 1)).toEqual(['a']);
    expect(read(T.string({ length: 3 }), [97, 0, 98], 1)).toEqual(['a\0b']);
    expect(read(T.string({ length: 3, pad: 'space' }), [32, 97, 32], 1)).toEqual([' a']);
    expect(read(T.string({ length: 3, pad: 'zero' }), [0xef, 0xbb, 0xbf], 1)).toEqual(['\ufeff']);
    expect(read(T.string({ length: 1 }), [0xff], 1)).toEqual(['\ufffd']);
  });

  test('one element of a scalar', () => {
    expect(decodeOne(T.bool, Uint8Array.of(1), NO_RESOLVER)).toBe(true);
    expect(decodeOne('uint64', new Uint8Array(8), NO_RESOLVER)).toBe(0n);
    expect(decodeOne('float16', Uint8Array.of(0, 0x3c), NO_RESOLVER)).toBe(1);
    expect(decodeOne(T.string({ length: 2 }), Uint8Array.of(97, 98), NO_RESOLVER)).toBe('ab');
  });

  test('the object of a region reference', () => {
    const region: ReferenceType = { class: 'reference', size: 12, to: 'region' };
    const heap = new MemoryHeap();
    heap.paths.push('/target');
    heap.objects.push(Uint8Array.of(8, 0, 0, 0, 0, 0, 0, 0, 99));
    const bytes = Uint8Array.of(0, 16, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, ...new Array(12).fill(0));
    expect(decodeValues(region, bytes, 2, heap)).toEqual([{ path: '/target', where: undefined }, null]);
    const seen: number[][] = [];
    visitReferences(
      region,
      bytes,
      2,
      () => seen.push([]),
      (...args) => seen.push(args),
    );
    expect(seen).toEqual([[0, 4096, 1]]);
  });

  test('no empty value from the heap', () => {
    const undefinedAddress = Uint8Array.of(0, 0, 0, 0, ...new Array(12).fill(255));
    expect(decodeValues(T.vlen('int8'), undefinedAddress, 1, NO_RESOLVER)).toEqual([new Int8Array(0)]);
    expect(decodeValues(T.string(), new Uint8Array(16), 1, NO_RESOLVER)).toEqual(['']);
    expect(decodeValues(T.reference, new Uint8Array(8).fill(255), 1, NO_RESOLVER)).toEqual(['']);
  });

  test('a string whose writer counted the NUL', () => {
    const heap = new MemoryHeap();
    heap.objects.push(Uint8Array.of(97, 98, 0));
    const bytes = Uint8Array.of(3, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
    expect(decodeValues(T.string(), bytes, 1, heap)).toEqual(['ab']);
  });
});

describe('damage is a FORMAT error:', () => {
  const heapId = (length: number, address: bigint, index: number) => {
    const bytes = new Uint8Array(16);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, length, true);
    view.setBigUint64(4, address, true);
    view.setUint32(12, index, true);
    return bytes;
  };
  const heap = new MemoryHeap();
  heap.objects.push(new Uint8Array(12));
  const cases: [string, DType, Uint8Array][] = [
    ['too few bytes', 'float64', new Uint8Array(7)],
    ['a huge sequence', T.vlen('float64'), heapId(0xffffffff, 4096n, 1)],
    ['a huge sequence of sequences', T.vlen(T.vlen('int8')), heapId(0x10000000, 4096n, 1)],
    ['a string longer than its content', T.string(), heapId(13, 4096n, 1)],
    ['a sequence without address', T.vlen('int8'), heapId(1, 0n, 0)],
    ['a heap object that is not there', T.vlen('int8'), heapId(1, 4096n, 7)],
    ['an address beyond 2^53', T.vlen('int8'), heapId(1, 2n ** 60n, 1)],
    ['a reference beyond 2^53', T.reference, heapId(0, 0n, 0).fill(0x7f)],
    ['an array larger than it says', { ...(T.array('int8', [4]) as object), size: 2 } as FullType, new Uint8Array(4)],
    ['a field outside', { ...(T.compound({ a: 'int32' }) as object), size: 2 } as FullType, new Uint8Array(4)],
    ['an element of no bytes', { ...(T.opaque(1) as object), size: 0 } as FullType, new Uint8Array(4)],
    ['an integer of a kilobyte', { ...(T.bigEndian('int8') as object), size: 1024 } as FullType, new Uint8Array(1024)],
    [
      'a float without mantissa',
      { ...(fullType(T.bigEndian('float32')) as FloatType), mantissaBits: 0 },
      new Uint8Array(4),
    ],
  ];
  test.each(cases)('%s', (_, type, bytes) => {
    expect(() => decodeValues(type, bytes, 1, heap)).toThrow(error('FORMAT', /./));
  });

  test('walking over it as well', () => {
    expect(() => [...heapSlots(T.string(), new Uint8Array(15), 1)]).toThrow(error('FORMAT', /need 16 bytes, got 15/));
    const inner = () => new Uint8Array(3);
    expect(() => visitHeapIds(T.vlen(T.string()), heapId(1, 4096n, 1), 1, inner)).toThrow(error('FORMAT', /got 3/));
    expect(() => visitReferences(T.reference, new Uint8Array(8).fill(1), 1, () => {})).toThrow(
      error('FORMAT', /2\^53/),
    );
  });
});
