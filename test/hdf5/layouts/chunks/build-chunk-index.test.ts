import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cursor, UNDEFINED } from '../../../../src/hdf5/format/cursor.ts';
import { FileBytes } from '../../../../src/hdf5/format/file-bytes.ts';
import { FileExtent } from '../../../../src/hdf5/graph/object-node.ts';
import {
  buildChunkIndex,
  type ChunkEntry,
  type NewChunkGrid,
  readChunkIndex,
  type StoredChunk,
} from '../../../../src/hdf5/layouts/chunks/chunk-index.ts';
import { type ChunkIndex, type Layout, parseLayout } from '../../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../../src/hdf5/messages/message-types.ts';
import { repeats, seed } from '../../../seed.ts';
import { Fixture, hex, runOn } from '../../fixture.ts';
import { sayChunks } from '../../say.ts';

const AT = 4096;
const FANOUT = 64;

const grid = (shape: readonly number[], chunk: readonly number[], more: Partial<NewChunkGrid> = {}): NewChunkGrid => ({
  shape,
  maxShape: shape,
  chunk,
  elementSize: 2,
  filtered: false,
  fanout: FANOUT,
  ...more,
});

/** Builds an index, puts it into a file of nothing else at an address, and reads it again. */
function roundTrip(
  of: NewChunkGrid,
  chunks: readonly ChunkEntry[],
): { index: ChunkIndex; read: StoredChunk[]; bytes: Uint8Array } {
  const { index, extent } = buildChunkIndex(of, chunks);
  let bytes = new Uint8Array(0);
  if (extent && !chunks.some(({ address }) => address === extent)) {
    extent.address = AT;
    const parts = extent.parts();
    bytes = Uint8Array.from(parts.flatMap((part) => [...part]));
    expect(bytes).toHaveLength(extent.size);
  }
  // Data of chunks lies anywhere in the file; only the index is really there.
  const whole = new Uint8Array(AT + bytes.length);
  whole.set(bytes, AT);
  const placed = extent && bytes.length > 0 ? { ...index, address: AT } : index;
  const file = new FileBytes(0, Math.max(whole.length, 2 ** 30));
  return { index: placed, read: runOn(grown(whole), readChunkIndex(file, placed, of)), bytes };
}

/** Behind the index there may be anything: the file is told to be long. */
function grown(bytes: Uint8Array): Uint8Array {
  const longer = new Uint8Array(bytes.length + 200_000);
  longer.set(bytes);
  return longer;
}

const every = (counts: readonly number[]): number[][] =>
  counts.reduce<number[][]>(
    (cells, count) => cells.flatMap((cell) => Array.from({ length: count }, (_, i) => [...cell, i])),
    [[]],
  );

describe('the kind of a new chunk index is the one that libhdf5 would choose', () => {
  const at = (cell: readonly number[], address: number): ChunkEntry => ({ cell, address, size: 12, mask: 0 });
  const apart = (counts: readonly number[]): ChunkEntry[] => every(counts).map((cell, i) => at(cell, 1000 + 100 * i));

  test.each<[string, NewChunkGrid, readonly ChunkEntry[], ChunkIndex['kind']]>([
    ['one chunk', grid([4], [4]), apart([1]), 'single'],
    ['one chunk larger than the dataset', grid([3], [4]), apart([1]), 'single'],
    ['one chunk of a dataset that may grow in it', grid([3], [4], { maxShape: [4] }), apart([1]), 'implicit'],
    ['one chunk that is not there', grid([4], [4]), [], 'single'],
    [
      'chunks one after the other',
      grid([6], [2], { elementSize: 6 }),
      every([3]).map((cell, i) => at(cell, 1000 + 12 * i)),
      'implicit',
    ],
    [
      'the same, filtered',
      grid([6], [2], { elementSize: 6, filtered: true }),
      every([3]).map((cell, i) => at(cell, 1000 + 12 * i)),
      'fixedArray',
    ],
    ['chunks anywhere', grid([6], [2]), apart([3]), 'fixedArray'],
    ['chunks that are missing', grid([6], [2]), apart([2]), 'fixedArray'],
    ['an unlimited dimension', grid([6], [2], { maxShape: [null] }), apart([3]), 'btree1'],
    ['very many chunks, few of them there', grid([2 ** 20], [1]), apart([3]), 'btree1'],
  ])('%s', (_what, of, chunks, kind) => {
    expect(buildChunkIndex(of, chunks).index.kind).toBe(kind);
  });
});

