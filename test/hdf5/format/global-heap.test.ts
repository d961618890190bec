import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { T } from '../../../src/dtype/construct.ts';
import type { DType } from '../../../src/dtype/model.ts';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { FileBytes } from '../../../src/hdf5/format/file-bytes.ts';
import { GlobalHeap, GlobalHeapWriter, readCollection } from '../../../src/hdf5/format/global-heap.ts';
import { parseLayout } from '../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, Fixture, runOn } from '../fixture.ts';
import { sayBytes } from '../say.ts';

interface Id {
  readonly length: number;
  readonly address: number;
  readonly index: number;
}

/** The elements of a dataset of variable-length values: lengths, collections and indexes in them. */
function idsOf(fixture: Fixture, path: string): { ids: Id[]; data: Uint8Array } {
  const layout = parseLayout(new Cursor(fixture.one(path, MESSAGE.layout), 0), fixture.superblock);
  if (layout.kind !== 'contiguous') throw new Error('not contiguous');
  const data = fixture.bytes.slice(layout.address, layout.address + layout.size);
  const ids: Id[] = [];
  for (const cursor = new Cursor(data, 0); cursor.left > 0; )
    ids.push({ length: cursor.u32(), address: cursor.u64(), index: cursor.u32() });
  return { ids, data };
}

const DATASETS: readonly [path: string, dtype: DType, elementSize: number][] = [
  ['/text', T.string(), 1],
  ['/long', T.string(), 1],
  ['/rows', T.vlen('int32'), 4],
  ['/rewritten', T.string(), 1],
];

describe('global heap collections of libhdf5', () => {
  test.each(DATASETS)('%s: hold the values that h5py reads', (path, _dtype, elementSize) => {
    const fixture = new Fixture('heaps');
    const values = idsOf(fixture, path).ids.map(({ length, address, index }) => {
      if (length === 0) return '';
      const { objects } = fixture.run(readCollection(fixture.file, address));
      return sayBytes(objects.get(index)?.subarray(0, length * elementSize) as Uint8Array);
    });
    expect(values.join('; ')).toBe(fixture.object(path).values);
  });

  test.each(DATASETS)('%s: are loaded for elements, each once', (path, dtype, elementSize) => {
    const fixture = new Fixture('heaps');
    const { ids, data } = idsOf(fixture, path);
    const heap = new GlobalHeap(fixture.file);
    for (const { address, index } of ids) expect(heap.get(address, index)).toBeUndefined();
    // Twice, for a second time would exceed the budget if collections were read again.
    for (let i = 0; i < 20; i++) fixture.run(heap.load(dtype, data, ids.length));
    const values = ids.map(({ length, address, index }) => heap.get(address, index)?.subarray(0, length * elementSize));
    expect(values.map((value) => (value ? sayBytes(value) : '')).join('; ')).toBe(fixture.object(path).values);
  });

  test('of several sizes, full ones and one with a gap that was filled, are among them', () => {
    const fixture = new Fixture('heaps');
    const sizes = new Map<number, number>();
    for (const [path] of DATASETS)
      for (const { address, length } of idsOf(fixture, path).ids)
        if (length > 0) sizes.set(address, fixture.run(readCollection(fixture.file, address)).size);
    expect(sizes.size).toBeGreaterThan(1);
    expect(Math.max(...sizes.values())).toBeGreaterThan(6000);
    const indexes = idsOf(fixture, '/rewritten').ids.map(({ index }) => index);
    expect(indexes).not.toEqual([...indexes].sort((a, b) => a - b));
  });
});

