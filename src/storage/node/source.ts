import type { Source } from '../storage.ts';
import { createTarget, joinTarget, openTarget, readTarget } from './create.ts';
import { pathOf } from './path.ts';
import { subfilesOf } from './subfiles.ts';

/** An existing file. Of several ranks that write it one has the lock. */
export function openedSource(path: string | URL, writing: boolean, leads: boolean): Source {
  const place = { path: pathOf(path), subfiles: subfilesOf(path) };
  if (!writing) return { ...place, storage: readTarget(path), target: null };
  const target = leads ? openTarget(path) : joinTarget(path);
  return { ...place, storage: target.storage, target };
}

/** A new file, begun by one rank. */
export function createdSource(path: string | URL, leads: boolean, exclusive: boolean): Source {
  const place = { path: pathOf(path), subfiles: subfilesOf(path) };
  const target = leads ? createTarget(path, exclusive) : joinTarget(path);
  return { ...place, storage: target.storage, target };
}
