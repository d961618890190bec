import type { ByteStorage } from 'h5log';

/** A storage for files of gigabytes that hold next to nothing: pieces whose first and last bytes are zero are not kept. */
export function sparseStorage(): ByteStorage & { readonly kept: number } {
  const pieces = new Map<number, Uint8Array>();
  let size = 0;
  const write = (parts: readonly Uint8Array[], offset: number): void => {
    let at = offset;
    for (const part of parts) {
      const isSmall = part.length < 2 ** 20;
      if (isSmall || part[0] !== 0 || part[part.length - 1] !== 0) pieces.set(at, part.slice());
      else pieces.delete(at);
      at += part.length;
    }
    size = Math.max(size, at);
  };
  const read = (into: Uint8Array, offset: number): number => {
    const count = Math.max(0, Math.min(into.length, size - offset));
    into.fill(0, 0, count);
    for (const [at, piece] of pieces) {
      const [from, to] = [Math.max(at, offset), Math.min(at + piece.length, offset + count)];
      if (from < to) into.set(piece.subarray(from - at, to - at), from - offset);
    }
    return count;
  };
  const truncate = (n: number): void => {
    size = n;
  };
  const blocking = { size: () => size, read, write, truncate, sync() {}, close() {} };
  return {
    name: 'sparse',
    blocking,
    size: async () => size,
    read: async (into, offset) => read(into, offset),
    write: async (parts, offset) => write(parts, offset),
    truncate: async (n) => truncate(n),
    sync: async () => {},
    close: async () => {},
    get kept() {
      return [...pieces.values()].reduce((sum, piece) => sum + piece.length, 0);
    },
  };
}
