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

/** Blocking variants of the methods of {@link ByteStorage}. */
export interface BlockingStorage {
  size(): number;
  read(into: Uint8Array, offset: number): number;
  write(parts: readonly Uint8Array[], offset: number): void;
  truncate(size: number): void;
  sync(): void;
  close(): void;
}

/** What a storage did since it was made. */
export interface StorageStatistics {
  /** Reads and writes; of a URL, requests to the server. */
  requests: number;
  /** Bytes that these brought or took. */
  bytes: number;
  /** Reads that a cache answered. */
  cached: number;
}

const statistics = new WeakMap<ByteStorage, StorageStatistics>();
/** Storages with a cache of their own know what they did; others are counted by whoever uses them. */
const counting = new WeakSet<ByteStorage>();

export function statisticsOf(storage: ByteStorage): StorageStatistics {
  let found = statistics.get(storage);
  if (!found) {
    found = { requests: 0, bytes: 0, cached: 0 };
    statistics.set(storage, found);
  }
  return found;
}

/** The storage counts by itself, in `own`. */
export function countsItself(storage: ByteStorage, own: StorageStatistics): void {
  statistics.set(storage, own);
  counting.add(storage);
}

/** Counts a read or a write of a storage that does not count by itself. */
export function countRequest(storage: ByteStorage, bytes: number): number {
  if (counting.has(storage)) return bytes;
  const found = statisticsOf(storage);
  found.requests++;
  found.bytes += bytes;
  return bytes;
}

/** Fills buffers one after the other from `offset` on, as readv does; the result is the number of bytes. */
export interface ScatteredReads {
  read(parts: readonly Uint8Array[], offset: number): Promise<number>;
  readSync(parts: readonly Uint8Array[], offset: number): number;
}

/** Not methods of a storage: a copy of one with a `read` of its own must see all reads. */
const scattered = new WeakMap<ByteStorage, ScatteredReads>();

export function readsScattered(storage: ByteStorage, reads: ScatteredReads): void {
  scattered.set(storage, reads);
}

/** undefined: the storage has only `read`. */
export function scatteredReadsOf(storage: ByteStorage): ScatteredReads | undefined {
  return import.meta.page ? undefined : scattered.get(storage);
}

/** The subfiles that hold a file's data. Each is created under a temporary name and renamed when the file itself is published. */
export interface Subfiles {
  /** The path of subfile number `g`, for messages. */
  name(g: number): string;
  /** undefined if it does not exist. With a token: the subfile that was created with it and is not yet published. */
  open(g: number, writing: boolean, token?: string): ByteStorage | undefined;
  create(g: number, token: string): ByteStorage;
  publish(g: number, token: string, durable: boolean): void;
  discard(g: number, token: string): void;
  /** Removes leftovers of earlier files of that name: subfiles from number `count` on, and those that were never published. */
  tidy(count: number): void;
}

/** A file open for writing: its storage and its write lock. */
export interface WriteTarget {
  readonly storage: ByteStorage;
  /** The temporary path of a new file that is not yet published, for other ranks that write into it. */
  readonly at?: string;
  /** Releases the write lock: on close, and when opening fails. */
  release(): void;
  /** Renames a new file to its final name. With `durable` the name survives a power loss. */
  publish(durable: boolean): void;
  /** Removes a new file that was not published. */
  discard(): void;
}

/** The target for a storage that the caller provides: nothing to lock, nothing to rename. */
export function plainTarget(storage: ByteStorage): WriteTarget {
  return { storage, release() {}, publish() {}, discard() {} };
}

/** An opened file: its storage, and what belongs to it on disk. */
export interface Source {
  /** null if the storage is not a local file. */
  readonly path: string | null;
  readonly storage: ByteStorage;
  /** null if the file is open for reading only. */
  readonly target: WriteTarget | null;
  /** null if the storage is not a local file. */
  readonly subfiles: Subfiles | null;
}

export const isPath = (source: unknown): source is string | URL => typeof source === 'string' || source instanceof URL;

/** Throws OPTION unless `source` has the methods of a storage. */
export function checkStorage(source: unknown): void {
  const storage = source as Partial<ByteStorage> | null;
  if (
    typeof storage === 'object' &&
    storage !== null &&
    typeof storage.read === 'function' &&
    typeof storage.size === 'function'
  )
    return;
  throw new H5LogError('OPTION', 'a path, a URL, a Blob, an ArrayBuffer, a Uint8Array or a storage is needed');
}

/** Thrown by every call on a storage that was closed. */
export function closedError(name: string): H5LogError {
  return new H5LogError('CLOSED', `${name} is closed`, { file: name });
}

/** Thrown by every change to a storage that was opened for reading. */
export function readOnlyError(name: string): H5LogError {
  return new H5LogError('READ_ONLY', `${name} is read only`, { file: name });
}

/** Thrown when bytes in memory are opened for writing: nobody would see what was written. */
export function bytesError(): H5LogError {
  return new H5LogError('READ_ONLY', 'bytes are only read; to write, open memoryStorage(bytes) and take its bytes()');
}

/** Wraps an error of the system in an H5LogError that names the file and the offset; an H5LogError passes unchanged. */
export function storageFailure(name: string, doing: string, cause: unknown, offset?: number): H5LogError {
  if (isH5LogError(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const where = offset === undefined ? '' : ` at byte ${offset}`;
  return new H5LogError('STORAGE', `${name}: ${doing}${where} failed: ${reason}`, { file: name, offset, cause });
}

/**
 * Throws unless an offset or a size is a whole number from 0 to 2^53 - 1. Node takes -1 for "the current position": a wrong
 * offset would write somewhere instead of failing.
 */
export function checkPosition(name: string, position: number): number {
  if (Number.isSafeInteger(position) && position >= 0) return position;
  throw new H5LogError('STORAGE', `${name}: ${position} is not a valid offset or size`, { file: name });
}
