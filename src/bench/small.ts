import { join } from 'node:path';
import { File } from '../api/file.ts';
import { rankModule } from '../comm/threads/run.ts';
import { runThreads } from '../threads.ts';
import { Random, shuffled } from './random.ts';
import type { HeapReport, HeapTask } from './small-heap.ts';
import { COLUMNS, checkRows, createRows, manyRows, postRows, readRow } from './small-rows.ts';
import { Best, type Figure, scaledSize, secondsSince, steps, type Workload } from './workload.ts';

const ROWS = 1_000_000;
const HEAP_POSTS = 10_000_000;
const READS = 1000;
const BOX = 10;
/** Measurements per repetition: two ways to write, three to read. */
const MEASUREMENTS = 5;

interface Phases {
  readonly post: number;
  readonly flush: number;
  readonly close: number;
  readonly write: number;
}

/** Very many blocks of 1x3 float64. */
export const small: Workload = {
  name: 'small',
  summary: '1,000,000 rows of 1x3 float64, posted one by one, in order and shuffled; read back',
  async *run({ folder, scale, repeat, onProgress }) {
    const rows = scaledSize(ROWS, scale, 2 * BOX);
    const done = steps(2 * repeat * MEASUREMENTS + 1, onProgress);
    const orders = { ordered: Uint32Array.from({ length: rows }, (_, i) => i), shuffled: shuffled(rows) };
    for (const [name, order] of Object.entries(orders)) {
      const path = join(folder, `small-${name}.h5`);
      const best = new Best();
      let phases: Phases | undefined;
      for (let round = 0; round < repeat; round++) {
        best.add('write-many', writeMany(path, order));
        await done();
        const written = write(path, order);
        if (!phases || written.write < phases.write) phases = written;
        await done();
        for (const [part, read] of Object.entries({ open: readOne, read: readAll, random: readBoxes })) {
          best.add(part, read(path, order));
          await done();
        }
      }
      yield* figures(name, rows, phases as Phases, best);
    }
    yield* heap(join(folder, 'small-heap.h5'), scale);
    await done();
  },
};

function* figures(order: string, rows: number, phases: Phases, best: Best): Iterable<Figure> {
  const id = `small/${order}`;
  const many = `${rows.toLocaleString('en')} rows of 1x3 float64, ${order}`;
  const row = (part: string, what: string, value: number): Figure => ({ id: `${id}/${part}`, what, value, unit: 's' });
  yield row('write', `${many}: from create to close`, phases.write);
  yield row('post', '  of that: posting', phases.post);
  yield row('flush', '  of that: the flush', phases.flush);
  yield row('close', '  of that: closing', phases.close);
  yield row('write-many', `${many}: the same with one writeMany`, best.of('write-many'));
  yield row('open', '  opened, one row read', best.of('open'));
  yield row('read', '  opened, all of it read, closed', best.of('read'));
  yield row('random', `  ${READS.toLocaleString('en')} random boxes of ${BOX}x3 read after opening`, best.of('random'));
}

function write(path: string, order: Uint32Array): Phases {
  const begun = performance.now();
  const { file, dataset } = createRows(path, order.length);
  const posting = performance.now();
  postRows(dataset, order);
  const posted = performance.now();
  file.flushSync();
  const flushed = performance.now();
  file.closeSync();
  const closed = performance.now();
  return {
    post: (posted - posting) / 1000,
    flush: (flushed - posted) / 1000,
    close: (closed - flushed) / 1000,
    write: (closed - begun) / 1000,
  };
}

/** The arrays are prepared before the clock starts: a program that has data to write has them too. */
function writeMany(path: string, order: Uint32Array): number {
  const { data, starts, count } = manyRows(order);
  const begun = performance.now();
  const { file, dataset } = createRows(path, order.length);
  dataset.writeMany(data, starts, count);
  file.closeSync();
  return secondsSince(begun);
}

function readOne(path: string, order: Uint32Array): number {
  return readRow(path, order[order.length >> 1] as number);
}

function readAll(path: string, order: Uint32Array): number {
  const begun = performance.now();
  const file = File.openSync(path);
  const values = file.dataset('x', 'float64').readSync();
  file.closeSync();
  const seconds = secondsSince(begun);
  checkRows(path, values, 0, order.length);
  return seconds;
}

/** Times the reads only, not opening. They include what opening defers to the first read: the table and the tree over the blocks. */
function readBoxes(path: string, order: Uint32Array): number {
  const random = new Random(READS);
  const starts = Array.from({ length: READS }, () => random.below(order.length - BOX + 1));
  const box = { start: [0, 0], count: [BOX, COLUMNS] };
  const found: Float64Array[] = [];
  const file = File.openSync(path);
  const dataset = file.dataset('x', 'float64');
  const begun = performance.now();
  for (const start of starts) {
    box.start[0] = start;
    found.push(dataset.readSync(box));
  }
  const seconds = secondsSince(begun);
  file.closeSync();
  found.forEach((values, i) => {
    checkRows(path, values, starts[i] as number, BOX);
  });
  return seconds;
}

/** Measures the heap in a worker thread, whose heap nothing else uses. */
async function* heap(path: string, scale: number): AsyncIterable<Figure> {
  const task: HeapTask = { path, posts: scaledSize(HEAP_POSTS, scale) };
  const [report] = await runThreads<HeapReport>(1, rankModule('small-heap', import.meta.url), task);
  const { growth, collections } = report as HeapReport;
  const many = `${task.posts.toLocaleString('en')} posts with one reused object`;
  yield { id: 'small/heap', what: `${many}: what they add to the JavaScript heap`, value: growth, unit: 'bytes' };
  const what = '  garbage collections meanwhile';
  yield { id: 'small/collections', what, value: collections, unit: 'count' };
}
