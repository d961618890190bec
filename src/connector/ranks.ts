import { environment } from '#platform';
import { H5LogError } from '../base/errors.ts';
import { agreedError, agreeOn, onAllRanks, withRank } from '../comm/agreement.ts';
import { type Agreement, Calls, type CollectiveKind } from '../comm/calls.ts';
import { type CollectiveFile, type Communicator, canOpenFiles, hasTimeout } from '../comm/communicator.ts';
import { decodeError, encodeError } from '../comm/error.ts';
import { findLauncher } from '../comm/launcher.ts';
import { sameCall } from '../comm/same-call.ts';
import { solo } from '../comm/solo.ts';
import type { Log } from '../log/log.ts';
import { groupingOf } from '../log/subfiles.ts';
import { attemptIo, type Io } from '../storage/io.ts';
import type { Source } from '../storage/storage.ts';
import type { CommonOptions } from './options.ts';

/** What a file is opened with: as it was asked for, and with what the environment adds. */
interface Settings {
  readonly options: CommonOptions;
  readonly effective: () => Readonly<Record<string, unknown>>;
}

/**
 * The ranks that have a file open, and what they do collectively: every call is made by all of them, in the same order.
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
  /** Makes a change that all of them make, each by itself; the next collective of the file compares what they did. */
  change<T>(call: string, details: () => Readonly<Record<string, unknown>>, work: () => T): T;
  /** Makes changes on one rank alone, which are not compared; if they fail, the next collective throws that on all. */
  alone(call: string, work: () => void): void;
  /** Begins a collective of the file: compares what all ranks did since the last one, and exchanges a message. */
  agree(kind: CollectiveKind, message: Uint8Array): Agreement;
  /** Whether the file has changed for any rank. Begins a refresh, like {@link agree}. */
  isNewOnAny(io: Io<boolean>): Io<boolean>;
  /** All ranks have returned to the last commit. */
  forgetCalls(): void;
  /** Does something on every rank; when it fails on one, the same error is thrown on all. */
  collective<T>(work: () => T): T;
  collectiveIo<T>(io: Io<T>): Io<T>;
  onAny(holds: boolean): boolean;
  /** The commit that the first rank saw, unless all saw the same. */
  stateToTake(sequence: number): number | undefined;
  /** Those that write into the same one of so many subfiles. */
  groupFor(subfiles: number): Communicator;
  /** Closes the communicators that were made for the file; `group` is that of a subfile. */
  leave(group: Communicator | undefined): void;
  /** For MPI-IO: the file that takes this rank's data, opened by all ranks that write to it; null for one rank. */
  openCollectiveFile(log: Log, source: Source): CollectiveFile | null;
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

  change<T>(_call: string, _details: () => unknown, work: () => T): T {
    return work();
  }

  alone(_call: string, work: () => void): void {
    work();
  }

  agree(_kind: CollectiveKind, message: Uint8Array): Agreement {
    return { messages: [message], error: null, hasSameCalls: true };
  }

  isNewOnAny(io: Io<boolean>): Io<boolean> {
    return io;
  }

  forgetCalls(): void {}

  collective<T>(work: () => T): T {
    return work();
  }

  collectiveIo<T>(io: Io<T>): Io<T> {
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

  leave(): void {}

  openCollectiveFile(): null {
    return null;
  }
}

function checkStorage(options: CommonOptions, { kind }: Communicator): void {
  if (options.storage !== 'mpi-io' || kind === 'mpi') return;
  throw new H5LogError('OPTION', `storage 'mpi-io' needs a communicator of MPI, this one is of kind ${kind}`);
}

/** Who writes without a communicator means one rank, but not by accident under a launcher of many. */
export function mustMeanOneRank(): void {
  const found = findLauncher(environment);
  if (!found || found.size === 1) return;
  throw new H5LogError(
    'COMM',
    `rank ${found.rank} of ${found.size}: pass comm: mpi(), or solo() for a file of your own`,
    { rank: found.rank },
  );
}

