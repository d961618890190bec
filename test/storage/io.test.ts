import { describe, expect, test } from 'vitest';
import { H5LogError } from '../../src/base/errors.ts';
import { blobStorage } from '../../src/storage/blob.ts';
import { driveAsync, driveSync, type Io } from '../../src/storage/io.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import type { ByteStorage } from '../../src/storage/storage.ts';
import { faultyStorage } from './faulty.ts';
import { errorOf, pattern } from './scratch.ts';

const ways: [string, <T>(storage: ByteStorage, io: Io<T>) => T | Promise<T>][] = [
  ['driveSync', driveSync],
  ['driveAsync', driveAsync],
];

describe.each(ways)('%s', (_, drive) => {
  test('performs every operation and returns its result', async () => {
    const storage = memoryStorage(pattern(5));
    function* work(): Io<unknown[]> {
      const into = new Uint8Array(4);
      const read = yield { op: 'read', into, offset: 3 };
      const size = yield { op: 'size' };
      const written = yield { op: 'write', parts: [pattern(2), pattern(1)], offset: 5 };
      const flipped = yield { op: 'flip', parts: [Uint8Array.of(9)], offset: 0 };
      const synced = yield { op: 'sync' };
      const cut = yield { op: 'truncate', size: 7 };
      return [read, [...into.subarray(0, read)], size, written, flipped, synced, cut];
    }
    expect(await drive(storage, work())).toEqual([2, [...pattern(5).subarray(3)], 5, 0, 0, 0, 0]);
    expect([...storage.bytes()]).toEqual([9, ...pattern(5).subarray(1), ...pattern(2)]);
  });

  test.each([Number.NaN, -1, 1.5, Infinity])('refuses a size of %s', async (size) => {
    const storage = { ...memoryStorage(), size: async () => size };
    storage.blocking.size = () => size;
    function* work(): Io<number> {
      return yield { op: 'size' };
    }
    expect(await errorOf(() => drive(storage, work()))).toMatchObject({ code: 'STORAGE' });
  });

  test('runs code without operations', async () => {
    function* work(operations: number): Io<string> {
      for (let i = 0; i < operations; i++) yield { op: 'size' };
      return 'done';
    }
    expect(await drive(memoryStorage(), work(0))).toBe('done');
  });

  test('throws what the code throws, as it is', async () => {
    const own = new TypeError('mine');
    function* work(): Io<void> {
      yield { op: 'size' };
      throw own;
    }
    expect(await errorOf(() => drive(memoryStorage(), work()))).toBe(own);
  });

  test('delivers a failure into the code, which can go on', async () => {
    const storage = faultyStorage({ bytes: pattern(4), faults: [{ op: 'read', at: 0, code: 'EIO' }] });
    const events: unknown[] = [];
    function* work(): Io<number> {
      const into = new Uint8Array(4);
      try {
        yield { op: 'read', into, offset: 0 };
      } catch (error) {
        events.push((error as H5LogError).code);
      } finally {
        events.push('finally');
      }
      return yield { op: 'read', into, offset: 1 };
    }
    expect(await drive(storage, work())).toBe(3);
    expect(events).toEqual(['STORAGE', 'finally']);
  });

  test('wraps foreign errors with the operation, the offset and the cause', async () => {
    const cause = new RangeError('boom');
    const fails = (): never => {
      throw cause;
    };
    const memory = memoryStorage();
    const storage: ByteStorage = {
      ...memory,
      name: 'odd',
      read: fails,
      blocking: { ...memory.blocking, read: fails, write: fails },
    };
    function* reads(): Io<void> {
      yield { op: 'read', into: new Uint8Array(1), offset: 42 };
    }
    function* flips(): Io<void> {
      yield { op: 'flip', parts: [], offset: 0 };
    }
    const error = await errorOf(() => drive(storage, reads()));
    expect(error).toBeInstanceOf(H5LogError);
    expect(error).toMatchObject({
      code: 'STORAGE',
      file: 'odd',
      offset: 42,
      cause,
      message: expect.stringContaining('boom'),
    });
    expect(await errorOf(() => drive(storage, flips()))).toMatchObject({ code: 'STORAGE', cause });
  });

  test('writing to what is read only gives READ_ONLY', async () => {
    const { name, size, read, close, blocking } = memoryStorage();
    const storage: ByteStorage = { name, size, read, close, blocking };
    for (const operation of [
      { op: 'write', parts: [], offset: 0 },
      { op: 'flip', parts: [], offset: 0 },
      { op: 'truncate', size: 0 },
    ] as const) {
      function* work(): Io<number> {
        return yield operation;
      }
      expect(await errorOf(() => drive(storage, work()))).toMatchObject({ code: 'READ_ONLY' });
    }
  });
});

test('driveSync needs a blocking half and says so', async () => {
  function* work(): Io<number> {
    return yield { op: 'size' };
  }
  expect(await errorOf(() => driveSync(blobStorage(new Blob([])), work()))).toMatchObject({ code: 'UNSUPPORTED' });
});

describe('driveAsync', () => {
  test('flips through the blocking half, at once', async () => {
    const storage = faultyStorage({ delays: true });
    storage.pause();
    function* work(): Io<number> {
      return yield { op: 'flip', parts: [pattern(3)], offset: 0 };
    }
    expect(await driveAsync(storage, work())).toBe(0);
    expect(storage.processImage()).toEqual(pattern(3));
  });

  test('flips asynchronously where there is no other way', async () => {
    const storage = faultyStorage({ asyncOnly: true });
    function* work(): Io<number> {
      return yield { op: 'flip', parts: [pattern(3)], offset: 0 };
    }
    await driveAsync(storage, work());
    expect(storage.processImage()).toEqual(pattern(3));
  });

  test('an aborted signal rejects with its reason and runs the code to its finally', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const storage = memoryStorage(pattern(10));
    let operations = 0;
    let cleaned = false;
    function* work(): Io<void> {
      try {
        for (;;) {
          yield { op: 'size' };
          if (++operations === 3) controller.abort(reason);
        }
      } finally {
        cleaned = true;
      }
    }
    expect(await errorOf(() => driveAsync(storage, work(), controller.signal))).toBe(reason);
    expect([operations, cleaned]).toEqual([3, true]);
  });

  test('a signal that is aborted before the start lets no operation run', async () => {
    const storage = faultyStorage();
    function* work(): Io<void> {
      yield { op: 'write', parts: [pattern(1)], offset: 0 };
    }
    expect(await errorOf(() => driveAsync(storage, work(), AbortSignal.abort('no')))).toBe('no');
    expect(storage.log).toEqual([]);
  });
});
