import { describe, expect, test } from 'vitest';
import { FileBytes } from '../../../../src/hdf5/format/file-bytes.ts';
import { FileExtent } from '../../../../src/hdf5/graph/object-node.ts';
import { type ChunkEntry, type ChunkGrid, readChunkIndex } from '../../../../src/hdf5/layouts/chunks/chunk-index.ts';
import { ChunkTree } from '../../../../src/hdf5/layouts/chunks/chunk-tree.ts';
import { driveSync, type Io } from '../../../../src/storage/io.ts';
import { memoryStorage } from '../../../../src/storage/memory.ts';
import { count } from '../../../counts.ts';
import { keepInput } from '../../../failures.ts';
import { random, repeats, seed } from '../../../seed.ts';
import { expectFormat, FLIPS } from '../../fixture.ts';
import { type CheckedTree, checkTree } from './tree-rules.ts';

const gridOf = (rank: number, filtered: boolean): ChunkGrid => ({
  maxShape: new Array<null>(rank).fill(null),
  chunk: new Array<number>(rank).fill(2),
  elementSize: 4,
  filtered,
});

/** A file to which trees are appended; nothing in it is ever changed. */
class AppendedFile {
  readonly storage = memoryStorage(new Uint8Array(96));
  readonly file = new FileBytes(0, 96);

  run<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  /** Gives the extents addresses, one after the other, and writes them unless the commit is to fail. */
  commit(extents: readonly FileExtent[], fails = false): void {
    let end = this.storage.blocking.size();
    const first = end;
    for (const extent of extents) {
      extent.address = end;
      end += extent.size;
    }
    const parts = extents.flatMap((extent) => extent.parts());
    expect(parts.reduce((sum, part) => sum + part.length, 0)).toBe(end - first);
    if (fails) return;
    this.storage.blocking.write(parts, first);
    this.file.end = end;
  }

  /** As if a commit of something else came between. */
  grow(bytes: number): void {
    this.storage.blocking.write([new Uint8Array(bytes)], this.storage.blocking.size());
    this.file.end = this.storage.blocking.size();
  }

  append(tree: ChunkTree): number {
    this.commit([tree.extent]);
    const { address } = tree.extent;
    tree.committed(this.file);
    return address;
  }

  check(address: number, grid: ChunkGrid): CheckedTree {
    return checkTree(this.storage.bytes(), address, grid.chunk.length, grid.filtered);
  }
}

const chunkAt = (cell: readonly number[], address: number, grid: ChunkGrid): ChunkEntry => ({
  cell,
  address,
  size: grid.filtered ? 1 + (address % 1000) : 4 * 2 ** grid.chunk.length,
  mask: grid.filtered ? address % 4 : 0,
});

const line = (from: number, to: number, grid: ChunkGrid): ChunkEntry[] =>
  Array.from({ length: to - from }, (_, i) => chunkAt([from + i], 1000 + 8 * (from + i), grid));

