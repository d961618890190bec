import { driveAsync, driveSync, type Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';

/** So long the work may keep everything else in the process waiting, in milliseconds. */
const BREATH = 50;

/**
 * Runs the parts of a long piece of work: blocking where that is possible, because most of them are small reads, but with pauses
 * in which timers and signals come through.
 */
export class Steps {
  readonly #signal: AbortSignal | undefined;
  #since = performance.now();

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  async run<T>(storage: ByteStorage, io: Io<T>): Promise<T> {
    if (performance.now() - this.#since > BREATH) {
      await new Promise((resolve) => setTimeout(resolve));
      this.#since = performance.now();
    }
    this.#signal?.throwIfAborted();
    return storage.blocking ? driveSync(storage, io) : driveAsync(storage, io, this.#signal);
  }
}

/** Runs what must not be stopped half-way. */
export function runWhole<T>(storage: ByteStorage, io: Io<T>): Promise<T> {
  return new Steps(undefined).run(storage, io);
}
