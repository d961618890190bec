import type { Committer } from '../hdf5/write/commit.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import {
  InMemory,
  type PlannedFlush,
  planOrdinary,
  postsDone,
  postsReturned,
  type TakenPosts,
  type UpdatedLayouts,
  undoOrdinary,
} from '../log/flush/ordinary.ts';
import type { OrdinaryPosts } from '../log/post/writable.ts';
import type { Io } from '../storage/io.ts';
import type { Job } from '../storage/jobs.ts';
import type { Commit } from './file-session.ts';

/** What a session does when the job gets so far. */
interface Milestones {
  /** Called once, before the structure changes, or the job has failed. */
  planned(): void;
  done(commit: Commit): void;
  failed(): void;
}

/** A commit of a file without a log: what posts change is read, put together and written when the job runs; only then it can be planned. */
export function ordinaryJob(
  committer: Committer,
  posts: OrdinaryPosts,
  taken: TakenPosts | null,
  sequence: number,
  milestones: Milestones,
): Job<Commit> {
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
      milestones.done(commit);
      if (plan) postsDone(posts, taken?.stages ?? [], plan.updated, overtaken);
    },
    failed(_error, overtaken) {
      planned();
      milestones.failed();
      if (plan) undoOrdinary(committer, plan, !overtaken);
      if (taken) postsReturned(posts, taken);
    },
  };
}

/** What a flush of a log and of ordinary datasets together consists of. */
interface MixedFlush {
  readonly updated: UpdatedLayouts;
  readonly undo: () => void;
  readonly flush: Job<Commit>;
}

/** A flush of a log that makes changes to ordinary datasets count as well. `plan` puts their new data where it is told. */
export function mixedJob(
  posts: OrdinaryPosts,
  taken: TakenPosts,
  plan: (to: (structure: Structure) => InMemory) => MixedFlush,
): Job<Commit> {
  let planned: MixedFlush;
  try {
    planned = plan((structure) => new InMemory(structure));
  } catch (error) {
    postsReturned(posts, taken);
    throw error;
  }
  const { updated, undo, flush } = planned;
  return {
    *start() {
      const commit = yield* flush.start();
      return { ...commit, requests: commit.requests + taken.requests };
    },
    done(commit, overtaken) {
      flush.done(commit, overtaken);
      postsDone(posts, taken.stages, updated, overtaken);
    },
    failed(error, overtaken) {
      undo();
      flush.failed(error, overtaken);
      postsReturned(posts, taken);
    },
  };
}
