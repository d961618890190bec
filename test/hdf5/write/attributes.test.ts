import { describe, expect, test } from 'vitest';
import { T } from '../../../src/dtype/construct.ts';
import type { ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import { SCALAR_SPACE, simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { encodeDatatype } from '../../../src/hdf5/messages/encode.ts';
import {
  deleteAttribute,
  setAttribute,
  setAttributeMessage,
  setEncodedAttribute,
} from '../../../src/hdf5/write/attributes.ts';
import { Edited } from '../edited.ts';
import { fixtureBytes } from '../fixture.ts';

function at(edited: Edited, path: string): ObjectNode {
  const node = edited.run(edited.structure.lookup(edited.structure.root, path));
  if (!node) throw new Error(`no ${path}`);
  return node;
}

const value = (...bytes: number[]) => ({ bytes: Uint8Array.from(bytes), owned: true, targets: [], heap: [] });

describe('an attribute of a committed type', () => {
  test('counts as a use of the type, as in libhdf5, until it is deleted or replaced', () => {
    const edited = Edited.create();
    const { structure } = edited;
    const { root } = structure;
    const type = structure.createDatatype(root, 'type', 'int16');
    setEncodedAttribute(structure, root, 'a', type, SCALAR_SPACE, value(1, 0));
    setEncodedAttribute(structure, root, 'b', type, SCALAR_SPACE, value(2, 0));
    const again = edited.reopened();
    expect(at(again, '/type').linkCount).toBe(3);
    expect(again.run(again.structure.attribute(again.structure.root, 'b'))).toBe(2);
    deleteAttribute(again.structure, again.structure.root, 'a');
    const third = again.reopened();
    expect(at(third, '/type').linkCount).toBe(2);
    third.run(setAttribute(third.structure, third.structure.root, 'b', 'int8', SCALAR_SPACE, 3));
    expect(at(third.reopened(), '/type').linkCount).toBe(1);
  });

  test('may have a type that is described, given as bytes', () => {
    const edited = Edited.create();
    const { structure } = edited;
    setEncodedAttribute(structure, structure.root, 'a', encodeDatatype('int16'), simpleSpace([2]), value(1, 0, 2, 0));
    const again = edited.reopened();
    expect(again.run(again.structure.attribute(again.structure.root, 'a'))).toEqual(Int16Array.of(1, 2));
  });
});

describe('attributes', () => {
  test.each(['earliest', 'latest'])('%s: one that is set again keeps its place in the order', (name) => {
    const edited = Edited.open(fixtureBytes(name));
    const before = [...at(edited, '/attributes').attributes.keys()];
    edited.run(setAttribute(edited.structure, at(edited, '/attributes'), 'matrix', T.string(), SCALAR_SPACE, 'other'));
    const again = edited.reopened();
    expect([...at(again, '/attributes').attributes.keys()]).toEqual(before);
    expect(again.run(again.structure.attribute(at(again, '/attributes'), 'matrix'))).toBe('other');
  });

  test('that do not exist cannot be deleted', () => {
    const { structure } = Edited.create();
    expect(() => deleteAttribute(structure, structure.root, 'none')).toThrow(
      expect.objectContaining({ code: 'NOT_FOUND' }),
    );
  });

  test('of more than a message holds go to dense storage with all others, and all come back to the header', () => {
    let edited = Edited.create();
    const set = (name: string, length: number): void => {
      const value = new Uint8Array(length).fill(length % 251);
      edited.run(setAttribute(edited.structure, edited.structure.root, name, 'uint8', simpleSpace([length]), value));
    };
    const sizes = (): [string, unknown][] =>
      [...edited.structure.root.attributes.keys()].map((name) => {
        const value = edited.run(edited.structure.attribute(edited.structure.root, name)) as Uint8Array;
        expect(value.every((byte) => byte === value.length % 251)).toBe(true);
        return [name, value.length];
      });
    // What a message of an attribute named by one letter holds beside the value has at most 38 bytes.
    set('a', 65_535 - 38);
    set('b', 10);
    edited = edited.reopened();
    expect(edited.structure.root.dense).toBe(null);
    set('c', 70_000);
    edited = edited.reopened();
    const { root } = edited.structure;
    expect(root.dense).not.toBe(null);
    expect(root.firstChunk.size + root.blocks.length).toBe(0);
    set('d', 20);
    edited = edited.reopened();
    expect(sizes()).toEqual([
      ['a', 65_497],
      ['b', 10],
      ['c', 70_000],
      ['d', 20],
    ]);
    set('c', 5);
    edited = edited.reopened();
    expect(edited.structure.root.dense).toBe(null);
    expect(sizes()).toEqual([
      ['a', 65_497],
      ['b', 10],
      ['c', 5],
      ['d', 20],
    ]);
  });

  test('of more than 1 GiB are refused, and change nothing', () => {
    const { structure } = Edited.create();
    const body = new Uint8Array(2 ** 30 + 1);
    expect(() => setAttributeMessage(structure, structure.root, 'a', body)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
    expect(structure.root.attributes.size).toBe(0);
  });

  test.each(['dense-attributes', 'shared'])(
    '%s: of a heap that libhdf5 keeps are read, and others beside them are set',
    (name) => {
      const edited = Edited.open(fixtureBytes(name));
      const path = name === 'shared' ? '/dense' : '/g';
      const before = [...at(edited, path).attributes.keys()];
      edited.run(setAttribute(edited.structure, at(edited, path), 'new', 'int8', SCALAR_SPACE, 3));
      const again = edited.reopened();
      expect([...at(again, path).attributes.keys()].sort()).toEqual([...before, 'new'].sort());
      expect(again.run(again.structure.attribute(at(again, path), 'new'))).toBe(3);
    },
  );
});
