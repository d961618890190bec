import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { faultyStorage, type Operation } from '../storage/faulty.ts';
import { canDropRights, withoutRights } from '../storage/scratch.ts';
import { temporaryDirectory } from '../temporary.ts';
import { compile, startProgram } from './program.ts';
import { applyCommit, commitOf } from './states.ts';

const directory = temporaryDirectory();
let count = 0;
/** A path in a directory of its own. */
function fresh(): string {
  const own = join(directory, String(count++));
  mkdirSync(own);
  return join(own, 'run.h5');
}
const beside = (path: string): string[] => readdirSync(join(path, '..')).sort();
const endInSuperblock = (path: string): number => Number(readFileSync(path).readBigUInt64LE(28));

describe('the lock', () => {
  test('a second writer in this process gets LOCKED, naming host and process; readers need no lock', async () => {
    const path = fresh();
    const file = await File.create(path);
    applyCommit(file, 1);
    file.flushSync();
    for (const second of [
      () => File.open(path, { mode: 'r+' }),
      () => File.create(path),
      async () => File.openSync(path, { mode: 'r+' }),
    ]) {
      const error = await second().catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'LOCKED', message: expect.stringContaining(hostname()) as string });
      expect(String(error)).toContain(String(process.pid));
    }
    expect(commitOf(File.openSync(path))).toBe(1);
    expect(commitOf(await File.open(path))).toBe(1);
    // The attempts left nothing behind and changed nothing.
    expect(beside(path)).toEqual(['run.h5', 'run.h5.lock']);
    applyCommit(file, 2);
    await file.close();
    expect(beside(path)).toEqual(['run.h5']);
    await (await File.open(path, { mode: 'r+' })).close();
  });

  test('of another process: LOCKED while it lives, taken over when it was killed', async () => {
    const path = fresh();
    const writer = startProgram(compile('writer.ts'), [path, 'create', 'process', '1', '1000000', '5']);
    await writer.line('commit 3');
    const error = await File.open(path, { mode: 'r+' }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCKED', message: expect.stringContaining(hostname()) as string });
    expect(String(error)).toContain(String(writer.child.pid));
    await expect(File.create(path)).rejects.toMatchObject({ code: 'LOCKED' });
    expect(commitOf(File.openSync(path))).toBeGreaterThanOrEqual(3);
    writer.kill();
    await writer.end();
    expect(beside(path)).toEqual(['run.h5', 'run.h5.lock']);
    const file = await File.open(path, { mode: 'r+' });
    const n = commitOf(file);
    applyCommit(file, n + 1);
    await file.close();
    expect(commitOf(File.openSync(path))).toBe(n + 1);
    expect(beside(path)).toEqual(['run.h5']);
  });
});

test('two writers, because somebody removed the lock: the one that comes second commits nothing', async () => {
  const path = fresh();
  const first = File.createSync(path);
  applyCommit(first, 1);
  first.flushSync();
  rmSync(`${path}.lock`);
  const second = await File.open(path, { mode: 'r+' });
  applyCommit(second, 2);
  await second.flush();
  applyCommit(first, 2);
  first.attributes.set('mine', true);
  expect(() => first.flushSync()).toThrow(expect.objectContaining({ code: 'STORAGE' }));
  expect(commitOf(File.openSync(path))).toBe(2);
  applyCommit(second, 3);
  await second.close();
  expect(() => first.closeSync()).toThrow(expect.objectContaining({ code: 'STORAGE' }));
  expect(commitOf(File.openSync(path))).toBe(3);
  expect(statSync(path).size).toBe(endInSuperblock(path));
});

test('two writers of an ordinary file: the one that comes second writes nothing over what the first has committed', () => {
  const path = fresh();
  const values = (length: number, value: number): Float64Array => new Float64Array(length).fill(value);
  const made = File.createSync(path, { connector: 'native' });
  made.createDataset('d', { dtype: 'float64', shape: [40_000], chunks: [10_000] }).write(values(40_000, 1));
  made.closeSync();
  const first = File.openSync(path, { mode: 'r+' });
  rmSync(`${path}.lock`);
  const second = File.openSync(path, { mode: 'r+' });
  second.dataset('d').write(values(20_000, 2), { start: [0], count: [20_000] });
  second.closeSync();
  first.dataset('d').write(values(40_000, 3));
  expect(() => first.closeSync()).toThrow(expect.objectContaining({ code: 'STORAGE' }));
  first.discard();
  const file = File.openSync(path);
  const read = file.dataset('d').readSync() as Float64Array;
  expect([read[0], read[19_999], read[20_000], read[39_999]]).toEqual([2, 2, 1, 1]);
  file.closeSync();
});

