import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { File } from 'h5log';
import { median, report } from './report.ts';

/** What the structure alone costs: many objects in one commit, and many small commits. */
export function structure(): void {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    manyDatasets(folder);
    smallCommits(folder, 0, 0.15);
    smallCommits(folder, 10_000, 0.3);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const ROUNDS = 12;

function manyDatasets(folder: string): void {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    const file = File.createSync(join(folder, `many${round}.h5`));
    for (let i = 0; i < 1000; i++) {
      const { attributes } = file.createDataset(`d${i}`, { dtype: 'float64', shape: [10, 20], maxShape: [null, 20] });
      attributes.set('units', 'K');
      attributes.set('offset', i);
      attributes.set('range', new Float32Array([0, i]));
    }
    file.flushSync();
    times.push(performance.now() - start);
    file.closeSync();
  }
  const label = '1,000 datasets with 3 attributes each, created and committed';
  report(`${label}: first (cold)`, times[0] as number, 'ms', { limit: 60 });
  report(`${label}: median of the later (warm) ones`, median(times.slice(ROUNDS / 2)), 'ms', { limit: 60 });
}

const COMMITS = 10_000;
const PART = 1000;
const SIZE = 1024;

/** Each commit appends 1 KiB to a dataset. */
function smallCommits(folder: string, datasets: number, limit: number): void {
  const file = File.createSync(join(folder, `commits${datasets}.h5`));
  for (let i = 0; i < datasets; i++) file.createDataset(`dataset${i}`, { dtype: 'float32', shape: [100] });
  const series = file.createDataset('series', { dtype: 'uint8', shape: [COMMITS, SIZE] });
  file.flushSync();
  const data = new Uint8Array(SIZE).fill(7);
  const times: number[] = [];
  let bytes = 0;
  for (let k = 0; k < COMMITS; k++) {
    const start = performance.now();
    series.write(data, { start: [k, 0], count: [1, SIZE] });
    bytes += file.flushSync().bytes;
    times.push(performance.now() - start);
  }
  file.closeSync();
  const first = median(times.slice(0, PART));
  const last = median(times.slice(-PART));
  const mean = times.reduce((sum, t) => sum + t, 0) / times.length;
  const label = `1 KiB commits, ${datasets.toLocaleString('en')} datasets in the root`;
  report(`${label}: mean`, mean, 'ms', { limit });
  report(`${label}: median of the first ${PART}`, first, 'ms', { limit });
  report(`${label}: median of the last ${PART}`, last, 'ms', { limit });
  report(`${label}: last / first`, last / first, 'x', { limit: 1.5 });
  report(`${label}: growth beyond the data`, bytes / COMMITS - SIZE, 'bytes', { limit: 2048 });
}
