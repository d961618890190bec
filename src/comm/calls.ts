import { H5LogError, isH5LogError } from '../base/errors.ts';
import type { Communicator } from './communicator.ts';
import { type ErrorRecord, recordError, restoreError } from './error.ts';
import {
  type CallDescription,
  describeCall,
  difference,
  digestIn,
  digestOf,
  exactTextOf,
  named,
  newHash,
  textOfCall,
  unusable,
  whatCalls,
} from './same-call.ts';

type Details = Readonly<Record<string, unknown>>;

/** A call that all ranks have to make, as this rank made it. */
interface MadeCall {
  readonly call: string;
  readonly details: Details;
  /** The call and its arguments, as they were then; '' if there are words. */
  text: string;
  words: Words | null;
  /** Why it failed; null if it did not. */
  failure: { readonly error: unknown } | null;
}

/** A call for the other ranks to compare with theirs. */
interface SentCall {
  readonly description: CallDescription;
  readonly error: ErrorRecord | undefined;
}

/** The collectives of a file that begin with a comparison of all calls before them. */
const COLLECTIVES = ['flush', 'publish', 'close', 'refresh', 'watch'] as const;
export type CollectiveKind = (typeof COLLECTIVES)[number];

/** What came of a comparison, the same on all ranks. */
export interface Agreement {
  /** One of each rank, in their order. */
  readonly messages: readonly Uint8Array[];
  /** For all ranks to throw, if calls or collectives differ. */
  readonly error: Error | null;
  /** Whether the ranks made the same calls before this one, so that all have the same structure. */
  readonly hasSameCalls: boolean;
}

/**
 * The calls that this rank has made since all ranks last agreed. They are local: each adds its arguments and its outcome to a running
 * digest, and the next collective of the file compares the digests.
 */
export class Calls {
  #made: MadeCall[] = [];
  /** Of the texts and outcomes of the first calls. */
  #hash = newHash();
  #hashed = 0;
  /** While this rank does something for all of them. */
  isAlone = false;

  /** Makes a call and notes how it ended. */
  run<T>(call: string, details: () => Details, work: () => T): T {
    if (this.isAlone) return work();
    const made = begin(call, details);
    try {
      return work();
    } catch (error) {
      made.failure = { error };
      throw error;
    } finally {
      this.#add(made);
    }
  }

  /** Makes calls that the other ranks do not make; only a failure is noted. */
  alone(call: string, work: () => void): void {
    this.isAlone = true;
    try {
      work();
    } catch (error) {
      this.#add({ ...begin(call, () => ({})), failure: { error } });
    } finally {
      this.isAlone = false;
    }
  }

  #add(made: MadeCall): void {
    this.#made.push(made);
    if (this.#made.length - this.#hashed < MOST_TEXTS) return;
    const from = this.#hashed;
    this.#hashAll();
    for (const one of this.#made.slice(from)) {
      one.words = wordsOf(one);
      one.text = '';
    }
  }

  #hashAll(): void {
    for (; this.#hashed < this.#made.length; this.#hashed++) {
      const { text, failure } = this.#made[this.#hashed] as MadeCall;
      this.#hash.update(text);
      // No text begins like this.
      if (failure) this.#hash.update(`!${outcomeOf(failure.error)}`);
    }
  }

  /** All ranks agree, or have returned to what they agreed on. */
  clear(): void {
    this.#made = [];
    this.#hash = newHash();
    this.#hashed = 0;
  }

  /**
   * Collective, and the beginning of every collective of a file: compares the kind of call and the digest of all calls since the last time,
   * and exchanges a message. It has the same form whatever the call is, so that ranks with different calls find out instead of waiting
   * for one another.
   */
  agree(comm: Communicator, kind: CollectiveKind, message: Uint8Array): Agreement {
    this.#hashAll();
    const head = Float64Array.of(COLLECTIVES.indexOf(kind), this.#made.length, ...digestIn(this.#hash.copy()));
    const mine = new Uint8Array(head.byteLength + message.length);
    mine.set(new Uint8Array(head.buffer));
    mine.set(message, head.byteLength);
    const all = comm.allgather(mine);
    const first = all[0] as Uint8Array;
    const isSame = (from: number, to: number): boolean =>
      all.every((other) => {
        for (let i = from; i < to; i++) if (other[i] !== first[i]) return false;
        return true;
      });
    const isSameCall = isSame(0, 8);
    let hasSameCalls = isSame(8, head.byteLength);
    let error: Error | null = null;
    if (!hasSameCalls || !isSameCall) {
      error = this.#firstDifference(comm, kind);
      hasSameCalls ||= !error;
    }
    if (hasSameCalls) this.clear();
    return { messages: all.map((bytes) => bytes.subarray(head.byteLength)), error, hasSameCalls };
  }

  /**
   * Collective, when the digests or the collectives of the ranks differ: finds the first call that differs, and gives the error for all
   * of them to throw; null if only entries of objects have another order. `collective` is the call that found it out, which follows on
   * all others.
   */
  #firstDifference(comm: Communicator, collective: string): Error | null {
    const lists = comm.allgather(this.#allWords(collective)).map((bytes) => new Float64Array(bytes.slice().buffer));
    const at = firstDifferent(lists);
    if (at < 0) return null;
    const mine = this.#made[at] ?? begin(at === this.#made.length ? collective : 'nothing more', () => ({}));
    const { failure } = mine;
    const sent: SentCall = {
      description: describe(mine),
      error: failure ? recordError(failure.error, comm.rank) : undefined,
    };
    const all = comm.allgather(encode(sent)).map(decode);
    return disagreement(
      all,
      lists.map((list) => list.subarray(at * WORDS, (at + 1) * WORDS)),
    );
  }

  /** The words of all calls and of the collective. */
  #allWords(collective: string): Uint8Array {
    const calls = [...this.#made, begin(collective, () => ({}))];
    const numbers = new Float64Array(calls.length * WORDS);
    calls.forEach((made, i) => {
      numbers.set(made.words ?? wordsOf(made), i * WORDS);
    });
    return new Uint8Array(numbers.buffer);
  }
}

