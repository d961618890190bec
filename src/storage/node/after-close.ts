import { closeSync, fstatSync, openSync } from 'node:fs';
import { H5LogError } from '../../base/errors.ts';
import type { BlockingStorage, ByteStorage } from '../storage.ts';
import { nodeStorage } from './file.ts';

/** A storage with a blocking half. */
export type Blocking = ByteStorage & { readonly blocking: BlockingStorage };

/**
 * A storage that can still be read after it was closed, as objects obtained from a closed file may be. Each read then opens the
 * file at `path`, checks that it is the same file, and closes it: no descriptor waits for garbage collection.
 */
export function readableAfterClose(open: Blocking, path: string): Blocking {
  let inode: bigint | undefined;
  let closed = false;

  const close = (): void => {
    if (closed) return;
    closed = true;
    inode = inodeAt(path);
  };
  const reopen = (): Blocking => {
    const storage = nodeStorage(path, 'r', open.name);
    if (inode === undefined || inodeAt(path) === inode) return storage;
    storage.blocking.close();
    throw new H5LogError('CLOSED', `${open.name} is closed, and another file has its name now`, { file: open.name });
  };
  const use = async <T>(work: (storage: Blocking) => Promise<T>): Promise<T> => {
    if (!closed) return work(open);
    const storage = reopen();
    try {
      return await work(storage);
    } finally {
      await storage.close();
    }
  };
  const useSync = <T>(work: (storage: BlockingStorage) => T): T => {
    if (!closed) return work(open.blocking);
    const { blocking } = reopen();
    try {
      return work(blocking);
    } finally {
      blocking.close();
    }
  };

  return {
    ...open,
    size: () => use((storage) => storage.size()),
    read: (into, offset) => use((storage) => storage.read(into, offset)),
    close: () => {
      close();
      return open.close();
    },
    blocking: {
      ...open.blocking,
      size: () => useSync((storage) => storage.size()),
      read: (into, offset) => useSync((storage) => storage.read(into, offset)),
      close: () => {
        close();
        open.blocking.close();
      },
    },
  };
}

function inodeAt(path: string): bigint | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    return fstatSync(fd, { bigint: true }).ino;
  } catch {
    return undefined; // the file is gone: the next read will fail and say so
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
