import { addContext, H5LogError, isH5LogError } from '../base/errors.ts';
import type { Communicator } from './communicator.ts';
import { decodeError, encodeError } from './error.ts';

/** An error that a rank holds back until the next collective, where the other ranks wait for it. */
interface Failure {
  readonly error: unknown;
}

/** How local work ended on this rank. */
export type Attempt<T> = { readonly result: T } | Failure;

export function attempt<T>(work: () => T): Attempt<T> {
  try {
    return { result: work() };
  } catch (error) {
    return { error };
  }
}

/** Collective: runs `work` on every rank. If it fails on one rank, all ranks throw the same error. */
export function onAllRanks<T>(comm: Communicator, work: () => T): T {
  return comm.size === 1 ? work() : agreeOn(comm, attempt(work));
}

/**
 * Collective: {@link onAllRanks} for asynchronous work. If it succeeds here and fails on another rank, `undo` takes back what this
 * rank has.
 */
export async function onAllRanksAsync<T>(
  comm: Communicator,
  work: () => Promise<T>,
  undo?: (result: T) => unknown,
): Promise<T> {
  if (comm.size === 1) return work();
  let outcome: Attempt<T>;
  try {
    outcome = { result: await work() };
  } catch (error) {
    outcome = { error };
  }
  try {
    return agreeOn(comm, outcome);
  } catch (error) {
    if ('result' in outcome) await undo?.(outcome.result);
    throw error;
  }
}

/** Collective: returns this rank's result, or throws the error of the first rank that failed. */
export function agreeOn<T>(comm: Communicator, outcome: Attempt<T>): T {
  const failed = 'error' in outcome;
  const anywhere = comm.allreduce(Float64Array.of(failed ? 1 : 0), 'max')[0] !== 0;
  if (!anywhere && !failed) return outcome.result;
  throw agreedError(comm, failed, failed ? outcome.error : undefined);
}

/** Collective, when at least one rank failed: returns the error of the first of them, for all ranks to throw. */
export function agreedError(comm: Communicator, failed: boolean, error: unknown): Error {
  const all = comm.allgather(failed ? encodeError(error, comm.rank) : new Uint8Array(0));
  return firstError(all) ?? new H5LogError('COMM', 'a rank failed without an error');
}

/** The first of the errors that the ranks sent; ranks without an error send no bytes. */
function firstError(messages: readonly Uint8Array[]): Error | undefined {
  const rank = messages.findIndex((bytes) => bytes.length > 0);
  return rank < 0 ? undefined : withRank(decodeError(messages[rank] as Uint8Array), rank);
}

/** Adds the rank to the message of an error. */
export function withRank(error: Error, rank: number): Error {
  const isOurs = isH5LogError(error);
  const whose = (isOurs ? error.rank : undefined) ?? rank;
  const prefix = /^rank \d+: /.test(error.message) ? '' : `rank ${whose}: `;
  if (isOurs) return addContext(error, prefix, { rank }) as H5LogError;
  return Object.assign(new Error(`${prefix}${error.message}`, { cause: error }), { rank: whose });
}

/** The error without its rank: for a program of one rank, whose ranks are threads that a tool has started. */
export function withoutRank(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const message = error.message.replace(/^rank \d+: /, '');
  if (!isH5LogError(error)) return message === error.message ? error : new Error(message, { cause: error.cause });
  const { code, file, object, offset, cause } = error;
  return new H5LogError(code, message, { file, object, offset, cause });
}
