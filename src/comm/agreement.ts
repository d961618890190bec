import { H5LogError } from '../base/errors.ts';
import type { Communicator } from './communicator.ts';
import { decodeError, encodeError } from './error.ts';
import { type CallDescription, describeCall, digestOf } from './same-call.ts';

/**
 * Makes sure that all ranks make the same call, in one small exchange of a fixed form, so that ranks which make different
 * calls find out instead of waiting for each other.
 */
export function sameCall(comm: Communicator, call: string, details: () => Readonly<Record<string, unknown>>): void {
  let digest: [number, number];
  let describe: () => CallDescription;
  try {
    const given = details();
    digest = digestOf(call, given);
    describe = () => describeCall(call, given);
  } catch (error) {
    const bad = { arguments: `that cannot be used (${(error as Error).message})` };
    digest = digestOf('', bad);
    describe = () => bad;
  }
  const [low, high] = digest;
  const least = comm.allreduce(Float64Array.of(low, -low, high, -high), 'min');
  if (least[0] === -(least[1] as number) && least[2] === -(least[3] as number)) return;
  const text = JSON.stringify(describe());
  const all = comm.allgather(new TextEncoder().encode(text)).map((bytes) => new TextDecoder().decode(bytes));
  const rank = Math.max(
    all.findIndex((other) => other !== all[0]),
    0,
  );
  const first = JSON.parse(all[0] as string) as CallDescription;
  const other = JSON.parse(all[rank] as string) as CallDescription;
  throw new H5LogError('MISMATCH', `the ranks do not make the same call: ${difference(first, other, rank)}`, { rank });
}

function difference(first: CallDescription, other: CallDescription, rank: number): string {
  if (first.call !== other.call) return `rank 0 ${said(first)}, rank ${rank} ${said(other)}`;
  const names = [...new Set([...Object.keys(first), ...Object.keys(other)])].filter(
    (name) => first[name] !== other[name],
  );
  const parts = names.map(
    (name) => `${name} is ${first[name] ?? 'missing'} on rank 0, ${other[name] ?? 'missing'} on rank ${rank}`,
  );
  return `${first.call ?? 'the call'}: ${parts.join('; ')}`;
}

const said = ({ call, arguments: bad, path }: CallDescription): string =>
  call ? `calls ${call}${path ? ` (${path})` : ''}` : `passes arguments ${bad ?? ''}`;

/** How something ended on this rank. */
export type Outcome<T> = { readonly result: T } | { readonly error: unknown };

/** Does something on every rank; when it fails on one, the same error is thrown on all. */
export function together<T>(comm: Communicator, work: () => T): T {
  if (comm.size === 1) return work();
  let outcome: Outcome<T>;
  try {
    outcome = { result: work() };
  } catch (error) {
    outcome = { error };
  }
  return agreed(comm, outcome);
}

/** Called by all ranks, each with its own outcome: the result, or the error of the first rank that failed. */
export function agreed<T>(comm: Communicator, outcome: Outcome<T>): T {
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
  return rank < 0 ? undefined : ofRank(decodeError(messages[rank] as Uint8Array), rank);
}

/** Says in its text whose error it is. */
export function ofRank(error: Error, rank: number): Error {
  const known = error instanceof H5LogError ? error : undefined;
  const whose = known?.rank ?? rank;
  const message = /^rank \d+: /.test(error.message) ? error.message : `rank ${whose}: ${error.message}`;
  if (!known) return Object.assign(new Error(message, { cause: error }), { rank: whose });
  const { code, file, object, offset } = known;
  return new H5LogError(code, message, { file, object, offset, rank: whose });
}
