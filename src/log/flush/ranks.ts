import { checksummer } from '#platform';
import { concatBytes } from '../../base/buffers.ts';
import { type Attempt, attempt, withRank } from '../../comm/agreement.ts';
import type { CollectiveFile, Communicator } from '../../comm/communicator.ts';
import { decodeError, encodeError } from '../../comm/error.ts';
import { ByteWriter } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import { attemptIo, type Io } from '../../storage/io.ts';
import { type RankPart, type SubfileState, statePart } from '../format/commit-record.ts';
import { headerSize, moveEntries, tableHeader } from '../format/table-write.ts';
import type { Log } from '../log.ts';
import { goneBuffer } from '../post/arena.ts';
import { joinPosts } from '../post/join.ts';
import type { Stage } from '../post/stage.ts';
import { type LogStore, SMALL } from '../store.ts';
import { type Contributed, Contribution } from './contribution.ts';
import { joinedParts, moveParts } from './numbered.ts';
import { type Addition, nextOffset, planStore } from './store-commit.ts';
import { type FlushPlan, NO_SUM, type RankLayout, writeContribution, writeRest } from './write.ts';

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

/** How the ranks plan a flush together. */
export interface Together {
  /** The collective that every flush begins with: compares what the ranks did, and exchanges a message. */
  agree(message: Uint8Array): readonly Uint8Array[];
  now<T>(io: Io<T>): T;
}

/** A flush of several ranks, laid out: every rank has the offsets of what it writes. */
interface LaidOut {
  readonly pending: Pending;
  readonly contribution: Contribution;
  readonly layout: RankLayout;
}

/** Numbers of a rank's message at the beginning of a flush, in this order. */
const NUMBERS = ['store', 'start', 'base', 'requests', 'dirty', 'time', 'points', 'heap', 'size', 'section'] as const;
type Numbers = Readonly<Record<(typeof NUMBERS)[number], number>>;

/** Of a rank: what it adds, or why it cannot; and the paths of objects that its posts refer to. */
interface RankMessage extends Numbers {
  readonly paths: readonly string[];
  readonly error: Error | undefined;
}

function encodeMessage(numbers: Numbers, paths: readonly string[], laidOut: Attempt<void>, rank: number): Uint8Array {
  const failed = 'error' in laidOut;
  const rest = failed
    ? encodeError(laidOut.error, rank)
    : encoder.encode(paths.length > 0 ? JSON.stringify(paths) : '');
  const out = new ByteWriter(1 + 8 * NUMBERS.length + rest.length).u8(failed ? 1 : 0);
  for (const name of NUMBERS) out.u64(numbers[name]);
  return out.put(rest).done();
}

function decodeMessage(bytes: Uint8Array, rank: number): RankMessage {
  const cursor = new Cursor(bytes, 0);
  const failed = cursor.u8() === 1;
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, cursor.u64()])) as unknown as Numbers;
  const rest = cursor.take(cursor.left);
  if (failed) return { ...numbers, paths: [], error: withRank(decodeError(rest), rank) };
  const paths = rest.length > 0 ? (JSON.parse(new TextDecoder().decode(rest)) as string[]) : [];
  return { ...numbers, paths, error: undefined };
}

const encoder = new TextEncoder();

/**
 * Lays out what all ranks have pending: data rank after rank, then the table with a section a rank; undefined if nobody has anything. One
 * collective, which every flush begins with, tells all of them all sizes; a second one is needed where elements point elsewhere. If
 * anything fails on one rank, every rank throws that error.
 */
