import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { Budget } from '../../../src/hdf5/format/file-bytes.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { walkBtree1 } from '../../../src/hdf5/read/btree.ts';
import { readSymbolTable } from '../../../src/hdf5/read/symbol-table.ts';
import { expectFormat, FIXTURES, Fixture } from '../fixture.ts';
import { sayLink } from '../say.ts';

/** The address of a group's B-tree and of its local heap: all that its message says. */
function places(fixture: Fixture, path: string): [btree: number, heap: number] {
  const message = new Cursor(fixture.one(path, MESSAGE.symbolTable), 0);
  const { addressSize } = fixture.superblock;
  return [message.address(addressSize), message.address(addressSize)];
}

function linesOf(fixture: Fixture, path: string, [btree, heap] = places(fixture, path)): string[] {
  const { file } = fixture;
  const links = fixture.run(readSymbolTable(file, btree, heap, new Budget(file)));
  return links.map(({ name, target }) => sayLink(name, -1, target));
}

const oldGroups = FIXTURES.flatMap((name) =>
  new Fixture(name).objects.flatMap(([path, { messages }]) => (/0x11:/.test(messages) ? [[name, path] as const] : [])),
);

describe('symbol tables of libhdf5', () => {
  test.each(oldGroups)('%s %s: the links that h5py shows, in the order of names', (name, path) => {
    const fixture = new Fixture(name);
    expect(linesOf(fixture, path)).toEqual(fixture.object(path).links);
  });

  test('with addresses of four bytes, soft links, and a tree of several levels are among them', () => {
    expect(oldGroups.map(([name]) => name)).toContain('releases/tsizeslheap');
    const fixture = new Fixture('old-group');
    expect(linesOf(fixture, '/').filter((line) => line.includes('->')).length).toBeGreaterThan(10);
    const [btree] = places(fixture, '/');
    expect(fixture.bytes[btree + 5]).toBeGreaterThan(1);
  });

  test('a tree is walked in the order of its keys, which are offsets of names', () => {
    const fixture = new Fixture('old-group');
    const [btree] = places(fixture, '/');
    const nodes: number[] = [];
    const keys: number[] = [];
    fixture.run(
      walkBtree1(fixture.file, btree, 0, 8, new Budget(fixture.file), function* (key, child) {
        keys.push(key.u64());
        nodes.push(child);
        yield* [];
      }),
    );
    for (const node of nodes) expect(String.fromCharCode(...fixture.bytes.subarray(node, node + 4))).toBe('SNOD');
    expect(new Set(nodes).size).toBe(nodes.length);
    expect(keys[0]).toBe(0);
  });
});

describe('a damaged symbol table is refused', () => {
  const fixture = new Fixture('old-group');
  const [btree, heap] = places(fixture, '/');
  const view = new DataView(fixture.bytes.buffer);

  /** The nodes of the tree below an address with their levels; -1 for those that hold names. */
  function nodesBelow(
    address: number,
    level = fixture.bytes[address + 5] as number,
  ): [address: number, level: number][] {
    if (level < 0) return [[address, level]];
    const count = view.getUint16(address + 6, true);
    // Siblings lie before the keys, and a key before every child.
    const children = Array.from({ length: count }, (_, i) => view.getUint32(address + 24 + 16 * i + 8, true));
    return [[address, level], ...children.flatMap((child) => nodesBelow(child, level - 1))];
  }

  const nodes = nodesBelow(btree);
  const refused = (place: number, value: number, what: string): void => {
    const damaged = fixture.damaged((bytes) => {
      bytes[place] = value;
    });
    expectFormat(() => linesOf(damaged, '/'), what);
  };

  test('the signature, the type or the level of any node of the tree', () => {
    const trees = nodes.filter(([, level]) => level >= 0);
    expect(trees.length).toBeGreaterThan(3);
    for (const [node, level] of trees) {
      refused(node, 0, `signature at ${node}`);
      refused(node + 4, 1, `type at ${node}`);
      refused(node + 5, level === 0 ? 1 : 0, `level at ${node}`);
    }
    refused(btree + 7, 0xff, 'number of children of the root');
  });

  test('the signature, the version or the number of links of a node of names', () => {
    for (const [node] of nodes.filter(([, level]) => level < 0)) {
      refused(node, 0, `signature at ${node}`);
      refused(node + 4, 2, `version at ${node}`);
      refused(node + 7, 0xff, `number of links at ${node}`);
      refused(node + 8 + 2, 1, `place of the first name at ${node}`);
    }
  });

  test('the local heap: its signature, version, size and the place of its data', () => {
    refused(heap, 0, 'signature');
    refused(heap + 4, 1, 'version');
    refused(heap + 8 + 2, 1, 'size');
    refused(heap + 8, 9, 'a size that cuts names off');
    refused(heap + 24 + 6, 1, 'place');
    expectFormat(() => linesOf(fixture, '/', [btree, -1]), 'no heap');
  });

  test('a name without an end, and names that share their bytes', () => {
    const size = view.getUint32(heap + 8, true);
    const data = view.getUint32(heap + 24, true);
    const filled = fixture.damaged((bytes) => {
      bytes.fill(0x61, data + 8, data + size);
    });
    expectFormat(() => linesOf(filled, '/'), 'without an end');
    const overlapping = fixture.damaged((bytes) => {
      for (let i = data + 8; i < data + size - 1; i++) bytes[i] = 0x61;
      bytes[data + size - 1] = 0;
    });
    expectFormat(() => linesOf(overlapping, '/'), 'overlapping');
  });

  test('a tree that comes back to itself', () => {
    const firstChild = btree + 24 + 8;
    expect(view.getUint32(firstChild, true)).toBeGreaterThan(0);
    const damaged = fixture.damaged((bytes) => {
      new DataView(bytes.buffer).setUint32(firstChild, btree, true);
    });
    expectFormat(() => linesOf(damaged, '/'));
  });

  test('links that are read so often that they would fill the file', () => {
    const budget = new Budget(fixture.file);
    expectFormat(() => {
      for (let i = 0; i < 10; i++) fixture.run(readSymbolTable(fixture.file, btree, heap, budget));
    });
  });
});
