import { createTarget, joinTarget, openTarget, readTarget, subfilesOf, watchProcess } from '#platform';
import { together } from './comm/agreement.ts';
import type { Communicator } from './comm/communicator.ts';
import { connectorFromEnvironment, indexLimit, subfileCount, tableOptions } from './connector/environment.ts';
import { type CommonOptions, type CreateOptions, checkOptions, type OpenOptions } from './connector/options.ts';
import { type Ranks, ranksFor } from './connector/ranks.ts';
import { type Commit, type CommitInProgress, Session, type SessionOptions } from './connector/session.ts';
import { H5LogError } from './errors.ts';
import { Group } from './group.ts';
import { blobStorage } from './storage/blob.ts';
import { driveAsync, driveSync } from './storage/drive.ts';
import { httpStorage } from './storage/http.ts';
import { type Job, JobQueue } from './storage/jobs.ts';
import type { ByteStorage } from './storage/storage.ts';
import type { Subfiles } from './storage/subfiles.ts';
import { plainTarget, type WriteTarget } from './storage/target.ts';

/** An HDF5 file; the root group of what is in it. */
export class File extends Group {
  readonly comm: Communicator;
  readonly #jobs: JobQueue<Commit>;
  #closing: Promise<void> | null = null;
  #released = false;
  #unwatch: (() => void) | null = null;

