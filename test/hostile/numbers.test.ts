import { describe, expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { isH5LogError } from '../../src/base/errors.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import {
  attribute,
  Craft,
  continuation,
  GROUP,
  hard,
  header,
  INT32,
  message,
  pack,
  rootWith,
  SCALAR,
  simple,
} from './craft.ts';
import { Walk } from './walk.ts';

const open = (bytes: Uint8Array): File => File.openSync(memoryStorage(bytes));
const EXACT = 2n ** 53n - 1n;
const BEYOND = [2n ** 53n, 2n ** 60n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 2n];
const ALL_ONES = 2n ** 64n - 1n;

/** The codes and offsets of everything that goes wrong in a file. */
function failures(bytes: Uint8Array): unknown[] {
  try {
    return new Walk().of(open(bytes)).errors;
  } catch (error) {
    return [error];
  }
}

/** A file with one dataset of these messages. */
function datasetOf(...messages: Uint8Array[]): Uint8Array {
  const craft = new Craft();
  const dataset = craft.put(header(...messages));
  return craft.done(craft.put(header(GROUP, hard('d', dataset))));
}

const space = (size: bigint, most?: bigint): Uint8Array =>
  message(
    1,
    pack(
      [1, 2],
      [1, 1],
      [1, most === undefined ? 0 : 1],
      [1, 1],
      [8, size],
      ...(most === undefined ? [] : [[8, most] as const]),
    ),
  );
const TYPE = message(3, INT32);
const contiguous = (address: bigint, size: bigint): Uint8Array =>
  message(8, pack([1, 3], [1, 1], [8, address], [8, size]));

/** [what, a file with the number in that place, whether all ones mean something there] */
const PLACES: readonly (readonly [string, (value: bigint) => Uint8Array, boolean])[] = [
  ['the size of a dimension', (value) => datasetOf(space(value), TYPE), false],
  ['the size of an attribute', (value) => rootWith(attribute('a', INT32, simple(value), new Uint8Array(4))), false],
  ['the address of data', (value) => datasetOf(space(1n), TYPE, contiguous(value, 4n)), true],
  ['the length of data', (value) => datasetOf(space(1n), TYPE, contiguous(ALL_ONES, value)), false],
  [
    'the size of a chunk',
    (value) =>
      datasetOf(
        space(1n),
        TYPE,
        message(8, pack([1, 4], [1, 2], [1, 0], [1, 2], [1, 8], [8, value], [8, 4], [1, 1], [8, -1])),
      ),
    false,
  ],
  [
    'the address of chunks',
    (value) => datasetOf(space(1n), TYPE, message(8, pack([1, 3], [1, 2], [1, 2], [8, value], [4, 1], [4, 4]))),
    true,
  ],
  ['the address of an object', (value) => rootWith(message(6, pack([1, 1], [1, 0], [1, 1], 'a', [8, value]))), false],
  [
    'the creation order of a link',
    (value) => rootWith(message(6, pack([1, 1], [1, 12], [1, 1], [8, value], [1, 1], 'a', [2, 1], 'b'))),
    false,
  ],
  ['the next creation order', (value) => rootWithInfo(pack([1, 0], [1, 1], [8, value], [8, -1], [8, -1])), false],
  ['the heap of a group', (value) => rootWithInfo(pack([1, 0], [1, 0], [8, value], [8, 0])), true],
  ['the heap of attributes', (value) => rootWith(message(0x15, pack([1, 0], [1, 0], [8, value], [8, 0]))), true],
  ['the length of a continuation', (value) => rootWith(message(0x10, pack([8, 48], [8, value]))), false],
  ['the address of a continuation', (value) => rootWith(message(0x10, pack([8, value], [8, 24]))), false],
  [
    'the collection of a text',
    (value) =>
      rootWith(attribute('a', pack([4, 0x39 | (1 << 8)], [4, 16], INT32), SCALAR, pack([4, 1], [8, value], [4, 1]))),
    false,
  ],
];

function rootWithInfo(info: Uint8Array): Uint8Array {
  const craft = new Craft();
  return craft.done(craft.put(header(message(2, info))));
}

describe('addresses, lengths and counts beyond 2^53 - 1', () => {
  test.each(PLACES)('%s is refused', (_what, make) => {
    for (const value of BEYOND) {
      const found = failures(make(value));
      expect(found.length, `${value}`).toBeGreaterThan(0);
      for (const error of found) {
        expect(isH5LogError(error, 'FORMAT'), String(error)).toBe(true);
        expect(error).toHaveProperty('offset', expect.any(Number));
      }
    }
  });

  test.each(PLACES)('%s, all ones', (_what, make, hasMeaning) => {
    const found = failures(make(ALL_ONES));
    expect(
      found.every((error) => isH5LogError(error, 'FORMAT')),
      String(found),
    ).toBe(true);
    expect(found.length === 0).toBe(hasMeaning);
  });

  test('a dimension of 2^53 - 1 is exact', () => {
    const { shape, maxShape } = open(datasetOf(space(EXACT, ALL_ONES), TYPE)).dataset('d');
    expect([shape, maxShape]).toEqual([[Number(EXACT)], [null]]);
  });

  test('a cut continuation at 2^53 - 1 is beyond the file', () => {
    expect(failures(rootWith(continuation(Number(EXACT), 8)))).toEqual([expect.objectContaining({ code: 'FORMAT' })]);
  });
});

describe('values keep all 64 bits', () => {
  const U64 = pack([4, 0x10], [4, 8], [2, 0], [2, 64]);
  const I64 = pack([4, 0x10 | (8 << 8)], [4, 8], [2, 0], [2, 64]);
  const values = [0n, 1n, EXACT, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, ALL_ONES - 1n, ALL_ONES];

  test('of an attribute', () => {
    const numbers = pack(...values.map((value) => [8, value] as const));
    const { attributes } = open(
      rootWith(
        attribute('u', U64, simple(values.length), numbers),
        attribute('i', I64, simple(values.length), numbers),
        attribute('one', U64, SCALAR, pack([8, ALL_ONES])),
      ),
    );
    expect(attributes.get('u')).toEqual(BigUint64Array.from(values));
    expect(attributes.get('i')).toEqual(BigInt64Array.from(values));
    expect(attributes.get('one')).toBe(ALL_ONES);
  });

  test('of a fill value', () => {
    for (const value of values) {
      const fill = message(5, pack([1, 3], [1, 0x2a], [4, 8], [8, value]));
      expect(open(datasetOf(space(1n), message(3, U64), fill)).dataset('d').fill).toBe(value);
    }
  });

  test('of an enum', () => {
    const type = pack([4, 0x38 | (2 << 8)], [4, 8], U64, 'a\0b\0', [8, EXACT + 2n], [8, ALL_ONES]);
    const { attributes } = open(rootWith(attribute('e', type, SCALAR, pack([8, ALL_ONES]))));
    expect(attributes.get('e')).toBe(ALL_ONES);
    expect(attributes.describe('e')?.dtype).toMatchObject({
      members: { a: EXACT + 2n, b: ALL_ONES },
    });
  });
});
