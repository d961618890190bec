import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { Cursor, UNDEFINED } from '../../../../src/hdf5/format/cursor.ts';
import { FileBytes } from '../../../../src/hdf5/format/file-bytes.ts';
import { chunkFinder, WantedChunks } from '../../../../src/hdf5/layouts/chunks/chunk-finder.ts';
import { readChunkIndex, type StoredChunk } from '../../../../src/hdf5/layouts/chunks/chunk-index.ts';
import { parseDataspace } from '../../../../src/hdf5/messages/dataspace.ts';
import { parseLayout } from '../../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../../src/hdf5/messages/message-types.ts';
import { gridOf } from '../../../../src/space/grid.ts';
import { pythonSync, withOracle } from '../../../oracles.ts';
import { random, seed } from '../../../seed.ts';
import { temporaryDirectory } from '../../../temporary.ts';
import { expectFormat, FIXTURES, Fixture } from '../../fixture.ts';

const DATASETS = FIXTURES.filter((name) => name !== 'shared').flatMap((name) =>
  new Fixture(name).objects.flatMap(([path, { chunks }]) => (chunks === undefined ? [] : [[name, path] as const])),
);

/** A finder that reads no index whole, and what is in the index. */
function open(fixture: Fixture, path: string) {
  const { superblock } = fixture;
  const layout = parseLayout(new Cursor(fixture.one(path, MESSAGE.layout), 0), superblock);
  const space = parseDataspace(new Cursor(fixture.one(path, MESSAGE.dataspace), 0), superblock.lengthSize);
  if (layout.kind !== 'chunked' || space.kind !== 'simple') throw new Error(`${path} is not chunked`);
  const { chunk, elementSize, index } = layout;
  const filtered = fixture.object(path).filters !== undefined;
  const grid = { maxShape: space.maxShape, chunk, elementSize, filtered };
  const counts = gridOf(space.shape, chunk);
  const numberOf = ({ cell }: StoredChunk): number => cell.reduce((sum, c, d) => sum * (counts[d] as number) + c, 0);
  const all = fixture
    .run(readChunkIndex(fixture.file, index, grid))
    .filter(({ cell }) => cell.every((c, d) => c < (counts[d] as number)));
  const known = new Map(all.map((stored) => [numberOf(stored), stored]));
  const finder = chunkFinder(fixture.file, index, grid, space.shape, 0);
  const find = (numbers: readonly number[]): WantedChunks => {
    const wanted = new WantedChunks(Float64Array.from(numbers), counts);
    if (finder) fixture.run(finder.find(wanted));
    return wanted;
  };
  return { known, find, total: counts.reduce((product, n) => product * n, 1) };
}

/** Compares what was found with what reading the whole index gave. */
function expectFound(wanted: WantedChunks, known: ReadonlyMap<number, StoredChunk>): void {
  wanted.numbers.forEach((number, i) => {
    const stored = known.get(number);
    expect(wanted.addresses[i]).toBe(stored?.address ?? UNDEFINED);
    if (stored) expect([wanted.sizes[i], wanted.masks[i]]).toEqual([stored.size, stored.mask]);
  });
}

describe('chunks are found without reading the whole index', () => {
  test.each(DATASETS)('%s %s: all together, one by one, and some', (name, path) => {
    const { known, find, total } = open(new Fixture(name), path);
    const next = random(seed(`${name} ${path}`));
    const some = [...new Set(Array.from({ length: 200 }, () => Math.floor(next() * total)))].sort((a, b) => a - b);
    const every = [...new Set([...known.keys(), ...some])].sort((a, b) => a - b);
    expectFound(find(every), known);
    for (const number of every.slice(0, 300)) expectFound(find([number]), known);
    expectFound(find(some), known);
    expectFound(find([]), known);
  });

  test('a damaged node or page is refused', () => {
    const fixture = new Fixture('chunk-indexes');
    const paths = ['/fixed in pages', '/extensible in pages', '/extensible in blocks', '/tree', '/tree filtered'];
    for (const path of paths) {
      const { known } = open(fixture, path);
      const [number, stored] = [...known].at(-1) as [number, StoredChunk];
      const at = indexOfAddress(fixture.bytes, stored.address);
      const damaged = fixture.damaged((bytes) => {
        bytes[at] = (bytes[at] as number) ^ 1;
      });
      const { layout, grid, shape } = parts(damaged, path);
      const finder = chunkFinder(new FileBytes(0, damaged.bytes.length), layout.index, grid, shape, 0);
      const wanted = new WantedChunks(Float64Array.of(number), gridOf(shape, grid.chunk));
      expectFormat(() => finder && damaged.run(finder.find(wanted)), path);
    }
  });
});

function parts(fixture: Fixture, path: string) {
  const { superblock } = fixture;
  const layout = parseLayout(new Cursor(fixture.one(path, MESSAGE.layout), 0), superblock);
  const space = parseDataspace(new Cursor(fixture.one(path, MESSAGE.dataspace), 0), superblock.lengthSize);
  if (layout.kind !== 'chunked' || space.kind !== 'simple') throw new Error(`${path} is not chunked`);
  const { chunk, elementSize } = layout;
  const filtered = fixture.object(path).filters !== undefined;
  return { layout, shape: space.shape, grid: { maxShape: space.maxShape, chunk, elementSize, filtered } };
}

function indexOfAddress(bytes: Uint8Array, address: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at + 8 <= bytes.length; at++) if (view.getBigUint64(at, true) === BigInt(address)) return at;
  throw new Error(`nothing leads to ${address}`);
}

withOracle('python', 'a slice of a dataset with very many chunks', () => {
  const folder = temporaryDirectory();

  test.each([
    ['version 1 B-tree', 'earliest', '(None, None)', null],
    ['version 2 B-tree', 'latest', '(None, None)', null],
    ['version 2 B-tree, filtered', 'latest', '(None, None)', 1],
    ['extensible array', 'latest', '(None, 100)', null],
    ['extensible array, filtered', 'latest', '(None, 100)', 1],
    ['fixed array', 'latest', '(20000, 100)', null],
    ['fixed array, filtered', 'latest', '(20000, 100)', 1],
  ])('%s: reads little of the index, and the right data', async (kind, libver, maxShape, level) => {
    const path = join(folder, `${kind}.h5`);
    pythonSync(
      `import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver='${libver}') as f:
  data = np.arange(20000 * 2, dtype='i4').reshape(20000, 2)
  f.create_dataset('x', data=data, chunks=(2, 1), maxshape=${maxShape}, compression=${level ?? 'None'})`,
      [path],
    );
    const bytes = readFileSync(path);
    const memory = memoryStorage(bytes);
    const asked: { offset: number; length: number }[] = [];
    const counting = {
      name: kind,
      size: () => memory.size(),
      close: () => memory.close(),
      read: (into: Uint8Array, offset: number) => {
        asked.push({ offset, length: into.length });
        return memory.read(into, offset);
      },
    };
    const file = await File.open(counting);
    const x = file.dataset('x', 'int32');
    asked.length = 0;
    expect([...(await x.read({ start: [11_111, 0], count: [2, 2] }))]).toEqual([22_222, 22_223, 22_224, 22_225]);
    const first = asked.length;
    expect(first).toBeLessThanOrEqual(12);
    expect(asked.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(bytes.length / 3);
    expect([...(await x.read({ start: [11_115, 1], count: [2, 1] }))]).toEqual([22_231, 22_233]);
    // The nodes on the way are in memory by now.
    expect(asked.length).toBeLessThanOrEqual(first + 2);
    const all = await x.read();
    expect(all.every((value, i) => value === i)).toBe(true);
    await file.close();
  });
});
