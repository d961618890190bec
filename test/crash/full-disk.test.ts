import { type ByteStorage, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

const BLOCK = 4096;

/** A disk with room for `limit` bytes: a write takes whole blocks, as file systems do, and fails where none is left. */
function smallDisk(limit: number): ByteStorage & { limit: number; readonly used: number; readonly length: number } {
  const { blocking } = memoryStorage();
  const taken = new Set<number>();
  const disk = {
    name: 'small disk',
    limit,
    get used() {
      return taken.size * BLOCK;
    },
    get length() {
      return blocking.size();
    },
    blocking: {
      ...blocking,
      size: () => blocking.size(),
      read: (into: Uint8Array, offset: number) => blocking.read(into, offset),
      write(parts: readonly Uint8Array[], offset: number): void {
        let at = offset;
        for (const part of parts) {
          for (let done = 0; done < part.length; ) {
            const block = Math.floor(at / BLOCK);
            if (!taken.has(block) && (taken.size + 1) * BLOCK > disk.limit)
              throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
            taken.add(block);
            const piece = part.subarray(done, done + (block + 1) * BLOCK - at);
            blocking.write([piece], at);
            at += piece.length;
            done += piece.length;
          }
        }
      },
      truncate(size: number): void {
        for (const block of [...taken]) if (block * BLOCK >= size) taken.delete(block);
        blocking.truncate(size);
      },
      sync() {},
      close() {},
    },
    size: async () => disk.blocking.size(),
    read: async (into: Uint8Array, offset: number) => disk.blocking.read(into, offset),
    write: async (parts: readonly Uint8Array[], offset: number) => disk.blocking.write(parts, offset),
    truncate: async (size: number) => disk.blocking.truncate(size),
    sync: async () => {},
    close: async () => {},
  };
  return disk;
}

const MIB = 2 ** 20;
const ways: readonly [string, (file: File) => Promise<unknown>][] = [
  ['flushSync', async (file) => file.flushSync()],
  ['flush', (file) => file.flush()],
];

describe.each(ways)('%s on a full disk', (_name, flush) => {
  test('a retry needs only the space that was missing', async () => {
    const disk = smallDisk(2 * MIB);
    const file = File.createSync(disk);
    const data = Float64Array.from({ length: (3 * MIB) / 8 }, (_, i) => i);
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [data.length] });
    dataset.write(data);
    await expect(flush(file)).rejects.toMatchObject({ code: 'STORAGE', cause: { code: 'ENOSPC' } });
    disk.limit += 1.2 * MIB;
    await flush(file);
    await file.close();
    const again = File.openSync(disk);
    expect(again.dataset('x', 'float64').readSync()).toEqual(data);
    again.closeSync();
  });

  test('sixty retries do not make the file grow', async () => {
    const disk = smallDisk(MIB);
    const file = File.createSync(disk);
    const data = new Float64Array((1.6 * 1e6) / 8).fill(7);
    file.createDataset('x', { dtype: 'float64', shape: [data.length] }).write(data);
    await expect(flush(file)).rejects.toMatchObject({ code: 'STORAGE' });
    const { length } = disk;
    for (let i = 0; i < 60; i++) await expect(flush(file)).rejects.toMatchObject({ code: 'STORAGE' });
    expect(disk.length).toBe(length);
    disk.limit = 4 * MIB;
    await flush(file);
    await file.close();
    expect(disk.length).toBeLessThan(1.7e6);
    const again = File.openSync(disk);
    expect(again.dataset('x', 'float64').readSync()).toEqual(data);
    again.closeSync();
  });

  test('what is posted between the attempts is committed with the rest', async () => {
    const disk = smallDisk(MIB);
    const file = File.createSync(disk);
    const dataset = file.createDataset('x', { dtype: 'uint8', shape: [4 * MIB] });
    dataset.write(new Uint8Array(MIB).fill(1), { start: [0], count: [MIB] });
    await expect(flush(file)).rejects.toMatchObject({ code: 'STORAGE' });
    dataset.write(new Uint8Array(MIB).fill(2), { start: [MIB / 2], count: [MIB] });
    file.createGroup('later');
    await expect(flush(file)).rejects.toMatchObject({ code: 'STORAGE' });
    disk.limit = 8 * MIB;
    await flush(file);
    await file.close();
    const again = File.openSync(disk);
    const bytes = again.dataset('x', 'uint8').readSync();
    const runs = [0, MIB / 2 - 1, MIB / 2, 1.5 * MIB - 1, 1.5 * MIB].map((i) => bytes[i]);
    expect(runs).toEqual([1, 1, 2, 2, 0]);
    expect(again.has('later')).toBe(true);
    again.closeSync();
  });
});
