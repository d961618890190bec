import { readFile } from 'node:fs/promises';
import { type ByteStorage, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

test('a read that waits keeps what it found in the cache, whatever other reads put there', async () => {
  const path = `${temporaryDirectory()}/chunks.h5`;
  const file = await File.create(path, { connector: 'native' });
  const values = Int32Array.from({ length: 2 * 2 ** 16 }, (_, i) => i);
  // Shuffled twice, data is neither refused nor right.
  const small = { dtype: 'int32', shape: [values.length], chunks: [2 ** 16], filters: ['shuffle'] } as const;
  file.createDataset('small', small).write(values);
  const large = { dtype: 'int32', shape: [10 * 2 ** 20], chunks: [2 ** 20], filters: ['shuffle'] } as const;
  file.createDataset('large', large).write(new Int32Array(10 * 2 ** 20));
  await file.close();
  const bytes = await readFile(path);
  for (let before = 0; before < 4; before++) {
    const memory = memoryStorage(bytes);
    let reads = Number.POSITIVE_INFINITY;
    // A storage that does something else in the middle of a read, now after the first of its requests, now after a later one.
    const storage: ByteStorage = {
      ...{
        name: memory.name,
        size: () => memory.size(),
        close: () => memory.close(),
        blocking: memory.blocking as never,
      },
      async read(into, offset) {
        const count = await memory.read(into, offset);
        if (reads-- === 0) evict();
        return count;
      },
    };
    const reader = await File.open(storage);
    const evict = (): void => {
      const half = 5 * 2 ** 20;
      for (const start of [0, half]) reader.dataset('large').readSync({ start: [start], count: [half] });
    };
    await reader.dataset('small').read({ start: [0], count: [1] });
    reads = before;
    expect(await reader.dataset('small').read()).toEqual(values);
    await reader.close();
  }
});
