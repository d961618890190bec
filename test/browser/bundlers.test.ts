import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { File, type File as OpenFile } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { build, type Rollup } from 'vite';
import { expect, onTestFinished, test } from 'vitest';
import { root } from '../../scripts/root.ts';

// The package says that its modules have no side effects, so that bundlers leave out what nobody uses. The chunk with the code that writes
// is imported for what it does: Vite (Rolldown) must keep it, apart from what a page loads first. Browsers are left out of this: the
// result runs here as well.

const PAGE = `
  import { File } from 'h5log';
  import { memoryStorage } from 'h5log/storage';
  export const read = async (bytes) => [...await (await File.open(bytes)).dataset('x').read()];
  export async function write() {
    const storage = memoryStorage();
    const file = await File.create(storage);
    file.createDataset('y', { dtype: 'int16', shape: [2] }).write([3, 4]);
    await file.close();
    return storage.bytes();
  }`;

interface Page {
  read(bytes: Uint8Array): Promise<number[]>;
  write(): Promise<Uint8Array>;
}

test('Vite keeps the code that writes in a chunk that is loaded when it is needed', { timeout: 60_000 }, async () => {
  // Inside the project, so that the name h5log leads to it, as it was built.
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache', 'vite-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const input = join(folder, 'page.js');
  writeFileSync(input, PAGE);
  const result = await build({
    root: folder,
    configFile: false,
    logLevel: 'error',
    build: {
      outDir: join(folder, 'out'),
      rollupOptions: { input, preserveEntrySignatures: 'strict', output: { entryFileNames: 'page.js' } },
    },
  });
  const chunks = (result as Rollup.RollupOutput).output.filter((output) => output.type === 'chunk');
  const atOnce = new Set(['page.js']);
  for (const name of atOnce)
    for (const other of chunks.find((one) => one.fileName === name)?.imports ?? []) atOnce.add(other);
  const later = chunks.filter(({ fileName }) => !atOnce.has(fileName)).map(({ fileName }) => fileName);
  expect(later).toEqual([expect.stringMatching(/^assets\/writing-/)]);

  const page = (await import(pathToFileURL(join(folder, 'out', 'page.js')).href)) as Page;
  const storage = memoryStorage();
  using file: OpenFile = File.createSync(storage);
  file.createDataset('x', { dtype: 'int8', shape: [2] }).write([1, 2]);
  file.flushSync();
  expect(await page.read(storage.bytes())).toEqual([1, 2]);
  using written = File.openSync(await page.write());
  expect(written.dataset('y').readSync()).toEqual(Int16Array.of(3, 4));
});
