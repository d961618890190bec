import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cursor, UNDEFINED } from '../../../src/hdf5/format/cursor.ts';
import { encodeContiguous, encodeLayout } from '../../../src/hdf5/messages/encode.ts';
import { type ChunkIndex, type Layout, parseLayout } from '../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, hex } from '../fixture.ts';
import { sayLayout } from '../say.ts';

const SIZES = { addressSize: 8, lengthSize: 8 };
const parse = (bytes: Uint8Array, sizes = SIZES): Layout => parseLayout(new Cursor(bytes, 0), sizes);

function* layouts(name: string): Iterable<{ path: string; bytes: Uint8Array; layout: string; sizes: typeof SIZES }> {
  const fixture = new Fixture(name);
  const { addressSize, lengthSize } = fixture.superblock;
  for (const [path, { layout }] of fixture.objects) {
    if (layout === undefined) continue;
    yield { path, bytes: fixture.one(path, MESSAGE.layout), layout, sizes: { addressSize, lengthSize } };
  }
}

describe('layouts of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows, and no beginning of one is taken for a whole one', (name) => {
    for (const { path, bytes, layout, sizes } of layouts(name)) {
      expect(sayLayout(parse(bytes, sizes)), path).toBe(layout);
      expectNoTruncation(bytes, (cursor) => parseLayout(cursor, sizes));
    }
  });

  test('of all versions and kinds are among them', () => {
    const kinds = FIXTURES.flatMap((name) =>
      [...layouts(name)].map(({ bytes, sizes }) => `${bytes[0]} ${kindOf(parse(bytes, sizes))}`),
    );
    expect(new Set(kinds)).toEqual(
      new Set([
        '1 contiguous',
        '1 btree1',
        '2 contiguous',
        '3 compact',
        '3 contiguous',
        '3 btree1',
        '4 compact',
        '4 contiguous',
        '4 virtual',
        '4 single',
        '4 implicit',
        '4 fixedArray',
        '4 extensibleArray',
        '4 btree2',
      ]),
    );
  });

  test.each([
    ['single', 'single', null],
    ['single filtered', 'single', { size: 16, mask: 0 }],
    ['single unwritten', 'single', { size: 2 ** 32 - 1, mask: 2 ** 32 - 1 }],
    ['implicit', 'implicit', null],
    ['fixed', 'fixedArray', null],
    ['fixed filtered', 'fixedArray', null],
    ['extensible', 'extensibleArray', null],
    ['extensible filtered', 'extensibleArray', null],
    ['tree', 'btree2', null],
    ['tree filtered', 'btree2', null],
  ])('the chunks of %s are found by an index of kind %s', (path, kind, filtered) => {
    const { index } = parse(new Fixture('chunk-indexes').one(`/${path}`, MESSAGE.layout)) as { index: ChunkIndex };
    expect(index.kind).toBe(kind);
    if (index.kind === 'single') expect(index.filtered).toEqual(filtered);
  });

  // No file with one is at hand: HDF5 1.6.3 brought version 3 soon after compact data. The bytes follow the file format.
  test.each([1, 2])('compact data of version %i has its sizes before it', (version) => {
    const bytes = Uint8Array.of(version, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 2, 3, 4, 5, 6);
    expect(parse(bytes)).toEqual({ kind: 'compact', data: Uint8Array.of(1, 2, 3, 4, 5, 6) });
    expect(expectNoTruncation(bytes, (cursor) => parseLayout(cursor, SIZES))).toBe(bytes.length);
  });
});

const kindOf = (layout: Layout): string => (layout.kind === 'chunked' ? layout.index.kind : layout.kind);

