import type { Communicator } from '../comm/communicator.ts';
import { H5LogError } from '../errors.ts';
import { Appender } from '../hdf5/appender.ts';
import { Committer, type PlannedCommit } from '../hdf5/commit.ts';
import type { ObjectNode } from '../hdf5/object-node.ts';
import { loadEverything, newStructure, type OpenedStructure, openStructure, prepareWriting } from '../hdf5/open.ts';
import type { Structure } from '../hdf5/structure.ts';
import { SUPERBLOCK_SIZE } from '../hdf5/superblock.ts';
import { beginLog, type LogCounts, readCounts, writeCounts } from '../log/layout.ts';
import { logNames, type Names, plainNames } from '../log/names.ts';
import { driveSync, type Io } from '../storage/drive.ts';
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
}

/** A commit on its way into the file. */
export interface CommitInProgress {
  readonly planned: PlannedCommit;
  readonly commit: Commit;
  readonly counts: LogCounts | null;
}

/** An open file: what its objects share. Users hold {@link File}, {@link Group} and {@link Dataset} instead. */
export class Session {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly comm: Communicator;
  readonly #power: boolean;
  structure: Structure;
  /** Counts of the log, null for a file without one. */
  counts: LogCounts | null = null;
  names: Names = plainNames;
  closed = false;
  /** Grows when a reader moves to a newer state, so that objects look themselves up again. */
  generation = 0;
  last: Commit = { sequence: 0, time: new Date(), bytes: 0, requests: 0 };
  #planned = 0;
  #committer: Committer | null = null;

  private constructor(options: SessionOptions, structure: Structure) {
    this.storage = options.storage;
    this.target = options.target;
    this.comm = options.comm;
    this.#power = options.power;
    this.structure = structure;
  }

  get mode(): 'r' | 'r+' {
    return this.target ? 'r+' : 'r';
  }

  /** A new file; its first commit still has to be written. */
  static *create(options: SessionOptions): Io<Session> {
    const session = new Session(options, newStructure());
    yield { op: 'truncate', size: 0 };
    const empty = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
    session.#committer = new Committer(session.structure, session.#appender(empty), null);
    session.counts = yield* beginLog(session.structure);
    session.#useNames(logNames);
    const first = session.plan();
    if (first) {
      yield* session.write(first);
      session.succeeded(first);
    }
    return session;
  }

  static *open(options: SessionOptions): Io<Session> {
    const opened = yield* openStructure();
    const session = new Session(options, opened.structure);
    yield* session.#adopt(opened);
    return session;
  }

  *#adopt(opened: OpenedStructure): Io<void> {
    const { structure, superblock, extension } = opened;
    if (this.target) {
      yield* prepareWriting(opened);
      this.#committer = new Committer(structure, this.#appender(superblock), extension);
    } else if (!this.storage.blocking) yield* loadEverything(structure);
    this.structure = structure;
    this.counts = (yield* readCounts(structure)) ?? null;
    this.#useNames(this.counts ? logNames : plainNames);
  }

  #appender(superblock: { base: number; end: number; bytes: Uint8Array }): Appender {
    return new Appender({ name: this.storage.name, superblock, power: this.#power });
  }

  /** Runs code that should find everything in memory, or a storage that can block. */
  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  /** Throws unless the file may be changed. */
  writable(): Committer {
    if (this.closed) throw new H5LogError('CLOSED', `${this.storage.name} is closed`, { file: this.storage.name });
    if (!this.#committer) throw new H5LogError('READ_ONLY', `${this.storage.name} is open for reading only`, { file: this.storage.name });
    return this.#committer;
  }

  /** Names are the connector's business from here on. */
  #useNames(names: Names): void {
    this.names = names;
    const shown = (path: string): string =>
      path
        .split('/')
        .map((name) => names.shown(name) ?? name)
        .join('/');
    this.structure.paths = { stored: (path) => this.storedPath(path), shown };
  }

  /** Follows a path of the user's from a group. */
  find(from: ObjectNode, path: string): ObjectNode | undefined {
    return this.now(this.structure.lookup(from, this.storedPath(path)));
  }

  storedPath(path: string): string {
    return path
      .split('/')
      .map((name) => (name === '' || name === '.' ? name : this.names.stored(name)))
      .join('/');
  }

  nextDatasetId(): number {
    if (!this.counts) this.beginLog();
    const counts = this.counts as LogCounts;
    return counts.datasets;
  }

  /** The dataset with the next number was made. */
  countDataset(): void {
    const counts = this.counts as LogCounts;
    counts.datasets++;
    this.now(writeCounts(this.structure, counts));
  }

  /** A regular file gets its first dataset of a log. */
  beginLog(): void {
    this.counts = this.now(beginLog(this.structure));
    this.#useNames(logNames);
  }

  // ---------------------------------------------------------------- commits

  /** Encodes what changed, or gives undefined if nothing did. */
  plan(): CommitInProgress | undefined {
    const committer = this.writable();
    if (!committer.pending) return undefined;
    const planned = committer.plan();
    const sequence = ++this.#planned;
    return { planned, commit: { sequence, time: new Date(), bytes: planned.bytes, requests: 0 }, counts: this.counts };
  }

  *write(progress: CommitInProgress): Io<Commit> {
    const committer = this.#committer as Committer;
    yield* committer.write(progress.planned);
    return progress.commit;
  }

  succeeded(progress: CommitInProgress): void {
    this.last = progress.commit;
  }

  failed(progress: CommitInProgress): void {
    this.#planned = Math.min(this.#planned, progress.commit.sequence - 1);
    (this.#committer as Committer).undo(progress.planned);
  }

  /** Cuts the file to size; the storage is closed by the caller. */
  *finish(): Io<void> {
    if (this.#committer) yield* this.#committer.appender.close();
  }
}
