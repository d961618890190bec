import { allocate } from '../../base/buffers.ts';
import { T } from '../../dtype/construct.ts';
import { Region } from '../../hdf5/graph/object-node.ts';
import { contiguous } from '../../hdf5/layouts/new-dataset.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import type { Committer, PlannedCommit } from '../../hdf5/write/commit.ts';
import { complete } from '../../storage/io.ts';
import { recordSize, type SubfileState } from '../format/commit-record.ts';
import { type LogCounts, SERIES, setAside, writeCounts } from '../format/log-group.ts';
import type { TableOptions } from '../format/table.ts';
import { type EntryShape, mergeTables, refersToGone } from '../format/table-merge.ts';
import { type LogState, type LogStore, SMALL } from '../store.ts';
import { LOG_WEIGHT, mergeable, type TierItem } from './tiers.ts';

const BYTES = T.bitfield(1);
const EMPTY = new Uint8Array(0);

/** What a commit adds to a store. */
export interface Addition {
  /** The data; empty where several ranks write it, each its own. */
  readonly dataSize: number;
  readonly data: readonly Uint8Array[];
  /** The table of it, which goes right behind it; null where the ranks write their sections themselves, behind the header. */
  readonly table: Uint8Array | null;
  readonly tableSize: number;
  readonly header: Uint8Array | null;
  /** How many ranks, or subfiles, the commit record names. */
  readonly parts: number;
  /** A dataset was deleted: where others refer to its entries the tables are written anew. */
  readonly rewrite: boolean;
  readonly options: TableOptions;
  readonly shapeOf: (id: number) => EntryShape | undefined;
  /** What the counts become, but for the number of logs and tables. */
  readonly counts: LogCounts;
}

/** A commit of a store whose bytes and places are fixed. */
export interface StorePlan {
  readonly store: LogStore;
  readonly committer: Committer;
  readonly planned: PlannedCommit;
  readonly before: LogState;
  readonly after: LogState;
  readonly addition: Addition;
  /** Filled while the data is written: with the records it replaces, which flushes before this one may have yet to fill, and its own. */
  readonly record: Uint8Array;
  readonly merged: readonly TierItem[];
}

/** Where the data of the next commit goes. */
export function nextOffset({ committer }: LogStore): number {
  return committer ? committer.appender.base + committer.appender.position : 0;
}

/** Data, table, commit record and structure as one append. */
export function planStore(store: LogStore, committer: Committer, addition: Addition): StorePlan {
  const { structure } = store;
  const before = store.state;
  const start = nextOffset(store);
  let { logs, tables, records } = before;
  const table = planTable(before, addition, start);

  // Nothing above changes anything, so that whatever fails there leaves everything pending.
  const known = store.known(SERIES.logs);
  if (known) {
    setAside(structure, known, SERIES.logs, logs.length);
    setAside(structure, known, SERIES.tables, tables.length);
  }
  const series = (prefix: string, index: number, size: number, data: number | Region): void => {
    addBytes(store, `${prefix}${index}`, prefix, size, data);
  };
  const drop = (prefix: string, length: number, count: number): void => {
    for (let i = length - count; i < length; i++) structure.removeLink(store.group(prefix), `${prefix}${i}`);
  };
  const placed: { index: number; region: Region; bytes: Uint8Array | null; size: number }[] = [];
  drop(SERIES.tables, tables.length, table.merged);
  tables = tables.slice(0, tables.length - table.merged);
  let fresh: Region | null = null;
  for (const { index, bytes, size, isFresh } of table.written) {
    if (index < tables.length) structure.removeLink(store.group(SERIES.tables), `${SERIES.tables}${index}`);
    const region = new Region(size, () => (bytes ? [bytes] : []));
    series(SERIES.tables, index, size, region);
    placed.push({ index, region, bytes, size });
    if (isFresh) fresh = region;
  }
  // The data must come first, the table behind it: their offsets are known to all ranks.
  if (fresh) structure.putFirst(fresh);
  if (addition.dataSize > 0) {
    const count = mergeable(logs, LOG_WEIGHT);
    drop(SERIES.logs, logs.length, count);
    const first = Math.min(start, ...logs.slice(logs.length - count).map(({ address }) => address));
    const kept = logs.slice(0, logs.length - count);
    structure.putFirst(new Region(addition.dataSize, () => addition.data));
    // A merged log dataset spans from the first of its parts to the end of this one, with whatever lies in between.
    const span = start + addition.dataSize - first;
    series(SERIES.logs, kept.length, span, first - committer.appender.base);
    const weight = logs.slice(logs.length - count).reduce((sum, item) => sum + item.weight, LOG_WEIGHT);
    logs = [...kept, { place: store.place, address: first, size: span, weight, bytes: EMPTY }];
  }

  const size = recordSize(addition.parts);
  const mergedRecords = mergeable(records, size);
  const old = records.slice(records.length - mergedRecords);
  const record = allocate(old.reduce((sum, item) => sum + item.size, size));
  drop(SERIES.records, records.length, mergedRecords);
  records = records.slice(0, records.length - mergedRecords);
  const recordRegion = new Region(record.length, () => [record]);
  series(SERIES.records, records.length, record.length, recordRegion);

  const tableCount = placed.reduce((most, { index }) => Math.max(most, index + 1), tables.length);
  store.counts = { ...addition.counts, logs: logs.length, tables: tableCount };
  complete(writeCounts(structure, store.counts));
  const planned = committer.plan();
  const item = (region: Region, length: number, bytes: Uint8Array | null): TierItem => {
    const address = committer.appender.base + region.address;
    return { place: store.place, address, size: length, weight: length, bytes };
  };
  records = [...records, item(recordRegion, record.length, record)];
  const all = [...tables];
  for (const { index, region, bytes, size: length } of placed)
    all[index] = item(region, length, length <= SMALL ? bytes : null);
  const after = { logs, tables: all, records };
  store.state = after;
  return { store, committer, planned, before, after, addition, record, merged: old };
}

