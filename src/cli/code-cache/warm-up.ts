// Runs what most programs do with h5log, so that V8 compiles it, and keeps the code in a file. A thread of its own runs this.

import { mkdtempSync, rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Script } from 'node:vm';
import { parentPort } from 'node:worker_threads';

let core: Script | undefined;
let cache: URL | undefined;
// loadCore of core.ts calls this.
Object.assign(globalThis, {
  [Symbol.for('h5log.keepCore')](script: Script, file: URL): void {
    core = script;
    cache = file;
  },
});
const { File, select, T } = await import('../../index.ts');

const folder = mkdtempSync(join(tmpdir(), 'h5log-code-'));
try {
  await warmUp(join(folder, 'log.h5'), join(folder, 'published.h5'));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (!core || !cache) throw new Error('the core was not loaded from its text');
const code = core.createCachedData();
const path = fileURLToPath(cache);
await writeFile(`${path}.new`, code);
await rename(`${path}.new`, path);
parentPort?.postMessage({ path, bytes: code.length });

/** Two files, each created, written, read, opened again and changed: one as several ranks write them, one that is published. */
async function warmUp(log: string, published: string): Promise<void> {
  for (const [path, publish] of [
    [log, 'never'],
    [published, 'auto'],
  ] as const) {
    const file = File.createSync(path, { publish });
    file.attributes.set('title', 'a title');
    file.attributes.set('numbers', Float64Array.of(1, 2));
    const group = file.createGroup('group');
    const fixed = group.createDataset('fixed', {
      dtype: 'float64',
      shape: [40, 50],
      fill: -1,
      attributes: { units: 'K' },
    });
    const grows = file.createDataset('grows', {
      dtype: 'float32',
      shape: [0, 8],
      maxShape: [null, 8],
      attributes: { n: 1 },
    });
    const packed = group.createDataset('packed', {
      dtype: 'int32',
      shape: [64, 64],
      chunks: [32, 32],
      filters: ['shuffle', { deflate: 4 }],
    });
    const names = file.createDataset('names', { dtype: T.string(), shape: [4] });
    const pairs = file.createDataset('pairs', { dtype: T.compound({ a: 'int16', b: 'float64' }), shape: [4] });
    for (let i = 0; i < 20; i++) {
      const attributes = {
        long_name: `variable ${i}`,
        units: 'm/s',
        scale: Float32Array.of(1),
        levels: Int32Array.of(1, 2),
      };
      group.createDataset(`v${i}`, { dtype: 'float64', shape: [10, 20], maxShape: [null, 20], attributes });
    }
    fixed.write(new Float64Array(2000));
    fixed.write(
      Float64Array.of(1, 2, 3, 4),
      select.blocks(
        [
          [0, 0],
          [2, 2],
        ],
        [
          [1, 2],
          [1, 2],
        ],
      ),
      { copy: false },
    );
    fixed.write(Float64Array.of(1, 2, 3, 4), { start: [4, 4], count: [2, 2] });
    fixed.writeMany(Float64Array.of(1, 2), [0, 0, 5, 5], [1, 1]);
    for (let i = 0; i < 10; i++) grows.append(new Float32Array(16));
    packed.write(new Int32Array(4096));
    names.write(['a', 'b', 'c', 'd']);
    pairs.write([{ a: 1, b: 2 }], { start: [1], count: [1] });
    file.flushSync();
    grows.append(new Float32Array(8));
    await file.flush();
    fixed.readSync({ start: [0, 0], count: [2, 2] });
    await file.close();
    await readAll(path);
    const again = await File.open(path, { mode: 'r+' });
    again.dataset('grows').append(new Float32Array(8));
    await again.close();
  }
}

async function readAll(path: string): Promise<void> {
  const file = await File.open(path);
  for (const name of ['group/fixed', 'grows', 'group/packed', 'names', 'pairs']) {
    const dataset = file.dataset(name);
    for (const attribute of dataset.attributes.keys()) dataset.attributes.get(attribute);
    await dataset.read();
    dataset.readSync({ start: dataset.shape.map(() => 1), count: dataset.shape.map(() => 2) });
  }
  for (const name of file.keys()) file.get(name);
  await file.dataset('group/fixed').readMany([0, 0, 2, 2], [2, 2]);
  await file.close();
}
