import { checksummer } from '#platform';
import { concatBytes } from '../../base/buffers.ts';
import { type Attempt, agreedError, withRank } from '../../comm/agreement.ts';
import type { CollectiveFile, Communicator } from '../../comm/communicator.ts';
import { decodeError, encodeError } from '../../comm/error.ts';
import { ByteWriter } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import type { Io } from '../../storage/io.ts';
import { type RankPart, type SubfileState, statePart } from '../format/commit-record.ts';
import { headerSize, moveEntries, tableHeader } from '../format/table-write.ts';
import type { Log } from '../log.ts';
import { goneBuffer } from '../post/arena.ts';
import type { Stage } from '../post/stage.ts';
import { type LogStore, SMALL } from '../store.ts';
import type { Contributed, Contribution } from './contribution.ts';
import { type Addition, nextOffset, type StoreCommit } from './store-commit.ts';
import { type FlushPlan, NO_SUM, writeContribution, writeRest } from './write.ts';

/** What every rank knows at the end of a flush; see `Flushed`. */
interface Outcome {
  readonly time: number;
  readonly bytes: number;
  readonly states: readonly SubfileState[];
}

export interface RankOptions {
  readonly power: boolean;
  /** For collective writes by MPI-IO; null: each rank writes by itself. */
  readonly file: CollectiveFile | null;
}

/** What is pending, on this rank or on all of them. */
export interface Pending {
  readonly requests: number;
  /** The structure has changed. */
  readonly isDirty: boolean;
  readonly time: number;
}

/**
 * The sum of what is pending on all ranks, and whether elements of any rank point elsewhere. If laying out the data failed on one of
 * them, every rank throws that error.
 */
export function agreeOnPending(
  comm: Communicator,
  pending: Pending,
  laidOut: Attempt<void>,
  points: boolean,
): Pending & { readonly pointing: boolean } {
  const failed = 'error' in laidOut;
  // The time is that of rank 0: the records of one commit in several files must agree on it.
  const time = comm.rank === 0 ? pending.time : 0;
  const mine = Float64Array.of(failed ? 1 : 0, pending.isDirty ? 1 : 0, pending.requests, time, points ? 1 : 0);
  const [failures, dirty, requests, agreed, pointing] = comm.allreduce(mine, 'sum') as unknown as [
    number,
    number,
    number,
    number,
    number,
  ];
  if (failures > 0) throw agreedError(comm, failed, failed ? laidOut.error : undefined);
  return { requests, isDirty: dirty > 0, time: agreed, pointing: pointing > 0 };
}

/**
 * Gives the heaps of all ranks their places, before all data, and the objects that posts of any rank refer to their numbers. All
 * ranks have the same structure, so that a path names the same object on each.
 */
export function placeRanks(log: Log, comm: Communicator, contribution: Contribution, stages: readonly Stage[]): void {
  const { own, pointers } = log;
  const paths = new TextEncoder().encode(JSON.stringify(pointers.unnumberedPaths()));
  const all = comm.allgather(paths).map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as string[]);
  pointers.numberAt(all.flat());
  const size = stages.reduce((sum, { heap }) => sum + (heap?.size ?? 0), 0);
  const before = own.comm.exscan(Float64Array.of(size))[0] as number;
  // Only the rank that appends has its file open for sure.
  const sums = own.comm.allreduce(Float64Array.of(size, nextOffset(own), own.committer ? own.base : 0), 'sum');
  const [total, start, base] = sums as unknown as [number, number, number];
  contribution.place(stages, start + before, base);
  contribution.heapsSize = total;
}

/**
 * Gives every rank its offset: data rank after rank, then the table with a section a rank. Rank 0 joins the sections of a small
 * table, because it may have to merge it with others later; of a large one each rank writes its own section.
 */
