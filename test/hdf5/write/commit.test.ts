import { describe, expect, test } from 'vitest';
import { T } from '../../../src/dtype/construct.ts';
import { FileExtent, type ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import { contiguous } from '../../../src/hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { deleteAttribute, setAttribute } from '../../../src/hdf5/write/attributes.ts';
import { Edited } from '../edited.ts';
import { FIXTURES, Fixture, fixtureBytes } from '../fixture.ts';

function at(edited: Edited, path: string): ObjectNode {
  const node = edited.run(edited.structure.lookup(edited.structure.root, path));
  if (!node) throw new Error(`no ${path}`);
  return node;
}

const set = (edited: Edited, path: string, name: string, value: string): void =>
  edited.run(setAttribute(edited.structure, at(edited, path), name, T.string(), SCALAR_SPACE, value));
const get = (edited: Edited, path: string, name: string): unknown =>
  edited.run(edited.structure.attribute(at(edited, path), name));

/** Files of which objects can be rewritten: with addresses of eight bytes, and opened by libhdf5 as a whole. */
const WRITABLE = FIXTURES.filter((name) => {
  const { superblock, expected } = new Fixture(name);
  return superblock.addressSize === 8 && Object.values(expected.objects).every(({ refused }) => refused === undefined);
});

describe('a commit to a file of libhdf5', () => {
  test.each(WRITABLE)('%s: leaves every byte where it was, but for the superblock', (name) => {
    const bytes = fixtureBytes(name);
    const { base } = new Fixture(name).superblock;
    const edited = Edited.open(bytes);
    set(edited, '/', 'h5log was here', 'yes');
    edited.commit();
    const after = edited.storage.bytes();
    const start = base + 48;
    expect(Buffer.compare(after.subarray(start, bytes.length), bytes.subarray(start))).toBe(0);
    expect(Buffer.compare(after.subarray(0, base), bytes.subarray(0, base))).toBe(0);
  });

  test.each(WRITABLE)('%s: keeps all links and attributes of all objects', (name) => {
    const edited = Edited.open(fixtureBytes(name));
    const names = (of: Edited) =>
      new Fixture(name).objects.map(([path]) => {
        const { kind, links, attributes } = at(of, path);
        return {
          path,
          kind,
          links: [...links.keys()],
          attributes: [...attributes.keys()].filter((each) => each !== 'new'),
        };
      });
    const before = names(edited);
    // Everything is written anew, but for what may not change: shared messages.
    for (const [path] of new Fixture(name).objects) set(edited, path, 'new', path);
    const again = edited.reopened();
    expect(names(again)).toEqual(before);
    for (const [path] of new Fixture(name).objects) expect(get(again, path, 'new')).toBe(path);
  });
});

describe('a commit', () => {
  test('is small when little has changed, also in a large group', () => {
    const edited = Edited.create();
    const { structure } = edited;
    for (let i = 0; i < 2000; i++) structure.createGroup(structure.root, `group ${i}`);
    edited.commit();
    set(edited, '/group 1000', 'note', 'x');
    const planned = edited.committer.plan();
    // A text has a collection of 4096 bytes; the group, its link, and the blocks that lead to it take the rest.
    expect(planned.bytes).toBeLessThan(4096 + 8192);
    edited.run(edited.committer.write(planned));
    expect(get(edited.reopened(), '/group 1000', 'note')).toBe('x');
  });

  test('moves what points to an object that moves: links, references in attributes and in their heap, committed types', () => {
    const edited = Edited.create();
    const { structure } = edited;
    structure.createGroup(structure.root, 'target');
    const holder = structure.createGroup(structure.root, 'holder');
    const type = structure.createDatatype(structure.root, 'type', 'int16');
    structure.createDataset(structure.root, 'data', {
      dtype: type,
      space: SCALAR_SPACE,
      layout: contiguous(new FileExtent(2, () => [Uint8Array.of(5, 0)])),
    });
    edited.run(setAttribute(structure, holder, 'one', T.reference, SCALAR_SPACE, '/target'));
    edited.run(setAttribute(structure, holder, 'many', T.vlen(T.reference), SCALAR_SPACE, ['/target', '/holder']));
    edited.commit();
    const places = ['/target', '/holder', '/type', '/data'].map((path) => at(edited, path).address);
    set(edited, '/target', 'moves', 'yes');
    set(edited, '/type', 'moves', 'yes');
    const again = edited.reopened();
    const moved = ['/target', '/holder', '/type', '/data'].map((path) => at(again, path).address);
    moved.forEach((address, i) => {
      expect(address).toBeGreaterThan(places[i] as number);
    });
    expect(get(again, '/holder', 'one')).toBe('/target');
    expect(get(again, '/holder', 'many')).toEqual(['/target', '/holder']);
    expect(again.structure.dataset(at(again, '/data')).dtype).toBe('int16');
    // As libhdf5 counts: the link and the dataset.
    expect(at(again, '/type').linkCount).toBe(2);
  });

  test('that is undone is pending again, and the next one holds it', () => {
    const edited = Edited.create();
    edited.structure.createGroup(edited.structure.root, 'first');
    edited.commit();
    edited.structure.createGroup(edited.structure.root, 'second');
    set(edited, '/first', 'note', 'kept');
    const lost = edited.committer.plan();
    expect(edited.committer.pending).toBe(false);
    edited.committer.undo(lost, true);
    expect(edited.committer.pending).toBe(true);
    edited.structure.createGroup(edited.structure.root, 'third');
    const again = edited.reopened();
    expect([...again.structure.root.links.keys()]).toEqual(['first', 'second', 'third']);
    expect(get(again, '/first', 'note')).toBe('kept');
  });

  test('that is undone does not bring back what was removed since', () => {
    const edited = Edited.create();
    edited.structure.createGroup(edited.structure.root, 'stays');
    edited.structure.createGroup(edited.structure.root, 'goes');
    edited.commit();
    set(edited, '/goes', 'note', 'x');
    set(edited, '/stays', 'gone', 'x');
    const lost = edited.committer.plan();
    edited.structure.removeLink(edited.structure.root, 'goes');
    deleteAttribute(edited.structure, at(edited, '/stays'), 'gone');
    edited.committer.undo(lost, true);
    const again = edited.reopened();
    expect([...again.structure.root.links.keys()]).toEqual(['stays']);
    expect([...at(again, '/stays').attributes.keys()]).toEqual([]);
  });

  test('puts raw bytes before the structure that points to them', () => {
    const edited = Edited.create();
    const { structure } = edited;
    const data = new FileExtent(6, () => [Uint8Array.of(1, 0, 2), Uint8Array.of(0, 3, 0)]);
    structure.createDataset(structure.root, 'd', { dtype: 'int16', space: simpleSpace([3]), layout: contiguous(data) });
    const { append } = edited.committer.plan();
    expect(data.address).toBe(append.at);
    expect(Buffer.concat(append.parts).subarray(0, 6)).toEqual(Buffer.from([1, 0, 2, 0, 3, 0]));
    expect(Buffer.concat(append.parts)).toHaveLength(append.end - append.at);
  });

  test('writes the extension of a superblock once, with what others still need of it', () => {
    const edited = Edited.open(fixtureBytes('extension'));
    set(edited, '/', 'note', 'x');
    const first = edited.reopened();
    const second = first.reopened();
    expect(second.structure.chunkFanout).toBe(4);
    set(second, '/', 'note', 'y');
    expect(second.reopened().structure.chunkFanout).toBe(4);
  });
});
