import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import h5wasm, { type Dataset } from 'h5wasm/node';
import { expect, test } from 'vitest';
import type { FileExtent } from '../../src/hdf5/graph/object-node.ts';
import type { ChunkEntry, ChunkGrid } from '../../src/hdf5/layouts/chunks/chunk-index.ts';
import { ChunkTree } from '../../src/hdf5/layouts/chunks/chunk-tree.ts';
import { chunkedByTree } from '../../src/hdf5/layouts/new-dataset.ts';
import { simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import type { FilterEntry } from '../../src/hdf5/messages/filter-pipeline.ts';
import { rewriteDataset } from '../../src/hdf5/write/rewrite.ts';
import { File } from '../../src/index.ts';
import { count } from '../counts.ts';
import { fixtureBytes } from '../hdf5/fixture.ts';
import { checkTree } from '../hdf5/layouts/chunks/tree-rules.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { cutChunks, Draft } from './driver.ts';

// A dataset whose chunk index is a version 2 B-tree is changed in turn by h5log and by libhdf5: shrunk, grown, chunks added and
// removed. Both must find what the other left, and the tree must keep the rules of its nodes.

const DEFLATE: FilterEntry = { id: 1, name: '', flags: 1, values: [1] };

/** A file with one dataset, and what it ought to hold. */
interface Case {
  readonly path: string;
  readonly chunk: readonly number[];
  readonly filters: readonly FilterEntry[];
  /** The largest shape. */
  readonly limit: readonly number[];
  shape: readonly number[];
  values: Float64Array;
}

const product = (sizes: readonly number[]): number => sizes.reduce((all, n) => all * n, 1);

function gridOf({ chunk, filters }: Case): ChunkGrid {
  return { maxShape: chunk.map(() => null), chunk, elementSize: 8, filtered: filters.length > 0 };
}

const LIMITS: readonly [limit: readonly number[], chunk: readonly number[]][] = [
  [[700], [1]],
  [
    [60, 60],
    [1, 1],
  ],
  [
    [40, 300],
    [7, 3],
  ],
  [
    [12, 9, 14],
    [1, 2, 1],
  ],
  [
    [6, 5, 7, 6],
    [1, 1, 2, 1],
  ],
  [
    [9, 4, ...new Array<number>(28).fill(1), 6, 3],
    [2, 1, ...new Array<number>(28).fill(1), 1, 1],
  ],
];

function randomShape(limit: readonly number[], next: () => number): number[] {
  return limit.map((most) => (next() < 0.3 ? most : 1 + Math.floor(next() * most)));
}

/** The same elements in another shape; new ones are 0. */
function reshaped(values: Float64Array, from: readonly number[], to: readonly number[]): Float64Array {
  const out = new Float64Array(product(to));
  for (let i = 0; i < out.length; i++) {
    let rest = i;
    let at = 0;
    let step = 1;
    let isInside = true;
    for (let d = to.length - 1; d >= 0; d--) {
      const c = rest % (to[d] as number);
      rest = Math.floor(rest / (to[d] as number));
      isInside &&= c < (from[d] as number);
      at += c * step;
      step *= from[d] as number;
    }
    if (isInside) out[i] = values[at] as number;
  }
  return out;
}

/** One commit of h5log's: another shape, new and changed chunks, removed ones. */
function change(given: Case, next: () => number): void {
  const { path, chunk, filters, limit } = given;
  const draft = Draft.open(path);
  const node = draft.at('/d');
  const { layout } = draft.structure.dataset(node);
  if (layout?.kind !== 'chunked' || layout.index.kind !== 'btree2') throw new Error('not a B-tree');
  const grid = gridOf(given);
  const { file } = draft.structure.loader;
  const tree = draft.now(ChunkTree.open(file, layout.index.address, grid));
  // libhdf5 keeps the same rules.
  expect(checkTree(readFileSync(path), layout.index.address, chunk.length, grid.filtered).chunks).toHaveLength(
    tree.count,
  );
  const shape = next() < 0.5 ? given.shape : randomShape(limit, next);
  const values = reshaped(given.values, given.shape, shape);
  const counts = shape.map((size, d) => Math.ceil(size / (chunk[d] as number)));
  const kept = draft.now(tree.shrink(counts));
  const there = new Set(draft.now(kept.all()).map(({ cell }) => cell.join()));
  const touched = [0.001, 0.1, 0.6][Math.floor(next() * 3)] as number;
  const remove: number[][] = [];
  const isWritten = new Map<string, boolean>();
  for (let i = 0; i < values.length; i++) {
    const cell = cellOf(i, shape, chunk);
    const key = cell.join();
    let written = isWritten.get(key);
    if (written === undefined) {
      const die = next();
      written = die < touched;
      if (die > 1 - touched / 4 && there.has(key)) remove.push(cell);
      isWritten.set(key, written);
    }
    if (written) values[i] = Math.floor(next() * 1e6);
  }
  const removed = new Set(remove.map((cell) => cell.join()));
  for (let i = 0; i < values.length; i++) if (removed.has(cellOf(i, shape, chunk).join())) values[i] = 0;
  const isAtEdge = (cell: readonly number[]): boolean =>
    cell.some((c, d) => (c + 1) * (chunk[d] as number) > (shape[d] as number));
  // Chunks that the new shape cuts must be 0 behind it: the dataset may grow again.
  const put: ChunkEntry[] = cutChunks(values, shape, chunk, filters, (cell) => {
    const key = cell.join();
    return !isWritten.get(key) && !(there.has(key) && !removed.has(key) && isAtEdge(cell));
  });
  const edited = draft.now(kept.edit({ put, remove }));
  const data = put.map(({ address }) => address as FileExtent);
  rewriteDataset(draft.structure, node, {
    space: simpleSpace(shape, grid.maxShape),
    layout: chunkedByTree(chunk, edited, data),
    filters,
  });
  draft.commit();
  edited.committed(file);
  draft.close();
  given.shape = shape;
  given.values = values;
}

function cellOf(i: number, shape: readonly number[], chunk: readonly number[]): number[] {
  const cell: number[] = [];
  for (let rest = i, d = shape.length - 1; d >= 0; d--) {
    cell[d] = Math.floor((rest % (shape[d] as number)) / (chunk[d] as number));
    rest = Math.floor(rest / (shape[d] as number));
  }
  return cell;
}

function create(path: string, limit: readonly number[], chunk: readonly number[], filtered: boolean): Case {
  const filters = filtered ? [DEFLATE] : [];
  const shape = limit.map((most) => Math.ceil(most / 2));
  const given: Case = { path, chunk, filters, limit, shape, values: new Float64Array(product(shape)) };
  const grid = gridOf(given);
  const draft = Draft.create(path);
  draft.structure.createDataset(draft.root, 'd', {
    dtype: 'float64',
    space: simpleSpace(shape, grid.maxShape),
    layout: chunkedByTree(chunk, ChunkTree.empty(grid)),
    filters,
  });
  draft.close();
  return given;
}

/** What h5log reads must be what is expected. */
function expectOurs({ path, shape, values }: Case): void {
  const file = File.openSync(path);
  const dataset = file.dataset('d');
  expect(dataset.shape).toEqual(shape);
  expect(Buffer.compare(Buffer.from((dataset.readSync() as Float64Array).buffer), Buffer.from(values.buffer))).toBe(0);
  file.closeSync();
}

// Compares each dataset with what is expected, changes it, and says what it holds afterwards.
const EDIT = `
import h5py, json, random, sys, numpy as np
folder, seed, cases = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
after = []
for k, case in enumerate(cases):
    expected = np.fromfile(f'{folder}/{k}.bin').reshape(case['shape'])
    with h5py.File(case['path'], 'r') as f:
        d = f['d']
        assert d.shape == tuple(case['shape']), (case['path'], d.shape, case['shape'])
        assert np.array_equal(d[...], expected), case['path']
        chunks = d.id.get_num_chunks() if hasattr(d.id, 'get_num_chunks') else None
    r = random.Random(seed + k)
    with h5py.File(case['path'], 'r+') as f:
        d = f['d']
        for _ in range(r.randint(0, 4)):
            if r.random() < 0.5:
                d.resize([r.randint(1, n) if r.random() < 0.6 else n for n in case['limit']])
            else:
                begin = [r.randrange(n) for n in d.shape]
                box = tuple(slice(b, r.randint(b + 1, n) if r.random() < 0.5 else b + 1) for b, n in zip(begin, d.shape))
                d[box] = r.randint(1, 10**6)
    with h5py.File(case['path'], 'r') as f:
        d = f['d']
        d[...].tofile(f'{folder}/{k}.bin')
        after.append(list(d.shape))
json.dump(after, sys.stdout)
`;

function takeTurns(folder: string, cases: readonly Case[], turn: number): void {
  cases.forEach(({ values }, k) => {
    writeFileSync(join(folder, `${k}.bin`), values);
  });
  const input = JSON.stringify(cases.map(({ path, shape, limit }) => ({ path, shape, limit })));
  const shapes = JSON.parse(pythonSync(EDIT, [folder, String(turn)], input)) as number[][];
  cases.forEach((given, k) => {
    given.shape = shapes[k] as number[];
    const bytes = readFileSync(join(folder, `${k}.bin`));
    given.values = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  });
}

withOracle('python', 'version 2 B-trees of chunks that h5log and libhdf5 1.10 change in turn', () => {
  test('hold what both wrote', { timeout: 600_000 }, () => {
    const from = seed('chunk tree turns');
    const next = random(from);
    const folder = temporaryDirectory();
    const files = Math.max(LIMITS.length * 2, repeats(100));
    const turns = 8;
    const cases = Array.from({ length: files }, (_, k) => {
      const [limit, chunk] = LIMITS[k % LIMITS.length] as (typeof LIMITS)[number];
      return create(join(folder, `${k}.h5`), limit, chunk, Math.floor(k / LIMITS.length) % 2 === 1);
    });
    for (let turn = 0; turn < turns; turn++) {
      for (const given of cases) {
        change(given, next);
        expectOurs(given);
      }
      takeTurns(folder, cases, (from + turn * files) % 2 ** 31);
      for (const given of cases) expectOurs(given);
    }
    count('chunk tree turns', { files, turns: files * turns });
  });
});

test('version 2 B-trees of chunks that h5log and libhdf5 2.0 change in turn hold what both wrote', {
  timeout: 600_000,
}, async () => {
  await h5wasm.ready;
  const next = random(seed('chunk tree turns 2.0'));
  const folder = temporaryDirectory();
  const files = Math.max(8, repeats(40));
  for (let k = 0; k < files; k++) {
    // h5wasm writes boxes of at most a few dimensions.
    const [limit, chunk] = LIMITS[k % 4] as (typeof LIMITS)[number];
    const given = create(join(folder, `w${k}.h5`), limit, chunk, Math.floor(k / 4) % 2 === 1);
    for (let turn = 0; turn < 4; turn++) {
      change(given, next);
      const file = new h5wasm.File(given.path, 'a');
      const dataset = file.get('d') as Dataset;
      expect(dataset.shape).toEqual(given.shape);
      expect(
        Buffer.compare(Buffer.from((dataset.value as Float64Array).buffer), Buffer.from(given.values.buffer)),
      ).toBe(0);
      const shape = randomShape(limit, next);
      dataset.resize(shape);
      given.values = reshaped(given.values, given.shape, shape);
      given.shape = shape;
      const again = randomShape(limit, next);
      dataset.resize(again);
      given.values = reshaped(given.values, shape, again);
      given.shape = again;
      const box = again.map((n) => {
        const begin = Math.floor(next() * n);
        return [begin, begin + 1 + Math.floor(next() * (n - begin))] as [number, number];
      });
      const size = product(box.map(([begin, end]) => end - begin));
      dataset.write_slice(box, new Float64Array(size).fill(turn + 1));
      for (let i = 0; i < given.values.length; i++) {
        const at = cellOf(
          i,
          again,
          chunk.map(() => 1),
        );
        if (at.every((c, d) => c >= (box[d]?.[0] as number) && c < (box[d]?.[1] as number))) given.values[i] = turn + 1;
      }
      file.close();
      expectOurs(given);
    }
  }
  count('chunk tree turns 2.0', { files, turns: files * 4 });
});

test('a tree of HDF5 2.0, whose sizes have eight bytes, is still read by it after h5log changed it', async () => {
  await h5wasm.ready;
  const path = join(temporaryDirectory(), 'wide.h5');
  writeFileSync(path, fixtureBytes('version-2.0'));
  const draft = Draft.open(path);
  const node = draft.at('/tree');
  const { layout, space, filters } = draft.structure.dataset(node);
  if (layout?.kind !== 'chunked' || space.kind !== 'simple') throw new Error('not chunked');
  const { chunk } = layout;
  const grid = { maxShape: space.maxShape, chunk, elementSize: 8, filtered: true };
  const tree = draft.now(ChunkTree.open(draft.structure.loader.file, layout.index.address, grid));
  const shape = [6, 5];
  const values = Float64Array.from({ length: 30 }, (_, i) => (i < 20 ? i : -i));
  const put = cutChunks(values, shape, chunk, filters, ([row]) => row !== 2);
  const edited = draft.now(tree.edit({ put }));
  const data = put.map(({ address }) => address as FileExtent);
  rewriteDataset(draft.structure, node, {
    space: simpleSpace(shape, space.maxShape),
    layout: chunkedByTree(chunk, edited, data),
    filters,
  });
  draft.close();
  const file = new h5wasm.File(path, 'r');
  expect(Array.from((file.get('tree') as Dataset).value as Float64Array)).toEqual(Array.from(values));
  file.close();
  const ours = File.openSync(path);
  expect(Array.from(ours.dataset('tree').readSync() as Float64Array)).toEqual(Array.from(values));
  ours.closeSync();
});
