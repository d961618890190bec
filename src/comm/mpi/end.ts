import { inspect } from 'node:util';
import { isH5LogError } from '../../base/errors.ts';
import type { Handle, HandleCell } from './binding.ts';
import { type Job, print } from './job.ts';

/**
 * What happens when this process ends. With exit code 0: a goodbye to those who might wait for it, then MPI_Finalize once all ranks
 * are there. With any other: MPI_Abort, so that no rank waits for this one, but not before the others had time to end as well, and to
 * say why. After an uncaught exception: MPI_Abort. There is no handler for signals: it could not run while the thread is inside MPI.
 * `farewell` is a communicator for nothing else.
 */
export function endWith(job: Job, open: ReadonlySet<Member>, farewell: Handle, finalize: boolean): void {
  const atExit = (given: number) => {
    if (job.ended) return;
    // Hooks before this one may have changed it.
    const code = Number(process.exitCode ?? given);
    job.beHeard();
    if (code !== 0) {
      waitForOthers(job, farewell);
      job.abort(code);
    }
    leave(job, open, farewell);
    if (finalize) job.binding.calls.Finalize();
  };
  process.on('exit', atExit);
  // It has to be the last of the exit hooks: others may still use MPI, or change the exit code.
  process.on('newListener', (event, listener) => {
    if (event !== 'exit' || listener === atExit) return;
    queueMicrotask(() => {
      process.off('exit', atExit);
      process.on('exit', atExit);
    });
  });
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    // A program that handles its exceptions goes on.
    if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
    if (job.ended) return;
    // An error that all ranks agreed on is told by the rank it comes from; it ends the others before their time is up.
    if (isH5LogError(error) && error.rank !== undefined && error.rank !== job.rank) job.pause(3000);
    print(`${job.name}: uncaught ${inspect(error)}\n`);
    job.abort(1);
  });
}

/** Milliseconds for the others to end with this rank; less than the ranks of a command wait for the first one to speak. */
const PATIENCE = 2000;

/** Waits until all ranks leave, those without a fault included, or patience is over. */
function waitForOthers(job: Job, farewell: Handle): void {
  const request = job.binding.cells(1);
  if (job.binding.calls.Ibarrier(farewell, request) !== 0) return;
  const until = performance.now() + PATIENCE;
  while (!job.isDone(request, 1) && performance.now() < until) job.pause(1);
}

/** Tells the others, and waits until all of them leave as well. */
function leave(job: Job, open: ReadonlySet<Member>, farewell: Handle): void {
  job.ended = true;
  for (const member of open) member.departures.leave(member);
  const request = job.binding.cells(1);
  job.check(job.binding.calls.Ibarrier(farewell, request), 'MPI_Ibarrier');
  job.wait(request, 1, 0, 50, () => {
    for (const member of open) member.departures.passOn(member);
  });
  // All have left, so nobody needs the messages any more. They are received so that MPI_Finalize finds nothing left over.
  for (let tries = 0; tries < 100; tries++) {
    for (const member of open) member.departures.listen(member);
    if ([...open].every(({ departures }) => departures.settled)) return;
    job.binding.yieldCore();
  }
}

/** Makes standard output and error blocking: on a full pipe, what MPI_Abort or process.exit meet in a queue would be lost. */
export function writeAtOnce(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const { _handle } = stream as { _handle?: { setBlocking?(blocking: boolean): void } };
    _handle?.setBlocking?.(true);
  }
}

/** A communicator, as far as the end of the process is concerned. */
export interface Member {
  readonly handle: Handle;
  readonly rank: number;
  readonly size: number;
  /** How many collectives this rank has begun on it. */
  readonly begun: number;
  readonly departures: Departures;
}

const tag = 1;

/**
 * What is known of ranks that have left a communicator. A rank that ends tells the next one in how many collectives it took part; who has
 * left, or is about to, passes on what is lower than what it has told. So in a normal end every rank sends one message; and where
 * a rank waits in a collective in which another one never took part, one of those who wait comes to know.
 */
export class Departures {
  /** The fewest collectives of any rank that is known to have left, and which rank that is in the job. */
  count = Number.POSITIVE_INFINITY;
  rank = -1;
  readonly #job: Job;
  #told = Number.POSITIVE_INFINITY;
  // Messages on their way, and the memory that they are in.
  readonly #sent: { request: HandleCell; message: Float64Array }[] = [];
  readonly #flag = new Int32Array(new ArrayBuffer(4));

  constructor(job: Job) {
    this.#job = job;
  }

  /** Hears what the rank before has told. */
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
      // It has arrived already.
      while (!job.isDone(request, 1)) job.binding.yieldCore();
      this.#note(message[0] ?? 0, message[1] ?? 0);
    }
  }

  /** This rank leaves. */
  leave(member: Member): void {
    this.#note(member.begun, this.#job.rank);
    this.passOn(member);
  }

  /** Tells the next rank, unless it knows. */
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

  /** Whether everything that was told has been sent. */
  get settled(): boolean {
    return this.#sent.every(({ request }) => this.#job.isDone(request, 1));
  }

  #note(count: number, rank: number): void {
    if (count >= this.count) return;
    this.count = count;
    this.rank = rank;
  }
}