test.each(['removed', 'replaced'])(
  'a file that was %s under its writer: STORAGE, not commits that nobody will see',
  async (how) => {
    const path = fresh();
    const file = File.createSync(path);
    applyCommit(file, 1);
    file.flushSync();
    if (how === 'replaced') {
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    } else rmSync(path);
    applyCommit(file, 2);
    expect(() => file.flushSync()).toThrow(expect.objectContaining({ code: 'STORAGE' }));
    await expect(file.flush()).rejects.toMatchObject({ code: 'STORAGE' });
    expect(commitOf(file)).toBe(2);
    if (how === 'replaced') expect(commitOf(File.openSync(path))).toBe(1);
  },
);

describe('closing', () => {
  test('without waiting takes over a flush on its way', async () => {
    const path = fresh();
    const file = File.createSync(path);
    applyCommit(file, 1);
    const flush = file.flush();
    applyCommit(file, 2);
    file.closeSync();
    expect(commitOf(File.openSync(path))).toBe(2);
    expect((await flush).sequence).toBeGreaterThan(0);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(statSync(path).size).toBe(endInSuperblock(path));
    expect(commitOf(File.openSync(path))).toBe(2);
  });

  test('blocking, while an asynchronous close is on its way, ends both', async () => {
    for (let turns = 0; turns < 12; turns++) {
      const disk = faultyStorage({ seed: turns, delays: true });
      const file = await File.create(disk, { durability: 'power' });
      applyCommit(file, 1);
      const closing = file.close();
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
      file.closeSync();
      expect(commitOf(File.openSync(memoryStorage(disk.processImage())))).toBe(1);
      await closing;
      expect(file.closed).toBe(true);
      const { length } = disk.processImage();
      expect(Buffer.from(disk.processImage()).readBigUInt64LE(28)).toBe(BigInt(length));
    }
  });

  test.each(['power', 'process'] as const)(
    '%s: what changes meanwhile is committed or refused, never dropped',
    async (durability) => {
      for (let turns = 0; turns < 12; turns++) {
        const disk = faultyStorage({ seed: turns, delays: true });
        const file = await File.create(disk, { durability });
        applyCommit(file, 1);
        const closing = file.close();
        for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
        let expected = 2;
        try {
          applyCommit(file, 2);
        } catch (error) {
          expect(error).toMatchObject({ code: 'CLOSED' });
          expected = 1;
        }
        await closing;
        expect(commitOf(File.openSync(memoryStorage(disk.processImage())))).toBe(expected);
      }
    },
  );
});

