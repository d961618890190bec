import { H5LogError } from '../base/errors.ts';
import { driveAsync, driveSync, type Io } from './io.ts';
import type { ByteStorage } from './storage.ts';

/** Work on a storage that succeeds or fails as a whole, such as a flush. `start` may be called twice: see {@link JobQueue}. */
export interface Job<T> {
  start(): Io<T>;
  /** Called once, with the result. `overtaken`: a write of an earlier start may still be in flight. */
  done(value: T, overtaken: boolean): void;
  /** Called once, when this job or one before it failed. `overtaken`: an earlier start may still have a write under way. */
  failed(error: unknown, overtaken: boolean): void;
}

interface Entry<T> {
  readonly job: Job<T>;
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  settled: boolean;
  /** Resolves the promise of a job that was overtaken, once its last write is no longer in flight. */
  landed?: () => void;
}

/**
 * Runs jobs one after the other. A blocking call overtakes unfinished jobs: it starts the running one again from the
 * beginning, which writes the same bytes to the same offsets. The promise of that job resolves with the result of the second
 * run, but not before the write in flight has ended: until then the memory it reads from must not change. When a job fails,
 * those queued behind it fail too, because they were prepared on top of it.
 */
export class JobQueue<T> {
  readonly #storage: ByteStorage;
  #entries: Entry<T>[] = [];
  #running = false;
  /** The job that runs asynchronously at the moment. */
  #driven: Entry<T> | null = null;

  constructor(storage: ByteStorage) {
    this.#storage = storage;
  }

  get length(): number {
    return this.#entries.length;
  }

  add(job: Job<T>): Promise<T> {
    let resolve: Entry<T>['resolve'] = () => {};
    let reject: Entry<T>['reject'] = () => {};
    const promise = new Promise<T>((...both) => ([resolve, reject] = both));
    this.#entries.push({ job, promise, resolve, reject, settled: false });
    if (!this.#running) void this.#run();
    return promise;
  }

  /** Finishes all queued jobs, then the given one, without returning to the event loop. */
  runSync(job: Job<T>): T {
    this.finishSync();
    return this.#doSync(job);
  }

  /** Finishes the running job and all queued ones. The promises of jobs that fail here reject as well. */
  finishSync(): void {
    while (this.#entries.length > 0) {
      const entry = this.#entries[0] as Entry<T>;
      try {
        const value = driveSync(this.#storage, entry.job.start());
        this.#settle(entry, value);
      } catch (error) {
        this.#fail(error);
        throw error;
      }
    }
  }

  /** The promise of the last unfinished job; undefined if there is none. */
  get last(): Promise<T> | undefined {
    return this.#entries.at(-1)?.promise;
  }

  #doSync(job: Job<T>): T {
    let value: T;
    try {
      value = driveSync(this.#storage, job.start());
    } catch (error) {
      job.failed(error, false);
      throw error;
    }
    job.done(value, false);
    return value;
  }

  /** Rejects all queued and running jobs with `error`. */
  cancel(error: unknown): void {
    if (this.#entries.length > 0) this.#fail(error);
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#entries.length > 0) {
      const entry = this.#entries[0] as Entry<T>;
      try {
        this.#driven = entry;
        const value = await driveAsync(this.#storage, entry.job.start(), undefined, () => entry.settled);
        this.#driven = null;
        if (!entry.settled) this.#settle(entry, value as T);
      } catch (error) {
        this.#driven = null;
        if (!entry.settled) this.#fail(error);
      }
      // If the job was overtaken, its last asynchronous write has ended only now.
      entry.landed?.();
    }
    this.#running = false;
  }

  #settle(entry: Entry<T>, value: T): void {
    const overtaken = entry === this.#driven;
    entry.settled = true;
    this.#entries.shift();
    entry.job.done(value, overtaken);
    if (overtaken) entry.landed = () => entry.resolve(value);
    else entry.resolve(value);
  }

  #fail(error: unknown): void {
    const failed = this.#entries;
    this.#entries = [];
    const later = new H5LogError('STORAGE', 'the flush before this one failed', {
      file: this.#storage.name,
      cause: error,
    });
    // Undo the newest first: it was prepared on top of the others.
    for (let i = failed.length - 1; i >= 0; i--) {
      const entry = failed[i] as Entry<T>;
      entry.settled = true;
      entry.job.failed(i === 0 ? error : later, entry === this.#driven);
    }
    failed.forEach((entry, i) => {
      entry.reject(i === 0 ? error : later);
    });
  }
}
