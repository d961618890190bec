import { createTarget, joinTarget, openForReading, openTarget } from '#platform';
import { H5LogError } from '../../base/errors.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { ACCESS, type Library, libraryError } from './library.ts';

/** Where an open file is: for libhdf5 a path, for our own reader a storage. */
export interface Place {
  readonly path: string;
  readonly storage: ByteStorage;
  /** A storage of the caller's, which has no neighbours and is not ours to close. */
  readonly mounted: boolean;
  /** Its number in libhdf5. */
  readonly id: bigint;
  /** Gives everything back but the number. */
  release(): void;
}

/** Opens a file. For writing its lock is taken, as for a log, unless the caller has it. `check` may refuse it before libhdf5 sees it. */
export function openPlace(
  library: Library,
  source: string | ByteStorage,
  mode: 'r' | 'r+',
  check: (storage: ByteStorage) => void,
  isLocked = false,
): Place {
  const access = mode === 'r' ? ACCESS.read : ACCESS.write;
  if (typeof source !== 'string') return mountedPlace(library, source, access, check);
  const target = mode === 'r' ? null : isLocked ? joinTarget(source) : openTarget(source);
  const storage = target?.storage ?? openForReading(source);
  const release = (): void => {
    storage.blocking?.close();
    target?.release();
  };
  return settled(release, () => {
    check(storage);
    return { path: source, storage, mounted: false, id: openIn(library, source, storage.name, access), release };
  });
}

/** Makes a file. At a path it appears when it is whole, and takes the place of what was there. */
export function createPlace(library: Library, target: string | ByteStorage, exclusive: boolean): Place {
  if (typeof target !== 'string') return mountedPlace(library, target, ACCESS.truncate, () => {});
  const made = createTarget(target, exclusive);
  const { storage } = made;
  const release = (): void => {
    storage.blocking?.close();
    made.release();
  };
  return settled(release, () => {
    try {
      const aside = mountedPlace(library, storage, ACCESS.truncate, () => {});
      try {
        closeIn(library, aside.id, storage.name);
      } finally {
        aside.release();
      }
      made.publish(false);
    } catch (error) {
      made.discard();
      throw error;
    }
    return { path: target, storage, mounted: false, id: openIn(library, target, storage.name, ACCESS.write), release };
  });
}

function mountedPlace(
  library: Library,
  storage: ByteStorage,
  access: number,
  check: (storage: ByteStorage) => void,
): Place {
  const path = library.mounts.add(storage);
  const release = (): void => library.mounts.remove(path);
  return settled(release, () => {
    check(storage);
    return { path, storage, mounted: true, id: openIn(library, path, storage.name, access), release };
  });
}

/** Gives back what was taken if the work fails. */
function settled<T>(release: () => void, work: () => T): T {
  try {
    return work();
  } catch (error) {
    release();
    throw error;
  }
}

export function openIn(library: Library, path: string, name: string, access: number): bigint {
  return library.call(
    (calls) => calls.open(path, access, true, -1, -1),
    (reason) => {
      const code = /already open|unable to lock|consistency/i.test(reason) ? 'LOCKED' : 'STORAGE';
      return new H5LogError(code, `${name}: h5wasm cannot open the file: ${reason}`, { file: name });
    },
  );
}

export function closeIn(library: Library, id: bigint, name: string): void {
  library.call((calls) => calls.close_file(id), libraryError('STORAGE', 'closing failed', name, '/'));
}
