import { H5LogError } from '../base/errors.ts';
import { unrenewed } from './http.ts';
import {
  type BlockingStorage,
  type ByteStorage,
  checkPosition,
  countRequest,
  readOnlyError,
  scatteredReadsOf,
  storageFailure,
} from './storage.ts';

/**
 * An operation on a storage. Its result is always a number: the bytes read, the size, else 0. That of `readMany`, whose reads may
 * be under way together, is the number of the first read that got too few bytes, or -1. `scatters` asks whether a read may fill a
 * list of buffers, `overlaps` whether the reads of `readMany` are under way together: 1 or 0. `flip` is the write of the superblock that
 * makes a commit visible.
 *
 * `flip`, `truncate`, `size` and reads marked `now` use the blocking half of the storage if it has one, also under
 * {@link driveAsync}: an asynchronous write of an older superblock, or a change of size, could land after a newer one.
 *
 * `wait` touches no storage: it waits for what a filter of the user promised. See {@link settle}.
 */
export type Operation = (
  | { readonly op: 'read'; readonly into: Uint8Array; readonly offset: number; readonly now?: boolean }
  | { readonly op: 'readMany'; readonly reads: readonly PlannedRead[] }
  | {
      readonly op: 'write' | 'flip';
      readonly parts: readonly Uint8Array[];
      readonly offset: number;
      /** Called while an asynchronous write is in flight, and before a blocking one. */
      readonly meanwhile?: () => void;
    }
  | { readonly op: 'truncate'; readonly size: number }
  | { readonly op: 'size' | 'sync' | 'scatters' | 'overlaps' }
  | { readonly op: 'wait'; readonly pending: Pending<unknown> }
) & {
  /** The storage to use instead of the one that the driver was given: a subfile. */
  readonly on?: ByteStorage | undefined;
};

/** A read into one buffer, or into several that are filled one after the other, where the storage `scatters`. */
interface PlannedRead {
  readonly into: Uint8Array | readonly Uint8Array[];
  readonly offset: number;
}

/** Code written once for blocking and asynchronous callers: a generator that yields operations and receives their results. */
export type Io<T> = Generator<Operation, T, number>;

/** Runs code that may fail; gives its result or its error. */
export function* attemptIo<T>(io: Io<T>): Io<{ readonly result: T } | { readonly error: unknown }> {
  try {
    return { result: yield* io };
  } catch (error) {
    return { error };
  }
}

// biome-ignore lint/correctness/useYield: a result that needs no storage, where other ranks, or other data, need one
export function* nothing<T>(value: T): Io<T> {
  return value;
}

/** A result that is on its way; `blocked` is the error of calls that cannot wait for it. */
interface Pending<T> {
  readonly promise: Promise<T>;
  blocked(): Error;
}

/** Waits for a promise; under {@link driveSync} it throws. */
export function* settle<T>(pending: Pending<T>): Io<T> {
  let result: { readonly value: T } | undefined;
  let reason: unknown;
  // Not rejected: the error of a filter is no error of the storage.
  const promise = pending.promise.then(
    (value) => {
      result = { value };
    },
    (error: unknown) => {
      reason = error;
    },
  );
  yield { op: 'wait', pending: { promise, blocked: () => pending.blocked() } };
  if (!result) throw reason;
  return (result as { readonly value: T }).value;
}

/** Runs `io` to its end without returning to the event loop. */
export function driveSync<T>(storage: ByteStorage, io: Io<T>): T {
  let step = io.next();
  while (!step.done) {
    let answer: number;
    if (step.value.op === 'wait') {
      step = io.throw(step.value.pending.blocked());
      continue;
    }
    try {
      // Not before the loop: an `io` that finds everything in memory works without a blocking half.
      const target = step.value.on ?? storage;
      answer = performSync(target, blockingOf(target), step.value);
    } catch (error) {
      step = io.throw(storageError(storage, step.value, error));
      continue;
    }
    step = io.next(answer);
  }
  return step.value;
}

/** Runs `io` to its end and awaits each operation. `signal` is checked before and after each of them. */
export async function driveAsync<T>(storage: ByteStorage, io: Io<T>, signal?: AbortSignal): Promise<T>;
/** Gives up, with undefined, as soon as `stopped` says that a blocking driver has taken the work over. */
export async function driveAsync<T>(
  storage: ByteStorage,
  io: Io<T>,
  signal: undefined,
  stopped: () => boolean,
): Promise<T | undefined>;
export async function driveAsync<T>(
  storage: ByteStorage,
  io: Io<T>,
  signal?: AbortSignal,
  stopped?: () => boolean,
): Promise<T | undefined> {
  const seen = unrenewed(storage);
  let step = io.next();
  while (!step.done) {
    let answer: number;
    try {
      signal?.throwIfAborted();
      answer = await performAsync(step.value.on ?? seen, step.value);
      signal?.throwIfAborted();
    } catch (error) {
      if (stopped?.()) return undefined;
      step = io.throw(signal?.aborted ? signal.reason : storageError(storage, step.value, error));
      continue;
    }
    // Checked before `io` goes on: its next step may report the work as done although others have since gone further.
    if (stopped?.()) return undefined;
    step = io.next(answer);
  }
  return step.value;
}

