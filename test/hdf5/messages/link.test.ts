import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cursor, UNDEFINED } from '../../../src/hdf5/format/cursor.ts';
import { encodeLinkInfo } from '../../../src/hdf5/messages/encode.ts';
import { encodeLink, GROUP_INFO, type LinkTarget, parseLink, parseLinkInfo } from '../../../src/hdf5/messages/link.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, hex } from '../fixture.ts';
import { sayLink } from '../say.ts';

const parse = (bytes: Uint8Array, addressSize = 8) => parseLink(new Cursor(bytes, 0), addressSize);

/** The groups that keep their links in their headers, with these messages. */
function* groups(
  name: string,
): Iterable<{ path: string; found: Uint8Array[]; links: readonly string[]; addressSize: number }> {
  const fixture = new Fixture(name);
  for (const [path, { links }] of fixture.objects) {
    const found = links === undefined ? [] : fixture.cut(path, MESSAGE.link);
    if (found.length > 0) yield { path, found, links: links as string[], addressSize: fixture.superblock.addressSize };
  }
}

const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

describe('links of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows, and no beginning of one is taken for a whole one', (name) => {
    for (const { path, found, links, addressSize } of groups(name)) {
      const said = found.map((bytes) => {
        const { name: link, order, target } = parse(bytes, addressSize);
        return sayLink(link, order, target);
      });
      expect(said.sort(byName), path).toEqual([...links].sort(byName));
      for (const bytes of found) expectNoTruncation(bytes, (cursor) => parseLink(cursor, addressSize));
    }
  });

  test('hard, soft and external ones, with and without an order, in ASCII and in UTF-8, are among them', () => {
    const kinds = FIXTURES.flatMap((name) =>
      [...groups(name)].flatMap(({ found, addressSize }) =>
        found.map((bytes) => {
          const { target, order } = parse(bytes, addressSize);
          return `${target.kind}${order < 0 ? '' : ' in order'}${(bytes[1] as number) & 16 ? ' UTF-8' : ''}`;
        }),
      ),
    );
    for (const kind of ['hard', 'hard in order', 'soft', 'soft in order', 'external UTF-8'])
      expect(kinds).toContain(kind);
  });

  test('the address of a hard link lies where it is said to', () => {
    const fixture = new Fixture('latest');
    for (const bytes of fixture.cut('/', MESSAGE.link)) {
      const { target, addressAt } = parse(bytes);
      if (target.kind === 'hard') expect(new Cursor(bytes, 0, addressAt).u64()).toBe(target.address);
    }
  });
});

describe('a link of h5log', () => {
  test.each([
    ['latest', '/'],
    ['latest', '/ordered'],
    ['latest', '/layouts'],
    ['headers', '/'],
  ])('has the bytes that libhdf5 writes: %s %s', (name, path) => {
    const fixture = new Fixture(name);
    const found = fixture.cut(path, MESSAGE.link);
    for (const bytes of found) {
      const { name: link, order, target } = parse(bytes);
      expect(hex(encodeLink(link, order, target))).toBe(hex(bytes));
    }
  });

  const address = fc.oneof(fc.constant(UNDEFINED), fc.nat(2 ** 40));
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((name) => !name.includes('\0'));
  const long = fc.constantFrom('x'.repeat(255), 'x'.repeat(256), 'ü'.repeat(128), 'y'.repeat(65535), 'y'.repeat(65536));
  const target: fc.Arbitrary<LinkTarget> = fc.oneof(
    fc.record({ kind: fc.constant('hard' as const), address }),
    fc.record({ kind: fc.constant('soft' as const), path: text }),
    fc.record({ kind: fc.constant('external' as const), file: text, path: text }),
    fc.record({
      kind: fc.constant('user' as const),
      type: fc.integer({ min: 65, max: 255 }),
      data: fc.uint8Array({ maxLength: 20 }),
    }),
  );

  test('is read as it was written', () => {
    const order = fc.oneof(fc.constant(-1), fc.nat(2 ** 40));
    fc.assert(
      fc.property(fc.oneof({ weight: 20, arbitrary: text }, long), order, target, (name, number, to) => {
        const bytes = encodeLink(name, number, to);
        expect(parse(bytes)).toMatchObject({ name, order: number, target: to });
        if (to.kind === 'hard') expect(parse(bytes).addressAt).toBe(bytes.length - 8);
      }),
      { seed: seed('links'), numRuns: repeats(2000) },
    );
  });
});

describe('a link that cannot be is refused', () => {
  test.each([
    ['of version 0', [0, 0, 1, 97, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['of version 2', [2, 0, 1, 97, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['with unknown flags', [1, 0x20, 1, 97, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['without a name', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['with a NUL in its name', [1, 0, 2, 97, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['external, without a path', [1, 8, 64, 1, 97, 3, 0, 0, 98, 99]],
    ['with a creation order of 2^63', [1, 4, 0, 0, 0, 0, 0, 0, 0, 0x80, 1, 97, 0, 0, 0, 0, 0, 0, 0, 0]],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(Uint8Array.from(bytes)));
  });
});

describe('the link info of a group', () => {
  const parseInfo = (bytes: Uint8Array) => parseLinkInfo(new Cursor(bytes, 0), 8);

  test.each([
    ['latest', '/', { tracked: false, indexed: false, nextOrder: 0 }],
    ['latest', '/ordered', { tracked: true, indexed: true, nextOrder: 2 }],
  ])('%s %s: has the bytes that libhdf5 writes', (name, path, info) => {
    const bytes = new Fixture(name).one(path, MESSAGE.linkInfo);
    expect(parseInfo(bytes)).toEqual({ ...info, heap: UNDEFINED, names: UNDEFINED });
    expect(hex(encodeLinkInfo(info))).toBe(hex(bytes));
  });

  test('says where the heap and the tree of names are', () => {
    const fixture = new Fixture('dense-links');
    const info = parseInfo(fixture.one('/g', MESSAGE.linkInfo));
    expect(info).toMatchObject({ tracked: true, indexed: false, nextOrder: 1052 });
    expect(String.fromCharCode(...fixture.bytes.subarray(info.heap, info.heap + 4))).toBe('FRHP');
    expect(String.fromCharCode(...fixture.bytes.subarray(info.names, info.names + 4))).toBe('BTHD');
  });

  test.each(['/', '/ordered'])('%s: no beginning of one is taken for a whole one', (path) => {
    const bytes = new Fixture('latest').one(path, MESSAGE.linkInfo);
    expectNoTruncation(bytes, (cursor) => parseLinkInfo(cursor, 8));
    expectFormat(() => parseInfo(Uint8Array.of(1, ...bytes.subarray(1))), 'version 1');
  });

  test('goes with a group info that is the one of libhdf5', () => {
    expect(hex(GROUP_INFO)).toBe(hex(new Fixture('latest').one('/ordered', MESSAGE.groupInfo)));
  });
});
