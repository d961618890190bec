import { H5LogError } from '../base/errors.ts';
import { BlockCache } from './block-cache.ts';
import { type ByteStorage, checkPosition, closedError, storageFailure } from './storage.ts';

/** One slice is copied once on its way: large reads go in pieces of this size, so that the copy stays small. */
const PIECE = 16 * 2 ** 20;

/** A Blob, or a File that a user chose in a browser; read only, and only asynchronously. */
export function blobStorage(blob: Blob): ByteStorage {
  const name = 'name' in blob && typeof blob.name === 'string' ? blob.name : 'blob';
  let closed = false;
  const cache = new BlockCache(async (into, offset) => {
    for (let at = 0; at < into.byteLength; at += PIECE) {
      const end = Math.min(at + PIECE, into.byteLength);
      const bytes = new Uint8Array(await blob.slice(offset + at, offset + end).arrayBuffer());
      if (bytes.byteLength !== end - at) {
        throw new H5LogError('STORAGE', `${name}: ${bytes.byteLength} of ${end - at} bytes came`, {
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
        // A file changed on disk after it was chosen rejects with NotReadableError.
        throw storageFailure(name, 'read', cause, offset);
      }
    },
    async close() {
      closed = true;
    },
  };
}
