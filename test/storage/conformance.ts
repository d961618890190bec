import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isH5LogError } from '../../src/base/errors.ts';
import type { BlockingStorage, ByteStorage } from '../../src/storage/storage.ts';
import { runs } from '../seed.ts';
import { errorOf, expectBytes, pattern } from './scratch.ts';

/** Gives a fresh storage that holds `bytes`. */
export type MakeStorage = (bytes: Uint8Array) => ByteStorage | Promise<ByteStorage>;

export interface ConformanceOptions {
  /** Only the half of the suite that reads. */
  readonly readOnly?: boolean;
  /** A medium and not a handle: it can be used on after `close`. */
  readonly staysOpen?: boolean;
}

/** What every ByteStorage must do, in both halves if it has both. */
export function storageConformance(name: string, make: MakeStorage, options: ConformanceOptions = {}): void {
  describe(`${name} is a ByteStorage`, () => {
    readingConformance(make, options);
    if (options.readOnly) readOnlyConformance(make);
    else writingConformance(name, make);
  });
}

async function using(storage: ByteStorage, work: (storage: ByteStorage) => Promise<void>): Promise<void> {
  try {
    await work(storage);
  } finally {
    await storage.close();
  }
}

/** The same calls on either half, awaited. */
function halves(storage: ByteStorage): { half: string; calls: BlockingStorage | Required<ByteStorage> }[] {
  const asynchronous = { half: 'async', calls: storage as Required<ByteStorage> };
  return storage.blocking ? [asynchronous, { half: 'blocking', calls: storage.blocking }] : [asynchronous];
}

async function contentsOf(calls: BlockingStorage | ByteStorage): Promise<Uint8Array> {
  const bytes = new Uint8Array((await calls.size()) + 10);
  return bytes.subarray(0, await calls.read(bytes, 0));
}

function readingConformance(make: MakeStorage, { staysOpen }: ConformanceOptions): void {
  const bytes = pattern(200_000);

  test('has a name', async () => {
    await using(await make(bytes), async ({ name }) => expect(name).toMatch(/./));
  });

  test('reads any part of what it holds', async () => {
    await using(await make(bytes), async (storage) => {
      for (const { calls } of halves(storage)) {
        expect(await calls.size()).toBe(bytes.length);
        for (const [offset, length] of [
          [0, 1],
          [0, 200_000],
          [65_535, 2],
          [65_536, 65_536],
          [70_000, 130_000],
          [199_999, 1],
        ] as const) {
          const into = new Uint8Array(length);
          expect(await calls.read(into, offset)).toBe(length);
          expectBytes(into, bytes.subarray(offset, offset + length));
        }
      }
    });
  });

  test('reads short at the end and nothing beyond it, leaving the rest of the buffer alone', async () => {
    await using(await make(bytes), async (storage) => {
      for (const { calls } of halves(storage)) {
        const into = new Uint8Array(10).fill(7);
        expect(await calls.read(into, 199_997)).toBe(3);
        expect([...into]).toEqual([...bytes.subarray(199_997), 7, 7, 7, 7, 7, 7, 7]);
        expect(await calls.read(into.fill(7), 200_000)).toBe(0);
        expect(await calls.read(into, 2 ** 40)).toBe(0);
        expect(await calls.read(new Uint8Array(0), 5)).toBe(0);
        expect([...into]).toEqual(new Array(10).fill(7));
      }
    });
  });

  test('reads into a view without touching what is around it', async () => {
    await using(await make(bytes), async (storage) => {
      for (const { calls } of halves(storage)) {
        const buffer = new Uint8Array(12).fill(7);
        expect(await calls.read(buffer.subarray(4, 8), 100)).toBe(4);
        expect([...buffer]).toEqual([7, 7, 7, 7, ...bytes.subarray(100, 104), 7, 7, 7, 7]);
      }
    });
  });

  test('holds nothing when made of nothing', async () => {
    await using(await make(new Uint8Array(0)), async (storage) => {
      for (const { calls } of halves(storage)) {
        expect(await calls.size()).toBe(0);
        expect(await calls.read(new Uint8Array(4), 0)).toBe(0);
      }
    });
  });

  test('answers many reads at once', async () => {
    await using(await make(bytes), async (storage) => {
      const offsets = Array.from({ length: 100 }, (_, i) => i * 1997);
      const reads = offsets.map(async (offset) => {
        const into = new Uint8Array(300);
        expectBytes(into.subarray(0, await storage.read(into, offset)), bytes.subarray(offset, offset + 300));
      });
      await Promise.all(reads);
    });
  });

  test('refuses positions that are none', async () => {
    await using(await make(bytes), async (storage) => {
      for (const { calls } of halves(storage)) {
        for (const offset of [-1, 0.5, Number.NaN, 2 ** 60]) {
          expect(await errorOf(() => calls.read(new Uint8Array(1), offset))).toMatchObject({ code: 'STORAGE' });
        }
      }
    });
  });

  test(staysOpen ? 'can be used on after close' : 'throws CLOSED after close, and closes twice', async () => {
    const storage = await make(bytes);
    await storage.close();
    await storage.close();
    storage.blocking?.close();
    for (const { calls } of halves(storage)) {
      if (staysOpen) {
        expectBytes(await contentsOf(calls), bytes);
        continue;
      }
      const attempts: (() => unknown)[] = [() => calls.size(), () => calls.read(new Uint8Array(1), 0)];
      if (storage.write)
        attempts.push(
          () => calls.write([], 0),
          () => calls.truncate(0),
          () => calls.sync(),
        );
      for (const attempt of attempts) expect(await errorOf(attempt)).toSatisfy((e) => isH5LogError(e, 'CLOSED'));
    }
  });
}

