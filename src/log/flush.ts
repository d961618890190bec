import { checksummer } from '#platform';
import { T } from '../dtype/construct.ts';
import type { Committer, PlannedCommit } from '../hdf5/commit.ts';
import { simpleSpace } from '../hdf5/dataspace.ts';
import { Region } from '../hdf5/object-node.ts';
import { complete, type Io } from '../storage/drive.ts';
import { goneBuffer } from './arena.ts';
import { type CommitRecord, encodeRecord, recordSize } from './commit-record.ts';
import { CONFIG, logGroup, writeCounts } from './layout.ts';
import { type Log, type LogState, SERIES, SMALL } from './log.ts';
import type { LogDataset } from './log-dataset.ts';
import { filteredPieces } from './pieces.ts';
import { clipReturned } from './resize.ts';
import { type DatasetStage, Stage } from './stage.ts';
import { type EntryBlocks, MOST_DATA_BYTES, mostBlocks } from './table-format.ts';
import { mergeTables } from './table-merge.ts';
import { TableWriter } from './table-write.ts';
import { dropItems, mergeable, type TierItem } from './tiers.ts';

const BYTES = T.bitfield(1);
/** Data is written in pieces of this size; while one is on its way, the next one's checksum is computed. */
const PIECE = 8 * 2 ** 20;

/** Blocks of a dataset as they go into the index once they are committed. */
interface IndexPart {
  readonly dataset: LogDataset;
  readonly blocks: EntryBlocks;
  readonly offset: number;
  readonly stored: number;
}

/** Whose buffer it is, and how long it was. */
interface Lent {
  readonly path: string;
  readonly size: number;
}

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
  const append = (prefix: string, size: number, parts: () => readonly Uint8Array[], index: number): Region => {
    const region = new Region(size, parts);
    structure.createDataset(group, `${prefix}${index}`, {
      dtype: BYTES,
      space: simpleSpace([size]),
      layout: { kind: 'contiguous', data: region },
      allocation: 'early',
    });
    return region;
  };

  // The data must come first: its offset is already in the table.
  if (builder.size > 0) {
    const count = mergeable(logs, LOG_WEIGHT);
    dropItems(structure, group, SERIES.logs, logs.length, count);
    const first = count > 0 ? (logs[logs.length - count] as TierItem).address : start;
    const kept = logs.slice(0, logs.length - count);
    const data = new Region(builder.size, () => builder.data);
    structure.regions.add(data);
    // A merged log dataset spans from the first of its parts to the end of this one, with whatever lies in between.
    structure.createDataset(group, `${SERIES.logs}${kept.length}`, {
      dtype: BYTES,
      space: simpleSpace([start + builder.size - first]),
      layout: { kind: 'contiguous', data: first - committer.appender.base },
      allocation: 'early',
    });
    logs = [
      ...kept,
      { address: first, size: start + builder.size - first, weight: logWeight(logs, count), bytes: EMPTY },
    ];
  }
  if (table) {
    const { bytes, merged } = table;
    dropItems(structure, group, SERIES.tables, tables.length, merged);
    tables = tables.slice(0, tables.length - merged);
    if (bytes) {
      append(SERIES.tables, bytes.length, () => [bytes], tables.length);
      const address = start + builder.size;
      tables = [
        ...tables,
        { address, size: bytes.length, weight: bytes.length, bytes: bytes.length <= SMALL ? bytes : null },
      ];
    }
    log.rewrite = false;
  }

  const size = recordSize(1);
  const mergedRecords = mergeable(records, size);
  const old = records.slice(records.length - mergedRecords);
  const oldBytes = old.reduce((sum, item) => sum + item.size, 0);
  const record = new Uint8Array(oldBytes + size);
  dropItems(structure, group, SERIES.records, records.length, mergedRecords);
  records = records.slice(0, records.length - mergedRecords);
  const recordRegion = append(SERIES.records, record.length, () => [record], records.length);

  log.counts = { ...log.counts, logs: logs.length, tables: tables.length, config: configOf(log) };
  complete(writeCounts(structure, log.counts));
  const planned = committer.plan();
  records = [
    ...records,
    {
      address: committer.appender.base + recordRegion.address,
      size: record.length,
      weight: record.length,
      bytes: record,
    },
  ];
  const after = { logs, tables, records };
  log.state = after;
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
  };
}

