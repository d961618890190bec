import { T } from '../dtype/construct.ts';
import type { Committer, PlannedCommit } from '../hdf5/commit.ts';
import { simpleSpace } from '../hdf5/dataspace.ts';
import { type ObjectNode, Region } from '../hdf5/object-node.ts';
import type { Structure } from '../hdf5/structure.ts';
import { allocate } from '../slab.ts';
import { complete } from '../storage/drive.ts';
import { blockBytes } from './block-index.ts';
import { recordSize } from './commit-record.ts';
import { FlushBuilder, type IndexPart, inOrder, type Lent } from './flush-data.ts';
import { CONFIG, logGroup, setAside, writeCounts } from './layout.ts';
import { type Log, type LogState, SERIES, SMALL } from './log.ts';
import { clipReturned } from './resize.ts';
import { Stage } from './stage.ts';
import { mergeTables, refersToGone } from './table-merge.ts';
import { dropItems, LOG_WEIGHT, mergeable, type TierItem } from './tiers.ts';

const BYTES = T.bitfield(1);

/** A flush whose bytes and places are fixed. */
export interface FlushPlan {
  readonly planned: PlannedCommit;
  readonly sequence: number;
  readonly time: number;
  readonly requests: number;
  readonly stages: readonly Stage[];
  readonly before: LogState;
  readonly after: LogState;
  readonly data: readonly Uint8Array[];
  /** Those of the data that belong to the caller. */
  readonly lent: ReadonlyMap<Uint8Array, Lent>;
  readonly dataSize: number;
  /** Filled while the data is written: with the records it replaces, which flushes before this one may have yet to fill, and its own. */
  readonly record: Uint8Array;
  readonly merged: readonly TierItem[];
  readonly parts: readonly IndexPart[];
  /** Tables with references to deleted datasets were to be written anew. */
  readonly rewrote: boolean;
}

/** Everything that waits becomes one append: data, table, commit record, structure. Undefined: there is nothing to commit. */
export function planFlush(log: Log, committer: Committer, sequence: number, time: number): FlushPlan | undefined {
  const { structure } = log;
  const stages = [...log.waiting, log.current].filter((stage) => !stage.isEmpty);
  if (stages.length === 0 && !committer.pending) return undefined;
  const before = log.state;
  const start = committer.appender.base + committer.appender.position;
  const builder = new FlushBuilder(log, start);
  for (const part of inOrder(stages)) if (!part.dataset.deleted) builder.add(part);

  let { logs, tables, records } = before;
  const table = planTable(log, builder, start);

  // Nothing above changes anything, so that whatever fails there leaves everything pending.
  const group = logGroup(structure);
  setAside(structure, group, SERIES.logs, logs.length);
  setAside(structure, group, SERIES.tables, tables.length);
  const series = (prefix: string, index: number, size: number, data: number | Region): void => {
    addBytes(structure, group, `${prefix}${index}`, size, data);
  };

  // The data must come first: its offset is already in the table.
  if (builder.size > 0) {
    const count = mergeable(logs, LOG_WEIGHT);
    dropItems(structure, group, SERIES.logs, logs.length, count);
    const first = Math.min(start, ...logs.slice(logs.length - count).map(({ address }) => address));
    const kept = logs.slice(0, logs.length - count);
    structure.putFirst(new Region(builder.size, () => builder.data));
    // A merged log dataset spans from the first of its parts to the end of this one, with whatever lies in between.
    const span = start + builder.size - first;
    series(SERIES.logs, kept.length, span, first - committer.appender.base);
    logs = [...kept, { address: first, size: span, weight: logWeight(logs, count), bytes: EMPTY }];
  }
  const placed: { index: number; region: Region; bytes: Uint8Array }[] = [];
  dropItems(structure, group, SERIES.tables, tables.length, table.merged);
  tables = tables.slice(0, tables.length - table.merged);
  for (const { index, bytes } of table.written) {
    if (index < tables.length) structure.removeLink(group, `${SERIES.tables}${index}`);
    const region = new Region(bytes.length, () => [bytes]);
    series(SERIES.tables, index, bytes.length, region);
    placed.push({ index, region, bytes });
  }

  const size = recordSize(1);
  const mergedRecords = mergeable(records, size);
  const old = records.slice(records.length - mergedRecords);
  const oldBytes = old.reduce((sum, item) => sum + item.size, 0);
  const record = allocate(oldBytes + size);
  dropItems(structure, group, SERIES.records, records.length, mergedRecords);
  records = records.slice(0, records.length - mergedRecords);
  const recordRegion = new Region(record.length, () => [record]);
  series(SERIES.records, records.length, record.length, recordRegion);

  const tableCount = placed.reduce((most, { index }) => Math.max(most, index + 1), tables.length);
  log.counts = { ...log.counts, logs: logs.length, tables: tableCount, config: configOf(log) };
  complete(writeCounts(structure, log.counts));
  const planned = committer.plan();
  const item = (region: Region, bytes: Uint8Array, keep: boolean): TierItem => {
    const address = committer.appender.base + region.address;
    return { address, size: bytes.length, weight: bytes.length, bytes: keep ? bytes : null };
  };
  records = [...records, item(recordRegion, record, true)];
  tables = [...tables];
  for (const { index, region, bytes } of placed)
    (tables as TierItem[])[index] = item(region, bytes, bytes.length <= SMALL);
  const after = { logs, tables, records };
  log.state = after;
  const rewrote = log.rewrite;
  log.rewrite = false;
  log.underWay.push(...stages);
  log.waiting = [];
  if (!log.current.isEmpty) log.current = new Stage();
  return {
    planned,
    sequence,
    time,
    requests: stages.reduce((sum, stage) => sum + stage.requests, 0),
    stages,
    before,
    after,
    data: builder.data,
    lent: builder.lent,
    dataSize: builder.size,
    record,
    merged: old,
    parts: builder.parts,
    rewrote,
  };
}

