import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../src/base/checksum.ts';
import { Cursor } from '../../src/hdf5/format/cursor.ts';
import { SCALAR_SPACE } from '../../src/hdf5/messages/dataspace.ts';
import { openStructure } from '../../src/hdf5/open.ts';
import { setAttribute } from '../../src/hdf5/write/attributes.ts';
import { Edited } from './edited.ts';
import { Fixture, fixtureBytes } from './fixture.ts';

describe('the extension of a superblock', () => {
  test('has the sizes of B-trees that are not the usual ones', () => {
    const fixture = new Fixture('extension');
    const { structure, superblock } = fixture.run(openStructure());
    expect(superblock.extension).toBeGreaterThan(0);
    expect(structure.chunkFanout).toBe(2 * 2);
  });

  test('is kept for the next commit if it says something of use', () => {
    const kept = fixtureExtension('extension');
    expect(kept?.map(({ type }) => type)).toEqual([0x13]);
    // The version, then K of chunks, of groups and of their leaves.
    const body = new Cursor(kept?.[0]?.bytes as Uint8Array, 0);
    expect([body.u8(), body.u16(), body.u16(), body.u16()]).toEqual([0, 2, 2, 1]);
    expect(fixtureExtension('shared')?.map(({ type }) => type)).toEqual([0x0f]);
    expect(fixtureExtension('latest')).toBeUndefined();
  });

  const fixtureExtension = (name: string) => {
    const fixture = new Fixture(name);
    const { extension } = fixture.run(openStructure());
    return extension ? [...extension.firstChunk] : undefined;
  };
});

describe('a file of an old release is opened for writing', () => {
  test.each(['fill_old', 'mergemsg', 'tarrold', 'tcompound'])(
    '%s: flags that say "open" and "consistent" say nothing',
    (name) => {
      const fixture = new Fixture(`releases/${name}`);
      expect(fixture.superblock.flags).toBe(3);
      const edited = Edited.open(fixture.bytes);
      const names = [...edited.structure.root.links.keys()];
      edited.run(setAttribute(edited.structure, edited.structure.root, 'note', 'int32', SCALAR_SPACE, 7));
      const again = edited.reopened();
      expect(again.run(again.structure.attribute(again.structure.root, 'note'))).toBe(7);
      expect([...again.structure.root.links.keys()]).toEqual(names);
    },
  );
});

describe('a file that another program has open, or left so, is not opened for writing', () => {
  test.each([
    ['earliest', 20, 1],
    ['earliest', 20, 4],
    ['superblock-2', 11, 1],
    ['latest', 11, 1],
    ['latest', 11, 3],
    ['latest', 11, 5],
  ])('%s: flags at byte %i are %i', (name, at, flags) => {
    const bytes = fixtureBytes(name);
    const { base, version } = new Fixture(name).superblock;
    bytes[base + at] = flags;
    if (version >= 2) new DataView(bytes.buffer).setUint32(base + 44, lookup3(bytes.slice(base, base + 44)), true);
    expect(new Fixture(name, bytes).superblock.flags).toBe(flags);
    expect(() => Edited.open(bytes)).toThrow(expect.objectContaining({ code: 'LOCKED' }));
  });
});

test('a file with other sizes of addresses is read only', () => {
  expect(() => Edited.open(fixtureBytes('releases/tsizeslheap'))).toThrow(
    expect.objectContaining({ code: 'UNSUPPORTED' }),
  );
});
