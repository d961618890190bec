import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { File } from 'h5log';
import { plainWrites } from './plain.ts';
import { best, median, report } from './report.ts';

const ROWS = 1_000_000;
const GIB = 2 ** 30;

/** The log connector: posting, flushing, reading. */
export async function log(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    posts(folder);
    smallBlocks(folder);
    await stream(folder);
    manyFlushes(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Numbers 0 to n - 1 in random order; the same every time. */
function shuffled(n: number): Uint32Array {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = state % (i + 1);
    const held = order[i] as number;
    order[i] = order[j] as number;
    order[j] = held;
  }
  return order;
}

function posts(folder: string): void {
  const order = shuffled(ROWS);
  const data = new Float64Array(3);
  const objectForm: number[] = [];
  const manyForm: number[] = [];
  const starts = new Float64Array(ROWS * 2);
  for (let i = 0; i < ROWS; i++) starts[2 * i] = order[i] as number;
  const rows = new Float64Array(ROWS * 3);
  for (let round = 0; round < 7; round++) {
    const file = File.createSync(join(folder, 'posts.h5'));
    const one = file.createDataset('one', { dtype: 'float64', shape: [ROWS, 3] });
    const many = file.createDataset('many', { dtype: 'float64', shape: [ROWS, 3] });
    const where = { start: [0, 0], count: [1, 3] };
    let start = performance.now();
    for (let i = 0; i < ROWS; i++) {
      where.start[0] = order[i] as number;
      data[0] = i;
      one.write(data, where);
    }
    objectForm.push(ROWS / (performance.now() - start) / 1000);
    start = performance.now();
    many.writeMany(rows, starts, [1, 3]);
    manyForm.push(ROWS / (performance.now() - start) / 1000);
    file.closeSync();
  }
  report('posts of 1x3 float64, shuffled, object form (best of 7)', best(objectForm), 'M/s', { least: 8 });
  report('the same with writeMany (best of 7)', best(manyForm), 'M/s', { least: 20 });
}

function smallBlocks(folder: string): void {
  const path = join(folder, 'small.h5');
  const order = shuffled(ROWS);
  const file = File.createSync(path);
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3] });
  const where = { start: [0, 0], count: [1, 3] };
  const data = new Float64Array(3);
  let start = performance.now();
  for (let i = 0; i < ROWS; i++) {
    const row = order[i] as number;
    where.start[0] = row;
    data[0] = row;
    data[1] = row + 0.5;
    data[2] = -row;
    dataset.write(data, where);
  }
  file.flushSync();
  file.closeSync();
  report('1,000,000 shuffled 1x3 posts, flush, close', performance.now() - start, 'ms');
  const first: number[] = [];
  const whole: number[] = [];
  const random: number[] = [];
  const early: number[] = [];
  for (let round = 0; round < 5; round++) {
    start = performance.now();
    const reader = File.openSync(path);
    const again = reader.dataset('x', 'float64');
    again.readSync({ start: [order[7] as number, 0], count: [1, 3] });
    first.push(performance.now() - start);
    start = performance.now();
    const all = again.readSync();
    whole.push(performance.now() - start);
    for (let i = 0; i < ROWS; i += 997)
      if (all[3 * i] !== i || all[3 * i + 2] !== -i) throw new Error(`row ${i} is wrong`);
    const box = { start: [0, 0], count: [10, 3] };
    start = performance.now();
    for (let i = 0; i < 100_000; i++) {
      box.start[0] = (i * 7919) % (ROWS - 10);
      again.readSync(box);
      // The first ones pay for the tree and for pages that are not in memory yet.
      if (i + 1 === 20_000) early.push(20_000 / ((performance.now() - start) / 1000));
    }
    random.push(100_000 / ((performance.now() - start) / 1000));
    reader.closeSync();
  }
  report('open a file of 1,000,000 blocks and read one of them (median of 5)', median(first), 'ms', { limit: 300 });
  report('read all of it back (median of 5)', median(whole), 'ms', { limit: 500 });
  report('random 10x3 reads from it, 100,000 after opening (best of 5)', best(random), '/s', { least: 50_000 });
  report('  the first 20,000 of them, with building the tree (best of 5)', best(early), '/s', { least: 50_000 });
}

/** 1 GiB in blocks of 1 MiB against a loop of plain writes of 8 MiB. */
async function stream(folder: string): Promise<void> {
  const path = join(folder, 'stream.h5');
  const block = 2 ** 20 / 8;
  const source = new Float64Array(GIB / 8).map((_, i) => i * 0.25);
  const plain: number[] = [];
  const forms: Record<string, number[]> = {
    'async, copy: false': [],
    'sync, copy: false': [],
    'sync, copy: false, no checksum': [],
    'sync, copied': [],
  };
  for (let round = 0; round < 5; round++) {
    plain.push(plainWrites(join(folder, 'plain'), source, 1));
    for (const form of Object.keys(forms)) {
      const file = File.createSync(path, { checksum: !form.includes('no checksum') });
      const dataset = file.createDataset('x', { dtype: 'float64', shape: [source.length] });
      const copy = form.includes('copied');
      const begin = performance.now();
      for (let at = 0; at < source.length; at += block) {
        dataset.write(source.subarray(at, at + block), { start: [at], count: [block] }, { copy });
      }
      const start = copy ? begin : performance.now();
      if (form.startsWith('async')) await file.flush();
      else file.flushSync();
      (forms[form] as number[]).push(performance.now() - start);
      file.closeSync();
      rmSync(path);
    }
  }
  const limits: Record<string, number> = {
    'async, copy: false': 1.15,
    'sync, copy: false': 1.6,
    'sync, copy: false, no checksum': 1.15,
  };
  report('1 GiB by fs.writeSync in pieces of 8 MiB (best of 5)', Math.min(...plain), 'ms');
  for (const [form, times] of Object.entries(forms)) {
    const limit = limits[form];
    report(`1 GiB in 1 MiB blocks, ${form} (best of 5)`, Math.min(...times), 'ms');
    report(
      `  against the plain writes`,
      Math.min(...times) / Math.min(...plain),
      'x',
      limit === undefined ? {} : { limit },
    );
  }
}

function manyFlushes(folder: string): void {
  const path = join(folder, 'flushes.h5');
  const flushes = 100_000;
  const file = File.createSync(path);
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [0, 128], maxShape: [null, 128] });
  const data = new Float64Array(128);
  const times: number[] = [];
  const before = statSync(path).size;
  for (let i = 0; i < flushes; i++) {
    const start = performance.now();
    dataset.resize([i + 1, 128]);
    dataset.write(data, { start: [i, 0], count: [1, 128] });
    file.flushSync();
    times.push(performance.now() - start);
  }
  file.closeSync();
  const firsts = times.slice(0, 1000);
  const lasts = times.slice(-1000);
  const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);
  report('100,000 flushes of 1 KiB: mean', sum(times) / flushes, 'ms');
  report('  median of the first 1,000', median(firsts), 'ms');
  report('  median of the last 1,000', median(lasts), 'ms');
  report('  last / first, medians', median(lasts) / median(firsts), 'x', { limit: 1.5 });
  report('  last / first, sums', sum(lasts) / sum(firsts), 'x', { limit: 1.5 });
  report('  growth a flush beyond the data', (statSync(path).size - Math.min(before, 0)) / flushes - 1024, 'bytes', {
    limit: 2048,
  });
}
