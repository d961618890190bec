import * as fs from 'node:fs';
import { promisify } from 'node:util';
import { H5LogError } from '../../base/errors.ts';
import {
  type BlockingStorage,
  type ByteStorage,
  checkPosition,
  closedError,
  readOnlyError,
  readsScattered,
  storageFailure,
} from '../storage.ts';
import { errno, pathOf } from './path.ts';

/** As in fopen: r reads, r+ also writes, w+ creates or truncates the file, wx+ creates it and fails if it exists. */
export type NodeMode = 'r' | 'r+' | 'w+' | 'wx+';

const fstat = promisify(fs.fstat);
const read = promisify(fs.read);
const readv = promisify(fs.readv);
const writev = promisify(fs.writev);
const ftruncate = promisify(fs.ftruncate);
// fdatasync and not fsync: it makes data and size durable and leaves out the timestamps. (On macOS libuv uses F_FULLFSYNC.)
const fdatasync = promisify(fs.fdatasync);

/**
 * A local file, open from the moment this returns until it is closed. Blocking and asynchronous calls may be mixed.
 *
 * ```ts
 * const storage = nodeStorage('run.h5', 'r+');
 * ```
 *
 * `shownAs` is the name for messages, for a file that will be renamed.
 */
export function nodeStorage(
  path: string | URL,
  mode: NodeMode,
  shownAs?: string,
): ByteStorage & { readonly blocking: BlockingStorage } {
  const name = shownAs ?? pathOf(path);
  const file = new Descriptor(name, open(pathOf(path), mode));
  const { dev, ino } = fs.fstatSync(file.fd, { bigint: true });
  const blocking = blockingHalf(file, mode !== 'r');
  identities.set(blocking, `${dev}:${ino}`);
  const reading = {
    name,
    size: () => file.run('size', undefined, async () => (await fstat(file.fd)).size),
    read: (into: Uint8Array, offset: number) => file.run('read', offset, () => fill(file, into, offset)),
    close: () => file.close(),
    blocking,
  };
  const storage = mode === 'r' ? reading : { ...reading, ...writing(file) };
  readsScattered(storage, {
    read: (parts, offset) => file.run('read', offset, () => fillParts(file, parts, offset)),
    readSync: (parts, offset) => file.runSync('read', offset, () => fillPartsSync(file, parts, offset)),
  });
  return storage;
}

function writing(file: Descriptor): Required<Pick<ByteStorage, 'write' | 'truncate' | 'sync'>> {
  return {
    write: (parts, offset) => file.run('write', offset, () => put(file, parts, offset)),
    truncate: (size) =>
      file.run('truncate', undefined, async () => {
        checkPosition(file.name, size);
        await ftruncate(file.fd, size);
      }),
    sync: () => file.run('sync', undefined, () => fdatasync(file.fd)),
  };
}

const identities = new WeakMap<BlockingStorage, string>();

/** Device and inode of a file opened by {@link nodeStorage}: equal for one file, whatever its name is by now. */
export function identityOf({ blocking }: { readonly blocking: BlockingStorage }): string | undefined {
  return identities.get(blocking);
}

function blockingHalf(file: Descriptor, writable: boolean): BlockingStorage {
  const { fd, name } = file;
  // File systems that do not count links report 0 from the start.
  const hasLinkCount = writable && fs.fstatSync(fd).nlink > 0;
  const size = (): number => {
    const stat = fs.fstatSync(fd);
    // An unlinked file is gone once its descriptor is closed, and with it what is written now.
    if (hasLinkCount && stat.nlink === 0)
      throw new H5LogError('STORAGE', `${name} was removed or replaced`, { file: name });
    return stat.size;
  };
  const change = (doing: string, offset: number | undefined, work: () => void): void =>
    file.runSync(doing, offset, () => {
      if (!writable) throw readOnlyError(name);
      work();
    });
  return {
    size: () => file.runSync('size', undefined, size),
    read: (into, offset) => file.runSync('read', offset, () => fillSync(file, into, offset)),
    write: (parts, offset) => change('write', offset, () => putSync(file, parts, offset)),
    truncate: (size) =>
      change('truncate', undefined, () => {
        checkPosition(name, size);
        fs.ftruncateSync(fd, size);
      }),
    sync: () =>
      file.runSync('sync', undefined, () => {
        if (writable) fs.fdatasyncSync(fd);
      }),
    close: () => file.closeSync(),
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
    const found = fs.fstatSync(fd);
    // A directory can be opened for reading; without this check the first read would fail instead.
    if (found.isDirectory()) throw new H5LogError('STORAGE', `${name} is a directory`, { file: name });
    return mode === 'r' || !found.isFile() ? fd : withoutAccessTime(fd, name, found);
  } catch (cause) {
    fs.closeSync(fd);
    throw storageFailure(name, 'open', cause);
  }
}