/** What a flush does to the tables: so many of the last ones go, and these are written, a new one or another in an old one's place. */
interface TablePlan {
  readonly merged: number;
  readonly written: readonly { index: number; bytes: Uint8Array }[];
}

function planTable(log: Log, builder: FlushBuilder, start: number): TablePlan {
  const { tables } = log.state;
  const shapeOf = (id: number) => log.shapeOf(id);
  const fresh = builder.size > 0 ? builder.table.finish() : null;
  const merged = fresh ? mergeable(tables, fresh.length) : 0;
  const kept = tables.length - merged;
  const written: { index: number; bytes: Uint8Array }[] = [];
  if (fresh) {
    const parts = tables.slice(kept).map(({ bytes, address }) => ({ bytes: bytes ?? EMPTY, address }));
    parts.push({ bytes: fresh, address: start + builder.size });
    written.push({ index: kept, bytes: merged > 0 ? mergeTables(parts, shapeOf, log.options.table) : fresh });
  }
  if (!log.rewrite) return { merged, written };
  // A dataset was deleted: where others refer to its entries, which the original cannot stand, the table is written anew.
  tables.slice(0, kept).forEach(({ bytes, address }, index) => {
    if (!bytes || !refersToGone(bytes, address, shapeOf)) return;
    written.push({ index, bytes: mergeTables([{ bytes, address }], shapeOf, log.options.table) });
  });
  return { merged, written };
}

/** A dataset of bytes in the log group. */
function addBytes(structure: Structure, group: ObjectNode, name: string, size: number, data: number | Region): void {
  structure.createDataset(group, name, {
    dtype: BYTES,
    space: simpleSpace([size]),
    layout: { kind: 'contiguous', data },
    allocation: 'early',
    plain: true,
  });
}

const EMPTY = new Uint8Array(0);

function logWeight(logs: readonly TierItem[], merged: number): number {
  return logs.slice(logs.length - merged).reduce((sum, item) => sum + item.weight, LOG_WEIGHT);
}

function configOf(log: Log): number {
  const { table } = log.options;
  // What is in the file already stays; the original looks for references only where the bit for them is set. That a file was
  // written by passing everything through says nothing about its bytes, but keeps the original from reading it.
  return (
    (log.counts.config & ~CONFIG.passthru) |
    (table.encode ? CONFIG.encode : 0) |
    (table.share ? CONFIG.share : 0) |
    (table.compressFrom < Infinity ? CONFIG.zip : 0)
  );
}

/** The flush is in the file: its blocks can be found, its memory can be used again. */
export function flushDone(log: Log, plan: FlushPlan, overtaken: boolean): void {
  log.data.file.end = Math.max(log.data.file.end, plan.planned.append.end + (log.committer?.appender.base ?? 0));
  log.tables.items = plan.after.tables;
  log.records = plan.after.records;
  for (const { dataset, blocks, offset, stored } of plan.parts) {
    const { index } = dataset;
    if (!index) continue;
    const { rank, from, to } = blocks;
    index.reserve(to - from);
    index.starts.set(blocks.starts.subarray(from * rank, to * rank), index.length * rank);
    index.counts.set(blocks.counts.subarray(from * rank, to * rank), index.length * rank);
    let at = offset;
    for (let i = from; i < to; i++) {
      index.add(at, stored);
      at += blockBytes(blocks.counts, i * rank, rank, dataset.elements.size);
    }
  }
  const indexed = new Set(plan.parts.map(({ dataset }) => dataset));
  for (const stage of plan.stages) {
    log.underWay.splice(log.underWay.indexOf(stage), 1);
    // An index that a read made while the flush was on its way knows nothing of it.
    for (const { dataset } of stage.datasets) if (!indexed.has(dataset)) dataset.index = null;
    log.release(stage, !overtaken);
  }
}

/** The flush is not in the file: its posts wait again, before everything that was posted since. */
export function flushFailed(log: Log, committer: Committer, plan: FlushPlan): void {
  const { structure } = log;
  committer.undo(plan.planned);
  const group = logGroup(structure);
  // What the log group held before is put back, what the flush made is taken out.
  for (const prefix of Object.values(SERIES)) {
    for (const name of [...group.links.keys()]) if (name.startsWith(prefix)) structure.removeLink(group, name);
  }
  log.state = plan.before;
  log.rewrite ||= plan.rewrote;
  for (const [series, prefix] of Object.entries(SERIES) as [keyof LogState, string][]) {
    plan.before[series].forEach((item, k) => {
      addBytes(structure, group, `${prefix}${k}`, item.size, item.address - committer.appender.base);
    });
  }
  log.counts = { ...log.counts, logs: plan.before.logs.length, tables: plan.before.tables.length };
  for (const stage of plan.stages) {
    log.underWay.splice(log.underWay.indexOf(stage), 1);
    clipReturned(stage);
  }
  log.waiting = [...plan.stages, ...log.waiting];
}
