import { closeSync, fstatSync, openSync } from 'node:fs';
import { H5LogError } from '../../base/errors.ts';
import type { BlockingStorage, ByteStorage } from '../storage.ts';
import { nodeStorage } from './file.ts';

type Blocking = ByteStorage & { readonly blocking: BlockingStorage };

/**
 * Objects got from a file can be read after it was closed, and nothing may wait for garbage collection: once closed, each read
 * opens the file at `path` for itself, provided that it is still the same file.
 */
export function readableAfterClose(open: Blocking, path: string): Blocking {
  let inode: bigint | undefined;
  let closed = false;

  const close = (): void => {
    if (closed) return;
    closed = true;
    inode = inodeAt(path);
  };
  const again = (): Blocking => {
    const storage = nodeStorage(path, 'r', open.name);
    if (inode === undefined || inodeAt(path) === inode) return storage;
    storage.blocking.close();
    throw new H5LogError('CLOSED', `${open.name} is closed, and another file is at its place now`, { file: open.name });
  };
  const once = async <T>(work: (storage: Blocking) => Promise<T>): Promise<T> => {
    if (!closed) return work(open);
    const storage = again();
    try {
      return await work(storage);
    } finally {
      await storage.close();
    }
  };
  const onceSync = <T>(work: (storage: BlockingStorage) => T): T => {
    if (!closed) return work(open.blocking);
    const { blocking } = again();
    try {
      return work(blocking);
    } finally {
      blocking.close();
    }
  };

  return {
    ...open,
    size: () => once((storage) => storage.size()),
    read: (into, offset) => once((storage) => storage.read(into, offset)),
    close: () => {
      close();
      return open.close();
    },
    blocking: {
      ...open.blocking,
      size: () => onceSync((storage) => storage.size()),
      read: (into, offset) => onceSync((storage) => storage.read(into, offset)),
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
    return undefined; // not there any more: the next read will say so
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
