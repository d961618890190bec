import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { nodeStorage } from '../../../src/storage/node/file.ts';
import { realFile } from '../../../src/storage/node/path.ts';
import { scatteredReadsOf } from '../../../src/storage/storage.ts';
import { storageConformance } from '../conformance.ts';
import { canDropRights, errorOf, expectBytes, pattern, scratchDirectory, withoutRights } from '../scratch.ts';

const directory = scratchDirectory();
fs.chmodSync(directory, 0o755);
let count = 0;
function fileWith(bytes: Uint8Array): string {
  const path = join(directory, `file-${count++}`);
  fs.writeFileSync(path, bytes);
  return path;
}

storageConformance('a file opened r+', (bytes) => nodeStorage(fileWith(bytes), 'r+'));
storageConformance('a file opened w+', (bytes) => {
  const storage = nodeStorage(fileWith(pattern(50)), 'w+');
  storage.blocking.write([bytes], 0);
  return storage;
});
storageConformance('a file opened wx+', (bytes) => {
  const storage = nodeStorage(join(directory, `file-${count++}`), 'wx+');
  storage.blocking.write([bytes], 0);
  return storage;
});
storageConformance('a file opened r', (bytes) => nodeStorage(fileWith(bytes), 'r'), { readOnly: true });

test.runIf(process.platform === 'linux')(
  'a file opened for writing keeps its time of last access when it is read',
  () => {
    for (const mode of ['r+', 'w+', 'wx+'] as const) {
      const path = mode === 'wx+' ? join(directory, `file-${count++}`) : fileWith(pattern(50));
      const { blocking } = nodeStorage(path, mode);
      blocking.write([pattern(100)], 0);
      // Earlier than the write, so that a read changes it also where the system is asked to change it seldom.
      fs.utimesSync(path, 1, fs.statSync(path).mtimeMs / 1000);
      expect(blocking.read(new Uint8Array(10), 0)).toBe(10);
      expect(fs.statSync(path).atimeMs, mode).toBe(1000);
      blocking.close();
    }
  },
);

describe('reading a file into several buffers', () => {
  const bytes = pattern(3_000_000);
  const parts = (): Uint8Array[] => Array.from({ length: 2500 }, (_, i) => new Uint8Array(1000 + (i % 7)).fill(9));
  const joined = (filled: readonly Uint8Array[]): Uint8Array => Buffer.concat(filled);

  test('fills one after the other, also more than the system takes in one call', async () => {
    const storage = nodeStorage(fileWith(bytes), 'r');
    const reads = scatteredReadsOf(storage);
    const [blocking, asynchronous] = [parts(), parts()];
    const length = joined(blocking).length;
    expect(reads?.readSync(blocking, 77)).toBe(length);
    expect(await reads?.read(asynchronous, 77)).toBe(length);
    expectBytes(joined(blocking), bytes.subarray(77, 77 + length));
    expectBytes(joined(asynchronous), bytes.subarray(77, 77 + length));
    await storage.close();
    expect(await errorOf(() => reads?.readSync(blocking, 0))).toMatchObject({ code: 'CLOSED' });
    expect(await errorOf(() => reads?.read(blocking, 0))).toMatchObject({ code: 'CLOSED' });
  });

  test('ends with the file', async () => {
    const storage = nodeStorage(fileWith(bytes.subarray(0, 10_500)), 'r');
    const reads = scatteredReadsOf(storage);
    for (const read of ['readSync', 'read'] as const) {
      const into = parts();
      expect(await reads?.[read](into, 500)).toBe(10_000);
      const all = joined(into);
      expectBytes(all.subarray(0, 10_000), bytes.subarray(500, 10_500));
      expect(all.subarray(10_000).every((byte) => byte === 9)).toBe(true);
    }
    await storage.close();
  });
});

test('large reads, which several threads share, end with the file', async () => {
  const bytes = pattern(20_000_000);
  const storage = nodeStorage(fileWith(bytes), 'r');
  const into = new Uint8Array(30_000_000);
  expect(await storage.read(into, 0)).toBe(20_000_000);
  expectBytes(into.subarray(0, 20_000_000), bytes);
  expect(await storage.read(into.subarray(0, 12_000_000), 7_000_001)).toBe(12_000_000);
  expectBytes(into.subarray(0, 12_000_000), bytes.subarray(7_000_001, 19_000_001));
  await storage.close();
});

