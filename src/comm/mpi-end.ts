import { inspect } from 'node:util';
import { isH5LogError } from '../errors.ts';
import type { Handle } from './mpi-binding.ts';
import { goodbyeTag, type Job, type Member, print } from './mpi-job.ts';

/**
 * What happens when this process ends. With exit code 0: a goodbye to those who might wait for it, then MPI_Finalize once all ranks
 * are there. With any other, or after an uncaught exception: MPI_Abort, so that no rank waits for this one. There is
 * no handler for signals: it could not run while the thread is inside MPI. `farewell` is a communicator for nothing else.
 */
export function endWith(job: Job, farewell: Handle, finalize: boolean): void {
  const atExit = (given: number) => {
    if (job.ended) return;
    // Hooks before this one may have changed it.
    const code = Number(process.exitCode ?? given);
    if (code !== 0) job.abort(code);
    leave(job, farewell);
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
    if (isH5LogError(error) && error.rank !== undefined && error.rank !== job.rank) job.pause(1000);
    print(`${job.name}: uncaught ${inspect(error)}\n`);
    job.abort(1);
  });
}

/** Tells everybody, waits for everybody. */
function leave(job: Job, farewell: Handle): void {
  job.ended = true;
  if (job.size === 1) return;
  const members = [...job.open].filter(({ size }) => size > 1);
  const { calls, cells } = job.binding;
  const requests = cells(members.length + 1);
  for (const [index, member] of members.entries()) send(job, member, requests.subarray(index + 1, index + 2));
  job.check(calls.Ibarrier(farewell, requests.subarray(0, 1)), 'MPI_Ibarrier');
  job.wait(requests.subarray(0, 1), 1, 0, Number.POSITIVE_INFINITY, () => {});
  // Nobody needs the goodbyes any more. They are received so that MPI_Finalize finds nothing left over.
  for (const member of members) if (job.predecessorHasLeft(member)) receive(job, member);
  for (let tries = 0; tries < 1000 && !job.isDone(requests, requests.length); tries++) job.binding.yieldCore();
}

const nothing = new Uint8Array(0);

function send(job: Job, { handle, rank, size }: Member, request: Int32Array | BigInt64Array): void {
  const { calls, constants } = job.binding;
  job.check(calls.Isend(nothing, 0, constants.BYTE, (rank + 1) % size, goodbyeTag, handle, request), 'MPI_Isend');
}

function receive(job: Job, { handle, rank, size }: Member): void {
  const { calls, constants, cells } = job.binding;
  const request = cells(1);
  const from = (rank + size - 1) % size;
  job.check(calls.Irecv(nothing, 0, constants.BYTE, from, goodbyeTag, handle, request), 'MPI_Irecv');
  for (let tries = 0; tries < 1000 && !job.isDone(request, 1); tries++) job.binding.yieldCore();
}

/** Makes standard output and error blocking: on a full pipe, what MPI_Abort or process.exit meet in a queue would be lost. */
export function writeAtOnce(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const { _handle } = stream as { _handle?: { setBlocking?(blocking: boolean): void } };
    _handle?.setBlocking?.(true);
  }
}