function readOnlyConformance(make: MakeStorage): void {
  test('offers no way to write', async () => {
    await using(await make(pattern(10)), async (storage) => {
      expect(storage.write).toBeUndefined();
      expect(storage.truncate).toBeUndefined();
      const { blocking } = storage;
      if (!blocking) return;
      expect(await errorOf(() => blocking.write([pattern(1)], 0))).toSatisfy((e) => isH5LogError(e, 'READ_ONLY'));
      expect(await errorOf(() => blocking.truncate(0))).toSatisfy((e) => isH5LogError(e, 'READ_ONLY'));
      blocking.sync();
      expect(await contentsOf(storage)).toEqual(pattern(10));
    });
  });
}

function writingConformance(name: string, make: MakeStorage): void {
  test('writes parts one behind the other, empty ones included', async () => {
    await using(await make(pattern(4)), async (storage) => {
      for (const { calls } of halves(storage)) {
        await calls.write([new Uint8Array(0), pattern(3), new Uint8Array(0), pattern(2), new Uint8Array(0)], 2);
        expect([...(await contentsOf(calls))]).toEqual([...pattern(2), ...pattern(3), ...pattern(2)]);
        await calls.sync();
      }
    });
  });

  test('writes more parts than one system call takes', async () => {
    const parts = Array.from({ length: 5000 }, (_, i) => pattern(i % 7, i));
    const whole = Uint8Array.from(parts.flatMap((part) => [...part]));
    await using(await make(new Uint8Array(0)), async (storage) => {
      for (const { calls } of halves(storage)) {
        await calls.truncate(0);
        await calls.write(parts, 1);
        expectBytes((await contentsOf(calls)).subarray(1), whole);
      }
    });
  });

  test('fills with zeros up to a write beyond the end', async () => {
    await using(await make(pattern(3)), async (storage) => {
      for (const { calls } of halves(storage)) {
        const size = await calls.size();
        await calls.write([pattern(2)], size + 1000);
        const found = await contentsOf(calls);
        expect(found.length).toBe(size + 1002);
        expectBytes(found.subarray(size), Uint8Array.from([...new Uint8Array(1000), ...pattern(2)]));
      }
    });
  });

  test('does not grow by writing nothing', async () => {
    await using(await make(pattern(3)), async (storage) => {
      for (const { calls } of halves(storage)) {
        await calls.write([], 100);
        await calls.write([new Uint8Array(0)], 100);
        expect(await calls.size()).toBe(3);
      }
    });
  });

  test('truncates down and up again, and what was cut off is zero', async () => {
    await using(await make(new Uint8Array(0)), async (storage) => {
      for (const { calls } of halves(storage)) {
        await calls.write([pattern(10)], 0);
        await calls.truncate(4);
        expect(await contentsOf(calls)).toEqual(pattern(4));
        await calls.truncate(8);
        expect([...(await contentsOf(calls))]).toEqual([...pattern(4), 0, 0, 0, 0]);
      }
    });
  });

  test('takes what was written, not what the buffer holds later', async () => {
    await using(await make(new Uint8Array(0)), async (storage) => {
      for (const { calls } of halves(storage)) {
        const part = pattern(100);
        await calls.write([part.subarray(10, 20)], 0);
        part.fill(0);
        expect(await contentsOf(calls)).toEqual(pattern(100).subarray(10, 20));
      }
    });
  });

  test('refuses to write and truncate at positions that are none', async () => {
    await using(await make(pattern(3)), async (storage) => {
      for (const { calls } of halves(storage)) {
        for (const position of [-1, 1.5, Number.NaN]) {
          expect(await errorOf(() => calls.write([pattern(1)], position))).toMatchObject({ code: 'STORAGE' });
          expect(await errorOf(() => calls.truncate(position))).toMatchObject({ code: 'STORAGE' });
        }
        expect(await contentsOf(calls)).toEqual(pattern(3));
      }
    });
  });

  test('behaves like an array of bytes, whichever half is used', async () => {
    const step = fc.oneof(
      fc.record({
        op: fc.constant('write' as const),
        offset: fc.nat(300),
        parts: fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 }),
      }),
      fc.record({ op: fc.constant('truncate' as const), size: fc.nat(300) }),
      fc.record({ op: fc.constant('read' as const), offset: fc.nat(400), length: fc.nat(100) }),
      fc.constant({ op: 'sync' as const }),
    );
    const script = fc.array(fc.tuple(step, fc.boolean()), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(script, async (steps) => {
        await using(await make(new Uint8Array(0)), async (storage) => {
          let model: number[] = [];
          for (const [step, blocking] of steps) {
            const calls = (blocking && storage.blocking) || (storage as Required<ByteStorage>);
            if (step.op === 'sync') await calls.sync();
            else if (step.op === 'truncate') {
              await calls.truncate(step.size);
              model = Array.from({ length: step.size }, (_, i) => model[i] ?? 0);
            } else if (step.op === 'write') {
              await calls.write(step.parts, step.offset);
              const bytes = step.parts.flatMap((part) => [...part]);
              while (bytes.length > 0 && model.length < step.offset) model.push(0);
              model.splice(step.offset, bytes.length, ...bytes);
            } else {
              const into = new Uint8Array(step.length);
              const count = await calls.read(into, step.offset);
              expect([...into.subarray(0, count)]).toEqual(model.slice(step.offset, step.offset + step.length));
            }
            expect(await calls.size()).toBe(model.length);
          }
          for (const { calls } of halves(storage)) expect([...(await contentsOf(calls))]).toEqual(model);
        });
      }),
      runs(`array of bytes: ${name}`, 600),
    );
  });
}
