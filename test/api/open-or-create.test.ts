import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, isH5LogError } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { runThreads } from 'h5log/threads';
import { list } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { refusal } from './refusal.ts';

describe.each(['log', 'native'] as const)("File.open with mode 'a' (%s)", (connector) => {
  test.each(['open', 'openSync'] as const)(
    '%s creates a file, and the next time opens it for writing',
    async (open) => {
      const path = join(temporaryDirectory(), 'a.h5');
      const first = await File[open](path, { mode: 'a', connector });
      expect(first.mode).toBe('r+');
      first.createDataset('x', { dtype: 'int8', shape: [2] }).write(Int8Array.of(1, 2));
      await first.close();
      const second = await File[open](path, { mode: 'a', connector });
      expect(second.mode).toBe('r+');
      expect(second.dataset('x').readSync()).toEqual(Int8Array.of(1, 2));
      second.dataset('x').write(Int8Array.of(3, 4));
      await second.close();
      const third = File.openSync(path, { connector });
      expect(third.dataset('x').readSync()).toEqual(Int8Array.of(3, 4));
      third.closeSync();
    },
  );
});

describe("File.open with mode 'a'", () => {
  test('takes the options of create', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const file = await File.open(path, { mode: 'a', subfiles: 1, table: { compress: false } });
    file.createDataset('x', { dtype: 'int8', shape: [2] }).write(Int8Array.of(1, 2));
    await file.close();
    expect(existsSync(`${path}.subfiles`)).toBe(true);
    const again = await File.open(path, { mode: 'a', subfiles: 1 });
    expect(again.dataset('x').readSync()).toEqual(Int8Array.of(1, 2));
    await again.close();
  });

  test('refuses options that make no sense', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    expect((await refusal(() => File.open(path, { mode: 'a', asOf: 1 }))).code).toBe('OPTION');
    expect((await refusal(() => File.open(path, { mode: 'a', exclusive: true }))).code).toBe('OPTION');
    expect((await refusal(() => File.open(path, { mode: 'a', subfiles: -1 }))).code).toBe('OPTION');
    expect((await refusal(() => File.open(path, { mode: 'r+', subfiles: 1 } as never))).code).toBe('OPTION');
    expect(existsSync(path)).toBe(false);
  });

  test('does not touch what is no HDF5 file, and says so', async () => {
    const path = join(temporaryDirectory(), 'a.txt');
    writeFileSync(path, 'hello');
    expect((await refusal(() => File.open(path, { mode: 'a' }))).code).toBe('FORMAT');
  });

  test('says that there is no directory', async () => {
    const path = join(temporaryDirectory(), 'none', 'a.h5');
    expect((await refusal(() => File.open(path, { mode: 'a' }))).message).toMatch(/directory/);
  });

  test('works on a storage: one without bytes is nothing yet', async () => {
    const storage = memoryStorage();
    const file = await File.open(storage, { mode: 'a' });
    file.createGroup('g');
    await file.close();
    const again = File.openSync(storage, { mode: 'a' });
    expect([...again.keys()]).toEqual(['g']);
    again.closeSync();
    expect((await refusal(() => File.open(new Blob([]), { mode: 'a' }))).code).toBe('READ_ONLY');
  });

  test('of two that open at once, one creates; no file is replaced', async () => {
    for (let i = 0; i < 20; i++) {
      const path = join(temporaryDirectory(), 'a.h5');
      const opened = await Promise.allSettled([1, 2, 3].map(() => File.open(path, { mode: 'a' })));
      const files = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      expect(files).toHaveLength(1);
      for (const result of opened)
        if (result.status === 'rejected') expect(isH5LogError(result.reason, 'LOCKED')).toBe(true);
      files[0]?.createGroup(`g${i}`);
      await files[0]?.close();
      expect((await list(path)).objects.map(({ name }) => name)).toEqual([`g${i}`]);
    }
  });

  test('is agreed by several ranks', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const module = new URL('./open-or-create-rank.ts', import.meta.url);
    for (let time = 1; time <= 2; time++)
      expect(await runThreads(3, module, { path })).toEqual(Array(3).fill(['r+', 3 * time]));
    await expect(runThreads(2, module, { path: `${path}.other`, mixed: true })).rejects.toMatchObject({
      code: 'MISMATCH',
    });
  });
});
