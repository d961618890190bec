import { H5LogError } from '../base/errors.ts';
import { type BlockingStorage, type ByteStorage, readOnlyError, storageFailure } from './storage.ts';

/**
 * What code that needs bytes may wish for. The answer is always a number: the bytes read, the size, else 0.
 * `flip`, `truncate`, `size` and reads marked `now` go through the blocking half whenever there is one, also when driven
 * asynchronously: an asynchronous write of an older superblock, or a change of size, can land after a newer one.
 */
export type Operation = (
  | { readonly op: 'read'; readonly into: Uint8Array; readonly offset: number; readonly now?: boolean }
  | {
      readonly op: 'write' | 'flip';
      readonly parts: readonly Uint8Array[];
      readonly offset: number;
      /** Done while the bytes are on their way, or before them. */
      readonly meanwhile?: () => void;
    }
  | { readonly op: 'truncate'; readonly size: number }
  | { readonly op: 'size' | 'sync' }
) & {
  /** Another storage than the one that is driven: a file of several parts. */
  readonly on?: ByteStorage | undefined;
};

/** Code written once for both worlds: it yields wishes and gets their answers. */
export type Io<T> = Generator<Operation, T, number>;

/** Runs to the end without returning to the event loop. */
export function driveSync<T>(storage: ByteStorage, io: Io<T>): T {
  let step = io.next();
  while (!step.done) {
    let answer: number;
    try {
      // Only now: what is in memory already needs no storage.
      const target = step.value.on ?? storage;
      answer = grantSync(target, mustBlock(target), step.value);
    } catch (error) {
      step = io.throw(storageError(storage, step.value, error));
      continue;
    }
    step = io.next(answer);
  }
  return step.value;
}

/** Runs to the end, awaiting each wish. `signal` is looked at between wishes. */
export async function driveAsync<T>(storage: ByteStorage, io: Io<T>, signal?: AbortSignal): Promise<T>;
/** With `stopped`, another driver may take the work over: nothing more is done once it says so, and nothing is returned. */
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
  let step = io.next();
  while (!step.done) {
    let answer: number;
    try {
      signal?.throwIfAborted();
      answer = await grantAsync(step.value.on ?? storage, step.value);
      signal?.throwIfAborted();
    } catch (error) {
      if (stopped?.()) return undefined;
      step = io.throw(signal?.aborted ? signal.reason : storageError(storage, step.value, error));
      continue;
    }
    // Also here: what follows a wish may say that it is done, of work that others have long gone beyond.
    if (stopped?.()) return undefined;
    step = io.next(answer);
  }
  return step.value;
}

function grantSync(storage: ByteStorage, blocking: BlockingStorage, wish: Operation): number {
  switch (wish.op) {
    case 'read':
      return blocking.read(wish.into, wish.offset);
    case 'size':
      return blocking.size();
    case 'write':
    case 'flip':
      mustWrite(storage);
      wish.meanwhile?.();
      blocking.write(wish.parts, wish.offset);
      return 0;
    case 'truncate':
      mustWrite(storage);
      blocking.truncate(wish.size);
      return 0;
    case 'sync':
      blocking.sync();
      return 0;
  }
}

async function grantAsync(storage: ByteStorage, wish: Operation): Promise<number> {
  const { blocking } = storage;
  switch (wish.op) {
    case 'read':
      return wish.now && blocking ? blocking.read(wish.into, wish.offset) : storage.read(wish.into, wish.offset);
    case 'size':
      return blocking ? blocking.size() : storage.size();
    case 'write':
    case 'flip':
      if (wish.op === 'flip' && blocking) return grantSync(storage, blocking, wish);
      await writeMeanwhile(mustWrite(storage)(wish.parts, wish.offset), wish.meanwhile);
      return 0;
    case 'truncate':
      if (blocking) return grantSync(storage, blocking, wish);
      mustWrite(storage);
      await storage.truncate?.(wish.size);
      return 0;
    case 'sync':
      await storage.sync?.();
      return 0;
  }
}

async function writeMeanwhile(written: Promise<void>, meanwhile: (() => void) | undefined): Promise<void> {
  try {
    meanwhile?.();
  } finally {
    await written;
  }
}

/** The same code, on another storage. */
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

/** Runs code that has everything it needs in memory. */
export function runInMemory<T>(io: Io<T>): T {
  const step = io.next();
  if (step.done) return step.value;
  throw new H5LogError('STORAGE', 'something was expected in memory that is only in the file');
}

function mustBlock(storage: ByteStorage): BlockingStorage {
  if (storage.blocking) return storage.blocking;
  throw new H5LogError('UNSUPPORTED', `${storage.name} cannot be used with blocking calls; use the asynchronous form`, {
    file: storage.name,
  });
}

function mustWrite(storage: ByteStorage): NonNullable<ByteStorage['write']> {
  if (!storage.write) throw readOnlyError(storage.name);
  return storage.write.bind(storage);
}

function storageError(driven: ByteStorage, wish: Operation, cause: unknown): H5LogError {
  const { name } = wish.on ?? driven;
  const offset = 'offset' in wish ? wish.offset : undefined;
  return storageFailure(name, wish.op === 'flip' ? 'write' : wish.op, cause, offset);
}
