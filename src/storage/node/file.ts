import * as fs from 'node:fs';
import { promisify } from 'node:util';
import { H5LogError } from '../../base/errors.ts';
import { Batches, MAX_BYTES } from '../batches.ts';
import { type BlockingStorage, type ByteStorage, checkPosition, closedError, readOnlyError, storageFailure } from '../storage.ts';
import { errno, pathOf } from './path.ts';

/** As in fopen: r reads, r+ also writes, w+ makes or empties the file, wx+ makes it and refuses one that exists. */
export type NodeMode = 'r' | 'r+' | 'w+' | 'wx+';

const fstat = promisify(fs.fstat);
const read = promisify(fs.read);
const writev = promisify(fs.writev);
const ftruncate = promisify(fs.ftruncate);
// fdatasync and not fsync: it makes data and size durable and leaves out the times. (macOS: libuv does a F_FULLFSYNC.)
const fdatasync = promisify(fs.fdatasync);

/**
 * A file of this machine, open from the moment this returns until it is closed. Both halves may be mixed.
 *
 * ```ts
 * const storage = nodeStorage('run.h5', 'r+');
 * ```
 *
 * `shownAs` is the name for messages when the file will soon have another one.
 */
export function nodeStorage(
  path: string | URL,
  mode: NodeMode,
  shownAs?: string,
): ByteStorage & { readonly blocking: BlockingStorage } {
  const name = shownAs ?? pathOf(path);
  const handle = new Handle(name, open(pathOf(path), mode));
  const reading = {
    name,
    size: () => handle.run('size', undefined, async () => (await fstat(handle.fd)).size),
    read: (into: Uint8Array, offset: number) => handle.run('read', offset, () => fill(handle, into, offset)),
    close: () => handle.close(),
    blocking: blockingHalf(handle, mode !== 'r'),
  };
  if (mode === 'r') return reading;
  return {
    ...reading,
    write: (parts, offset) => handle.run('write', offset, () => put(handle, parts, offset)),
    truncate: (size) =>
      handle.run('truncate', undefined, async () => {
        checkPosition(name, size);
        await ftruncate(handle.fd, size);
      }),
    sync: () => handle.run('sync', undefined, () => fdatasync(handle.fd)),
  };
}

function blockingHalf(handle: Handle, writable: boolean): BlockingStorage {
  const { fd, name } = handle;
  // A file system that does not count links says 0 from the beginning.
  const counted = writable && fs.fstatSync(fd).nlink > 0;
  const size = (): number => {
    const stat = fs.fstatSync(fd);
    // What is written now would be gone with the descriptor.
    if (counted && stat.nlink === 0) throw new H5LogError('STORAGE', `${name} was removed or replaced`, { file: name });
    return stat.size;
  };
  const change = (doing: string, offset: number | undefined, work: () => void): void =>
    handle.runSync(doing, offset, () => {
      if (!writable) throw readOnlyError(name);
      work();
    });
  return {
    size: () => handle.runSync('size', undefined, size),
    read: (into, offset) => handle.runSync('read', offset, () => fillSync(handle, into, offset)),
    write: (parts, offset) => change('write', offset, () => putSync(handle, parts, offset)),
    truncate: (size) =>
      change('truncate', undefined, () => {
        checkPosition(name, size);
        fs.ftruncateSync(fd, size);
      }),
    sync: () =>
      handle.runSync('sync', undefined, () => {
        if (writable) fs.fdatasyncSync(fd);
      }),
    close: () => handle.closeSync(),
  };
}

function open(name: string, mode: NodeMode): number {
  let fd: number;
  try {
    fd = fs.openSync(name, mode);
  } catch (cause) {
    throw openError(name, mode, cause);
  }
  try {
    // A directory can be opened for reading; without this the first read would fail instead.
    if (fs.fstatSync(fd).isDirectory()) throw new H5LogError('STORAGE', `${name} is a directory`, { file: name });
  } catch (cause) {
    fs.closeSync(fd);
    throw storageFailure(name, 'open', cause);
  }
  return fd;
}

