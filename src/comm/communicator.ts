/** Every call is collective, blocking, and made in the same order on all ranks. */
export interface Communicator {
  readonly rank: number;
  readonly size: number;
  readonly kind: 'solo' | 'threads' | 'mpi';
  barrier(): void;
  bcast(bytes: Uint8Array | null, root: number): Uint8Array;
  allreduce(values: Float64Array, op: 'sum' | 'min' | 'max'): Float64Array;
  exscan(values: Float64Array): Float64Array;
  gather(bytes: Uint8Array, root: number): Uint8Array[] | null;
  allgather(bytes: Uint8Array): Uint8Array[];
  split(color: number): Communicator;
  abort(code: number): never;
  close(): void;
}

/** A communicator with a timeout, as all communicators of this package are. */
export interface TimeoutCommunicator extends Communicator {
  /** Milliseconds that a collective waits for the other ranks before it fails. Infinity by default; inherited by split. */
  timeout: number;
}

export function hasTimeout(comm: Communicator): comm is TimeoutCommunicator {
  return typeof (comm as Partial<TimeoutCommunicator>).timeout === 'number';
}

/** A file that the ranks of a communicator write collectively. */
export interface CollectiveFile {
  /** Collective: each rank passes its own parts, which may be none. The first failure is thrown on all ranks. */
  writeAtAll(parts: readonly Uint8Array[], offset: number): void;
  sync(): void;
  close(): void;
}

/** A communicator that can open files for collective writes. */
export interface FileCommunicator extends Communicator {
  openFile(path: string): CollectiveFile;
}

export function canOpenFiles(comm: Communicator): comm is FileCommunicator {
  return typeof (comm as Partial<FileCommunicator>).openFile === 'function';
}

// The functions problemOf... return what is wrong with an argument of a collective, in words, or undefined. Callers may be plain
// JavaScript.

export type Reduction = 'sum' | 'min' | 'max';

/** The reductions; their indexes here are their codes in messages. */
export const reductions: readonly Reduction[] = ['sum', 'min', 'max'];

export function problemOfRoot(root: unknown, size: number): string | undefined {
  if (Number.isInteger(root) && (root as number) >= 0 && (root as number) < size) return undefined;
  return `there is no root ${say(root)}, the ranks are 0 to ${size - 1}`;
}

export function problemOfBytes(bytes: unknown): string | undefined {
  return bytes instanceof Uint8Array ? undefined : `a Uint8Array is needed, not ${say(bytes)}`;
}

export function problemOfValues(values: unknown): string | undefined {
  return values instanceof Float64Array ? undefined : `a Float64Array is needed, not ${say(values)}`;
}

export function problemOfReduction(op: unknown): string | undefined {
  return reductions.includes(op as Reduction) ? undefined : `the operation is 'sum', 'min' or 'max', not ${say(op)}`;
}

/** A colour must be one that MPI accepts: a whole number of 31 bits. */
export function problemOfColor(color: unknown): string | undefined {
  if (Number.isInteger(color) && (color as number) >= 0 && (color as number) < 2 ** 31) return undefined;
  return `a colour is a whole number from 0 to 2147483647, not ${say(color)}`;
}

export function problemOfTimeout(timeout: unknown): string | undefined {
  if (typeof timeout === 'number' && timeout > 0) return undefined;
  return `a timeout is a number of milliseconds above 0, or Infinity, not ${say(timeout)}`;
}

function say(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'object' && value !== null) return `a value of type ${value.constructor?.name ?? 'object'}`;
  if (typeof value === 'function') return 'a function';
  return String(value);
}
