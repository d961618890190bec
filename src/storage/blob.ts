import { H5LogError } from '../base/errors.ts';
import { BlockCache } from './block-cache.ts';
import { type ByteStorage, checkPosition, closedError, storageFailure } from './storage.ts';

/** Reading a slice copies it once more: large reads are split into slices of this size, so that the copy stays small. */
const SLICE_SIZE = 16 * 2 ** 20;

/** A Blob, or a File that a user chose in a browser; read only, and only asynchronously. */
export function blobStorage(blob: Blob): ByteStorage {
  const name = 'name' in blob && typeof blob.name === 'string' ? blob.name : 'blob';
  let closed = false;
  const cache = new BlockCache(async (into, offset) => {
    for (let at = 0; at < into.byteLength; at += SLICE_SIZE) {
      const end = Math.min(at + SLICE_SIZE, into.byteLength);
      const bytes = new Uint8Array(await blob.slice(offset + at, offset + end).arrayBuffer());
      if (bytes.byteLength !== end - at) {
        throw new H5LogError('STORAGE', `${name}: ${bytes.byteLength} of ${end - at} bytes were read`, {
          file: name,
          offset,
        });
      }
      into.set(bytes, at);
    }
  }, blob.size);
  return {
    name,
    async size() {
      if (closed) throw closedError(name);
      return blob.size;
    },
    async read(into, offset) {
      if (closed) throw closedError(name);
      checkPosition(name, offset);
      try {
        return await cache.read(into, offset);
      } catch (cause) {
        // A file that changed on disk after the user chose it rejects with NotReadableError.
        throw storageFailure(name, 'read', cause, offset);
      }
    },
    async close() {
      closed = true;
    },
  };
}
