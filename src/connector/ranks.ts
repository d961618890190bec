import { environment } from '#platform';
import { agreedError, sameCall } from '../comm/agreement.ts';
import { type Communicator, canBeBounded } from '../comm/communicator.ts';
import { launcher } from '../comm/launcher.ts';
import { solo } from '../comm/solo.ts';
import { H5LogError } from '../errors.ts';
import type { CommonOptions } from './options.ts';

/** What a file is opened with: as it was asked for, and with what the environment adds. */
export interface Settings {
  readonly options: CommonOptions;
  readonly effective: () => Readonly<Record<string, unknown>>;
}

/** The ranks that open a file together. */
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
}

/** The communicator of a file: the one that was given, else one rank; but not by accident under a launcher of many. */
export function ranksFor(options: CommonOptions, writing: boolean): Ranks {
  const given = options?.comm ?? alone(writing);
  if (given.size === 1) return new OneRank(given);
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

function checkStorage(options: CommonOptions, { kind }: Communicator): void {
  if (options.storage !== 'mpi-io' || kind === 'mpi') return;
  throw new H5LogError('OPTION', `storage 'mpi-io' needs a communicator of MPI, this one is of kind ${kind}`);
}

function alone(writing: boolean): Communicator {
  const found = launcher(environment);
  if (found && found.size > 1 && writing) {
    throw new H5LogError(
      'COMM',
      `rank ${found.rank} of ${found.size}: pass comm: mpi(), or solo() for a file of your own`,
      { rank: found.rank },
    );
  }
  return solo();
}

class OneRank implements Ranks {
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
      sameCall(comm, call, () => ({ path: where, ...options, comm: undefined, ...effective() }));
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
    if (comm.allreduce(Float64Array.of(opened ? 0 : 1), 'max')[0] === 0) return opened as T;
    opened?.giveUp();
    const agreed = agreedError(comm, opened === undefined, error);
    comm.close();
    throw agreed;
  }

  mustBeAlone(): void {
    throw new H5LogError('UNSUPPORTED', 'several ranks can only write a file that they all reach by its path');
  }
}
