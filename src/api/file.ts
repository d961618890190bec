// Declarations of [Symbol.dispose] compile in projects that do not name this library themselves.
/// <reference lib="esnext.disposable" preserve="true" />
import { loadWriting, mustHaveWriting, registerExitHooks, warn } from '#platform';
import { H5LogError, isH5LogError, printAs } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { Commit, FileSession } from '../connector/file-session.ts';
import { beginCreate, beginOpen, type Openable, type Opening } from '../connector/opening.ts';
import { type CommonOptions, type CreateOptions, creating, type OpenOptions } from '../connector/options.ts';
import { Session } from '../connector/session.ts';
import type { PublishRequest } from '../log/flush/publish.ts';
import type { PublishWay } from '../log/format/view.ts';
import { letGrow, renewStorage } from '../storage/http.ts';
import { driveAsync, driveSync, type Io } from '../storage/io.ts';
import { type Job, JobQueue } from '../storage/jobs.ts';
import { type ByteStorage, isPath, statisticsOf } from '../storage/storage.ts';
import { Dataset } from './dataset.ts';
import { Group, membersIn } from './group.ts';
import { fileOf, handleOf, lineOf } from './handle.ts';
import { Scales } from './scales.ts';

/** Timers that are set to more milliseconds fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** What publishing came to. */
export interface PublishResult {
  /** The commit that everybody sees. */
  readonly sequence: number;
  /** Datasets that were published, how, and the bytes that had to be copied. */
  readonly datasets: readonly { path: string; way: PublishWay; moved: number }[];
  /** Datasets of which others see an older state, or nothing. */
  readonly without: readonly { path: string; reason: string }[];
}

/** An HDF5 file; the root group of what is in it. */
export class File extends Group {
  readonly comm: Communicator;
  readonly #session: FileSession;
  readonly #jobs: JobQueue<Commit>;
  #closing: Promise<void> | null = null;
  #released = false;
  #unwatch: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** null: nothing is written. */
  readonly #scales: Scales | null;

