import type { PlannedCommit } from '../hdf5/write/commit.ts';
import type { FlushPlan } from '../log/flush/plan.ts';
import type { LogOptions } from '../log/log.ts';
import type { Source } from '../storage/storage.ts';
import type { Ranks } from './ranks.ts';

/** What a session is opened with. */
export interface SessionOptions extends Source {
  readonly ranks: Ranks;
  readonly power: boolean;
  readonly log: LogOptions;
  /** Open the state of that commit. */
  readonly asOf?: number | undefined;
  /** For a new file: how many subfiles; 0: none. */
  readonly newSubfiles: number | 'node';
  /** All ranks of a file write as one. */
  readonly isTogether: boolean;
}

/** A commit on its way into the file. */
export interface CommitInProgress {
  readonly sequence: number;
  readonly time: number;
  readonly planned: PlannedCommit | null;
  /** null for a file without a log. */
  readonly flush: FlushPlan | null;
}
