import { checksummer } from '#platform';
import { ofRank } from '../../comm/agreement.ts';
import type { CollectiveFile, Communicator } from '../../comm/communicator.ts';
import { decodeError, encodeError } from '../../comm/error.ts';
import { ByteWriter } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import type { Io } from '../../storage/io.ts';
import { type RankPart, type SubfileState, statePart } from '../format/commit-record.ts';
import type { Log } from '../log.ts';
import { goneBuffer } from '../post/arena.ts';
import type { FlushPlan } from './plan.ts';
import type { Share } from './share.ts';
import type { StorePlan } from './store-plan.ts';
import { NO_SUM, writeRest, writeShare } from './write.ts';

/** What every rank knows at the end of a flush. */
export interface Outcome {
  readonly time: number;
  /** Bytes that were added, in all files together. */
  readonly bytes: number;
  /** With subfiles: the states that count now. */
  readonly states: readonly SubfileState[];
}

export interface RankOptions {
  readonly power: boolean;
  /** Writes of all ranks as one, by MPI; null: each rank writes for itself. */
  readonly file: CollectiveFile | null;
}

/**
 * A flush of several ranks. Each writes its data; when all have, the first rank of a file writes the rest of it and flips its
 * superblock; with subfiles, when all have done that, the main file follows. If anything fails anywhere nothing counts, and
 * every rank throws the same error.
 */
export function* commitTogether(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions): Io<Outcome> {
  const { own } = log;
  const written = yield* writeData(log, comm, plan, options);
  const reports = collect(own.comm.gather(written, 0));
  if (!log.spread) {
    return yield* conclude(comm, reports, function* (parts) {
      const store = plan.store as StorePlan;
      yield* writeRest(log, plan, store, parts.map(decodePart));
      return { time: plan.time, bytes: store.planned.bytes, states: [] };
    });
  }
  const committed = yield* commitSubfile(log, comm, plan, reports);
  return yield* conclude(comm, collect(comm.gather(committed, 0)), function* (changes) {
    const main = plan.main as StorePlan;
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

/** The data of this rank, once the first rank of the file has made room for all; gives a report. */
function* writeData(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions): Io<Uint8Array> {
  const { own } = log;
  const { store, share } = plan;
  if (!plan.hasData) return plan.failure ? failure(plan.failure.error, comm.rank) : success();
  // The file grows only by its first rank, which would take any other change of its size for that of a stranger.
  let room = plan.failure ? failure(plan.failure.error, comm.rank) : success();
  if (store) room = yield* reported(comm, own.run(makeRoom(store)));
  const go = own.comm.bcast(own.comm.rank === 0 ? room : null, 0);
  if (isFailure(go)) return own.comm.rank === 0 ? room : success();
  return yield* reported(comm, own.run(write()));

  function* write(): Io<Uint8Array> {
    let checksum: Uint8Array;
    if (options.file) {
      checksum = sumShare(log, share, (parts, offset) => options.file?.writeAtAll(parts, offset));
      if (options.power) options.file.sync();
    } else {
      ({ checksum } = yield* writeShare(log, share, false));
      if (options.power) yield { op: 'sync' };
    }
    return encodePart({ rank: comm.rank, end: share.offset + share.size, checksum });
  }
}

/** Writes the data of this rank by a call of its own, in one piece; gives the checksum. */
function sumShare(
  log: Log,
  { data, lent, offset, section }: Share,
  write: (parts: readonly Uint8Array[], offset: number) => void,
): Uint8Array {
  const gone = data.find((part) => lent.has(part) && part.length !== lent.get(part)?.size);
  // The other ranks write as well: whatever is wrong here, the calls are made.
  write(gone ? [] : data, offset);
  if (section) write(gone ? [] : [section.bytes], section.offset);
  if (gone) throw goneBuffer(lent.get(gone)?.path ?? '');
  const sum = log.options.checksum ? checksummer() : null;
  if (sum) for (const part of data) sum.update(part);
  if (section) sum?.update(section.bytes);
  return sum?.digest() ?? NO_SUM;
}

function* makeRoom({ committer, planned }: StorePlan): Io<Uint8Array> {
  yield* committer.appender.reserve(planned.append.end);
  return NOTHING;
}

/** The rest of a subfile, by the first of its ranks; gives a report with its new state. */
function* commitSubfile(log: Log, comm: Communicator, plan: FlushPlan, reports: Reports | null): Io<Uint8Array> {
  const { store } = plan;
  if (!reports) return success();
  if (reports.error) return failure(reports.error, comm.rank);
  if (!store) return success();
  return yield* reported(comm, store.store.run(write(store)));

  function* write({ planned, committer, store: { place } }: StorePlan): Io<Uint8Array> {
    yield* writeRest(log, plan, store as StorePlan, (reports as Reports).parts.map(decodePart));
    const { root, end } = planned.append;
    const out = new ByteWriter(28).u32(place).u64(root);
    return out
      .u64(committer.appender.base + end)
      .u64(planned.bytes)
      .done();
  }
}

/** The first rank makes the flush count, if all reports are good; all learn what came of it. */
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
  if (isFailure(outcome)) throw ofRank(decodeError(outcome.subarray(1)), 0);
  return JSON.parse(new TextDecoder().decode(outcome.subarray(1))) as Outcome;
}

function* encoded(io: Io<Outcome>): Io<Uint8Array> {
  return new TextEncoder().encode(JSON.stringify(yield* io));
}

// ---------------------------------------------------------------- reports: 0 and what is to be told, or 1 and an error

interface Reports {
  readonly error: Error | undefined;
  /** What the ranks that had something to tell told, in the order of ranks. */
  readonly parts: readonly Uint8Array[];
}

const NOTHING = new Uint8Array(0);

const success = (told: Uint8Array = NOTHING): Uint8Array => new ByteWriter(1 + told.length).u8(0).put(told).done();

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

/** What the others reported, on the rank that gathers. */
function collect(all: readonly Uint8Array[] | null): Reports | null {
  if (!all) return null;
  const bad = all.findIndex(isFailure);
  const error = bad < 0 ? undefined : ofRank(decodeError((all[bad] as Uint8Array).subarray(1)), bad);
  return { error, parts: all.filter((report) => report.length > 1).map((report) => report.subarray(1)) };
}

function encodePart({ rank, end, checksum }: RankPart): Uint8Array {
  return new ByteWriter(20).u32(rank).u64(end).put(checksum).done();
}

function decodePart(bytes: Uint8Array): RankPart {
  const cursor = new Cursor(bytes, 0);
  return { rank: cursor.u32(), end: cursor.u64(), checksum: cursor.take(8).slice() };
}
