import { allocate } from '../../base/buffers.ts';
import { formatError } from '../../base/errors.ts';
import { FileExtent } from '../../hdf5/graph/object-node.ts';
import type { Committer, PlannedCommit } from '../../hdf5/write/commit.ts';
import { recordSize, type SubfileState } from '../format/commit-record.ts';
import { CONFIG, knownGroup, LOGS_GROUP, type LogCounts, SERIES } from '../format/log-group.ts';
import { addMember, logGroup, numberedGroup, setAside, writeCounts } from '../format/log-group-write.ts';
import { mergeTables, refersToGone } from '../format/table-merge.ts';
import type { Log } from '../log.ts';
import { LOG_WEIGHT, type LogState, type LogStore, NO_SERIES, type Series, SMALL, type TierItem } from '../store.ts';
import type { LogPart } from './numbered.ts';

/** So many neighbours of a size make one of the next; every byte is then rewritten once a tier, not once a flush. */
const FANOUT = 16;
/** Tables of numbered logs are short: a header costs as much as to write them anew, and whoever reads a dataset needs all of its own. */
const NUMBERED_FANOUT = 4;
/** Members of a series that have more bytes are not merged: to write them anew would cost more than one member fewer saves. */
const LARGEST = 2 ** 20;

const EMPTY = new Uint8Array(0);
const NOTHING: readonly Uint8Array[] = [];

/** What a commit adds to a store, apart from structure. */
export interface Addition {
  readonly dataSize: number;
  /** The data; empty where several ranks write it, each its own. */
  readonly data: readonly Uint8Array[];
  /** Bytes between data and table that are written already: what was copied for ordinary layouts. */
  readonly copied?: number;
  /** The table of the data, which is stored right behind it; null where it is written in sections, one a rank. */
  readonly table: Uint8Array | null;
  readonly tableSize: number;
  /** The header of a table that is written in sections; null without sections, and on ranks that do not write it. */
  readonly header: Uint8Array | null;
  /** What goes to numbered logs, of all the data but for that of heaps, which comes first. */
  readonly numbered?: readonly LogPart[];
  readonly heapSize?: number;
  /** How many ranks, or subfiles, the commit record names. */
  readonly parts: number;
  /** The first half of these parts are the heaps of several ranks. */
  readonly heapsFirst?: boolean;
}

/** A planned commit of a store: its bytes and their offsets are fixed. */
export interface StoreCommit {
  readonly store: LogStore;
  readonly committer: Committer;
  readonly planned: PlannedCommit;
  readonly before: LogState;
  readonly after: LogState;
  readonly addition: Addition;
  /** The merged commit records and this commit's own. Filled while the data is written: checksums are known only then. */
  readonly record: Uint8Array;
  readonly mergedRecords: readonly TierItem[];
  readonly numbered: readonly NumberedChange[];
}

/** Where the data of the next commit goes; 0 on ranks that do not write the structure of the store. */
export function nextOffset({ committer }: LogStore): number {
  return committer ? committer.appender.base + committer.appender.position : 0;
}

/**
 * Plans data, table, commit record and structure of a commit as one append. With `rewrite`, tables in which entries refer to
 * those of deleted datasets are written again.
 */
export function planStore(log: Log, store: LogStore, addition: Addition, rewrite: boolean): StoreCommit {
  const { committer, state: before } = store;
  if (!committer) throw formatError('a store without a writer');
  const change = planSeries(log, store, addition, rewrite);
  const numbered = !import.meta.page && log.layout ? planNumbered(log, store, addition) : NONE;
  // Up to here nothing was changed: an error leaves everything pending. From here on nothing is expected to fail.
  const numberedTables = import.meta.page ? [] : numbered.map((each) => changeNumbered(store, each));
  const regions = changeLogGroup(store, change, addition, numberedTables);
  const tableCount = change.tables.reduce((most, { index }) => Math.max(most, index + 1), change.keptTables);
  store.counts = {
    datasets: log.datasets,
    logs: change.keptLogs + (change.log ? 1 : 0),
    tables: tableCount,
    config: configOf(log, store.counts),
    subfiles: store.counts.subfiles,
  };
  writeCounts(store.structure, store.counts);
  if (store === log.main) {
    log.markTree();
    log.pointers.keepAddresses();
  }
  const planned = committer.plan();
  const item = (region: FileExtent, bytes: Uint8Array | null): TierItem => {
    const address = committer.appender.base + region.address;
    return { store: store.index, address, size: region.size, weight: region.size, bytes };
  };
  const logs = before.logs.slice(0, change.keptLogs);
  if (change.log) {
    const { address, size, weight } = change.log;
    logs.push({ store: store.index, address, size, weight, bytes: EMPTY });
  }
  const tables = before.tables.slice(0, change.keptTables);
  change.tables.forEach(({ index, bytes, size }, i) => {
    tables[index] = item(regions.tables[i] as FileExtent, size <= SMALL ? bytes : null);
  });
  const records = [...before.records.slice(0, change.keptRecords), item(regions.record, change.record)];
  const after = { logs, tables, records, numbered: before.numbered };
  if (!import.meta.page && numbered.length > 0) {
    const changed = new Map(before.numbered);
    numbered.forEach((each, i) => {
      const region = numberedTables[i];
      changed.set(each.number, region ? seriesAfter(store, each, item(region, each.table)) : NO_SERIES);
    });
    after.numbered = changed;
  }
  store.state = after;
  const { record, mergedRecords } = change;
  return { store, committer, planned, before, after, addition, record, mergedRecords, numbered };
}

