import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { encodeFill } from '../../../src/hdf5/messages/encode.ts';
import { type FillMessage, parseFill, parseOldFill } from '../../../src/hdf5/messages/fill-value.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, hex } from '../fixture.ts';
import { sayFill } from '../say.ts';

const parse = (bytes: Uint8Array): FillMessage => parseFill(new Cursor(bytes, 0));

function* fills(name: string): Iterable<{ path: string; bytes: Uint8Array; fill: string }> {
  const fixture = new Fixture(name);
  for (const [path, { fill, messages }] of fixture.objects) {
    if (fill === undefined || !/0x05: \d+ at \d+(,|$)/.test(messages)) continue;
    yield { path, bytes: fixture.one(path, MESSAGE.fill), fill };
  }
}

describe('fill values of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows', (name) => {
    for (const { path, bytes, fill } of fills(name)) expect(sayFill(parse(bytes)), path).toBe(fill);
  });

  test('of all versions, and of all kinds, are among them', () => {
    const kinds = FIXTURES.flatMap((name) =>
      [...fills(name)].map(({ bytes, fill }) => `${bytes[0]} ${fill.replace(/[0-9a-f]{8,}/, 'value')}`),
    );
    expect(new Set(kinds)).toEqual(
      new Set([
        '1 late default',

        '1 incremental default',
        '2 early default',
        '2 early value',
        '2 late default',
        '2 late undefined',
        '2 late value',
        '2 incremental default',
        '3 early default',
        '3 early value',
        '3 late default',
        '3 late undefined',
        '3 late value',
        '3 incremental default',
        '3 incremental value',
      ]),
    );
  });

  test('the message from before HDF5 1.6 is the value alone', () => {
    const old = new Fixture('releases/fill_old');
    const bytes = old.one('/dset2', MESSAGE.oldFill);
    const fill = parseOldFill(new Cursor(bytes, 0));
    expect(sayFill(fill)).toBe(old.object('/dset2').fill);
    expect(expectNoTruncation(bytes, parseOldFill)).toBe(8);
  });

  test('a file for old readers has both messages, with the same value', () => {
    const fixture = new Fixture('earliest');
    const old = parseOldFill(new Cursor(fixture.one('/layouts/contiguous', MESSAGE.oldFill), 0));
    expect(old.value).toEqual(parse(fixture.one('/layouts/contiguous', MESSAGE.fill)).value);
    expect(old.value).toEqual(Uint8Array.of(7, 0, 0, 0));
  });
});

describe('a fill value of h5log', () => {
  test.each(['contiguous', 'unwritten', 'scalar', 'null', 'undefined fill', 'chunked', 'compact'])(
    'has the bytes that libhdf5 writes: %s',
    (name) => {
      const bytes = new Fixture('latest').one(`/layouts/${name}`, MESSAGE.fill);
      expect(hex(encodeFill(parse(bytes)))).toBe(hex(bytes));
    },
  );

  test('is read as it was written', () => {
    const fill = fc.record<FillMessage>({
      allocation: fc.constantFrom('early', 'late', 'incremental'),
      value: fc.oneof(fc.constantFrom('default', 'undefined'), fc.uint8Array({ minLength: 1, maxLength: 40 })),
    });
    fc.assert(
      fc.property(fill, (given) => {
        expect(parse(encodeFill(given))).toEqual(given);
      }),
      { seed: seed('fill values'), numRuns: repeats(2000) },
    );
  });

  test('does not change with the bytes it was read from', () => {
    const bytes = encodeFill({ allocation: 'late', value: Uint8Array.of(1, 2) });
    const { value } = parse(bytes);
    bytes.fill(0);
    expect(value).toEqual(Uint8Array.of(1, 2));
  });
});

describe('a damaged fill value is refused', () => {
  test('shorter than it says', () => {
    const bytes = new Fixture('latest').one('/layouts/contiguous', MESSAGE.fill);
    expect(expectNoTruncation(bytes, parseFill)).toBe(bytes.length);
  });

  test.each([
    ['of version 0', [0, 2, 2, 0]],
    ['of version 4', [4, 0x0a]],
    ['without flags', [3]],
    ['of 2^32 - 1 bytes', [3, 0x2a, 0xff, 0xff, 0xff, 0xff]],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(Uint8Array.from(bytes)));
  });
});
