import { describe, expect, test } from 'vitest';
import { Budget, FileBytes } from '../../../src/hdf5/format/file-bytes.ts';
import { driveSync } from '../../../src/storage/io.ts';
import { memoryStorage } from '../../../src/storage/memory.ts';
import { expectFormat } from '../fixture.ts';

const contents = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7) & 255);
const PAGING = { size: 64, cached: 4 };

/** A file of 1000 bytes behind `base` others, in small pages; `reads` counts what is asked of the storage. */
function small(base = 0, end = 1000) {
  const whole = new Uint8Array(base + 1000);
  whole.set(contents, base);
  const storage = memoryStorage(whole);
  const file = new FileBytes(base, end, 8, 8, PAGING);
  let reads = 0;
  const run = <T>(io: Parameters<typeof driveSync<T>>[1]): T => {
    const counted = (function* () {
      let step = io.next();
      while (!step.done) {
        reads++;
        step = io.next(yield step.value);
      }
      return step.value;
    })();
    return driveSync(storage, counted);
  };
  return { file, run, storage, reads: () => reads };
}

describe('the bytes of a file', () => {
  test.each([0, 512])(
    'are those at an address, behind a user block of %i bytes, in a page or across several',
    (base) => {
      const { file, run } = small(base);
      for (const [address, length] of [
        [0, 10],
        [60, 4],
        [60, 5],
        [63, 130],
        [990, 10],
        [0, 1000],
        [500, 0],
        [1000, 0],
      ] as const)
        expect(run(file.read(address, length, 'part'))).toEqual(contents.slice(address, address + length));
    },
  );

  test('are read once a page', () => {
    const { file, run, reads } = small();
    for (let at = 64; at + 8 <= 128; at += 8) run(file.read(at, 8, 'part'));
    expect(reads()).toBe(1);
    expect(file.cached(64, 64)).not.toBeNull();
    expect(file.cached(64, 65)).toBeNull();
    expect(file.pageStart(100)).toBe(64);
  });

  test('stay in memory for as many pages as are kept', () => {
    const { file, run, reads } = small();
    for (let page = 0; page < 5; page++) run(file.read(page * 64, 1, 'part'));
    expect(reads()).toBe(5);
    expect(file.cached(0, 1)).toBeNull();
    expect(file.cached(4 * 64, 1)).not.toBeNull();
    run(file.read(4 * 64, 1, 'part'));
    expect(reads()).toBe(5);
  });

  test('of a page that ended with the file are read again when the file has grown', () => {
    const { file, run } = small(0, 70);
    expect(run(file.read(64, 6, 'part'))).toEqual(contents.slice(64, 70));
    expectFormat(() => run(file.read(64, 7, 'part')));
    file.end = 100;
    expect(run(file.read(64, 36, 'part'))).toEqual(contents.slice(64, 100));
  });

  test('fill a buffer without going through pages', () => {
    const { file, run } = small();
    const into = new Uint8Array(200);
    run(file.readInto(into, 30, 'part'));
    expect(into).toEqual(contents.slice(30, 230));
    expect(file.cached(30, 1)).toBeNull();
  });

  test('come with offsets in the file, and fewer at its end if fewer will do', () => {
    const { file, run } = small(512);
    expect(run(file.cursor(10, 4, 'part')).offset).toBe(522);
    expect(run(file.peek(995, 100, 'part')).left).toBe(5);
    expect(run(file.peek(10, 100, 'part')).left).toBe(100);
  });
});

describe('addresses that cannot be are refused', () => {
  test.each([
    [-1, 1],
    [-5, 10],
    [999, 2],
    [1001, 0],
    [2 ** 53, 1],
    [10, 2 ** 53],
    [Number.NaN, 1],
  ])('%d bytes at %d', (address, length) => {
    const { file, run } = small();
    expectFormat(() => run(file.read(address, length, 'part')));
  });

  test('nothing can be looked at behind the end, or nowhere', () => {
    const { file, run } = small();
    for (const address of [-1, 1000, 5000]) expectFormat(() => run(file.peek(address, 10, 'part')), `at ${address}`);
  });

  test('a file that is shorter than its superblock says', () => {
    const { file, run } = small(0, 1200);
    expectFormat(() => run(file.read(1100, 50, 'part')));
    expectFormat(() => run(file.readInto(new Uint8Array(300), 900, 'part')));
  });
});

describe('a budget', () => {
  test('is the length of the file', () => {
    const budget = new Budget(small().file);
    budget.spend(600, 0, 'parts');
    budget.spend(400, 0, 'parts');
    expect(budget.spent).toBe(1000);
    expectFormat(() => budget.spend(1, 0, 'parts'));
  });

  test('gets back what could not be read, but not once it was exceeded', () => {
    const budget = new Budget(small().file);
    budget.spend(900, 0, 'parts');
    budget.refund(100);
    budget.spend(900, 0, 'parts');
    expectFormat(() => budget.spend(900, 0, 'parts'));
    budget.refund(0);
    expectFormat(() => budget.spend(1, 0, 'parts'));
  });
});
