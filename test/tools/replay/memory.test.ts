import { once } from 'node:events';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { startNode } from '../../child.ts';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { full } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();
const MIB = 2 ** 20;

/** Peak memory of a replay in a process of its own, beyond that of the process when it is idle. */
async function peakOf(input: string, output: string, memory: number): Promise<{ beyond: number; seconds: number }> {
  const child = startNode(new URL('./child.ts', import.meta.url), [input, output, String(memory)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (!child.stdout) throw new Error('no output');
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close') as Promise<[number]>]);
  expect(code).toBe(0);
  const { idle, busy, seconds } = JSON.parse(printed) as Record<'idle' | 'busy' | 'seconds', number>;
  return { beyond: busy - idle, seconds };
}

/** Some datasets far larger than the memory that is allowed: large tiles that do not fit the chunks, and small blocks. */
function large(path: string, mebibytes: number): void {
  const file = File.createSync(path);
  const shape = [mebibytes * 32, 4096]; // 32 KiB a row
  const tile = new Float64Array(64 * 512).map((_, i) => i);
  const datasets = [
    file.createDataset('contiguous', { dtype: 'float64', shape }),
    file.createDataset('chunked', { dtype: 'float64', shape, chunks: [50, 300] }),
    file.createDataset('wide chunks', { dtype: 'float64', shape, chunks: [mebibytes * 8, 4096] }),
    file.createDataset('filtered', {
      dtype: 'float64',
      shape,
      chunks: [50, 300],
      filters: [{ deflate: 1 }],
    }),
  ];
  for (const dataset of datasets) {
    const [height = 0, width = 0] = dataset.shape;
    for (let y = 0; y + 64 <= height; y += 64) {
      for (let x = 0; x + 512 <= width; x += 512) {
        tile[0] = y * width + x;
        dataset.write(tile, { start: [y, x], count: [64, 512] });
      }
      if (y % 512 === 0) file.flushSync();
    }
  }
  const n = 400_000;
  const starts = new Float64Array(n * 2).map((_, i) => (i % 2 === 0 ? ((i / 2) * 7919) % n : 0));
  // Lent, or the flush would join them.
  file.createDataset('small blocks', { dtype: 'float64', shape: [n, 3] }).writeMany(
    new Float64Array(n * 3).map((_, i) => i),
    starts,
    [1, 3],
    { copy: false },
  );
  file.closeSync();
}

test('memory is bounded by the option, whatever the datasets hold', { timeout: 600_000 }, async () => {
  const [input, output] = [join(folder, 'large.h5'), join(folder, 'large.out.h5')];
  const mebibytes = full ? 512 : 64;
  large(input, mebibytes);
  for (const memory of full ? [48 * MIB, 128 * MIB] : [48 * MIB]) {
    const { beyond, seconds } = await peakOf(input, output, memory);
    process.stdout.write(
      `replay of ${(statSync(input).size / MIB).toFixed(0)} MiB with memory ${memory / MIB} MiB: peak ${(beyond / MIB).toFixed(0)} MiB beyond idle, ${seconds.toFixed(1)} s\n`,
    );
    expect(beyond).toBeLessThan(memory + 128 * MIB);
    const [before, after] = [File.openSync(input), pythonSync(SUMS, [output])];
    const sums = JSON.parse(after) as Record<string, number>;
    for (const name of before.keys()) {
      const dataset = before.dataset(name, 'float64');
      let sum = 0;
      for (let row = 0; row < (dataset.shape[0] as number); row += 1024) {
        const count = [Math.min(1024, (dataset.shape[0] as number) - row), dataset.shape[1] as number];
        for (const value of dataset.readSync({ start: [row, 0], count })) sum += value;
      }
      expect(sums[name], name).toBe(sum);
    }
    before.closeSync();
    rmSync(output);
  }
});

const SUMS = `
import sys, json, h5py
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps({name: float(sum(f[name][i:i + 1024].sum() for i in range(0, f[name].shape[0], 1024))) for name in f}))
`;

withOracle(['h5dump', 'python'], 'a replay in little memory', () => {
  test('gives the same values as one in much, also without an index of all blocks', async () => {
    const input = join(folder, 'pieces.h5');
    const file = File.createSync(input);
    const shapes = { fill: -1, dtype: 'float64' } as const;
    const datasets = [
      file.createDataset('contiguous', { ...shapes, shape: [700, 9, 50] }),
      file.createDataset('zeros', { dtype: 'float64', shape: [700, 9, 50] }),
      file.createDataset('one row', { ...shapes, shape: [1, 2, 150_000] }),
      file.createDataset('chunked', { ...shapes, shape: [700, 9, 50], chunks: [13, 4, 7] }),
      file.createDataset('large chunks', {
        ...shapes,
        shape: [700, 9, 50],
        chunks: [300, 5, 50],
        maxShape: [null, 9, 50],
      }),
      file.createDataset('filtered', {
        ...shapes,
        shape: [700, 9, 50],
        chunks: [13, 4, 7],
        filters: ['shuffle', { deflate: 1 }],
      }),
    ];
    // 30,000 small blocks: an index of 64 bytes each does not fit into a MiB.
    for (const dataset of datasets) {
      const [a, b, c] = dataset.shape as [number, number, number];
      const n = dataset.path === '/filtered' ? 3000 : 30_000;
      const starts = new Float64Array(n * 3);
      for (let i = 0; i < n; i++) starts.set([(i * 311) % a, (i * 7) % b, (i * 31) % (c - 2)], i * 3);
      dataset.writeMany(
        new Float64Array(n * 3).map((_, i) => i),
        starts,
        [1, 1, 3],
      );
      dataset.write(new Float64Array(20).fill(5), { start: [0, 1, 10], count: [1, 1, 20] });
    }
    file.closeSync();
    const outputs = [256 * MIB, MIB].map((memory) => ({ memory, output: join(folder, `pieces-${memory}.h5`) }));
    for (const { memory, output } of outputs) await replay(input, output, { memory });
    h5dump('-H', ...outputs.map(({ output }) => output));
    expect(
      pythonSync(
        EQUAL,
        outputs.map(({ output }) => output),
      ).trim(),
    ).toBe('6');
    const reader = File.openSync(input);
    const seen = JSON.parse(pythonSync(BYTES, [join(folder, `pieces-${MIB}.h5`)])) as Record<string, string>;
    for (const { path } of datasets) {
      const raw = reader.dataset(path).readSync(undefined, { raw: true });
      expect(Buffer.from(seen[path.slice(1)] as string, 'base64').equals(raw), path).toBe(true);
    }
    reader.closeSync();
  });

  test('of a huge sparse dataset takes as much as there is', async () => {
    const [input, output] = [join(folder, 'huge.h5'), join(folder, 'huge.out.h5')];
    const file = File.createSync(input);
    const big = { dtype: 'float64', shape: [1e6, 1e6] } as const;
    const rows = Float64Array.of(1, 2, 3, 4, 5, 6);
    const all = [
      file.createDataset('small chunks', { ...big, chunks: [10, 10], fill: 7 }),
      file.createDataset('large chunks', { ...big, chunks: [1000, 1000], filters: [{ deflate: 1 }] }),
      file.createDataset('unlimited', { ...big, maxShape: [null, null] }),
      file.createDataset('contiguous', { dtype: 'uint8', shape: [1e5, 1e5] }),
    ];
    for (const dataset of all) {
      const [height = 0, width = 0] = dataset.shape;
      for (const [y, x] of [
        [0, 0],
        [height - 2, width - 3],
        [height / 2 - 1, width / 2 - 1],
      ] as const)
        dataset.write(rows, { start: [y, x], count: [2, 3] });
    }
    file.closeSync();
    const { dataBytes, elements } = await replay(input, output);
    expect(elements).toBe(3e12 + 1e10);
    h5dump('-H', output);
    const seen = JSON.parse(pythonSync(CORNERS, [output])) as Record<string, number[]>;
    for (const { path } of all) {
      const fill = path === '/small chunks' ? 7 : 0;
      expect(seen[path.slice(1)], path).toEqual([1, 2, 3, 4, 5, 6, fill, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]);
    }
    process.stdout.write(`replay of 3e12 elements with 72 written ones wrote ${dataBytes} bytes\n`);
    expect(dataBytes).toBeLessThan(210 * MIB);
  });
});

const EQUAL = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r') as a, h5py.File(sys.argv[2], 'r') as b:
    assert list(a) == list(b)
    for name in a:
        assert a[name].chunks == b[name].chunks and np.array_equal(a[name][...], b[name][...]), name
    print(len(a))
`;
const BYTES = `
import sys, json, base64, h5py
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps({name: base64.b64encode(f[name][...].tobytes()).decode() for name in f}))
`;
const CORNERS = `
import sys, json, h5py
with h5py.File(sys.argv[1], 'r') as f:
    def corners(d):
        (h, w) = d.shape
        boxes = [d[0:2, 0:3], d[7:8, 9:10], d[h - 2:h, w - 3:w], d[h // 2 - 1:h // 2 + 1, w // 2 - 1:w // 2 + 2]]
        return [float(v) for box in boxes for v in box.ravel()]
    print(json.dumps({name: corners(f[name]) for name in f}))
`;

test('a box out of a large block reads little more than the box', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'never' });
  const [height, width] = [64, 65_536];
  const block = new Float64Array(height * width).map((_, i) => i);
  file
    .createDataset('x', { dtype: 'float64', shape: [height, width] })
    .write(block, { start: [0, 0], count: [height, width] });
  file.createDataset('y', { dtype: 'float64', shape: [4, height, width / 4] }).write(block);
  file.closeSync();
  let bytes = 0;
  const { blocking } = storage;
  if (!blocking) throw new Error('memory can be read at once');
  const read = (into: Uint8Array, offset: number): number => {
    bytes += into.length;
    return blocking.read(into, offset);
  };
  const reader = File.openSync({ ...storage, blocking: { ...blocking, read } });
  const x = reader.dataset('x', 'float64');
  x.readSync({ start: [0, 0], count: [1, 1] });
  bytes = 0;
  const box = x.readSync({ start: [1, 500], count: [60, 1000] });
  expect(bytes).toBeLessThan(2 * 60 * 1000 * 8 + 60 * 16_384);
  box.forEach((value, i) => {
    expect(value).toBe((1 + Math.floor(i / 1000)) * width + 500 + (i % 1000));
  });
  // Wide rows with small gaps between them, in windows; and three dimensions.
  const wide = x.readSync({ start: [3, 10], count: [61, width - 20] });
  for (let i = 0; i < wide.length; i += 997) {
    const row = Math.floor(i / (width - 20));
    expect(wide[i]).toBe((3 + row) * width + 10 + (i % (width - 20)));
  }
  const y = reader.dataset('y', 'float64').readSync({ start: [1, 2, 3], count: [3, 61, 16_000] });
  for (let i = 0; i < y.length; i += 991) {
    const [a, b, c] = [Math.floor(i / (61 * 16_000)), Math.floor(i / 16_000) % 61, i % 16_000];
    expect(y[i]).toBe(((1 + a) * height + 2 + b) * (width / 4) + 3 + c);
  }
  reader.closeSync();
});
