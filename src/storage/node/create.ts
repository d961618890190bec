import { existsSync, linkSync, renameSync, statSync, unlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import { type ByteStorage, plainTarget, type Source, storageFailure, type WriteTarget } from '../storage.ts';
import { type Blocking, readableAfterClose } from './after-close.ts';
import { nodeStorage } from './file.ts';
import { acquireLock, type Lock } from './lock.ts';
import { errno, pathOf, realFile, syncDirectory } from './path.ts';
import { subfilesOf } from './subfiles.ts';

/** Opens an existing file for reading, without a lock. */
export function openForReading(path: string | URL): ByteStorage {
  return readableAfterClose(nodeStorage(path, 'r'), realFile(path));
}

/** Opens a file that the file at `path` names, for reading: where an absolute name says, else beside it, else from the working directory. */
export function openBeside(path: string, name: string): ByteStorage | null {
  const place = (isAbsolute(name) ? [name] : [join(dirname(path), name), name]).find(isFile);
  return place === undefined ? null : openForReading(resolve(place));
}

/**
 * The path of an HDF5 file that the file at `path` names, null if there is none, by the rules of libhdf5 for external links: where an
 * absolute name says; else, and for its last part if nothing is there, beside the file, in the working directory, and beside the
 * file that a symbolic link leads to.
 */
export function linkedFile(path: string, name: string): string | null {
  const rest = isAbsolute(name) ? basename(name) : name;
  const places = [name, join(dirname(path), rest), rest, join(dirname(realFile(path)), rest)];
  const place = places.slice(isAbsolute(name) ? 0 : 1).find(isFile);
  return place === undefined ? null : resolve(place);
}

/** Not a directory, and nothing that would never end, such as a pipe. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Opens an existing file for writing and takes its write lock. */
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
 * A file that another rank opens or creates and holds the write lock of. This rank opens it at the first use: before, it may not
 * exist.
 */
function joinTarget(path: string | URL): WriteTarget {
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
 * Creates a new file under a temporary name. Publishing renames it to `path`, replacing what was there. Until then, and after any
 * crash, the old file is untouched.
 */
export function createTarget(path: string | URL, exclusive: boolean): WriteTarget {
  const real = realFile(path);
  const name = pathOf(path);
  if (exclusive && existsSync(real)) throw existsError(name);
  const lock = acquireLock(path);
  const temporary = temporaryName(real, lock.token);
  try {
    removeUnfinished(real, lock);
    return {
      storage: readableAfterClose(nodeStorage(temporary, 'wx+', name), real),
      at: temporary,
      release: () => lock.release(),
      publish: (durable) => publish(temporary, real, name, exclusive, durable),
      discard: () => remove(temporary),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The temporary name contains the token of the lock: it differs from whatever a crashed writer left behind. */
const temporaryName = (real: string, token: string): string => `${real}.${token}.new`;

/** Removes the new file that a crashed writer, whose lock was taken over, did not publish. */
function removeUnfinished(real: string, lock: Lock): void {
  if (lock.takenOverFrom !== undefined) remove(temporaryName(real, lock.takenOverFrom));
}

function existsError(name: string): H5LogError {
  return new H5LogError('EXISTS', `${name} exists already`, { file: name });
}

function publish(temporary: string, real: string, name: string, exclusive: boolean, durable: boolean): void {
  try {
    if (exclusive) {
      linkSync(temporary, real); // unlike rename, link fails if another process has created the file meanwhile
      unlinkSync(temporary);
    } else renameSync(temporary, real);
    if (durable) syncDirectory(dirname(real));
  } catch (error) {
    if (errno(error) === 'EEXIST') throw existsError(name);
    throw storageFailure(name, 'renaming the new file', error);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw storageFailure(path, 'removing the unfinished file', error);
  }
}

/** Opens an existing file. Of several ranks that write it, the leader takes the lock. */
export function openSource(path: string | URL, writing: boolean, leads: boolean): Source {
  const about = { path: pathOf(path), subfiles: subfilesOf(path) };
  if (!writing) return { ...about, storage: openForReading(path), target: null };
  const target = leads ? openTarget(path) : joinTarget(path);
  return { ...about, storage: target.storage, target };
}

/** Creates a new file. Of several ranks, the leader creates it and the others join. */
export function createSource(path: string | URL, leads: boolean, exclusive: boolean): Source {
  const about = { path: pathOf(path), subfiles: subfilesOf(path) };
  const target = leads ? createTarget(path, exclusive) : joinTarget(path);
  return { ...about, storage: target.storage, target };
}
