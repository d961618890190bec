import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../../src/base/checksum.ts';
import type { FullType } from '../../../src/dtype/model.ts';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { Budget } from '../../../src/hdf5/format/file-bytes.ts';
import { parseAttribute, parseAttributeInfo } from '../../../src/hdf5/messages/attribute.ts';
import type { Dataspace } from '../../../src/hdf5/messages/dataspace.ts';
import { parseLink, parseLinkInfo } from '../../../src/hdf5/messages/link.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { readBtree2 } from '../../../src/hdf5/read/btree.ts';
import { FractalHeap } from '../../../src/hdf5/read/fractal-heap.ts';
import { expectFormat, Fixture } from '../fixture.ts';
import { sayAttribute, sayLink } from '../say.ts';

const KINDS = ['managed', 'huge', 'tiny'] as const;

interface Stored {
  readonly kind: (typeof KINDS)[number];
  readonly id: Uint8Array;
  readonly object: Cursor;
}

/** Every object of a group's heap of links, by way of its tree of names. */
function links(fixture: Fixture, path: string): Stored[] {
  const { file, superblock } = fixture;
  const info = parseLinkInfo(new Cursor(fixture.one(path, MESSAGE.linkInfo), 0), superblock.addressSize);
  const heap = fixture.run(FractalHeap.open(file, info.heap));
  return fixture.run(readBtree2(file, info.names, [5], new Budget(file))).map((record) => {
    record.skip(4);
    return stored(fixture, heap, record);
  });
}

function attributes(fixture: Fixture, path: string): (Stored & { order: number })[] {
  const { file, superblock } = fixture;
  const info = parseAttributeInfo(new Cursor(fixture.one(path, MESSAGE.attributeInfo), 0), superblock.addressSize);
  const heap = fixture.run(FractalHeap.open(file, info.heap));
  return fixture.run(readBtree2(file, info.names, [8], new Budget(file))).map((record) => {
    const found = stored(fixture, heap, record);
    record.skip(1);
    return { ...found, order: record.u32() };
  });
}

function stored(fixture: Fixture, heap: FractalHeap, record: Cursor): Stored {
  const id = record.bytes.slice(record.at, record.at + heap.idSize);
  const before = record.at;
  const object = fixture.run(heap.object(record));
  expect(record.at - before).toBe(heap.idSize);
  return { kind: KINDS[((id[0] as number) >> 4) & 3] as Stored['kind'], id, object };
}

function sayStoredAttribute({ object, order }: Stored & { order: number }, lengthSize: number): string {
  const bytes = object.bytes.subarray(object.at, object.end);
  const { name, type, space, dataAt } = parseAttribute(new Cursor(bytes, 0), lengthSize);
  return sayAttribute(name, order, type as FullType, space as Dataspace, bytes.subarray(dataAt));
}

const kinds = (objects: readonly Stored[]): Record<string, number> => {
  const count: Record<string, number> = {};
  for (const { kind } of objects) count[kind] = (count[kind] ?? 0) + 1;
  return count;
};

const sorted = (lines: readonly string[]): string[] => [...lines].sort();

describe('fractal heaps of libhdf5', () => {
  test('links in blocks of several rows below one indirect block', () => {
    const fixture = new Fixture('dense-links');
    const found = links(fixture, '/g');
    expect(kinds(found)).toEqual({ managed: found.length });
    const said = found.map(({ object }) => {
      const { name, order, target } = parseLink(object, 8);
      if (target.kind === 'soft') expect(order).toBe(Number(target.path)); // as they were made
      return sayLink(name, -1, target);
    });
    expect(sorted(said)).toEqual(sorted((fixture.object('/g').links as string).split('; ')));
  });

  test('attributes below an indirect block of an indirect block, and some that are too large for any block', () => {
    const fixture = new Fixture('dense-attributes');
    const found = attributes(fixture, '/g');
    expect(kinds(found)).toEqual({ managed: 123, huge: 8 });
    const said = found.map((each) => sayStoredAttribute(each, 8));
    expect(sorted(said)).toEqual(sorted(fixture.object('/g').attributes as string[]));
  });

  test('links so short that they lie in their ids', () => {
    const fixture = new Fixture('short-addresses');
    const found = links(fixture, '/g');
    expect(kinds(found)).toEqual({ tiny: 12, managed: 1 });
    const said = found.map(({ object }) => {
      const { name, order, target } = parseLink(object, fixture.superblock.addressSize);
      return sayLink(name, order, target);
    });
    expect(sorted(said)).toEqual(sorted(fixture.object('/g').links as string[]));
  });

  test('an attribute whose id says where it is, because there is room for the address in it', () => {
    const fixture = new Fixture('short-addresses');
    const found = attributes(fixture, '/h');
    expect(kinds(found)).toEqual({ managed: 9, huge: 1 });
    const said = found.map((each) => sayStoredAttribute({ ...each, order: -1 }, fixture.superblock.lengthSize));
    expect(sorted(said)).toEqual(sorted(fixture.object('/h').attributes as string[]));
  });

  test('objects know their offset in the file', () => {
    const fixture = new Fixture('dense-links');
    for (const { object } of links(fixture, '/g').slice(0, 50)) {
      const { offset } = object;
      const length = object.left;
      expect(fixture.bytes.slice(offset, offset + length)).toEqual(object.bytes.slice(object.at, object.end));
    }
  });
});

