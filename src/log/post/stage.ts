import { allocateNumbers } from '../../base/buffers.ts';
import type { PendingHeap } from '../../hdf5/format/pending-heap.ts';
import type { Blocks } from '../../space/select.ts';
import { Arena, type ArenaPool, type LentPart, sharedPool } from './arena.ts';
import type { LogDataset, PostedDataset } from './dataset.ts';

/** Lists of at least so many numbers are used again: smaller ones share their memory with others. */
const REUSED_LIST = 1024;
const NO_NUMBERS = new Float64Array(0);

/** Blocks of one dataset that were posted one after the other: from its own lists, or those of a selection. */
interface Run {
  /** A selection that several datasets may share; null: the blocks [from, to) of the stage's own lists. */
  readonly shared: Blocks | null;
  readonly from: number;
  to: number;
  /** Bytes of data. */
  bytes: number;
}

/** What was posted to one dataset since the last flush: blocks in flat lists, and their data in the same order. */
export class DatasetStage<D extends PostedDataset = LogDataset> {
  readonly dataset: D;
  readonly arena: Arena;
  starts: Float64Array;
  counts: Float64Array;
  /** Number of blocks in the lists, and of requests altogether. */
  length = 0;
  requests = 0;
  readonly runs: Run[] = [];
  #run: Run | null = null;

  /**
   * Of an ordinary dataset that was made smaller since the last flush: the smallest it was. What earlier flushes put outside of it is
   * fill; posts of this stage count.
   */
  extent: readonly number[] | null = null;
  /** The stage of the file that it is part of. */
  readonly owner: Stage<D>;

  constructor(dataset: D, owner: Stage<D>, pool: ArenaPool) {
    this.dataset = dataset;
    this.owner = owner;
    this.arena = new Arena(pool);
    const count = Math.max(1, dataset.shape.length) * 8;
    this.starts = allocateNumbers(count);
    this.counts = allocateNumbers(count);
  }

  /** Makes room in the lists for `blocks` more. */
  reserve(blocks: number): void {
    const needed = (this.length + blocks) * this.dataset.shape.length;
    if (needed > this.starts.length) this.#grow(needed);
  }

  #grow(needed: number): void {
    const size = Math.max(needed, this.starts.length * 2);
    const used = this.length * this.dataset.shape.length;
    const starts = takeList(size);
    const counts = takeList(size);
    starts.set(this.starts.subarray(0, used));
    counts.set(this.counts.subarray(0, used));
    if (!import.meta.page) giveLists(this);
    this.starts = starts;
    this.counts = counts;
  }

  /** The posts are in the file. `reuse`: whether nobody may still read them here. */
  release(reuse: boolean): void {
    this.arena.release(reuse);
    if (reuse && !import.meta.page) giveLists(this);
  }

  /** Accepts the block written behind the last one in the lists; joins it to the last one if it continues it. */
  accept(bytes: number): void {
    this.requests++;
    const run = this.#run;
    if (!run) {
      this.#begin(bytes);
      return;
    }
    run.bytes += bytes;
    if (run.to > run.from && continues(this.starts, this.counts, this.length, this.dataset.shape.length)) return;
    this.length++;
    run.to = this.length;
  }

  #begin(bytes: number): void {
    this.#run = { shared: null, from: this.length, to: this.length + 1, bytes };
    this.runs.push(this.#run);
    this.length++;
  }

  /** Accepts many blocks written behind the last one in the lists, joining those that continue their predecessor. */
  acceptMany(blocks: number, bytes: number): void {
    this.requests += blocks;
    let run = this.#run;
    if (!run) {
      run = { shared: null, from: this.length, to: this.length, bytes: 0 };
      this.#run = run;
      this.runs.push(run);
    }
    run.bytes += bytes;
    const rank = this.dataset.shape.length;
    const { starts, counts } = this;
    const end = this.length + blocks;
    for (let from = this.length; from < end; from++) {
      if (from !== this.length) move(starts, counts, from, this.length, rank);
      if (this.length > run.from && continues(starts, counts, this.length, rank)) continue;
      this.length++;
    }
    run.to = this.length;
  }

  /** Accepts a selection of several blocks, without copying its lists. */
  acceptShared(blocks: Blocks, bytes: number): void {
    this.requests++;
    this.runs.push({ shared: blocks, from: 0, to: blocks.length, bytes });
    this.#run = null;
  }

  lend(part: LentPart): void {
    this.arena.lend(part);
  }
}

/** Numbers that may be anything. Lists do not count for a buffer limit: they are from the pool of all files. */
function takeList(size: number): Float64Array {
  if (!import.meta.page && size >= REUSED_LIST) return new Float64Array(sharedPool().take(8 * size).buffer);
  return allocateNumbers(size);
}

/** Gives the lists of a stage back, which has none then. */
function giveLists(stage: DatasetStage<PostedDataset>): void {
  if (stage.starts.length < REUSED_LIST) return;
  for (const { buffer } of [stage.starts, stage.counts]) sharedPool().give(new Uint8Array(buffer), true);
  stage.starts = NO_NUMBERS;
  stage.counts = NO_NUMBERS;
}

function move(starts: Float64Array, counts: Float64Array, from: number, to: number, rank: number): void {
  for (let d = 0; d < rank; d++) {
    starts[to * rank + d] = starts[from * rank + d] as number;
    counts[to * rank + d] = counts[from * rank + d] as number;
  }
}

/**
 * Whether block `next` lies directly behind the one before it, so that their data one after the other is that of one larger
 * block; if so the one before it is made larger.
 */
function continues(starts: Float64Array, counts: Float64Array, next: number, rank: number): boolean {
  const b = next * rank;
  const a = b - rank;
  let d = 0;
  while (d < rank && counts[a + d] === 1 && counts[b + d] === 1 && starts[a + d] === starts[b + d]) d++;
  if (d === rank || starts[b + d] !== (starts[a + d] as number) + (counts[a + d] as number)) return false;
  for (let e = d + 1; e < rank; e++) {
    if (starts[a + e] !== starts[b + e] || counts[a + e] !== counts[b + e]) return false;
  }
  counts[a + d] = (counts[a + d] as number) + (counts[b + d] as number);
  return true;
}

/** What was posted to a file since the last flush, datasets in the order of their first post. */
export class Stage<D extends PostedDataset = LogDataset> {
  readonly #datasets = new Map<D, DatasetStage<D>>();
  requests = 0;
  /** What posted elements point to; null if none does. */
  heap: PendingHeap | null = null;

  get datasets(): Iterable<DatasetStage<D>> {
    return this.#datasets.values();
  }

  /** By requests, because a refused or empty post may have opened a dataset's part and left nothing in it. */
  get isEmpty(): boolean {
    return this.requests === 0;
  }

  /** Whether no dataset has a part in it. */
  get isUntouched(): boolean {
    return this.#datasets.size === 0;
  }

  of(dataset: D): DatasetStage<D> | undefined {
    return this.#datasets.get(dataset);
  }

  /** Adds a dataset's part, or puts another one in its place. */
  set(part: DatasetStage<D>): void {
    this.#datasets.set(part.dataset, part);
  }

  get bytes(): number {
    let sum = 0;
    for (const { arena } of this.datasets) sum += arena.size;
    return sum + (this.heap?.held ?? 0);
  }
}
