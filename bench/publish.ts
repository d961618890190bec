import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CreateOptions, DatasetOptions } from 'h5log';
import { File } from './built-h5log.ts';
import { median, report } from './report.ts';

type Publish = NonNullable<CreateOptions['publish']>;

const ROWS = 1_000_000;
const ROUNDS = 5;

/** What it costs that every HDF5 program can read a log: time and bytes, beside the same without. */
export async function publish(): Promise<void> {
  // Files that are not published are among the cases: their warnings are not for whoever runs them.
  const warned = process.listeners('warning');
  process.removeAllListeners('warning');
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    closings(folder);
    tiles(folder);
    reopenings(folder);
    manyDatasets(folder);
    await stream(folder);
    multiples(folder);
  } finally {
    rmSync(folder, { recursive: true });
    for (const listener of warned) process.on('warning', listener);
  }
}

/** Milliseconds of the processor: disks and other programs make wall-clock times of such calls differ by more than publishing does. */
function spent(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

/** Milliseconds of the processor that a call takes. */
function timed(call: () => void): number {
  const start = process.cpuUsage();
  call();
  return spent(start);
}

/** Interleaved turns with and without; what each takes at best, in milliseconds of the processor. */
function beside(turn: (publish: Publish) => number, way: Publish, rounds: number): { never: number; ours: number } {
  let [never, ours] = [Infinity, Infinity];
  for (let round = 0; round < rounds; round++) {
    never = Math.min(never, turn('never'));
    ours = Math.min(ours, turn(way));
  }
  return { never, ours };
}

/** Closing a file of many rows: in order, in random order, and so that nothing is joined, which 'auto' does not publish. */
function closings(folder: string): void {
  const row = new Float64Array(2);
  const close = (step: number, apart: number, way: Publish): number => {
    const path = join(folder, 'rows.h5');
    const file = File.createSync(path, { publish: way });
    const rows = file.createDataset('rows', { dtype: 'float64', shape: [ROWS * apart, 2] });
    const where = { start: [0, 0], count: [1, 2] };
    for (let i = 0, at = 0; i < ROWS; i++, at = (at + step) % ROWS) {
      row[0] = at;
      where.start[0] = at * apart;
      rows.write(row, where);
    }
    file.flushSync();
    const isJoined = apart === 1;
    const time = timed(() => file.closeSync());
    const found = File.openSync(path);
    if (way === 'auto' && (found.published === found.sequence) !== isJoined)
      throw new Error(`'auto' has ${isJoined ? 'not ' : ''}published`);
    found.closeSync();
    return time;
  };
  const ordered = beside((way) => close(1, 1, way), 'auto', ROUNDS);
  report("1,000,000 rows in order, 'auto' at close beside 'never'", ordered.ours - ordered.never, 'ms', { limit: 60 });
  // 7,919 is prime to the number of rows: every row is written once, none beside the one before.
  const random = beside((way) => close(7919, 1, way), 'auto', 3);
  report('1,000,000 rows out of order, which the flush joins', random.ours - random.never, 'ms', { limit: 60 });
  const apart = beside((way) => close(7919, 3, way), 'auto', 3);
  report("1,000,000 rows that do not join, which 'auto' skips", apart.ours - apart.never, 'ms', { limit: 20 });
}

const TILE = 1024;
const SIDE = 16_384;

/** 1 GiB in tiles, flushed row by row of tiles. By the clock: how long the system takes to write decides, and differs from run to run. */
function tiles(folder: string): void {
  const data = new Float32Array(TILE * TILE).fill(1.5);
  let bytes = 0;
  const users = { never: [] as number[], ours: [] as number[] };
  const write = (way: Publish): number => {
    const path = join(folder, 'tiles.h5');
    // Freeing the blocks of the file before must not count.
    rmSync(path, { force: true });
    const start = performance.now();
    const before = process.cpuUsage();
    const file = File.createSync(path, { publish: way });
    const field = file.createDataset('field', { dtype: 'float32', shape: [SIDE, SIDE], chunks: [TILE, TILE] });
    for (let y = 0; y < SIDE; y += TILE) {
      for (let x = 0; x < SIDE; x += TILE) field.write(data, { start: [y, x], count: [TILE, TILE] }, { copy: false });
      file.flushSync();
    }
    file.closeSync();
    bytes = statSync(path).size;
    const ended = performance.now() - start;
    users[way === 'never' ? 'never' : 'ours'].push(process.cpuUsage(before).user);
    return ended;
  };
  const { never, ours } = beside(write, 'flush', 4);
  report("1 GiB in tiles, 'flush': time beside 'never'", ours / never, 'x', { limit: 1.15 });
  const own = Math.min(...users.ours) / Math.min(...users.never);
  report("1 GiB in tiles, 'flush': time of the processor outside of the system", own, 'x');
  report("1 GiB in tiles, 'flush': bytes of the file, of those posted", bytes / (4 * SIDE * SIDE), 'x', {
    limit: 1.01,
  });
}

const STEPS = 1000;
const KIB = 1024;

/** Opened, appended to by 1 KiB, closed, again and again. */
function reopenings(folder: string): void {
  const path = join(folder, 'reopened.h5');
  const made = File.createSync(path, { publish: 'close' });
  made.createDataset('rows', { dtype: 'uint8', shape: [0, KIB], maxShape: [null, KIB] });
  made.closeSync();
  const row = new Uint8Array(KIB).fill(3);
  const [times, growths]: [number[], number[]] = [[], []];
  for (let i = 0; i < STEPS; i++) {
    const before = statSync(path).size;
    times.push(
      timed(() => {
        const file = File.openSync(path, { mode: 'r+' });
        file.dataset('rows', 'uint8').append(row);
        file.closeSync();
      }),
    );
    growths.push(statSync(path).size - before);
  }
  const label = "opened, 1 KiB appended, closed, 1,000 times with 'close'";
  const part = (list: readonly number[], from: number): number => median(list.slice(from, from + 100));
  report(`${label}: median of the last 100`, part(times, STEPS - 100), 'ms');
  report(`${label}: last 100 / first 100, time`, part(times, STEPS - 100) / part(times, 0), 'x', { limit: 2 });
  const mean = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;
  report(`${label}: growth of a step`, mean(growths) / KIB, 'KiB', { limit: 70 });
  // The last chunk is written anew each time: what a step adds follows how full it is, over some 64 steps.
  report(`${label}: last 128 / first 128, growth`, mean(growths.slice(-128)) / mean(growths.slice(0, 128)), 'x', {
    limit: 1.5,
  });
}

/** Many small datasets. */
function manyDatasets(folder: string): void {
  const path = join(folder, 'many.h5');
  const time = timed(() => {
    const file = File.createSync(path, { publish: 'flush' });
    for (let i = 0; i < 10_000; i++) {
      const options = { dtype: 'float64', shape: [0], maxShape: [null], chunks: [64] } as const;
      file.createDataset(`d${i}`, options).append(Float64Array.of(i));
    }
    file.closeSync();
  });
  const label = "10,000 datasets of one 8-byte row, chunks of 64, 'flush'";
  report(`${label}: file`, statSync(path).size / 2 ** 20, 'MiB', { limit: 64 });
  report(`${label}: time`, time, 'ms');
}

/** A stream of small flushes, published once a second. */
async function stream(folder: string): Promise<void> {
  const rows = 100_000;
  const row = new Uint8Array(KIB).fill(5);
  const write = async (way: Publish): Promise<{ time: number; bytes: number }> => {
    const path = join(folder, 'stream.h5');
    const start = process.cpuUsage();
    const file = await File.create(path, { publish: way });
    const dataset = file.createDataset('rows', { dtype: 'uint8', shape: [0, KIB], maxShape: [null, KIB] });
    for (let i = 0; i < rows; i++) {
      dataset.append(row);
      await file.flush();
    }
    await file.close();
    return { time: spent(start), bytes: statSync(path).size };
  };
  const never = await write('never');
  const ours = await write({ interval: 1000 });
  const label = '100,000 rows of 1 KiB, a flush each, interval of 1,000 ms';
  report(`${label}: time beside 'never'`, ours.time / never.time, 'x', { limit: 1.3 });
  report(`${label}: bytes beside 'never'`, ours.bytes / never.bytes, 'x', { limit: 1.5 });
}

/** Bytes of the file as a multiple of those posted, where HDF5 cannot point at what was posted. */
function multiples(folder: string): void {
  const cases: readonly [string, Partial<DatasetOptions<'float32'>>, readonly [number, number]][] = [
    ['chunks of which a flush has a quarter', { shape: [1024, 1024], chunks: [128, 128] }, [64, 64]],
    ['a dataset of its size from the beginning, in rows', { shape: [1024, 1024] }, [16, 1024]],
    ['filtered chunks', { shape: [1024, 1024], chunks: [64, 1024], filters: [{ deflate: 1 }] }, [64, 1024]],
    ['blocks of eight chunks', { shape: [1024, 1024], chunks: [128, 128] }, [128, 1024]],
    ['two unlimited dimensions', { shape: [0, 0], maxShape: [null, null], chunks: [128, 128] }, [128, 128]],
  ];
  for (const [what, options, [height, width]] of cases) {
    for (const way of ['flush', 'close'] as const) {
      const path = join(folder, 'multiple.h5');
      const file = File.createSync(path, { publish: way });
      const field = file.createDataset('field', { dtype: 'float32', shape: [], ...options });
      const data = Float32Array.from({ length: height * width }, (_, i) => Math.sin(i) * 1000);
      let posted = 0;
      for (let y = 0; y < 1024; y += height) {
        for (let x = 0; x < 1024; x += width) {
          if (options.maxShape)
            field.resize([Math.max(y + height, field.shape[0] ?? 0), Math.max(x + width, field.shape[1] ?? 0)]);
          field.write(data, { start: [y, x], count: [height, width] });
          posted += data.byteLength;
        }
        file.flushSync();
      }
      file.closeSync();
      report(`${what}, '${way}': bytes of the file, of those posted`, statSync(path).size / posted, 'x');
    }
  }
}
