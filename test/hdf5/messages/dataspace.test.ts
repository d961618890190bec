import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import {
  type Dataspace,
  elementCount,
  NULL_SPACE,
  parseDataspace,
  SCALAR_SPACE,
  simpleSpace,
} from '../../../src/hdf5/messages/dataspace.ts';
import { encodeDataspace } from '../../../src/hdf5/messages/encode.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, fixtureBytes, hex } from '../fixture.ts';
import { saySpace } from '../say.ts';

const parse = (bytes: Uint8Array, lengthSize = 8): Dataspace => parseDataspace(new Cursor(bytes, 0), lengthSize);

/** Every dataset whose dataspace lies in its own header. */
function* dataspaces(name: string): Iterable<{ path: string; bytes: Uint8Array; space: string; lengthSize: number }> {
  const fixture = new Fixture(name);
  for (const [path, { space, messages }] of fixture.objects) {
    if (space === undefined || /0x01: \d+ at \d+ shared/.test(messages)) continue;
    yield { path, bytes: fixture.one(path, MESSAGE.dataspace), space, lengthSize: fixture.superblock.lengthSize };
  }
}

describe('dataspaces of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows, and no beginning of one is taken for a whole one', (name) => {
    for (const { path, bytes, space, lengthSize } of dataspaces(name)) {
      expect(saySpace(parse(bytes, lengthSize)), path).toBe(space);
      expectNoTruncation(bytes, (cursor) => parseDataspace(cursor, lengthSize));
    }
  });

  test('of both versions, and of every kind, are among them', () => {
    const kinds = FIXTURES.flatMap((name) =>
      [...dataspaces(name)].map(({ bytes, space }) => `${bytes[0]} ${space.replace(/\d+(,\d+)*/g, 'n')}`),
    );
    expect(new Set(kinds)).toEqual(
      new Set([
        '1 scalar',
        '2 scalar',
        '2 null',
        '1 [n]',
        '2 [n]',
        '1 [n] up to [n]',
        '2 [n] up to [n]',
        '1 [n] up to [*]',
        '2 [n] up to [*]',
        '1 [n] up to [*,n]',
        '2 [n] up to [*,n]',
        '1 [n] up to [*,*]',
        '2 [n] up to [*,*]',
        '2 [n] up to [n,*]',
      ]),
    );
  });
});

describe('a dataspace of h5log', () => {
  test.each(['/layouts/scalar', '/layouts/null', '/layouts/chunked', '/layouts/filtered', '/layouts/grows'])(
    'has the bytes that libhdf5 writes: %s',
    (path) => {
      const bytes = new Fixture('latest').one(path, MESSAGE.dataspace);
      expect(hex(encodeDataspace(parse(bytes)))).toBe(hex(bytes));
    },
  );

  test('of a fixed size leaves out the maximum, which libhdf5 repeats', () => {
    const theirs = new Fixture('latest').one('/layouts/contiguous', MESSAGE.dataspace);
    const ours = encodeDataspace(simpleSpace([2, 3]));
    expect(theirs).toHaveLength(4 + 4 * 8);
    expect(ours).toHaveLength(4 + 2 * 8);
    expect(parse(ours)).toEqual(parse(theirs));
  });

  test('is read as it was written', () => {
    const dimension = fc
      .tuple(fc.nat(1000), fc.option(fc.nat(1000)))
      .map(([size, more]) => ({ size, most: more === null ? null : size + more }));
    const simple = fc.array(dimension, { minLength: 1, maxLength: 5 }).map((dims) =>
      simpleSpace(
        dims.map(({ size }) => size),
        dims.map(({ most }) => most),
      ),
    );
    fc.assert(
      fc.property(fc.oneof(simple, fc.constant(NULL_SPACE), fc.constant(SCALAR_SPACE)), (space) => {
        expect(parse(encodeDataspace(space))).toEqual(space);
      }),
      { seed: seed('dataspaces'), numRuns: repeats(2000) },
    );
  });

  test.each([
    [NULL_SPACE, 0],
    [SCALAR_SPACE, 1],
    [simpleSpace([3, 4]), 12],
    [simpleSpace([3, 0], [3, null]), 0],
  ])('%j has %i elements', (space, count) => {
    expect(elementCount(space)).toBe(count);
  });
});

describe('a dataspace that cannot be is refused', () => {
  test('more than 32 dimensions: a file of the test suite of libhdf5 has 33', () => {
    const bytes = fixtureBytes('releases/th5s');
    const message = bytes.subarray(1584, 1584 + 272);
    expect([...message.subarray(0, 2)]).toEqual([1, 33]);
    expectFormat(() => parse(message));
  });

  const vector = [1, 0, 0, 0, 0, 0, 0, 0];
  test.each([
    ['of version 0', [0, 1, 0, 0, 0, 0, 0, 0, ...vector]],
    ['of version 3', [3, 1, 0, 1, ...vector]],
    ['of an unknown kind', [2, 1, 0, 3, ...vector]],
    ['scalar, with a dimension', [2, 1, 0, 0, ...vector]],
    ['null, with a dimension', [2, 1, 0, 2, ...vector]],
    ['larger than its maximum', [2, 1, 1, 1, 5, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]],
    ['of 2^53 elements', [2, 2, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 32, 0, 0, 0, 0, 0, 0, 0]],
    ['with a dimension of 2^53', [2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 32, 0]],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(Uint8Array.from(bytes)));
  });
});
