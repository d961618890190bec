import { join } from 'node:path';
import { File, T } from 'h5log';
import { runThreads } from 'h5log/threads';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { Draft } from '../../interop/driver.ts';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { counting, sealAndCompare } from './sealed.ts';

const folder = temporaryDirectory();
let files = 0;
const newPath = (): string => join(folder, `${files++}.h5`);

/** Writes a file; `write` gets it open. */
async function make(write: (file: File) => void | Promise<void>): Promise<string> {
  const path = newPath();
  const file = await File.create(path, { publish: 'never' });
  await write(file);
  await file.close();
  return path;
}

withOracle(['python', 'h5dump'], 'a sealed dataset is read by h5py and h5dump as it was by us', () => {
  const tiles = new URL('./tiles-rank.ts', import.meta.url);

  test('tiles of four ranks: chunks where they are', async () => {
    const path = newPath();
    await runThreads(4, tiles, { path });
    const { ways, seen } = await sealAndCompare(path);
    expect(ways).toEqual({ '/plain': 'chunked 0', '/packed': 'chunked 0' });
    expect(seen['/plain']).toMatchObject({ chunks: [8, 16], filters: [] });
    expect(seen['/packed']).toMatchObject({ chunks: [8, 16], filters: ['gzip'] });
  });

  test('data in subfiles: copied to the other file, refused in place', async () => {
    const path = newPath();
    await runThreads(4, tiles, { path, subfiles: 2 });
    await expect(sealAndCompare(path)).rejects.toMatchObject({ code: 'UNSUPPORTED', message: /subfiles/ });
    const to = newPath();
    const { ways, seen } = await sealAndCompare(path, { to });
    expect(h5dump('-A', to)).not.toMatch(/_COMMITS|_int_att|_token|_ID/);
    expect(ways).toEqual({ '/plain': `copied ${32 * 48 * 8}`, '/packed': expect.stringMatching(/^copied \d+$/) });
    expect(seen['/packed']).toMatchObject({ chunks: [8, 16], filters: ['gzip'] });
  });

  test('tiles of four flushes, some of them written again as a whole: the newest are the chunks', async () => {
    const path = await make(async (file) => {
      const t = file.createDataset('t', { dtype: 'int32', shape: [40, 60] });
      for (let flush = 0; flush < 4; flush++) {
        for (let c = 0; c < 3; c++)
          t.write(counting(new Int32Array(200), flush * 10_000 + c * 1000), {
            start: [flush * 10, c * 20],
            count: [10, 20],
          });
        if (flush > 1) t.write(new Int32Array(200).fill(-flush), { start: [0, 20], count: [10, 20] });
        await file.flush();
      }
    });
    const { ways, result } = await sealAndCompare(path);
    expect(ways).toEqual({ '/t': 'chunked 0' });
    expect(result.datasets[0]?.pieces).toBe(12);
  });

  test.each([
    ['deflate', [{ deflate: 6 }], ['gzip']],
    ['shuffle and deflate', ['shuffle', { deflate: 1 }], ['shuffle', 'gzip']],
    ['fletcher32', ['fletcher32'], ['fletcher32']],
  ] as const)('whole chunks with %s: the streams are the chunks', async (_name, filters, names) => {
    const path = await make((file) => {
      const t = file.createDataset('t', { dtype: 'float32', shape: [40, 60], chunks: [10, 20], filters: [...filters] });
      t.write(counting(new Float32Array(2400)));
    });
    const { ways, seen } = await sealAndCompare(path);
    expect(ways).toEqual({ '/t': 'chunked 0' });
    expect(seen['/t']?.filters).toEqual(names);
  });

  test('a grid whose last tiles are partial: only these are moved', async () => {
    const path = await make((file) => {
      const plain = file.createDataset('plain', { dtype: 'int16', shape: [35, 50], fill: -1 });
      for (let r = 0; r < 35; r += 10)
        for (let c = 0; c < 50; c += 20) {
          const count = [Math.min(10, 35 - r), Math.min(20, 50 - c)] as const;
          plain.write(counting(new Int16Array(count[0] * count[1]), 100 * r + c), { start: [r, c], count });
        }
      const packed = file.createDataset('packed', {
        dtype: 'int16',
        shape: [35, 50],
        chunks: [10, 20],
        filters: [{ deflate: 6 }],
        fill: -1,
      });
      packed.write(counting(new Int16Array(35 * 50)));
    });
    const { ways, result, seen } = await sealAndCompare(path);
    // Rows 30 to 34, and columns 40 to 49: 3 + 3 of 12 tiles.
    expect(ways['/plain']).toBe(`chunked ${6 * 10 * 20 * 2}`);
    expect(seen['/plain']?.chunks).toEqual([10, 20]);
    const packed = result.datasets.find(({ path: name }) => name === '/packed');
    expect(packed).toMatchObject({ way: 'chunked', pieces: 12 });
    expect(packed?.moved).toBeGreaterThan(0);
    expect(packed?.moved).toBeLessThan(6 * 10 * 20 * 2);
  });

  test('one whole write: contiguous, also over older blocks', async () => {
    const path = await make(async (file) => {
      const a = file.createDataset('a', { dtype: 'float64', shape: [30, 7] });
      const b = file.createDataset('b', { dtype: 'float64', shape: [30, 7], chunks: [10, 3] });
      for (let r = 0; r < 30; r += 3) b.write(new Float64Array(5), { start: [r, 1], count: [1, 5] });
      await file.flush();
      a.write(counting(new Float64Array(210)));
      b.write(counting(new Float64Array(210), 0.5));
    });
    expect((await sealAndCompare(path)).ways).toEqual({ '/a': 'contiguous 0', '/b': 'contiguous 0' });
  });

  test('row after row, joined by the flush: contiguous, or chunks of them', async () => {
    const path = await make(async (file) => {
      const one = file.createDataset('one', { dtype: 'float64', shape: [64, 100] });
      const three = file.createDataset('three', { dtype: 'float64', shape: [64, 100] });
      const records = file.createDataset('records', { dtype: 'float64', shape: [64, 100], maxShape: [null, 100] });
      const chunks = file.createDataset('chunks', {
        dtype: 'float64',
        shape: [64, 100],
        maxShape: [null, 100],
        chunks: [4, 100],
      });
      for (let r = 0; r < 64; r++) {
        const row = counting(new Float64Array(100), r * 100);
        for (const dataset of [one, records, chunks]) dataset.write(row, { start: [r, 0], count: [1, 100] });
      }
      for (let r = 0; r < 64; r++) {
        three.write(counting(new Float64Array(100), r), { start: [r, 0], count: [1, 100] });
        if (r === 15 || r === 39) await file.flush();
      }
    });
    const { ways, seen } = await sealAndCompare(path);
    expect(ways).toEqual({
      '/one': 'contiguous 0',
      '/three': 'chunked 0',
      '/records': 'chunked 0',
      '/chunks': 'chunked 0',
    });
    expect(seen['/three']?.chunks).toEqual([8, 100]);
    expect(seen['/chunks']?.chunks).toEqual([4, 100]);
  });

  test('irregular overlapping blocks: a virtual dataset without overlaps', async () => {
    const next = random(seed('overlapping blocks'));
    const pick = (n: number): number => Math.floor(next() * n);
    const kinds: { [way: string]: number; virtual: number } = { virtual: 0 };
    for (let run = 0; run < repeats(60); run++) {
      const path = await make(async (file) => {
        const shape = [[97], [40, 31], [13, 17, 11], [5, 7, 6, 9]][run % 4] as number[];
        const maxShape = run % 3 === 0 ? shape.map((n, d) => (d === 0 ? null : n)) : shape;
        const t = file.createDataset('t', { dtype: 'float32', shape, maxShape, fill: 0.25 });
        const other = file.createDataset('other', { dtype: 'uint8', shape: [1000] });
        for (let k = 0; k < 2 + pick(25); k++) {
          const start = shape.map((n) => pick(n));
          const count = shape.map((n, d) => 1 + pick(n - (start[d] as number)));
          t.write(counting(new Float32Array(count.reduce((p, n) => p * n, 1)), k * 1000), { start, count });
          // So that data does not begin at multiples of an element.
          const size = 1 + pick(9);
          other.write(new Uint8Array(size).fill(k), { start: [pick(900)], count: [size] });
          if (pick(3) === 0) await file.flush();
        }
      });
      const { result } = await sealAndCompare(path);
      for (const { way } of result.datasets) kinds[way] = (kinds[way] ?? 0) + 1;
    }
    expect(kinds.virtual).toBeGreaterThan(0);
    count('seals of overlapping blocks', { files: repeats(60), ...kinds });
  });

  test('thousands of pieces, of several datasets: virtual', async () => {
    const path = await make((file) => {
      const a = file.createDataset('a', { dtype: 'float32', shape: [4000, 8], fill: 1 });
      const b = file.createDataset('b', { dtype: 'uint16', shape: [7001] });
      // Squares that touch no grid, each with a hole in it that is written later.
      for (let i = 0; i < 400; i++)
        a.write(counting(new Float32Array(49), i), { start: [i * 10 + (i % 3), 1], count: [7, 7] });
      for (let i = 0; i < 400; i++) a.write(Float32Array.of(-i), { start: [i * 10 + 4, 3], count: [1, 1] });
      for (let i = 0; i < 990; i++) b.write(counting(new Uint16Array(3), i), { start: [i * 7 + (i % 3)], count: [3] });
    });
    const { result, ways } = await sealAndCompare(path);
    expect(ways).toEqual({ '/a': 'virtual 0', '/b': 'virtual 0' });
    console.log(`virtual datasets of ${result.datasets.map(({ pieces }) => pieces).join(' and ')} pieces`);
  });

  test('behind a user block: addresses count from its end', async () => {
    const path = newPath();
    pythonSync("import h5py, sys; h5py.File(sys.argv[1], 'w', userblock_size=1024).close()", [path]);
    Draft.addLog(path);
    const file = await File.open(path, { mode: 'r+' });
    file.createDataset('whole', { dtype: 'int32', shape: [6] }).write(counting(new Int32Array(6)));
    const tiles = file.createDataset('tiles', { dtype: 'int32', shape: [8, 6] });
    const edges = file.createDataset('edges', { dtype: 'int32', shape: [7, 6] });
    const pieces = file.createDataset('pieces', { dtype: 'int32', shape: [40] });
    for (const start of [4, 0]) {
      tiles.write(counting(new Int32Array(24), start), { start: [start, 0], count: [4, 6] });
      const rows = start === 4 ? 3 : 4;
      edges.write(counting(new Int32Array(rows * 6), start), { start: [start, 0], count: [rows, 6] });
      pieces.write(counting(new Int32Array(17), start), { start: [start * 3], count: [17] });
      await file.flush();
    }
    await file.close();
    expect((await sealAndCompare(path)).ways).toEqual({
      '/whole': 'contiguous 0',
      '/tiles': 'chunked 0',
      '/edges': `chunked ${4 * 6 * 4}`,
      '/pieces': 'virtual 0',
    });
  });

  test('more pieces than a virtual dataset should have: copied', async () => {
    const path = await make((file) => {
      const t = file.createDataset('t', { dtype: 'uint16', shape: [9001], fill: 3 });
      for (let i = 0; i < 9001; i += 2) t.write(Uint16Array.of(i), { start: [i], count: [1] });
      const limits = file.createDataset('records', {
        dtype: 'uint16',
        shape: [9001],
        maxShape: [null],
        chunks: [1000],
        fill: 3,
      });
      for (let i = 1; i < 9001; i += 2) limits.write(Uint16Array.of(i), { start: [i], count: [1] });
    });
    const { ways, seen } = await sealAndCompare(path);
    expect(ways).toEqual({ '/t': `copied ${9001 * 2}`, '/records': `copied ${9 * 1000 * 2}` });
    expect(seen['/records']).toMatchObject({ chunks: [1000], maxShape: [null] });
  });

  test('an unlimited dimension with missing records: fill', async () => {
    const path = await make(async (file) => {
      const t = file.createDataset('t', { dtype: 'float64', shape: [0, 6], maxShape: [null, 6], fill: -999 });
      t.resize([20, 6]);
      for (const r of [0, 1, 7, 8, 13]) {
        t.write(counting(new Float64Array(6), r * 10), { start: [r, 0], count: [1, 6] });
        await file.flush();
      }
    });
    const { ways, result, seen } = await sealAndCompare(path);
    expect(ways).toEqual({ '/t': 'chunked 0' });
    expect(result.datasets[0]?.pieces).toBe(5);
    expect(seen['/t']).toMatchObject({ fill: '-999.0', chunks: [1, 6] });
  });

  test('a dataset that was made smaller, and larger again', async () => {
    const path = await make(async (file) => {
      const t = file.createDataset('t', { dtype: 'int32', shape: [20, 10], maxShape: [null, null], fill: 5 });
      t.write(counting(new Int32Array(200)));
      await file.flush();
      t.resize([12, 7]);
      await file.flush();
      t.resize([14, 9]);
      const s = file.createDataset('s', { dtype: 'int32', shape: [20, 10], maxShape: [20, 10] });
      s.write(counting(new Int32Array(200)));
      await file.flush();
      s.resize([5, 10]);
    });
    await sealAndCompare(path);
  });

  test('scalars, strings, compounds, enums, big-endian numbers; empty datasets', async () => {
    const point = T.compound({ x: 'float64', name: T.string({ length: 5 }), n: 'int16' });
    const path = await make(async (file) => {
      file.createDataset('scalar', { dtype: 'float64', shape: [] }).write(2.5);
      file.createDataset('packed scalar', { dtype: 'float64', shape: [], filters: [{ deflate: 5 }] }).write(2.5);
      const text = file.createDataset('text', { dtype: T.string({ length: 8 }), shape: [16] });
      text.write([...'abcdefgh'], { start: [1], count: [8] });
      text.write([...'äöüABCDEF'], { start: [4], count: [9] });
      const points = file.createDataset('points', { dtype: point, shape: [4, 2] });
      for (let i = 0; i < 4; i++)
        points.write(
          [
            { x: i, name: 'p', n: 1 },
            { x: -i, name: 'quite', n: 2 },
          ],
          { start: [i, 0], count: [1, 2] },
        );
      points.write([{ x: 9, name: '', n: 3 }], { start: [1, 1], count: [1, 1] });
      const big = file.createDataset('big', {
        dtype: T.bigEndian('uint32'),
        shape: [10],
        chunks: [5],
        filters: ['shuffle', { deflate: 3 }],
      });
      big.write(counting(new Uint32Array(10), 70_000));
      file.createDataset('truth', { dtype: T.bool, shape: [3] }).write([true, false, true]);
      file.createDataset('never', { dtype: 'int8', shape: [3, 4], fill: 6 });
      file.createDataset('nothing', { dtype: 'int8', shape: [0, 4], maxShape: [null, 4] });
      file.createDataset('no size', { dtype: 'int8', shape: [0] });
      file.createDataset('unwritten chunks', {
        dtype: 'int8',
        shape: [30],
        chunks: [7],
        filters: [{ deflate: 1 }],
        fill: 1,
      });
    });
    const { ways } = await sealAndCompare(path);
    expect(ways).toEqual({
      '/scalar': 'contiguous 0',
      '/packed scalar': 'copied 8',
      '/text': 'virtual 0',
      '/points': 'virtual 0',
      '/big': 'chunked 0',
      '/truth': 'contiguous 0',
      '/never': 'empty 0',
      '/nothing': 'empty 0',
      '/no size': 'empty 0',
      '/unwritten chunks': 'empty 0',
    });
  });
});
