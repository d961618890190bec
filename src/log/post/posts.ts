import { H5LogError } from '../../base/errors.ts';
import type { Codecs } from '../../filter/pipeline.ts';
import { PendingHeap } from '../../hdf5/format/pending-heap.ts';
import { ArenaPool, sharedPool } from './arena.ts';
import type { PostedDataset } from './dataset.ts';
import { DatasetStage, Stage } from './stage.ts';

/** What limits posts. */
export interface PostLimits {
  readonly bufferLimit: number;
  /** Whether a post that finds no room may flush by itself. */
  readonly flushWhenFull: boolean;
  /** Selections of points are kept as such, also where their points are one block. */
  readonly keepsPoints?: boolean;
  /** Filters of the user, for this file. */
  readonly codecs?: Codecs | undefined;
}

/** How much waits to be committed, in posts and in bytes. */
export interface Waiting {
  readonly requests: number;
  readonly bytes: number;
}

/** What was posted to the datasets of a file and is not committed. */
export abstract class Posts<D extends PostedDataset> {
  readonly options: PostLimits;
  #pool: ArenaPool | null = null;
  /** Flushes, for posts that find the buffer full. */
  makeRoom: (() => void) | null = null;
  /** Posts since the last flush. */
  current = new Stage<D>();
  /** Posts of failed flushes, oldest first: pending again. */
  returned: Stage<D>[] = [];
  /** Posts of flushes that are being written. */
  flushing: Stage<D>[] = [];
  /** Bytes in arenas, for the buffer limit. */
  #held = 0;

  constructor(options: PostLimits) {
    this.options = options;
  }

  get pool(): ArenaPool {
    this.#pool ??= import.meta.page || this.hasLimit ? new ArenaPool(this.options.bufferLimit) : sharedPool();
    return this.#pool;
  }

  /** Throws if data cannot be reached or located. */
  abstract mustHoldData(): void;

  /** Whether nothing waits for a flush, not even another shape. */
  get isEmpty(): boolean {
    return this.returned.length === 0 && this.current.isUntouched;
  }

  /** Whether data waits for the next flush: posts without elements touch a dataset, and change nothing. */
  get hasRequests(): boolean {
    return this.returned.length > 0 || !this.current.isEmpty;
  }

  isCurrent(stage: DatasetStage<D>): boolean {
    return stage.owner === this.current;
  }

  /** The stage that takes the posts of a dataset until the next flush. */
  openStage(dataset: D): DatasetStage<D> {
    this.mustHoldData();
    // After a resize the dataset's stage is a new object of the same flush.
    const known = this.current.of(dataset);
    if (known) return known;
    const stage = new DatasetStage(dataset, this.current, this.pool);
    this.current.set(stage);
    return stage;
  }

  /** The number that stands for a reference to the object at a path until it is placed; throws if there is none. */
  reference(path: string): number {
    throw new H5LogError('UNSUPPORTED', `references, here to ${path}, cannot be written`, { object: path });
  }

  /** What the posts of a stage point to. Heaps that are read together have different numbers. */
  heapOf(stage: Stage<D>): PendingHeap {
    if (!stage.heap) {
      const heaps = [...this.flushing, ...this.returned].flatMap(({ heap }) => heap ?? []);
      stage.heap = new PendingHeap(heaps.at(-1)?.next ?? 0, (path) => this.reference(path));
    }
    return stage.heap;
  }

  get hasLimit(): boolean {
    return this.options.bufferLimit < Infinity;
  }

  hasRoom(bytes: number): boolean {
    return this.#held + bytes <= this.options.bufferLimit;
  }

  /** Checks the buffer limit for `bytes` more, flushing if the options say so. They count once they are {@link posted}. */
  claim(bytes: number, dataset: D): void {
    const { bufferLimit, flushWhenFull } = this.options;
    if (this.#held + bytes <= bufferLimit) return;
    const makeRoom = flushWhenFull ? this.makeRoom : null;
    if (this.#held + bytes > bufferLimit && this.#held > 0 && makeRoom) makeRoom();
    if (this.#held + bytes > bufferLimit && !(makeRoom && this.#held === 0)) {
      const text = `${dataset.path}: ${bytes} bytes more than the ${this.#held} pending exceed the bufferLimit of ${bufferLimit}; flush and try again`;
      throw new H5LogError('BUFFER_FULL', text, { object: dataset.path });
    }
  }

  /** Replaces `old` held bytes by `now`. */
  exchange(old: number, now: number): void {
    this.#held += now - old;
  }

  /** Counts requests added to the current stage, and the bytes that the arenas hold for them. */
  posted(requests: number, bytes: number): void {
    this.current.requests += requests;
    this.#held += bytes;
  }

  /** Forgets a committed stage. Its memory is reused unless a write may still be reading from it. */
  release(stage: Stage<D>, reuse: boolean): void {
    this.#held -= stage.heap?.held ?? 0;
    for (const part of stage.datasets) {
      this.#held -= part.arena.held;
      part.release(reuse);
      part.dataset.forgetStage(part);
    }
  }

  /** What waits for a flush; or all that is not committed, what is being flushed included. */
  waiting(withFlushes: boolean): Waiting {
    let requests = 0;
    let bytes = 0;
    for (const stage of [...(withFlushes ? this.flushing : []), ...this.returned, this.current]) {
      requests += stage.requests;
      bytes += stage.bytes;
    }
    return { requests, bytes };
  }

  /** Everything posted to a dataset that is not committed, oldest first. */
  stagesOf(dataset: D): DatasetStage<D>[] {
    const found: DatasetStage<D>[] = [];
    for (const stage of [...this.flushing, ...this.returned, this.current]) {
      const part = stage.of(dataset);
      if (part) found.push(part);
    }
    return found;
  }
}

/** What waits in several of them; null: none. */
export function waitingIn(
  all: readonly (Pick<Posts<PostedDataset>, 'waiting'> | null)[],
  withFlushes: boolean,
): Waiting {
  let [requests, bytes] = [0, 0];
  for (const posts of all) {
    const waiting = posts?.waiting(withFlushes);
    requests += waiting?.requests ?? 0;
    bytes += waiting?.bytes ?? 0;
  }
  return { requests, bytes };
}