export function layOutRanks(
  log: Log,
  comm: Communicator,
  stages: readonly Stage[],
  pending: Pending,
  together: Together,
): LaidOut | undefined {
  const { own, pointers } = log;
  const { committer } = own;
  const contribution = new Contribution(log, 0);
  const points = stages.some(({ heap }) => heap);
  let paths: readonly string[] = [];
  let section: Uint8Array = NOTHING;
  const lay = (): void => {
    contribution.add(stages);
    section = contribution.numbered?.pack() ?? contribution.table.section();
  };
  const numbers = (): Numbers => ({
    store: own.index,
    // Only the rank that appends to a file knows where that begins.
    start: nextOffset(own),
    base: committer ? own.base : 0,
    requests: pending.requests,
    dirty: pending.isDirty ? 1 : 0,
    // The records of one commit in several files must agree on the time.
    time: comm.rank === 0 ? pending.time : 0,
    points: points ? 1 : 0,
    heap: stages.reduce((sum, { heap }) => sum + (heap?.size ?? 0), 0),
    size: contribution.size,
    section: section.length,
  });
  const prepared = attempt(() => {
    // Before any rank writes: nobody else has changed the file.
    if (committer) together.now(own.run(committer.appender.check()));
    if (!import.meta.page && log.options.table.merge) joinPosts(stages);
    if (points) paths = pointers.unnumberedPaths();
    else lay();
  });
  let all = together.agree(encodeMessage(numbers(), paths, prepared, comm.rank)).map(decodeMessage);
  const requests = sum(all, 'requests');
  const isDirty = sum(all, 'dirty') > 0;
  if (requests === 0 && !isDirty) return undefined;
  throwFirst(all);
  const [{ time }] = all as [RankMessage];
  if (sum(all, 'points') > 0) {
    // Elements hold the addresses of what they point to, and filters work on elements: heaps have their places first.
    pointers.numberAt(all.flatMap(({ paths }) => paths));
    const mine = all.filter(({ store }) => store === own.index);
    const before = sum(mine.slice(0, own.comm.rank), 'heap');
    contribution.place(stages, sum(mine, 'start') + before, sum(mine, 'base'));
    contribution.heapsSize = sum(mine, 'heap');
    const placed = attempt(() => (points ? lay() : undefined));
    all = comm.allgather(encodeMessage(numbers(), [], placed, comm.rank)).map(decodeMessage);
    throwFirst(all);
  }
  const mine = all.filter(({ store }) => store === own.index);
  return { pending: { requests, isDirty, time }, contribution, layout: offsets(own, contribution, section, mine) };
}

/** Gives a rank the offset of its data and of its section of the table. `all` are the ranks of the store. */
function offsets(
  { comm }: LogStore,
  contribution: Contribution,
  section: Uint8Array,
  all: readonly RankMessage[],
): RankLayout {
  const { heapsSize } = contribution;
  const before = all.slice(0, comm.rank);
  const start = sum(all, 'start');
  const sections = all.map((one) => one.section);
  const elements = sum(all, 'size');
  contribution.offset = start + heapsSize + sum(before, 'size');
  const { numbered } = contribution;
  if (numbered) moveParts(section, contribution.offset);
  else moveEntries(section, contribution.offset);
  if (elements === 0) return { dataSize: 0, tableSize: 0, sections, heapsFirst: false, heapsSize: 0, start };
  const dataSize = heapsSize + elements;
  // The rank that writes the structure gets the tables of numbered logs from all others, and writes them wherever it wants.
  const headerLength = numbered ? 0 : headerSize(comm.size);
  const tableSize = numbered ? 0 : headerLength + sum(all, 'section');
  contribution.section = {
    bytes: section,
    offset: start + dataSize + headerLength + sum(before, 'section'),
    // Rank 0 may have to merge a small table with others, and writes it.
    isSent: tableSize <= SMALL,
  };
  return { dataSize, tableSize, sections, heapsFirst: heapsSize > 0, heapsSize, start };
}

function sum(all: readonly Numbers[], name: keyof Numbers): number {
  return all.reduce((total, one) => total + one[name], 0);
}

function throwFirst(all: readonly RankMessage[]): void {
  for (const { error } of all) if (error) throw error;
}

/** What the first rank of a store adds to it, when it has the reports of all. `sections` are those of a small table. */
function additionOf({ layout: scopes, options }: Log, layout: RankLayout, sections: readonly Uint8Array[]): Addition {
  const { dataSize, tableSize, heapsFirst, heapsSize } = layout;
  const ranks = layout.sections.length;
  if (dataSize === 0) return { dataSize, data: [], table: null, tableSize: 0, header: null, parts: 0 };
  const addition = { dataSize, data: [], tableSize, parts: heapsFirst ? 2 * ranks : ranks, heapsFirst };
  if (scopes) {
    const numbered = joinedParts(sections, options.table);
    return { ...addition, table: null, header: null, numbered, heapSize: heapsSize };
  }
  const header = tableHeader(layout.sections);
  if (tableSize > SMALL) return { ...addition, table: null, header };
  return { ...addition, table: concatBytes([header, ...sections]), header: null };
}

