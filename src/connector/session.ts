import type { Communicator } from '../comm/communicator.ts';
import { H5LogError } from '../errors.ts';
import { Appender } from '../hdf5/appender.ts';
import { Committer, type PlannedCommit } from '../hdf5/commit.ts';
import type { Link, ObjectNode } from '../hdf5/object-node.ts';
import { loadEverything, newStructure, type OpenedStructure, openStructure, prepareWriting } from '../hdf5/open.ts';
import type { Structure } from '../hdf5/structure.ts';
import { readSuperblock, SUPERBLOCK_SIZE } from '../hdf5/superblock.ts';
import type { CommitRecord } from '../log/commit-record.ts';
import { type FlushPlan, flushDone, flushFailed, planFlush } from '../log/flush.ts';
import { writeFlush } from '../log/flush-write.ts';
import { beginLog, type LogCounts, readCounts } from '../log/layout.ts';
import { Log, type LogOptions } from '../log/log.ts';
import type { LogDataset } from '../log/log-dataset.ts';
import { logNames, type Names, plainNames } from '../log/names.ts';
import { complete, driveSync, type Io } from '../storage/drive.ts';
import type { ByteStorage } from '../storage/storage.ts';
import type { WriteTarget } from '../storage/target.ts';

/** A state of the file that was made to last. */
export interface Commit {
  readonly sequence: number;
  readonly time: Date;
  /** Bytes that the commit added to the file. */
  readonly bytes: number;
  readonly requests: number;
}

export interface SessionOptions {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly comm: Communicator;
  readonly power: boolean;
  readonly log: LogOptions;
  /** Open the state of that commit. */
  readonly asOf?: number | undefined;
}

/** A commit on its way into the file. */
export interface CommitInProgress {
  readonly commit: Commit;
  readonly planned: PlannedCommit;
  /** null for a file without a log. */
  readonly flush: FlushPlan | null;
}

/** An open file: what its objects share. Users hold {@link File}, {@link Group} and {@link Dataset} instead. */
export class Session {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly comm: Communicator;
  readonly #options: SessionOptions;
  structure: Structure;
  /** null for a file without a log. */
  log: Log | null = null;
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

  private constructor(options: SessionOptions, structure: Structure) {
    this.storage = options.storage;
    this.target = options.target;
    this.comm = options.comm;
    this.#options = options;
    this.structure = structure;
  }

  get mode(): 'r' | 'r+' {
    return this.target ? 'r+' : 'r';
  }

  /** A new file, with its first commit written. */
  static *create(options: SessionOptions): Io<Session> {
    const session = new Session(options, newStructure());
    yield { op: 'truncate', size: 0 };
    const empty = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
    session.#committer = new Committer(session.structure, session.#appender(empty), null);
    session.beginLog();
    const first = session.plan();
    if (first) {
      yield* session.write(first);
      session.succeeded(first, false);
    }
    return session;
  }

  static *open(options: SessionOptions): Io<Session> {
    const opened = yield* openStructure();
    const session = new Session(options, opened.structure);
    yield* session.#adopt(opened);
    if (options.asOf !== undefined) yield* session.#goBack(options.asOf);
    return session;
  }

  *#adopt(opened: OpenedStructure): Io<void> {
    const { structure, superblock, extension } = opened;
    if (this.target) {
      yield* prepareWriting(opened);
      this.#committer = new Committer(structure, this.#appender(superblock), extension);
    } else if (!this.storage.blocking) yield* loadEverything(structure);
    this.#superblock = superblock.bytes;
    yield* this.#useStructure(structure);
    if (this.#committer) yield* this.#committer.appender.begin();
  }

