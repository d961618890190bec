import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { T } from '../../src/dtype/construct.ts';
import { arrayKind, numberArray, packNumbers, unpackNumbers } from '../../src/dtype/convert.ts';
import { fromHalf, toHalf } from '../../src/dtype/kernels.ts';
import type { DType, FullType, NumberType, TypedArray } from '../../src/dtype/model.ts';
import { runs } from '../seed.ts';
import { NUMBER_TYPES } from './generate.ts';

const through = (values: ArrayLike<number | bigint>, type: NumberType): (number | bigint)[] => {
  const array = numberArray(type, values.length);
  const bytes = new Uint8Array(values.length * 8);
  packNumbers(values, 0, values.length, type, bytes, 0);
  unpackNumbers(bytes, 0, values.length, type, array, 0);
  return Array.from(array as ArrayLike<number | bigint>);
};

describe('half precision', () => {
  test('every one of its 65,536 values survives', () => {
    for (let bits = 0; bits < 0x10000; bits++) {
      const value = fromHalf(bits);
      if (!Number.isNaN(value)) expect(toHalf(value)).toBe(bits);
    }
    expect(fromHalf(0x7e00)).toBeNaN();
  });

  test('the nearest is taken, ties to even', () => {
    for (let bits = 0; bits < 0x7bff; bits++) {
      const middle = (fromHalf(bits) + fromHalf(bits + 1)) / 2;
      if (toHalf(middle) !== bits + (bits & 1)) expect.unreachable(`${middle}`);
      if (toHalf(middle * (1 - 2 ** -50)) !== bits || toHalf(middle * (1 + 2 ** -50)) !== bits + 1) {
        expect.unreachable(`beside ${middle}`);
      }
    }
    expect([65519.99, 65520, 1e300, -65520].map((v) => fromHalf(toHalf(v)))).toEqual([
      65504,
      Infinity,
      Infinity,
      -Infinity,
    ]);
    expect(Object.is(fromHalf(toHalf(-1e-300)), -0)).toBe(true);
  });
});

describe('64-bit integers', () => {
  test('are exact for every safe integer and saturate beyond', () => {
    const top = Number.MAX_SAFE_INTEGER;
    expect(through([top, -top, 2 ** 32, -(2 ** 32) - 1, -1.9], 'int64')).toEqual([
      BigInt(top),
      BigInt(-top),
      2n ** 32n,
      -(2n ** 32n) - 1n,
      -1n,
    ]);
    expect(through([2 ** 63, -(2 ** 63), 1e300, -Infinity, NaN], 'int64')).toEqual([
      2n ** 63n - 1n,
      -(2n ** 63n),
      2n ** 63n - 1n,
      -(2n ** 63n),
      0n,
    ]);
    expect(through([2 ** 64, -1, 2 ** 63, 0.9], 'uint64')).toEqual([2n ** 64n - 1n, 0n, 2n ** 63n, 0n]);
  });

  test('given as bigints of any size saturate', () => {
    expect(through([2n ** 70n, -(2n ** 70n), 5n], 'int64')).toEqual([2n ** 63n - 1n, -(2n ** 63n), 5n]);
    expect(through([2n ** 70n, -1n, 2n ** 64n - 1n], 'uint64')).toEqual([2n ** 64n - 1n, 0n, 2n ** 64n - 1n]);
    expect(through([2n ** 60n + 2n ** 36n + 1n, 2n ** 24n + 1n], 'float32')).toEqual([2 ** 60 + 2 ** 37, 2 ** 24]);
  });

  test('as float64 are rounded to nearest even, as Number() does', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), (value) => {
        const source = value >= 2n ** 63n ? BigUint64Array.of(value) : BigInt64Array.of(value);
        expect(through(source, 'float64')).toEqual([Number(value)]);
      }),
      runs('int64 to float64', 20_000),
    );
  });
});

/** What a number becomes, worked out with bigints; for whole types only. */
function saturated(value: number | bigint, type: NumberType): bigint {
  const bits = Number(type.replace(/\D/g, ''));
  const [low, high] = type.startsWith('u')
    ? [0n, 2n ** BigInt(bits) - 1n]
    : [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n];
  if (Number.isNaN(value)) return 0n;
  if (value === Infinity) return high;
  if (value === -Infinity) return low;
  const whole = typeof value === 'bigint' ? value : BigInt(Math.trunc(value));
  return whole < low ? low : whole > high ? high : whole;
}

const wholeTypes = NUMBER_TYPES.filter((type) => !type.startsWith('float'));
const anyNumbers = fc.constantFrom(...NUMBER_TYPES).chain((type) => {
  const size = { '8': 1, '6': 2, '2': 4, '4': 8 }[type.slice(-1)] as number;
  // Lengths on both sides of the limits between loop and copy, and of a chunk.
  const lengths = fc.oneof(fc.nat(60), fc.integer({ min: 1000, max: 2100 }));
  return fc.tuple(lengths, fc.nat(), fc.nat(2)).map(([length, start, shrink]) => {
    const bytes = new Uint8Array(length * size);
    // Random bits make mostly huge floats; a shift brings some of them near the edges of the integers.
    let state = start + 1;
    for (let i = 0; i < bytes.length; i++) {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      bytes[i] = state >>> 24;
    }
    const array = numberArray(type, length);
    unpackNumbers(bytes, 0, length, type, array, 0);
    if (shrink > 0 && (array instanceof Float64Array || array instanceof Float32Array)) {
      for (let i = 0; i < length; i++) array[i] = Math.sign(array[i] as number) * Math.abs(array[i] as number) ** 0.2;
    }
    return array;
  });
});

