import { existsSync } from 'node:fs';
import { H5LogError } from '../../base/errors.ts';
import {
  type BlockingStorage,
  type ByteStorage,
  readsScattered,
  type ScatteredReads,
  scatteredReadsOf,
} from '../storage.ts';
import { identityOf, nodeStorage } from './file.ts';

/** A storage with a blocking half. */
export type Blocking = ByteStorage & { readonly blocking: BlockingStorage };

/**
 * A storage that can still be read after it was closed, as objects obtained from a closed file may be. Each read then opens the
 * file at `path`, checks that it is the same file, and closes it: no descriptor waits for garbage collection. `later` is a name that it
 * may have got since.
 */
export function readableAfterClose(open: Blocking, path: string, later = path): Blocking {
  // Taken from the descriptor: by the time the file is closed, another one may have its name.
  const identity = identityOf(open);
  let closed = false;

  const close = (): void => {
    closed = true;
  };
  const reopen = (): Blocking => {
    const storage = nodeStorage(existsSync(path) ? path : later, 'r', open.name);
    if (identityOf(storage) === identity) return storage;
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
  const useSync = <T>(work: (storage: Blocking) => T): T => {
    if (!closed) return work(open);
    const storage = reopen();
    try {
      return work(storage);
    } finally {
      storage.blocking.close();
    }
  };
  const scattered = (storage: Blocking): ScatteredReads => scatteredReadsOf(storage) as ScatteredReads;

  const readable: Blocking = {
    ...open,
    size: () => use((storage) => storage.size()),
    read: (into, offset) => use((storage) => storage.read(into, offset)),
    close: () => {
      close();
      return open.close();
    },
    blocking: {
      ...open.blocking,
      size: () => useSync(({ blocking }) => blocking.size()),
      read: (into, offset) => useSync(({ blocking }) => blocking.read(into, offset)),
      close: () => {
        close();
        open.blocking.close();
      },
    },
  };
  readsScattered(readable, {
    read: (parts, offset) => use((storage) => scattered(storage).read(parts, offset)),
    readSync: (parts, offset) => useSync((storage) => scattered(storage).readSync(parts, offset)),
  });
  return readable;
}
