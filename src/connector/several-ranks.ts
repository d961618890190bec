import { environment } from '#platform';
import { H5LogError } from '../base/errors.ts';
import { agreed, agreedError, type Outcome, together } from '../comm/agreement.ts';
import { type CollectiveFile, type Communicator, canBeBounded, canOpenFiles } from '../comm/communicator.ts';
import { launcher } from '../comm/launcher.ts';
import { sameCall } from '../comm/same-call.ts';
import type { FlushPlan } from '../log/flush/plan.ts';
import { planTogether } from '../log/flush/plan-ranks.ts';
import { commitTogether, type RankOptions } from '../log/flush/ranks.ts';
import type { Log } from '../log/log.ts';
import { groupingOf } from '../log/subfiles.ts';
import type { Io } from '../storage/io.ts';
import type { Source } from '../storage/storage.ts';
import type { CommonOptions } from './options.ts';
import { checkStorage, type Ranks, type Settings } from './ranks.ts';

/** Who writes without a communicator means one rank, but not by accident under a launcher of many. */
export function mustMeanOneRank(): void {
  const found = launcher(environment);
  if (!found || found.size === 1) return;
  throw new H5LogError(
    'COMM',
    `rank ${found.rank} of ${found.size}: pass comm: mpi(), or solo() for a file of your own`,
    { rank: found.rank },
  );
}

export function severalRanks(given: Communicator, options: CommonOptions): Ranks {
  return new SeveralRanks(given, ownComm(given, options));
}

/** Bounded from here on: that all ranks come to open the file is waited for no longer than for what they do with it. */
function ownComm(given: Communicator, { timeout }: CommonOptions): Communicator {
  // One that cannot be used is complained of when all ranks can hear it.
  if (typeof timeout !== 'number' || !(timeout > 0) || !canBeBounded(given)) return given.split(0);
  const usual = given.timeout;
  given.timeout = timeout;
  try {
    return given.split(0);
  } finally {
    given.timeout = usual;
  }
}

/** Options that mean nothing, or something else, for several ranks. */
function checkForSeveral({ onBufferFull, commitOnSignal }: CommonOptions): void {
  if (onBufferFull === 'flush')
    throw new H5LogError('OPTION', `onBufferFull 'flush' is for one rank: the others would have to flush as well`);
  if (commitOnSignal)
    throw new H5LogError('OPTION', 'commitOnSignal is for one rank: a signal does not reach the others');
}

class SeveralRanks implements Ranks {
  readonly given: Communicator;
  readonly comm: Communicator;

  constructor(given: Communicator, comm: Communicator) {
    this.given = given;
    this.comm = comm;
  }

  get leads(): boolean {
    return this.comm.rank === 0;
  }

  begin<T extends { giveUp(): void }>(call: string, source: unknown, settings: Settings, work: () => T): T {
    const { comm } = this;
    const { options, effective } = settings;
    const where = typeof source === 'string' || source instanceof URL ? String(source) : 'a storage';
    try {
      this.sameCall(call, () => ({ path: where, ...options, comm: undefined, ...effective() }));
    } catch (error) {
      comm.close();
      throw error;
    }
    let opened: T | undefined;
    let error: unknown;
    try {
      checkForSeveral(options);
      checkStorage(options, comm);
      opened = work();
    } catch (thrown) {
      error = thrown;
    }
    if (!this.onAny(!opened)) return opened as T;
    opened?.giveUp();
    const failure = agreedError(comm, opened === undefined, error);
    comm.close();
    throw failure;
  }

  mustBeAlone(): void {
    throw new H5LogError('UNSUPPORTED', 'several ranks can only write a file that they all reach by its path');
  }

  sameCall(call: string, details: () => Readonly<Record<string, unknown>>): void {
    sameCall(this.comm, call, details);
  }

  together<T>(work: () => T): T {
    return together(this.comm, work);
  }

  *jointly<T>(io: Io<T>): Io<T> {
    let outcome: Outcome<T>;
    try {
      outcome = { result: yield* io };
    } catch (error) {
      outcome = { error };
    }
    return agreed(this.comm, outcome);
  }

  onAny(holds: boolean): boolean {
    return this.comm.allreduce(Float64Array.of(holds ? 1 : 0), 'max')[0] === 1;
  }

  stateToTake(sequence: number): number | undefined {
    const [seen] = this.comm.allreduce(Float64Array.of(this.leads ? sequence : Infinity), 'min');
    return this.onAny(seen !== sequence) ? seen : undefined;
  }

  groupFor(subfiles: number): Communicator {
    return this.comm.split(groupingOf(this.comm, subfiles).mine);
  }

  openTogether({ own, spread }: Log, { subfiles, storage }: Source): CollectiveFile {
    if (canOpenFiles(own.comm)) return own.comm.openFile(spread && subfiles ? subfiles.name(own.place) : storage.name);
    throw new H5LogError('OPTION', `storage 'mpi-io' needs a communicator of MPI, not of ${this.comm.kind}`);
  }

  plan(log: Log, sequence: number, time: number): FlushPlan | undefined {
    return planTogether(log, this.comm, sequence, time);
  }

  *commit(log: Log, plan: FlushPlan, options: RankOptions): Io<{ time: number; bytes: number }> {
    const { time, bytes, states } = yield* commitTogether(log, this.comm, plan, options);
    log.states = states;
    return { time, bytes };
  }
}
