import { closeSync, fsyncSync, openSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { H5LogError } from '../../base/errors.ts';
import { storageFailure } from '../storage.ts';

/** The code of a system error such as ENOENT, else ''. Under a test runner Node's errors may be those of other globals. */
export function errno(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

/** The path of a path or of a file: URL (also one that is given as a string). */
export function pathOf(path: string | URL): string {
  if (typeof path === 'string' && !/^file:\/\//i.test(path)) {
    if (path === '' || path.includes('\0')) throw new H5LogError('OPTION', `${JSON.stringify(path)} is not a path`);
    return path;
  }
  try {
    return fileURLToPath(path);
  } catch (cause) {
    throw new H5LogError('OPTION', `${String(path)} is not a file: URL of a local file`, { cause });
  }
}

/** A longer chain of symbolic links is taken for a cycle, as the kernel does. */
const MAX_LINKS = 40;

/**
 * The canonical absolute path of a file. Symbolic links are resolved, also when the file they lead to does not exist yet. A
 * rename that replaces a file must rename to this path, or it would replace the link.
 */
export function realFile(path: string | URL): string {
  const name = pathOf(path);
  let at = resolve(name);
  try {
    for (let links = 0; links < MAX_LINKS; links++) {
      const here = join(realpathSync(dirname(at)), basename(at));
      const target = linkTarget(here);
      if (target === undefined) return here;
      at = resolve(dirname(here), target);
    }
  } catch (cause) {
    if (errno(cause) === 'ENOENT') {
      throw new H5LogError('NOT_FOUND', `${name}: there is no directory ${dirname(at)}`, { file: name, cause });
    }
    throw storageFailure(name, 'resolving the path', cause);
  }
  throw new H5LogError('STORAGE', `${name}: too many symbolic links`, { file: name });
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    // EINVAL: exists and is no link (UNKNOWN on Windows). ENOENT: does not exist yet.
    if (['EINVAL', 'ENOENT', 'UNKNOWN'].includes(errno(error))) return undefined;
    throw error;
  }
}

/** Makes the entries of a directory durable: a new or renamed file survives a power loss only then. */
export function syncDirectory(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