describe('conversion', () => {
  test('to whole numbers saturates and cuts toward zero, for every pair of types, at any place', () => {
    fc.assert(
      fc.property(anyNumbers, fc.constantFrom(...wholeTypes), fc.boolean(), fc.nat(3), (source, to, big, skip) => {
        const type: DType = big ? T.bigEndian(to) : to;
        const at = Math.min(skip, source.length);
        const count = source.length - at;
        const bytes = new Uint8Array(count * 8 + 3);
        packNumbers(source, at, count, type, bytes, 3);
        const back = numberArray(type, count + 1);
        unpackNumbers(bytes, 3, count, type, back, 1);
        for (let i = 0; i < count; i++) {
          const expected = saturated(source[at + i] as number | bigint, to);
          if (BigInt(back[i + 1] as number | bigint) !== expected) {
            expect.unreachable(`${source[at + i]} as ${to}: ${back[i + 1]}, expected ${expected}`);
          }
        }
      }),
      runs('saturation', 5000),
    );
  });

  test('gives the same for a typed array and a plain one', () => {
    fc.assert(
      fc.property(anyNumbers, fc.constantFrom(...NUMBER_TYPES), (source, to) => {
        const one = new Uint8Array(source.length * 8);
        const two = new Uint8Array(source.length * 8);
        packNumbers(source, 0, source.length, to, one, 0);
        packNumbers(Array.from(source as ArrayLike<number | bigint>), 0, source.length, to, two, 0);
        const [first, second] = [valuesOf(one, to, source.length), valuesOf(two, to, source.length)];
        // A NaN may have any payload, so values are compared and not bytes.
        const differing = first.findIndex((value, i) => !Object.is(value, second[i]));
        expect(differing, `${source[differing]} as ${to}`).toBe(-1);
      }),
      runs('plain arrays', 3000),
    );
  });

  test('to the same type copies every bit, payloads of NaN too', () => {
    for (const count of [3, 500]) {
      const bits = new Uint32Array(count).fill(0x7fa00001);
      const out = new Uint8Array(count * 4);
      packNumbers(new Float32Array(bits.buffer), 0, count, 'float32', out, 0);
      expect(new Uint32Array(out.buffer)).toEqual(bits);
    }
  });

  test('keeps to its part of the buffers', () => {
    const out = new Uint8Array(8).fill(9);
    packNumbers([1, 2, 3, 4], 1, 2, T.bigEndian('int16'), out, 3);
    expect(Array.from(out)).toEqual([9, 9, 9, 0, 2, 0, 3, 9]);
    expect(() => packNumbers([1], 0, 2, 'int8', out, 0)).toThrow(expect.objectContaining({ code: 'SHAPE' }));
    expect(() => packNumbers([1], 0, 1, 'int32', out, 6)).toThrow(expect.objectContaining({ code: 'SHAPE' }));
    expect(() => unpackNumbers(out, 6, 1, 'int32', new Int8Array(1), 0)).toThrow(
      expect.objectContaining({ code: 'SHAPE' }),
    );
  });

  test('reads numbers of unusual size into any array', () => {
    const type = { class: 'integer', size: 3, signed: true, order: 'big', bitOffset: 0, precision: 24 } as FullType;
    const target = new Int8Array(3);
    unpackNumbers(Uint8Array.of(0, 0, 5, 255, 255, 255, 1, 0, 0), 0, 3, type, target, 0);
    expect(target).toEqual(Int8Array.of(5, -1, 127));
  });

  test('refuses what is not a number', () => {
    const bad = expect.objectContaining({ code: 'DTYPE' });
    expect(() => packNumbers(['1'] as unknown as number[], 0, 1, 'int8', new Uint8Array(1), 0)).toThrow(bad);
    expect(() => packNumbers([1], 0, 1, T.string(), new Uint8Array(16), 0)).toThrow(bad);
    expect(() => unpackNumbers(new Uint8Array(1), 0, 1, 'int8', [0] as unknown as TypedArray, 0)).toThrow(bad);
  });
});

function valuesOf(bytes: Uint8Array, type: NumberType, count: number): TypedArray {
  const values = numberArray(type, count);
  unpackNumbers(bytes, 0, count, type, values, 0);
  return values;
}

test('typed arrays know their type, from any realm and in any disguise', () => {
  expect(arrayKind(Buffer.alloc(1))).toBe('uint8');
  expect(arrayKind(new Uint8ClampedArray(1))).toBe('uint8');
  expect(arrayKind(new BigInt64Array(1))).toBe('int64');
  for (const other of [[1], new DataView(new ArrayBuffer(1)), 'a', null, new ArrayBuffer(1)]) {
    expect(arrayKind(other)).toBeUndefined();
  }
});
