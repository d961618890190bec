import { describe, expect, test } from 'vitest';
import { parseSuperblock, SUPERBLOCK_SIZE } from '../../../src/hdf5/format/superblock.ts';
import { type Append, Appender } from '../../../src/hdf5/write/appender.ts';
import { driveSync, type Io } from '../../../src/storage/io.ts';
import { type MemoryStorage, memoryStorage } from '../../../src/storage/memory.ts';

/** A new file behind `base` bytes, and everything that is asked of its storage. */
function started(power = false, base = 0) {
  const storage = memoryStorage(new Uint8Array(base));
  const superblock = { base, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
  const appender = new Appender({ name: 'memory', superblock, power });
  const operations: string[] = [];
  /** Runs; the operations whose name is `failing` fail. */
  const run = (io: Io<void>, failing?: string): void => {
    const watched = (function* (): Io<void> {
      let step = io.next();
      while (!step.done) {
        operations.push(step.value.op);
        if (step.value.op === failing) step = io.throw(new Error(`${failing} failed`));
        else step = io.next(yield step.value);
      }
    })();
    driveSync(storage, watched);
  };
  return { storage, appender, operations, run };
}

const append = (at: number, byte: number, length = 100): Append => ({
  at,
  parts: [new Uint8Array(length).fill(byte)],
  end: at + length,
  root: at,
  extension: -1,
});

function superblockOf(storage: MemoryStorage, base = 0) {
  const bytes = storage.bytes();
  return parseSuperblock(bytes.subarray(base), base, bytes.length);
}

describe('a commit', () => {
  test.each([0, 512])('appends, then flips the superblock, behind %i other bytes', (base) => {
    const { storage, appender, operations, run } = started(false, base);
    run(appender.commit(append(48, 7)));
    expect(operations.filter((op) => op === 'write' || op === 'flip')).toEqual(['write', 'flip']);
    expect(superblockOf(storage, base)).toMatchObject({ end: 148, root: 48, extension: -1, base });
    expect(storage.bytes().slice(base + 48, base + 148)).toEqual(new Uint8Array(100).fill(7));
    expect(appender.committedEnd).toBe(148);
  });

  test('is synced before and after the flip if power may fail, and never otherwise', () => {
    const careful = started(true);
    careful.run(careful.appender.commit(append(48, 7)));
    expect(careful.operations.filter((op) => ['write', 'flip', 'sync'].includes(op))).toEqual([
      'write',
      'sync',
      'flip',
      'sync',
    ]);
    const quick = started(false);
    quick.run(quick.appender.commit(append(48, 7)));
    expect(quick.operations).not.toContain('sync');
  });

  test('that is done again does nothing', () => {
    const { appender, operations, run } = started();
    run(appender.commit(append(48, 7)));
    const count = operations.length;
    run(appender.commit(append(48, 7)));
    expect(operations).toHaveLength(count);
  });

  test('leaves the file longer than its contents, so that a reader who looks at the size first is not misled', () => {
    const { storage, appender, run } = started();
    run(appender.commit(append(48, 7)));
    const grown = storage.bytes().length;
    expect(grown).toBeGreaterThan(148 + 2 ** 18);
    run(appender.commit(append(148, 8)));
    expect(storage.bytes().length).toBe(grown);
    run(appender.close());
    expect(storage.bytes().length).toBe(248);
  });

  test('writes its bytes by another hand if one is given', () => {
    const { storage, appender, run } = started();
    run(
      appender.commit(append(48, 7), function* ({ at }) {
        yield { op: 'write', parts: [Uint8Array.of(1, 2, 3)], offset: at };
      }),
    );
    expect([...storage.bytes().slice(48, 52)]).toEqual([1, 2, 3, 0]);
    expect(superblockOf(storage).end).toBe(148);
  });
});

describe('a commit that fails', () => {
  test.each(['write', 'truncate'])('in a %s leaves the superblock as it was', (failing) => {
    const { storage, appender, run } = started();
    if (failing === 'write') run(appender.commit(append(48, 7)));
    const before = storage.bytes().slice(0, 48);
    expect(() => run(appender.commit(append(148, 8)), failing)).toThrow(`${failing} failed`);
    expect(storage.bytes().slice(0, before.length)).toEqual(before);
    run(appender.commit(append(148, 8)));
    expect(superblockOf(storage)).toMatchObject({ end: 248, root: 148 });
  });

  test('in a sync behind the flip puts the old superblock back: whether the new one arrived is not known', () => {
    const { storage, appender, operations, run } = started(true);
    run(appender.commit(append(48, 7)));
    const before = storage.bytes().slice(0, 48);
    operations.length = 0;
    expect(() => run(appender.commit(append(148, 8)), 'sync')).toThrow('sync failed');
    expect(storage.bytes().slice(0, 48)).toEqual(before);
    run(appender.commit(append(148, 8)));
    expect(superblockOf(storage)).toMatchObject({ end: 248, root: 148 });
  });
});

describe('another writer is noticed', () => {
  test.each([
    ['cuts the file', (storage: MemoryStorage) => storage.blocking.truncate(148)],
    ['changes the superblock', (storage: MemoryStorage) => storage.blocking.write([Uint8Array.of(1)], 44)],
  ])('when it %s: nothing is committed, and nothing is cut at the end', (_what, change) => {
    const { storage, appender, run } = started();
    run(appender.commit(append(48, 7)));
    change(storage);
    const before = storage.bytes();
    expect(() => run(appender.commit(append(148, 8)))).toThrow(expect.objectContaining({ code: 'STORAGE' }));
    run(appender.close());
    expect(Buffer.compare(storage.bytes(), before)).toBe(0);
  });
});