/** The table of the flush, and how many of those before it are merged into it; null bytes: nothing is left of them. */
function planTable(
  log: Log,
  builder: FlushBuilder,
  start: number,
): { bytes: Uint8Array | null; merged: number } | null {
  const { tables } = log.state;
  const fresh = builder.size > 0 ? builder.table.finish() : null;
  const rewrite = log.rewrite && tables.length > 0 && tables.every((item) => item.bytes);
  if (!fresh && !rewrite) return null;
  const merged = rewrite ? tables.length : mergeable(tables, fresh?.length ?? 0);
  if (merged === 0) return { bytes: fresh, merged };
  const parts = tables.slice(tables.length - merged).map(({ bytes, address }) => ({ bytes: bytes ?? EMPTY, address }));
  if (fresh) parts.push({ bytes: fresh, address: start + builder.size });
  return { bytes: mergeTables(parts, (id) => log.shapeOf(id), log.options.table), merged };
}

const EMPTY = new Uint8Array(0);

/** Log datasets merge by number, not by size: nothing of them is rewritten. */
const LOG_WEIGHT = 64;

function logWeight(logs: readonly TierItem[], merged: number): number {
  return logs.slice(logs.length - merged).reduce((sum, item) => sum + item.weight, LOG_WEIGHT);
}

function configOf(log: Log): number {
  const { table } = log.options;
  // What is in the file already stays; the original looks for references only where the bit for them is set.
  return (
    log.counts.config |
    (table.encode ? CONFIG.encode : 0) |
    (table.share ? CONFIG.share : 0) |
    (table.compressFrom < Infinity ? CONFIG.zip : 0)
  );
}

/** The parts of all stages, datasets in the order of their first post, each dataset's posts in theirs. */
function inOrder(stages: readonly Stage[]): DatasetStage[] {
  const byDataset = new Map<LogDataset, DatasetStage[]>();
  for (const stage of stages) {
    for (const part of stage.datasets) {
      const list = byDataset.get(part.dataset);
      if (list) list.push(part);
      else byDataset.set(part.dataset, [part]);
    }
  }
  return [...byDataset.values()].flat();
}

/** Lays the posted data out one after the other and writes the table of it. */
class FlushBuilder {
  readonly #log: Log;
  readonly table: TableWriter;
  readonly data: Uint8Array[] = [];
  readonly parts: IndexPart[] = [];
  readonly lent = new Map<Uint8Array, Lent>();
  size = 0;
  readonly #start: number;

  constructor(log: Log, start: number) {
    this.#log = log;
    this.#start = start;
    this.table = new TableWriter(log.options.table);
  }

  add(stage: DatasetStage): void {
    if (stage.dataset.filters.length > 0) this.#addFiltered(stage);
    else this.#addPlain(stage);
  }

