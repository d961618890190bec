import type { Hash } from 'node:crypto';
import { H5LogError } from '../base/errors.ts';
import type { Communicator } from './communicator.ts';

/**
 * Throws MISMATCH unless all ranks make the same call with the same arguments. Compares digests in one small allreduce of fixed
 * size, so that ranks with different calls find out instead of deadlocking. Returns whether the call has failed on any rank.
 */
export function sameCall(
  comm: Communicator,
  call: string,
  details: () => Readonly<Record<string, unknown>>,
  hasFailed = false,
): boolean {
  let made: string;
  let describe: () => CallDescription;
  try {
    const given = details();
    made = exactTextOf(call, given);
    describe = () => describeCall(call, given);
  } catch (error) {
    const bad = unusable(error);
    made = exactTextOf('', bad);
    describe = () => bad;
  }
  const [low, high] = digestOf(made);
  // The minimum of x equals minus the minimum of -x only if all ranks have the same x.
  const least = comm.allreduce(Float64Array.of(low, -low, high, -high, hasFailed ? 0 : 1), 'min');
  if (least[0] === -(least[1] as number) && least[2] === -(least[3] as number)) return least[4] === 0;
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

/** Stands for the arguments of a call that cannot even be looked at. */
export function unusable(error: unknown): { readonly arguments: string } {
  return { arguments: `that cannot be used (${(error as Error).message})` };
}

/** Says how a call of rank 0 and the call of another rank differ. */
export function difference(first: CallDescription, other: CallDescription, rank: number): string {
  if (first.call !== other.call) return `rank 0 ${whatCalls(first)}, rank ${rank} ${whatCalls(other)}`;
  const names = [...new Set([...Object.keys(first), ...Object.keys(other)])].filter(
    (name) => first[name] !== other[name],
  );
  const parts = names.map(
    (name) => `${name} is ${first[name] ?? 'missing'} on rank 0, ${other[name] ?? 'missing'} on rank ${rank}`,
  );
  return `${first.call ?? 'the call'}: ${parts.join('; ')}`;
}

/** What a rank does, in words. */
export const whatCalls = (call: CallDescription): string =>
  call.call ? `calls ${named(call)}` : `passes arguments ${call.arguments ?? ''}`;

/** A call by its name and its path. */
export const named = ({ call, path }: CallDescription): string => `${call}${path ? ` (${path})` : ''}`;

/**
 * A call and its arguments as one text, which is another one for other arguments. The runtime itself makes it, because it is made for
 * every call that all ranks make: here only what JSON does not tell apart is looked for. It depends on the order of an object's entries.
 */
export function textOfCall(call: string, details: Readonly<Record<string, unknown>>): string {
  parts = [];
  const text = isInJson(details) ? JSON.stringify([call, details, parts]) : exactTextOf(call, details);
  parts = [];
  left = [];
  return text;
}

/**
 * Whether JSON shows all that is in an object. Of short typed arrays it shows the values: where they are, and their types, become parts.
 * A list of what is left to do instead of recursion, because V8 takes 40 ms to compile what calls itself in a loop.
 */
function isInJson(details: object): boolean {
  left = [details];
  let seen = 0;
  for (let at = 0; at < left.length; at++) {
    const entries = left[at] as Readonly<Record<string, unknown>>;
    const before = seen;
    for (const name in entries) {
      const value = entries[name];
      if (value !== undefined) seen++;
      if (typeof value === 'string') continue;
      if (typeof value === 'object' && value !== null) {
        left.push(value);
        if (!ArrayBuffer.isView(value)) continue;
        if (!isShort(value)) return false;
        parts.push(seen, value.constructor.name);
      } else if (!isShown(value)) return false;
    }
    // A list shows what is not there as null.
    if (seen > MOST_ENTRIES || (Array.isArray(entries) && seen - before !== entries.length)) return false;
  }
  return true;
}

const MOST_ENTRIES = 1000;

/** JSON is slow with typed arrays, and of other views it shows nothing. */
const isShort = (view: ArrayBufferView): boolean => view.byteLength <= 64 && 'length' in view;

function isShown(value: unknown): boolean {
  if (typeof value === 'number') return isPlain(value);
  return value === null || value === undefined || typeof value === 'boolean';
}

/** JSON has no -0, no NaN and no infinity. */
const isPlain = (value: number): boolean => Number.isFinite(value) && !Object.is(value, -0);

/** As {@link textOfCall}, whatever the order of an object's entries. Those that are undefined or functions are ignored. */
export function exactTextOf(call: string, details: Readonly<Record<string, unknown>>): string {
  parts = [call];
  addEntries(details);
  const text = JSON.stringify(parts);
  parts = [];
  return text;
}

/** A 64-bit hash of a text, as two 32-bit numbers. */
export function digestOf(text: string): [number, number] {
  return digestIn(newHash().update(text));
}

export function newHash(): Hash {
  return process.getBuiltinModule('node:crypto').createHash('sha256');
}

export function digestIn(hash: Hash): [number, number] {
  const bytes = hash.digest();
  return [bytes.readUInt32LE(0), bytes.readUInt32LE(4)];
}

// Module variables, because the walk is recursive and nothing of it is asynchronous.
let parts: (string | number | null)[] = [];
let left: object[] = [];

/** What follows in the list. Nothing stands before a text, and null is itself. */
const KINDS = { true: 1, false: 2, number: 3, bigint: 4, list: 5, object: 6, end: 7, bytes: 8 };

function addNumber(value: number): void {
  // All NaNs are equal.
  parts.push(KINDS.number, isPlain(value) ? value : Object.is(value, -0) ? '-0' : String(value));
}

function addBytes(view: ArrayBufferView): void {
  const { buffer, byteOffset, byteLength } = view;
  parts.push(KINDS.bytes, view.constructor.name, Buffer.from(buffer, byteOffset, byteLength).toString('latin1'));
}

function addValue(value: unknown): void {
  if (typeof value === 'string') parts.push(value);
  else if (typeof value === 'number') addNumber(value);
  else if (typeof value === 'boolean') parts.push(value ? KINDS.true : KINDS.false);
  else if (typeof value === 'bigint') parts.push(KINDS.bigint, String(value));
  else if (ArrayBuffer.isView(value)) addBytes(value);
  else if (Array.isArray(value)) {
    parts.push(KINDS.list, value.length);
    for (const item of value) addValue(item);
  } else if (typeof value === 'object' && value !== null) addObject(value);
  // In an array, undefined and functions count as null, as in JSON.
  else parts.push(null);
}

function addObject(value: object): void {
  // As in JSON: a URL counts as its text.
  if ('toJSON' in value && typeof value.toJSON === 'function') addValue((value.toJSON as () => unknown)());
  else addEntries(value as Record<string, unknown>);
}

function addEntries(entries: Readonly<Record<string, unknown>>): void {
  parts.push(KINDS.object);
  for (const name of Object.keys(entries).sort()) {
    const value = entries[name];
    if (value === undefined || typeof value === 'function') continue;
    parts.push(name);
    addValue(value);
  }
  parts.push(KINDS.end);
}

/** The arguments of a collective call as text, by name. They must be the same on all ranks. */
export type CallDescription = Readonly<Record<string, string>>;

/** Describes a call and its arguments in a form that can be compared between ranks. */
export function describeCall(call: string, details: Readonly<Record<string, unknown>>): CallDescription {
  const description: Record<string, string> = { call };
  // Sorted: the descriptions are compared as texts.
  const named = Object.entries(details).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, value] of named) if (value !== undefined) description[name] = textOf(value);
  return description;
}

/** Longer texts are cut to this length; a hash stands for the whole. */
const MAX_TEXT = 2000;

function textOf(value: unknown): string {
  const text = JSON.stringify(value, (_key, item: unknown) => {
    // Objects and not strings: a string that looks the same is another value.
    if (typeof item === 'bigint') return { bigint: String(item) };
    if (typeof item === 'number' && (!Number.isFinite(item) || Object.is(item, -0)))
      return { number: Object.is(item, -0) ? '-0' : String(item) };
    if (ArrayBuffer.isView(item))
      return { [item.constructor.name]: [...new Uint8Array(item.buffer, item.byteOffset, item.byteLength)] };
    if (typeof item === 'function') return undefined;
    return item;
  });
  if (text === undefined) return String(value);
  return text.length <= MAX_TEXT
    ? text
    : `${text.slice(0, MAX_TEXT)}... (${text.length} characters, hash ${hashOf(text)})`;
}

function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash >>> 0;
}
