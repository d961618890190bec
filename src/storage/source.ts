import { H5LogError } from '../errors.ts';
import type { ByteStorage } from './storage.ts';

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
