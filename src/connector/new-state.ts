// The first state of a new file.

import { formatError, H5LogError } from '../base/errors.ts';
import { solo } from '../comm/solo.ts';
import { SUPERBLOCK_SIZE } from '../hdf5/format/superblock.ts';
import { newStructure } from '../hdf5/prepare-writing.ts';
import { Committer } from '../hdf5/write/commit.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { flushDone, flushedAlone, planFlush, writeFlush } from '../log/flush/flush.ts';
import { CONFIG, type LogCounts } from '../log/format/log-group.ts';
import { beginLog, newToken, writeLayout, writePublish } from '../log/format/log-group-write.ts';
import type { LogStore } from '../log/store.ts';
import { type Io, nothing } from '../storage/io.ts';
import { createSubfiles, type NewSubfiles, OpenLog } from './open-log.ts';
import {
  appenderOf,
  type FileState,
  mainStore,
  mustBePublishable,
  NO_COMMIT,
  numbered,
  pageReads,
  readStructure,
  type SessionOptions,
  storeOptions,
} from './state.ts';

/** The counts of an empty log. */
const NO_LOG: LogCounts = { datasets: 0, logs: 0, tables: 0, config: 0, subfiles: 1 };

/** Makes a new file, with its first commit written and under its final name. */
export function* createState(options: SessionOptions): Io<FileState> {
  mustBePublishable(options, options.newSubfiles !== 0);
  if (import.meta.page && options.newLogs) throw pageReads();
  if (options.ordinary) return yield* ordinaryState(options);
  if (import.meta.page) return yield* firstState(options, null);
  const { ranks, subfiles, newSubfiles, power } = options;
  const made =
    !import.meta.page && newSubfiles !== 0 && subfiles
      ? yield* createSubfiles({ ...storeOptions(options), subfiles }, newSubfiles)
      : null;
  let state: FileState | null;
  try {
    state = yield* ranks.collectiveIo(ranks.leads ? firstState(options, made) : nothing(null));
  } catch (error) {
    made?.discard();
    throw error;
  }
  if (made) {
    ranks.collective(() => made.publish(power));
    ranks.collective(() => {
      if (ranks.leads) subfiles?.tidy(made.count);
    });
  }
  // The file is there now, and so is the subfile of each group of ranks.
  const joined = yield* ranks.collectiveIo(ranks.leads ? nothing(null) : joinedState(options, made));
  return (state ?? joined) as FileState;
}

/** A new file without a log. */
function* ordinaryState(options: SessionOptions): Io<FileState> {
  const { ranks, newSubfiles, target, power } = options;
  if (!import.meta.page && ranks.comm.size > 1)
    throw new H5LogError('UNSUPPORTED', 'ordinary HDF5 is written by one rank; several write a log');
  if (newSubfiles !== 0) throw new H5LogError('OPTION', 'an ordinary file has no subfiles; a log can have them');
  if (options.newLogs) throw new H5LogError('OPTION', 'an ordinary file has no logs, and no tables of them');
  const { structure, committer, superblock } = yield* emptyFile(options);
  yield* committer.write(committer.plan());
  target?.publish(power);
  return {
    structure,
    committer,
    log: null,
    last: { sequence: 0, time: new Date(), ...NO_COMMIT },
    next: 0,
    superblock,
  };
}

function* emptyFile(
  options: SessionOptions,
): Io<{ structure: Structure; committer: Committer; superblock: Uint8Array }> {
  // A new file is empty. To truncate it once more would make ext4 write all of its data to the disk at close.
  if ((yield { op: 'size' }) > 0) yield { op: 'truncate', size: 0 };
  const structure = newStructure();
  const empty = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
  return { structure, committer: new Committer(structure, appenderOf(options, empty), null), superblock: empty.bytes };
}

/** On rank 0: writes the first commit. */
function* firstState(options: SessionOptions, made: NewSubfiles | null): Io<FileState> {
  const { structure, committer, superblock } = yield* emptyFile(options);
  const counts = { ...NO_LOG, config: made ? CONFIG.subfiling : 0, subfiles: made?.count ?? 1 };
  beginLog(structure, counts, made?.token ?? newToken());
  if (!import.meta.page && options.newLogs) writeLayout(structure, options.newLogs);
  // A file that remembers nothing never publishes.
  const policy = options.publish ?? (made || options.ranks.comm.size > 1 ? 'never' : 'auto');
  structure.isTree = true;
  if (policy !== 'never') writePublish(structure, { policy, sequence: null, copied: 0, isTree: true });
  const log = newLog(options, structure, mainStore(options, structure, committer, counts), made);
  const { power, ranks, target } = options;
  const first = planFlush(log.log, solo(), 0, Date.now());
  if (!first) throw formatError('a new file without a first commit');
  yield* writeFlush(log.log, solo(), first, { power, file: null });
  const flushed = flushedAlone(log.log, first);
  flushDone(log.log, first, flushed, false);
  if (!import.meta.page && ranks.comm.size > 1) log.isBehind = true;
  target?.publish(power);
  // Subfiles of an earlier file of that name. A new file's own are published first.
  if (!made) options.subfiles?.tidy(0);
  const last = { sequence: 0, time: new Date(flushed.time), bytes: flushed.bytes, requests: 0 };
  return { structure, committer, log, last, next: 1, superblock };
}

/** On the other ranks: opens what rank 0 has made. */
function* joinedState(options: SessionOptions, made: NewSubfiles | null): Io<FileState> {
  const found = yield* readStructure(options);
  if (!found.counts) throw formatError('a new file without a log');
  const main = mainStore(options, found.structure, null, found.counts);
  yield* main.load();
  const log = newLog(options, found.structure, main, made);
  yield* log.join();
  return numbered({ ...found, log });
}

function newLog(options: SessionOptions, structure: Structure, main: LogStore, made: NewSubfiles | null): OpenLog {
  return made ? made.open(structure, main) : OpenLog.plain(structure, main, storeOptions(options));
}
