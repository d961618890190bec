import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { File } from 'h5log';
import { replay as replayFile } from 'h5log/tools';
import { replay as workload } from '../src/bench/replay.ts';
import { seal } from '../src/bench/seal.ts';
import { peakMemory } from '../src/bench/workload.ts';
import { report } from './report.ts';
import { shipped } from './shipped.ts';

const ROUNDS = 5;
const MIB = 2 ** 20;
const MEMORY = 256 * MIB;

/** Log files into ordinary HDF5. */
export async function replay(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  const [input, output] = [join(folder, 'log.h5'), join(folder, 'ordinary.h5')];
  try {
    await shipped(workload, folder, ROUNDS, {
      'replay/small': { limit: 1 },
      'replay/tiles/rate': { least: 400 },
      'replay/chunks/rate': { least: 400 },
    });
    for (const kind of ['small', 'tiles', 'chunks'])
      peak(`peak memory of replay/${kind} beyond an idle process`, join(folder, `replay-${kind}.h5`), output);
    emptied(folder);
    for (const [what, tile, options] of [
      ['1-d blocks', [131_072], {}],
      ['tiles of 512x256, chunks of 500x300', [512, 256], { chunks: [500, 300] }],
    ] as const) {
      tiles(input, tile, options);
      const rate = 1024 / (await seconds(input, output));
      report(`replay 1 GiB of float64 in 1 MiB ${what} (best of 5)`, rate * 1.048576, 'MB/s', { least: 400 });
      peak('  its peak memory beyond an idle process', input, output);
    }
    filtered(input);
    const rate = 256 / (await seconds(input, output));
    report('replay 256 MiB in deflated chunks, most of them written whole (best of 5)', rate * 1.048576, 'MB/s');
    emptied(folder);
    await shipped(seal, folder, ROUNDS, { 'seal/moved': { limit: 0 } });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What was measured before takes gigabytes. */
function emptied(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
}

/** The best of five: whoever else writes to the disk only makes it slower. */
async function seconds(input: string, output: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rmSync(output, { force: true });
    times.push((await replayFile(input, output)).seconds);
  }
  return Math.min(...times);
}

/** 1 GiB in blocks of 1 MiB, in an order that is not that of the dataset. */
function tiles(path: string, tile: readonly number[], options: { chunks?: readonly number[] }): void {
  const file = File.createSync(path, { publish: 'never' });
  const shape = tile.length === 1 ? [2 ** 27] : [16_384, 8_192];
  const dataset = file.createDataset('x', { dtype: 'float64', shape, ...options });
  const grid = shape.map((size, d) => size / (tile[d] as number));
  const data = new Float64Array(2 ** 17);
  for (let i = 0; i < 1024; i++) {
    const number = (i * 619) % 1024;
    const cell =
      grid.length === 1 ? [number] : [Math.floor(number / (grid[1] as number)), number % (grid[1] as number)];
    dataset.write(data.fill(number), { start: cell.map((c, d) => c * (tile[d] as number)), count: tile });
    if (i % 64 === 63) file.flushSync();
  }
  file.closeSync();
}

function filtered(path: string): void {
  const file = File.createSync(path, { publish: 'never' });
  const options = { chunks: [256, 512], filters: ['shuffle', { deflate: 4 }] } as const;
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [4096, 8192], ...options });
  const slab = new Float64Array(256 * 8192);
  for (let row = 0; row < 4096; row += 256) {
    dataset.write(
      slab.map((_, i) => Math.floor(i / 100) + row),
      { start: [row, 0], count: [256, 8192] },
    );
  }
  dataset.write(slab.subarray(0, 1000), { start: [100, 100], count: [10, 100] });
  file.closeSync();
}

function peak(what: string, input: string, output: string): void {
  const script = fileURLToPath(import.meta.url);
  const child = spawnSync(process.execPath, [...process.execArgv, script, input, output], { encoding: 'utf8' });
  if (child.status !== 0) throw new Error(child.stderr);
  const { idle, busy } = JSON.parse(child.stdout) as { idle: number; busy: number };
  report(what, (busy - idle) / MIB, 'MiB', { limit: MEMORY / MIB + 128 });
}

const [, script, input, output] = process.argv;
if (script === fileURLToPath(import.meta.url) && input && output) {
  const idle = peakMemory();
  await replayFile(input, output, { force: true, memory: MEMORY });
  console.log(JSON.stringify({ idle, busy: peakMemory() }));
}
