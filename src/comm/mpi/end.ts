import { inspect } from 'node:util';
import { isH5LogError } from '../../base/errors.ts';
import type { Handle } from './binding.ts';
import type { Member } from './departures.ts';
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
