import type { DType } from '../../dtype/model.ts';
import type { PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import { boxSize, intersectInto } from '../../space/box.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { ChunkWalk } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';
import type { DatasetStage } from '../post/stage.ts';
import type { WritableDataset } from '../post/writable.ts';

/** What was posted to a dataset, oldest first, and the shape that it has then. */
export interface DatasetChange {
  readonly dataset: WritableDataset;
  readonly stages: readonly DatasetStage<WritableDataset>[];
  readonly shape: readonly number[];
}

/** A chunk that changes, and the posts in it: `posts` of the list from `from` on, oldest first. */
export interface TouchedChunk {
  readonly number: number;
  readonly from: number;
  readonly to: number;
}

/** Which posts touch which chunks. */
class TouchedByPosts {
  /** Of each touch the chunk and the post. */
  #numbers = new Float64Array(64);
  #posts = new Uint32Array(64);
  #length = 0;
  readonly #untouched = new Set<number>();
  #isSorted = true;

  touch(number: number, post: number): void {
    if (this.#length === this.#numbers.length) {
      const [numbers, posts] = [new Float64Array(2 * this.#length), new Uint32Array(2 * this.#length)];
      numbers.set(this.#numbers);
      posts.set(this.#posts);
      [this.#numbers, this.#posts] = [numbers, posts];
    }
    if (this.#length > 0 && number < (this.#numbers[this.#length - 1] as number)) this.#isSorted = false;
    this.#numbers[this.#length] = number;
    this.#posts[this.#length++] = post;
  }

  /** A chunk that changes without a post. */
  add(number: number): void {
    this.#untouched.add(number);
  }

  get posts(): Uint32Array {
    return this.#posts;
  }

  *batches(most: number): Iterable<TouchedChunk[]> {
    this.#sort();
    let batch: TouchedChunk[] = [];
    for (let from = 0; from < this.#length; ) {
      const number = this.#numbers[from] as number;
      let to = from + 1;
      while (to < this.#length && this.#numbers[to] === number) to++;
      this.#untouched.delete(number);
      batch.push({ number, from, to });
      from = to;
      if (batch.length < most) continue;
      yield batch;
      batch = [];
    }
    for (const number of [...this.#untouched].sort((a, b) => a - b)) {
      batch.push({ number, from: 0, to: 0 });
      if (batch.length < most) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  }

  #sort(): void {
    if (this.#isSorted) return;
    const order = Uint32Array.from({ length: this.#length }, (_, i) => i);
    const numbers = this.#numbers;
    order.sort((a, b) => (numbers[a] as number) - (numbers[b] as number) || a - b);
    this.#numbers = Float64Array.from(order, (i) => numbers[i] as number);
    const posts = this.#posts;
    this.#posts = Uint32Array.from(order, (i) => posts[i] as number);
    this.#isSorted = true;
  }
}

/** The blocks of several stages in one list, oldest first, and how far older data counts below each stage. */
export class PostedBlocks {
  readonly #stages: readonly DatasetStage<WritableDataset>[];
  readonly #rank: number;
  readonly #size: number;
  // Of each block: its stage, its place in the lists there, and in the data.
  readonly #stageOf: number[] = [];
  readonly #lists: { readonly starts: Float64Array; readonly counts: Float64Array }[] = [];
  readonly #at: number[] = [];
  readonly #offset: number[] = [];
  /** The places of what elements point to; null if they do not. */
  readonly #placed: PlacedHeap | null;
  readonly #dtype: DType;
  /** Data of blocks that was lent or points elsewhere, converted once. */
  readonly #data = new Map<number, Uint8Array>();
  /** Elements of all blocks; one that is in several counts for each. */
  total = 0;
  /** Committed data outside of this is gone. */
  readonly visible: Float64Array;
  #touched: TouchedByPosts | null = null;

  constructor({ dataset, stages }: DatasetChange, placed: PlacedHeap | null) {
    this.#stages = stages;
    this.#placed = dataset.elements.points ? placed : null;
    this.#dtype = dataset.elements.dtype;
    this.#rank = dataset.shape.length;
    this.#size = dataset.elements.size;
    this.visible = Float64Array.from(dataset.committed.shape);
    stages.forEach((stage, s) => {
      stage.extent?.forEach((size, d) => {
        this.visible[d] = Math.min(size, this.visible[d] as number);
      });
      let offset = 0;
      for (const run of stage.runs) {
        const lists = run.shared ?? stage;
        for (let i = run.from; i < run.to; i++) {
          const k = i * this.#rank;
          this.#stageOf.push(s);
          this.#lists.push(lists);
          this.#at.push(k);
          this.#offset.push(offset);
          const elements = boxSize(lists.counts, k, this.#rank);
          this.total += elements;
          offset += elements * this.#size;
        }
      }
    });
  }

  get length(): number {
    return this.#at.length;
  }

  /** Whether the dataset was smaller than before meanwhile. */
  get wasCut(): boolean {
    return this.#stages.some(({ extent }) => extent !== null);
  }

  /** Whether one block alone is the whole dataset; that several are is not worth finding out. */
  coverAll(): boolean {
    const shape = this.#stages[0]?.dataset.shape ?? [];
    const start = new Float64Array(this.#rank);
    for (let i = 0; i < this.length; i++) if (this.#covers(i, start, Float64Array.from(shape))) return true;
    return false;
  }

  byChunk(shape: readonly number[], chunk: readonly number[]): TouchedByPosts {
    const touched = new TouchedByPosts();
    this.#touched = touched;
    const walk = new ChunkWalk(shape, chunk);
    for (let i = 0; i < this.length; i++) {
      const { starts, counts } = this.#lists[i] as { starts: Float64Array; counts: Float64Array };
      for (let left = walk.begin(starts, counts, this.#at[i] as number); left > 0; left--, walk.next())
        touched.touch(walk.number, i);
    }
    return touched;
  }

  /** Whether a post of a chunk covers all of a box in it. */
  covered({ from, to }: TouchedChunk, start: Float64Array, count: Float64Array): boolean {
    const posts = this.#touched?.posts ?? new Uint32Array(0);
    for (let i = from; i < to; i++) if (this.#covers(posts[i] as number, start, count)) return true;
    return false;
  }

  #covers(i: number, start: Float64Array, count: Float64Array): boolean {
    const { starts, counts } = this.#lists[i] as { starts: Float64Array; counts: Float64Array };
    const k = this.#at[i] as number;
    return start.every((low, d) => {
      const from = starts[k + d] as number;
      return from <= low && from + (counts[k + d] as number) >= low + (count[d] as number);
    });
  }

  /** Puts posts over the box (start, count), which lies at the origin of an array of `shape`; those of a chunk, or all. */
  applyTo(
    out: Uint8Array,
    start: Float64Array,
    count: Float64Array,
    shape: Float64Array,
    fill: Uint8Array | null,
    chunk?: TouchedChunk,
  ): void {
    const posts = chunk ? (this.#touched?.posts ?? new Uint32Array(0)) : null;
    let i = chunk?.from ?? 0;
    const end = chunk?.to ?? this.length;
    this.#stages.forEach(({ extent }, s) => {
      if (extent) this.#fillOutside(out, start, shape, extent, fill);
      for (; i < end; i++) {
        const post = posts ? (posts[i] as number) : i;
        if (this.#stageOf[post] !== s) break;
        this.#copy(post, out, start, count, shape);
      }
    });
  }

  #copy(i: number, out: Uint8Array, start: Float64Array, count: Float64Array, shape: Float64Array): void {
    const { starts, counts } = this.#lists[i] as { starts: Float64Array; counts: Float64Array };
    const k = this.#at[i] as number;
    const rank = this.#rank;
    const [inBlock, inBox, part] = [new Float64Array(rank), new Float64Array(rank), new Float64Array(rank)];
    intersectInto(starts, counts, k, start, count, inBlock, inBox, part);
    if (part.some((n) => n <= 0)) return;
    copyBox(this.#dataOf(i), 0, counts.subarray(k, k + rank), inBlock, out, 0, shape, inBox, part, this.#size);
  }

  #dataOf(i: number): Uint8Array {
    const known = this.#data.get(i);
    if (known) return known;
    const { counts } = this.#lists[i] as { counts: Float64Array };
    const bytes = boxSize(counts, this.#at[i] as number, this.#rank, this.#size);
    const { arena } = this.#stages[this.#stageOf[i] as number] as DatasetStage<WritableDataset>;
    let data = arena.slice(this.#offset[i] as number, bytes);
    if (this.#placed) {
      data = data.slice();
      this.#placed.patch(this.#dtype, data, bytes / this.#size);
    }
    if (this.#placed || bytes > arena.held) this.#data.set(i, data);
    return data;
  }

  /** Fill for what lies outside of an extent. */
  #fillOutside(
    out: Uint8Array,
    start: Float64Array,
    shape: Float64Array,
    extent: readonly number[],
    fill: Uint8Array | null,
  ): void {
    const size = this.#size;
    const total = sizeOf(shape);
    if (extent.every((end, d) => (start[d] as number) + (shape[d] as number) <= end) || total === 0) return;
    const plain = new Uint8Array(total * size);
    fillWith(plain, 0, total, size, fill);
    extent.forEach((end, d) => {
      const from = new Float64Array(this.#rank);
      from[d] = Math.max(0, Math.min(shape[d] as number, end - (start[d] as number)));
      const count = shape.slice();
      count[d] = (shape[d] as number) - (from[d] as number);
      if ((count[d] as number) > 0) copyBox(plain, 0, shape, from, out, 0, shape, from, count, size);
    });
  }
}
