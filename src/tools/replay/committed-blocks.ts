import type { LogDataset } from '../../log/post/dataset.ts';
import { BoxReader } from '../../log/read/boxes.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { endOf } from '../../space/box.ts';
import type { Io } from '../../storage/io.ts';

/** The committed blocks of a dataset in the log, from which `replay` reads the dataset box by box. */
export class CommittedBlocks {
  readonly dataset: LogDataset;
  /** Number of blocks. */
  readonly length: number;
  /** Index of all blocks; null if it would exceed the memory limit. */
  readonly #whole: BlockIndex | null;
  readonly #reader: BoxReader | null;

  private constructor(dataset: LogDataset, length: number, whole: BlockIndex | null) {
    this.dataset = dataset;
    this.length = length;
    this.#whole = whole;
    this.#reader = whole && this.#readerOf(whole);
  }

  static *of(dataset: LogDataset): Io<CommittedBlocks> {
    dataset.log.mustHoldData();
    const { tables } = dataset.log;
    const length = yield* tables.count(dataset, tables.committed);
    const whole = length === 0 ? null : yield* tables.whole(dataset, tables.committed);
    return new CommittedBlocks(dataset, length, whole);
  }

  /** Whether the index of all blocks is in memory. */
  get isWhole(): boolean {
    return this.#whole !== null;
  }

  /** Bytes of the index, plus a quarter for the lists of blocks that {@link assign} makes. */
  get bytes(): number {
    return 1.25 * (this.#whole?.bytes ?? 0);
  }

  /** An index with at least the blocks that intersect a box. */
  *intersecting(start: Float64Array, count: Float64Array): Io<BlockIndex> {
    if (this.#whole) return this.#whole;
    const { tables } = this.dataset.log;
    return yield* tables.index(this.dataset, { low: start, high: endOf(start, count) }, tables.committed);
  }

  /** Reads a box into `out` from byte `at` on. */
  *read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number, among?: Uint32Array): Io<void> {
    if (this.#reader) yield* this.#reader.read(start, count, out, at, among);
    else yield* this.#readerOf(yield* this.intersecting(start, count)).read(start, count, out, at);
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
    const index = this.#whole;
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

  /** Frees the index. */
  release(): void {
    this.dataset.index = null;
  }

  #readerOf(index: BlockIndex): BoxReader {
    const { log, layout } = this.dataset;
    return new BoxReader(log.files, index, index.length, layout);
  }
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