  private constructor(session: Session, opening: Opening, commitOnSignal = false) {
    super(session, null, '/', session.structure.root);
    this.comm = opening.given;
    this.#jobs = new JobQueue(session.storage);
    session.makeRoom = () => this.flushSync();
    if (session.mode !== 'r+') return;
    const alone = session.comm.size === 1;
    this.#unwatch = watchProcess({
      exit: () => {
        if (!alone) return this.#leave();
        this.closeSync();
        return undefined;
      },
      crash: () => this.#abandon(),
      onSignal: commitOnSignal ? () => this.flushSync() : null,
    });
  }

  /** Makes a new file, replacing what is at that path once the new one is whole. */
  static async create(target: string | URL | ByteStorage, options: CreateOptions = {}): Promise<File> {
    const opening = beginCreate(target, options);
    if (opening.isShared) return File.#createNow(opening, options);
    const session = await opening.settle(() => driveAsync(opening.storage, Session.create(opening.session)));
    return new File(session, opening, options.commitOnSignal);
  }

  static createSync(target: string | URL | ByteStorage, options: CreateOptions = {}): File {
    return File.#createNow(beginCreate(target, options), options);
  }

  static #createNow(opening: Opening, options: CreateOptions): File {
    const session = opening.settleSync(() => driveSync(opening.storage, Session.create(opening.session)));
    return new File(session, opening, options.commitOnSignal);
  }

  static async open(source: string | URL | Blob | ByteStorage, options: OpenOptions = {}): Promise<File> {
    const opening = beginOpen(source, options);
    if (opening.isShared) return File.#openNow(opening, options);
    const session = await opening.settle(() => driveAsync(opening.storage, Session.open(opening.session)));
    return new File(session, opening, options.commitOnSignal);
  }

  static openSync(source: string | URL | ByteStorage, options: OpenOptions = {}): File {
    return File.#openNow(beginOpen(source, options), options);
  }

  static #openNow(opening: Opening, options: OpenOptions): File {
    const session = opening.settleSync(() => driveSync(opening.storage, Session.open(opening.session)));
    return new File(session, opening, options.commitOnSignal);
  }

  get connector(): 'log' | 'native' {
    return this.session.log ? 'log' : 'native';
  }

  get mode(): 'r' | 'r+' {
    return this.session.mode;
  }

  get closed(): boolean {
    return this.session.closed;
  }

  /** The number of the last commit. */
  get sequence(): number {
    return this.session.last.sequence;
  }

  /** What was posted and not flushed yet. */
  get pending(): { readonly requests: number; readonly bytes: number } {
    return this.session.log?.pending ?? { requests: 0, bytes: 0 };
  }

  /** Every commit that the file knows of, oldest first. */
  commits(): readonly Commit[] {
    return this.session.commits();
  }

  /** For readers: moves to the newest commit; false if there is none newer. Objects show the new state. */
  async refresh(): Promise<boolean> {
    if (this.mode === 'r+') return false;
    if (this.#isShared) return this.refreshSync();
    return driveAsync(this.session.storage, this.session.refresh());
  }

  refreshSync(): boolean {
    if (this.mode === 'r+') return false;
    this.session.collective('refresh', () => ({}));
    return driveSync(this.session.storage, this.session.refresh());
  }

  /** Commits as another process makes them: the file is looked at again and again, every `interval` milliseconds. */
  async *watch({
    signal,
    interval = 100,
  }: {
    signal?: AbortSignal;
    interval?: number;
  } = {}): AsyncIterableIterator<Commit> {
    let seen = this.sequence;
    // On several ranks it ends for all of them when one has had enough: the others would wait for it.
    while (!this.session.onAnyRank(this.closed || signal?.aborted === true)) {
      if (await this.refresh()) {
        for (const commit of this.commits()) if (commit.sequence > seen) yield commit;
        seen = this.sequence;
      } else await pause(interval, signal);
    }
  }

  /** Commits everything that changed so far. What changes while it is written belongs to the next commit. */
  async flush(): Promise<Commit> {
    // Several ranks do all of it now: what they do together cannot wait for its turn in an event loop.
    if (this.#isShared) return this.flushSync();
    const progress = this.session.plan();
    // With nothing new, what is still being written is what this flush covers.
    return progress ? this.#jobs.add(this.#job(progress)) : (this.#jobs.last ?? this.session.last);
  }

  /** The same, done when it returns. Takes over flushes that are still being written. */
  flushSync(): Commit {
    this.session.writable();
    this.session.collective('flush', () => ({}));
    this.#jobs.finishSync();
    const progress = this.session.plan();
    return progress ? this.#jobs.runSync(this.#job(progress)) : this.session.last;
  }

  #job(progress: CommitInProgress): Job<Commit> {
    return {
      start: () => this.session.write(progress),
      done: (commit, overtaken) => this.session.succeeded(progress, commit, overtaken),
      failed: () => this.session.failed(progress),
    };
  }

  /** Commits what is pending, cuts the file to size and gives the lock up. Objects of the file can still be read. */
  async close(): Promise<void> {
    if (this.#released) return;
    if (this.#isShared) {
      this.closeSync();
      return;
    }
    this.#closing ??= this.#finish().finally(() => {
      this.#closing = null;
    });
    await this.#closing;
  }

  async #finish(): Promise<void> {
    if (this.mode === 'r+') await this.#flushAll();
    if (this.#released) return;
    try {
      await driveAsync(this.session.storage, this.session.finish());
    } catch (error) {
      if (this.#released) return;
      this.session.closed = false;
      throw error;
    }
    if (!this.#released) this.#release();
    for (const storage of this.session.storages) await storage.close();
  }

  /** Until nothing is left, also of what was posted meanwhile. Then, in the same breath, changes are refused. */
  async #flushAll(): Promise<void> {
    for (let last = this.flush() as Promise<Commit> | undefined; last; ) {
      await last;
      if (this.#released) return;
      const more = this.session.plan();
      last = more ? this.#jobs.add(this.#job(more)) : this.#jobs.last;
    }
    this.session.closed = true;
  }

  closeSync(): void {
    if (this.#released) return;
    const { comm } = this.session;
    this.session.collective('close', () => ({}));
    if (this.mode === 'r+' && !this.session.closed) this.flushSync();
    // When one rank's call returns the file has its size and the lock is gone, whichever rank had it.
    together(comm, () => this.#end());
    this.session.leave();
  }

  #end(): void {
    driveSync(this.session.storage, this.session.finish());
    this.#release();
    for (const storage of this.session.storages) storage.blocking?.close();
  }

  /** Whether other ranks have the file open as well, and calls are made together. */
  get #isShared(): boolean {
    return this.session.comm.size > 1;
  }

  /** The process ends and the file is open: the other ranks may not be there any more, so nothing can be committed. */
  #leave(): string {
    const { rank, size } = this.session.comm;
    const { requests } = this.pending;
    attemptTo(() => this.#end());
    const lost = requests === 0 ? '' : `; ${requests} requests after commit ${this.sequence} were not committed`;
    return `h5log: rank ${rank} of ${size} ended without closing ${this.session.storage.name}${lost}`;
  }

  /** The process ends because of an exception: what was not flushed is lost, and somebody should know. */
  #abandon(): string | undefined {
    const { requests, bytes } = this.pending;
    driveSync(this.session.storage, this.session.finish());
    this.#release();
    if (requests === 0) return undefined;
    return `h5log: ${this.session.storage.name}: ${requests} requests (${bytes} bytes) posted after commit ${this.sequence} were not committed`;
  }

  /**
   * Closes without committing what is pending: for a file that cannot be flushed any more, for example because another program
   * changed it. Flushes under way fail.
   */
  discard(): void {
    if (this.#released) return;
    this.#jobs.cancel(new H5LogError('CLOSED', `${this.session.storage.name} was closed without a flush`));
    this.#end();
    // Other ranks that still call something learn that this one is gone.
    this.session.leave();
  }

  #release(): void {
    this.#unwatch?.();
    this.#released = true;
    this.session.closed = true;
    this.session.target?.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.dispose](): void {
    this.closeSync();
  }
}