describe('create', () => {
  test('with exclusive refuses a path that is taken, and makes one that is not', async () => {
    const path = fresh();
    const file = File.createSync(path, { exclusive: true });
    applyCommit(file, 1);
    file.closeSync();
    await expect(File.create(path, { exclusive: true })).rejects.toMatchObject({ code: 'EXISTS' });
    expect(() => File.createSync(path, { exclusive: true })).toThrow(expect.objectContaining({ code: 'EXISTS' }));
    expect(commitOf(File.openSync(path))).toBe(1);
    expect(beside(path)).toEqual(['run.h5']);
  });

  test('replaces by rename: who has the old file open keeps reading it', async () => {
    const path = fresh();
    const first = File.createSync(path);
    for (let n = 1; n <= 5; n++) applyCommit(first, n);
    first.closeSync();
    const old = statSync(path);
    const reader = File.openSync(path);
    const second = await File.create(path);
    applyCommit(second, 1);
    await second.close();
    expect(statSync(path).ino).not.toBe(old.ino);
    expect(commitOf(reader)).toBe(5);
    reader.closeSync();
    expect(commitOf(File.openSync(path))).toBe(1);
    expect(beside(path)).toEqual(['run.h5']);
  });

  test('through a symbolic link replaces the file and not the link', () => {
    const path = fresh();
    File.createSync(path).closeSync();
    const link = join(path, '..', 'link.h5');
    symlinkSync('run.h5', link);
    const file = File.createSync(link);
    applyCommit(file, 1);
    expect(() => File.openSync(path, { mode: 'r+' })).toThrow(expect.objectContaining({ code: 'LOCKED' }));
    file.closeSync();
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(commitOf(File.openSync(path))).toBe(1);
  });

  test.runIf(canDropRights)('where nothing may be written leaves nothing behind', async () => {
    const path = fresh();
    const own = join(path, '..');
    chmodSync(directory, 0o755);
    chmodSync(own, 0o555);
    const error = withoutRights(() => {
      try {
        return File.createSync(path);
      } catch (reason) {
        return reason;
      }
    });
    expect(error).toMatchObject({ code: 'READ_ONLY' });
    expect(beside(path)).toEqual([]);
    await expect(File.create(join(own, 'none', 'run.h5'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    mkdirSync(path);
    await expect(File.create(path)).rejects.toMatchObject({ code: 'STORAGE' });
    expect(beside(path)).toEqual(['run.h5']);
    expect(beside(join(path, 'x'))).toEqual([]);
  });
});

describe('the size of the file', () => {
  test('is ahead of its contents while it is open, and cut to them at close', async () => {
    const path = fresh();
    const file = File.createSync(path);
    for (let n = 1; n <= 400; n++) {
      applyCommit(file, n);
      file.flushSync();
      expect(statSync(path).size).toBeGreaterThan(endInSuperblock(path) + 2 ** 17);
    }
    file.closeSync();
    expect(statSync(path).size).toBe(endInSuperblock(path));
    const again = await File.open(path, { mode: 'r+' });
    applyCommit(again, 401);
    await again.flush();
    expect(statSync(path).size).toBeGreaterThan(endInSuperblock(path) + 2 ** 17);
    await again.close();
    expect(statSync(path).size).toBe(endInSuperblock(path));
    expect(commitOf(File.openSync(path))).toBe(401);
  });

  test('opening for writing and closing again changes no byte', async () => {
    const path = fresh();
    const file = File.createSync(path);
    for (let n = 1; n <= 5; n++) applyCommit(file, n);
    file.closeSync();
    const bytes = readFileSync(path);
    await (await File.open(path, { mode: 'r+' })).close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });
});

describe('the order of a commit', () => {
  const named = (operation: Operation): string => {
    if (operation.kind !== 'write') return operation.kind;
    return operation.offset === 0 ? 'flip' : 'write';
  };
  /** Writes in a row count as one; changes of size come when they come. */
  const steps = (log: readonly Operation[]): string[] =>
    log
      .map(named)
      .filter((name) => name !== 'truncate')
      .filter((name, i, all) => name !== 'write' || all[i - 1] !== 'write');

  test.each(['flush', 'flushSync'] as const)('with power, %s writes, syncs, flips, syncs', async (flush) => {
    const disk = faultyStorage({ delays: true });
    const file = await File.create(disk, { durability: 'power', publish: 'never' });
    expect(steps(disk.log)).toEqual(['write', 'sync', 'flip', 'sync']);
    for (let n = 1; n <= 10; n++) {
      const before = disk.log.length;
      applyCommit(file, n);
      await file[flush]();
      expect(steps(disk.log.slice(before))).toEqual(['write', 'sync', 'flip', 'sync']);
    }
    const before = disk.log.length;
    await file[flush]();
    expect(disk.log).toHaveLength(before);
    await file.close();
    expect(disk.log.slice(before).map(named)).toEqual(['truncate', 'sync']);
  });

  test('without, it writes and flips', async () => {
    const disk = faultyStorage();
    const file = await File.create(disk);
    applyCommit(file, 1);
    await file.flush();
    applyCommit(file, 2);
    await file.close();
    expect(steps(disk.log)).toEqual(['write', 'flip', 'write', 'flip', 'write', 'flip']);
  });

  test('every flip is one write of the 48 bytes of a superblock', async () => {
    const disk = faultyStorage();
    const file = await File.create(disk);
    for (let n = 1; n <= 5; n++) {
      applyCommit(file, n);
      await file.flush();
    }
    const flips = disk.log.filter((operation) => operation.kind === 'write' && operation.offset === 0);
    expect(flips).toHaveLength(6);
    for (const flip of flips) expect(flip).toMatchObject({ length: 48 });
  });
});