describe('a layout of h5log', () => {
  test.each([
    ...['compact', 'contiguous', 'unwritten', 'scalar', 'chunked', 'filtered', 'grows'].map((path) => [
      'earliest',
      `/layouts/${path}`,
    ]),
    ...['single', 'single filtered', 'implicit', 'fixed', 'fixed filtered', 'extensible', 'tree', 'tree filtered'].map(
      (path) => ['chunk-indexes', `/${path}`],
    ),
    ['virtual', '/boxes'],
  ])('has the bytes that libhdf5 writes: %s %s', (name, path) => {
    const bytes = new Fixture(name as string).one(path as string, MESSAGE.layout);
    const layout = parse(bytes);
    const encoded = encodeLayout(layout);
    // Version 1 headers pad their messages to a multiple of 8 bytes.
    expect(hex(encoded)).toBe(hex(bytes.subarray(0, encoded.length)));
    expect(bytes.length - encoded.length).toBeLessThan(8);
  });

  test('is contiguous in the same bytes, whichever function encodes it', () => {
    expect(encodeContiguous(UNDEFINED, 24)).toEqual(encodeLayout({ kind: 'contiguous', address: UNDEFINED, size: 24 }));
  });

  test('is read as it was written', () => {
    const address = fc.oneof(fc.constant(UNDEFINED), fc.nat(2 ** 40));
    const parameters = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
    const filtered = fc.option(fc.record({ size: fc.nat(2 ** 40), mask: fc.nat(2 ** 32 - 1) }));
    const index: fc.Arbitrary<ChunkIndex> = fc.oneof(
      fc.record({ kind: fc.constantFrom('btree1' as const, 'implicit' as const), address }),
      fc.record({ kind: fc.constant('single' as const), address, filtered }),
      fc.record({ kind: fc.constant('fixedArray' as const), address, pageBits: fc.nat(32) }),
      fc.record({ kind: fc.constant('extensibleArray' as const), address, parameters: parameters(5) }),
      fc.record({ kind: fc.constant('btree2' as const), address, parameters: parameters(6) }),
    );
    const size = fc.oneof(fc.integer({ min: 1, max: 255 }), fc.integer({ min: 256, max: 2 ** 32 - 1 }));
    const layout: fc.Arbitrary<Layout> = fc.oneof(
      fc.record({ kind: fc.constant('compact' as const), data: fc.uint8Array({ maxLength: 100 }) }),
      fc.record({ kind: fc.constant('contiguous' as const), address, size: fc.nat(2 ** 40) }),
      fc.record({ kind: fc.constant('virtual' as const), heap: address, index: fc.nat(2 ** 32 - 1) }),
      fc.record({
        kind: fc.constant('chunked' as const),
        chunk: fc.array(size, { minLength: 1, maxLength: 6 }),
        elementSize: size,
        index,
      }),
    );
    fc.assert(
      fc.property(layout, (given) => {
        expect(parse(encodeLayout(given))).toEqual(given);
      }),
      { seed: seed('layouts'), numRuns: repeats(3000) },
    );
  });
});

describe('a layout that cannot be is refused', () => {
  const zeros = new Array<number>(40).fill(0);
  const ones = new Array<number>(200).fill(1);
  test.each([
    ['of version 0', [0, 1, ...zeros]],
    ['of version 6', [6, 1, ...zeros]],
    ['of an unknown kind', [3, 4, ...zeros]],
    ['virtual, before version 4', [3, 3, ...zeros]],
    ['chunked, without dimensions', [3, 2, 1, ...ones]],
    ['chunked, of 33 dimensions', [3, 2, 34, ...ones]],
    ['with chunks of no size', [3, 2, 2, ...zeros]],
    ['with sizes of no bytes', [4, 2, 0, 2, 0, ...ones]],
    ['with sizes of nine bytes', [4, 2, 0, 2, 9, 1, ...zeros.slice(0, 8), 1, ...zeros.slice(0, 8), 2, ...zeros]],
    ['with an unknown chunk index', [4, 2, 0, 2, 1, 1, 1, 6, ...zeros]],
    ['old, of 34 dimensions', [1, 34, 1, ...ones]],
    ['old, of an unknown kind', [1, 2, 3, ...ones]],
    ['old, chunked, without dimensions', [1, 1, 2, ...ones]],
    ['old, of 2^53 bytes', [1, 3, 1, ...zeros.slice(0, 13), 255, 255, 255, 255, 255, 255, 255, 255, 8, 0, 0, 0]],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(Uint8Array.from(bytes)));
  });
});
