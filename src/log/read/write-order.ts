import { formatError } from '../../base/errors.ts';
import type { CommitRecord } from '../format/commit-record.ts';
import type { BlockIndex } from './index.ts';

interface Span {
  readonly store: number;
  readonly start: number;
  readonly sequence: number;
  readonly rank: number;
  order: number;
}

/** The order of bytes that no commit record covers: older than all others. */
const UNKNOWN_TIME = -1;

/**
 * The order in which bytes of several files were written: by commit, then by rank. Within the data of one rank and commit the file
 * offset decides.
 */
export class WriteOrder {
  readonly #starts: Float64Array[] = [];
  readonly #orders: Float64Array[] = [];
  #histories: readonly (() => readonly CommitRecord[])[] | null;

  /** `histories` are the commit records of each file, read at the first question. */
  constructor(histories: readonly (() => readonly CommitRecord[])[]) {
    this.#histories = histories;
  }

  #prepare(histories: readonly (readonly CommitRecord[])[]): void {
    const spans: Span[] = [];
    histories.forEach((records, store) => {
      for (const { sequence, start, ranks } of records) {
        let from = start;
        for (const { rank, end } of ranks) {
          if (end > from) spans.push({ store, start: from, sequence, rank, order: 0 });
          from = end;
        }
      }
    });
    spans.sort((a, b) => a.sequence - b.sequence || a.rank - b.rank);
    spans.forEach((span, i) => {
      span.order = i;
    });
    for (let store = 0; store < histories.length; store++) {
      const here = spans.filter((span) => span.store === store).sort((a, b) => a.start - b.start);
      this.#starts.push(Float64Array.from(here, ({ start }) => start));
      this.#orders.push(Float64Array.from(here, ({ order }) => order));
    }
  }

  /** The place of the byte at `offset` of a store in the order of writing. */
  of(store: number, offset: number): number {
    if (this.#histories) {
      this.#prepare(this.#histories.map((history) => history()));
      this.#histories = null;
    }
    const starts = this.#starts[store] as Float64Array;
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] as number) <= offset) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? UNKNOWN_TIME : ((this.#orders[store] as Float64Array)[low - 1] as number);
  }

  /** Throws if blocks of two files overlap and no record tells which is newer. */
  mustTell(index: BlockIndex, path: string): void {
    const { orders, stores, rank, starts, counts } = index;
    if (!orders || !stores) return;
    for (let i = 0; i < index.length && orders[i] === UNKNOWN_TIME; i++) {
      const low = starts.slice(i * rank, (i + 1) * rank);
      const high = low.map((start, d) => start + (counts[i * rank + d] as number));
      for (const other of index.query(low, high, i)) {
        if (stores[other] === stores[i]) continue;
        throw formatError(
          `${path}: subfiles ${stores[other]} and ${stores[i]} both hold [${[...low].join(', ')}], and which of them was written last is not on record`,
        );
      }
    }
  }
}