  #addPlain(stage: DatasetStage): void {
    const { dataset } = stage;
    const rank = dataset.shape.length;
    const { merge } = this.#log.options.table;
    let offset = this.#start + this.size;
    for (const run of stage.runs) {
      const starts = run.shared ? run.shared.starts : stage.starts;
      const counts = run.shared ? run.shared.counts : stage.counts;
      // Blocks of a scalar take no bytes in a table: a list of them could not be told from damage.
      const single = rank === 0 || (!merge && !run.shared);
      const most = mostBlocks(rank);
      for (let from = run.from; from < run.to; ) {
        let to = from;
        let bytes = 0;
        for (; to < run.to; to++) {
          const next = volume(counts, to * rank, rank, dataset.elements.size);
          if (to > from && (single || bytes + next > MOST_DATA_BYTES || to - from === most)) break;
          bytes += next;
        }
        const blocks = { rank, starts, counts, from, to };
        const whole = from === run.from && to === run.to;
        if (to - from === 1 && bytes > MOST_DATA_BYTES) this.#addLarge(dataset, blocks, offset);
        else this.#entry(dataset, blocks, whole ? run.shared : null, offset, bytes, 0);
        offset += bytes;
        from = to;
      }
    }
    for (const { bytes, lent } of stage.arena.contents()) {
      this.data.push(bytes);
      if (lent) this.lent.set(bytes, { path: dataset.path, size: bytes.length });
    }
    this.size += stage.arena.size;
  }

  /** A block of more than 2 GiB: cut along its slowest dimension, which leaves its data in the same order. */
  #addLarge(dataset: LogDataset, { rank, starts, counts, from }: EntryBlocks, offset: number): void {
    const start = starts.slice(from * rank, (from + 1) * rank);
    const count = counts.slice(from * rank, (from + 1) * rank);
    const bytes = volume(count, 0, rank, dataset.elements.size);
    if (bytes <= MOST_DATA_BYTES) {
      this.#entry(dataset, { rank, starts: start, counts: count, from: 0, to: 1 }, null, offset, bytes, 0);
      return;
    }
    const d = count.findIndex((n) => n > 1);
    const half = Math.ceil((count[d] as number) / 2);
    const first = count.slice();
    first[d] = half;
    const second = count.slice();
    second[d] = (count[d] as number) - half;
    const later = start.slice();
    later[d] = (start[d] as number) + half;
    this.#addLarge(dataset, { rank, starts: start, counts: first, from: 0, to: 1 }, offset);
    this.#addLarge(
      dataset,
      { rank, starts: later, counts: second, from: 0, to: 1 },
      offset + (bytes / (count[d] as number)) * half,
    );
  }

  #addFiltered(stage: DatasetStage): void {
    const { dataset, arena } = stage;
    const rank = dataset.shape.length;
    let at = 0;
    for (const run of stage.runs) {
      const starts = run.shared ? run.shared.starts : stage.starts;
      const counts = run.shared ? run.shared.counts : stage.counts;
      for (let i = run.from; i < run.to; i++) {
        const start = starts.slice(i * rank, (i + 1) * rank);
        const count = counts.slice(i * rank, (i + 1) * rank);
        const bytes = volume(count, 0, rank, dataset.elements.size);
        const data = arena.slice(at, bytes);
        at += bytes;
        for (const piece of filteredPieces(
          start,
          count,
          data,
          dataset.elements.size,
          dataset.chunks,
          dataset.filters,
        )) {
          const blocks = { rank, starts: piece.start, counts: piece.count, from: 0, to: 1 };
          this.#entry(dataset, blocks, null, this.#start + this.size, piece.bytes.length, piece.bytes.length);
          this.data.push(piece.bytes);
          this.size += piece.bytes.length;
        }
      }
    }
  }

  #entry(
    dataset: LogDataset,
    blocks: EntryBlocks,
    key: object | null,
    offset: number,
    size: number,
    stored: number,
  ): void {
    this.table.add({ id: dataset.id, shape: dataset.shape, records: dataset.records, blocks, key, offset, size });
    if (dataset.index) this.parts.push({ dataset, blocks, offset, stored });
  }
}

function volume(counts: Float64Array, k: number, rank: number, size: number): number {
  let product = size;
  for (let d = 0; d < rank; d++) product *= counts[k + d] as number;
  return product;
}

// ------------------------------------------------------------------ writing

/**
 * Writes a planned flush. May be started again from the beginning. `patient`: a blocking call may overtake it, after which a
 * caller may change buffers it lent while a write of ours still reads them; those are copied first, piece by piece.
 */
