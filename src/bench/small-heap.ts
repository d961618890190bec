import { PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Communicator } from '../comm/communicator.ts';
import { COLUMNS, createRows } from './small-rows.ts';

export interface HeapTask {
  readonly path: string;
  readonly posts: number;
}

export interface HeapReport {
  /** Bytes added to the heap while posting; what garbage collections freed is not subtracted. */
  readonly growth: number;
  /** Number of garbage collections of any kind while posting. */
  readonly collections: number;
}

/** Posts per flush. */
const BATCH = 1_000_000;
/** Posts between two measurements of the heap. */
const SAMPLE_STEP = 10_000;
/** Distance from row to row: no post continues the one before, so that each becomes a block of its own. */
const STRIDE = 7919;
/** Milliseconds for the observer, which is told of a collection some turns of the event loop later. */
const OBSERVER_DELAY = 50;

/**
 * Measures whether a post allocates on the JavaScript heap. The heap is measured every 10,000 posts and every increase counts, so that
 * a collection in between hides nothing. One small object per post would be some 300 MB in total; measuring itself costs less than
 * 1 MB, and each buffer that is added a few hundred bytes. The remaining collections are triggered by the growth of the posts' buffers
 * outside of the heap (24 bytes of data and 32 of coordinates per post): `--trace-gc` calls them "external memory pressure". Flushes
 * are between the batches and not counted. The first batch is a warm-up.
 */
export default async function smallHeap(_: Communicator, { path, posts }: HeapTask): Promise<HeapReport> {
  const began: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) began.push(startTime);
  });
  observer.observe({ entryTypes: ['gc'] });
  const { file, dataset } = createRows(path, BATCH);
  const where = { start: [0, 0], count: [1, COLUMNS] };
  const data = new Float64Array(COLUMNS);
  const post = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      where.start[0] = (i * STRIDE) % BATCH;
      data[0] = i;
      dataset.write(data, where);
    }
  };
  const postBatch = (count: number): number => {
    let growth = 0;
    let before = process.memoryUsage().heapUsed;
    for (let from = 0; from < count; from += SAMPLE_STEP) {
      post(from, Math.min(count, from + SAMPLE_STEP));
      const after = process.memoryUsage().heapUsed;
      growth += Math.max(0, after - before);
      before = after;
    }
    return growth;
  };
  postBatch(Math.min(posts, BATCH));
  file.flushSync();
  const batches: { from: number; to: number }[] = [];
  let growth = 0;
  for (let left = posts; left > 0; left -= BATCH) {
    const from = performance.now();
    growth += postBatch(Math.min(left, BATCH));
    batches.push({ from, to: performance.now() });
    file.flushSync();
  }
  file.closeSync();
  await sleep(OBSERVER_DELAY);
  observer.disconnect();
  const collections = began.filter((time) => batches.some(({ from, to }) => time >= from && time < to)).length;
  return { growth, collections };
}
