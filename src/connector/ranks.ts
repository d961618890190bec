import { H5LogError } from '../base/errors.ts';
import type { CollectiveFile, Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import { type FlushPlan, planAlone } from '../log/flush/plan.ts';
import type { RankOptions } from '../log/flush/ranks.ts';
import { commitAlone } from '../log/flush/write.ts';
import type { Log } from '../log/log.ts';
import type { Io } from '../storage/io.ts';
import type { Source } from '../storage/storage.ts';
import type { CommonOptions } from './options.ts';

/** What a file is opened with: as it was asked for, and with what the environment adds. */
export interface Settings {
  readonly options: CommonOptions;
  readonly effective: () => Readonly<Record<string, unknown>>;
}

/**
 * The ranks that have a file open, and everything they do together: each call is made by all of them. `OneRank` does it alone;
 * `several/ranks.ts` does it with the communicator.
 */
export interface Ranks {
  /** As the user gave it. */
  readonly given: Communicator;
  /** The file's own, so that what the user does with the other one does not get in its way. */
  readonly comm: Communicator;
  /** The first rank: it has the lock and writes the structure. */
  readonly leads: boolean;
  /** Opens on every rank; when that fails on one, `giveUp` on the others and the same error on all. */
  begin<T extends { giveUp(): void }>(call: string, source: unknown, settings: Settings, work: () => T): T;
  /** Throws for sources that only one rank can reach. */
  mustBeAlone(): void;
  /** Throws MISMATCH on all of them if they do not make the same call. */
  sameCall(call: string, details: () => Readonly<Record<string, unknown>>): void;
  /** Does something on every rank; when it fails on one, the same error is thrown on all. */
  together<T>(work: () => T): T;
  jointly<T>(io: Io<T>): Io<T>;
  onAny(holds: boolean): boolean;
  /** The commit that the first rank saw, unless all saw the same. */
  stateToTake(sequence: number): number | undefined;
  /** Those that write into the same one of so many subfiles. */
  groupFor(subfiles: number): Communicator;
  /** The file that this rank's data goes to, as all its ranks write it together; null for one rank, which has nobody to write with. */
  openTogether(log: Log, source: Source): CollectiveFile | null;
  /** Undefined: there is nothing to commit. */
  plan(log: Log, sequence: number, time: number): FlushPlan | undefined;
  /** Gives the time of the commit and the bytes it added, in all files together. */
  commit(log: Log, plan: FlushPlan, options: RankOptions): Io<{ readonly time: number; readonly bytes: number }>;
}

export class OneRank implements Ranks {
  readonly given: Communicator;
  readonly comm: Communicator;
  readonly leads = true;

  constructor(given: Communicator) {
    this.given = given;
    this.comm = given;
  }

  begin<T>(_call: string, _source: unknown, { options }: Settings, work: () => T): T {
    if (options) checkStorage(options, this.given);
    return work();
  }

  mustBeAlone(): void {}
  sameCall(): void {}

  together<T>(work: () => T): T {
    return work();
  }

  jointly<T>(io: Io<T>): Io<T> {
    return io;
  }

  onAny(holds: boolean): boolean {
    return holds;
  }

  stateToTake(): undefined {
    return undefined;
  }

  groupFor(): Communicator {
    return solo();
  }

  openTogether(): null {
    return null;
  }

  plan(log: Log, sequence: number, time: number): FlushPlan | undefined {
    return planAlone(log, sequence, time);
  }

  *commit(log: Log, plan: FlushPlan): Io<{ time: number; bytes: number }> {
    return { time: plan.time, bytes: yield* commitAlone(log, plan) };
  }
}

export function checkStorage(options: CommonOptions, { kind }: Communicator): void {
  if (options.storage !== 'mpi-io' || kind === 'mpi') return;
  throw new H5LogError('OPTION', `storage 'mpi-io' needs a communicator of MPI, this one is of kind ${kind}`);
}