export function* writeFlush(log: Log, committer: Committer, plan: FlushPlan, patient: boolean): Io<void> {
  const { planned } = plan;
  const { base } = committer.appender;
  const sums = log.options.checksum ? checksummer : null;
  const dataSum = sums?.();
  yield* committer.write(planned, function* (append) {
    let at = base + append.at;
    const pieces = new Pieces(plan.data, plan.lent, patient && plan.lent.size > 0 ? log.takeCopies(PIECE) : null);
    for (let parts = pieces.next(); parts.length > 0; ) {
      const current = parts;
      const size = current.reduce((sum, part) => sum + part.length, 0);
      yield {
        op: 'write',
        parts: current,
        offset: at,
        meanwhile: () => {
          if (dataSum) for (const part of current) dataSum.update(part);
          parts = pieces.next();
        },
      };
      at += size;
    }
    const rest = append.parts.slice(plan.data.length);
    const restSum = sums?.();
    for (const part of rest) if (part !== plan.record) restSum?.update(part);
    const record: CommitRecord = {
      sequence: plan.sequence,
      time: plan.time,
      requests: plan.requests,
      root: append.root,
      start: base + append.at,
      end: base + append.end,
      kind: dataSum?.kind ?? 0,
      ranks: [{ end: base + append.at + plan.dataSize, checksum: dataSum?.digest() ?? new Uint8Array(8) }],
      rest: restSum?.digest() ?? new Uint8Array(8),
    };
    let filled = 0;
    for (const { bytes, size } of plan.merged) {
      if (bytes) plan.record.set(bytes, filled);
      filled += size;
    }
    plan.record.set(encodeRecord(record), filled);
    yield { op: 'write', parts: rest, offset: at };
  });
}

/** Data in portions of about {@link PIECE} bytes: many small parts together, large ones cut. */
class Pieces {
  readonly #data: readonly Uint8Array[];
  readonly #lent: ReadonlyMap<Uint8Array, Lent>;
  /** Where lent parts are copied to, in turn: one is filled while the other is written. */
  readonly #copies: readonly [Uint8Array, Uint8Array] | null;
  #turn: 0 | 1 = 0;
  #part = 0;
  #from = 0;

  constructor(
    data: readonly Uint8Array[],
    lent: ReadonlyMap<Uint8Array, Lent>,
    copies: readonly [Uint8Array, Uint8Array] | null,
  ) {
    this.#data = data;
    this.#lent = lent;
    this.#copies = copies;
  }

  next(): Uint8Array[] {
    const parts: Uint8Array[] = [];
    this.#turn = this.#turn === 0 ? 1 : 0;
    const copy = this.#copies?.[this.#turn];
    for (let size = 0; size < PIECE && parts.length < 512 && this.#part < this.#data.length; ) {
      const part = this.#data[this.#part] as Uint8Array;
      const lent = this.#lent.get(part);
      if (lent && part.length !== lent.size) throw goneBuffer(lent.path);
      const piece = part.subarray(this.#from, this.#from + PIECE - size);
      if (copy && lent) {
        copy.set(piece, size);
        parts.push(copy.subarray(size, size + piece.length));
      } else parts.push(piece);
      size += piece.length;
      this.#from += piece.length;
      if (this.#from < part.length) continue;
      this.#part++;
      this.#from = 0;
    }
    return parts;
  }
}

/** The flush is in the file: its blocks can be found, its memory can be used again. */
export function flushDone(log: Log, plan: FlushPlan, overtaken: boolean): void {
  log.data.file.end = Math.max(log.data.file.end, plan.planned.append.end + (log.committer?.appender.base ?? 0));
  if (overtaken) log.forgetCopies();
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
      at += volume(blocks.counts, i * rank, rank, dataset.elements.size);
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
  for (const [series, prefix] of Object.entries(SERIES) as [keyof LogState, string][]) {
    plan.before[series].forEach((item, k) => {
      structure.createDataset(group, `${prefix}${k}`, {
        dtype: BYTES,
        space: simpleSpace([item.size]),
        layout: { kind: 'contiguous', data: item.address - committer.appender.base },
        allocation: 'early',
      });
    });
  }
  log.counts = { ...log.counts, logs: plan.before.logs.length, tables: plan.before.tables.length };
  for (const stage of plan.stages) {
    log.underWay.splice(log.underWay.indexOf(stage), 1);
    clipReturned(stage);
  }
  log.waiting = [...plan.stages, ...log.waiting];
}
