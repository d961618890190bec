import { Contents } from './contents.ts';
import { type BlockingStorage, type ByteStorage, checkPosition } from './storage.ts';

/** A storage in memory; `bytes()` is a copy of what it holds now. */
export interface MemoryStorage extends ByteStorage {
  readonly blocking: BlockingStorage;
  write(parts: readonly Uint8Array[], offset: number): Promise<void>;
  truncate(size: number): Promise<void>;
  sync(): Promise<void>;
  bytes(): Uint8Array<ArrayBuffer>;
}

/**
 * A file in memory, empty or holding `bytes`, which are never changed. Closing ends nothing: it is the medium and not a
 * handle, so the same object can be given to the next `File.open`, as a path could.
 *
 * ```ts
 * const storage = memoryStorage();
 * await (await File.create(storage)).close();
 * const file = await File.open(storage);
 * ```
 */
export function memoryStorage(bytes?: Uint8Array): MemoryStorage {
  const name = 'memory';
  const contents = new Contents(bytes);
  const blocking: BlockingStorage = {
    size: () => contents.size,
    read(into, offset) {
      checkPosition(name, offset);
      return contents.read(into, offset);
    },
    write(parts, offset) {
      checkPosition(name, offset);
      for (const part of parts) {
        contents.write(part, offset);
        offset += part.byteLength;
      }
    },
    truncate(size) {
      checkPosition(name, size);
      contents.truncate(size);
    },
    sync() {},
    close() {},
  };
  // `async` only turns what the blocking half throws into a rejection: the work is done when the call returns.
  return {
    name,
    blocking,
    size: async () => blocking.size(),
    read: async (into, offset) => blocking.read(into, offset),
    write: async (parts, offset) => blocking.write(parts, offset),
    truncate: async (size) => blocking.truncate(size),
    sync: async () => {},
    close: async () => {},
    bytes: () => contents.copy(),
  };
}
