import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { encodeFilters } from '../../../src/hdf5/messages/encode.ts';
import { type FilterEntry, parseFilters } from '../../../src/hdf5/messages/filter-pipeline.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, hex } from '../fixture.ts';
import { sayFilter } from '../say.ts';

const parse = (bytes: Uint8Array): FilterEntry[] => parseFilters(new Cursor(bytes, 0));

function* pipelines(name: string): Iterable<{ path: string; bytes: Uint8Array; filters: readonly string[] }> {
  const fixture = new Fixture(name);
  for (const [path, { filters, messages }] of fixture.objects) {
    if (!filters || /0x0b: \d+ at \d+ shared/.test(messages)) continue;
    yield { path, bytes: fixture.one(path, MESSAGE.filters), filters };
  }
}

describe('filter pipelines of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows, and no beginning of one is taken for a whole one', (name) => {
    for (const { path, bytes, filters } of pipelines(name)) {
      // Version 2 does not store the names of libhdf5's own filters; h5py knows them all the same.
      const shown = bytes[0] === 1 ? filters : filters.map((line) => line.replace(/^(\d{1,2}) \w+/, '$1 '));
      expect(parse(bytes).map(sayFilter), path).toEqual(shown);
      expectNoTruncation(bytes, parseFilters);
    }
  });

  test('of both versions, with and without a name, with an odd and an even number of values, are among them', () => {
    const found = FIXTURES.flatMap((name) =>
      [...pipelines(name)].flatMap(({ bytes }) =>
        parse(bytes).map(({ id, values }) => `${bytes[0]} ${id} ${values.length}`),
      ),
    );
    for (const version of [1, 2])
      for (const kind of ['1 1', '2 1', '3 0', '6 20', '30000 3']) expect(found).toContain(`${version} ${kind}`);
  });
});

describe('a filter pipeline of h5log', () => {
  test.each(['filtered', 'lossy', 'unknown filter'])('has the bytes that libhdf5 writes: %s', (name) => {
    const bytes = new Fixture('latest').one(`/layouts/${name}`, MESSAGE.filters);
    expect(hex(encodeFilters(parse(bytes)))).toBe(hex(bytes));
  });

  test('is read as it was written', () => {
    const values = fc.array(fc.nat(2 ** 32 - 1), { maxLength: 5 });
    const own = fc.record({ id: fc.integer({ min: 1, max: 255 }), name: fc.constant(''), flags: fc.nat(1), values });
    const name = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !text.includes('\0'));
    const other = fc.record({ id: fc.integer({ min: 256, max: 65535 }), name, flags: fc.nat(1), values });
    fc.assert(
      fc.property(fc.array(fc.oneof(own, other), { maxLength: 32 }), (given) => {
        expect(parse(encodeFilters(given))).toEqual(given);
      }),
      { seed: seed('filter pipelines'), numRuns: repeats(1000) },
    );
  });
});

describe('a damaged filter pipeline is refused', () => {
  test.each([
    ['of version 0', [0, 0]],
    ['of version 3', [3, 0]],
    ['of 33 filters', [2, 33]],
    ['with a name longer than the message', [2, 1, 0, 1, 0xff, 0xff, 0, 0, 0, 0]],
    ['with more values than the message holds', [2, 1, 1, 0, 0, 0, 0xff, 0xff, 6, 0, 0, 0]],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(Uint8Array.from(bytes)));
  });
});
