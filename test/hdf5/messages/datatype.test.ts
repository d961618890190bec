import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DType, type EnumType, type IntegerType, publicType } from '../../../src/dtype/model.ts';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { parseDatatype } from '../../../src/hdf5/messages/datatype.ts';
import { encodeDatatype } from '../../../src/hdf5/messages/encode.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { anyType } from '../../dtype/generate.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, fixtureBytes, hex } from '../fixture.ts';
import { sayType } from '../say.ts';

const parse = (bytes: Uint8Array): DType => publicType(parseDatatype(new Cursor(bytes, 0)));

/** Committed datatypes, and those of datasets that have one of their own. */
function* datatypes(name: string): Iterable<{ path: string; bytes: Uint8Array; type: string }> {
  const fixture = new Fixture(name);
  for (const [path, { type, messages }] of fixture.objects) {
    if (type === undefined || /0x03: \d+ at \d+ shared/.test(messages)) continue;
    yield { path, bytes: fixture.one(path, MESSAGE.datatype), type };
  }
}

describe('datatypes of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows, and no beginning of one is taken for a whole one', (name) => {
    for (const { path, bytes, type } of datatypes(name)) {
      expect(sayType(parse(bytes)), path).toBe(type);
      expectNoTruncation(bytes, parseDatatype);
    }
  });

  test('of every class and version are among them', () => {
    const kinds = FIXTURES.flatMap((name) =>
      [...datatypes(name)].map(({ bytes }) => `${(bytes[0] as number) >> 4}.${(bytes[0] as number) & 15}`),
    );
    const plain = [0, 1, 2, 3, 4, 5, 7].map((kind) => `1.${kind}`);
    const nested = ['1.6', '2.6', '3.6', '1.8', '3.8', '1.9', '2.10', '3.10'];
    expect(new Set(kinds)).toEqual(new Set([...plain, ...nested]));
  });

  test('references of HDF5 1.12 are known as such', () => {
    const bytes = fixtureBytes('releases/bounds_ref_v112_v112');
    // Version 4 of class 7; then the kind of reference, and the version of that: 1.
    const found = [...bytes.keys()].filter((at) => bytes[at] === 0x47 && (bytes[at + 1] as number) >> 4 === 1);
    expect(found.length).toBeGreaterThan(0);
    for (const at of found) expect(sayType(parse(bytes.subarray(at, at + 8)))).toBe('reference other');
  });
});

// No file with one is at hand: complex numbers came with HDF5 2.0. The bytes follow its file format.
test('a complex number is a compound of its two parts', () => {
  const f4 = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
  const bytes = Uint8Array.of(0x5b, 1, 0, 0, 8, 0, 0, 0, ...f4);
  expect(sayType(parse(bytes))).toBe('compound 8 {r at 0: f4 little; i at 4: f4 little}');
  expect(expectNoTruncation(bytes, parseDatatype)).toBe(bytes.length);
});