function attemptTo(work: () => void): void {
  try {
    work();
  } catch {
    // The process ends; there is a more important message to print.
  }
}

/** What opening or creating has taken and must give back when it fails. */
class Opening {
  readonly storage: ByteStorage;
  readonly session: SessionOptions;
  /** The communicator as the user gave it; the session has one of its own. */
  readonly given: Communicator;
  readonly #target: WriteTarget | null;
  readonly #isNew: boolean;
  readonly #ownsStorage: boolean;

  constructor(source: Source, ranks: Ranks, options: CommonOptions) {
    const { storage, target } = source;
    this.storage = storage;
    this.given = ranks.given;
    this.#target = target;
    this.#isNew = source.isNew;
    this.#ownsStorage = source.ownsStorage;
    this.session = {
      storage,
      target,
      comm: ranks.comm,
      power: options.durability === 'power',
      asOf: (options as OpenOptions).asOf,
      subfiles: source.subfiles,
      newSubfiles: source.isNew ? subfileCount(options as CreateOptions) : 0,
      isTogether: options.storage === 'mpi-io',
      log: {
        table: tableOptions(options),
        checksum: options.checksum !== false,
        bufferLimit: options.bufferLimit ?? Infinity,
        indexLimit: indexLimit(options),
        flushWhenFull: options.onBufferFull === 'flush',
      },
    };
    if (this.session.newSubfiles !== 0 && !source.subfiles)
      throw new H5LogError('OPTION', 'subfiles need a path: a storage has nothing beside it');
  }

  /** Whether there are other ranks, so that everything is done in blocking calls. */
  get isShared(): boolean {
    return this.session.comm.size > 1;
  }

  async settle(work: () => Promise<Session>): Promise<Session> {
    try {
      return await work();
    } catch (error) {
      if (this.#ownsStorage) await this.storage.close();
      this.giveUp();
      throw this.#located(error);
    }
  }

  settleSync(work: () => Session): Session {
    try {
      return work();
    } catch (error) {
      this.giveUp();
      if (this.given !== this.session.comm) this.session.comm.close();
      throw this.#located(error);
    }
  }

  /** Gives everything back. */
  giveUp(): void {
    if (this.#ownsStorage) this.storage.blocking?.close();
    if (this.#isNew) this.#target?.discard();
    this.#target?.release();
  }

  #located(error: unknown): unknown {
    if (!(error instanceof H5LogError) || error.file !== undefined) return error;
    const { offset, object, rank, cause } = error;
    return new H5LogError(error.code, `${this.storage.name}: ${error.message}`, {
      file: this.storage.name,
      offset,
      object,
      rank,
      cause: cause ?? error,
    });
  }
}

/** Waits, but not beyond the signal. */
function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener('abort', done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
  });
}