/** How the three series in the log group change: so many members stay, the others are replaced by new ones. */
interface SeriesChange {
  readonly keptLogs: number;
  /** null: the commit has no data. */
  readonly log: { readonly address: number; readonly size: number; readonly weight: number } | null;
  readonly keptTables: number;
  /** New tables, and kept ones that are written again. `bytes` is null where the ranks write sections. */
  readonly tables: readonly { index: number; bytes: Uint8Array | null; size: number; isFresh: boolean }[];
  readonly keptRecords: number;
  readonly record: Uint8Array;
  readonly mergedRecords: readonly TierItem[];
}

function planSeries(log: Log, store: LogStore, addition: Addition, rewrite: boolean): SeriesChange {
  const { logs, records } = store.state;
  const start = nextOffset(store);
  const size = recordSize(addition.parts);
  const keptRecords = records.length - mergeable(records, size);
  const mergedRecords = records.slice(keptRecords);
  const record = allocate(mergedRecords.reduce((sum, item) => sum + item.size, size));
  const { keptTables, tables } = planTables(log, store, addition, rewrite);
  // Numbered logs have all the data but heaps, which elements of any dataset may point to.
  const dataSize = addition.numbered ? (addition.heapSize ?? 0) : addition.dataSize;
  if (dataSize === 0)
    return { keptLogs: logs.length, log: null, keptTables, tables, keptRecords, record, mergedRecords };
  const keptLogs = logs.length - mergeable(logs, LOG_WEIGHT);
  const merged = logs.slice(keptLogs);
  // A merged log dataset spans from the first of its parts to the end of the new data, with whatever lies in between.
  const address = Math.min(start, ...merged.map((item) => item.address));
  const weight = merged.reduce((sum, item) => sum + item.weight, LOG_WEIGHT);
  const span = { address, size: start + dataSize - address, weight };
  return { keptLogs, log: span, keptTables, tables, keptRecords, record, mergedRecords };
}

function planTables(
  log: Log,
  store: LogStore,
  { table, tableSize, dataSize, copied = 0, numbered }: Addition,
  rewrite: boolean,
): Pick<SeriesChange, 'keptTables' | 'tables'> {
  const old = store.state.tables;
  const options = log.layout ? { ...log.options.table, classic: undefined } : log.options.table;
  const shapeOf = (id: number) => log.shapeOf(id);
  const keptTables = old.length - (table ? mergeable(old, table.length) : 0);
  const tables: { index: number; bytes: Uint8Array | null; size: number; isFresh: boolean }[] = [];
  if (table && keptTables < old.length) {
    const parts = old.slice(keptTables).map(({ bytes, address }) => ({ bytes: bytes ?? EMPTY, address }));
    parts.push({ bytes: table, address: nextOffset(store) + dataSize + copied });
    const bytes = mergeTables(parts, shapeOf, options);
    tables.push({ index: keptTables, bytes, size: bytes.length, isFresh: false });
  } else if (tableSize > 0 && !numbered)
    tables.push({ index: keptTables, bytes: table, size: tableSize, isFresh: true });
  if (!rewrite) return { keptTables, tables };
  // The original cannot stand an entry that refers to one of a deleted dataset.
  old.slice(0, keptTables).forEach(({ bytes, address }, index) => {
    if (!bytes || !refersToGone(bytes, address, shapeOf)) return;
    const rewritten = mergeTables([{ bytes, address }], shapeOf, options);
    tables.push({ index, bytes: rewritten, size: rewritten.length, isFresh: false });
  });
  return { keptTables, tables };
}

/** An extent of bytes. Not made where it is used: it would keep everything that is known there, for as long as its member stays. */
function extentOf(parts: readonly Uint8Array[], size: number): FileExtent {
  return new FileExtent(size, () => parts);
}

/** The names of members [from, to) of a series. */
function namesOf(prefix: string, from: number, to: number): string[] {
  const names: string[] = [];
  for (let i = from; i < to; i++) names.push(`${prefix}${i}`);
  return names;
}

