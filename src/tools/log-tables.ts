import type { File } from '../api/file.ts';
import { CLASSIC, openTable } from '../log/format/classic.ts';
import type { CommitRecord } from '../log/format/commit-record.ts';
import { ENTRY, ENTRY_HEADER } from '../log/format/table.ts';
import type { OpenedTable } from '../log/format/table-read.ts';
import type { Log } from '../log/log.ts';
import type { LogStore, TierItem } from '../log/store.ts';
import { drive } from './inside.ts';

/** Which datasets share a log, and the format of its tables. */
export interface LogsShown {
  readonly scope: 'shared' | 'group' | 'dataset';
  readonly format: 'original' | 'classic';
  /** Byte order of classic tables. */
  readonly bigEndian?: boolean;
}

export function logsShown({ layout }: Log): LogsShown {
  const { scope = 'shared', classic } = layout ?? {};
  return { scope, format: classic ? 'classic' : 'original', ...(classic && { bigEndian: classic === 'big' }) };
}

/** A metadata table that was read. */
export interface LogTable {
  readonly store: LogStore;
  /** The number in its name. */
  readonly number: number;
  /** The number of its log; undefined: the one for all datasets. */
  readonly log?: number;
  readonly item: TierItem;
  readonly table: OpenedTable;
  /** Its bytes. */
  readonly view: DataView;
}

/** The tables of a log one after the other; only one is in memory at a time. */
export async function* tablesOf(file: File, log: Log): AsyncGenerator<LogTable, void, undefined> {
  for (const store of log.stores) {
    const numbered = await drive(file, store.everyNumbered());
    for (const [of, { tables }] of [[undefined, store.committed] as const, ...numbered]) {
      for (const [number, item] of tables.entries()) {
        const bytes = await drive(file, store.data.file.readCopy(item.address, item.size, 'metadata table'));
        const table = openTable(bytes, item.address);
        yield { store, number, ...(of !== undefined && { log: of }), item, table, view: new DataView(bytes.buffer) };
      }
    }
  }
}

/** The size of the entry that begins there, header included. */
export function entrySize({ table }: LogTable, at: number): number {
  return table.sizeAt(at);
}

/** Where the entry that a reference leads to begins. */
export function referenceOf({ view }: LogTable, at: number): number {
  const isRecord = (view.getInt32(at + 8, true) & ENTRY.record) !== 0;
  return at + Number(view.getBigInt64(at + ENTRY_HEADER + (isRecord ? 8 : 0), true));
}

/** How an entry says which elements it is about. */
export type Form = 'single' | 'multi' | 'encoded' | 'compressed' | 'reference' | 'points';
export const FORMS: readonly Form[] = ['single', 'multi', 'encoded', 'compressed', 'reference', 'points'];

export function formOf(flags: number): Form {
  if (flags & CLASSIC.points) return 'points';
  if (flags & ENTRY.reference) return 'reference';
  if (flags & ENTRY.compressed) return 'compressed';
  if (flags & ENTRY.encoded) return 'encoded';
  return flags & ENTRY.multi ? 'multi' : 'single';
}

/** The flags of an entry in words. */
export function flagNames(flags: number): string[] {
  return bitNames(flags, { ...ENTRY, ...CLASSIC });
}

/** The names of the bits that are set, lowest first; a module of constants lists them by the alphabet. */
export function bitNames(bits: number, names: Readonly<Record<string, number>>): string[] {
  return Object.entries(names)
    .filter(([, bit]) => bits & bit)
    .sort(([, a], [, b]) => a - b)
    .map(([name]) => name);
}

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