const isPath = (source: unknown): source is string | URL => typeof source === 'string' || source instanceof URL;
const isWeb = (source: string | URL): boolean => /^https?:\/\//i.test(String(source));

/** Where a file is, and what was taken for it. */
interface Source {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly subfiles: Subfiles | null;
  readonly isNew: boolean;
  readonly ownsStorage: boolean;
}

function checkConnector(options: CommonOptions): void {
  if ((options.connector ?? connectorFromEnvironment()) === 'native') {
    throw new H5LogError(
      'UNSUPPORTED',
      'the native connector is not part of this version; leave connector out, or choose log',
    );
  }
}

function beginCreate(target: string | URL | ByteStorage, options: CreateOptions): Opening {
  const ranks = ranksFor(options, true);
  const effective = () => ({ table: tableOptions(options), subfiles: subfileCount(options) });
  return ranks.begin('File.create', target, { options, effective }, () => {
    checkOptions(options);
    checkConnector(options);
    if (!isPath(target)) {
      checkStorage(target);
      ranks.mustBeAlone();
      return new Opening({ ...plain(target, true), isNew: true }, ranks, options);
    }
    const made = ranks.leads ? createTarget(target, options.exclusive ?? false) : joinTarget(target);
    const { storage } = made;
    const source = { storage, target: made, subfiles: subfilesOf(target), isNew: true, ownsStorage: true };
    return orRelease(made, () => new Opening(source, ranks, options));
  });
}

function beginOpen(source: string | URL | Blob | ByteStorage, options: OpenOptions): Opening {
  const writing = options?.mode === 'r+';
  const ranks = ranksFor(options, writing);
  const effective = () => (writing ? { table: tableOptions(options) } : {});
  return ranks.begin('File.open', source, { options, effective }, () => {
    checkOptions(options);
    checkConnector(options);
    const { asOf } = options;
    if (writing && asOf !== undefined) throw new H5LogError('OPTION', 'an earlier state (asOf) can only be read');
    if (asOf !== undefined && !Number.isInteger(asOf))
      throw new H5LogError('OPTION', `asOf must be a sequence number, got ${String(asOf)}`);
    return new Opening(sourceOf(source, writing, ranks), ranks, options);
  });
}

function sourceOf(source: string | URL | Blob | ByteStorage, writing: boolean, ranks: Ranks): Source {
  if (isPath(source)) {
    if (isWeb(source)) return readOnly(httpStorage(source), writing);
    const beside = { subfiles: subfilesOf(source), isNew: false, ownsStorage: true };
    if (!writing) return { storage: readTarget(source), target: null, ...beside };
    const opened = ranks.leads ? openTarget(source) : joinTarget(source);
    return { storage: opened.storage, target: opened, ...beside };
  }
  if (typeof Blob !== 'undefined' && source instanceof Blob) return readOnly(blobStorage(source), writing);
  checkStorage(source);
  if (writing) ranks.mustBeAlone();
  return plain(source as ByteStorage, writing);
}

function orRelease<T>(target: WriteTarget, work: () => T): T {
  try {
    return work();
  } catch (error) {
    target.storage.blocking?.close();
    target.discard();
    target.release();
    throw error;
  }
}

function plain(storage: ByteStorage, writing: boolean): Source {
  const target = writing ? plainTarget(storage) : null;
  return { storage, target, subfiles: null, isNew: false, ownsStorage: false };
}

function readOnly(storage: ByteStorage, writing: boolean): Source {
  if (writing) throw new H5LogError('READ_ONLY', `${storage.name} cannot be written`, { file: storage.name });
  return { storage, target: null, subfiles: null, isNew: false, ownsStorage: true };
}

function checkStorage(source: unknown): void {
  const storage = source as Partial<ByteStorage> | null;
  if (
    typeof storage === 'object' &&
    storage !== null &&
    typeof storage.read === 'function' &&
    typeof storage.size === 'function'
  )
    return;
  throw new H5LogError('OPTION', 'a path, a URL, a Blob or a storage is needed');
}
