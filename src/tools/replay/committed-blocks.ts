import type { LogDataset } from '../../log/post/dataset.ts';
import { BoxReader } from '../../log/read/boxes.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { endOf } from '../../space/box.ts';
import type { Io } from '../../storage/io.ts';

/** The committed blocks of a dataset of the log, for reading all of it box by box. */
export class CommittedBlocks {
  readonly dataset: LogDataset;
  /** How many there are. */
  readonly length: number;
  /** All of them; null if they would take more memory than allowed. */
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
    const length = yield* tables.count(dataset, tables.committed.items);
    const whole = length === 0 ? null : yield* tables.whole(dataset, tables.committed);
    return new CommittedBlocks(dataset, length, whole);
  }

  /** The index of all of them is at hand. */
  get isWhole(): boolean {
    return this.#whole !== null;
  }

  /** Memory that the index takes, with a quarter for the lists of blocks of each piece. */
  get bytes(): number {
    return 1.25 * (this.#whole?.bytes ?? 0);
  }

  /** Those that meet a box, at least. */
  *meeting(start: Float64Array, count: Float64Array): Io<BlockIndex> {
    if (this.#whole) return this.#whole;
    const { tables } = this.dataset.log;
    return yield* tables.index(this.dataset, { low: start, high: endOf(start, count) }, tables.committed);
  }

  /** Reads a box into `out` from byte `at` on. */
  *read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number, among?: Uint32Array): Io<void> {
    if (this.#reader) yield* this.#reader.read(start, count, out, at, among);
    else yield* this.#readerOf(yield* this.meeting(start, count)).read(start, count, out, at);
  }

  /**
   * Sorts the blocks by the pieces that they may reach into: one way through all of them instead of a search for every piece.
   * Pieces are stretches of places; `begins` are their first places, and `places` writes the first and the last place of a block
   * to `range`, or says that it has none.
   */
  assign(
    begins: Float64Array,
    places: (index: BlockIndex, block: number, range: Float64Array) => boolean,
  ): ((piece: number) => Uint32Array) | null {
    const index = this.#whole;
    if (!index) return null;
    const range = new Float64Array(2);
    if (begins.length === 1) {
      // The one piece gets them all, also those that lie outside: no need to look where each of the others is.
      let reaching = 0;
      while (reaching < index.length && !places(index, reaching, range)) reaching++;
      const all = new Uint32Array(reaching < index.length ? index.length : 0);
      for (let block = 0; block < all.length; block++) all[block] = block;
      return () => all;
    }
    const tally = new Uint32Array(begins.length + 1);
    const each = (visit: (piece: number, block: number) => void): void => {
      for (let block = 0; block < index.length; block++) {
        if (!places(index, block, range)) continue;
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

  /** Gives the memory of the index back. */
  release(): void {
    this.dataset.index = null;
  }

  #readerOf(index: BlockIndex): BoxReader {
    const { log, layout } = this.dataset;
    return new BoxReader(log.files, index, index.length, layout);
  }
}

/** The position of the last number in an ascending list that is not larger than `value`; the first is never larger. */
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
