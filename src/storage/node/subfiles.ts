import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type ByteStorage, type Subfiles, storageFailure } from '../storage.ts';
import { readableAfterClose } from './after-close.ts';
import { nodeStorage } from './file.ts';
import { errno, pathOf, realFile, syncDirectory } from './path.ts';

/** `<path>.subfiles/<name>.<g>`, as the original names them. */
export function subfilesOf(path: string | URL): Subfiles {
  const shown = `${pathOf(path)}.subfiles`;
  const real = realFile(path);
  const folder = `${real}.subfiles`;
  const base = basename(real);
  const name = (g: number): string => join(shown, `${base}.${g}`);
  const at = (g: number): string => join(folder, `${base}.${g}`);
  const aside = (g: number, token: string): string => `${at(g)}.${token}.new`;
  return {
    name,
    open(g, writing, token) {
      const file = token === undefined ? at(g) : aside(g, token);
      if (!existsSync(file)) return undefined;
      // One that is written has its name by the time it is closed.
      return lingering(nodeStorage(file, writing ? 'r+' : 'r', name(g)), writing ? at(g) : file);
    },
    create(g, token) {
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
      } catch (error) {
        throw storageFailure(shown, 'making the folder of the subfiles', error);
      }
      return lingering(nodeStorage(aside(g, token), 'wx+', name(g)), at(g));
    },
    publish(g, token, durable) {
      try {
        renameSync(aside(g, token), at(g));
        if (durable) for (const place of [folder, dirname(folder)]) syncDirectory(place);
      } catch (error) {
        throw storageFailure(name(g), 'giving the new subfile its name', error);
      }
    },
    discard(g, token) {
      try {
        remove(aside(g, token), name(g));
        removeFolder(folder);
      } catch {
        // There is a more important error to tell; what is left does no harm and goes when the next file is made.
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

const lingering = (storage: ReturnType<typeof nodeStorage>, path: string): ByteStorage =>
  readableAfterClose(storage, path);

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

/** Other files in it are not ours: then it stays. */
function removeFolder(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errno(error))) throw storageFailure(folder, 'removing it', error);
  }
}
