import { H5LogError } from '../base/errors.ts';
import { BlockCache } from './block-cache.ts';
import {
  type BlockingStorage,
  type ByteStorage,
  checkPosition,
  closedError,
  countsItself,
  storageFailure,
} from './storage.ts';

// Files that a browser hands out: a Blob that a user chose, and files of the origin private file system (OPFS).

/** Reading a slice copies it once more: large reads are split into slices of this size, so that the copy stays small. */
const SLICE_SIZE = 16 * 2 ** 20;

/** A Blob, or a File that a user chose in a browser; read only, and only asynchronously. */
export function blobStorage(blob: Blob): ByteStorage {
  if (typeof (blob as Blob | undefined)?.size !== 'number') throw new H5LogError('OPTION', 'a Blob is needed');
  const name = 'name' in blob && typeof blob.name === 'string' ? blob.name : 'blob';
  let closed = false;
  const statistics = { requests: 0, bytes: 0, cached: 0 };
  const cache = new BlockCache(
    async (into, offset) => {
      statistics.requests++;
      statistics.bytes += into.byteLength;
      for (let at = 0; at < into.byteLength; at += SLICE_SIZE) {
        const end = Math.min(at + SLICE_SIZE, into.byteLength);
        const bytes = new Uint8Array(await blob.slice(offset + at, offset + end).arrayBuffer());
        if (bytes.byteLength !== end - at) {
          throw new H5LogError('STORAGE', `${name}: ${bytes.byteLength} of ${end - at} bytes were read`, {
            file: name,
            offset,
          });
        }
        into.set(bytes, at);
      }
    },
    blob.size,
    statistics,
  );
  const storage: ByteStorage = {
    name,
    async size() {
      if (closed) throw closedError(name);
      return blob.size;
    },
    async read(into, offset) {
      if (closed) throw closedError(name);
      checkPosition(name, offset);
      try {
        return await cache.read(into, offset);
      } catch (cause) {
        // A file that changed on disk after the user chose it rejects with NotReadableError.
        throw storageFailure(name, 'read', cause, offset);
      }
    },
    async close() {
      closed = true;
    },
  };
  countsItself(storage, statistics);
  return storage;
}

/** What h5log needs of a browser's FileSystemFileHandle. `createSyncAccessHandle` exists in dedicated workers only. */
export interface OpfsHandle {
  readonly name: string;
  getFile(): Promise<Blob>;
  createSyncAccessHandle?(): Promise<OpfsAccess>;
}

/** What h5log needs of a browser's FileSystemSyncAccessHandle. */
export interface OpfsAccess {
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  getSize(): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

/**
 * A file in the origin private file system of a browser. In a dedicated worker it is read and written through a sync access
 * handle, which the first use takes and `close` gives back: one at a time has the file, others get LOCKED. From then on it has
 * the blocking half as well. In a page, and with mode `'r'`, it is only read, without a lock, beside a worker that writes it.
 *
 * ```ts
 * const folder = await navigator.storage.getDirectory();
 * const file = await File.create(opfsStorage(await folder.getFileHandle('run.h5', { create: true })));
 * ```
 */
export function opfsStorage(handle: OpfsHandle, mode: 'r' | 'r+' = 'r+'): ByteStorage {
  if (mode === 'r') return snapshots(handle);
  if (!handle.createSyncAccessHandle) return { ...snapshots(handle), ...notHere(handle.name) };
  const file = new AccessedFile(handle);
  return {
    name: file.name,
    get blocking() {
      return file.blocking;
    },
    size: async () => (await file.opened()).size(),
    read: async (into, offset) => (await file.opened()).read(into, offset),
    write: async (parts, offset) => (await file.opened()).write(parts, offset),
    truncate: async (size) => (await file.opened()).truncate(size),
    sync: async () => (await file.opened()).sync(),
    close: () => file.close(),
  } as ByteStorage;
}

/** A file whose sync access handle is taken at the first use, because only an asynchronous call can take it. */
class AccessedFile {
  readonly name: string;
  blocking: BlockingStorage | undefined;
  readonly #handle: OpfsHandle;
  #opening: Promise<BlockingStorage> | undefined;
  #closed = false;

  constructor(handle: OpfsHandle) {
    this.#handle = handle;
    this.name = handle.name;
  }

