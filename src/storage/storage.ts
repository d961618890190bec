import { H5LogError, isH5LogError } from '../base/errors.ts';

/**
 * Where a file's bytes live. The blocking half is optional: without it (http, Blob) every ...Sync call throws UNSUPPORTED.
 * Without `write` the storage is read only.
 */
export interface ByteStorage {
  readonly name: string;
  size(): Promise<number>;
  /** Fills `into` from `offset`; resolves with the number of bytes, which is less than asked only at the end. */
  read(into: Uint8Array, offset: number): Promise<number>;
  close(): Promise<void>;
  write?(parts: readonly Uint8Array[], offset: number): Promise<void>;
  truncate?(size: number): Promise<void>;
  sync?(): Promise<void>;
  readonly blocking?: BlockingStorage;
}

/** The same calls, done when they return. */
export interface BlockingStorage {
  size(): number;
  read(into: Uint8Array, offset: number): number;
  write(parts: readonly Uint8Array[], offset: number): void;
  truncate(size: number): void;
  sync(): void;
  close(): void;
}

/** The files beside a file that hold its data. They are made under temporary names and get their own when the file is there. */
export interface Subfiles {
  /** Where subfile number `g` is, for messages. */
  name(g: number): string;
  /** undefined: there is none. With a token: the one of that file which was not given its name yet. */
  open(g: number, writing: boolean, token?: string): ByteStorage | undefined;
  create(g: number, token: string): ByteStorage;
  publish(g: number, token: string, durable: boolean): void;
  discard(g: number, token: string): void;
  /** Removes what earlier files of that name left behind: subfiles from number `count` on, and those that never got a name. */
  tidy(count: number): void;
}

/** A file that may be written: its bytes, and the right to be the only writer. */
export interface WriteTarget {
  readonly storage: ByteStorage;
  /** Where a new file is until it has its name, for others who write into it. */
  readonly at?: string;
  /** Gives the right up; at the end, or when opening failed. */
  release(): void;
  /** Makes a new file appear under its name. `durable` also survives a power loss. */
  publish(durable: boolean): void;
  /** Removes a new file that was never published. */
  discard(): void;
}

/** A storage of the caller's own: nothing to lock, nothing to rename. */
export function plainTarget(storage: ByteStorage): WriteTarget {
  return { storage, release() {}, publish() {}, discard() {} };
}

/** Where a file is, and what was taken for it. */
export interface Source {
  /** null for what is not a file of this machine. */
  readonly path: string | null;
  readonly storage: ByteStorage;
  /** null: the file is only read. */
  readonly target: WriteTarget | null;
  /** The files beside this one; null where nothing is beside it. */
  readonly subfiles: Subfiles | null;
}

export const isPath = (source: unknown): source is string | URL => typeof source === 'string' || source instanceof URL;

/** Refuses what is neither a path nor anything that bytes can be read from. */
export function checkStorage(source: unknown): void {
  const storage = source as Partial<ByteStorage> | null;
  if (
    typeof storage === 'object' &&
    storage !== null &&
    typeof storage.read === 'function' &&
    typeof storage.size === 'function'
  )
    return;
  throw new H5LogError('OPTION', 'a path, a URL, a Blob or a storage is needed');
}

/** The error of every call on a storage that was closed. */
export function closedError(name: string): H5LogError {
  return new H5LogError('CLOSED', `${name} is closed`, { file: name });
}

/** The error of every change to a storage that was opened for reading. */
export function readOnlyError(name: string): H5LogError {
  return new H5LogError('READ_ONLY', `${name} is read only`, { file: name });
}

/** Wraps what the system threw; an error that is ours already passes unchanged. */
export function storageFailure(name: string, doing: string, cause: unknown, offset?: number): H5LogError {
  if (isH5LogError(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const where = offset === undefined ? '' : ` at byte ${offset}`;
  return new H5LogError('STORAGE', `${name}: ${doing}${where} failed: ${reason}`, { file: name, offset, cause });
}

/**
 * Refuses offsets and sizes that are not whole numbers from 0 to 2^53 - 1. It matters: to the system -1 means "the current
 * position", so that a wrong offset would write somewhere instead of failing.
 */
export function checkPosition(name: string, position: number): void {
  if (Number.isSafeInteger(position) && position >= 0) return;
  throw new H5LogError('STORAGE', `${name}: ${position} is not a position in a file`, { file: name });
}
