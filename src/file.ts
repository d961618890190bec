import { createTarget, openTarget, readTarget, watchProcess } from '#platform';
import type { Communicator } from './comm/communicator.ts';
import { solo } from './comm/solo.ts';
import { connectorFromEnvironment, indexLimit, tableOptions } from './connector/environment.ts';
import { type CommonOptions, type CreateOptions, checkOptions, type OpenOptions } from './connector/options.ts';
import { type Commit, type CommitInProgress, Session, type SessionOptions } from './connector/session.ts';
import { H5LogError } from './errors.ts';
import { Group } from './group.ts';
import { blobStorage } from './storage/blob.ts';
import { driveAsync, driveSync } from './storage/drive.ts';
import { httpStorage } from './storage/http.ts';
import { type Job, JobQueue } from './storage/jobs.ts';
import type { ByteStorage } from './storage/storage.ts';
import { plainTarget, type WriteTarget } from './storage/target.ts';

/** An HDF5 file; the root group of what is in it. */
export class File extends Group {
  readonly #jobs: JobQueue<Commit>;
  #closing: Promise<void> | null = null;
  #released = false;
  #unwatch: (() => void) | null = null;

  private constructor(session: Session, commitOnSignal = false) {
    super(session, null, '/', session.structure.root);
    this.#jobs = new JobQueue(session.storage);
    session.makeRoom = () => this.flushSync();
    if (session.mode === 'r+') {
      this.#unwatch = watchProcess({
        exit: () => this.closeSync(),
        crash: () => this.#abandon(),
        onSignal: commitOnSignal ? () => this.flushSync() : null,
      });
    }
  }

  /** Makes a new file, replacing what is at that path once the new one is whole. */
  static async create(target: string | URL | ByteStorage, options: CreateOptions = {}): Promise<File> {
    const opening = beginCreate(target, options);
    return new File(
      await opening.settle(() => driveAsync(opening.storage, Session.create(opening.session))),
      options.commitOnSignal,
    );
  }

  static createSync(target: string | URL | ByteStorage, options: CreateOptions = {}): File {
    const opening = beginCreate(target, options);
    return new File(
      opening.settleSync(() => driveSync(opening.storage, Session.create(opening.session))),
      options.commitOnSignal,
    );
  }

  static async open(source: string | URL | Blob | ByteStorage, options: OpenOptions = {}): Promise<File> {
    const opening = beginOpen(source, options);
    return new File(
      await opening.settle(() => driveAsync(opening.storage, Session.open(opening.session))),
      options.commitOnSignal,
    );
  }

  static openSync(source: string | URL | ByteStorage, options: OpenOptions = {}): File {
    const opening = beginOpen(source, options);
    return new File(
      opening.settleSync(() => driveSync(opening.storage, Session.open(opening.session))),
      options.commitOnSignal,
    );
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

  get comm(): Communicator {
    return this.session.comm;
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
    return driveAsync(this.session.storage, this.session.refresh());
  }

  refreshSync(): boolean {
    if (this.mode === 'r+') return false;
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
    while (!this.closed && !signal?.aborted) {
      if (await this.refresh()) {
        for (const commit of this.commits()) if (commit.sequence > seen) yield commit;
        seen = this.sequence;
      } else await pause(interval, signal);
    }
  }

  /** Commits everything that changed so far. What changes while it is written belongs to the next commit. */
  async flush(): Promise<Commit> {
    const progress = this.session.plan();
    // With nothing new, what is still being written is what this flush covers.
    return progress ? this.#jobs.add(this.#job(progress)) : (this.#jobs.last ?? this.session.last);
  }

  /** The same, done when it returns. Takes over flushes that are still being written. */
  flushSync(): Commit {
    this.session.writable();
    this.#jobs.finishSync();
    const progress = this.session.plan();
    return progress ? this.#jobs.runSync(this.#job(progress)) : this.session.last;
  }

  #job(progress: CommitInProgress): Job<Commit> {
    return {
      start: () => this.session.write(progress),
      done: (_commit, overtaken) => this.session.succeeded(progress, overtaken),
      failed: () => this.session.failed(progress),
    };
  }

  /** Commits what is pending, cuts the file to size and gives the lock up. Objects of the file can still be read. */
  async close(): Promise<void> {
    if (this.#released) return;
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
    await this.session.storage.close();
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
    if (this.mode === 'r+' && !this.session.closed) this.flushSync();
    driveSync(this.session.storage, this.session.finish());
    this.#release();
    this.session.storage.blocking?.close();
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
    driveSync(this.session.storage, this.session.finish());
    this.#release();
    this.session.storage.blocking?.close();
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

/** What opening or creating has taken and must give back when it fails. */
class Opening {
  readonly storage: ByteStorage;
  readonly session: SessionOptions;
  readonly #target: WriteTarget | null;
  readonly #isNew: boolean;
  readonly #ownsStorage: boolean;

  constructor(
    storage: ByteStorage,
    target: WriteTarget | null,
    isNew: boolean,
    ownsStorage: boolean,
    options: CommonOptions,
  ) {
    this.storage = storage;
    this.#target = target;
    this.#isNew = isNew;
    this.#ownsStorage = ownsStorage;
    this.session = {
      storage,
      target,
      comm: options.comm ?? solo(),
      power: options.durability === 'power',
      asOf: (options as OpenOptions).asOf,
      log: {
        table: tableOptions(options),
        checksum: options.checksum !== false,
        bufferLimit: options.bufferLimit ?? Infinity,
        indexLimit: indexLimit(options),
        flushWhenFull: options.onBufferFull === 'flush',
      },
    };
  }

  async settle(work: () => Promise<Session>): Promise<Session> {
    try {
      const session = await work();
      if (this.#isNew) this.#target?.publish(this.session.power);
      return session;
    } catch (error) {
      if (this.#ownsStorage) await this.storage.close();
      throw this.#giveUp(error);
    }
  }

  settleSync(work: () => Session): Session {
    try {
      const session = work();
      if (this.#isNew) this.#target?.publish(this.session.power);
      return session;
    } catch (error) {
      if (this.#ownsStorage) this.storage.blocking?.close();
      throw this.#giveUp(error);
    }
  }

  #giveUp(error: unknown): unknown {
    if (this.#isNew) this.#target?.discard();
    this.#target?.release();
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

function checkComm(options: CommonOptions): void {
  checkOptions(options);
  if ((options.connector ?? connectorFromEnvironment()) === 'native') {
    throw new H5LogError(
      'UNSUPPORTED',
      'the native connector is not part of this version; leave connector out, or choose log',
    );
  }
  if (options.comm && options.comm.size > 1)
    throw new H5LogError('UNSUPPORTED', 'files of several ranks are not supported yet');
}

function beginCreate(target: string | URL | ByteStorage, options: CreateOptions): Opening {
  checkComm(options);
  if (isPath(target)) {
    const made = createTarget(target, options.exclusive ?? false);
    return new Opening(made.storage, made, true, true, options);
  }
  checkStorage(target);
  return new Opening(target, plainTarget(target), true, false, options);
}

function beginOpen(source: string | URL | Blob | ByteStorage, options: OpenOptions): Opening {
  checkComm(options);
  const writing = options.mode === 'r+';
  if (writing && options.asOf !== undefined) throw new H5LogError('OPTION', 'an earlier state (asOf) can only be read');
  if (options.asOf !== undefined && !Number.isInteger(options.asOf))
    throw new H5LogError('OPTION', `asOf must be a sequence number, got ${String(options.asOf)}`);
  if (isPath(source)) {
    if (isWeb(source)) return readOnly(httpStorage(source), writing, options);
    if (!writing) return new Opening(readTarget(source), null, false, true, options);
    const opened = openTarget(source);
    return new Opening(opened.storage, opened, false, true, options);
  }
  if (typeof Blob !== 'undefined' && source instanceof Blob) return readOnly(blobStorage(source), writing, options);
  checkStorage(source);
  return new Opening(source as ByteStorage, writing ? plainTarget(source as ByteStorage) : null, false, false, options);
}

function readOnly(storage: ByteStorage, writing: boolean, options: OpenOptions): Opening {
  if (writing) throw new H5LogError('READ_ONLY', `${storage.name} cannot be written`, { file: storage.name });
  return new Opening(storage, null, false, true, options);
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
