import type { PlannedCommit } from '../hdf5/commit.ts';
import type { FlushPlan } from '../log/flush.ts';
import type { LogOptions } from '../log/log.ts';
import type { ByteStorage } from '../storage/storage.ts';
import type { Subfiles } from '../storage/subfiles.ts';
import type { WriteTarget } from '../storage/target.ts';
import type { Ranks } from './ranks.ts';

/** What a session is opened with. */
export interface SessionOptions {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly ranks: Ranks;
  readonly power: boolean;
  readonly log: LogOptions;
  /** Open the state of that commit. */
  readonly asOf?: number | undefined;
  /** The files beside this one; null where nothing is beside it. */
  readonly subfiles: Subfiles | null;
  /** For a new file: how many of them; 0: none. */
  readonly newSubfiles: number | 'node';
  /** All ranks of a file write as one. */
  readonly isTogether: boolean;
  /** Where the file is; null for a storage of the caller's. */
  readonly path: string | null;
}

/** A commit on its way into the file. */
export interface CommitInProgress {
  readonly sequence: number;
  readonly time: number;
  readonly planned: PlannedCommit | null;
  /** null for a file without a log. */
  readonly flush: FlushPlan | null;
}
