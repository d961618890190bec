import { RegularData, rawReferences } from '#native';
import { formatError, H5LogError } from '../base/errors.ts';
import type { CollectiveFile, Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import { readSuperblock, SUPERBLOCK_SIZE } from '../hdf5/format/superblock.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import { loadEverything, newStructure, openStructure, prepareWriting } from '../hdf5/open.ts';
import { Appender } from '../hdf5/write/appender.ts';
import { Committer } from '../hdf5/write/commit.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { flushDone, flushFailed } from '../log/flush/plan.ts';
import type { CommitRecord } from '../log/format/commit-record.ts';
import * as CONFIG from '../log/format/config-bits.ts';
import { beginLog, type LogCounts, readCounts } from '../log/format/log-group.ts';
import { logNames, type Names, plainNames } from '../log/format/names.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import { LogStore } from '../log/store.ts';
import { complete, driveSync, type Io } from '../storage/io.ts';
import type { ByteStorage, WriteTarget } from '../storage/storage.ts';
import type { Commit, FileSession, Found, RegularDataset } from './file-session.ts';
import { findIn, storedIn, storedPath } from './find.ts';
import { hasSubfiles, nothing, OpenLog, type StoreOptions } from './open-log.ts';
import { OneRank, type Ranks } from './ranks.ts';
import type { CommitInProgress, SessionOptions } from './session-options.ts';
import type { NewSubfiles } from './subfiled-log.ts';
import { createSubfiles, openSubfiled } from './subfiled-log.ts';

/** The counts of a log in which nothing is. */
const NO_LOG: LogCounts = { datasets: 0, logs: 0, tables: 0, config: 0, subfiles: 1 };

/**
 * An open file: what its objects share. Users hold {@link File}, {@link Group} and {@link Dataset} instead. Of several ranks
 * each has one; all make the same changes to its structure, and the first rank writes it.
 */
export class Session implements FileSession<CommitInProgress> {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly comm: Communicator;
  readonly #options: SessionOptions;
  structure: Structure;
  readonly direct = null;
  names: Names = plainNames;
  closed = false;
  /** Flushes, for posts that find no room. */
  makeRoom: (() => void) | null = null;
  /** Grows when a reader moves to a newer state, so that objects look themselves up again. */
  generation = 0;
  last: Commit = { sequence: 0, time: new Date(), bytes: 0, requests: 0 };
  /** Sequence of the next commit. */
  #next = 0;
  #committer: Committer | null = null;
  #superblock: Uint8Array = new Uint8Array(0);
  /** null for a file without a log. */
  #open: OpenLog | null = null;
  #together: CollectiveFile | null = null;
  #regular: RegularData | null = null;
  /** Grows with every change of the file. */
  #stamp = 0;
  /** Subfiles stay open when the state changes: whoever follows a writer would open them again and again. */
  readonly #subfiles = new Map<number, ByteStorage>();

  private constructor(options: SessionOptions, structure: Structure) {
    this.storage = options.storage;
    this.target = options.target;
    this.comm = options.ranks.comm;
    this.#options = options;
    this.structure = structure;
  }

  get mode(): 'r' | 'r+' {
    return this.target ? 'r+' : 'r';
  }

  get connector(): 'log' | 'native' {
    return this.log ? 'log' : 'native';
  }

  /** null for a file without a log. */
  get log(): Log | null {
    return this.#open?.log ?? null;
  }

  get #ranks(): Ranks {
    return this.#options.ranks;
  }

  /** A new file, with its first commit written and under its name. */
  static *create(options: SessionOptions): Io<Session> {
    const { ranks, subfiles, newSubfiles, power } = options;
    const session = new Session(options, newStructure());
    const made =
      newSubfiles === 0 || !subfiles
        ? null
        : yield* createSubfiles({ ...session.#storeOptions, subfiles }, newSubfiles);
    try {
      yield* ranks.jointly(ranks.leads ? session.#begin(made) : nothing());
    } catch (error) {
      made?.discard();
      throw error;
    }
    ranks.together(() => made?.publish(power));
    ranks.together(() => {
      if (ranks.leads) subfiles?.tidy(made?.count ?? 0);
    });
    yield* ranks.jointly(ranks.leads ? nothing() : session.#join(made));
    session.#useTogether();
    return session;
  }

  /** Of the first rank: the first commit. */
  *#begin(made: NewSubfiles | null): Io<void> {
    // A new file is empty. To make it so once more would have ext4 write all of its data to the disk when it is closed.
    if ((yield { op: 'size' }) > 0) yield { op: 'truncate', size: 0 };
    const empty = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
    this.#committer = new Committer(this.structure, this.#appender(empty), null);
    const counts = { ...NO_LOG, config: made ? CONFIG.subfiling : 0, subfiles: made?.count ?? 1 };
    yield* beginLog(this.structure, counts);
    if (made) yield* made.mark(this.structure);
    const main = this.#mainStore(this.structure, counts);
    this.#useLog(this.#newLog(main, made));
    const alone = new OneRank(solo());
    const first = this.#plan(alone);
    if (first) this.succeeded(first, yield* this.#write(first, alone), false);
    this.target?.publish(this.#options.power);
  }

  /** Of the other ranks: the file is there, and so is the subfile of their group. */
  *#join(made: NewSubfiles | null): Io<void> {
    const counts = yield* this.#look();
    if (!counts) throw formatError('a new file without a log');
    const main = this.#mainStore(this.structure, counts);
    yield* main.load();
    const open = this.#newLog(main, made);
    yield* open.join();
    this.#useLog(open);
    this.#lookAtHistory();
  }

  #newLog(main: LogStore, made: NewSubfiles | null): OpenLog {
    return made ? made.open(this.structure, main) : OpenLog.plain(this.structure, main, this.#storeOptions);
  }

  static *open(options: SessionOptions): Io<Session> {
    const { asOf } = options;
    const session = new Session(options, newStructure());
    try {
      yield* session.#openState();
      if (asOf !== undefined) yield* session.#goBack(asOf);
      yield* session.#mustAgree();
      session.#useTogether();
    } catch (error) {
      for (const storage of session.#subfiles.values()) storage.blocking?.close();
      throw error;
    }
    return session;
  }

  /** The present state of the file, or that whose root is given. What ranks do together stands between what may fail. */
  *#openState(root?: number): Io<void> {
    const ranks = this.#ranks;
    const counts = yield* ranks.jointly(this.#look(root));
    const group = counts && this.target && hasSubfiles(counts) ? ranks.groupFor(counts.subfiles) : null;
    yield* ranks.jointly(this.#useLogOf(counts, group));
  }

  /** Reads the structure. */
  *#look(root?: number): Io<LogCounts | undefined> {
    const opened = yield* openStructure(root);
    const { structure, superblock, extension } = opened;
    if (this.target) {
      yield* prepareWriting(opened, rawReferences);
      if (this.#ranks.leads) this.#committer = new Committer(structure, this.#appender(superblock), extension);
    } else if (!this.storage.blocking) yield* loadEverything(structure);
    this.structure = structure;
    if (root === undefined) this.#superblock = superblock.bytes;
    const counts = yield* readCounts(structure);
    if (!counts && this.target && this.comm.size > 1)
      throw new H5LogError('UNSUPPORTED', 'a file without a log can only be read by several ranks');
    return counts;
  }

  *#useLogOf(counts: LogCounts | undefined, group: Communicator | null): Io<void> {
    if (counts) {
      const main = this.#mainStore(this.structure, counts);
      yield* main.load();
      this.#useLog(yield* this.#openLog(main, group));
    } else this.#useLog(null);
    this.#lookAtHistory();
    if (this.#committer) yield* this.#committer.appender.begin();
  }

  /** With one store, or with subfiles, where they can be reached. */
  *#openLog(main: LogStore, group: Communicator | null): Io<OpenLog> {
    const options = this.#storeOptions;
    const { subfiles } = options;
    if (!hasSubfiles(main.counts)) return OpenLog.plain(this.structure, main, options);
    if (!subfiles && this.target)
      throw new H5LogError('UNSUPPORTED', 'a file with subfiles can only be written when it is opened by its path');
    if (!subfiles) return OpenLog.unreachable(this.structure, main, options);
    return yield* openSubfiled(this.structure, main, group, { ...options, subfiles });
  }

  /** A file that is being written while several ranks open it: all of them take the state that the first one saw. */
  *#mustAgree(): Io<void> {
    const seen = this.#ranks.stateToTake(this.last.sequence);
    if (seen === undefined) return;
    // A rank that came too early looks again; one that came too late finds the earlier state on record.
    yield* this.#openState();
    yield* this.#goBack(seen);
    // There is a newer state than this one: the next refresh must not take the superblock for one it knows.
    this.#superblock = new Uint8Array(0);
  }

  get #storeOptions(): StoreOptions {
    const { ranks, power, log, subfiles } = this.#options;
    return { ranks, power, log, subfiles, kept: this.#subfiles, writing: this.target !== null };
  }

  #mainStore(structure: Structure, counts: LogCounts): LogStore {
    const main = new LogStore(0, this.comm);
    main.committer = this.#committer;
    main.attach({ storage: null, structure, counts });
    return main;
  }

  #useLog(open: OpenLog | null): void {
    this.#open = open;
    this.#useNames(open ? logNames : plainNames);
    if (!open) return;
    open.log.makeRoom = () => this.makeRoom?.();
    if (!open.isBehind) open.log.committed(false);
  }

  /** For `storage: 'mpi-io'`. */
  #useTogether(): void {
    const { isTogether, ranks, target } = this.#options;
    if (isTogether && this.log && target) this.#together = ranks.openTogether(this.log, this.#options);
  }

  /** Where the numbering goes on. A state that other software made counts as a commit, too. */
  #lookAtHistory(): void {
    const record = this.log?.main.commit();
    if (!record) return;
    this.last = commitOf(record);
    if (record.root !== this.structure.root.address)
      this.last = { sequence: record.sequence + 1, time: new Date(), bytes: 0, requests: 0 };
    this.#next = this.last.sequence + 1;
  }

  /** Moves to the state of an earlier commit. */
  *#goBack(sequence: number): Io<void> {
    const root = this.together(() => this.#rootOf(sequence));
    yield* this.#openState(root);
  }

  #rootOf(sequence: number): number {
    if (sequence === this.last.sequence) return this.structure.root.address;
    const record = this.log?.main.commit(sequence);
    if (record) return record.root;
    throw new H5LogError('NOT_FOUND', `there is no commit ${sequence}`, { file: this.storage.name });
  }

  /** For readers: moves to the newest state; false if there is none newer. */
  *refresh(): Io<boolean> {
    const isNew = yield* this.#ranks.jointly(this.#hasChanged());
    if (!this.onAnyRank(isNew)) return false;
    yield* this.#openState();
    yield* this.#mustAgree();
    this.#stamp++;
    this.generation++;
    return true;
  }

  /** The superblock alone tells; whoever watches looks at it again and again. */
  *#hasChanged(): Io<boolean> {
    const { bytes } = yield* readSuperblock();
    return bytes.length !== this.#superblock.length || bytes.some((byte, i) => byte !== this.#superblock[i]);
  }

  /** Whether one of the ranks says so. */
  onAnyRank(says: boolean): boolean {
    return this.#ranks.onAny(says);
  }

  /** Looks at what other ranks have committed, before something is read. */
  catchUp(): void {
    if (this.#open?.isBehind) this.now(this.#open.catchUp());
  }

  /** A call that all ranks make alike; throws MISMATCH on all of them if they do not. */
  collective(call: string, details: () => Readonly<Record<string, unknown>>): void {
    this.#ranks.sameCall(call, details);
  }

  together<T>(work: () => T): T {
    return this.#ranks.together(work);
  }

  #appender(superblock: { base: number; end: number; bytes: Uint8Array }): Appender {
    return new Appender({ name: this.storage.name, superblock, power: this.#options.power });
  }

  /** Runs code that should find everything in memory, or a storage that can block. */
  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  /** Throws unless the file may be changed. */
  writable(): void {
    if (this.closed) throw new H5LogError('CLOSED', `${this.storage.name} is closed`, { file: this.storage.name });
    if (!this.target)
      throw new H5LogError('READ_ONLY', `${this.storage.name} is open for reading only`, { file: this.storage.name });
  }

  /** Names are the connector's business from here on. */
  #useNames(names: Names): void {
    this.names = names;
    const shown = (path: string): string =>
      path
        .split('/')
        .map((name) => names.shownInside(name))
        .join('/');
    this.structure.paths = { stored: (path) => this.storedPath(path), shown };
  }

  find(from: ObjectNode, path: string): Found | undefined {
    const node = findIn(this, from, path);
    return node && { session: this, node, path };
  }

  follow(group: ObjectNode, path: string, link: Link): Found | undefined {
    const node = this.now(this.structure.target(group, link));
    return node && { session: this, node, path: `${path}/${link.name}` };
  }

  storedIn(group: ObjectNode, name: string): string {
    return storedIn(this, group, name);
  }

  shownIn(group: ObjectNode, name: string): string | undefined {
    return group === this.structure.root ? this.names.shown(name) : this.names.shownInside(name);
  }

  storedPath(path: string): string {
    return storedPath(this.names, path);
  }

  /** The log's view of a dataset; undefined for datasets of another kind. */
  logDataset(node: ObjectNode, path: string): LogDataset | undefined {
    return this.log ? this.now(this.log.dataset(node, path)) : undefined;
  }

  /** A dataset of ordinary HDF5; its data is read and written by another library. */
  regular(node: ObjectNode, path: string): RegularDataset {
    const session = this;
    this.#regular ??= new RegularData({
      source: this.#options.path ?? this.storage,
      get stamp() {
        return session.#stamp;
      },
      storedPath: (given) => this.storedPath(given),
      lend: (work) => this.#lend(work),
    });
    return this.#regular.dataset(node, path);
  }

  /** Another library changes the file: what waits is committed before, and everything is read anew after. */
  #lend<T>(work: () => T): T {
    this.writable();
    if (this.comm.size > 1)
      throw new H5LogError('UNSUPPORTED', 'several ranks can only read the data of ordinary datasets');
    this.makeRoom?.();
    this.now(this.finish());
    try {
      return work();
    } finally {
      this.now(this.#openState());
      this.#stamp++;
      this.generation++;
    }
  }

  /** The log, begun if the file has none yet. */
  beginLog(): Log {
    if (this.log) return this.log;
    complete(beginLog(this.structure, NO_LOG));
    const main = this.#mainStore(this.structure, NO_LOG);
    const open = OpenLog.plain(this.structure, main, this.#storeOptions);
    this.#useLog(open);
    return open.log;
  }

  /** A dataset may have gone: where others refer to its entries, the next flush writes the tables anew. */
  dropped(): void {
    const { log } = this;
    if (!log?.rewrite || log.hasSubfiles) return;
    this.together(() => {
      if (log.main.committer) this.now(log.main.loadTables());
    });
  }

  // ---------------------------------------------------------------- commits

  /** Encodes what changed, or gives undefined if nothing did. */
  plan(): CommitInProgress | undefined {
    this.writable();
    return this.#plan(this.#ranks);
  }

  #plan(ranks: Ranks): CommitInProgress | undefined {
    const time = Date.now();
    const { log } = this;
    const committer = this.#committer;
    if (log) {
      const flush = ranks.plan(log, this.#next, time);
      return flush && { sequence: this.#next++, time: flush.time, planned: null, flush };
    }
    if (!committer?.pending) return undefined;
    return { sequence: this.#next++, time, planned: committer.plan(), flush: null };
  }

  write(progress: CommitInProgress): Io<Commit> {
    return this.#write(progress, this.#ranks);
  }

  *#write({ sequence, time, planned, flush }: CommitInProgress, ranks: Ranks): Io<Commit> {
    const { log } = this;
    if (planned) yield* (this.#committer as Committer).write(planned);
    if (!flush || !log) return { sequence, time: new Date(time), bytes: planned?.bytes ?? 0, requests: 0 };
    const options = { power: this.#options.power, file: this.#together };
    const done = yield* ranks.commit(log, flush, options);
    return { sequence, time: new Date(done.time), bytes: done.bytes, requests: flush.requests };
  }

  succeeded({ flush }: CommitInProgress, commit: Commit, overtaken: boolean): void {
    this.last = commit;
    this.#stamp++;
    if (!flush || !this.#open) return;
    flushDone(this.#open.log, flush, overtaken);
    if (this.comm.size > 1) {
      this.#open.isBehind = true;
      if (!this.#committer) this.structure.forgetChanges();
    }
  }

  failed({ sequence, planned, flush }: CommitInProgress): void {
    this.#next = Math.min(this.#next, sequence);
    if (planned) this.#committer?.undo(planned);
    if (flush && this.log) flushFailed(this.log, flush);
  }

  commits(): Commit[] {
    this.catchUp();
    const list = (this.log?.main.history() ?? []).map(commitOf);
    if (list.length > 0 && (list[list.length - 1] as Commit).sequence < this.last.sequence) list.push(this.last);
    return list;
  }

  /** Cuts the file to size; the storages are closed by the caller. */
  *finish(): Io<void> {
    this.#regular?.close();
    this.#together?.close();
    this.#together = null;
    for (const store of this.log?.stores ?? []) {
      if (store.committer && store.storage) yield* store.run(store.committer.appender.close());
    }
    if (this.#committer) yield* this.#committer.appender.close();
  }

  giveUp(): void {
    this.now(this.finish());
  }

  release(): void {
    this.target?.release();
  }

  /** Gives the communicators up that were made for this file. */
  leave(): void {
    const { log, comm } = this;
    if (comm.size === 1) return;
    if (log && log.own.comm !== comm) log.own.comm.close();
    comm.close();
  }

  /** Every file that is open: this one, and subfiles. */
  get storages(): ByteStorage[] {
    const subfiles = (this.log?.stores ?? []).flatMap(({ storage }) => (storage ? [storage] : []));
    return [...new Set([this.storage, ...subfiles, ...this.#subfiles.values()])];
  }
}

function commitOf({ sequence, time, requests, start, end }: CommitRecord): Commit {
  return { sequence, time: new Date(time), bytes: end - start, requests };
}