/** Makes the log group of the structure follow the plan; gives the regions of what the commit writes. */
function changeLogGroup(
  store: LogStore,
  change: SeriesChange,
  addition: Addition,
  numberedTables: readonly (FileExtent | null)[],
): { tables: FileExtent[]; record: FileExtent } {
  const { structure, state } = store;
  const known = store.isTidy ? undefined : store.known(SERIES.logs);
  store.isTidy = true;
  if (known) {
    setAside(structure, known, SERIES.logs, state.logs.length);
    setAside(structure, known, SERIES.tables, state.tables.length);
  }
  // A file whose data is in subfiles has no group for logs.
  const drop = (prefix: string, names: readonly string[]): void => {
    if (names.length > 0) structure.removeLinks(store.group(prefix), names);
  };
  const gone = namesOf(SERIES.tables, change.keptTables, state.tables.length);
  // Together: the group's list of links is made anew.
  drop(SERIES.logs, change.log ? [...gone, ...namesOf(SERIES.logs, change.keptLogs, state.logs.length)] : gone);
  const first: FileExtent[] = numberedTables.filter((region) => region !== null);
  const tables = change.tables.map(({ index, bytes, size, isFresh }) => {
    if (index < change.keptTables) drop(SERIES.tables, [`${SERIES.tables}${index}`]);
    const region = extentOf(bytes ? [bytes] : NOTHING, size);
    addMember(structure, store.group(SERIES.tables), `${SERIES.tables}${index}`, size, region, null);
    if (isFresh) first.push(region);
    return region;
  });
  // The append begins with the data, then the new table: all ranks know their offsets before the rest is planned.
  if (addition.copied) first.unshift(extentOf(NOTHING, addition.copied));
  if (addition.dataSize > 0) first.unshift(extentOf(addition.data, addition.dataSize));
  if (first.length > 0) structure.prepend(first);
  if (change.log) {
    const { address, size } = change.log;
    const name = `${SERIES.logs}${change.keptLogs}`;
    addMember(structure, store.group(SERIES.logs), name, size, address - store.base, address);
  }
  drop(SERIES.records, namesOf(SERIES.records, change.keptRecords, state.records.length));
  const record = extentOf([change.record], change.record.length);
  const name = `${SERIES.records}${change.keptRecords}`;
  addMember(structure, store.group(SERIES.records), name, record.size, record, null);
  return { tables, record };
}

/** How a numbered log changes; without a table it is forgotten. */
interface NumberedChange {
  readonly number: number;
  readonly before: Series;
  readonly keptLogs: number;
  readonly keptTables: number;
  readonly log: { readonly address: number; readonly size: number; readonly weight: number } | null;
  readonly table: Uint8Array | null;
}

const NONE: readonly NumberedChange[] = [];

function planNumbered(log: Log, store: LogStore, { numbered = [] }: Addition): NumberedChange[] {
  const { structure, state } = store;
  const find = (number: number): Series => structure.now(store.series(number, store.numberedIn(state)));
  const shapeOf = (id: number) => log.shapeOf(id);
  const changes = numbered.map(({ number, start, end, table }): NumberedChange => {
    const before = find(number);
    const keptLogs = before.logs.length - mergeable(before.logs, LOG_WEIGHT, NUMBERED_FANOUT);
    const merged = before.logs.slice(keptLogs);
    const address = Math.min(start, ...merged.map((item) => item.address));
    const weight = merged.reduce((sum, item) => sum + item.weight, LOG_WEIGHT);
    const keptTables = before.tables.length - mergeable(before.tables, table.length, NUMBERED_FANOUT);
    const parts = before.tables
      .slice(keptTables)
      .map(({ bytes, address: at }) => ({ bytes: bytes ?? EMPTY, address: at }));
    return {
      number,
      before,
      keptLogs,
      keptTables,
      log: { address, size: end - address, weight },
      table:
        parts.length > 0
          ? mergeTables([...parts, { bytes: table, address: start }], shapeOf, log.options.table)
          : table,
    };
  });
  const group = knownGroup(structure, LOGS_GROUP);
  for (const number of log.forgotten())
    if (group?.links.has(String(number)) && !changes.some((change) => change.number === number))
      changes.push({ number, before: find(number), keptLogs: 0, keptTables: 0, log: null, table: null });
  return changes;
}

/** Makes the group of a numbered log follow the plan; gives the region of its table. */
function changeNumbered(store: LogStore, change: NumberedChange): FileExtent | null {
  const { structure } = store;
  const { number, before, keptLogs, keptTables, log, table } = change;
  const group = numberedGroup(structure, number);
  if (!log || !table) {
    structure.removeLink(logGroup(structure, LOGS_GROUP), String(number));
    return null;
  }
  for (let i = keptTables; i < before.tables.length; i++) structure.removeLink(group, `${SERIES.tables}${i}`);
  for (let i = keptLogs; i < before.logs.length; i++) structure.removeLink(group, `${SERIES.logs}${i}`);
  const region = extentOf([table], table.length);
  addMember(structure, group, `${SERIES.tables}${keptTables}`, table.length, region, null);
  addMember(structure, group, `${SERIES.logs}${keptLogs}`, log.size, log.address - store.base, log.address);
  return region;
}