/**
 * Writes a flush of several ranks. Each writes its data; when all have, the first rank of each file writes the rest and flips its
 * superblock; with subfiles, when all have done that, the main file follows. If anything fails anywhere nothing counts, and
 * every rank throws the same error.
 */
export function* writeRanks(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions): Io<Outcome> {
  const { own, main } = log;
  const layout = plan.layout as RankLayout;
  const rewrite = plan.rewrote;
  if (!log.hasSubfiles) {
    // Without data there is nothing to wait for.
    const reports = plan.hasData
      ? collect(comm.gather(yield* writeData(log, comm, plan, options), 0))
      : collect(comm.rank === 0 ? [success()] : null);
    return yield* conclude(comm, plan, reports, function* (messages) {
      const { parts, sections } = decodeReports(messages, layout);
      const store = planStore(log, main, additionOf(log, layout, sections), rewrite);
      plan.store = store;
      yield* writeRest(log, plan, store, parts);
      return { time: plan.time, bytes: store.planned.bytes, states: [] };
    });
  }
  const written = plan.hasData ? yield* writeData(log, comm, plan, options) : success();
  const committed = yield* commitSubfile(log, comm, plan, collect(own.comm.gather(written, 0)));
  return yield* conclude(comm, plan, collect(comm.gather(committed, 0)), function* (changes) {
    const bare = { dataSize: 0, data: [], table: null, tableSize: 0, header: null, parts: log.stores.length };
    const commit = planStore(log, main, bare, false);
    plan.main = commit;
    const states = [...log.states];
    let { bytes } = commit.planned;
    for (const change of changes) {
      const cursor = new Cursor(change, 0);
      states[cursor.u32()] = { root: cursor.u64(), end: cursor.u64() };
      bytes += cursor.u64();
    }
    yield* writeRest(log, plan, commit, states.map(statePart));
    return { time: plan.time, bytes, states };
  });
}

