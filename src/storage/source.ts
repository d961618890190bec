import { H5LogError } from '../base/errors.ts';
import type { ByteStorage } from './storage.ts';
import type { Subfiles } from './subfiles.ts';
import type { WriteTarget } from './target.ts';

/** Where a file is, and what was taken for it. */
export interface Source {
  /** null for what is not a file of this machine. */
  readonly path: string | null;
  readonly storage: ByteStorage;
  /** null: the file is only read. */
  readonly target: WriteTarget | null;
  /** The files beside this one; null where nothing is beside it. */
  readonly subfiles: Subfiles | null;
}

export const isPath = (source: unknown): source is string | URL => typeof source === 'string' || source instanceof URL;

/** Refuses what is neither a path nor anything that bytes can be read from. */
export function checkStorage(source: unknown): void {
  const storage = source as Partial<ByteStorage> | null;
  if (
    typeof storage === 'object' &&
    storage !== null &&
    typeof storage.read === 'function' &&
    typeof storage.size === 'function'
  )
    return;
  throw new H5LogError('OPTION', 'a path, a URL, a Blob or a storage is needed');
}