  private constructor(session: FileSession, comm: Communicator, commitOnSignal = false) {
    if (typeof (session as Partial<FileSession> | undefined)?.generation !== 'number')
      throw new H5LogError('OPTION', 'new File() makes no file: await File.open(path), or File.create(path)');
    super(session, null, '/', session.structure.root);
    this.#session = session;
    this.#scales =
      session.mode === 'r+' ? new Scales(this, (path, node) => new Dataset(session, this, path, node)) : null;
    this.comm = comm;
    this.#jobs = new JobQueue(session.storage);
    session.makeRoom = () => this.flushSync();
    session.finishFlushes = () => this.#jobs.finishSync();
    if (import.meta.page || session.mode !== 'r+') return;
    const { rank, size } = session.comm;
    this.#unwatch = registerExitHooks({
      describe: () => ({ name: session.storage.name, rank, size, sequence: this.sequence, ...session.waiting(true) }),
      // Neither an exit nor a signal publishes: nobody waits for what it would cost.
      close: () => this.#closeSync(false),
      end: () => this.#end(),
      abandon: () => this.#abandon(),
      onSignal: commitOnSignal ? () => this.#commitNow('flush', null) : null,
      unlock: () => session.release(),
    });
  }

  static #of({ session, comm }: { session: FileSession; comm: Communicator }, options: CommonOptions): File {
    return new File(session, comm, options.commitOnSignal);
  }

  /** Makes a new file, replacing what is at that path once the new one is whole. */
  static async create(target: string | URL | ByteStorage, options: CreateOptions = {}): Promise<File> {
    const opening = beginCreate(target, options);
    if (!import.meta.page && opening.isShared) return File.#createNow(opening, options);
    const session = await File.#begun(opening, Session.create(opening.session));
    return File.#of({ session, comm: opening.given }, options);
  }

  static createSync(target: string | URL | ByteStorage, options: CreateOptions = {}): File {
    return File.#createNow(beginCreate(target, options), options);
  }

  static #createNow(opening: Opening, options: CreateOptions): File {
    const session = File.#begunNow(opening, Session.create(opening.session));
    return File.#of({ session, comm: opening.given }, options);
  }

  static open(
    source: string | URL | Blob | ArrayBuffer | Uint8Array | ByteStorage,
    options?: OpenOptions,
  ): Promise<File>;
  /** Options of create count if there is nothing yet. */
  static open(path: string | URL, options: CreateOptions & OpenOptions & { mode: 'a' }): Promise<File>;
  static async open(source: Openable, options: CreateOptions & OpenOptions = {}): Promise<File> {
    if (options?.mode !== 'a') return File.#open(source, options);
    const storage = storageIn(source);
    if (storage && (await storage.size()) === 0) return File.create(storage, creating(options));
    for (let left = TRIES; ; left--) {
      try {
        return await File.#open(source, options);
      } catch (error) {
        if (!isMissing(source, error, left)) throw error;
      }
      try {
        return await File.create(source, creating(options));
      } catch (error) {
        if (!isH5LogError(error, 'EXISTS')) throw error;
      }
    }
  }

  static async #open(source: Openable, options: OpenOptions): Promise<File> {
    const opening = beginOpen(source, options);
    if (!import.meta.page && opening.isShared) return File.#openNow(opening, options);
    const session = await File.#begun(opening, Session.open(opening.session));
    await letGrow(session.storage, session.log?.main.lastRecord());
    return File.#of({ session, comm: opening.given }, options);
  }

  static openSync(source: string | URL | ArrayBuffer | Uint8Array | ByteStorage, options?: OpenOptions): File;
  static openSync(path: string | URL, options: CreateOptions & OpenOptions & { mode: 'a' }): File;
  static openSync(source: Exclude<Openable, Blob>, options: CreateOptions & OpenOptions = {}): File {
    if (options?.mode !== 'a') return File.#openSync(source, options);
    const storage = storageIn(source);
    if (storage?.blocking?.size() === 0) return File.createSync(storage, creating(options));
    for (let left = TRIES; ; left--) {
      try {
        return File.#openSync(source, options);
      } catch (error) {
        if (!isMissing(source, error, left)) throw error;
      }
      try {
        return File.createSync(source, creating(options));
      } catch (error) {
        if (!isH5LogError(error, 'EXISTS')) throw error;
      }
    }
  }

  static #openSync(source: Exclude<Openable, Blob>, options: OpenOptions): File {
    return File.#openNow(beginOpen(source, options), options);
  }

  static #openNow(opening: Opening, options: OpenOptions): File {
    const session = File.#begunNow(opening, Session.open(opening.session));
    return File.#of({ session, comm: opening.given }, options);
  }

  static async #begun(opening: Opening, session: Io<Session>): Promise<Session> {
    try {
      if (import.meta.page && opening.isWriting) await loadWriting();
      return await driveAsync(opening.storage, session);
    } catch (error) {
      throw opening.failed(error);
    }
  }

  static #begunNow(opening: Opening, session: Io<Session>): Session {
    try {
      if (import.meta.page && opening.isWriting) mustHaveWriting();
      return driveSync(opening.storage, session);
    } catch (error) {
      throw opening.failed(error);
    }
  }

  get connector(): 'log' | 'native' {
    return this.#session.connector;
  }

  get mode(): 'r' | 'r+' {
    return this.#session.mode;
  }

  get closed(): boolean {
    return this.#session.closed;
  }

  /** The number of the last commit. */
  get sequence(): number {
    return this.#session.last.sequence;
  }

  /** What was posted and not flushed yet. */
  get pending(): { readonly requests: number; readonly bytes: number } {
    return this.#session.waiting();
  }

  /**
   * What the storage did since the file was opened, subfiles and other files included: requests, the bytes of these, and reads that were
   * answered from memory.
   */
  storageStatistics(): { readonly requests: number; readonly bytes: number; readonly cached: number } {
    const { structure, log, storages } = this.#session;
    const total = { requests: 0, bytes: 0, cached: structure.loader.file.hits };
    for (const storage of storages) {
      const { requests, bytes, cached } = statisticsOf(storage);
      total.requests += requests;
      total.bytes += bytes;
      total.cached += cached;
    }
    for (const store of log?.stores ?? []) if (store.isOpen) total.cached += store.data.file.hits;
    return total;
  }

  /** Every commit that the file knows of, oldest first. */
  commits(): readonly Commit[] {
    return this.#session.commits();
  }

  /** For readers: moves to the newest commit; false if there is none newer. Objects show the new state. */
  async refresh(): Promise<boolean> {
    if (this.mode === 'r+') return false;
    if (!import.meta.page && this.#isShared) return this.refreshSync();
    const { storage } = this.#session;
    const renewed = await renewStorage(storage);
    return driveAsync(renewed?.storage ?? storage, this.#session.refresh(renewed));
  }

  refreshSync(): boolean {
    if (this.mode === 'r+') return false;
    return driveSync(this.#session.storage, this.#session.refresh());
  }

  /** Commits as another process makes them: the file is looked at again and again, every `interval` milliseconds. */
  async *watch(options: { signal?: AbortSignal; interval?: number } = {}): AsyncIterableIterator<Commit> {
    checkNames('watch', options, { signal: true, interval: true });
    const { signal, interval = 100 } = options;
    let seen = this.sequence;
    // On several ranks it ends for all of them when one has had enough: the others would wait for it.
    while (!this.#session.stopsOnAnyRank(this.closed || signal?.aborted === true)) {
      if (await this.refresh()) {
        for (const commit of this.commits()) if (commit.sequence > seen) yield commit;
        seen = this.sequence;
      } else await pause(interval, signal);
    }
  }

  /** Commits everything that changed so far. What changes while it is written belongs to the next commit. */
  async flush(): Promise<Commit> {
    // Several ranks do all of it now: what they do together cannot wait for its turn in an event loop.
    if (!import.meta.page && this.#isShared) return this.flushSync();
    const job = this.#planned('flush', this.#session.publishing.now());
    // With nothing new, what is still being written is what this flush covers.
    const commit = job ? this.#jobs.add(job) : (this.#jobs.last ?? this.#session.last);
    await commit;
    this.#publishLater();
    return commit;
  }

  /** With an interval: makes others see what is committed in time, also if nothing follows. */
  #publishLater(): void {
    const { publishing, isPublished } = this.#session;
    const { due } = publishing;
    if (due === null || isPublished || this.#timer !== null) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        // What was not flushed must not be committed. If it cannot be done now, the next flush does it, whose error the caller gets.
        if (!this.closed && !this.#session.hasChanges) this.publish().catch(() => {});
      },
      Math.min(due, LONGEST_TIMER),
    );
    // It must not keep a process alive.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  /** The same, done when it returns. Takes over flushes that are still being written. */
  flushSync(): Commit {
    const commit = this.#commitNow('flush', this.#session.publishing.now());
    if (!this.#isShared) this.#publishLater();
    return commit;
  }

  #commitNow(kind: 'flush' | 'close' | 'publish', publish: PublishRequest | null): Commit {
    this.#session.writable();
    this.#jobs.finishSync();
    const isShared = !import.meta.page && this.#isShared;
    const job = this.#planned(kind, isShared ? null : publish);
    const commit = job ? this.#jobs.runSync(job) : this.#session.last;
    if (!import.meta.page && publish && isShared) {
      this.#session.publishTogether(publish);
      return this.#session.last;
    }
    return commit;
  }

  /** The commit of everything that changed so far; undefined if nothing did. */
  #planned(kind: 'flush' | 'close' | 'publish', publish: PublishRequest | null): Job<Commit> | undefined {
    // What others are to see fits together. A close has done more for that.
    if (publish && kind !== 'close') this.#scales?.grow();
    else this.#scales?.notice();
    return this.#session.commit(kind, publish);
  }

  /** The number of the commit that every HDF5 program sees; null: nothing was ever published. */
  get published(): number | null {
    const { log, last } = this.#session;
    return log ? log.published : last.sequence;
  }

  /** Makes every HDF5 program see what is committed; flushes first. */
  async publish(): Promise<PublishResult> {
    if (!import.meta.page && this.#isShared) return this.publishSync();
    const request: PublishRequest = { auto: false };
    const job = this.#planned('publish', request);
    await (job ? this.#jobs.add(job) : this.#jobs.last);
    return this.#published(request);
  }

  publishSync(): PublishResult {
    const request: PublishRequest = { auto: false };
    this.#commitNow('publish', request);
    return this.#published(request);
  }

  #published({ outcome }: PublishRequest): PublishResult {
    const refused = Array.from(this.#session.log?.refused ?? [], ([dataset, reason]) => ({ dataset, reason }));
    const { made, without } = outcome ?? { made: [], without: refused };
    return {
      sequence: this.published ?? this.sequence,
      datasets: (made ?? []).map(({ dataset: { path }, way, moved }) => ({ path, way, moved })),
      without: without.map(({ dataset: { path }, reason }) => ({ path, reason })),
    };
  }

  /** Commits what is pending, cuts the file to size and gives the lock up. Objects of the file can still be read. */
  async close(): Promise<void> {
    if (this.#released) return;
    if (!import.meta.page && this.#isShared) {
      this.closeSync();
      return;
    }
    this.#closing ??= this.#finish().finally(() => {
      this.#closing = null;
    });
    await this.#closing;
  }

  #warnUnpublished(): void {
    const { name } = this.#session.storage;
    warn(
      `${name} stays a log: to publish it by itself would have cost too much. Other programs see it after: npx h5log publish ${name}`,
      'H5LOG_UNPUBLISHED',
    );
  }

  async #finish(): Promise<void> {
    if (this.mode === 'r+') {
      this.#scales?.finish();
      await this.#flushAll();
    }
    if (this.#released) return;
    try {
      await driveAsync(this.#session.storage, this.#session.finish());
    } catch (error) {
      if (this.#released) return;
      this.#session.closed = false;
      throw error;
    }
    if (!this.#released) this.#release();
    for (const storage of this.#session.storages) await storage.close();
  }

  /** Until nothing is left, also of what was posted meanwhile. Then, in the same breath, changes are refused. */
  async #flushAll(): Promise<void> {
    let request = this.#session.closing();
    for (let isFirst = true; ; isFirst = false) {
      const job = this.#session.commit('close', request);
      const last = job ? this.#jobs.add(job) : this.#jobs.last;
      if (!last && !isFirst) break;
      await last;
      if (this.#released) return;
      // What would cost too much is not tried again.
      if (request?.outcome?.made === null) this.#warnUnpublished();
      request = request?.outcome?.made === null ? null : this.#session.closing();
    }
    this.#session.closed = true;
  }

  closeSync(): void {
    this.#closeSync(true);
  }

  #closeSync(publishes: boolean): void {
    if (this.#released) return;
    if (this.mode === 'r+' && !this.#session.closed) {
      this.#session.onOneRank('close', () => this.#scales?.finish());
      const request = publishes ? this.#session.closing() : null;
      this.#commitNow('close', request);
      if (request?.outcome?.made === null) this.#warnUnpublished();
    } else this.#session.agree('close');
    // When one rank's call returns the file has its size and the lock is gone, whichever rank had it.
    this.#session.collective(() => this.#end());
    this.#session.leave();
  }

  #end(): void {
    driveSync(this.#session.storage, this.#session.finish());
    this.#release();
    for (const storage of this.#session.storages) storage.blocking?.close();
  }

  /** Whether other ranks have the file open as well, and calls are made together. */
  get #isShared(): boolean {
    return this.#session.comm.size > 1;
  }

  #abandon(): void {
    this.#session.giveUp();
    this.#release();
  }

  /**
   * Closes without committing what is pending: for a file that cannot be flushed any more, for example because another program
   * changed it. Flushes under way fail.
   */
  discard(): void {
    if (this.#released) return;
    this.#jobs.cancel(new H5LogError('CLOSED', `${this.#session.storage.name} was closed without a flush`));
    this.#abandon();
    for (const storage of this.#session.storages) storage.blocking?.close();
    // Other ranks that still call something learn that this one is gone.
    this.#session.leave();
  }

  #release(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#unwatch?.();
    this.#released = true;
    this.#session.closed = true;
    this.#session.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.dispose](): void {
    this.closeSync();
  }
}

printAs(File.prototype, 'File', (file) => {
  const name = `File ${fileOf(handleOf(file))}`;
  return lineOf(name, () =>
    file.closed ? ' (closed)' : ` (${file.mode}, ${membersIn(file)}, commit ${file.sequence})`,
  );
});

/** How often mode 'a' opens and creates in turn, while others create and delete the file. */
const TRIES = 3;

/** Whether a file that could not be opened is to be created. */
function isMissing(source: unknown, error: unknown, left: number): source is string | URL {
  return left > 0 && isPath(source) && isH5LogError(error, 'NOT_FOUND');
}

/** A storage of the user's, as opposed to a path, a Blob or bytes. */
function storageIn(source: Openable): ByteStorage | undefined {
  return !isPath(source) && 'size' in source && typeof source.size === 'function' ? (source as ByteStorage) : undefined;
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