describe('a version 2 B-tree of chunks', () => {
  const grid = gridOf(1, false);

  test('that is empty has a header only, and no root', () => {
    const file = new AppendedFile();
    const tree = ChunkTree.empty(grid);
    expect(tree.extent.size).toBe(38);
    const address = file.append(tree);
    expect(file.check(address, grid)).toEqual({ chunks: [], nodes: 0, depth: 0 });
    const opened = file.run(ChunkTree.open(file.file, address, grid));
    expect(opened.count).toBe(0);
    expect(file.run(opened.find(Float64Array.of(0)))).toEqual([null]);
    expect(file.run(opened.all())).toEqual([]);
  });

  test.each([1, 2, 126, 127, 128, 253, 254, 255, 5000, 20_000])(
    'of %i chunks that are put at once has balanced nodes',
    (n) => {
      const file = new AppendedFile();
      const tree = file.run(ChunkTree.empty(grid).edit({ put: line(0, n, grid) }));
      expect(tree.count).toBe(n);
      const address = file.append(tree);
      const checked = file.check(address, grid);
      expect(checked.chunks.map(({ cell }) => cell[0])).toEqual(Array.from({ length: n }, (_, i) => i));
      // As few nodes as can be: a leaf has room for 127 records of 16 bytes.
      const leaves = Math.ceil((n + 1) / 128);
      expect(checked.nodes).toBeLessThanOrEqual(leaves === 1 ? 1 : leaves + Math.ceil(leaves / 40) + 1);
    },
  );

  test('appends the path to what changed, and nothing else', () => {
    const file = new AppendedFile();
    const tree = file.run(ChunkTree.empty(grid).edit({ put: line(0, 20_000, grid) }));
    file.append(tree);
    const next = file.run(tree.edit({ put: [chunkAt([777], 5, grid)] }));
    expect(next.extent.size).toBe(38 + 3 * 2048);
    const address = file.append(next);
    const opened = file.run(ChunkTree.open(file.file, address, grid));
    expect(file.run(opened.find(Float64Array.of(777, 778)))).toMatchObject([
      { address: 5 },
      { address: 1000 + 8 * 778 },
    ]);
    expect(file.run(tree.find(Float64Array.of(777)))).toMatchObject([{ address: 1000 + 8 * 777 }]);
  });

  test('stays the same one where nothing changes', () => {
    const file = new AppendedFile();
    const tree = file.run(ChunkTree.empty(grid).edit({ put: line(0, 1000, grid) }));
    file.append(tree);
    expect(file.run(tree.edit({ remove: [[5000], [1001]] }))).toBe(tree);
    expect(file.run(tree.edit({}))).toBe(tree);
    expect(file.run(tree.shrink([1000]))).toBe(tree);
  });

  test('holds the addresses that the commit gives to chunks which are written with it', () => {
    const file = new AppendedFile();
    const data = new FileExtent(32, () => [new Uint8Array(32).fill(7)]);
    const tree = file.run(
      ChunkTree.empty(grid).edit({ put: [...line(0, 300, grid), { ...chunkAt([300], 0, grid), address: data }] }),
    );
    // A commit that fails is planned again, elsewhere.
    file.commit([data, tree.extent], true);
    file.grow(1000);
    file.commit([data, tree.extent]);
    const stored = file.check(tree.extent.address, grid).chunks;
    expect(stored[300]).toMatchObject({ cell: [300], address: data.address });
    expect(data.address).toBe(1096);
    // Made of the tree before it was told that the commit is in the file, and after.
    const before = file.run(tree.edit({ put: line(301, 302, grid) }));
    expect(before.extent.size).toBe(38 + 4 * 2048);
    tree.committed(file.file);
    const after = file.run(tree.edit({ put: line(301, 302, grid) }));
    expect(after.extent.size).toBe(38 + 2 * 2048);
    for (const next of [before, after]) {
      const { chunks } = file.check(file.append(next), grid);
      expect(chunks).toHaveLength(302);
      expect(chunks[300]).toMatchObject({ cell: [300], address: data.address });
    }
  });

  test('is made of another one whose commit was never written', () => {
    const file = new AppendedFile();
    const tree = file.run(ChunkTree.empty(grid).edit({ put: line(0, 1000, grid) }));
    file.append(tree);
    const lost = file.run(tree.edit({ put: line(1000, 1200, grid) }));
    file.commit([lost.extent], true);
    const next = file.run(lost.edit({ remove: [[1199]] }));
    expect(file.check(file.append(next), grid).chunks).toHaveLength(1199);
    const other = file.run(tree.edit({ remove: [[0]] }));
    expect(file.check(file.append(other), grid).chunks.map(({ cell }) => cell[0])).toEqual(
      Array.from({ length: 999 }, (_, i) => i + 1),
    );
  });

  test('takes the last of several chunks for a cell, in any order, and puts a cell that is also removed', () => {
    const file = new AppendedFile();
    const put = [chunkAt([3], 30, grid), chunkAt([1], 10, grid), chunkAt([3], 31, grid), chunkAt([2], 20, grid)];
    const tree = file.run(ChunkTree.empty(grid).edit({ put, remove: [[2], [9]] }));
    expect(file.run(tree.all()).map(({ cell, address }) => [...cell, address])).toEqual([
      [1, 10],
      [2, 20],
      [3, 31],
    ]);
  });

  test('refuses cells of another rank, and sizes that a record has no room for', () => {
    const file = new AppendedFile();
    const filtered = gridOf(1, true);
    expect(() => file.run(ChunkTree.empty(grid).edit({ remove: [[1, 2]] }))).toThrow(
      expect.objectContaining({ code: 'SHAPE' }),
    );
    const large = { cell: [0], address: 8, size: 65_536, mask: 0 };
    expect(() => file.run(ChunkTree.empty(filtered).edit({ put: [large] }))).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
  });

  test('of a million chunks is made, written and found in a few seconds', { timeout: 60_000 }, () => {
    const file = new AppendedFile();
    const of = gridOf(2, true);
    const put = Array.from({ length: 1_000_000 }, (_, i) => chunkAt([Math.floor(i / 1000), i % 1000], 64 * i, of));
    const began = performance.now();
    const tree = file.run(ChunkTree.empty(of).edit({ put }));
    const address = file.append(tree);
    expect(performance.now() - began).toBeLessThan(10_000);
    const opened = file.run(ChunkTree.open(file.file, address, of));
    const cells = Float64Array.from({ length: 20_000 }, (_, i) => (i % 2 === 0 ? i % 1000 : (i * 7) % 1000));
    const found = file.run(opened.find(cells));
    found.forEach((chunk, k) => {
      expect(chunk?.address).toBe(64 * ((cells[2 * k] as number) * 1000 + (cells[2 * k + 1] as number)));
    });
    // So many nodes are not kept after their commit, but read again.
    const next = file.run(tree.edit({ put: [chunkAt([500, 500], 3, of)] }));
    expect(next.extent.size).toBeLessThanOrEqual(38 + 5 * 2048);
  });
});

