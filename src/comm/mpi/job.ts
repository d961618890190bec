import { fstatSync, writeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { H5LogError } from '../../base/errors.ts';
import type { Binding, HandleCell } from './binding.ts';

/** This process as a rank of a running MPI job. */
export class Job {
  readonly binding: Binding;
  readonly rank: number;
  readonly size: number;
  ended = false;
  readonly #flag = new Int32Array(new ArrayBuffer(4));
  readonly #sleep = new Int32Array(new SharedArrayBuffer(4));
  readonly #crowded: boolean;

  constructor(binding: Binding, rank: number, size: number) {
    this.binding = binding;
    this.rank = rank;
    this.size = size;
    // With more ranks than cores, a rank that spins may keep the very rank from running that it waits for. Ranks on other
    // nodes are counted too, which costs a microsecond.
    this.#crowded = size > availableParallelism();
  }

  /** The name of this rank in messages. */
  get name(): string {
    return `rank ${this.rank} of ${this.size}`;
  }

  /** Throws COMM unless an MPI call returned success. */
  check(code: number, call: string): void {
    if (code === 0) return;
    const text = `${this.name}: ${call} failed: ${this.binding.errorText(code)}`;
    throw new H5LogError('COMM', text, { rank: this.rank });
  }

  /**
   * Waits for requests that transfer `bytes` bytes: spins, then yields the core, then sleeps in growing slices. `check` is called
   * regularly with the milliseconds waited so far, for the first time after `firstCheck` milliseconds.
   */
  wait(requests: HandleCell, count: number, bytes: number, firstCheck: number, check: (waited: number) => void): void {
    if (!this.#crowded) {
      // Ranks that arrive at about the same time need no system call.
      for (let tests = 0; tests < 24; tests++) if (this.isDone(requests, count)) return;
    }
    const start = performance.now();
    // Large messages make progress only while somebody polls: no sleep before they could have passed at 50 MB/s.
    const awake = start + 1 + bytes / 50_000;
    let nextCheck = start + firstCheck;
    let slice = 0.05;
    for (;;) {
      if (this.isDone(requests, count)) return;
      const now = performance.now();
      if (now >= nextCheck) {
        check(now - start);
        nextCheck = now + 10;
      }
      if (now < awake) {
        this.binding.yieldCore();
      } else {
        this.pause(slice);
        // At first the others may arrive at any moment; after 50 ms saving the core matters more.
        slice = Math.min(now - start < 50 ? 0.2 : 1, slice * 1.25);
      }
    }
  }

  /** Sleeps and blocks the thread. */
  pause(milliseconds: number): void {
    Atomics.wait(this.#sleep, 0, 0, milliseconds);
  }

  /** Whether all of these requests are complete. */
  isDone(requests: HandleCell, count: number): boolean {
    const { calls, constants } = this.binding;
    const code = calls.Testall(count, requests, this.#flag, constants.STATUSES_IGNORE);
    if (code !== 0) this.check(code, 'MPI_Testall');
    return this.#flag[0] !== 0;
  }

  /** Prints a line and aborts all ranks. */
  fail(text: string): never {
    print(`${text}\n`);
    return this.abort(1);
  }

  /**
   * Waits until the launcher has read what this rank printed. MPICH's launcher ends at the MPI_Abort of any rank without reading
   * the pipes again: in 7 of 400 jobs the reason was lost.
   */
  drainOutput(): void {
    const until = performance.now() + 1000;
    for (const output of [1, 2]) {
      if (!isPipe(output)) continue;
      // Where the system does not tell, waits for a moment.
      if (this.binding.unread(output) === undefined) this.pause(50);
      while (this.binding.unread(output) && performance.now() < until) this.pause(1);
    }
  }

  /** Aborts all ranks; the exit code of the job is not 0. */
  abort(code: number): never {
    this.drainOutput();
    // Exit codes have 8 bits: 256 would count as success.
    this.binding.calls.Abort(this.binding.constants.COMM_WORLD, (code & 255) === 0 ? 1 : code & 255);
    process.kill(process.pid, 'SIGKILL');
    throw new H5LogError('COMM', `aborted with code ${code}`, { rank: this.rank });
  }
}

function isPipe(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isFIFO();
  } catch {
    return false;
  }
}

/** Writes all of `text` to standard error before it returns: process.stderr may buffer, and the process may end before it flushes. */
export function print(text: string): void {
  let rest: Uint8Array = new TextEncoder().encode(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (error) {
      // EAGAIN is a full pipe; after any other error nobody reads standard error.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
