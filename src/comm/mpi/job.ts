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
    // Of more ranks than cores, one that spins keeps the very rank from running that it waits for. Ranks of other nodes
    // are counted as well, which costs them a microsecond.
    this.#crowded = size > availableParallelism();
  }

  /** As error messages name it. */
  get name(): string {
    return `rank ${this.rank} of ${this.size}`;
  }

  /** Throws what an MPI call answered, unless that was success. */
  check(code: number, call: string): void {
    if (code === 0) return;
    const text = `${this.name}: ${call} failed: ${this.binding.errorText(code)}`;
    throw new H5LogError('COMM', text, { rank: this.rank });
  }

  /**
   * Waits for requests that move `bytes` bytes: spins, then yields the core, then sleeps in growing slices. `look` is called now
   * and then with the milliseconds waited so far, for the first time after `patience`.
   */
  wait(requests: HandleCell, count: number, bytes: number, patience: number, look: (waited: number) => void): void {
    if (!this.#crowded) {
      // Ranks that arrive together meet here, without a system call.
      for (let tests = 0; tests < 24; tests++) if (this.isDone(requests, count)) return;
    }
    const start = performance.now();
    // Large messages move only while somebody polls: no sleep before they could have passed at 50 MB/s.
    const awake = start + 1 + bytes / 50_000;
    let nextLook = start + patience;
    let slice = 0.05;
    for (;;) {
      if (this.isDone(requests, count)) return;
      const now = performance.now();
      if (now >= nextLook) {
        look(now - start);
        nextLook = now + 10;
      }
      if (now < awake) {
        this.binding.yieldCore();
      } else {
        this.pause(slice);
        // In the first moments somebody may be coming; later on nobody should burn a core.
        slice = Math.min(now - start < 50 ? 0.2 : 1, slice * 1.25);
      }
    }
  }

  /** Sleeps, outside of any event loop. */
  pause(milliseconds: number): void {
    Atomics.wait(this.#sleep, 0, 0, milliseconds);
  }

  /** Whether all of these requests have ended. */
  isDone(requests: HandleCell, count: number): boolean {
    const { calls, constants } = this.binding;
    const code = calls.Testall(count, requests, this.#flag, constants.STATUSES_IGNORE);
    if (code !== 0) this.check(code, 'MPI_Testall');
    return this.#flag[0] !== 0;
  }

  /** Prints a line and ends all ranks. */
  fail(text: string): never {
    print(`${text}\n`);
    return this.abort(1);
  }

  /**
   * Waits until the launcher has taken what this rank printed: MPICH's ends at MPI_Abort, of whichever rank, without looking
   * into the pipes again, and in 7 of 400 jobs nobody learned why.
   */
  beHeard(): void {
    const until = performance.now() + 1000;
    for (const output of [1, 2]) {
      if (!isPipe(output)) continue;
      // Where the system does not tell, it gets a moment.
      if (this.binding.unread(output) === undefined) this.pause(50);
      while (this.binding.unread(output) && performance.now() < until) this.pause(1);
    }
  }

  /** Ends all ranks; the job's exit code is not 0. */
  abort(code: number): never {
    this.beHeard();
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

/** Writes to standard error, whole, before it returns: process.stderr may keep some of it back, and there may be no later. */
export function print(text: string): void {
  let rest: Uint8Array = new TextEncoder().encode(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (error) {
      // A full pipe; anything else means that nobody can be told.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