describe('a new chunk index', () => {
  test('leads to the chunks that it was built from', () => {
    const size = fc.integer({ min: 1, max: 9 });
    const dimension = fc.record({
      size,
      chunk: fc.integer({ min: 1, max: 4 }),
      more: fc.option(fc.nat(6), { freq: 3 }),
    });
    const given = fc
      .record({
        dims: fc.array(dimension, { minLength: 1, maxLength: 3 }),
        filtered: fc.boolean(),
        fanout: fc.constantFrom(2, 4, 64),
        skip: fc.integer({ min: 1, max: 5 }),
      })
      .map(({ dims, filtered, fanout, skip }) => {
        const of = grid(
          dims.map((dim) => dim.size),
          dims.map((dim) => dim.chunk),
          { maxShape: dims.map((dim) => (dim.more === null ? null : dim.size + dim.more)), filtered, fanout },
        );
        const whole = of.chunk.reduce((product, n) => product * n, of.elementSize);
        const chunks = every(of.shape.map((n, d) => Math.ceil(n / (of.chunk[d] as number))))
          .filter((_, i) => i % skip === 0 || skip === 5)
          .map((cell, i) => ({
            cell,
            address: 100_000 + 64 * i,
            size: filtered ? (i * 7919) % 300 : whole,
            mask: filtered ? i % 3 : 0,
          }));
        return { of, chunks };
      });
    fc.assert(
      fc.property(given, ({ of, chunks }) => {
        expect(sayChunks(roundTrip(of, chunks).read)).toBe(sayChunks(chunks as StoredChunk[]));
      }),
      { seed: seed('chunk indexes'), numRuns: repeats(2000) },
    );
  });

  test('of an array of several pages leads to them too', () => {
    const of = grid([5000], [1]);
    const chunks = [0, 1023, 1024, 2047, 2048, 4999].map((i) => ({
      cell: [i],
      address: 100_000 + i,
      size: 2,
      mask: 0,
    }));
    const { index, read } = roundTrip(of, chunks);
    expect(index.kind).toBe('fixedArray');
    expect(read).toEqual(chunks);
  });

  test('of a tree of several levels leads to chunks in the order of the grid', () => {
    const of = grid([300, 2], [1, 1], { maxShape: [null, 2], fanout: 4 });
    const chunks = every([300, 2]).map((cell, i) => ({ cell, address: 200_000 - i * 8, size: 2, mask: 0 }));
    const { index, read } = roundTrip(of, [...chunks].reverse());
    expect(index.kind).toBe('btree1');
    expect(read).toEqual(chunks);
  });

  test('takes the addresses of chunks when it is written, because they are assigned as late as its own', () => {
    const extents = [0, 1, 2].map(() => new FileExtent(4, () => [new Uint8Array(4)]));
    const of = grid([6], [2], { maxShape: [null] });
    const { extent } = buildChunkIndex(
      of,
      extents.map((address, i) => ({ cell: [i], address, size: 4, mask: 0 })),
    );
    extents.forEach((each, i) => {
      each.address = 5000 + 16 * i;
    });
    if (!extent) throw new Error('nothing to write');
    extent.address = AT;
    const whole = grown(Uint8Array.of(...new Uint8Array(AT), ...(extent.parts()[0] as Uint8Array)));
    const file = new FileBytes(0, whole.length);
    const read = runOn(whole, readChunkIndex(file, { kind: 'btree1', address: AT }, of));
    expect(read.map(({ address }) => address)).toEqual([5000, 5016, 5032]);
  });

  test('of one chunk alone is the place of that chunk', () => {
    const extent = new FileExtent(8, () => [new Uint8Array(8)]);
    const built = buildChunkIndex(grid([4], [4], { filtered: true }), [
      { cell: [0], address: extent, size: 8, mask: 1 },
    ]);
    expect(built.extent).toBe(extent);
    expect(built.index).toMatchObject({ kind: 'single', filtered: { size: 8, mask: 1 } });
    const none = buildChunkIndex(grid([4], [4]), []);
    expect(none).toEqual({ index: { kind: 'single', address: UNDEFINED, filtered: null }, extent: null });
  });

  test('of no chunks along an unlimited dimension needs no bytes', () => {
    const built = buildChunkIndex(grid([4], [4], { maxShape: [null] }), []);
    expect(built).toEqual({ index: { kind: 'btree1', address: UNDEFINED }, extent: null });
  });

  test('cannot say that a chunk of a tree has 4 GiB', () => {
    const of = grid([4], [4], { maxShape: [null] });
    expect(() => buildChunkIndex(of, [{ cell: [0], address: 0, size: 2 ** 32, mask: 0 }])).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
  });
});

describe('a new chunk index has the bytes of libhdf5', () => {
  /** The index of libhdf5 for a dataset, and ours for the same chunks at the same address. */
  function both(
    name: string,
    path: string,
    of: NewChunkGrid,
  ): { address: number; ours: Uint8Array; theirs: Uint8Array } {
    const fixture = new Fixture(name);
    const layout = parseLayout(new Cursor(fixture.one(path, MESSAGE.layout), 0), fixture.superblock) as Layout & {
      kind: 'chunked';
    };
    const { index } = layout;
    const chunks = fixture.run(readChunkIndex(fixture.file, index, of));
    const { extent } = buildChunkIndex(of, chunks);
    if (!extent) throw new Error('nothing to compare');
    extent.address = index.address;
    const ours = extent.parts()[0] as Uint8Array;
    return { address: index.address, ours, theirs: fixture.bytes.slice(index.address, index.address + ours.length) };
  }

  test('a node of a version 1 B-tree', () => {
    const of = grid([6], [2], { elementSize: 4, maxShape: [null], fanout: 4 });
    const { ours, theirs } = both('chunk-trees', '/one node', of);
    // Behind the last key of the node there is room for more, in which libhdf5 leaves what was there.
    const used = 24 + 3 * (24 + 8) + 24;
    expect(hex(ours.subarray(0, used))).toBe(hex(theirs.subarray(0, used)));
    expect(ours.subarray(used).every((byte) => byte === 0)).toBe(true);
  });

  test.each([
    ['/fixed', false],
    ['/fixed filtered', true],
  ])('a fixed array: %s', (path, filtered) => {
    const of = grid([5, 6], [2, 3], { maxShape: [6, 9], filtered });
    const { address, ours } = both('chunk-indexes', path, of);
    const { bytes } = new Fixture('chunk-indexes');
    const header = 28;
    // libhdf5 puts the data block elsewhere, so that the header differs in its address and its checksum.
    expect(hex(ours.subarray(0, 16))).toBe(hex(bytes.subarray(address, address + 16)));
    const block = new Cursor(bytes, 0, address + 16).u64();
    expect(hex(ours.subarray(header))).toBe(hex(bytes.subarray(block, block + ours.length - header)));
  });
});