/** What a commit does to the tables: so many of the last ones go, and these are written, a new one or another in an old one's place. */
interface TablePlan {
  readonly merged: number;
  readonly written: readonly { index: number; bytes: Uint8Array | null; size: number; isFresh: boolean }[];
}

function planTable({ tables }: LogState, addition: Addition, start: number): TablePlan {
  const { shapeOf, options, table, tableSize } = addition;
  const merged = table ? mergeable(tables, table.length) : 0;
  const kept = tables.length - merged;
  const written: { index: number; bytes: Uint8Array | null; size: number; isFresh: boolean }[] = [];
  if (merged > 0 && table) {
    const parts = tables.slice(kept).map(({ bytes, address }) => ({ bytes: bytes ?? EMPTY, address }));
    parts.push({ bytes: table, address: start + addition.dataSize });
    const bytes = mergeTables(parts, shapeOf, options);
    written.push({ index: kept, bytes, size: bytes.length, isFresh: false });
  } else if (tableSize > 0) written.push({ index: kept, bytes: table, size: tableSize, isFresh: true });
  if (!addition.rewrite) return { merged, written };
  // A dataset was deleted: where others refer to its entries, which the original cannot stand, the table is written anew.
  tables.slice(0, kept).forEach(({ bytes, address }, index) => {
    if (!bytes || !refersToGone(bytes, address, shapeOf)) return;
    const anew = mergeTables([{ bytes, address }], shapeOf, options);
    written.push({ index, bytes: anew, size: anew.length, isFresh: false });
  });
  return { merged, written };
}

/** A dataset of bytes in the log group. */
function addBytes(store: LogStore, name: string, prefix: string, size: number, data: number | Region): void {
  store.structure.createDataset(store.group(prefix), name, {
    dtype: BYTES,
    space: simpleSpace([size]),
    layout: contiguous(data),
    allocation: 'early',
    plain: true,
  });
}

/** The state of a store after a commit. */
export function stateOf({ planned, committer }: StorePlan): SubfileState {
  return { root: planned.append.root, end: committer.appender.base + planned.append.end };
}

/** The commit is in the file. */
export function storeDone(plan: StorePlan): void {
  const { store } = plan;
  const { root, end } = stateOf(plan);
  store.committed = plan.after;
  store.root = root;
  store.end = end;
  store.data.file.end = Math.max(store.data.file.end, store.end);
}

/** The commit is not in the file: what the log group held before is put back, what the commit made is taken out. */
export function storeFailed({ store, committer, planned, before }: StorePlan): void {
  const { structure } = store;
  committer.undo(planned);
  for (const [series, prefix] of Object.entries(SERIES) as [keyof LogState, string][]) {
    const group = store.known(prefix);
    for (const name of [...(group?.links.keys() ?? [])])
      if (group && name.startsWith(prefix)) structure.removeLink(group, name);
    before[series].forEach((item, k) => {
      addBytes(store, `${prefix}${k}`, prefix, item.size, item.address - committer.appender.base);
    });
  }
  store.state = before;
  store.counts = { ...store.counts, logs: before.logs.length, tables: before.tables.length };
}