// ------------------------------------------------------------------ random programs

const RANKS = [1, 1, 2, 2, 3, 4, 32];

/** Random edits, commits, failures and reopenings, against a map. */
function program(from: number): { steps: number; depth: number } {
  const next = random(from);
  const below = (n: number): number => Math.floor(next() * n);
  const rank = RANKS[below(RANKS.length)] as number;
  const grid = gridOf(rank, below(2) === 0);
  const wide = rank > 8;
  const file = new AppendedFile();
  const nodeSize = wide ? 2048 : [256, 512, 2048][below(3)];
  let tree = ChunkTree.empty(grid, nodeSize);
  let model = new Map<string, ChunkEntry>();
  const extent = wide ? 3 : Math.max(4, Math.ceil((below(3) === 0 ? 20_000 : 1500) ** (1 / rank)));
  const anyCell = (): number[] => Array.from({ length: rank }, (_, d) => (wide && d > 5 ? 0 : below(extent)));
  let address = 0;
  let deepest = 0;
  const steps = 4 + below(16);
  for (let step = 0; step < steps; step++) {
    const changed = new Map(model);
    let edited = tree;
    const kind = below(8);
    if (kind === 0 && step > 2) {
      const counts = Array.from({ length: rank }, () => (below(3) === 0 ? below(extent + 1) : extent));
      edited = file.run(tree.shrink(counts));
      for (const [key, { cell }] of changed) if (cell.some((c, d) => c >= (counts[d] as number))) changed.delete(key);
    } else {
      const size = [1, 3, 40, 400, 3000][below(5)] as number;
      const put: ChunkEntry[] = [];
      const remove: number[][] = [];
      const base = anyCell();
      for (let i = below(size) + 1; i > 0; i--) {
        // Single cells anywhere, or one after the other as an append makes them.
        const cell = kind < 4 ? anyCell() : [...base.slice(0, -1), (base[rank - 1] as number) + i];
        if (kind % 2 === 0) put.push(chunkAt(cell, 8 * (1 + below(2 ** 30)), grid));
        else if (kind < 6) remove.push(cell);
        else
          (below(2) === 0 ? remove : []).push([
            ...(model.get([...model.keys()][below(model.size)] ?? '')?.cell ?? cell),
          ]);
      }
      edited = file.run(tree.edit({ put, remove }));
      for (const cell of remove) changed.delete(cell.join());
      for (const chunk of put) changed.set(chunk.cell.join(), chunk);
    }
    expect(edited.count).toBe(changed.size);
    const fate = below(10);
    if (fate === 0) {
      // The commit fails and the tree before it goes on.
      file.commit([edited.extent], true);
      continue;
    }
    tree = edited;
    model = changed;
    if (fate < 3) continue; // more changes come before the commit
    if (fate === 3) file.commit([tree.extent], true);
    if (below(3) === 0) file.grow(below(5000));
    file.commit([tree.extent]);
    address = tree.extent.address;
    if (fate !== 4) tree.committed(file.file);
    const checked = file.check(address, grid);
    deepest = Math.max(deepest, checked.depth);
    expect(checked.chunks).toHaveLength(model.size);
    const wrong = checked.chunks.filter(({ cell, address: at, size, mask }) => {
      const wanted = model.get(cell.join());
      return at !== wanted?.address || (grid.filtered && size !== wanted.size) || mask !== wanted.mask;
    });
    expect(wrong).toEqual([]);
    if (fate === 5 || fate === 4) tree = file.run(ChunkTree.open(file.file, address, grid));
    const some = [...model.values()].filter((_, i) => i % 97 === 0).map(({ cell }) => cell);
    const found = file.run(tree.find(Float64Array.from([...some, base9(rank)].flat())));
    some.forEach((cell, i) => {
      expect(found[i]).toEqual(model.get(cell.join()));
    });
    expect(found[some.length]).toBe(null);
    if (model.size > 0) {
      const index = { kind: 'btree2', address, parameters: new Uint8Array(6) } as const;
      const all = file.run(tree.all());
      expect(JSON.stringify(file.run(readChunkIndex(file.file, index, grid)))).toBe(JSON.stringify(all));
    }
  }
  return { steps, depth: deepest };
}

