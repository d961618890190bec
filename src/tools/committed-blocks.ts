import type { BlockIndex } from '../log/block-index.ts';
import { BoxReader } from '../log/box-read.ts';
import type { LogDataset } from '../log/log-dataset.ts';
import type { Io } from '../storage/drive.ts';

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
    const length = yield* tables.count(dataset, tables.items);
    const whole = length === 0 ? null : yield* tables.whole(dataset, tables.items);
    return new CommittedBlocks(dataset, length, whole);
  }

  /** The index of all of them is at hand. */
  get isWhole(): boolean {
    return this.#whole !== null;
  }

  /** Memory that the index takes with the tree that will be built over it, and with what building them leaves behind. */
  get bytes(): number {
    return 2 * (this.#whole?.bytes ?? 0);
  }

  /** Those that meet a box, at least. */
  *meeting(start: Float64Array, count: Float64Array): Io<BlockIndex> {
    if (this.#whole) return this.#whole;
    const { tables } = this.dataset.log;
    const high = start.map((s, d) => s + (count[d] as number));
    return yield* tables.index(this.dataset, { low: start, high }, tables.items);
  }

  /** Reads a box into `out` from byte `at` on. */
  *read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number): Io<void> {
    const reader = this.#reader ?? this.#readerOf(yield* this.meeting(start, count));
    yield* reader.read(start, count, out, at);
  }

  /** Gives the memory of the index back. */
  release(): void {
    this.dataset.index = null;
  }

  #readerOf(index: BlockIndex): BoxReader {
    const { log, elements, fill, filters } = this.dataset;
    return new BoxReader(log.data, index, index.length, { size: elements.size, fill, filters });
  }
}