function performSync(storage: ByteStorage, blocking: BlockingStorage, operation: Operation): number {
  switch (operation.op) {
    case 'wait':
      throw operation.pending.blocked();
    case 'read':
      return countRequest(storage, blocking.read(operation.into, operation.offset));
    case 'readMany':
      return operation.reads.findIndex(({ into, offset }) => {
        const count =
          'byteLength' in into ? blocking.read(into, offset) : scatteredReadsOf(storage)?.readSync(into, offset);
        return countRequest(storage, count ?? 0) < bytesOf(into);
      });
    case 'scatters':
      return scatteredReadsOf(storage) ? 1 : 0;
    case 'overlaps':
      return 0;
    case 'size':
      return checkPosition(storage.name, blocking.size());
    case 'write':
    case 'flip':
      mustWrite(storage);
      operation.meanwhile?.();
      blocking.write(operation.parts, operation.offset);
      countRequest(storage, bytesIn(operation.parts));
      return 0;
    case 'truncate':
      mustWrite(storage);
      blocking.truncate(operation.size);
      return 0;
    case 'sync':
      blocking.sync();
      return 0;
  }
}

async function performAsync(storage: ByteStorage, operation: Operation): Promise<number> {
  const { blocking } = storage;
  switch (operation.op) {
    case 'wait':
      await operation.pending.promise;
      return 0;
    case 'read':
      return countRequest(
        storage,
        operation.now && blocking
          ? blocking.read(operation.into, operation.offset)
          : await storage.read(operation.into, operation.offset),
      );
    case 'readMany':
      return readTogether(storage, operation.reads);
    case 'scatters':
      return scatteredReadsOf(storage) ? 1 : 0;
    case 'overlaps':
      return 1;
    case 'size':
      return checkPosition(storage.name, blocking ? blocking.size() : await storage.size());
    case 'write':
    case 'flip':
      if (operation.op === 'flip' && blocking) return performSync(storage, blocking, operation);
      await writeMeanwhile(writerOf(storage)(operation.parts, operation.offset), operation.meanwhile);
      countRequest(storage, bytesIn(operation.parts));
      return 0;
    case 'truncate':
      if (blocking) return performSync(storage, blocking, operation);
      mustWrite(storage);
      await storage.truncate?.(operation.size);
      return 0;
    case 'sync':
      await storage.sync?.();
      return 0;
  }
}

/** Reads that one call may have under way: as many as a browser makes to one server. */
const TOGETHER = 6;

async function readTogether(storage: ByteStorage, reads: readonly PlannedRead[]): Promise<number> {
  let next = 0;
  let short = -1;
  const work = async (): Promise<void> => {
    while (next < reads.length) {
      const i = next++;
      const { into, offset } = reads[i] as PlannedRead;
      const read = 'byteLength' in into ? storage.read(into, offset) : scatteredReadsOf(storage)?.read(into, offset);
      const count = countRequest(storage, (await read) ?? 0);
      if (count < bytesOf(into) && (short < 0 || i < short)) short = i;
    }
  };
  await Promise.all(Array.from({ length: Math.min(TOGETHER, reads.length) }, work));
  return short;
}

function bytesOf(into: PlannedRead['into']): number {
  return 'byteLength' in into ? into.byteLength : bytesIn(into);
}

function bytesIn(parts: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const part of parts) bytes += part.length;
  return bytes;
}

async function writeMeanwhile(written: Promise<void>, meanwhile: (() => void) | undefined): Promise<void> {
  try {
    meanwhile?.();
  } finally {
    await written;
  }
}

/** Runs `io` on another storage than the driver's. */
export function* onStorage<T>(storage: ByteStorage, io: Io<T>): Io<T> {
  let step = io.next();
  while (!step.done) {
    let answer: number;
    try {
      answer = yield step.value.on ? step.value : { ...step.value, on: storage };
    } catch (error) {
      step = io.throw(error);
      continue;
    }
    step = io.next(answer);
  }
  return step.value;
}

/** Runs an `io` whose bytes are known to be in memory: without a storage, so without a driver. */
export function runInMemory<T>(io: Io<T>): T {
  const step = io.next();
  if (step.done) return step.value;
  throw new H5LogError('STORAGE', 'internal error: bytes were expected in memory that are only in the file');
}

function blockingOf(storage: ByteStorage): BlockingStorage {
  if (storage.blocking) return storage.blocking;
  throw new H5LogError('UNSUPPORTED', `${storage.name} cannot be used with blocking calls; use the asynchronous form`, {
    file: storage.name,
  });
}

function mustWrite(storage: ByteStorage): void {
  if (!storage.write) throw readOnlyError(storage.name);
}

function writerOf(storage: ByteStorage): NonNullable<ByteStorage['write']> {
  if (!storage.write) throw readOnlyError(storage.name);
  return storage.write.bind(storage);
}

function storageError(driven: ByteStorage, operation: Operation, cause: unknown): H5LogError {
  const doing = operation.op === 'flip' ? 'write' : operation.op;
  const offset = 'offset' in operation ? operation.offset : undefined;
  return storageFailure((operation.on ?? driven).name, doing, cause, offset);
}
