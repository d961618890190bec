import { UNDEFINED } from '../hdf5/format/cursor.ts';
import { GlobalHeap } from '../hdf5/format/global-heap.ts';
import { readChunkIndex } from '../hdf5/layouts/chunks/chunk-index.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import { BoxReader } from '../log/read/boxes.ts';
import { BlockIndex } from '../log/read/index.ts';
import { mixedValues, type Published } from '../log/read/published.ts';
import { clipInto, endOf } from '../space/box.ts';
import { sizeOf } from '../space/shape.ts';
import type { Io } from '../storage/io.ts';

/** Some blocks of a dataset, and what can be read where they are. */
export interface ReadableBlocks {
  /** In the order in which they were written; what the ordinary layout has comes first. Only filtered blocks can be read by their offset. */
  readonly index: BlockIndex;
  /** Reads a box into `out` from byte `at` on. `among`: the blocks that it may need, if they are known. */
  read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number, among?: Uint32Array): Io<void>;
}

/** What is committed of a dataset of the log: what its ordinary layout has, if it was published, and the blocks written since. */
export class CommittedBlocks {
  readonly dataset: LogDataset;
  /** Number of blocks. */
  readonly length: number;
  /** Whether what its elements point to was moved with its layout by another program, and not with the log. */
  readonly isRewritten: boolean;
  readonly #stored: BlockIndex | null;
  #heap: GlobalHeap | null = null;
  /** All blocks; null if their index would exceed the memory limit. */
  readonly #whole: ReadableBlocks | null;

  private constructor(dataset: LogDataset, length: number, stored: BlockIndex | null, newer: BlockIndex | null) {
    this.dataset = dataset;
    const { base, elements, log } = dataset;
    this.isRewritten = base !== null && elements.points && log.main.ranges.isMoved;
    if (this.isRewritten && length > 0) throw mixedValues();
    this.length = length + (stored?.length ?? 0);
    this.#stored = stored;
    this.#whole = newer && this.#readable(newer);
  }

  static *of(dataset: LogDataset): Io<CommittedBlocks> {
    dataset.log.mustHoldData();
    const { base } = dataset;
    const { tables } = dataset.log;
    const length = yield* tables.count(dataset, tables.committed, base?.floor);
    const stored = base && (yield* storedBlocks(dataset, base));
    const isEmpty = length === 0 && !stored?.length;
    const newer = isEmpty ? null : yield* tables.whole(dataset, tables.committed, base?.floor);
    return new CommittedBlocks(dataset, length, stored, newer);
  }

  /** Whether the index of all blocks is in memory. */
  get isWhole(): boolean {
    return this.#whole !== null;
  }

