import { createTarget, subfilesOf } from '#platform';
import { H5LogError } from '../../base/errors.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import { encodeSuperblock } from '../../hdf5/format/superblock.ts';
import type { Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { copyBytes } from '../output.ts';
import { Runner } from '../run.ts';
import type { CheckedFile } from './checked-file.ts';
import type { State } from './commit-history.ts';
import { type LogState, partsOf, type Stores } from './states.ts';
import type { VerifiedStore } from './store.ts';

/** What a repair wrote. */
export interface Repaired {
  readonly path: string;
  /** The commit that the new file holds. */
  readonly sequence: number;
  readonly bytes: number;
}

/**
 * Writes a state that is good as a file of its own: all bytes up to its end, and a superblock that names its root. With
 * subfiles the same of each, as the record says.
 */
export async function repair(
  stores: Stores,
  best: LogState | undefined,
  to: string | URL,
  force: boolean,
  signal: AbortSignal | undefined,
): Promise<Repaired> {
  const { main, subfiles } = stores;
  if (!best) throw new H5LogError('FORMAT', `${main.name}: no commit is whole, so there is nothing to repair it to`);
  const beside = subfilesOf(to);
  const token = newToken();
  const made: number[] = [];
  const target = createTarget(to, !force);
  try {
    let bytes = await copyState(main.file, best, target.storage, signal);
    for (const [g, part] of partsOf(best, stores).entries()) {
      if (!part) continue;
      const storage = beside.create(g, token);
      made.push(g);
      try {
        bytes += await copyState((subfiles[g] as VerifiedStore).file, part, storage, signal);
      } finally {
        await storage.close();
      }
    }
    await target.storage.close();
    target.publish(true);
    for (const g of made.splice(0)) beside.publish(g, token, true);
    beside.tidy(subfiles.length);
    return { path: target.storage.name, sequence: best.sequence, bytes };
  } catch (error) {
    await target.storage.close();
    for (const g of made) beside.discard(g, token);
    target.discard();
    throw error;
  } finally {
    target.release();
  }
}

async function copyState(
  file: CheckedFile,
  { root, end }: State,
  storage: ByteStorage,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { base, superblock } = file;
  const extension = superblock?.extension ?? UNDEFINED;
  if (extension !== UNDEFINED && base + extension >= end) {
    const text = `${file.name}: what its superblock refers to (an extension at ${extension}) is newer than the state to go back to`;
    throw new H5LogError('UNSUPPORTED', text, { file: file.name, offset: base + extension });
  }
  await new Runner(storage, signal).run(copy());
  return end;

  function* copy(): Io<void> {
    yield* copyBytes(file.storage, end);
    const isSame = superblock && superblock.root === root && base + superblock.end === end;
    const fresh = isSame ? superblock.bytes : encodeSuperblock({ base, end: end - base, root, extension });
    yield { op: 'write', parts: [fresh], offset: base };
    yield { op: 'truncate', size: end };
    yield { op: 'sync' };
  }
}

/** Keeps unfinished subfiles apart from those of others. */
function newToken(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
