import { existsSync, linkSync, renameSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import {
  type BlockingStorage,
  type ByteStorage,
  plainTarget,
  type Source,
  storageFailure,
  type WriteTarget,
} from '../storage.ts';
import { readableAfterClose } from './after-close.ts';
import { nodeStorage } from './file.ts';
import { acquireLock, type Lock } from './lock.ts';
import { errno, pathOf, realFile, syncDirectory } from './path.ts';
import { subfilesOf } from './subfiles.ts';

type Blocking = ByteStorage & { readonly blocking: BlockingStorage };

/** Opens an existing file for reading. No lock is needed. */
export function openForReading(path: string | URL): ByteStorage {
  return readableAfterClose(nodeStorage(path, 'r'), realFile(path));
}

/** Opens an existing file for writing, with its lock. */
export function openTarget(path: string | URL): WriteTarget {
  const name = pathOf(path);
  if (!existsSync(name)) throw new H5LogError('NOT_FOUND', `${name} does not exist`, { file: name });
  const lock = acquireLock(path);
  try {
    const real = realFile(path);
    removeUnfinished(real, lock);
    return {
      storage: readableAfterClose(nodeStorage(path, 'r+'), real),
      release: () => lock.release(),
      publish() {},
      discard() {},
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * A file that another rank opens or makes, and whose lock that one holds. It is opened when it is first used: before, it may
 * not be there.
 */
export function joinTarget(path: string | URL): WriteTarget {
  const name = pathOf(path);
  let opened: Blocking | undefined;
  const use = (): Blocking => {
    opened ??= readableAfterClose(nodeStorage(path, 'r+'), realFile(path));
    return opened;
  };
  const storage: Blocking = {
    name,
    size: () => use().size(),
    read: (into, offset) => use().read(into, offset),
    write: (parts, offset) => (use().write as NonNullable<ByteStorage['write']>)(parts, offset),
    truncate: (size) => (use().truncate as NonNullable<ByteStorage['truncate']>)(size),
    sync: () => (use().sync as NonNullable<ByteStorage['sync']>)(),
    close: async () => opened?.close(),
    blocking: {
      size: () => use().blocking.size(),
      read: (into, offset) => use().blocking.read(into, offset),
      write: (parts, offset) => use().blocking.write(parts, offset),
      truncate: (size) => use().blocking.truncate(size),
      sync: () => use().blocking.sync(),
      close: () => opened?.blocking.close(),
    },
  };
  return plainTarget(storage);
}

/**
 * Begins a new file beside `path`; it takes that name, and the place of what was there, when it is published. Until then, and
 * after any crash, the old file is untouched.
 */
export function createTarget(path: string | URL, exclusive: boolean): WriteTarget {
  const real = realFile(path);
  const name = pathOf(path);
  if (exclusive && existsSync(real)) throw existsError(name);
  const lock = acquireLock(path);
  const aside = asideFor(real, lock.token);
  try {
    removeUnfinished(real, lock);
    return {
      storage: readableAfterClose(nodeStorage(aside, 'wx+', name), real),
      at: aside,
      release: () => lock.release(),
      publish: (durable) => publish(aside, real, name, exclusive, durable),
      discard: () => remove(aside),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The lock's token keeps the name apart from whatever a crashed writer left behind. */
const asideFor = (real: string, token: string): string => `${real}.${token}.new`;

/** Removes the new file that the former holder of the lock did not live to publish. */
function removeUnfinished(real: string, lock: Lock): void {
  if (lock.former !== undefined) remove(asideFor(real, lock.former));
}

function existsError(name: string): H5LogError {
  return new H5LogError('EXISTS', `${name} exists already`, { file: name });
}

function publish(aside: string, real: string, name: string, exclusive: boolean, durable: boolean): void {
  try {
    if (exclusive) {
      linkSync(aside, real); // unlike a rename this fails when somebody else made the file meanwhile
      unlinkSync(aside);
    } else renameSync(aside, real);
    if (durable) syncDirectory(dirname(real));
  } catch (error) {
    if (errno(error) === 'EEXIST') throw existsError(name);
    throw storageFailure(name, 'giving the new file its name', error);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw storageFailure(path, 'removing the unfinished file', error);
  }
}

/** An existing file. Of several ranks that write it one has the lock. */
export function openSource(path: string | URL, writing: boolean, leads: boolean): Source {
  const place = { path: pathOf(path), subfiles: subfilesOf(path) };
  if (!writing) return { ...place, storage: openForReading(path), target: null };
  const target = leads ? openTarget(path) : joinTarget(path);
  return { ...place, storage: target.storage, target };
}

/** A new file, begun by one rank. */
export function createSource(path: string | URL, leads: boolean, exclusive: boolean): Source {
  const place = { path: pathOf(path), subfiles: subfilesOf(path) };
  const target = leads ? createTarget(path, exclusive) : joinTarget(path);
  return { ...place, storage: target.storage, target };
}
