import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../../src/base/checksum.ts';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { Budget } from '../../../src/hdf5/format/file-bytes.ts';
import { parseAttributeInfo } from '../../../src/hdf5/messages/attribute.ts';
import { parseLinkInfo } from '../../../src/hdf5/messages/link.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { readBtree2 } from '../../../src/hdf5/read/btree.ts';
import { expectFormat, Fixture, FLIPS } from '../fixture.ts';

const LINK_NAMES = 5;
const ATTRIBUTE_NAMES = 8;

/** The trees of names: every record begins or ends with the hash of a name. */
const TREES = [
  ['dense-links', '/g', LINK_NAMES, 2],
  ['dense-attributes', '/g', ATTRIBUTE_NAMES, 1],
  ['short-addresses', '/g', LINK_NAMES, 0],
  ['short-addresses', '/h', ATTRIBUTE_NAMES, 0],
  ['shared', '/dense', ATTRIBUTE_NAMES, 0],
] as const;

function addressOf(fixture: Fixture, path: string, type: number): number {
  const { addressSize } = fixture.superblock;
  return type === LINK_NAMES
    ? parseLinkInfo(new Cursor(fixture.one(path, MESSAGE.linkInfo), 0), addressSize).names
    : parseAttributeInfo(new Cursor(fixture.one(path, MESSAGE.attributeInfo), 0), addressSize).names;
}

function read(
  fixture: Fixture,
  address: number,
  types: readonly number[],
  budget = new Budget(fixture.file),
): Cursor[] {
  return fixture.run(readBtree2(fixture.file, address, types, budget));
}

/** The names of an object's links or attributes, as h5py lists them. */
function namesOf(fixture: Fixture, path: string, type: number): string[] {
  const { links, attributes } = fixture.object(path);
  if (type === ATTRIBUTE_NAMES) return (attributes as string[]).map((line) => line.replace(/( #\d+)?: .*$/, ''));
  const lines = typeof links === 'string' ? links.split('; ') : (links as string[]);
  return lines.map((line) => line.replace(/ (->|at) .*$/, ''));
}

describe('version 2 B-trees of libhdf5', () => {
  test.each(TREES)(
    '%s %s: a record for the name of every link or attribute, in the order of hashes',
    (name, path, type) => {
      const fixture = new Fixture(name);
      const hashes = read(fixture, addressOf(fixture, path, type), [type]).map((record) => {
        if (type === ATTRIBUTE_NAMES) record.skip(8 + 1 + 4);
        return record.u32();
      });
      const encoder = new TextEncoder();
      const meant = namesOf(fixture, path, type).map((each) => lookup3(encoder.encode(each)));
      expect(hashes).toEqual(meant.sort((a, b) => a - b));
    },
  );

  test.each(TREES)('%s %s: is a tree of the depth that is meant to be tested', (name, path, type, depth) => {
    const fixture = new Fixture(name);
    const header = new DataView(fixture.bytes.buffer, addressOf(fixture, path, type));
    expect(header.getUint16(12, true)).toBe(depth);
  });

  test('records end where the next one begins', () => {
    const fixture = new Fixture('dense-links');
    for (const record of read(fixture, addressOf(fixture, '/g', LINK_NAMES), [LINK_NAMES]))
      expect(record.left).toBe(4 + 7);
  });
});

describe('a damaged version 2 B-tree is refused', () => {
  const fixture = new Fixture('dense-links');
  const address = addressOf(fixture, '/g', LINK_NAMES);

  test('whichever byte of its header changes', () => {
    for (let at = address; at < address + 38; at++) {
      for (const flip of FLIPS) {
        const damaged = fixture.damaged((bytes) => {
          bytes[at] = (bytes[at] as number) ^ flip;
        });
        expectFormat(() => read(damaged, address, [LINK_NAMES]), `byte ${at - address} xor ${flip}`);
      }
    }
  });

  test.each(['BTIN', 'BTLF'])('in any node %s: its signature, its records, its checksum', (signature) => {
    const nodes = positions(fixture.bytes, signature).filter((at) => at > address);
    expect(nodes.length).toBeGreaterThan(1);
    for (const node of nodes) {
      for (const at of [node, node + 4, node + 5, node + 6, node + 20]) {
        const damaged = fixture.damaged((bytes) => {
          bytes[at] = (bytes[at] as number) ^ 0x40;
        });
        expectFormat(() => read(damaged, address, [LINK_NAMES]), `byte ${at - node} of the node at ${node}`);
      }
    }
  });

  test('of another type than is asked for', () => {
    expectFormat(() => read(fixture, address, [ATTRIBUTE_NAMES]));
    expect(read(fixture, address, [ATTRIBUTE_NAMES, LINK_NAMES]).length).toBeGreaterThan(1000);
  });

  test('that lies beyond the end of the file, or nowhere', () => {
    for (const nowhere of [-1, fixture.file.end - 10, 2 ** 50])
      expectFormat(() => read(fixture, nowhere, [LINK_NAMES]), `at ${nowhere}`);
  });

  test('whose nodes are read so often that they would fill the file', () => {
    const budget = new Budget(fixture.file);
    expectFormat(() => {
      for (let i = 0; i < 5; i++) read(fixture, address, [LINK_NAMES], budget);
    });
  });
});

function positions(bytes: Uint8Array, signature: string): number[] {
  const letters = [...new TextEncoder().encode(signature)];
  return [...bytes.keys()].filter((at) => letters.every((letter, i) => bytes[at + i] === letter));
}