describe('global heap collections of h5log', () => {
  /** A file of the collections alone. */
  function written(heap: GlobalHeapWriter): { bytes: Uint8Array; addresses: number[] } {
    const sizes = heap.sizes();
    const addresses: number[] = [];
    let end = 0;
    for (const size of sizes) {
      addresses.push(end);
      end += size;
    }
    const bytes = new Uint8Array(end);
    addresses.forEach((address, i) => {
      bytes.set(heap.encode(i), address);
    });
    return { bytes, addresses };
  }

  test('have the bytes that libhdf5 writes, but for the counts of references, which it leaves at 0', () => {
    const fixture = new Fixture('virtual');
    const layout = parseLayout(new Cursor(fixture.one('/boxes', MESSAGE.layout), 0), fixture.superblock);
    const { heap: address } = layout as { heap: number };
    const { objects, size } = fixture.run(readCollection(fixture.file, address));
    expect(objects.size).toBeGreaterThan(1);
    const heap = new GlobalHeapWriter();
    for (const [index, object] of objects) expect(heap.add(object)).toEqual({ collection: 0, index });
    expect(heap.sizes()).toEqual([size]);
    const ours = heap.encode(0);
    const theirs = fixture.bytes.slice(address, address + size);
    let at = 16;
    for (const object of objects.values()) {
      expect([ours[at + 2], theirs[at + 2]]).toEqual([1, 0]);
      ours[at + 2] = 0;
      at += 16 + Math.ceil(object.length / 8) * 8;
    }
    // What libhdf5 leaves in free space is not defined.
    expect(ours.slice(0, at + 16)).toEqual(theirs.slice(0, at + 16));
  });

  test('are read as they were written', () => {
    const object = fc.oneof(
      { weight: 10, arbitrary: fc.uint8Array({ maxLength: 50 }) },
      fc.integer({ min: 1000, max: 70_000 }).map((length) => new Uint8Array(length).fill(length & 255)),
    );
    fc.assert(
      fc.property(fc.array(object, { minLength: 1, maxLength: 60 }), (given) => {
        const heap = new GlobalHeapWriter();
        const places = given.map((each) => heap.add(each));
        const { bytes, addresses } = written(heap);
        const file = new FileBytes(0, bytes.length);
        const collections = addresses.map((address) => runOn(bytes, readCollection(file, address)));
        collections.forEach(({ size }, i) => {
          expect(size).toBe(heap.sizes()[i]);
          expect(size % 8).toBe(0);
          expect(size).toBeGreaterThanOrEqual(4096);
        });
        given.forEach((each, i) => {
          const { collection, index } = places[i] as { collection: number; index: number };
          expect(Buffer.compare(collections[collection]?.objects.get(index) as Uint8Array, each)).toBe(0);
        });
        const count = collections.reduce((sum, { objects }) => sum + objects.size, 0);
        expect(count).toBe(given.length);
      }),
      { seed: seed('global heap'), numRuns: repeats(500) },
    );
  });

  test('are as few as possible, of about 64 KiB, and of at most 65,535 objects', () => {
    const heap = new GlobalHeapWriter();
    for (let i = 0; i < 100; i++) heap.add(new Uint8Array(10_000));
    expect(Math.max(...heap.sizes())).toBeLessThanOrEqual(64 * 1024);
    expect(heap.sizes()).toHaveLength(Math.ceil(100 / Math.floor((65536 - 16) / 10_016)));
    const large = new GlobalHeapWriter();
    large.add(new Uint8Array(200_000));
    large.add(new Uint8Array(1));
    expect(large.sizes()).toEqual([16 + 16 + 200_000, 4096]);
  });

  test('take the bytes of an object when they are encoded: they may be patched until then', () => {
    const heap = new GlobalHeapWriter();
    const object = new Uint8Array(8);
    heap.add(object);
    object.fill(9);
    expect([...heap.encode(0).subarray(32, 40)]).toEqual(new Array(8).fill(9));
  });
});

describe('a damaged collection is refused', () => {
  const fixture = new Fixture('heaps');
  const { address } = idsOf(fixture, '/text').ids.find(({ length }) => length > 0) as Id;

  test.each([
    [0, 0, 'another signature'],
    [4, 2, 'another version'],
    [10, 1, 'a size beyond the end of the file'],
    [15, 0x7f, 'a size beyond 2^53'],
    [16 + 10, 1, 'an object longer than the collection'],
  ])('byte %i is %i: %s', (at, value) => {
    const damaged = fixture.damaged((bytes) => {
      bytes[address + at] = value;
    });
    expectFormat(() => damaged.run(readCollection(damaged.file, address)));
  });

  test('beyond the end of the file, or nowhere', () => {
    for (const nowhere of [-1, fixture.file.end - 8, fixture.file.end + 8, 2 ** 50])
      expectFormat(() => fixture.run(readCollection(fixture.file, nowhere)), `at ${nowhere}`);
  });

  test('values that lead to one another, again and again', () => {
    // A sequence of sequences whose only element is the sequence itself.
    const dtype = T.vlen(T.vlen('int8'));
    const heap = new GlobalHeapWriter();
    const content = new Uint8Array(16);
    heap.add(content);
    const at = 48;
    const view = new DataView(content.buffer);
    view.setUint32(0, 1, true);
    view.setUint32(4, at, true);
    view.setUint32(12, 1, true);
    const bytes = Uint8Array.of(...new Uint8Array(at), ...heap.encode(0));
    const reader = new GlobalHeap(new FileBytes(0, bytes.length));
    const element = new Uint8Array(16 * 1000);
    for (let i = 0; i < 1000; i++) element.set(content, i * 16);
    expectFormat(() => runOn(bytes, reader.load(dtype, element, 1000)));
  });
});
