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
  let digest: [number, number];
  let describe: () => CallDescription;
  try {
    const given = details();
    digest = digestOf(call, given);
    describe = () => describeCall(call, given);
  } catch (error) {
    const bad = unusable(error);
    digest = digestOf('', bad);
    describe = () => bad;
  }
  const [low, high] = digest;
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
 * A 64-bit hash of a call and its arguments, as two 32-bit numbers. The order of an object's entries does not matter; entries that
 * are undefined or functions are ignored. It never serializes to text, because it is computed for every collective call.
 */
export function digestOf(call: string, details: Readonly<Record<string, unknown>>): [number, number] {
  low = 0x811c9dc5;
  high = 0x9e3779b9;
  addText(call);
  addEntries(details);
  return [low >>> 0, high >>> 0];
}

// The state of the hash. Module variables, because the walk is recursive and nothing of it is asynchronous.
let low = 0;
let high = 0;

const KINDS = { null: 1, true: 2, false: 3, number: 4, bigint: 5, string: 6, list: 7, object: 8, bytes: 9 };

const float = new Float64Array(1);
const halves = new Int32Array(float.buffer);

function add(word: number): void {
  low = Math.imul(low ^ word, 0xcc9e2d51);
  low ^= low >>> 15;
  high = Math.imul((high + word) | 0, 0x85ebca6b);
  high ^= high >>> 13;
}

function addText(text: string): void {
  add(KINDS.string);
  const { length } = text;
  add(length);
  // Two characters a step: most of the time goes into texts of attributes.
  const even = length & ~1;
  let [a, b] = [low, high];
  for (let i = 0; i < even; i += 2) {
    const word = text.charCodeAt(i) | (text.charCodeAt(i + 1) << 16);
    a = Math.imul(a ^ word, 0xcc9e2d51);
    a ^= a >>> 15;
    b = Math.imul((b + word) | 0, 0x85ebca6b);
    b ^= b >>> 13;
  }
  low = a;
  high = b;
  if (length > even) add(text.charCodeAt(even));
}

function addNumber(value: number): void {
  add(KINDS.number);
  // -0 differs from 0, and all NaNs are equal.
  float[0] = Number.isNaN(value) ? Number.NaN : value;
  add(halves[0] as number);
  add(halves[1] as number);
}

function addBytes(view: ArrayBufferView): void {
  add(KINDS.bytes);
  addText(view.constructor.name);
  add(view.byteLength);
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  for (let i = 0; i < bytes.length; i++) add(bytes[i] as number);
}

function addValue(value: unknown): void {
  if (typeof value === 'string') addText(value);
  else if (typeof value === 'number') addNumber(value);
  else if (typeof value === 'boolean') add(value ? KINDS.true : KINDS.false);
  else if (typeof value === 'bigint') {
    add(KINDS.bigint);
    addText(String(value));
  } else if (ArrayBuffer.isView(value)) addBytes(value);
  else if (Array.isArray(value)) {
    add(KINDS.list);
    add(value.length);
    for (const item of value) addValue(item);
  } else if (typeof value === 'object' && value !== null) addObject(value);
  // In an array, undefined and functions count as null, as in JSON.
  else add(KINDS.null);
}

function addObject(value: object): void {
  // As in JSON: a URL counts as its text.
  if ('toJSON' in value && typeof value.toJSON === 'function') addValue((value.toJSON as () => unknown)());
  else addEntries(value as Record<string, unknown>);
}

function addEntries(entries: Readonly<Record<string, unknown>>): void {
  add(KINDS.object);
  const [before, above] = [low, high];
  let [sum, other] = [0, 0];
  for (const name in entries) {
    const value = entries[name];
    if (value === undefined || typeof value === 'function') continue;
    low = before;
    high = above;
    addText(name);
    addValue(value);
    sum = (sum + low) | 0;
    other = (other + high) | 0;
  }
  low = before;
  high = above;
  add(sum);
  add(other);
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
