import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { attributeParts } from '../../../src/hdf5/graph/attribute-value.ts';
import { datasetParts } from '../../../src/hdf5/graph/dataset-header.ts';
import type { ObjectLoader } from '../../../src/hdf5/graph/object-loader.ts';
import type { ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { openStructure } from '../../../src/hdf5/open.ts';
import { type ExpectedObject, FIXTURES, Fixture } from '../fixture.ts';
import { sayAttribute, sayFill, sayLayout, sayLink, saySpace, sayType } from '../say.ts';

/** The loader of a file, with its table of shared messages. */
const loaderOf = (fixture: Fixture): ObjectLoader => fixture.run(openStructure()).structure.loader;
const load = (fixture: Fixture, path: string): ObjectNode =>
  fixture.run(loaderOf(fixture).node(fixture.object(path).address));

const linesOf = ({ links }: ExpectedObject): string[] =>
  typeof links === 'string' ? links.split('; ') : [...(links ?? [])];

/** Names in the order of creation, if the lines say it. */
const inOrder = (lines: readonly string[]): string[] => {
  const numbered = lines.map((line) => [Number(/ #(\d+)( ->|:| at)/.exec(line)?.[1] ?? Number.NaN), line] as const);
  return numbered.every(([order]) => !Number.isNaN(order))
    ? numbered.sort(([a], [b]) => a - b).map(([, line]) => line)
    : [...lines];
};

describe('objects of libhdf5', () => {
  test.each(FIXTURES)('%s: links and attributes are those that h5py shows, in its order', (name) => {
    const fixture = new Fixture(name);
    const loader = loaderOf(fixture);
    for (const [path, expected] of fixture.objects) {
      const node = fixture.run(loader.node(expected.address));
      const links = [...node.links.values()].map((link) => sayLink(link.name, link.order, link.target));
      const meant = linesOf(expected);
      if (typeof expected.links === 'string')
        expect(links.map((line) => line.replace(/ #\d+/, '')).sort()).toEqual(meant.sort());
      else expect(links, path).toEqual(inOrder(meant));
      const attributes = [...node.attributes.values()].map((attribute) => {
        const { type, space, data } = attributeParts(attribute, fixture.superblock.lengthSize);
        return sayAttribute(attribute.name, node.attributeOrder.tracked ? attribute.order : -1, type, space, data);
      });
      expect(attributes, path).toEqual(inOrder(expected.attributes ?? []));
    }
  });

  test.each(FIXTURES)('%s: type, shape, fill value and layout of datasets, shared or not', (name) => {
    const fixture = new Fixture(name);
    const loader = loaderOf(fixture);
    for (const [path, expected] of fixture.objects) {
      if (expected.layout === undefined) continue;
      const node = fixture.run(loader.node(expected.address));
      expect(node.kind).toBe('dataset');
      const parts = datasetParts(node, fixture.file);
      expect(sayType(parts.type), path).toBe(expected.type);
      expect(saySpace(parts.space), path).toBe(expected.space);
      expect(parts.layout && sayLayout(parts.layout), path).toBe(expected.layout);
      expect(parts.filters.length, path).toBe(expected.filters?.length ?? 0);
      // libhdf5 calls the value undefined where an old file does not say anything about it; h5log reads zeros.
      const told = /0x0[45]:/.test(expected.messages);
      expect(sayFill(parts.fill), path).toBe(told ? expected.fill : 'late default');
    }
  });

  test.each(FIXTURES)('%s: groups, datasets and committed types are told apart', (name) => {
    const fixture = new Fixture(name);
    const loader = loaderOf(fixture);
    for (const [path, { address, links, layout }] of fixture.objects) {
      const { kind } = fixture.run(loader.node(address));
      expect(kind, path).toBe(links ? 'group' : layout ? 'dataset' : 'datatype');
    }
  });

  test('an object is loaded once, however many links lead to it', () => {
    const fixture = new Fixture('headers');
    const { structure } = fixture.run(openStructure());
    const nodes = ['link 0', 'link 1', 'link 2', 'many links'].map((name) => {
      const link = structure.root.links.get(name);
      if (!link) throw new Error(`no link ${name}`);
      return fixture.run(structure.loader.follow(link));
    });
    expect(new Set(nodes).size).toBe(1);
    expect(nodes[0]?.linkCount).toBe(4);
  });

  test('the time of a version 1 header becomes the four times of a version 2 header', () => {
    const fixture = new Fixture('earliest');
    const node = load(fixture, '/layouts/with times');
    const message = new Cursor(fixture.one('/layouts/with times', MESSAGE.time), 0, 4);
    const seconds = message.u32();
    expect(seconds).toBeGreaterThan(1e9);
    const times = new Cursor(node.extras, 0);
    expect([times.u32(), times.u32(), times.u32(), times.u32()]).toEqual(new Array(4).fill(seconds));
    expect(times.left).toBe(0);
    expect(node.flags & 0x20).toBe(0x20);
    expect(node.message(MESSAGE.time)).toBeUndefined();
    expect(load(fixture, '/layouts/compact').extras).toHaveLength(0);
  });

  test('continuation blocks of version 2 are known as they lie in the file', () => {
    const fixture = new Fixture('headers');
    const node = load(fixture, '/plain');
    const chunks = fixture.object('/plain').header.split('chunks ')[1]?.split(' + ').slice(1);
    const found: string[] = [];
    const collect = (blocks: typeof node.blocks): void => {
      for (const { address, size, written, children } of blocks) {
        expect(written).toBe(true);
        found.push(`${size} at ${address}`);
        collect(children);
      }
    };
    collect(node.blocks);
    expect(found.sort()).toEqual(chunks?.sort());
  });
});

describe('messages that nobody knows', () => {
  const fixture = new Fixture('releases/tbogus');
  const addressOf = (path: string): number => {
    // h5py does not open the object, but its link says where it is.
    const [, group, name] = /^(.*)\/(.*)$/.exec(path) as unknown as [string, string, string];
    const line = (fixture.object(group === '' ? '/' : group).links as string[]).find((each) =>
      each.startsWith(`${name} at`),
    );
    return Number(line?.split(' at ')[1]);
  };

  test.each(['/Dataset1', '/Dataset2', '/Dataset4', '/Dataset5', '/group/Dataset1'])(
    '%s: are ignored where they may be',
    (path) => {
      const node = fixture.run(loaderOf(fixture).node(addressOf(path)));
      expect(node.kind).toBe('dataset');
    },
  );

  test.each(['/Dataset3', '/group/Dataset3'])(
    '%s: keep the object from being opened where they say so, as in libhdf5',
    (path) => {
      expect(fixture.object(path).refused).toContain("unknown message with 'fail if unknown' flag");
      const opening = () => fixture.run(loaderOf(fixture).node(addressOf(path)));
      expect(opening).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    },
  );
});
