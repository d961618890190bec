import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UNDEFINED } from '../../../src/hdf5/format/cursor.ts';
import {
  DEFAULT_K,
  encodeSuperblock,
  parseSuperblock,
  readSuperblock,
  SUPERBLOCK_SIZE,
} from '../../../src/hdf5/format/superblock.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, FIXTURES, Fixture, FLIPS, fixtureBytes, hex, runOn } from '../fixture.ts';
import { saySuperblock } from '../say.ts';

const read = (bytes: Uint8Array) => runOn(bytes, readSuperblock());

describe('superblocks of libhdf5', () => {
  test.each(FIXTURES)('%s: every field is what h5debug shows', (name) => {
    const { superblock, expected } = new Fixture(name);
    // From version 2 on the sizes of old B-trees are not in the superblock but in its extension.
    const shown = superblock.version < 2 ? expected.superblock : expected.superblock.replace(/k .*/, 'k 4 16 32');
    expect(saySuperblock(superblock)).toBe(shown);
  });

  test('all versions, sizes of fields and a user block are among them', () => {
    const blocks = FIXTURES.map((name) => new Fixture(name).superblock);
    expect(new Set(blocks.map(({ version }) => version))).toEqual(new Set([0, 1, 2, 3]));
    expect(new Set(blocks.map(({ addressSize }) => addressSize))).toEqual(new Set([2, 4, 8]));
    expect(blocks.some(({ base }) => base === 1024)).toBe(true);
    expect(blocks.some(({ extension }) => extension !== UNDEFINED)).toBe(true);
  });

  test.each(['earliest', 'latest', 'old-group', 'superblock-2'])('%s: the bytes are those in the file', (name) => {
    const { superblock, bytes } = new Fixture(name);
    const size = { 0: 96, 1: 100, 2: 48, 3: 48 }[superblock.version] as number;
    expect(hex(superblock.bytes)).toBe(hex(bytes.subarray(superblock.base, superblock.base + size)));
  });
});

describe('a superblock of h5log', () => {
  test.each(['latest', 'shared', 'chunk-indexes'])('is the one that libhdf5 writes for the same file: %s', (name) => {
    const { superblock, bytes } = new Fixture(name);
    expect(hex(encodeSuperblock(superblock))).toBe(hex(bytes.subarray(0, SUPERBLOCK_SIZE)));
  });

  test('is read as it was written, behind any user block', () => {
    const address = fc.integer({ min: 48, max: 2 ** 40 });
    const fields = fc.record({
      base: fc.constantFrom(0, 512, 2048),
      end: address,
      root: address,
      extension: fc.oneof(fc.constant(UNDEFINED), address),
    });
    fc.assert(
      fc.property(fields, (given) => {
        const parsed = parseSuperblock(encodeSuperblock(given), given.base, given.base + given.end);
        expect(parsed).toMatchObject({ ...given, version: 3, addressSize: 8, lengthSize: 8, flags: 0, k: DEFAULT_K });
      }),
      { seed: seed('superblocks'), numRuns: repeats(2000) },
    );
  });
});

describe('a damaged superblock is refused', () => {
  test.each(['superblock-2', 'latest', 'short-addresses'])('%s: whichever byte of it changes', (name) => {
    const { superblock, bytes } = new Fixture(name);
    for (let at = 0; at < superblock.bytes.length; at++) {
      for (const flip of FLIPS) {
        const changed = bytes.slice();
        changed[superblock.base + at] = (changed[superblock.base + at] as number) ^ flip;
        expectFormat(() => read(changed), `byte ${at} xor ${flip}`);
      }
    }
  });

  test.each(['earliest', 'old-group', 'latest'])('%s: when the file ends early, wherever', (name) => {
    const bytes = fixtureBytes(name);
    for (const length of [0, 7, 8, 9, 20, 47, 48, 90, 95, 96, 100, 500, bytes.length - 1])
      expectFormat(() => read(bytes.slice(0, length)), `${length} bytes`);
  });

  test.each([
    [8, 4, 'a version that nobody knows'],
    [9, 1, 'another version of free space'],
    [10, 1, 'another version of the root entry'],
    [12, 1, 'another version of shared messages'],
    [13, 3, 'addresses of three bytes'],
    [13, 16, 'addresses of sixteen bytes'],
    [14, 0, 'lengths of no bytes'],
    [16, 0, 'leaves of rank 0'],
    [18, 0, 'nodes of rank 0'],
    [47, 0x7f, 'an end of file beyond 2^53'],
    [45, 1, 'an end of file behind the file'],
  ])('version 0, which has no checksum: byte %i is %i, %s', (at, value) => {
    const bytes = fixtureBytes('earliest');
    bytes[at] = value;
    expectFormat(() => read(bytes));
  });
});
