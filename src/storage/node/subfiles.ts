import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isH5LogError } from '../../base/errors.ts';
import { type Subfiles, storageFailure } from '../storage.ts';
import { readableAfterClose } from './after-close.ts';
import { nodeStorage } from './file.ts';
import { errno, pathOf, realFile, syncDirectory } from './path.ts';

/** Subfiles are called `<path>.subfiles/<name>.<g>`, as by the original log VOL. */
export function subfilesOf(path: string | URL): Subfiles {
  const shown = `${pathOf(path)}.subfiles`;
  const real = realFile(path);
  const folder = `${real}.subfiles`;
  const base = basename(real);
  const name = (g: number): string => join(shown, `${base}.${g}`);
  const at = (g: number): string => join(folder, `${base}.${g}`);
  const temporary = (g: number, token: string): string => `${at(g)}.${token}.new`;
  return {
    name,
    open(g, writing, token) {
      const file = token === undefined ? at(g) : temporary(g, token);
      try {
        const storage = nodeStorage(file, writing ? 'r+' : 'r', name(g));
        // One that is written has its final name by the time it is closed; one that is read may get it from the rank that writes it.
        return readableAfterClose(storage, writing ? at(g) : file, at(g));
      } catch (error) {
        if (isH5LogError(error, 'NOT_FOUND')) return undefined;
        throw error;
      }
    },
    create(g, token) {
      try {
        mkdirSync(folder, { recursive: true });
      } catch (error) {
        throw storageFailure(shown, 'creating the directory of the subfiles', error);
      }
      return readableAfterClose(nodeStorage(temporary(g, token), 'wx+', name(g)), at(g));
    },
    publish(g, token, durable) {
      try {
        renameSync(temporary(g, token), at(g));
        if (durable) for (const directory of [folder, dirname(folder)]) syncDirectory(directory);
      } catch (error) {
        throw storageFailure(name(g), 'renaming the new subfile', error);
      }
    },
    discard(g, token) {
      try {
        remove(temporary(g, token), name(g));
        removeFolder(folder);
      } catch {
        // The caller has a more important error to report. The leftover does no harm; `tidy` of the next file removes it.
      }
    },
    tidy(count) {
      if (!existsSync(folder)) return;
      for (const entry of readdirSync(folder)) {
        const number = numberOf(entry, base);
        const isUnfinished =
          entry.startsWith(`${base}.`) && /^\d+\.[0-9a-f]{32}\.new$/.test(entry.slice(base.length + 1));
        if (isUnfinished || (number !== undefined && number >= count)) remove(join(folder, entry), shown);
      }
      if (count === 0) removeFolder(folder);
    },
  };
}

function numberOf(entry: string, base: string): number | undefined {
  const rest = entry.startsWith(`${base}.`) ? entry.slice(base.length + 1) : '';
  return /^\d{1,9}$/.test(rest) ? Number(rest) : undefined;
}

function remove(path: string, shown: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw storageFailure(shown, 'removing an old subfile', error);
  }
}

/** Removes the directory unless it has other files in it. */
function removeFolder(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errno(error))) throw storageFailure(folder, 'removing it', error);
  }
}
