import { join } from 'node:path';
import { type CreateOptions, type Dataset, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../../temporary.ts';

// The first read of a dataset after opening takes several steps. What is flushed between them must not be seen.

const folder = temporaryDirectory();
let made = 0;

const SCOPES = ['shared', 'group', 'dataset'] as const;

/** A file opened again to write, in which something was flushed, and a dataset of it that nobody has read. */
async function opened(logs: CreateOptions['logs'] & string): Promise<{ file: File; unread: Dataset<'int32'> }> {
  const path = join(folder, `${made++}.h5`);
  const first = await File.create(path, { logs, publish: 'never' });
  for (const name of ['x/x', 'y/y'])
    first.createDataset(name, { dtype: 'int32', shape: [3], maxShape: [null] }).write(Int32Array.of(1, 2, 3));
  await first.close();
  const file = await File.open(path, { mode: 'r+' });
  file.dataset('x/x').write([0, 0, 0]);
  await file.flush();
  return { file, unread: file.dataset('y/y', 'int32') };
}

const CHANGES: Record<string, (file: File, dataset: Dataset<'int32'>) => unknown> = {
  'a post and flush': (file, dataset) => {
    dataset.write([7, 7, 7]);
    return file.flush();
  },
  'a post and flushSync': (file, dataset) => {
    dataset.write([7, 7, 7]);
    file.flushSync();
  },
  'resizes and flushes': (file, dataset) => {
    dataset.resize([1]);
    file.flushSync();
    dataset.resize([3]);
    file.flushSync();
  },
  'a delete and flush': (file, dataset) => {
    file.delete(dataset.path);
    return file.flush();
  },
};

describe.each(SCOPES)('logs: %s', (logs) => {
  test.each(Object.entries(CHANGES))('a read does not see %s', async (_, change) => {
    const { file, unread } = await opened(logs);
    const many = unread.readMany([0, 2], [1]);
    const all = unread.read();
    await change(file, unread);
    expect(await all).toEqual(Int32Array.of(1, 2, 3));
    expect(await many).toEqual(Int32Array.of(1, 3));
    await file.close();
  });

  test('a flush that fails meanwhile, with a large table, and is repeated', async () => {
    const memory = memoryStorage();
    let isBroken = false;
    const storage = {
      name: 'breaking',
      size: () => memory.size(),
      read: (into: Uint8Array, offset: number) => memory.read(into, offset),
      write: async (parts: readonly Uint8Array[], offset: number) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        if (isBroken) throw Object.assign(new Error('EIO'), { code: 'EIO' });
        return await memory.write(parts, offset);
      },
      truncate: (size: number) => memory.truncate(size),
      sync: () => memory.sync(),
      close: () => memory.close(),
      blocking: memory.blocking,
    };
    const rows = 300_000;
    const first = await File.create(storage, { logs, publish: 'never', table: { format: 'classic' } });
    for (const name of ['x/x', 'y/y'])
      first.createDataset(name, { dtype: 'int32', shape: [rows] }).write(new Int32Array(rows).fill(1));
    await first.close();
    const file = await File.open(storage, { mode: 'r+' });
    file.dataset('x/x').write([0], { start: [0], count: [1] });
    await file.flush();
    const y = file.dataset('y/y', 'int32');
    const reading = y.read();
    const half = new Int32Array(rows / 2).fill(7);
    y.writeMany(
      half,
      Float64Array.from(half, (_, i) => 2 * i),
      [1],
    );
    isBroken = true;
    await expect(file.flush()).rejects.toMatchObject({ code: 'STORAGE' });
    expect((await reading).subarray(0, 4)).toEqual(Int32Array.of(1, 1, 1, 1));
    isBroken = false;
    expect((await y.read()).subarray(0, 4)).toEqual(Int32Array.of(7, 1, 7, 1));
    const repeated = await file.flush();
    y.write(new Int32Array(rows).fill(5));
    const last = await file.flush();
    await file.close();
    for (const [{ sequence }, values] of [
      [repeated, [7, 1, 7, 1]],
      [last, [5, 5, 5, 5]],
    ] as const) {
      const reader = await File.open(memoryStorage(memory.bytes()), { asOf: sequence });
      expect(Array.from(reader.dataset('y/y', 'int32').readSync().subarray(0, 4)), `commit ${sequence}`).toEqual(
        values,
      );
      await reader.close();
    }
  });
});
