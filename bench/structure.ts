import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import h5wasm, { Group as WasmGroup } from 'h5wasm/node';
import { File, type Group } from './built-h5log.ts';
import { median, report } from './report.ts';

/** What the structure alone costs: many objects in one commit, many small commits, and opening a file with many objects. */
export async function structure(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    manyDatasets(folder);
    smallCommits(folder, 0, 0.15);
    smallCommits(folder, 10_000, 0.3);
    await manyObjects(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const ROUNDS = 12;

function manyDatasets(folder: string): void {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    const file = File.createSync(join(folder, `many${round}.h5`), { publish: 'never' });
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
  const file = File.createSync(join(folder, `commits${datasets}.h5`), { publish: 'never' });
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

/** Opens an ordinary file with 10,000 datasets and lists them with their shapes: from a path, and over HTTP. */
async function manyObjects(folder: string): Promise<void> {
  await h5wasm.ready;
  const path = join(folder, 'objects.h5');
  const made = new h5wasm.File(path, 'w');
  for (let g = 0; g < 100; g++) {
    const group = made.create_group(`group${g}`);
    for (let i = 0; i < 100; i++)
      group.create_dataset({ name: `d${i}`, data: new Float64Array(3) }).create_attribute('units', 'K');
  }
  made.close();
  const times = { h5log: [] as number[], h5wasm: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    let start = performance.now();
    const file = File.openSync(path);
    const ours = listed(file);
    file.closeSync();
    times.h5log.push(performance.now() - start);
    start = performance.now();
    const other = new h5wasm.File(path, 'r');
    const theirs = listedByWasm(other);
    other.close();
    times.h5wasm.push(performance.now() - start);
    if (ours !== 10_000 || theirs !== 10_000) throw new Error(`${ours} and ${theirs} datasets were listed`);
  }
  const label = 'an ordinary file with 10,000 datasets, opened and listed';
  report(`${label}: median`, median(times.h5log), 'ms');
  report(`${label}: median of h5wasm`, median(times.h5wasm), 'ms');
  report(`${label}: times as fast as h5wasm`, median(times.h5wasm) / median(times.h5log), 'x', { least: 1 });
  await overHttp(path, label);
}

function listed(group: Group): number {
  let count = 0;
  for (const [, child] of group.children()) {
    if (child?.kind === 'group') count += listed(child);
    else if (child?.shape.length === 1) count++;
  }
  return count;
}

function listedByWasm(group: WasmGroup): number {
  let count = 0;
  for (const name of group.keys()) {
    const child = group.get(name);
    if (child instanceof WasmGroup) count += listedByWasm(child);
    else if (child && 'shape' in child && child.shape?.length === 1) count++;
  }
  return count;
}

/** Requests and bytes that the same costs over HTTP, and what a slice of one dataset costs with `lazy`. */
async function overHttp(path: string, label: string): Promise<void> {
  const bytes = readFileSync(path);
  const server = createServer(({ headers }, response) => {
    const [, first = 0, last = 0] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
    const end = Math.min(Number(last) + 1, bytes.length);
    response.writeHead(206, { 'content-range': `bytes ${first}-${end - 1}/${bytes.length}` });
    response.end(bytes.subarray(Number(first), end));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const whole = await File.open(url);
  listed(whole);
  report(`${label}: requests over HTTP`, whole.storageStatistics().requests, '');
  report(`${label}: MB over HTTP, of ${(bytes.length / 1e6).toFixed(1)}`, whole.storageStatistics().bytes / 1e6, 'MB');
  await whole.close();
  const lazy = await File.open(url, { lazy: true });
  await lazy.load('group50/d50');
  await lazy.dataset('group50/d50').read();
  report('  one of its datasets, with lazy: requests', lazy.storageStatistics().requests, '', { limit: 12 });
  report('  one of its datasets, with lazy: MB', lazy.storageStatistics().bytes / 1e6, 'MB', { limit: 2 });
  await lazy.close();
  server.closeAllConnections();
  server.close();
}