/**
 * Opens a file once more, so that reads leave its time of last access alone, and closes the first descriptor: a small commit reads the
 * superblock twice, and the first read after a write would have the system write the inode. Only the owner of a file may ask for that; it cannot
 * be asked for with the first call, which may create the file and fail all the same where files belong to somebody else at once.
 */
function withoutAccessTime(fd: number, name: string, { dev, ino }: fs.Stats): number {
  // Of Linux only.
  const { O_NOATIME, O_RDWR } = fs.constants;
  if (!O_NOATIME) return fd;
  let other: number;
  try {
    other = fs.openSync(name, O_RDWR | O_NOATIME);
  } catch {
    return fd;
  }
  const found = fs.fstatSync(other);
  const isSame = found.dev === dev && found.ino === ino;
  fs.closeSync(isSame ? fd : other);
  return isSame ? other : fd;
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

function fillSync(file: Descriptor, into: Uint8Array, offset: number): number {
  checkPosition(file.name, offset);
  let filled = 0;
  while (filled < into.byteLength) {
    const length = Math.min(into.byteLength - filled, MAX_BYTES);
    const count = fs.readSync(file.fd, into, filled, length, offset + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}

/** A large read is done by several threads side by side: most of its time goes into pages of memory that are used for the first time. */
const LANES = 4;
const LARGE_READ = 8 * 2 ** 20;

async function fill(file: Descriptor, into: Uint8Array, offset: number): Promise<number> {
  checkPosition(file.name, offset);
  if (into.byteLength < LARGE_READ) return fillPiece(file, into, offset);
  const step = Math.ceil(into.byteLength / LANES);
  return sideBySide(LANES, (i) => {
    const piece = into.subarray(i * step, (i + 1) * step);
    return { length: piece.byteLength, read: () => fillPiece(file, piece, offset + i * step) };
  });
}

/**
 * Runs reads of pieces that follow one another. The sum of what they got, up to the first that got too little; all have ended by
 * then, so that the file may be closed.
 */
async function sideBySide(
  lanes: number,
  pieceOf: (i: number) => { readonly length: number; read(): Promise<number> },
): Promise<number> {
  const pieces = Array.from({ length: lanes }, (_, i) => pieceOf(i));
  const results = await Promise.allSettled(pieces.map((piece) => piece.read()));
  let filled = 0;
  for (const [i, result] of results.entries()) {
    if (result.status === 'rejected') throw result.reason;
    filled += result.value;
    if (result.value < (pieces[i]?.length ?? 0)) break;
  }
  return filled;
}

async function fillPiece(file: Descriptor, into: Uint8Array, offset: number): Promise<number> {
  let filled = 0;
  while (filled < into.byteLength) {
    const length = Math.min(into.byteLength - filled, MAX_BYTES);
    const { bytesRead } = await read(file.fd, into, filled, length, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

function fillPartsSync(file: Descriptor, parts: readonly Uint8Array[], offset: number): number {
  checkPosition(file.name, offset);
  const batches = new Batches(parts, offset);
  while (batches.left > 0) {
    const count = fs.readvSync(file.fd, batches.next(), batches.position);
    if (count === 0) break;
    batches.advance(count);
  }
  return batches.position - offset;
}

async function fillParts(file: Descriptor, parts: readonly Uint8Array[], offset: number): Promise<number> {
  checkPosition(file.name, offset);
  const step = Math.ceil(parts.length / LANES);
  let at = offset;
  return sideBySide(LANES, (i) => {
    const some = parts.slice(i * step, (i + 1) * step);
    const batches = new Batches(some, at);
    const { left: length, position } = batches;
    at += length;
    const read = async (): Promise<number> => {
      while (batches.left > 0) {
        const { bytesRead } = await readv(file.fd, batches.next(), batches.position);
        if (bytesRead === 0) break;
        batches.advance(bytesRead);
      }
      return batches.position - position;
    };
    return { length, read };
  });
}

function putSync(file: Descriptor, parts: readonly Uint8Array[], offset: number): void {
  checkPosition(file.name, offset);
  const batches = new Batches(parts, offset);
  while (batches.left > 0) {
    const batch = batches.next();
    const { position } = batches;
    const [only] = batch;
    // A superblock is one buffer, which Node writes sooner than a list.
    const written =
      batch.length === 1 && only
        ? fs.writeSync(file.fd, only, 0, only.byteLength, position)
        : fs.writevSync(file.fd, batch, position);
    batches.advance(written);
  }
}

async function put(file: Descriptor, parts: readonly Uint8Array[], offset: number): Promise<void> {
  checkPosition(file.name, offset);
  const batches = new Batches(parts, offset);
  while (batches.left > 0) {
    const { bytesWritten } = await writev(file.fd, batches.next(), batches.position);
    batches.advance(bytesWritten);
  }
}

const close = promisify(fs.close);

/**
 * A file descriptor that is never closed while an operation is in flight: the system reuses the number for the next file that
 * is opened, and a late write would land there.
 */
class Descriptor {
  readonly name: string;
  readonly fd: number;
  #running = 0;
  #idle: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(name: string, fd: number) {
    this.name = name;
    this.fd = fd;
  }

  /** Runs an asynchronous operation and keeps the descriptor open until it ends. */
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

  /** Refuses new operations at once and closes after the last one in flight. Every call returns the same promise. */
  close(): Promise<void> {
    this.#closing ??= this.#closeWhenIdle();
    return this.#closing;
  }

  /** If operations are in flight, the descriptor is closed after the last one: a blocking call cannot wait for them. */
  closeSync(): void {
    if (this.#closing) return;
    if (this.#running > 0) {
      // A later close() still gets the error. Without one, an unhandled rejection must not end the process.
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

/** `writev` takes at most IOV_MAX parts, which is 1024 on Linux and macOS. */
const MAX_PARTS = 1024;
/** Node refuses 2 GiB and more in one call; half of that is safe and no slower. */
const MAX_BYTES = 2 ** 30;

/**
 * Splits a list of buffers into batches that one `writev` accepts, and continues after a short write.
 *
 * ```ts
 * const batches = new Batches(parts, offset);
 * while (batches.left > 0) batches.advance(writevSync(fd, batches.next(), batches.position));
 * ```
 */
export class Batches {
  /** Bytes not written yet. */
  left: number;
  /** Where in the file the next batch goes. */
  position: number;
  readonly #parts: readonly Uint8Array[];
  readonly #maxBytes: number;
  readonly #maxParts: number;
  #part = 0;
  #within = 0;

  constructor(parts: readonly Uint8Array[], offset: number, maxBytes = MAX_BYTES, maxParts = MAX_PARTS) {
    this.#parts = parts;
    this.#maxBytes = maxBytes;
    this.#maxParts = maxParts;
    this.position = offset;
    this.left = 0;
    for (const part of parts) this.left += part.byteLength;
  }

  /** The next views to write at `position`; never empty while bytes are left. */
  next(): Uint8Array[] {
    // Small buffers are not copied into larger ones: measured, that gains 0.1 us a buffer of 24 bytes and loses more from 512 on.
    const batch: Uint8Array[] = [];
    let room = this.#maxBytes;
    let within = this.#within;
    for (let i = this.#part; i < this.#parts.length && room > 0 && batch.length < this.#maxParts; i++) {
      const part = this.#parts[i] as Uint8Array;
      const length = Math.min(part.byteLength - within, room);
      if (length > 0) {
        batch.push(length === part.byteLength ? part : part.subarray(within, within + length));
        room -= length;
      }
      within = 0;
    }
    // The lengths were added up at the start; a buffer that has been transferred since then has length 0.
    if (batch.length === 0 && this.left > 0)
      throw new H5LogError('STORAGE', 'a buffer was detached while being written');
    return batch;
  }

  /** Records how many bytes of the last batch were written. */
  advance(written: number): void {
    // POSIX allows 0 only for an empty request; going on could loop forever.
    if (written <= 0) throw new H5LogError('STORAGE', `the system wrote none of ${this.left} bytes`);
    this.left -= written;
    this.position += written;
    while (written > 0 && this.#part < this.#parts.length) {
      const rest = (this.#parts[this.#part] as Uint8Array).byteLength - this.#within;
      if (written < rest) {
        this.#within += written;
        return;
      }
      written -= Math.max(rest, 0);
      this.#part++;
      this.#within = 0;
    }
  }
}
