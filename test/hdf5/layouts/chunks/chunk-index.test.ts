import { inflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../../src/hdf5/format/cursor.ts';
import { type ChunkGrid, readChunkIndex, type StoredChunk } from '../../../../src/hdf5/layouts/chunks/chunk-index.ts';
import { readExtensibleArray } from '../../../../src/hdf5/layouts/chunks/extensible-array.ts';
import { type Dataspace, parseDataspace } from '../../../../src/hdf5/messages/dataspace.ts';
import { type Layout, parseLayout } from '../../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../../src/hdf5/messages/message-types.ts';
import { openStructure } from '../../../../src/hdf5/open.ts';
import { expectFormat, FIXTURES, Fixture, fixtureBytes, runOn } from '../../fixture.ts';
import { sayChunks } from '../../say.ts';

type Chunked = Layout & { kind: 'chunked' };
type Simple = Dataspace & { kind: 'simple' };

/** What the messages of a chunked dataset say about its chunks. */
function gridOf(fixture: Fixture, path: string): { layout: Chunked; grid: ChunkGrid; shape: readonly number[] } {
  const { superblock } = fixture;
  const layout = parseLayout(new Cursor(fixture.one(path, MESSAGE.layout), 0), superblock) as Chunked;
  const { shape, maxShape } = parseDataspace(
    new Cursor(fixture.one(path, MESSAGE.dataspace), 0),
    superblock.lengthSize,
  ) as Simple;
  const { chunk, elementSize } = layout;
  const filtered = fixture.object(path).filters !== undefined;
  return { layout, grid: { maxShape, chunk, elementSize, filtered }, shape };
}

function read(fixture: Fixture, path: string): StoredChunk[] {
  const { layout, grid } = gridOf(fixture, path);
  return fixture.run(readChunkIndex(fixture.file, layout.index, grid));
}

const DATASETS = FIXTURES.filter((name) => name !== 'shared').flatMap((name) =>
  new Fixture(name).objects.flatMap(([path, { chunks }]) => (chunks === undefined ? [] : [[name, path] as const])),
);

describe('chunk indexes of libhdf5', () => {
  test.each(DATASETS)('%s %s: the chunks that libhdf5 lists, with their addresses, sizes and masks', (name, path) => {
    const fixture = new Fixture(name);
    const { layout, shape } = gridOf(fixture, path);
    const chunks = read(fixture, path);
    // Chunks without an index have their places in advance, also those into which the dataset may still grow.
    const now = chunks.filter(({ cell }) =>
      cell.every((c, d) => c * (layout.chunk[d] as number) < (shape[d] as number)),
    );
    expect(sayChunks(now)).toBe(fixture.object(path).chunks);
    expect(chunks.length - now.length).toBe(layout.index.kind === 'implicit' ? 3 : 0);
  });

  test('of every kind, filtered and not, are among them', () => {
    const kinds = DATASETS.map(([name, path]) => {
      const { layout, grid } = gridOf(new Fixture(name), path);
      return `${layout.index.kind}${grid.filtered ? ' filtered' : ''}`;
    });
    for (const kind of ['btree1', 'single', 'fixedArray', 'extensibleArray', 'btree2'])
      expect(kinds).toEqual(expect.arrayContaining([kind, `${kind} filtered`]));
    expect(kinds).toContain('implicit');
  });

  test.each([
    ['extensible', 5, [0, 1, 2, 3, 4]],
    ['extensible in blocks', 10, [0, 3, 4, 19, 20, 51, 52, 300, 1000, 2999]],
    ['extensible in pages', 8, [0, 150_000, 151_000, 152_000, 153_000, 154_000, 155_000, 199_999]],
  ])('%s: every element of the array is visited once, with its number', (path, count, numbers) => {
    const fixture = new Fixture('chunk-indexes');
    const { layout } = gridOf(fixture, `/${path}`);
    const seen = new Set<number>();
    const used: number[] = [];
    const visit = (index: number, element: Cursor, size: number): void => {
      expect(seen.has(index)).toBe(false);
      seen.add(index);
      expect(size).toBe(8);
      if (element.address(8) !== -1) used.push(index);
    };
    fixture.run(readExtensibleArray(fixture.file, layout.index.address, false, visit));
    expect(used).toHaveLength(count);
    expect(used).toEqual(numbers);
  });
});

describe('chunk indexes of HDF5 2.0, with sizes of eight bytes', () => {
  test.each([
    ['single', 'single', [20], [20]],
    ['fixed', 'fixedArray', [20], [5]],
    ['extensible', 'extensibleArray', [20], [5]],
    ['tree', 'btree2', [4, 5], [2, 5]],
  ] as const)('%s: chunks hold what was written', (name, kind, shape, chunk) => {
    const bytes = fixtureBytes('version-2.0');
    const { structure } = runOn(bytes, openStructure());
    const node = runOn(bytes, structure.lookup(structure.root, name));
    if (!node) throw new Error(`no ${name}`);
    expect(node.message(MESSAGE.layout)?.bytes[0]).toBe(5);
    const { layout, space, filters } = structure.dataset(node);
    if (layout?.kind !== 'chunked' || space.kind !== 'simple') throw new Error('not chunked');
    expect(layout).toMatchObject({ chunk, elementSize: 8, index: { kind } });
    expect(space.shape).toEqual(shape);
    const grid = { maxShape: space.maxShape, chunk, elementSize: 8, filtered: filters.length > 0 };
    const found = runOn(bytes, readChunkIndex(structure.loader.file, layout.index, grid));
    const length = chunk.reduce((product, n) => product * n, 1);
    expect(found).toHaveLength(20 / length);
    for (const { cell, address, size } of found) {
      // Chunks are whole rows, and an element is its row-major position.
      const first = (cell[0] as number) * length;
      const values = new Float64Array(new Uint8Array(inflateSync(bytes.slice(address, address + size))).buffer);
      expect([...values]).toEqual(Array.from({ length }, (_, i) => first + i));
    }
  });
});

describe('a damaged chunk index is refused', () => {
  /** The blocks of all kinds that lie in the file, and a byte of each that no checksum but its own covers. */
  const STRUCTURES: readonly [path: string, signature: string, bytes: readonly number[]][] = [
    ['fixed', 'FAHD', [0, 4, 5, 6, 7, 8, 16, 24]],
    ['fixed', 'FADB', [0, 4, 5, 6, 14, 20]],
    ['fixed filtered', 'FAHD', [0, 4, 5, 6, 7, 8, 16, 24]],
    ['fixed filtered', 'FADB', [0, 14, 20]],
    ['fixed in pages', 'FADB', [0, 14, 20, 40]],
    ['extensible', 'EAHD', [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 60, 68]],
    ['extensible', 'EAIB', [0, 4, 5, 6, 14, 30, 60]],
    ['extensible in blocks', 'EASB', [0, 4, 5, 6, 14, 20]],
    ['extensible in blocks', 'EADB', [0, 4, 5, 6, 14, 20]],
    ['extensible in pages', 'EADB', [0, 4, 14]],
    ['tree', 'BTHD', [0, 4, 5, 6, 10, 12, 14, 16, 24, 26, 34]],
    ['tree', 'BTIN', [0, 4, 5, 6, 40]],
    ['tree', 'BTLF', [0, 4, 5, 6, 40]],
    ['tree filtered', 'BTLF', [0, 4, 5, 6, 40]],
  ];

  test.each(STRUCTURES)('%s: whatever changes in its %s', (path, signature, places) => {
    const fixture = new Fixture('chunk-indexes');
    const blocks = reached(fixture, `/${path}`, signature);
    expect(blocks.length).toBeGreaterThan(0);
    for (const block of blocks) {
      for (const place of places) {
        const damaged = fixture.damaged((bytes) => {
          bytes[block + place] = (bytes[block + place] as number) ^ 0x15;
        });
        expectFormat(() => read(damaged, `/${path}`), `byte ${place} of the ${signature} at ${block}`);
      }
    }
  });

  /** Which blocks of a kind an index leads to: those without whose signature it cannot be read. */
  function reached(fixture: Fixture, path: string, signature: string): number[] {
    const letters = [...new TextEncoder().encode(signature)];
    const all = [...fixture.bytes.keys()].filter((at) =>
      letters.every((letter, i) => fixture.bytes[at + i] === letter),
    );
    return all.filter((at) => {
      const without = fixture.damaged((bytes) => {
        bytes[at] = 0;
      });
      try {
        read(without, path);
        return false;
      } catch {
        return true;
      }
    });
  }

  test('a page of a fixed or an extensible array', () => {
    const fixture = new Fixture('chunk-indexes');
    for (const path of ['/fixed in pages', '/fixed in pages filtered', '/extensible in pages']) {
      const [, last] = [read(fixture, path)[0], read(fixture, path).at(-1)];
      // The entry of the last chunk is the one place that holds its address.
      const at = find(fixture.bytes, (last as StoredChunk).address);
      const damaged = fixture.damaged((bytes) => {
        bytes[at] = (bytes[at] as number) ^ 1;
      });
      expectFormat(() => read(damaged, path), path);
    }
  });

  test('an address beyond the end of the file, or none where there must be one', () => {
    const fixture = new Fixture('chunk-indexes');
    for (const path of ['implicit', 'fixed', 'extensible', 'tree']) {
      const { layout, grid } = gridOf(fixture, `/${path}`);
      for (const address of [fixture.file.end - 8, 2 ** 50]) {
        const index = { ...layout.index, address };
        expectFormat(() => fixture.run(readChunkIndex(fixture.file, index, grid)), `${path} at ${address}`);
      }
      const nowhere = { ...layout.index, address: -1 };
      expect(fixture.run(readChunkIndex(fixture.file, nowhere, grid)), path).toEqual([]);
    }
  });

  test('an index for a fixed number of chunks, where the dataset has another number or none', () => {
    const fixture = new Fixture('chunk-indexes');
    for (const path of ['implicit', 'fixed']) {
      const { layout, grid } = gridOf(fixture, `/${path}`);
      const other = { ...grid, maxShape: [6, 900] };
      const unlimited = { ...grid, maxShape: [6, null] };
      if (path === 'fixed') expectFormat(() => fixture.run(readChunkIndex(fixture.file, layout.index, other)), path);
      expectFormat(() => fixture.run(readChunkIndex(fixture.file, layout.index, unlimited)), path);
    }
  });

  test('a version 1 B-tree: nodes of another type, keys that are on no grid', () => {
    const fixture = new Fixture('chunk-trees');
    const { layout } = gridOf(fixture, '/one node');
    const root = layout.index.address;
    for (const [place, value] of [
      [0, 0],
      [4, 0],
      [5, 1],
      [7, 0xff],
      [24 + 8, 1],
    ] as const) {
      const damaged = fixture.damaged((bytes) => {
        bytes[root + place] = value;
      });
      expectFormat(() => read(damaged, '/one node'), `byte ${place}`);
    }
  });
});

function find(bytes: Uint8Array, value: number): number {
  const view = new DataView(bytes.buffer);
  const places = [...bytes.keys()].filter(
    (at) => at + 8 <= bytes.length && view.getUint32(at, true) === value && view.getUint32(at + 4, true) === 0,
  );
  expect(places).toHaveLength(1);
  return places[0] as number;
}