export function layOutRanks(store: LogStore, contribution: Contribution): Addition {
  const { comm } = store;
  const { size, heapsSize } = contribution;
  const section = contribution.table.section();
  const before = comm.exscan(Float64Array.of(size, section.length));
  // Only the rank that appends knows where the append begins; the others add 0 to that sum.
  const sums = comm.allreduce(Float64Array.of(size, section.length, nextOffset(store)), 'sum');
  const [elementsSize, sectionsSize, start] = sums as unknown as [number, number, number];
  contribution.offset = start + heapsSize + (before[0] as number);
  moveEntries(section, contribution.offset);
  if (elementsSize === 0) return { dataSize: 0, data: [], table: null, tableSize: 0, header: null, parts: 0 };
  const heapsFirst = heapsSize > 0;
  const dataSize = heapsSize + elementsSize;
  const headerLength = headerSize(comm.size);
  const tableSize = headerLength + sectionsSize;
  const addition = { dataSize, data: [], tableSize, parts: heapsFirst ? 2 * comm.size : comm.size, heapsFirst };
  if (tableSize <= SMALL) {
    const sections = comm.gather(section, 0);
    const table = sections && concatBytes([tableHeader(sections.map(({ length }) => length)), ...sections]);
    return { ...addition, table, header: null };
  }
  const sizes = comm.gather(new Uint8Array(Float64Array.of(section.length).buffer), 0);
  const header = sizes && tableHeader(sizes.map((bytes) => new Float64Array(bytes.slice().buffer)[0] as number));
  contribution.section = { bytes: section, offset: start + dataSize + headerLength + (before[1] as number) };
  return { ...addition, table: null, header };
}

/**
 * Writes a flush of several ranks. Each writes its data; when all have, the first rank of each file writes the rest and flips its
 * superblock; with subfiles, when all have done that, the main file follows. If anything fails anywhere nothing counts, and
 * every rank throws the same error.
 */
export function* writeRanks(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions): Io<Outcome> {
  const { own } = log;
  const written = yield* writeData(log, comm, plan, options);
  const reports = collect(own.comm.gather(written, 0));
  if (!log.hasSubfiles) {
    return yield* conclude(comm, reports, function* (parts) {
      const store = plan.store as StoreCommit;
      yield* writeRest(log, plan, store, decodeParts(parts));
      return { time: plan.time, bytes: store.planned.bytes, states: [] };
    });
  }
  const committed = yield* commitSubfile(log, comm, plan, reports);
  return yield* conclude(comm, collect(comm.gather(committed, 0)), function* (changes) {
    const main = plan.main as StoreCommit;
    const states = [...log.states];
    let { bytes } = main.planned;
    for (const change of changes) {
      const cursor = new Cursor(change, 0);
      states[cursor.u32()] = { root: cursor.u64(), end: cursor.u64() };
      bytes += cursor.u64();
    }
    yield* writeRest(log, plan, main, states.map(statePart));
    return { time: plan.time, bytes, states };
  });
}

/** Writes the data of this rank, once the first rank of the file has made room for all; returns a report. */
function* writeData(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions): Io<Uint8Array> {
  const { own } = log;
  const { store, contribution } = plan;
  if (!plan.hasData) return plan.failure ? failure(plan.failure.error, comm.rank) : success();
  // The file grows only by its first rank, which would take any other change of its size for that of a stranger.
  let room = plan.failure ? failure(plan.failure.error, comm.rank) : success();
  if (store) room = yield* reported(comm, own.run(makeRoom(store)));
  const go = own.comm.bcast(own.comm.rank === 0 ? room : null, 0);
  if (isFailure(go)) return own.comm.rank === 0 ? room : success();
  return yield* reported(comm, own.run(write()));

  function* write(): Io<Uint8Array> {
    const parts: RankPart[] = [];
    for (const bytes of contribution.parts()) {
      let checksum: Uint8Array;
      if (options.file)
        checksum = writeCollectively(log, bytes, (pieces, offset) => options.file?.writeAtAll(pieces, offset));
      else ({ checksum } = yield* writeContribution(log, bytes, false));
      parts.push({ rank: comm.rank, end: bytes.offset + bytes.size, checksum });
    }
    if (options.file && options.power) options.file.sync();
    else if (options.power) yield { op: 'sync' };
    return concatBytes(parts.map(encodePart));
  }
}

