import { addContext, H5LogError, isH5LogError } from '../base/errors.ts';
import type { Communicator } from './communicator.ts';
import { decodeError, encodeError } from './error.ts';

/** An error that a rank keeps until the next collective: the others wait there. */
export interface Failure {
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

/** Does something on every rank; when it fails on one, the same error is thrown on all. */
export function onAllRanks<T>(comm: Communicator, work: () => T): T {
  return comm.size === 1 ? work() : agreeOn(comm, attempt(work));
}

/** Called by all ranks, each with its own outcome: the result, or the error of the first rank that failed. */
export function agreeOn<T>(comm: Communicator, outcome: Attempt<T>): T {
  const failed = 'error' in outcome;
  const anywhere = comm.allreduce(Float64Array.of(failed ? 1 : 0), 'max')[0] !== 0;
  if (!anywhere && !failed) return outcome.result;
  throw agreedError(comm, failed, failed ? outcome.error : undefined);
}

/** Called by all ranks when at least one of them failed: the error of the first of those, for all to throw. */
export function agreedError(comm: Communicator, failed: boolean, error: unknown): Error {
  const all = comm.allgather(failed ? encodeError(error, comm.rank) : new Uint8Array(0));
  return firstError(all) ?? new H5LogError('COMM', 'a rank failed without an error');
}

/** The first error of those that ranks sent; ranks without one send nothing. */
export function firstError(messages: readonly Uint8Array[]): Error | undefined {
  const rank = messages.findIndex((bytes) => bytes.length > 0);
  return rank < 0 ? undefined : withRank(decodeError(messages[rank] as Uint8Array), rank);
}

/** Says in its text whose error it is. */
export function withRank(error: Error, rank: number): Error {
  const isOurs = isH5LogError(error);
  const whose = (isOurs ? error.rank : undefined) ?? rank;
  const prefix = /^rank \d+: /.test(error.message) ? '' : `rank ${whose}: `;
  if (isOurs) return addContext(error, prefix, { rank }) as H5LogError;
  return Object.assign(new Error(`${prefix}${error.message}`, { cause: error }), { rank: whose });
}
