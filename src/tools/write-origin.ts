import type { CommitRecord } from '../log/format/commit-record.ts';
import type { Log } from '../log/log.ts';
import type { LogStore } from '../log/store.ts';
import type { LogTable } from './log-tables.ts';

/** Who wrote some data, and with which flush; -1 where nobody recorded it. */
export interface Origin {
  readonly rank: number;
  readonly flush: number;
}

export const UNKNOWN: Origin = { rank: -1, flush: -1 };

interface Span extends Origin {
  readonly start: number;
  readonly end: number;
}

/**
 * Where data comes from: the commit records say which rank wrote which bytes with which flush. Data of the original has no record. Its
 * tables have a section a rank, and each of its flushes made a log dataset.
 */
export class Origins {
  readonly #spans = new Map<LogStore, readonly Span[]>();
  readonly #firstRank = new Map<LogStore, number>();
  readonly #hasRecords: boolean;

  constructor(log: Log) {
    const { stores } = log;
    this.#hasRecords = stores.some((store) => store.history().length > 0);
    for (const store of stores) this.#spans.set(store, spansOf(store.history()));
  }

  /** In the original's files: sections of a subfile's tables count from the first rank of its group. */
  meet({ store, table }: LogTable): void {
    const known = this.#firstRank.get(store) ?? 0;
    this.#firstRank.set(store, Math.max(known, table.sections));
  }

  of(read: LogTable, offset: number, section: number): Origin {
    const { store, item } = read;
    const span = spanAt(this.#spans.get(store) ?? [], offset);
    if (span) return { rank: span.rank, flush: span.flush };
    // A table that we wrote may have put sections of the original together.
    if (store.history().some(({ start, end }) => item.address >= start && item.address < end)) return UNKNOWN;
    let rank = section;
    for (const [other, sections] of this.#firstRank) if (other.index < store.index) rank += sections;
    return { rank, flush: this.#hasRecords ? -1 : logAt(store, offset) };
  }

  /** Bytes of data that are on record, whether a table still knows of them or not. */
  recorded(store: LogStore): number {
    return (this.#spans.get(store) ?? []).reduce((sum, { start, end }) => sum + end - start, 0);
  }

  isRecorded(store: LogStore, offset: number): boolean {
    return spanAt(this.#spans.get(store) ?? [], offset) !== undefined;
  }
}

function spansOf(records: readonly CommitRecord[]): Span[] {
  const spans: Span[] = [];
  for (const { sequence, start, ranks } of records) {
    let from = start;
    for (const { rank, end } of ranks) {
      if (end > from) spans.push({ start: from, end, rank, flush: sequence });
      from = Math.max(from, end);
    }
  }
  return spans.sort((a, b) => a.start - b.start);
}

function spanAt(spans: readonly Span[], offset: number): Span | undefined {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle] as Span).start <= offset) low = middle + 1;
    else high = middle;
  }
  const span = spans[low - 1];
  return span && offset < span.end ? span : undefined;
}

function logAt({ committed }: LogStore, offset: number): number {
  return committed.logs.findIndex(({ address, size }) => offset >= address && offset < address + size);
}
