import { describe, expect, test } from 'vitest';
import { T } from '../../../src/dtype/construct.ts';
import { attributeParts } from '../../../src/hdf5/graph/attribute-value.ts';
import type { ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import { compact } from '../../../src/hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { setAttribute } from '../../../src/hdf5/write/attributes.ts';
import { renameAttribute, renameLink, rewriteDataset } from '../../../src/hdf5/write/rewrite.ts';
import { Edited } from '../edited.ts';
import { fixtureBytes } from '../fixture.ts';
import { sayAttribute, sayLayout, sayLink, saySpace, sayType } from '../say.ts';

function at(edited: Edited, path: string): ObjectNode {
  const node = edited.run(edited.structure.lookup(edited.structure.root, path));
  if (!node) throw new Error(`no ${path}`);
  return node;
}

/** All that an attribute says, but for its name. */
function sayUnnamed(node: ObjectNode, name: string): string {
  const attribute = node.attributes.get(name);
  if (!attribute) throw new Error(`no attribute ${name}`);
  const { type, space, data } = attributeParts(attribute, 8);
  return sayAttribute('', attribute.order, type, space, data);
}

describe('an attribute that gets another name', () => {
  const names = ['scalar', 'matrix', 'nothing', 'größe', 'leer ø', 'point', 'committed', 'text'];

  test.each(['earliest', 'latest'])('%s: of every version keeps type, shape, value and order', (file) => {
    const edited = Edited.open(fixtureBytes(file));
    const before = at(edited, '/attributes');
    const said = names.map((name) => sayUnnamed(before, name));
    const texts = names.map((name) => edited.run(edited.structure.attribute(before, name)));
    for (const name of names) renameAttribute(edited.structure, before, name, `another name ü of ${name}`);
    const again = edited.reopened();
    const after = at(again, '/attributes');
    const renamed = names.map((name) => `another name ü of ${name}`);
    expect([...after.attributes.keys()].sort()).toEqual([...renamed].sort());
    expect(renamed.map((name) => sayUnnamed(after, name))).toEqual(said);
    expect(renamed.map((name) => again.run(again.structure.attribute(after, name)))).toEqual(texts);
  });

  test('of a committed type still uses it, also after the type has moved', () => {
    const edited = Edited.open(fixtureBytes('earliest'));
    renameAttribute(edited.structure, at(edited, '/attributes'), 'committed', 'x');
    const again = edited.reopened();
    again.run(setAttribute(again.structure, at(again, '/types/compound'), 'note', 'int32', SCALAR_SPACE, 1));
    const third = again.reopened();
    expect(at(third, '/types/compound').address).not.toBe(at(edited, '/types/compound').address);
    expect(sayUnnamed(at(third, '/attributes'), 'x')).toContain('compound 15');
  });

  test('must exist, and the name must be free', () => {
    const { structure } = Edited.open(fixtureBytes('latest'));
    const run = (name: string, to: string) => () => renameAttribute(structure, structure.root, name, to);
    expect(run('no such one', 'x')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    const edited = Edited.open(fixtureBytes('latest'));
    const node = at(edited, '/attributes');
    expect(() => renameAttribute(edited.structure, node, 'point', 'matrix')).toThrow(
      expect.objectContaining({ code: 'EXISTS' }),
    );
  });
});

describe('a link that gets another name', () => {
  test.each(['earliest', 'latest'])('%s: leads where it led, whatever its kind', (file) => {
    const edited = Edited.open(fixtureBytes(file));
    const { root } = edited.structure;
    for (const name of ['soft', 'außen', 'once more']) renameLink(edited.structure, root, name, `renamed ${name}`);
    const again = edited.reopened();
    const links = again.structure.root.links;
    const soft = links.get('renamed soft');
    const outside = links.get('renamed außen');
    if (!soft || !outside) throw new Error('links are missing');
    expect(sayLink(soft.name, soft.order, soft.target)).toBe('renamed soft -> /layouts/compact');
    expect(sayLink(outside.name, outside.order, outside.target)).toBe('renamed außen -> other.h5:/there');
    expect(at(again, '/renamed once more')).toBe(at(again, '/layouts/contiguous'));
    expect(links.has('soft')).toBe(false);
  });

  test('keeps its place in the order of creation', () => {
    const edited = Edited.open(fixtureBytes('latest'));
    renameLink(edited.structure, at(edited, '/ordered'), 'b', 'z');
    expect([...at(edited.reopened(), '/ordered').links.keys()]).toEqual(['z', 'a']);
  });

  test('may get another path', () => {
    const edited = Edited.open(fixtureBytes('latest'));
    renameLink(edited.structure, edited.structure.root, 'soft', 'soft', '/types');
    const again = edited.reopened();
    expect(at(again, '/soft')).toBe(at(again, '/types'));
  });

  test('must exist, and the name must be free', () => {
    const { structure } = Edited.open(fixtureBytes('latest'));
    const run = (name: string, to: string) => () => renameLink(structure, structure.root, name, to);
    expect(run('no such one', 'x')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    expect(run('soft', 'types')).toThrow(expect.objectContaining({ code: 'EXISTS' }));
  });
});

describe('a dataset that is rewritten', () => {
  test.each(['earliest', 'latest'])(
    '%s: has another shape, layout and fill value, and the type and attributes it had',
    (file) => {
      const edited = Edited.open(fixtureBytes(file));
      const before = at(edited, '/layouts/filtered');
      edited.run(setAttribute(edited.structure, before, 'note', T.string(), SCALAR_SPACE, 'kept'));
      const data = Uint8Array.of(1, 0, 0, 0, 2, 0, 0, 0);
      rewriteDataset(edited.structure, before, {
        space: simpleSpace([2]),
        layout: compact(data),
        fill: Uint8Array.of(9, 9, 9, 9),
      });
      const again = edited.reopened();
      const node = at(again, '/layouts/filtered');
      const parts = again.structure.dataset(node);
      expect(saySpace(parts.space)).toBe('[2]');
      expect(parts.layout && sayLayout(parts.layout)).toBe('compact 0100000002000000');
      expect(parts.fill.value).toEqual(Uint8Array.of(9, 9, 9, 9));
      expect(sayType(parts.type)).toBe('i4 little');
      expect(again.run(again.structure.attribute(node, 'note'))).toBe('kept');
    },
  );
});
