import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Dataset } from 'h5log';
import { flushes } from '../src/bench/flushes.ts';
import { open } from '../src/bench/open.ts';
import { shuffled } from '../src/bench/random.ts';
import { small } from '../src/bench/small.ts';
import { checkRows, readRow, writeRows } from '../src/bench/small-rows.ts';
import { stream } from '../src/bench/stream.ts';
import { builtWorkload } from './built.ts';
import { File, stat } from './built-h5log.ts';
import { best, median, report } from './report.ts';
import { shipped } from './shipped.ts';

const ROWS = 1_000_000;
const ROUNDS = 5;
const POST_ROUNDS = 15;
/** Millions of small `set` a second, of the machine that the aim for posts is for. */
const SET_RATE = 60;

/** The log connector: posting, flushing, reading. */
export async function log(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    posts(folder);
    await shipped(builtWorkload(small), folder, ROUNDS, {
      'small/shuffled/open': { limit: 0.3 },
      'small/shuffled/read': { limit: 0.5 },
    });
    // What a flush joins is read like data that was written in order: files with as many blocks as posts are measured as well.
    const apart = join(folder, 'apart.h5');
    await writeApart(apart);
    wholeReads(apart, 'of 1,000,000 blocks');
    for (const [path, what] of [
      [join(folder, 'small-shuffled.h5'), 'of rows that the flush has joined'],
      [apart, 'of 1,000,000 blocks'],
    ] as const) {
      firstReads(path, what);
      randomReads(path, what);
    }
    await shipped(builtWorkload(stream), folder, ROUNDS, {
      'stream/async-lent/ratio': { least: 0.85 },
      'stream/sync-lent/ratio': { least: 1 / 1.6 },
      'stream/sync-lent-unchecked/ratio': { least: 1 / 1.15 },
    });
    const figure = await shipped(builtWorkload(flushes), folder, 1, { 'flushes/growth': { limit: 2048 } });
    report('  last / first', figure('flushes/last') / figure('flushes/first'), 'x', { limit: 1.5 });
    await shipped(builtWorkload(open), folder, ROUNDS);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function created(path: string): { file: File; dataset: Dataset<'float64'> } {
  const file = File.createSync(path, { publish: 'never' });
  return { file, dataset: file.createDataset('x', { dtype: 'float64', shape: [ROWS, 3] }) };
}

function posts(folder: string): void {
  const order = shuffled(ROWS);
  const data = new Float64Array(3);
  const objectForm: number[] = [];
  const manyForm: number[] = [];
  const setForm: number[] = [];
  const large = new Float64Array(ROWS * 3);
  const starts = new Float64Array(ROWS * 2);
  for (let i = 0; i < ROWS; i++) starts[2 * i] = order[i] as number;
  const rows = new Float64Array(ROWS * 3);
  for (let round = 0; round < POST_ROUNDS; round++) {
    let begun = performance.now();
    for (let i = 0; i < ROWS; i++) {
      data[0] = i;
      large.set(data, 3 * i);
    }
    setForm.push(ROWS / (performance.now() - begun) / 1000);
    const { file, dataset: one } = created(join(folder, 'posts.h5'));
    const where = { start: [0, 0], count: [1, 3] };
    begun = performance.now();
    for (let i = 0; i < ROWS; i++) {
      where.start[0] = order[i] as number;
      data[0] = i;
      one.write(data, where);
    }
    objectForm.push(ROWS / (performance.now() - begun) / 1000);
    file.closeSync();
    // A file of its own: memory of posts is used again, but not twice at the same time.
    const { file: second, dataset: many } = created(join(folder, 'many.h5'));
    begun = performance.now();
    many.writeMany(rows, starts, [1, 3]);
    manyForm.push(ROWS / (performance.now() - begun) / 1000);
    second.closeSync();
  }
  report('Float64Array.set of 3 values into a large array', best(setForm), 'M/s');
  report(`posts of 1x3 float64, shuffled, object form (best of ${POST_ROUNDS})`, best(objectForm), 'M/s');
  report('  median', median(objectForm), 'M/s');
  // A slower machine does both slower.
  const pace = Math.min(1, best(setForm) / SET_RATE);
  report(`  where set does ${SET_RATE} M/s`, best(objectForm) / pace, 'M/s', { least: 10 });
  report(`the same with writeMany (best of ${POST_ROUNDS})`, best(manyForm), 'M/s', { least: 20 });
}

/** A million rows in random order as a million blocks: as flushes of earlier versions left them, and those that find nothing to join. */
async function writeApart(path: string): Promise<void> {
  writeRows(path, shuffled(ROWS));
  const blocks = (await stat(path)).datasets[0]?.blocks ?? 0;
  // A few rows happen to follow their neighbours.
  if (blocks < ROWS - 100) throw new Error(`${path} has ${blocks} blocks, not ${ROWS}`);
}

/** Opening and one row, and all rows at once. */
function wholeReads(path: string, what: string): void {
  const one: number[] = [];
  const all: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    one.push(readRow(path, (round * 7919) % ROWS));
    const start = performance.now();
    const reader = File.openSync(path);
    const values = reader.dataset('x', 'float64').readSync();
    reader.closeSync();
    all.push((performance.now() - start) / 1000);
    checkRows(path, values, 0, ROWS);
  }
  report(`opened, one row read, ${what} (best of ${ROUNDS})`, Math.min(...one), 's', { limit: 0.3 });
  report(`opened, all of it read, ${what} (best of ${ROUNDS})`, Math.min(...all), 's', { limit: 0.5 });
}

/** The first thousand small reads after opening: with the table, and without. */
function firstReads(path: string, what: string): void {
  const all: number[] = [];
  const later: number[] = [];
  for (let round = 0; round < 3 * ROUNDS; round++) {
    const reader = File.openSync(path);
    const dataset = reader.dataset('x', 'float64');
    const box = { start: [0, 0], count: [10, 3] };
    const start = performance.now();
    dataset.readSync(box);
    const loaded = performance.now();
    for (let i = 1; i < 1000; i++) {
      box.start[0] = (i * 7919) % (ROWS - 10);
      dataset.readSync(box);
    }
    all.push(performance.now() - start);
    later.push(performance.now() - loaded);
    reader.closeSync();
  }
  report(`the first 1,000 random 10x3 reads after opening, ${what} (best of 15)`, Math.min(...all), 'ms', {
    limit: 60,
  });
  report('  median', median(all), 'ms');
  report('  without the first, which decodes the table (best of 15)', Math.min(...later), 'ms', { limit: 60 });
}

/** Small reads when they have become many. */
function randomReads(path: string, what: string): void {
  const random: number[] = [];
  const early: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const reader = File.openSync(path);
    const dataset = reader.dataset('x', 'float64');
    const box = { start: [0, 0], count: [10, 3] };
    // Loads the table, which is measured by itself.
    dataset.readSync(box);
    const start = performance.now();
    for (let i = 0; i < 100_000; i++) {
      box.start[0] = (i * 7919) % (ROWS - 10);
      dataset.readSync(box);
      // The first ones pay for the tree and for pages that are not in memory yet.
      if (i + 1 === 20_000) early.push(20_000 / ((performance.now() - start) / 1000));
    }
    random.push(100_000 / ((performance.now() - start) / 1000));
    reader.closeSync();
  }
  report(`random 10x3 reads, 100,000 after opening, ${what} (best of 5)`, best(random), '/s', { least: 65_000 });
  report('  the first 20,000 of them, with building the tree (best of 5)', best(early), '/s', { least: 50_000 });
}
