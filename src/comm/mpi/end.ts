import { inspect } from 'node:util';
import { isH5LogError } from '../../base/errors.ts';
import type { Handle, HandleCell } from './binding.ts';
import { type Job, print } from './job.ts';

/**
 * Installs what happens when this process ends. With exit code 0: tells ranks that might wait for it, then calls MPI_Finalize once
 * all ranks end. With any other code: MPI_Abort, so that no rank waits for this one, but only after the others had time to end and
 * to report their errors. After an uncaught exception: MPI_Abort. There is no handler for signals: it could not run while the
 * thread is inside MPI. `farewell` is a communicator that is used for nothing else.
 */
export function endWith(job: Job, open: ReadonlySet<Member>, farewell: Handle, finalize: boolean): void {
  const atExit = (given: number) => {
    if (job.ended) return;
    // Exit hooks that ran before this one may have changed the code.
    const code = Number(process.exitCode ?? given);
    job.drainOutput();
    if (code !== 0) {
      waitForOthers(job, farewell);
      job.abort(code);
    }
    leave(job, open, farewell);
    if (finalize) job.binding.calls.Finalize();
  };
  process.on('exit', atExit);
  // This must be the last exit hook: others may still use MPI or change the exit code.
  process.on('newListener', (event, listener) => {
    if (event !== 'exit' || listener === atExit) return;
    queueMicrotask(() => {
      process.off('exit', atExit);
      process.on('exit', atExit);
    });
  });
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    // A program that handles its uncaught exceptions continues.
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
    if (job.ended) return;
    // An error that all ranks throw is reported by the rank it comes from, whose MPI_Abort ends the others during this pause.
    if (isH5LogError(error) && error.rank !== undefined && error.rank !== job.rank) job.pause(3000);
    print(`${job.name}: uncaught ${inspect(error)}\n`);
    job.abort(1);
  });
}

/** Milliseconds that a failed rank waits for the others to end. Less than ranks of the command line wait for the first one to report. */
const END_TIMEOUT = 2000;

/** Waits until all ranks end, or for END_TIMEOUT. */
function waitForOthers(job: Job, farewell: Handle): void {
  const request = job.binding.cells(1);
  if (job.binding.calls.Ibarrier(farewell, request) !== 0) return;
  const until = performance.now() + END_TIMEOUT;
  while (!job.isDone(request, 1) && performance.now() < until) job.pause(1);
}

/** Tells the other ranks that this one ends, and waits until all of them end. */
function leave(job: Job, open: ReadonlySet<Member>, farewell: Handle): void {
  job.ended = true;
  for (const member of open) member.departures.leave(member);
  const request = job.binding.cells(1);
  job.check(job.binding.calls.Ibarrier(farewell, request), 'MPI_Ibarrier');
  job.wait(request, 1, 0, 50, () => {
    for (const member of open) member.departures.passOn(member);
  });
  // All ranks have ended, so nobody needs the messages. They are received so that MPI_Finalize finds none pending.
  for (let tries = 0; tries < 100; tries++) {
    for (const member of open) member.departures.listen(member);
    if ([...open].every(({ departures }) => departures.settled)) return;
    job.binding.yieldCore();
  }
}

/** Makes standard output and error blocking: output still queued for a full pipe would be lost at MPI_Abort or process.exit. */
export function makeOutputBlocking(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const { _handle } = stream as { _handle?: { setBlocking?(blocking: boolean): void } };
    _handle?.setBlocking?.(true);
  }
}

/** What the end of the process needs to know about a communicator. */
export interface Member {
  readonly handle: Handle;
  readonly rank: number;
  readonly size: number;
  /** Number of collectives that this rank has begun on it. */
  readonly begun: number;
  readonly departures: Departures;
}

const tag = 1;

/**
 * What a rank knows about ranks that have left a communicator. A rank that ends tells the next rank how many collectives it took
 * part in; a rank that has ended, or is about to, passes lower numbers on. So in a normal end every rank sends one message; and if
 * ranks wait in a collective that another rank never joined, one of them finds out.
 */
export class Departures {
  /** The lowest number of collectives of any rank that is known to have left; `rank` is its rank in the job. */
  count = Number.POSITIVE_INFINITY;
  rank = -1;
  readonly #job: Job;
  #told = Number.POSITIVE_INFINITY;
  // Messages in flight, and their buffers.
  readonly #sent: { request: HandleCell; message: Float64Array }[] = [];
  readonly #flag = new Int32Array(new ArrayBuffer(4));

  constructor(job: Job) {
    this.#job = job;
  }

  /** Receives the messages of the previous rank. */
  listen({ handle, rank, size }: Member): void {
    if (size === 1) return;
    const job = this.#job;
    const { calls, constants, cells } = job.binding;
    const from = (rank + size - 1) % size;
    for (;;) {
      job.check(calls.Iprobe(from, tag, handle, this.#flag, constants.STATUS_IGNORE), 'MPI_Iprobe');
      if (this.#flag[0] === 0) return;
      const message = new Float64Array(new ArrayBuffer(16));
      const request = cells(1);
      job.check(calls.Irecv(message, 2, constants.DOUBLE, from, tag, handle, request), 'MPI_Irecv');
      // The probe found the message, so it completes at once.
      while (!job.isDone(request, 1)) job.binding.yieldCore();
      this.#note(message[0] ?? 0, message[1] ?? 0);
    }
  }

  /** This rank leaves the communicator. */
  leave(member: Member): void {
    this.#note(member.begun, this.#job.rank);
    this.passOn(member);
  }

  /** Tells the next rank, unless it has been told. */
  passOn(member: Member): void {
    this.listen(member);
    const { handle, rank, size } = member;
    if (size === 1 || this.count >= this.#told) return;
    this.#told = this.count;
    const { calls, constants, cells } = this.#job.binding;
    const message = new Float64Array(new ArrayBuffer(16));
    message.set([this.count, this.rank]);
    const request = cells(1);
    this.#sent.push({ request, message });
    const code = calls.Isend(message, 2, constants.DOUBLE, (rank + 1) % size, tag, handle, request);
    this.#job.check(code, 'MPI_Isend');
  }

  /** Whether all messages have been sent. */
  get settled(): boolean {
    return this.#sent.every(({ request }) => this.#job.isDone(request, 1));
  }

  #note(count: number, rank: number): void {
    if (count >= this.count) return;
    this.count = count;
    this.rank = rank;
  }
}