/** Writes the data of this rank in one collective call; returns the checksum. */
function writeCollectively(
  log: Log,
  { data, lent, offset, section }: Contributed,
  write: (parts: readonly Uint8Array[], offset: number) => void,
): Uint8Array {
  const gone = data.find((part) => lent.has(part) && part.length !== lent.get(part)?.size);
  // The calls are collective: they are made whatever is wrong on this rank.
  write(gone ? [] : data, offset);
  if (section) write(gone ? [] : [section.bytes], section.offset);
  if (gone) throw goneBuffer(lent.get(gone)?.path ?? '');
  const sum = log.options.checksum ? checksummer() : null;
  if (sum) for (const part of data) sum.update(part);
  if (section) sum?.update(section.bytes);
  return sum?.digest() ?? NO_SUM;
}

function* makeRoom({ committer, planned }: StoreCommit): Io<Uint8Array> {
  yield* committer.appender.reserve(planned.append.end);
  return NOTHING;
}

/** Commits a subfile, on the first of its ranks; returns a report with its new state. */
function* commitSubfile(log: Log, comm: Communicator, plan: FlushPlan, reports: Reports | null): Io<Uint8Array> {
  const { store } = plan;
  if (!reports) return success();
  if (reports.error) return failure(reports.error, comm.rank);
  if (!store) return success();
  return yield* reported(comm, store.store.run(write(store)));

  function* write(commit: StoreCommit): Io<Uint8Array> {
    const { planned, committer } = commit;
    yield* writeRest(log, plan, commit, decodeParts((reports as Reports).parts));
    const { root, end } = planned.append;
    const out = new ByteWriter(28).u32(commit.store.index).u64(root);
    return out
      .u64(committer.appender.base + end)
      .u64(planned.bytes)
      .done();
  }
}

/** Rank 0 makes the flush count, if all reports are good; every rank learns the outcome. */
function* conclude(
  comm: Communicator,
  reports: Reports | null,
  commit: (parts: readonly Uint8Array[]) => Io<Outcome>,
): Io<Outcome> {
  let result: Uint8Array | null = null;
  if (reports) {
    const { error, parts } = reports;
    result = error ? failure(error, comm.rank) : yield* reported(comm, encoded(commit(parts)));
  }
  const outcome = comm.bcast(result, 0);
  if (isFailure(outcome)) throw withRank(decodeError(outcome.subarray(1)), 0);
  return JSON.parse(new TextDecoder().decode(outcome.subarray(1))) as Outcome;
}

function* encoded(io: Io<Outcome>): Io<Uint8Array> {
  return new TextEncoder().encode(JSON.stringify(yield* io));
}

// ---------------------------------------------------------------- reports: 0 and a message, or 1 and an error

interface Reports {
  readonly error: Error | undefined;
  /** The messages that are not empty, in the order of ranks. */
  readonly parts: readonly Uint8Array[];
}

const NOTHING = new Uint8Array(0);

const success = (message: Uint8Array = NOTHING): Uint8Array =>
  new ByteWriter(1 + message.length).u8(0).put(message).done();

function failure(error: unknown, rank: number): Uint8Array {
  const bytes = encodeError(error, rank);
  return new ByteWriter(1 + bytes.length).u8(1).put(bytes).done();
}

const isFailure = (report: Uint8Array): boolean => report[0] === 1;

function* reported(comm: Communicator, io: Io<Uint8Array>): Io<Uint8Array> {
  try {
    return success(yield* io);
  } catch (error) {
    return failure(error, comm.rank);
  }
}

/** The reports of all ranks, on the rank that gathers them. */
function collect(all: readonly Uint8Array[] | null): Reports | null {
  if (!all) return null;
  const bad = all.findIndex(isFailure);
  const error = bad < 0 ? undefined : withRank(decodeError((all[bad] as Uint8Array).subarray(1)), bad);
  return { error, parts: all.filter((report) => report.length > 1).map((report) => report.subarray(1)) };
}

function encodePart({ rank, end, checksum }: RankPart): Uint8Array {
  return new ByteWriter(20).u32(rank).u64(end).put(checksum).done();
}

/** What the ranks wrote, in the order of the file: the heaps of all, then the data of all. */
function decodeParts(reports: readonly Uint8Array[]): RankPart[] {
  const cursors = reports.map((bytes) => new Cursor(bytes, 0));
  const parts: RankPart[] = [];
  while (cursors.some(({ left }) => left > 0))
    for (const cursor of cursors)
      parts.push({ rank: cursor.u32(), end: cursor.u64(), checksum: cursor.take(8).slice() });
  return parts;
}