  async opened(): Promise<BlockingStorage> {
    if (this.#closed && !this.#opening) throw closedError(this.name);
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#closed = true;
    (await this.#opening?.catch(() => undefined))?.close();
  }

  async #open(): Promise<BlockingStorage> {
    try {
      const access = await this.#handle.createSyncAccessHandle?.();
      this.blocking = blockingHalf(this.name, access as OpfsAccess);
      return this.blocking;
    } catch (cause) {
      // The next use tries again: whoever has the file may have closed it by then.
      this.#opening = undefined;
      if ((cause as Error).name !== 'NoModificationAllowedError') throw storageFailure(this.name, 'open', cause);
      const message = `${this.name} is open in another tab or worker; to read beside it: opfsStorage(handle, 'r')`;
      throw new H5LogError('LOCKED', message, { file: this.name, cause });
    }
  }
}

function blockingHalf(name: string, access: OpfsAccess): BlockingStorage {
  let closed = false;
  const run = <T>(doing: string, position: number | undefined, work: () => T): T => {
    if (closed) throw closedError(name);
    if (position !== undefined) checkPosition(name, position);
    try {
      return work();
    } catch (cause) {
      throw storageFailure(name, doing, cause, position);
    }
  };
  return {
    size: () => run('size', undefined, () => access.getSize()),
    read: (into, offset) =>
      run('read', offset, () => {
        let done = 0;
        for (let count = 1; count > 0 && done < into.byteLength; done += count)
          count = access.read(into.subarray(done), { at: offset + done });
        return done;
      }),
    write: (parts, offset) => run('write', offset, () => writeParts(access, parts, offset)),
    truncate: (size) =>
      run('truncate', size, () => {
        access.truncate(size);
        // In a private window without space Chromium leaves the size as it was, and throws nothing.
        if (access.getSize() !== size) throw noSpace();
      }),
    sync: () => run('sync', undefined, () => access.flush()),
    close() {
      if (!closed) access.close();
      closed = true;
    },
  };
}

const noSpace = (): Error => new Error('the browser gives this page no more space');

/** Parts of less than this are joined: a call may go to another process and back. */
const SMALL_PART = 2 ** 16;

function writeParts(access: OpfsAccess, parts: readonly Uint8Array[], offset: number): void {
  let at = offset;
  const put = (bytes: Uint8Array): void => {
    for (let done = 0; done < bytes.byteLength; ) {
      const count = access.write(bytes.subarray(done), { at });
      // In a private window Chromium reports a full disk as a count of nearly 2^32.
      if (count === 0 || count > bytes.byteLength - done) throw noSpace();
      done += count;
      at += count;
    }
  };
  const joined = new Uint8Array(parts.length > 1 ? SMALL_PART : 0);
  let length = 0;
  for (const part of parts) {
    if (length + part.byteLength > joined.byteLength) {
      put(joined.subarray(0, length));
      length = 0;
    }
    if (part.byteLength >= joined.byteLength) put(part);
    else {
      joined.set(part, length);
      length += part.byteLength;
    }
  }
  put(joined.subarray(0, length));
}

/** A worker may write between the two steps of a read; then the browser refuses the second. */
const ATTEMPTS = 5;

/** Reads what the file holds at each call, without a lock. Nothing is kept: a worker may be writing it. */
function snapshots(handle: OpfsHandle): ByteStorage {
  const { name } = handle;
  let closed = false;
  const run = async <T>(doing: string, offset: number, work: (file: Blob) => Promise<T>): Promise<T> => {
    checkPosition(name, offset);
    for (let attempt = 1; ; attempt++) {
      if (closed) throw closedError(name);
      try {
        return await work(await handle.getFile());
      } catch (cause) {
        const isChanged = (cause as Error).name === 'NotReadableError';
        if (!isChanged || attempt === ATTEMPTS) throw storageFailure(name, doing, cause, offset);
      }
    }
  };
  return {
    name,
    size: () => run('size', 0, async (file) => file.size),
    read: (into, offset) =>
      run('read', offset, async (file) => {
        const bytes = new Uint8Array(await file.slice(offset, offset + into.byteLength).arrayBuffer());
        into.set(bytes);
        return bytes.byteLength;
      }),
    async close() {
      closed = true;
    },
  };
}

/** A page could only rewrite the whole file for each change (createWritable copies it). */
function notHere(name: string): Pick<Required<ByteStorage>, 'write' | 'truncate' | 'sync'> {
  const refuse = async (): Promise<never> => {
    throw new H5LogError('UNSUPPORTED', `${name}: only a dedicated worker can write to OPFS`, { file: name });
  };
  return { write: refuse, truncate: refuse, sync: refuse };
}
