import * as fs from 'node:fs';
import { promisify } from 'node:util';
import { closedError, storageFailure } from '../failures.ts';

const close = promisify(fs.close);

/**
 * A file descriptor that is never closed under an operation in flight: the system gives the number to the next file opened,
 * and a late write would land there.
 */
export class Handle {
  readonly name: string;
  readonly fd: number;
  #running = 0;
  #idle: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(name: string, fd: number) {
    this.name = name;
    this.fd = fd;
  }

  /** Runs an asynchronous operation, which keeps the descriptor open until it ends. */
  async run<T>(doing: string, offset: number | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw closedError(this.name);
    this.#running++;
    try {
      return await work();
    } catch (cause) {
      throw storageFailure(this.name, doing, cause, offset);
    } finally {
      if (--this.#running === 0) this.#idle?.();
    }
  }

  runSync<T>(doing: string, offset: number | undefined, work: () => T): T {
    if (this.#closing) throw closedError(this.name);
    try {
      return work();
    } catch (cause) {
      throw storageFailure(this.name, doing, cause, offset);
    }
  }

  /** Refuses new operations at once and closes when the last one in flight has ended. Closing again gives the same end. */
  close(): Promise<void> {
    this.#closing ??= this.#closeWhenIdle();
    return this.#closing;
  }

  /** With operations in flight the descriptor is closed behind the last one, since a blocking call cannot wait for them. */
  closeSync(): void {
    if (this.#closing) return;
    if (this.#running > 0) {
      // Whoever calls close() later still gets the error; nobody doing so must not end the process.
      this.close().catch(() => undefined);
      return;
    }
    this.#closing = Promise.resolve();
    try {
      fs.closeSync(this.fd);
    } catch (cause) {
      throw storageFailure(this.name, 'close', cause);
    }
  }

  async #closeWhenIdle(): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    try {
      await close(this.fd);
    } catch (cause) {
      throw storageFailure(this.name, 'close', cause);
    }
  }
}