export function severalRanks(given: Communicator, options: CommonOptions): Ranks {
  return new SeveralRanks(given, ownComm(given, options), options.checkCalls === true);
}

/** Bounded from here on: that all ranks come to open the file is waited for no longer than for what they do with it. */
function ownComm(given: Communicator, { timeout }: CommonOptions): Communicator {
  // One that cannot be used is complained of when all ranks can hear it.
  if (typeof timeout !== 'number' || !(timeout > 0) || !hasTimeout(given)) return given.split(0);
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
  readonly #checksCalls: boolean;
  readonly #calls = new Calls();

  constructor(given: Communicator, comm: Communicator, checksCalls: boolean) {
    this.given = given;
    this.comm = comm;
    this.#checksCalls = checksCalls;
  }

  get leads(): boolean {
    return this.comm.rank === 0;
  }

  begin<T extends { giveUp(): void }>(call: string, source: unknown, settings: Settings, work: () => T): T {
    const { comm } = this;
    const { options, effective } = settings;
    const where = typeof source === 'string' || source instanceof URL ? String(source) : 'a storage';
    let opened: T | undefined;
    let error: unknown;
    try {
      checkForSeveral(options);
      checkStorage(options, comm);
      opened = work();
    } catch (thrown) {
      error = thrown;
    }
    let failure: unknown;
    try {
      // Codecs are functions, which cannot be compared.
      const codecs = options?.codecs && Object.keys(options.codecs);
      const details = () => ({ path: where, ...options, comm: undefined, codecs, ...effective() });
      if (!sameCall(comm, call, details, !opened)) return opened as T;
      failure = agreedError(comm, opened === undefined, error);
    } catch (thrown) {
      failure = thrown;
    }
    opened?.giveUp();
    comm.close();
    throw failure;
  }

  mustBeAlone(): void {
    throw new H5LogError('UNSUPPORTED', 'several ranks can only write a file that they all reach by its path');
  }

  change<T>(call: string, details: () => Readonly<Record<string, unknown>>, work: () => T): T {
    if (this.#checksCalls && !this.#calls.isAlone) sameCall(this.comm, call, details);
    return this.#calls.run(call, details, work);
  }

  alone(call: string, work: () => void): void {
    this.#calls.alone(call, work);
  }

  agree(kind: CollectiveKind, message: Uint8Array): Agreement {
    if (this.#checksCalls) sameCall(this.comm, kind, () => ({}));
    return this.#calls.agree(this.comm, kind, message);
  }

  *isNewOnAny(io: Io<boolean>): Io<boolean> {
    const outcome = yield* attemptIo(io);
    const message =
      'error' in outcome ? encodeError(outcome.error, this.comm.rank) : Uint8Array.of(outcome.result ? 1 : 0);
    const { messages, error } = this.agree('refresh', message);
    if (error) throw error;
    for (const [rank, bytes] of messages.entries()) if (bytes.length > 1) throw withRank(decodeError(bytes), rank);
    return messages.some(([isNew]) => isNew === 1);
  }

  forgetCalls(): void {
    this.#calls.clear();
  }

  collective<T>(work: () => T): T {
    return onAllRanks(this.comm, work);
  }

  *collectiveIo<T>(io: Io<T>): Io<T> {
    return agreeOn(this.comm, yield* attemptIo(io));
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

  leave(group: Communicator | undefined): void {
    if (group !== this.comm) group?.close();
    this.comm.close();
  }

  openCollectiveFile({ own, hasSubfiles }: Log, { subfiles, storage }: Source): CollectiveFile {
    if (canOpenFiles(own.comm))
      return own.comm.openFile(hasSubfiles && subfiles ? subfiles.name(own.index) : storage.name);
    throw new H5LogError('OPTION', `storage 'mpi-io' needs a communicator of MPI, not of ${this.comm.kind}`);
  }
}
