import { driveAsync, driveSync, type Io, type Operation } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';

/** Tools work in at least this much memory, and in this much unless it is said. */
export const LEAST_MEMORY = 2 ** 20;
export const MEMORY = 256 * 2 ** 20;

/** The kind of an option `memory`; see base/options.ts. */
export const MEMORY_OPTION = [
  `a number of at least ${LEAST_MEMORY} bytes`,
  (value: unknown): boolean => typeof value === 'number' && value >= LEAST_MEMORY,
] as const;

/** A tool returns to the event loop this often, in milliseconds, so that timers and signals are served. */
const PAUSE_EVERY = 50;

/**
 * How every tool runs the code that needs bytes. Reads block where the storage can: most are small, and blocking is faster. A
 * write is only begun and the code goes on: the next operation other than a read waits for it and reports its error. At most one
 * write is under way, so two buffers in turn are enough for whoever writes.
 */
export class Runner {
  readonly storage: ByteStorage;
  readonly #signal: AbortSignal | undefined;
  #since = performance.now();
  #writing: Promise<unknown> | null = null;

  /** `signal` is looked at before every operation, and at the end. */
  constructor(storage: ByteStorage, signal?: AbortSignal) {
    this.storage = storage;
    this.#signal = signal;
  }

  /** Runs code to its end. The last write may still be under way then; when the code fails it is not. */
  async run<T>(io: Io<T>): Promise<T> {
    try {
      return await this.#run(io);
    } catch (error) {
      await this.settle();
      throw error;
    }
  }

  async #run<T>(io: Io<T>): Promise<T> {
    let step = io.next();
    while (!step.done) {
      let answer: number;
      try {
        if (performance.now() - this.#since > PAUSE_EVERY) await this.#pause();
        this.#signal?.throwIfAborted();
        const given = this.#begin(step.value);
        answer = typeof given === 'number' ? given : await given;
      } catch (error) {
        step = io.throw(error);
        continue;
      }
      step = io.next(answer);
    }
    this.#signal?.throwIfAborted();
    return step.value;
  }

  /** Waits until everything is written. */
  async finish(): Promise<void> {
    const writing = this.#writing;
    this.#writing = null;
    await writing;
  }

  /** Waits for the write under way, whatever becomes of it, so that the storage can be closed. */
  async settle(): Promise<void> {
    await this.finish().catch(() => {});
  }

  #begin(operation: Operation): number | Promise<number> {
    const { op, on } = operation;
    if (op === 'write') return this.#write(operation);
    if (this.#writing && op !== 'read') return this.#afterWriting(operation);
    // A codec's promise is waited for, whatever the storage is like.
    if (op !== 'wait' && (on ?? this.storage).blocking) return driveSync(this.storage, only(operation));
    return driveAsync(this.storage, only(operation), this.#signal);
  }

  async #write(operation: Operation): Promise<number> {
    await this.finish();
    if (operation.op === 'write' && operation.parts.length === 0) return 0;
    this.#writing = driveAsync(this.storage, only(operation));
    // Whoever waits for it gets the error; until then it must not count as unhandled.
    this.#writing.catch(() => {});
    return 0;
  }

  async #afterWriting(operation: Operation): Promise<number> {
    await this.finish();
    return this.#begin(operation);
  }

  async #pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve));
    this.#since = performance.now();
  }
}

function* only(operation: Operation): Io<number> {
  return yield operation;
}
