import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { peakMemory } from '../src/bench/workload.ts';
import { File, verify } from './built-h5log.ts';
import { PYTHON, pythonLacks } from './peers/python.ts';
import { median, report } from './report.ts';

const OBJECTS = 100_000;
const ROUNDS = 5;
const MIB = 2 ** 20;

/** What large numbers cost: of objects when a file is opened for writing, of commits when it is verified or followed. */
export async function many(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    await changes(folder);
    await verification(join(folder, 'commits.h5'), 60_000);
    following(join(folder, 'followed.h5'), 10_000);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Opens a file of 100,000 objects for writing, writes to one dataset, flushes and closes; each time in a process of its own. */
async function changes(folder: string): Promise<void> {
  for (const [publish, holds] of [
    ['auto', ''],
    ['never', ''],
    ['auto', ', each with a row'],
  ] as const) {
    const ours = join(folder, `ours-${publish}${holds.length}.h5`);
    const file = File.createSync(ours, { publish });
    for (let g = 0; g < 100; g++) {
      const group = file.createGroup(`g${g}`);
      for (let i = 0; i < OBJECTS / 100; i++) {
        const dataset = group.createDataset(`d${i}`, { dtype: 'float64', shape: [4] });
        if (holds) dataset.write(new Float64Array(4).fill(i));
      }
    }
    file.closeSync();
    change(ours, 'g50/d50', `of h5log, 100 groups, publish: '${publish}'${holds}`, { seconds: 0.3, mebibytes: 250 });
  }
  const missing = await pythonLacks('h5py', 'python3-h5py');
  if (missing) {
    console.log(`skipped: ${missing}`);
    return;
  }
  for (const [groups, dataset] of [
    [1, 'g0/d50'],
    [100, 'g50/d50'],
  ] as const) {
    const path = join(folder, `h5py-${groups}.h5`);
    const script = `
import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    for g in range(${groups}):
        group = f.create_group(f'g{g}')
        for i in range(${OBJECTS / groups}): group.create_dataset(f'd{i}', data=np.arange(4.0))
`;
    const made = spawnSync(PYTHON, ['-c', script, path], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(made.stderr);
    change(path, dataset, `of h5py, ${groups === 1 ? 'one group' : '100 groups'}`, { seconds: 3, mebibytes: 500 });
  }
}

function change(path: string, dataset: string, whose: string, limits: { seconds: number; mebibytes: number }): void {
  const seconds: number[] = [];
  const memory: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    copyFileSync(path, `${path}.copy`);
    const args = [...process.execArgv, fileURLToPath(import.meta.url), `${path}.copy`, dataset];
    const child = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (child.status !== 0) throw new Error(child.stderr);
    const measured = JSON.parse(child.stdout) as { seconds: number; peak: number };
    seconds.push(measured.seconds);
    memory.push(measured.peak / MIB);
  }
  const label = `${OBJECTS.toLocaleString('en')} datasets ${whose}: open r+, write to one, flush, close`;
  report(`${label} (best of ${ROUNDS})`, Math.min(...seconds), 's', { limit: limits.seconds });
  report('  median', median(seconds), 's');
  report('  peak memory of the process', Math.max(...memory), 'MiB', { limit: limits.mebibytes });
}

function child(path: string, dataset: string): void {
  const start = performance.now();
  const file = File.openSync(path, { mode: 'r+' });
  file.dataset(dataset, 'float64').write(Float64Array.of(5, 6, 7, 8));
  file.flushSync();
  file.closeSync();
  console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000, peak: peakMemory() }));
}

async function verification(path: string, commits: number): Promise<void> {
  appending(path, commits);
  const seconds: number[] = [];
  for (let round = 0; round < 3; round++) {
    const found = await verify(path);
    if (!found.sound || found.commits.length !== commits + 2) throw new Error(`${path} should be sound`);
    seconds.push(found.seconds);
  }
  report(`verify of ${commits.toLocaleString('en')} commits of 1 KiB (best of 3)`, Math.min(...seconds), 's', {
    limit: 4,
  });
}

/** Makes a file with so many commits of a row each; `done` is called after each. */
function appending(path: string, commits: number, done: (row: number) => void = () => {}): void {
  const file = File.createSync(path, { publish: 'never' });
  const rows = file.createDataset('x', { dtype: 'uint8', shape: [0, 1024], maxShape: [null, 1024] });
  file.flushSync();
  const row = new Uint8Array(1024);
  for (let i = 0; i < commits; i++) {
    row.fill(i);
    rows.append(row);
    file.flushSync();
    done(i);
  }
  file.closeSync();
}

/** A reader that follows a writer, commit by commit. */
function following(path: string, commits: number): void {
  const times: number[] = [];
  let reader: File | null = null;
  appending(path, commits, (row) => {
    reader ??= File.openSync(path);
    const start = performance.now();
    reader.refreshSync();
    const [value] = reader.dataset('x', 'uint8').readSync({ start: [row, 0], count: [1, 16] });
    times.push(performance.now() - start);
    if (value !== row % 256) throw new Error(`row ${row} begins with ${value}`);
  });
  const part = commits / 10;
  const [first, last] = [median(times.slice(0, part)), median(times.slice(-part))];
  const label = `refresh and a small read after each of ${commits.toLocaleString('en')} commits`;
  report(`${label}: median of the last ${part}`, last, 'ms', { limit: 0.5 });
  report('  last / first', last / first, 'x', { limit: 1.5 });
}

const [, script, path, dataset] = process.argv;
if (script === fileURLToPath(import.meta.url) && path && dataset) child(path, dataset);