  /** Bytes of the index, plus a quarter for the lists of blocks that {@link assign} makes. */
  get bytes(): number {
    return 1.25 * (this.#whole?.index.bytes ?? 0);
  }

  /** At least the blocks that intersect a box. */
  *intersecting(start: Float64Array, count: Float64Array): Io<ReadableBlocks> {
    if (this.#whole) return this.#whole;
    const { dataset } = this;
    const { tables } = dataset.log;
    const box = { low: start, high: endOf(start, count) };
    return this.#readable(yield* tables.index(dataset, box, tables.committed, dataset.base?.floor));
  }

  /** Reads a box into `out` from byte `at` on. */
  *read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number, among?: Uint32Array): Io<void> {
    yield* (yield* this.intersecting(start, count)).read(start, count, out, at, among);
  }

  /**
   * Lists the blocks that each piece may need, in one pass over all blocks instead of a search for every piece. A piece is a range
   * of element positions; `begins` has their first positions. `positions` writes the first and the last position of a block to
   * `range`, or returns false for a block outside the dataset.
   */
  assign(
    begins: Float64Array,
    positions: (index: BlockIndex, block: number, range: Float64Array) => boolean,
  ): ((piece: number) => Uint32Array) | null {
    const index = this.#whole?.index;
    if (!index) return null;
    const range = new Float64Array(2);
    if (begins.length === 1) {
      // A single piece gets all blocks, those outside the dataset included, unless every block is outside.
      let reaching = 0;
      while (reaching < index.length && !positions(index, reaching, range)) reaching++;
      const all = new Uint32Array(reaching < index.length ? index.length : 0);
      for (let block = 0; block < all.length; block++) all[block] = block;
      return () => all;
    }
    const tally = new Uint32Array(begins.length + 1);
    const each = (visit: (piece: number, block: number) => void): void => {
      for (let block = 0; block < index.length; block++) {
        if (!positions(index, block, range)) continue;
        const last = lastNotAbove(begins, range[1] as number);
        for (let piece = lastNotAbove(begins, range[0] as number); piece <= last; piece++) visit(piece, block);
      }
    };
    each((piece) => {
      tally[piece + 1] = (tally[piece + 1] as number) + 1;
    });
    for (let i = 1; i < tally.length; i++) tally[i] = (tally[i] as number) + (tally[i - 1] as number);
    const blocks = new Uint32Array(tally[begins.length] as number);
    const next = tally.slice();
    each((piece, block) => {
      const at = next[piece] as number;
      blocks[at] = block;
      next[piece] = at + 1;
    });
    return (piece) => blocks.subarray(tally[piece] as number, tally[piece + 1] as number);
  }

  /** The heaps that elements point into. */
  get heap(): GlobalHeap {
    const { pointers, main } = this.dataset.log;
    // One for all boxes: it keeps what it has read.
    this.#heap ??= this.isRewritten ? new GlobalHeap(main.data.file) : pointers.heap;
    return this.#heap;
  }

  /** Frees the index. */
  release(): void {
    this.dataset.index = null;
  }

  #readable(newer: BlockIndex): ReadableBlocks {
    const { dataset } = this;
    const { log, layout, base, elements } = dataset;
    const reader = new BoxReader(log.files, newer, newer.length, layout, base !== null);
    const stored = this.#stored;
    if (!base || !stored) return { index: newer, read: (...box) => reader.read(...box) };
    const index = new BlockIndex(newer.rank, stored.length + newer.length);
    for (const list of [stored, newer]) for (let i = 0; i < list.length; i++) index.take(list, i);
    return {
      index,
      *read(start, count, out, at) {
        const size = sizeOf(count);
        const box = { rank: newer.rank, length: 1, starts: start, counts: count, size, itemOf: null, elementOf: null };
        yield* dataset.readBase(base, box, out.subarray(at, at + size * elements.size));
        yield* reader.read(start, count, out, at);
      },
    };
  }
}

/** What an ordinary layout has: its chunks, or all of it. Filtered chunks that are in the file as they should be can be taken as they are. */
export function* storedBlocks({ log, shape, filters }: LogDataset, { data, visible }: Published): Io<BlockIndex> {
  const rank = shape.length;
  const { layout, space } = data.parts;
  const { file } = log.structure.loader;
  const isChunked = layout?.kind === 'chunked' && space.kind === 'simple';
  const chunks = isChunked
    ? yield* readChunkIndex(file, layout.index, {
        maxShape: space.maxShape,
        chunk: layout.chunk,
        elementSize: layout.elementSize,
        filtered: data.parts.filters.length > 0,
      })
    : [];
  const index = new BlockIndex(rank, Math.max(1, chunks.length));
  const low = new Float64Array(rank);
  const put = (start: Float64Array, count: Float64Array, offset: number, stored: number): void => {
    const k = index.length * rank;
    const inside = clipInto(start, count, 0, rank, low, visible, index.starts, index.counts, k);
    if (inside > 0) index.add(offset, inside === sizeOf(count) ? stored : 0);
  };
  if (isChunked) {
    const { chunk } = layout;
    for (const { cell, address, size, mask } of chunks) {
      const start = Float64Array.from(cell, (c, d) => c * (chunk[d] as number));
      put(start, Float64Array.from(chunk), file.base + address, filters.length > 0 && mask === 0 ? size : 0);
    }
  } else if (layout && (layout.kind !== 'contiguous' || layout.address !== UNDEFINED))
    put(low, Float64Array.from(visible), 0, 0);
  return index;
}

/** Index of the last number in an ascending list that is at most `value`. The first number must be at most `value`. */
export function lastNotAbove(list: Float64Array, value: number): number {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((list[middle] as number) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}