/** Writes the data of this rank; returns a report: its ends and checksums, and its section of a small table. */
function* writeData(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions): Io<Uint8Array> {
  const { own } = log;
  const { contribution } = plan;
  const { start, dataSize, tableSize } = plan.layout as RankLayout;
  let isClear = !log.hasSubfiles;
  return yield* reported(comm, own.run(write()), () => isClear);

  function* write(): Io<Uint8Array> {
    const grown = yield* attemptIo(makeRoom());
    // Writes of MPI-IO are collective: they are made whatever is wrong on this rank.
    if ('error' in grown && !options.file) throw grown.error;
    const parts: RankPart[] = [];
    for (const bytes of contribution.parts()) {
      let checksum: Uint8Array;
      if (options.file)
        checksum = writeCollectively(log, bytes, (pieces, offset) => options.file?.writeAtAll(pieces, offset));
      else ({ checksum } = yield* writeContribution(log, bytes, false));
      parts.push({ rank: comm.rank, end: bytes.offset + bytes.size, checksum });
    }
    if ('error' in grown) throw grown.error;
    isClear = false;
    if (options.file && options.power) options.file.sync();
    else if (options.power) yield { op: 'sync' };
    const { section } = contribution;
    return concatBytes([...parts.map(encodePart), section?.isSent ? section.bytes : NOTHING]);
  }

  /** The first rank of a file keeps it longer than what all write: it would take a size that it has not set for the work of a stranger. */
  function* makeRoom(): Io<void> {
    const appender = own.committer?.appender;
    if (appender) yield* appender.reserve(start - appender.base + dataSize + tableSize);
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
  const isWritten = section && !section.isSent;
  if (isWritten) write(gone ? [] : [section.bytes], section.offset);
  if (gone) throw goneBuffer(lent.get(gone)?.path ?? '');
  const hash = log.options.checksum ? checksummer() : null;
  if (hash) for (const part of data) hash.update(part);
  if (isWritten) hash?.update(section.bytes);
  return hash?.digest() ?? NO_SUM;
}

/** Commits a subfile, on the first of its ranks; returns a report with its new state. */
function* commitSubfile(log: Log, comm: Communicator, plan: FlushPlan, reports: Reports | null): Io<Uint8Array> {
  const { own } = log;
  const layout = plan.layout as RankLayout;
  if (!reports) return success();
  if (reports.error) return failure(reports.error, comm.rank);
  if (!plan.hasData) return success();
  return yield* reported(comm, own.run(write(decodeReports(reports.messages, layout))));

  function* write({ parts, sections }: ReturnType<typeof decodeReports>): Io<Uint8Array> {
    // The original cannot read subfiles, so references to entries of deleted datasets may stay in their tables.
    const commit = planStore(log, own, additionOf(log, layout, sections), false);
    plan.store = commit;
    const { planned, committer } = commit;
    yield* writeRest(log, plan, commit, parts);
    const { root, end } = planned.append;
    const out = new ByteWriter(28).u32(own.index).u64(root);
    return out
      .u64(committer.appender.base + end)
      .u64(planned.bytes)
      .done();
  }
}

/** Rank 0 makes the flush count, if all reports are good; every rank learns the outcome. */
function* conclude(
  comm: Communicator,
  plan: FlushPlan,
  reports: Reports | null,
  commit: (messages: readonly Uint8Array[]) => Io<Outcome>,
): Io<Outcome> {
  let result: Uint8Array | null = null;
  if (reports) {
    const { error, isClear, messages } = reports;
    result = error ? failure(error, comm.rank, isClear) : yield* reported(comm, encoded(commit(messages)));
  }
  const outcome = comm.bcast(result, 0);
  plan.isClear = outcome[0] === CLEAR;
  if (isFailure(outcome)) throw withRank(decodeError(outcome.subarray(1)), 0);
  return JSON.parse(new TextDecoder().decode(outcome.subarray(1))) as Outcome;
}

function* encoded(io: Io<Outcome>): Io<Uint8Array> {
  return new TextEncoder().encode(JSON.stringify(yield* io));
}

// ---------------------------------------------------------------- reports: 0 and a message, or 1 or 2 and an error

/** What a report of an error begins with: no sync has failed, or one may have. */
const CLEAR = 1;
const UNCLEAR = 2;

interface Reports {
  readonly error: Error | undefined;
  /** No sync has failed. */
  readonly isClear: boolean;
  /** The messages that are not empty, in the order of ranks. */
  readonly messages: readonly Uint8Array[];
}

const NOTHING = new Uint8Array(0);

const success = (message: Uint8Array = NOTHING): Uint8Array =>
  new ByteWriter(1 + message.length).u8(0).put(message).done();

function failure(error: unknown, rank: number, isClear = false): Uint8Array {
  const bytes = encodeError(error, rank);
  return new ByteWriter(1 + bytes.length)
    .u8(isClear ? CLEAR : UNCLEAR)
    .put(bytes)
    .done();
}

const isFailure = (report: Uint8Array): boolean => report[0] !== 0;

function* reported(comm: Communicator, io: Io<Uint8Array>, isClear = () => false): Io<Uint8Array> {
  try {
    return success(yield* io);
  } catch (error) {
    return failure(error, comm.rank, isClear());
  }
}

/** The reports of all ranks, on the rank that gathers them. */
function collect(all: readonly Uint8Array[] | null): Reports | null {
  if (!all) return null;
  const bad = all.findIndex(isFailure);
  const error = bad < 0 ? undefined : withRank(decodeError((all[bad] as Uint8Array).subarray(1)), bad);
  const isClear = all.every((report) => report[0] !== UNCLEAR);
  return { error, isClear, messages: all.filter((report) => report.length > 1).map((report) => report.subarray(1)) };
}

function encodePart({ rank, end, checksum }: RankPart): Uint8Array {
  return new ByteWriter(20).u32(rank).u64(end).put(checksum).done();
}

/** What the ranks wrote, in the order of the file: the heaps of all, then the data of all. And the sections of a small table. */
function decodeReports(
  messages: readonly Uint8Array[],
  { heapsFirst }: RankLayout,
): { parts: RankPart[]; sections: Uint8Array[] } {
  const cursors = messages.map((bytes) => new Cursor(bytes, 0));
  const parts: RankPart[] = [];
  for (let round = 0; round < (heapsFirst ? 2 : 1); round++)
    for (const cursor of cursors)
      parts.push({ rank: cursor.u32(), end: cursor.u64(), checksum: cursor.take(8).slice() });
  return { parts, sections: cursors.map((cursor) => cursor.take(cursor.left)) };
}
