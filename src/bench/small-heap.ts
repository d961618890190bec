import { PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Communicator } from '../comm/communicator.ts';
import { COLUMNS, createRows } from './small-rows.ts';

export interface HeapTask {
  readonly path: string;
  readonly posts: number;
}

export interface HeapReport {
  /** Bytes that were added to the heap while posting; what collections freed is not taken off. */
  readonly growth: number;
  /** Garbage collections of any kind while posting. */
  readonly collections: number;
}

/** Posts between two flushes, and between two looks at the heap. */
const LOT = 1_000_000;
const LOOK = 10_000;
/** A step from row to row with which none follows its neighbour, so that each post becomes a block of its own. */
const STRIDE = 7919;
/** Milliseconds for the observer, which hears of a collection some turns of the event loop later. */
const PATIENCE = 50;

/**
 * Whether a post leaves anything for the garbage collector. The heap is looked at every 10,000 posts and every increase counts, so that
 * a collection in between hides nothing. One small object a post would be some 300 MB in all; the looks themselves cost less than
 * 1 MB, and each buffer that is added a few hundred bytes. The collections that remain are those that V8 makes because the posts' buffers (24 bytes
 * of data and 32 of coordinates a post, outside of the heap) have grown: `--trace-gc` calls them "external memory pressure".
 * Flushes are between the lots and not counted. A first lot warms up.
 */
export default async function smallHeap(_: Communicator, { path, posts }: HeapTask): Promise<HeapReport> {
  const began: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) began.push(startTime);
  });
  observer.observe({ entryTypes: ['gc'] });
  const { file, dataset } = createRows(path, LOT);
  const where = { start: [0, 0], count: [1, COLUMNS] };
  const data = new Float64Array(COLUMNS);
  const post = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      where.start[0] = (i * STRIDE) % LOT;
      data[0] = i;
      dataset.write(data, where);
    }
  };
  const postLot = (count: number): number => {
    let growth = 0;
    let before = process.memoryUsage().heapUsed;
    for (let from = 0; from < count; from += LOOK) {
      post(from, Math.min(count, from + LOOK));
      const after = process.memoryUsage().heapUsed;
      growth += Math.max(0, after - before);
      before = after;
    }
    return growth;
  };
  postLot(Math.min(posts, LOT));
  file.flushSync();
  const lots: { from: number; to: number }[] = [];
  let growth = 0;
  for (let left = posts; left > 0; left -= LOT) {
    const from = performance.now();
    growth += postLot(Math.min(left, LOT));
    lots.push({ from, to: performance.now() });
    file.flushSync();
  }
  file.closeSync();
  await sleep(PATIENCE);
  observer.disconnect();
  const collections = began.filter((time) => lots.some(({ from, to }) => time >= from && time < to)).length;
  return { growth, collections };
}
