import { formatError } from '../../base/errors.ts';
import type { CommitRecord } from '../format/commit-record.ts';
import type { BlockIndex } from './index.ts';

interface Span {
  readonly place: number;
  readonly start: number;
  readonly sequence: number;
  readonly rank: number;
  order: number;
}

/** Written before the first commit that is on record. */
const UNKNOWN_TIME = -1;

/** When the bytes of several files were written: by commit, in a commit by rank. Inside a rank's part the file offset decides. */
export class WriteOrder {
  readonly #starts: Float64Array[] = [];
  readonly #orders: Float64Array[] = [];
  #histories: readonly (() => readonly CommitRecord[])[] | null;

  /** The commit records of each file, looked at when somebody wants to know. */
  constructor(histories: readonly (() => readonly CommitRecord[])[]) {
    this.#histories = histories;
  }

  #prepare(histories: readonly (readonly CommitRecord[])[]): void {
    const spans: Span[] = [];
    histories.forEach((records, place) => {
      for (const { sequence, start, ranks } of records) {
        let from = start;
        for (const { rank, end } of ranks) {
          if (end > from) spans.push({ place, start: from, sequence, rank, order: 0 });
          from = end;
        }
      }
    });
    spans.sort((a, b) => a.sequence - b.sequence || a.rank - b.rank);
    spans.forEach((span, i) => {
      span.order = i;
    });
    for (let place = 0; place < histories.length; place++) {
      const here = spans.filter((span) => span.place === place).sort((a, b) => a.start - b.start);
      this.#starts.push(Float64Array.from(here, ({ start }) => start));
      this.#orders.push(Float64Array.from(here, ({ order }) => order));
    }
  }

  of(place: number, offset: number): number {
    if (this.#histories) {
      this.#prepare(this.#histories.map((history) => history()));
      this.#histories = null;
    }
    const starts = this.#starts[place] as Float64Array;
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] as number) <= offset) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? UNKNOWN_TIME : ((this.#orders[place] as Float64Array)[low - 1] as number);
  }

  /** Of overlapping blocks in two files of which nobody recorded the time, nobody knows which is newer. */
  mustTell(index: BlockIndex, path: string): void {
    const { orders, places, rank, starts, counts } = index;
    if (!orders || !places) return;
    for (let i = 0; i < index.length && orders[i] === UNKNOWN_TIME; i++) {
      const low = starts.slice(i * rank, (i + 1) * rank);
      const high = low.map((start, d) => start + (counts[i * rank + d] as number));
      for (const other of index.query(low, high, i)) {
        if (places[other] === places[i]) continue;
        throw formatError(
          `${path}: subfiles ${places[other]} and ${places[i]} both hold [${[...low].join(', ')}], and which of them was written last is not on record`,
        );
      }
    }
  }
}