function seriesAfter(store: LogStore, { before, keptLogs, keptTables, log }: NumberedChange, table: TierItem): Series {
  const added = log && { store: store.index, ...log, bytes: EMPTY };
  return {
    logs: [...before.logs.slice(0, keptLogs), ...(added ? [added] : [])],
    tables: [...before.tables.slice(0, keptTables), table.size <= SMALL ? table : { ...table, bytes: null }],
  };
}

/** Gives the group of a numbered log its former members back. */
function restoreNumbered(store: LogStore, { number, before }: NumberedChange): void {
  const { structure } = store;
  const all = logGroup(structure, LOGS_GROUP);
  if (all.links.has(String(number))) structure.removeLink(all, String(number));
  if (before.logs.length + before.tables.length === 0) return;
  const group = numberedGroup(structure, number);
  const { base } = store;
  before.tables.forEach(({ size, address }, k) => {
    addMember(structure, group, `${SERIES.tables}${k}`, size, address - base, null);
  });
  before.logs.forEach(({ size, address }, k) => {
    addMember(structure, group, `${SERIES.logs}${k}`, size, address - base, address);
  });
}

/** Configuration bits after a flush. Bits of what the file already holds stay: the original looks for references only where theirs is set. */
function configOf(log: Log, { config }: LogCounts): number {
  const { table } = log.options;
  // The passthru bit says nothing about the bytes, but keeps the original from reading them.
  return (
    (config & ~CONFIG.passthru) |
    (table.encode ? CONFIG.encode : 0) |
    (table.share ? CONFIG.share : 0) |
    (table.compressFrom < Infinity ? CONFIG.zip : 0)
  );
}

/** The state of a store after a commit. */
export function stateOf({ planned, committer }: StoreCommit): SubfileState {
  return { root: planned.append.root, end: committer.appender.base + planned.append.end };
}

/** The commit is in the file. */
export function commitDone(commit: StoreCommit): void {
  const { store } = commit;
  const { root, end } = stateOf(commit);
  store.committed = commit.after;
  store.root = root;
  store.end = end;
  store.data.file.end = Math.max(store.data.file.end, store.end);
}

/** The commit is not in the file: the log group gets its former members back. `reuse`: see `Committer.undo`. */
export function commitFailed({ store, committer, planned, before, numbered }: StoreCommit, reuse: boolean): void {
  const { structure } = store;
  committer.undo(planned, reuse);
  if (!import.meta.page) for (const change of numbered) restoreNumbered(store, change);
  for (const [series, prefix] of Object.entries(SERIES) as [keyof typeof SERIES, string][]) {
    const group = store.known(prefix);
    for (const name of [...(group?.links.keys() ?? [])])
      if (group && name.startsWith(prefix)) structure.removeLink(group, name);
    before[series].forEach((item, k) => {
      const data = item.address - committer.appender.base;
      const written = series === 'logs' ? item.address : null;
      addMember(structure, store.group(prefix), `${prefix}${k}`, item.size, data, written);
    });
  }
  store.state = before;
  store.counts = { ...store.counts, logs: before.logs.length, tables: before.tables.length };
}

/** The tier of an item: how often a fanout of something small was put together to reach its weight. */
function tier(size: number, fanout: number): number {
  // The logarithm of its multiples of 64, rounded down.
  const doublings = size < 64 ? 0 : 31 - Math.clz32(Math.min(size / 64, 0xffffffff));
  return Math.floor(doublings / Math.log2(fanout));
}

/**
 * How many items at the end of the list should become one, now that another is to be added; 0: none. Items
 * of a tier merge when there are as many as the fanout, so that the whole list stays logarithmic in the number of flushes.
 */
function mergeable(items: readonly TierItem[], weight: number, fanout = FANOUT): number {
  let merged = 0;
  let total = weight;
  for (;;) {
    const level = tier(total, fanout);
    // From here on items are of a higher tier.
    const limit = 64 * fanout ** (level + 1);
    let count = 0;
    let sum = total;
    for (let i = items.length - 1 - merged; i >= 0; i--) {
      const item = items[i] as TierItem;
      if (!item.bytes || item.weight >= limit || sum + item.weight > LARGEST) break;
      sum += item.weight;
      count++;
    }
    if (count + 1 < fanout) return merged;
    merged += count;
    total = sum;
  }
}