function openError(name: string, mode: NodeMode, cause: unknown): H5LogError {
  const details = { file: name, cause };
  switch (errno(cause)) {
    case 'ENOENT':
      return new H5LogError('NOT_FOUND', `${name} does not exist`, details);
    case 'EEXIST':
      return new H5LogError('EXISTS', `${name} exists already`, details);
    case 'EACCES':
    case 'EROFS':
    case 'EPERM':
      if (mode !== 'r') return new H5LogError('READ_ONLY', `${name} cannot be written: ${errno(cause)}`, details);
  }
  return storageFailure(name, 'open', cause);
}

function fillSync(handle: Handle, into: Uint8Array, offset: number): number {
  checkPosition(handle.name, offset);
  let filled = 0;
  while (filled < into.byteLength) {
    const length = Math.min(into.byteLength - filled, MAX_BYTES);
    const count = fs.readSync(handle.fd, into, filled, length, offset + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}

async function fill(handle: Handle, into: Uint8Array, offset: number): Promise<number> {
  checkPosition(handle.name, offset);
  let filled = 0;
  while (filled < into.byteLength) {
    const length = Math.min(into.byteLength - filled, MAX_BYTES);
    const { bytesRead } = await read(handle.fd, into, filled, length, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

function putSync(handle: Handle, parts: readonly Uint8Array[], offset: number): void {
  checkPosition(handle.name, offset);
  const batches = new Batches(parts, offset);
  while (batches.left > 0) batches.advance(fs.writevSync(handle.fd, batches.next(), batches.position));
}

async function put(handle: Handle, parts: readonly Uint8Array[], offset: number): Promise<void> {
  checkPosition(handle.name, offset);
  const batches = new Batches(parts, offset);
  while (batches.left > 0) {
    const { bytesWritten } = await writev(handle.fd, batches.next(), batches.position);
    batches.advance(bytesWritten);
  }
}

const close = promisify(fs.close);

/**
 * A file descriptor that is never closed under an operation in flight: the system gives the number to the next file opened,
 * and a late write would land there.
 */
export class Handle {
  readonly name: string;
  readonly fd: number;
  #running = 0;
  #idle: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(name: string, fd: number) {
    this.name = name;
    this.fd = fd;
  }

  /** Runs an asynchronous operation, which keeps the descriptor open until it ends. */
  async run<T>(doing: string, offset: number | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw closedError(this.name);
    this.#running++;
    try {
      return await work();
    } catch (cause) {
      throw storageFailure(this.name, doing, cause, offset);
    } finally {
      if (--this.#running === 0) this.#idle?.();
    }
  }

  runSync<T>(doing: string, offset: number | undefined, work: () => T): T {
    if (this.#closing) throw closedError(this.name);
    try {
      return work();
    } catch (cause) {
      throw storageFailure(this.name, doing, cause, offset);
    }
  }

  /** Refuses new operations at once and closes when the last one in flight has ended. Closing again gives the same end. */
  close(): Promise<void> {
    this.#closing ??= this.#closeWhenIdle();
    return this.#closing;
  }

  /** With operations in flight the descriptor is closed behind the last one, since a blocking call cannot wait for them. */
  closeSync(): void {
    if (this.#closing) return;
    if (this.#running > 0) {
      // Whoever calls close() later still gets the error; nobody doing so must not end the process.
      this.close().catch(() => undefined);
      return;
    }
    this.#closing = Promise.resolve();
    try {
      fs.closeSync(this.fd);
    } catch (cause) {
      throw storageFailure(this.name, 'close', cause);
    }
  }

  async #closeWhenIdle(): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    try {
      await close(this.fd);
    } catch (cause) {
      throw storageFailure(this.name, 'close', cause);
    }
  }
}
