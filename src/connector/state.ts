import { sameBytes } from '#platform';
import { H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { loadBelow, loadEverything, loadRoot, openStructure } from '../hdf5/open.ts';
import { prepareWriting } from '../hdf5/prepare-writing.ts';
import { Appender } from '../hdf5/write/appender.ts';
import { Committer } from '../hdf5/write/commit.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { type CommitRecord, POINTER_VERSION } from '../log/format/commit-record.ts';
import {
  LOGS_GROUP,
  type LogCounts,
  type LogLayout,
  type Publish,
  readCounts,
  readPublish,
} from '../log/format/log-group.ts';
import type { Log, LogOptions } from '../log/log.ts';
import { LogStore } from '../log/store.ts';
import { driveSync, type Io } from '../storage/io.ts';
import type { ByteStorage, Source } from '../storage/storage.ts';
import type { Commit } from './file-session.ts';
import { hasSubfiles, OpenLog, openSubfiled, type StoreOptions } from './open-log.ts';
import type { Ranks } from './ranks.ts';

/** What a session is opened with. */
export interface SessionOptions extends Source {
  readonly ranks: Ranks;
  readonly power: boolean;
  readonly log: LogOptions;
  /** Open the state of that commit. */
  readonly asOf?: number | undefined;
  /** Ordinary HDF5 is asked for: a new file without a log, or one that exists as if it had none. */
  readonly ordinary: boolean;
  /** Whether files may be opened that this one names, and what finds them in place of paths. */
  readonly external: boolean;
  readonly openExternal: ((name: string) => ByteStorage | null) | undefined;
  /** Load structure on demand, where calls that look at it cannot wait for it. */
  readonly lazy: boolean;
  /** For a new file: the number of subfiles, 0 for none, 'node' for one a machine. */
  readonly newSubfiles: number | 'node';
  /** For a new file: what it has in place of the log of the original; null: that one. */
  readonly newLogs: LogLayout | null;
  /** When others see what is committed; undefined: what the file remembers, or the default of a new one. */
  readonly publish: Publish | undefined;
  /** Write through MPI-IO, collectively. */
  readonly mpiIo: boolean;
  /** Subfiles that are open, by number. They stay open when the state changes: a reader that follows a writer needs them again. */
  readonly openSubfiles: Map<number, ByteStorage>;
}

/** A state of the file, as opened: structure, log, and where the numbering of commits continues. */
export interface FileState {
  readonly structure: Structure;
  /** On the rank that writes the structure. */
  readonly committer: Committer | null;
  /** null for a file without a log. */
  readonly log: OpenLog | null;
  readonly last: Commit;
  /** Sequence of the next commit. */
  readonly next: number;
  /** Bytes of the superblock that the newest state had. Empty: unknown, so that any superblock counts as newer. */
  readonly superblock: Uint8Array;
}

export const NO_COMMIT: Pick<Commit, 'bytes' | 'requests'> = { bytes: 0, requests: 0 };

/** A bundle for pages does not have the code that writes numbered logs and classic tables. */
export function pageReads(): H5LogError {
  return new H5LogError('UNSUPPORTED', 'a page reads numbered logs and classic tables; it does not write them');
}

/** Refuses ways of publishing that a file cannot have. */
export function mustBePublishable({ publish, ranks, ordinary }: SessionOptions, isSplit: boolean): void {
  if (publish === undefined) return;
  if (ordinary) {
    if (publish === 'never')
      throw new H5LogError('OPTION', "publish: 'never' is for logs: ordinary HDF5 is what everybody sees");
    return;
  }
  if (publish === 'never') return;
  if (!import.meta.page && isSplit)
    throw new H5LogError('OPTION', "the data is in subfiles, which other programs cannot see: publish: 'never'");
  if (!import.meta.page && ranks.comm.size > 1 && publish !== 'close')
    throw new H5LogError('OPTION', "several ranks publish when they close the file, or never: publish: 'close'");
}

/** Opens the newest state, or that of the commit `asOf`. All ranks open the same one. */
export function* openState(options: SessionOptions): Io<FileState> {
  const newest = yield* readState(options);
  const state = options.asOf === undefined ? newest : yield* earlierState(options, newest, options.asOf);
  return yield* agreedState(options, state);
}

/** For readers: the newest state, the same for all ranks. What `known` has read already is not read again. */
export function* newestState(options: SessionOptions, known: FileState): Io<FileState> {
  return yield* agreedState(options, yield* laterState(options, known));
}

function* laterState(options: SessionOptions, known: FileState): Io<FileState> {
  const { ranks } = options;
  const isChanged = !(yield* ranks.collectiveIo(isStillThere(known)));
  if (ranks.onAny(isChanged)) return yield* readState(options);
  const state = yield* readState(options, undefined, known);
  if (ranks.onAny(!continues(known, state))) return yield* readState(options);
  if (known.log) state.log?.log.takeOver(known.log.log);
  return state;
}

/** Whether the bytes of a state are where they were: of the last commit record, which has the time and the checksums of its commit. */
function* isStillThere({ log }: FileState): Io<boolean> {
  const known = log?.log.main.lastRecord();
  if (!known) return false;
  const bytes = new Uint8Array(known.bytes.length);
  const count = yield { op: 'read', into: bytes, offset: known.offset };
  return count === bytes.length && sameBytes(bytes, known.bytes);
}

/**
 * Whether h5log alone made the commits between two states: it only appends. Other software leaves a gap in the numbers, or between
 * the bytes of two commits.
 */
function continues(known: FileState, { log, last }: FileState): boolean {
  const { sequence } = known.last;
  const commits = log?.log.main.commitsAfter(sequence - 1) ?? [];
  if (commits.length !== last.sequence - sequence + 1) return false;
  return commits.every(({ start }, i) => i === commits.length - 1 || start === commits[i + 1]?.end);
}

/**
 * Opens the newest state, or the one whose root group is at `root`. `known` is an earlier state that the file still contains.
 * Collective calls come between work that may fail.
 */
function* readState(options: SessionOptions, root?: number, known?: FileState): Io<FileState> {
  const { ranks, target } = options;
  const found = yield* ranks.collectiveIo(readStructure(options, root, known?.structure));
  const { counts } = found;
  const group = counts && target && hasSubfiles(counts) ? ranks.groupFor(counts.subfiles) : null;
  return yield* ranks.collectiveIo(withLog(options, found, group, root !== undefined, known?.log?.log));
}

interface FoundStructure extends Pick<FileState, 'structure' | 'committer' | 'superblock'> {
  readonly counts: LogCounts | undefined;
  /** The log's own file as it was looked at before the structure was made ready for changes. */
  readonly seen?: LogStore | null;
}

export function* readStructure(options: SessionOptions, root?: number, known?: Structure): Io<FoundStructure> {
  const { target, ranks, storage } = options;
  const opened = yield* openStructure(root, known, {
    remote: !storage.blocking,
    lazy: options.lazy && !storage.blocking,
    readOnly: !target,
  });
  const { structure, superblock, extension } = opened;
  let committer: Committer | null = null;
  let seen: LogStore | null = null;
  if (target) {
    const counts = yield* readCounts(structure);
    if (!import.meta.page && counts && storage.blocking) seen = yield* storeOfTree(options, structure, counts);
    yield* prepareWriting(opened, storage, !counts, seen !== null);
    if (ranks.leads) committer = new Committer(structure, appenderOf(options, superblock), extension);
  } else if (!storage.blocking) yield* options.lazy ? loadRoot(structure) : loadEverything(structure, LOGS_GROUP);
  const found = yield* readCounts(structure);
  if (found && options.ordinary && target)
    throw new H5LogError('UNSUPPORTED', "a log can only be read with connector: 'native', which does not see it");
  const counts = options.ordinary ? undefined : found;
  if (counts && structure.loader.lazy) {
    // The groups of a log are needed as a whole.
    structure.loader.lazy = false;
    yield* structure.loader.whole(structure.root);
  }
  if (!import.meta.page && !counts && target && ranks.comm.size > 1)
    throw new H5LogError('UNSUPPORTED', 'a file without a log can only be read by several ranks');
  return { structure, committer, counts, superblock: superblock.bytes, seen };
}

/** Loads an object that is asked for, and what is below it; if another program may have copied a dataset among these, everything. */
export function* loadOnDemand(structure: Structure, log: Log | null, node: ObjectNode, depth: number): Io<void> {
  for (const loaded of yield* loadBelow(structure, node, depth, true))
    if (log?.mayBeCopy(loaded)) return yield* loadEverything(structure, LOGS_GROUP);
}

/** The store of a file that says that its objects are a tree, if h5log made the last change to it; else null. */
function* storeOfTree(options: SessionOptions, structure: Structure, counts: LogCounts): Io<LogStore | null> {
  if (!(yield* readPublish(structure))?.isTree || hasSubfiles(counts)) return null;
  const store = mainStore(options, structure, null, counts);
  yield* store.load();
  // h5log 0.1 knows nothing of trees, and does not write to files with later records.
  return store.isOurs && store.commit()?.version === POINTER_VERSION ? store : null;
}

function* withLog(
  options: SessionOptions,
  found: FoundStructure,
  group: Communicator | null,
  isEarlier: boolean,
  known?: Log,
): Io<FileState> {
  const { structure, committer, counts } = found;
  let log: OpenLog | null = null;
  if (counts) {
    const main = mainStore(options, structure, committer, counts, known?.main ?? found.seen ?? undefined);
    yield* main.load();
    // Where nothing can be read while a flush is planned.
    if (committer && !options.storage.blocking) yield* main.everyNumbered();
    const last = main.commit();
    if (isEarlier && last?.root === main.root) main.end = last.end;
    log = yield* openLog(options, structure, main, group, known?.stores);
    if (import.meta.page && options.target && log.log.layout) throw pageReads();
    if (options.target) mustBeInPlace(log.log);
    mustBePublishable(options, log.log.hasSubfiles);
  }
  if (!log) mustBePublishable({ ...options, ordinary: true }, false);
  const state = numbered({ ...found, log });
  if (committer) yield* committer.appender.begin();
  return state;
}

/** Refuses to write to a log that was moved: offsets in tables tell the order of blocks, and new ones could be below old ones. */
function mustBeInPlace({ stores }: Log): void {
  if (!stores.some((store) => store.isOpen && store.isMoved)) return;
  const text =
    'the log was moved by another program (h5repack, h5copy) and can only be read; h5log compact writes a file that can be appended to';
  throw new H5LogError('UNSUPPORTED', text);
}

/** With one store, or with subfiles, where they can be reached. */
function* openLog(
  options: SessionOptions,
  structure: Structure,
  main: LogStore,
  group: Communicator | null,
  known?: readonly LogStore[],
): Io<OpenLog> {
  const stores = storeOptions(options);
  const { subfiles, writing } = stores;
  if (!hasSubfiles(main.counts)) return OpenLog.plain(structure, main, stores);
  if (!subfiles && writing)
    throw new H5LogError('UNSUPPORTED', 'a file with subfiles can only be written when it is opened by its path');
  if (!import.meta.page && subfiles) return yield* openSubfiled(structure, main, group, { ...stores, subfiles }, known);
  return OpenLog.unreachable(structure, main, stores);
}

/** Continues the numbering of commits. A state that other software made counts as a commit of its own. */
export function numbered(found: Pick<FileState, 'structure' | 'committer' | 'superblock' | 'log'>): FileState {
  const { structure, committer, superblock, log } = found;
  const record = log?.log.main.commit();
  const isOurs = record?.root === structure.root.address;
  const sequence = record ? record.sequence + (isOurs ? 0 : 1) : 0;
  const last = record && isOurs ? commitOf(record) : { sequence, time: new Date(), ...NO_COMMIT };
  return { structure, committer, superblock, log, last, next: record ? sequence + 1 : 0 };
}

/** A file may be written while several ranks open it: all of them take the state that rank 0 saw. */
function* agreedState(options: SessionOptions, state: FileState): Io<FileState> {
  if (import.meta.page) return state;
  const seen = options.ranks.stateToTake(state.last.sequence);
  if (seen === undefined) return state;
  // A rank that read too early reads again; one that read too late finds the earlier state on record.
  const earlier = yield* earlierState(options, yield* readState(options), seen);
  // A newer state exists already: the next refresh must not take its superblock for a known one.
  return { ...earlier, superblock: new Uint8Array(0) };
}

function* earlierState(options: SessionOptions, newest: FileState, sequence: number): Io<FileState> {
  const root = options.ranks.collective(() => rootOf(options, newest, sequence));
  return { ...(yield* readState(options, root)), superblock: newest.superblock };
}

function rootOf({ storage }: SessionOptions, { last, structure, log }: FileState, sequence: number): number {
  if (sequence === last.sequence) return structure.root.address;
  if (log?.log.main.isMoved)
    throw new H5LogError('NOT_FOUND', `commit ${sequence} was lost when another program rewrote the file`, {
      file: storage.name,
    });
  const record = log?.log.main.commit(sequence);
  if (record) return record.root;
  throw new H5LogError('NOT_FOUND', `there is no commit ${sequence}`, { file: storage.name });
}

function commitOf({ sequence, time, requests, start, end }: CommitRecord): Commit {
  return { sequence, time: new Date(time), bytes: end - start, requests };
}

/** Every commit on record, oldest first. Bytes include those of subfiles, if the subfiles can be reached. */
export function commitsOf({ main, stores, hasSubfiles: isSplit }: Log): Commit[] {
  const commits = main.history().map(commitOf);
  if (!import.meta.page && isSplit) {
    const inSubfiles = new Map<number, number>();
    for (const store of stores)
      for (const { sequence, start, end } of store.history())
        inSubfiles.set(sequence, (inSubfiles.get(sequence) ?? 0) + end - start);
    return commits.map((commit) => ({ ...commit, bytes: commit.bytes + (inSubfiles.get(commit.sequence) ?? 0) }));
  }
  return commits;
}

// ---------------------------------------------------------------- parts

export function storeOptions({ ranks, power, log, subfiles, openSubfiles, target }: SessionOptions): StoreOptions {
  return { ranks, power, log, subfiles, openSubfiles, writing: target !== null };
}

export function mainStore(
  { ranks, storage, target }: SessionOptions,
  structure: Structure,
  committer: Committer | null,
  counts: LogCounts,
  known?: LogStore,
): LogStore {
  const readLater = <T>(io: Io<T>): T => driveSync(storage, io);
  const isReader = !import.meta.page && target === null && storage.blocking !== undefined;
  const main = new LogStore(0, ranks.comm, known, isReader ? readLater : null);
  main.committer = committer;
  main.attach({ storage: null, structure, counts });
  return main;
}

export function appenderOf(
  { storage, power }: SessionOptions,
  superblock: { base: number; end: number; bytes: Uint8Array },
): Appender {
  return new Appender({ name: storage.name, superblock, power });
}