const base9 = (rank: number): number[] => new Array<number>(rank).fill(10 ** 9);
describe('random edits of a version 2 B-tree of chunks', () => {
  test('leave what a map holds after the same edits, in nodes that follow the rules', { timeout: 600_000 }, () => {
    const first = seed('chunk tree model');
    const programs = repeats(1000);
    let steps = 0;
    let deepest = 0;
    for (let i = 0; i < programs; i++) {
      try {
        const done = program(first + i);
        steps += done.steps;
        deepest = Math.max(deepest, done.depth);
      } catch (error) {
        keepInput('seed.txt', `${first + i}`);
        throw new Error(`program ${first + i}: ${error instanceof Error ? error.message : error}`, { cause: error });
      }
    }
    count('chunk tree model', { programs, steps });
    expect(deepest).toBeGreaterThan(1);
  });
});

describe('the nodes of a version 2 B-tree of chunks', () => {
  /** A tree in a file whose nodes were damaged since. */
  function damaged(chunks: number): { file: AppendedFile; tree: ChunkTree } {
    const grid = gridOf(1, false);
    const file = new AppendedFile();
    const tree = file.run(ChunkTree.empty(grid).edit({ put: line(0, chunks, grid) }));
    const address = file.append(tree);
    const size = file.storage.blocking.size() - address - 38;
    file.storage.blocking.write([new Uint8Array(size)], address + 38);
    return { file, tree };
  }

  test('stay in memory when they were written', () => {
    const { file, tree } = damaged(10_000);
    expect(file.run(tree.find(Float64Array.of(777)))).toMatchObject([{ address: 1000 + 8 * 777 }]);
  });

  test('are read again if they are many', () => {
    const { file, tree } = damaged(2_200_000);
    expectFormat(() => file.run(tree.find(Float64Array.of(777))));
  });
});

describe('a damaged version 2 B-tree of chunks', () => {
  test('is refused, whatever byte changes', () => {
    const grid = gridOf(1, true);
    const file = new AppendedFile();
    const tree = file.run(ChunkTree.empty(grid, 512).edit({ put: line(0, 100, grid) }));
    const address = file.append(tree);
    const bytes = file.storage.bytes();
    const readAll = (damaged: Uint8Array): void => {
      const storage = memoryStorage(damaged);
      const opened = driveSync(storage, ChunkTree.open(new FileBytes(0, damaged.length), address, grid));
      driveSync(storage, opened.edit({ put: line(200, 201, grid) }));
      expect(driveSync(storage, opened.all())).toHaveLength(100);
    };
    readAll(bytes);
    let refused = 0;
    for (let at = address; at < bytes.length; at++) {
      for (const flip of FLIPS) {
        const damaged = bytes.slice();
        damaged[at] = (damaged[at] as number) ^ flip;
        // What is behind the checksum of a node means nothing.
        const used = bytes[at] !== 0 || at < address + 38;
        if (used) {
          expectFormat(() => readAll(damaged), `byte ${at}`);
          refused++;
        }
      }
    }
    expect(refused).toBeGreaterThan(1000);
  });
});