describe('opening a file', () => {
  test('that is missing gives NOT_FOUND', async () => {
    for (const mode of ['r', 'r+'] as const) {
      const error = await errorOf(() => nodeStorage(join(directory, 'missing'), mode));
      expect(error).toMatchObject({ code: 'NOT_FOUND', cause: { code: 'ENOENT' }, file: join(directory, 'missing') });
    }
    expect(await errorOf(() => nodeStorage(join(directory, 'no', 'such'), 'w+'))).toMatchObject({ code: 'NOT_FOUND' });
  });

  test('wx+ that exists gives EXISTS and leaves it alone', async () => {
    const path = fileWith(pattern(5));
    expect(await errorOf(() => nodeStorage(path, 'wx+'))).toMatchObject({ code: 'EXISTS' });
    expect(new Uint8Array(fs.readFileSync(path))).toEqual(pattern(5));
  });

  test('that is a directory gives STORAGE', async () => {
    for (const mode of ['r', 'r+', 'w+'] as const) {
      expect(await errorOf(() => nodeStorage(directory, mode))).toMatchObject({ code: 'STORAGE' });
    }
  });

  test.skipIf(!canDropRights)('without the right to write gives READ_ONLY naming it', async () => {
    const path = fileWith(pattern(5));
    fs.chmodSync(path, 0o444);
    for (const mode of ['r+', 'w+'] as const) {
      const error = await errorOf(() => withoutRights(() => nodeStorage(path, mode)));
      expect(error).toMatchObject({ code: 'READ_ONLY', message: expect.stringContaining(path) });
    }
    withoutRights(() => nodeStorage(path, 'r')).blocking.close();
  });

  test.skipIf(!canDropRights)('without the right to read gives STORAGE', async () => {
    const path = fileWith(pattern(5));
    fs.chmodSync(path, 0);
    expect(await errorOf(() => withoutRights(() => nodeStorage(path, 'r')))).toMatchObject({
      code: 'STORAGE',
      cause: { code: 'EACCES' },
    });
  });

  test('works by file: URL, as an object and as a string, with spaces', () => {
    const path = join(directory, 'a name with spaces');
    const url = pathToFileURL(path);
    nodeStorage(url, 'wx+').blocking.close();
    const storage = nodeStorage(url.href, 'r');
    expect(storage.name).toBe(path);
    storage.blocking.close();
  });

  test('by another URL or by nothing gives OPTION', async () => {
    for (const path of [new URL('http://localhost/x'), '', 'a\0b']) {
      expect(await errorOf(() => nodeStorage(path, 'r'))).toMatchObject({ code: 'OPTION' });
    }
  });
});

