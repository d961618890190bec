// The jobs that write commits. Most are planned before they are made; those that need what the file holds are planned when they run.

import type { Communicator } from '../comm/communicator.ts';
import type { Committer } from '../hdf5/write/commit.ts';
import { type Flushed, flushDone, flushedAlone, flushFailed, writeFlush } from '../log/flush/flush.ts';
import {
  type PlannedFlush,
  planOrdinary,
  postsDone,
  postsReturned,
  type TakenPosts,
  undoOrdinary,
} from '../log/flush/ordinary.ts';
import { type LatePlan, lateDone, planLate, returnFlush, type TakenFlush, writeLate } from '../log/flush/publish.ts';
import type { RankOptions } from '../log/flush/ranks.ts';
import type { FlushPlan } from '../log/flush/write.ts';
import type { Log } from '../log/log.ts';
import type { OrdinaryPosts } from '../log/post/writable.ts';
import type { Io } from '../storage/io.ts';
import type { Job } from '../storage/jobs.ts';
import type { Commit } from './file-session.ts';

/** The number of a commit, and what a session does when its job gets so far. */
export interface Milestones {
  readonly sequence: number;
  /** Called once, before the structure changes, or the job has failed; not for a job that is planned before it is made. */
  planned(): void;
  done(commit: Commit, isPublished: boolean): void;
  failed(): void;
}

/**
 * The commit of a log that is planned. Neither it nor what it calls makes a generator function of its own: V8 gives each such function a
 * hidden class that lives long, and keeps everything that the function knows.
 */
export class FlushJob implements Job<Commit> {
  readonly #log: Log;
  readonly #comm: Communicator;
  readonly #plan: FlushPlan;
  readonly #options: RankOptions;
  readonly #milestones: Milestones;
  #flushed: Flushed | null = null;

  constructor(log: Log, comm: Communicator, plan: FlushPlan, options: RankOptions, milestones: Milestones) {
    this.#log = log;
    this.#comm = comm;
    this.#plan = plan;
    this.#options = options;
    this.#milestones = milestones;
  }

  *start(): Io<Commit> {
    const { requests } = this.#plan;
    const written = yield* writeFlush(this.#log, this.#comm, this.#plan, this.#options);
    const flushed = written ?? flushedAlone(this.#log, this.#plan);
    this.#flushed = flushed;
    return { sequence: this.#milestones.sequence, time: new Date(flushed.time), bytes: flushed.bytes, requests };
  }

  done(commit: Commit, overtaken: boolean): void {
    if (this.#flushed) flushDone(this.#log, this.#plan, this.#flushed, overtaken);
    this.#milestones.done(commit, false);
  }

  failed(_error: unknown, overtaken: boolean): void {
    this.#milestones.failed();
    // With power, bytes of several ranks of which one may have failed to sync must go elsewhere.
    const isClear = this.#comm.size === 1 || !this.#options.power || this.#plan.isClear === true;
    flushFailed(this.#log, this.#plan, !overtaken && isClear);
  }
}

/** A commit of a file without a log: what posts change is read, put together and written when the job runs; only then it can be planned. */
export function ordinaryJob(
  committer: Committer,
  posts: OrdinaryPosts,
  taken: TakenPosts | null,
  milestones: Milestones,
): Job<Commit> {
  const { sequence } = milestones;
  const time = new Date();
  let plan: PlannedFlush | null = null;
  let isPlanned = false;
  const planned = (): void => {
    if (!isPlanned) milestones.planned();
    isPlanned = true;
  };
  return {
    *start(): Io<Commit> {
      plan ??= yield* planOrdinary(committer, posts, taken, planned);
      yield* committer.write(plan.planned);
      const bytes = plan.planned.append.end - plan.at;
      return { sequence, time, bytes, requests: taken?.requests ?? 0 };
    },
    done(commit, overtaken) {
      milestones.done(commit, true);
      if (plan) postsDone(posts, taken?.stages ?? [], plan.updated, overtaken);
    },
    failed(_error, overtaken) {
      planned();
      milestones.failed();
      if (plan) undoOrdinary(committer, plan, !overtaken);
      else if (overtaken) committer.appender.leaveReserved();
      if (taken) postsReturned(posts, taken);
    },
  };
}

/** A commit of a log that needs what the file holds, because it publishes, or because ordinary datasets change as well. */
export function lateJob(
  log: Log,
  posts: OrdinaryPosts,
  taken: TakenFlush,
  { sequence, planned: onPlan, done, failed }: Milestones,
): Job<Commit> {
  const time = new Date();
  const requests = taken.requests + (taken.ordinary?.requests ?? 0);
  let plan: LatePlan | null = null;
  let isPlanned = false;
  const planned = (): void => {
    if (!isPlanned) onPlan();
    isPlanned = true;
  };
  return {
    *start(): Io<Commit> {
      plan ??= yield* planLate(log, taken, { sequence, time: time.getTime(), onPlan: planned });
      return { sequence, time, bytes: yield* writeLate(log, plan), requests };
    },
    done(commit, overtaken) {
      if (!plan) return;
      done(commit, plan.made !== null);
      lateDone(log, posts, taken, plan, overtaken);
    },
    failed(_error, overtaken) {
      planned();
      failed();
      returnFlush(log, posts, taken, plan, !overtaken);
      if (!plan && overtaken) log.main.committer?.appender.leaveReserved();
    },
  };
}

/** Finishes jobs. Whoever asked for one that fails is told: nothing is waiting any more. */
export function quietly(finish: () => void): void {
  try {
    finish();
  } catch {
    // See above.
  }
}