describe('a damaged fractal heap is refused', () => {
  /** Changes the byte at a distance from every occurrence of a signature, in turn. */
  function* damages(fixture: Fixture, signature: string, distance: number): Iterable<[Fixture, number]> {
    const letters = [...new TextEncoder().encode(signature)];
    const places = [...fixture.bytes.keys()].filter((at) =>
      letters.every((letter, i) => fixture.bytes[at + i] === letter),
    );
    expect(places.length).toBeGreaterThan(0);
    for (const at of places) {
      yield [
        fixture.damaged((bytes) => {
          bytes[at + distance] = (bytes[at + distance] as number) ^ 0x10;
        }),
        at,
      ];
    }
  }

  test.each([
    ['FRHP', 0],
    ['FRHP', 5],
    ['FRHP', 7],
    ['FRHP', 20],
    ['FRHP', 140],
    ['FHIB', 2],
    ['FHIB', 4],
    ['FHIB', 15],
    ['FHIB', 30],
    ['FHDB', 25],
    ['FHDB', 60],
  ])('in every %s: byte %i', (signature, distance) => {
    for (const [damaged, at] of damages(new Fixture('dense-links'), signature, distance))
      expectFormat(() => links(damaged, '/g'), `the one at ${at}`);
  });

  test.each([
    ['FHIB', 20],
    ['FHIB', 200],
  ])('in every %s of a deep heap: byte %i', (signature, distance) => {
    for (const [damaged, at] of damages(new Fixture('dense-attributes'), signature, distance))
      expectFormat(() => attributes(damaged, '/g'), `the one at ${at}`);
  });

  const open = (fixture: Fixture, path: string): FractalHeap => {
    const info = parseLinkInfo(new Cursor(fixture.one(path, MESSAGE.linkInfo), 0), fixture.superblock.addressSize);
    return fixture.run(FractalHeap.open(fixture.file, info.heap));
  };

  test.each([
    ['of an unknown version', [0x40, 0, 0, 0, 0, 0, 0]],
    ['of an unknown kind', [0x30, 0, 0, 0, 0, 0, 0]],
    ['behind all blocks', [0x00, 0xff, 0xff, 0xff, 0x7f, 10, 0]],
    ['that reaches beyond its block', [0x00, 0, 0, 0, 0, 0xff, 0x0f]],
    ['of a huge object that is not there', [0x10, 77, 0, 0, 0, 0, 0]],
    ['that is cut off', [0x00, 0, 0]],
  ])('an id %s', (_what, id) => {
    const fixture = new Fixture('dense-links');
    const heap = open(fixture, '/g');
    expectFormat(() => fixture.run(heap.object(new Cursor(Uint8Array.from(id), 0))));
  });

  test('objects that are asked for so often that they would fill the file', () => {
    const fixture = new Fixture('dense-links');
    const heap = open(fixture, '/g');
    const { id } = links(fixture, '/g')[0] as Stored;
    expectFormat(() => {
      for (let i = 0; i < 10_000; i++) fixture.run(heap.object(new Cursor(id, 0)));
    });
  });

  test('a heap with filters is not damaged, but not supported', () => {
    const fixture = new Fixture('dense-links');
    const { heap } = parseLinkInfo(new Cursor(fixture.one('/g', MESSAGE.linkInfo), 0), 8);
    // A filter of one byte: the header has the size of the filtered root block, a mask and the filter before its checksum.
    const header = fixture.bytes.slice(heap, heap + 146 - 4);
    header[7] = 1;
    const filtered = Uint8Array.of(...header, ...new Array(13).fill(0));
    const sum = new Uint8Array(4);
    new DataView(sum.buffer).setUint32(0, lookup3(filtered), true);
    const changed = fixture.damaged((bytes) => {
      bytes.set([...filtered, ...sum], heap);
    });
    const opening = () => changed.run(FractalHeap.open(changed.file, heap));
    expect(opening).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});