describe('a file in use', () => {
  test('close waits for what is in flight and refuses what comes after', async () => {
    const path = fileWith(new Uint8Array(0));
    const storage = nodeStorage(path, 'r+');
    const writes = Array.from({ length: 50 }, (_, i) => storage.write?.([pattern(10_000, i)], i * 10_000));
    const closed = storage.close();
    expect(await errorOf(() => storage.write?.([pattern(1)], 0))).toMatchObject({ code: 'CLOSED' });
    expect(await errorOf(() => storage.blocking.write([pattern(1)], 0))).toMatchObject({ code: 'CLOSED' });
    await closed;
    await Promise.all(writes);
    const found = new Uint8Array(fs.readFileSync(path));
    for (let i = 0; i < 50; i++) expectBytes(found.subarray(i * 10_000, (i + 1) * 10_000), pattern(10_000, i));
  });

  test('a blocking close never gives the descriptor away under an operation in flight', async () => {
    const path = fileWith(new Uint8Array(0));
    const other = fileWith(new Uint8Array(0));
    const storage = nodeStorage(path, 'r+');
    const writes = Array.from({ length: 50 }, (_, i) => storage.write?.([pattern(10_000, i)], i * 10_000));
    storage.blocking.close();
    const next = nodeStorage(other, 'r+');
    await Promise.all(writes);
    await storage.close();
    expect(next.blocking.size()).toBe(0);
    next.blocking.close();
    expect(fs.statSync(path).size).toBe(500_000);
  });

  test.skipIf(!fs.existsSync('/dev/full'))('a full disk gives STORAGE with the cause, in both halves', async () => {
    const storage = nodeStorage('/dev/full', 'r+');
    const expected = {
      code: 'STORAGE',
      offset: 8,
      cause: { code: 'ENOSPC' },
      message: expect.stringContaining('ENOSPC'),
    };
    expect(await errorOf(() => storage.write?.([pattern(4)], 8))).toMatchObject(expected);
    expect(await errorOf(() => storage.blocking.write([pattern(4)], 8))).toMatchObject(expected);
    await storage.close();
  });

  test('a write cut short by a file size limit fails, in both halves', () => {
    // ulimit counts 1024-byte blocks: the kernel writes what fits and refuses the rest.
    const script = `
      import('./src/storage/node/file.ts').then(async ({ nodeStorage }) => {
        process.on('SIGXFSZ', () => {});
        const storage = nodeStorage(process.argv[1], 'w+');
        const codes = [];
        try { storage.blocking.write([new Uint8Array(6000).fill(1), new Uint8Array(6000).fill(2)], 0); } catch (e) { codes.push(e.code, e.cause.code); }
        try { await storage.write([new Uint8Array(12000)], 0); } catch (e) { codes.push(e.code, e.cause.code); }
        console.log(JSON.stringify([codes, storage.blocking.size()]));
      });`;
    const command = `ulimit -f 8; exec "$0" --import tsx -e "$1" "$2"`;
    const path = join(directory, 'limited');
    const out = execFileSync('bash', ['-c', command, process.execPath, script, path], { encoding: 'utf8' });
    expect(JSON.parse(out)).toEqual([['STORAGE', 'EFBIG', 'STORAGE', 'EFBIG'], 8192]);
  });

  test('offsets beyond 4 GiB', () => {
    const storage = nodeStorage(join(directory, 'sparse'), 'w+');
    storage.blocking.write([pattern(10)], 5 * 2 ** 30);
    const into = new Uint8Array(12);
    expect(storage.blocking.read(into, 5 * 2 ** 30 - 2)).toBe(12);
    expect([...into]).toEqual([0, 0, ...pattern(10)]);
    storage.blocking.truncate(0);
    storage.blocking.close();
  });
});

describe('realFile', () => {
  test('is one path for every spelling, also through links and for files to be', () => {
    const root = fs.realpathSync(directory);
    const real = join(root, 'real');
    fs.mkdirSync(real);
    fs.symlinkSync(real, join(directory, 'alias'));
    fs.writeFileSync(join(real, 'a'), '');
    fs.symlinkSync('real/a', join(directory, 'to-a'));
    fs.symlinkSync('alias/new', join(directory, 'to-new'));
    for (const spelling of ['real/a', 'alias/a', 'real/../real/./a', 'to-a']) {
      expect(realFile(join(directory, spelling))).toBe(join(real, 'a'));
      expect(realFile(`${directory}/${spelling}`)).toBe(join(real, 'a'));
    }
    expect(realFile(relative(process.cwd(), join(directory, 'alias', 'a')))).toBe(join(real, 'a'));
    expect(realFile(join(directory, 'to-new'))).toBe(join(real, 'new'));
    expect(realFile(pathToFileURL(join(directory, 'alias', 'new')))).toBe(join(real, 'new'));
  });

  test('refuses circles and missing directories', async () => {
    fs.symlinkSync('loop-b', join(directory, 'loop-a'));
    fs.symlinkSync('loop-a', join(directory, 'loop-b'));
    expect(await errorOf(() => realFile(join(directory, 'loop-a')))).toMatchObject({ code: 'STORAGE' });
    expect(await errorOf(() => realFile(join(directory, 'nowhere', 'a')))).toMatchObject({ code: 'NOT_FOUND' });
  });
});