/** After so many calls their texts become digests: many calls without a collective need no more memory than the objects they make. */
const MOST_TEXTS = 4096;

/** Numbers that stand for a call: its digest and its outcome. */
type Words = readonly [number, number, number];
const WORDS = 3;

/** The order of an object's entries counts only where the arguments were changed after the call. */
function wordsOf({ call, details, text, failure }: MadeCall): Words {
  const isUnchanged = textOfCall(call, details) === text;
  const [low, high] = digestOf(isUnchanged ? exactTextOf(call, details) : text);
  return [low, high, failure ? digestOf(outcomeOf(failure.error))[0] : 0];
}

/** The first call that is not the same in all lists; -1 if all are. */
function firstDifferent(lists: readonly Float64Array[]): number {
  const [first] = lists as [Float64Array];
  for (let i = 0; ; i++) {
    if (lists.every((list) => i >= list.length)) return -1;
    const isEnd = lists.some((list) => i >= list.length);
    if (isEnd || lists.some((list) => list[i] !== first[i])) return Math.floor(i / WORDS);
  }
}

function begin(call: string, details: () => Details): MadeCall {
  try {
    const given = details() as Record<string, unknown>;
    const text = textOfCall(call, given);
    // The object was made for this call; what is in it may be the caller's.
    for (const name in given) if (typeof given[name] === 'object') given[name] = snapshot(given[name]);
    return { call, details: given, text, words: null, failure: null };
  } catch (error) {
    const bad = unusable(error);
    return { call, details: bad, text: textOfCall(call, bad), words: null, failure: null };
  }
}

/** Numbers in a list that is kept as it was; programs use short ones, shapes above all, again for the next call. */
const SHORT = 64;

function snapshot(value: unknown): unknown {
  const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && 'slice' in value);
  if (!isList) return value;
  const list = value as unknown[];
  return list.length <= SHORT ? list.slice() : list;
}

function describe({ call, details, text, words, failure }: MadeCall): CallDescription {
  const description = { ...describeCall(call, details) };
  const isChanged = words
    ? digestOf(exactTextOf(call, details)).some((word, i) => word !== words[i])
    : textOfCall(call, details) !== text;
  if (isChanged) description.arguments = 'other ones then: they were changed after the call';
  if (failure) description.outcome = outcomeOf(failure.error);
  return description;
}

/** What the other ranks compare of an error. Messages may differ in what does not matter. */
function outcomeOf(error: unknown): string {
  if (isH5LogError(error)) return error.code;
  return error instanceof Error ? error.name : 'an error';
}

function encode(sent: SentCall): Uint8Array {
  const text = JSON.stringify(sent, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  return new TextEncoder().encode(text);
}

const decode = (bytes: Uint8Array): SentCall => JSON.parse(new TextDecoder().decode(bytes)) as SentCall;

/** The error of all ranks, of the first call that differs: that of the rank that failed, if others did not, else MISMATCH. */
function disagreement(all: readonly SentCall[], digests: readonly Float64Array[]): Error {
  const failed = all.findIndex(({ error }) => error);
  const fine = all.findIndex(({ error }) => !error);
  if (failed >= 0 && fine >= 0) {
    const { description, error } = all[failed] as SentCall;
    const other = (all[fine] as SentCall).description;
    const isSame = description.call === other.call;
    const beside = isSame ? `on rank ${fine} it did not fail` : `rank ${fine} ${whatCalls(other)} there`;
    const thrown = restoreError(error as ErrorRecord);
    return extended(thrown, `rank ${failed}: ${named(description)}: `, `; ${beside}`, failed);
  }
  const [mine, ...others] = digests.map((words) => words.join());
  const rank =
    1 +
    Math.max(
      0,
      others.findIndex((words) => words !== mine),
    );
  const [first, other] = [all[0], all[rank]] as [SentCall, SentCall];
  const text = `the ranks do not make the same calls: ${difference(first.description, other.description, rank)}`;
  return new H5LogError('MISMATCH', text, { rank });
}

/** A copy of an error with more text around its message. */
export function extended(error: Error, before: string, behind: string, rank?: number): Error {
  const text = `${before}${error.message}${behind}`;
  const whose = rank ?? (error as { rank?: number }).rank;
  if (isH5LogError(error)) return new H5LogError(error.code, text, { ...error, cause: error.cause, rank: whose });
  return Object.assign(new Error(text, { cause: error }), { name: error.name, rank: whose });
}