describe('a datatype of h5log', () => {
  const earliest = new Fixture('earliest');
  const latest = new Fixture('latest');
  const paths = earliest.objects.flatMap(([path]) => (path.startsWith('/types/') ? [path] : []));

  test.each(paths)('has the bytes that libhdf5 writes: %s', (path) => {
    if (path === '/types/time') return; // kept as opaque bytes: never written as what it was
    const nested = /compound|enum|sequence|array|variable/.test(path);
    const bytes = (nested ? latest : earliest).one(path, MESSAGE.datatype);
    const encoded = encodeDatatype(parse(bytes));
    expect(hex(withPlainVersions(encoded, bytes))).toBe(hex(bytes.subarray(0, encoded.length)));
    expect(bytes.length - encoded.length).toBeLessThan(8);
  });

  test('is read as it was written', () => {
    fc.assert(
      fc.property(anyType, (given) => {
        // The byte order of a single byte is not kept.
        const meant = sayType(given).replace(/\b([iu]1) big/g, '$1 little');
        expect(sayType(parse(encodeDatatype(given)))).toBe(meant);
      }),
      { seed: seed('datatypes'), numRuns: repeats(5000) },
    );
  });

  test('of the newer references cannot be written', () => {
    const type = { class: 'reference', size: 64, to: 'other' } as DType;
    expect(() => encodeDatatype(type)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});

/** Our bytes as libhdf5 would write them: only compounds, enums and arrays depend on the version, others keep version 1. */
function withPlainVersions(ours: Uint8Array, theirs: Uint8Array): Uint8Array {
  const isPlain = (first: number): boolean => first >> 4 === 1 && ![6, 8, 10].includes(first & 15);
  return ours.map((byte, at) =>
    isPlain(theirs[at] as number) && byte === (theirs[at] as number) + 0x20 ? byte - 0x20 : byte,
  );
}

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
  members: Object.fromEntries(values.map((value, i) => [`m${i}`, value])),
  entries: values.map((value, i) => [`m${i}`, value] as const),
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

describe('a datatype that cannot be is refused', () => {
  const i4 = [0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];
  const f4 = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
  const changed = (bytes: readonly number[], at: number, value: number) =>
    bytes.map((byte, i) => (i === at ? value : byte));
  const name = [97, 0];

  test('but the ones that are changed here can be', () => {
    expect(parse(Uint8Array.from(i4))).toBe('int32');
    expect(parse(Uint8Array.from(f4))).toBe('float32');
  });

  test.each([
    ['of version 0', changed(i4, 0, 0x00)],
    ['of version 6', changed(i4, 0, 0x60)],
    ['of class 12', changed(i4, 0, 0x1c)],
    ['of no bytes', changed(i4, 4, 0)],
    ['an integer of no bits', changed(i4, 10, 0)],
    ['an integer of more bits than it has', changed(i4, 10, 33)],
    ['a float whose sign lies outside', changed(f4, 2, 32)],
    ['a float whose exponent lies outside', changed(f4, 12, 25)],
    ['a float without an exponent', changed(f4, 13, 0)],
    ['a float whose mantissa lies outside', changed(f4, 15, 33)],
    ['a string with unknown padding', [0x13, 3, 0, 0, 4, 0, 0, 0]],
    ['a string of an unknown character set', [0x13, 0x20, 0, 0, 4, 0, 0, 0]],
    ['a compound without members', [0x36, 0, 0, 0, 4, 0, 0, 0]],
    ['a compound with a member beyond its end', [0x36, 1, 0, 0, 4, 0, 0, 0, ...name, 1, ...i4]],
    ['a compound whose members overlap', [0x36, 2, 0, 0, 8, 0, 0, 0, ...name, 0, ...i4, 98, 0, 3, ...i4]],
    [
      'an old compound with a member of five dimensions',
      [0x16, 1, 0, 0, 4, 0, 0, 0, ...name, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, ...new Array(27).fill(1), ...i4],
    ],
    ['an enum over a float', [0x38, 0, 0, 0, 4, 0, 0, 0, ...f4]],
    ['an enum of another size than its integer', [0x38, 0, 0, 0, 2, 0, 0, 0, ...i4]],
    ['an array without dimensions', [0x3a, 0, 0, 0, 4, 0, 0, 0, 0, ...i4]],
    ['an array of 33 dimensions', [0x3a, 0, 0, 0, 4, 0, 0, 0, 33, ...new Array(33 * 4).fill(1), ...i4]],
    ['an array that does not fit its shape', [0x3a, 0, 0, 0, 8, 0, 0, 0, 1, 3, 0, 0, 0, ...i4]],
    ['nested without end', new Array(100).fill([0x39, 0, 0, 0, 16, 0, 0, 0]).flat()],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(Uint8Array.from(bytes)));
  });

  test('numbers of a VAX are not supported, which is another thing', () => {
    const vax = changed(f4, 1, 0x61);
    expect(() => parse(Uint8Array.from(vax))).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});