  *#useStructure(structure: Structure): Io<void> {
    this.structure = structure;
    const counts = yield* readCounts(structure);
    this.log = counts ? this.#newLog(counts) : null;
    this.#useNames(this.log ? logNames : plainNames);
    if (this.log) yield* this.log.load();
    this.#lookAtHistory();
  }

  /** Where the numbering goes on. A state that other software made counts as a commit, too. */
  #lookAtHistory(): void {
    const records = this.log?.history() ?? [];
    const record = records[records.length - 1];
    if (!record) return;
    this.last = commitOf(record);
    if (record.root !== this.structure.root.address)
      this.last = { sequence: record.sequence + 1, time: new Date(), bytes: 0, requests: 0 };
    this.#next = this.last.sequence + 1;
  }

  /** Moves to the state of an earlier commit. */
  *#goBack(sequence: number): Io<void> {
    const records = this.log?.history() ?? [];
    const record = records.find((candidate) => candidate.sequence === sequence);
    if (!record) {
      if (sequence === this.last.sequence) return;
      throw new H5LogError('NOT_FOUND', `there is no commit ${sequence}`, { file: this.storage.name });
    }
    const { structure } = yield* openStructure(record.root);
    if (!this.storage.blocking) yield* loadEverything(structure);
    yield* this.#useStructure(structure);
    // Its own record is not part of the state it describes as far as its history goes: it is the last of it.
    this.last = commitOf(record);
  }

  /** For readers: moves to the newest state; false if there is none newer. */
  *refresh(): Io<boolean> {
    // The superblock alone tells; whoever watches looks at it again and again.
    const { bytes } = yield* readSuperblock();
    if (bytes.length === this.#superblock.length && bytes.every((byte, i) => byte === this.#superblock[i]))
      return false;
    yield* this.#adopt(yield* openStructure());
    this.generation++;
    return true;
  }

  #appender(superblock: { base: number; end: number; bytes: Uint8Array }): Appender {
    return new Appender({ name: this.storage.name, superblock, power: this.#options.power });
  }

  /** Runs code that should find everything in memory, or a storage that can block. */
  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  /** Throws unless the file may be changed. */
  writable(): Committer {
    if (this.closed) throw new H5LogError('CLOSED', `${this.storage.name} is closed`, { file: this.storage.name });
    if (!this.#committer)
      throw new H5LogError('READ_ONLY', `${this.storage.name} is open for reading only`, { file: this.storage.name });
    return this.#committer;
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

  /** Follows a path of the user's from a group. */
  find(from: ObjectNode, path: string): ObjectNode | undefined {
    const { structure } = this;
    let node: ObjectNode | undefined = path.startsWith('/') ? structure.root : from;
    for (const name of path.split('/')) {
      if (name === '' || name === '.') continue;
      const link: Link | undefined = node.links.get(this.storedIn(node, name));
      node = link && this.now(structure.target(node, link));
      if (!node) return undefined;
    }
    return node;
  }

  /** The name in the file for a user's name in a group; one that the original left undoubled is found, too. */
  storedIn(group: ObjectNode, name: string): string {
    const stored = this.names.stored(name);
    if (stored === name || group === this.structure.root || group.links.has(stored)) return stored;
    return group.links.has(name) ? name : stored;
  }

  shownIn(group: ObjectNode, name: string): string | undefined {
    return group === this.structure.root ? this.names.shown(name) : this.names.shownInside(name);
  }

  storedPath(path: string): string {
    return path
      .split('/')
      .map((name) => (name === '' || name === '.' ? name : this.names.stored(name)))
      .join('/');
  }

  /** The log's view of a dataset; undefined for datasets of another kind. */
  logDataset(node: ObjectNode, path: string): LogDataset | undefined {
    return this.log ? this.now(this.log.dataset(node, path)) : undefined;
  }

  /** The log, begun if the file has none yet. */
  beginLog(): Log {
    if (this.log) return this.log;
    const counts = complete(beginLog(this.structure));
    const log = this.#newLog(counts);
    this.log = log;
    this.#useNames(logNames);
    return log;
  }

  #newLog(counts: LogCounts): Log {
    const log = new Log(this.structure, this.#committer, counts, this.#options.log);
    log.makeRoom = () => this.makeRoom?.();
    return log;
  }

  // ---------------------------------------------------------------- commits

  /** Encodes what changed, or gives undefined if nothing did. */
  plan(): CommitInProgress | undefined {
    const committer = this.writable();
    const time = Date.now();
    const flush = this.log ? planFlush(this.log, committer, this.#next, time) : null;
    if (flush === undefined || (!flush && !committer.pending)) return undefined;
    const planned = flush ? flush.planned : committer.plan();
    const commit = {
      sequence: this.#next++,
      time: new Date(time),
      bytes: planned.bytes,
      requests: flush?.requests ?? 0,
    };
    return { commit, planned, flush };
  }

  *write({ commit, planned, flush }: CommitInProgress): Io<Commit> {
    const committer = this.#committer as Committer;
    if (flush && this.log) yield* writeFlush(this.log, committer, flush);
    else yield* committer.write(planned);
    return commit;
  }

  succeeded({ commit, flush }: CommitInProgress, overtaken: boolean): void {
    this.last = commit;
    if (flush && this.log) flushDone(this.log, flush, overtaken);
  }

  failed({ commit, planned, flush }: CommitInProgress): void {
    this.#next = Math.min(this.#next, commit.sequence);
    const committer = this.#committer as Committer;
    if (flush && this.log) flushFailed(this.log, committer, flush);
    else committer.undo(planned);
  }

  commits(): Commit[] {
    const list = (this.log?.history() ?? []).map(commitOf);
    if (list.length > 0 && (list[list.length - 1] as Commit).sequence < this.last.sequence) list.push(this.last);
    return list;
  }

  /** Cuts the file to size; the storage is closed by the caller. */
  *finish(): Io<void> {
    if (this.#committer) yield* this.#committer.appender.close();
  }
}

function commitOf({ sequence, time, requests, start, end }: CommitRecord): Commit {
  return { sequence, time: new Date(time), bytes: end - start, requests };
}
