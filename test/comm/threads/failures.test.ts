import { describe, expect, test } from 'vitest';
import { type H5LogError, isH5LogError } from '../../../src/base/errors.ts';
import { runThreads } from '../../../src/comm/threads/run.ts';
import { full } from '../../seed.ts';
import { type Case, notes, notesOf, type Seen } from './cases.ts';
import { ran } from './process.ts';

const program = new URL('./cases.ts', import.meta.url);
// Starting threads that compile TypeScript takes most of a second on a busy machine; after a failure there is a second to clean up.
const bound = 15_000;

describe.each(full ? [2, 3, 5] : [3])('one of %i ranks', (ranks) => {
  const who = ranks - 1;

  // What the run rejects with, and what the other ranks must be told.
  const failures: [string, Record<string, unknown>, RegExp][] = [
    ['throws', { name: 'RangeError', message: 'the tide is out', rank: who }, /failed: RangeError: the tide is out/],
    ['rejects', { message: 'no such tide', code: 'ETIDE', errno: -7, rank: who }, /failed: no such tide/],
    [
      'throwsOurs',
      { code: 'SHAPE', file: 'a.h5', object: '/t', message: 'three is not four', rank: who },
      /three is not four/,
    ],
    ['throwsText', { message: 'just text', rank: who }, /failed: just text/],
    ['throwsLater', { message: 'out of a timer', rank: who }, /out of a timer/],
    ['rejectsUnhandled', { message: 'nobody cared', rank: who }, /nobody cared/],
    ['systemError', { code: 'ENOENT', message: /no such file/, rank: who }, /ENOENT/],
    ['exits', { code: 'COMM', message: /ended with exit code 3/, rank: who }, /ended with exit code 3/],
    ['exitsLater', { code: 'COMM', message: /ended with exit code 0/, rank: who }, /ended with exit code 0/],
    ['neverEnds', { code: 'COMM', message: /ended with exit code \d+ before/, rank: who }, /ended with exit code/],
    ['aborts', { code: 'COMM', message: /aborted the run with code 7/, rank: who }, /aborted the run with code 7/],
  ];

  test.each(failures)('%s: the run rejects with its error, the others get COMM', async (name, own, told) => {
    const shared = notesOf(ranks);
    const { error, took } = await failed(ranks, { name, who, value: shared });
    for (const [key, value] of Object.entries(own)) {
      if (value instanceof RegExp) expect(String(error[key as keyof Error])).toMatch(value);
      else expect({ [key]: error[key as keyof Error] }).toEqual({ [key]: value });
    }
    expect(error).toBeInstanceOf(Error);
    expect(took).toBeLessThan(bound);
    // An abort ends the others wherever they are, so they may not have come to write it down.
    const seen = notes(shared).filter((note) => note !== undefined);
    if (name !== 'aborts') expect(seen).toHaveLength(ranks - 1);
    for (const note of seen) {
      expect(note).toMatchObject({ code: 'COMM', rank: who, again: 'COMM' });
      expect(note.message).toMatch(told);
      expect(note.message).toContain(`rank ${who}`);
    }
  });

  test.each([0, who])('returns early (rank %i): the others learn that it has ended', async (first) => {
    // More than once: whoever notices first must not get in the way of one that is still in the meeting before.
    for (let time = 0; time < 2; time++) {
      const shared = notesOf(ranks);
      const { error } = await failed(ranks, { name: 'leaves', who: first, value: shared });
      expect(error.message).toMatch(/a consequence/);
      const seen = notes(shared).filter((note) => note !== undefined);
      expect(seen).toHaveLength(ranks - 1);
      expect(seen.some(({ message }) => message.includes(`rank ${first} has ended`))).toBe(true);
      for (const { code } of seen) expect(code).toBe('COMM');
    }
  });

  test.each([
    ['throwsAmongSpinners', /while others spin/],
    ['abortsAmongSpinners', /aborted the run with code 5/],
    ['throwsAmongSleepers', /while others sleep/],
  ])('%s: the threads of the others are ended', async (name, message) => {
    const { error, took } = await failed(ranks, { name, who });
    expect(error.message).toMatch(message);
    expect((error as H5LogError).rank).toBe(who);
    expect(took).toBeLessThan(bound);
  });

  test('gives a result that cannot be passed on', async () => {
    const { error } = await failed(ranks, { name: 'unclonable', who: 0 });
    expect(isH5LogError(error, 'COMM') && error.message).toMatch(/result of rank 0 cannot be passed on/);
  });
});

describe('an error of another thread', () => {
  test('keeps its stack, its cause and what it carried', async () => {
    const { error } = await failed(2, { name: 'throwsOurs', who: 1 });
    expect(isH5LogError(error, 'SHAPE')).toBe(true);
    expect(error.stack).toContain('threads/cases.ts');
    expect((error.cause as Error).message).toBe('deep');
  });

  test('is that of exhausted memory', { timeout: 120_000 }, async () => {
    const { stdout, code } = await ran([2, program.href, { name: 'fillsMemory', who: 1 }], {
      NODE_OPTIONS: '--max-old-space-size=64',
    });
    expect({ ...(JSON.parse(stdout) as object), code }).toMatchObject({
      error: { code: 'ERR_WORKER_OUT_OF_MEMORY', rank: 1 },
      code: 0,
    });
  });
});

describe('mistakes', () => {
  test.each([
    [2, 0],
    [2, 1],
    [5, 2],
  ])(
    'of one of %i ranks (rank %i) give every rank the same error, and the communicator goes on',
    async (ranks, who) => {
      const results = await runThreads<{ seen: Seen[]; sum: number }>(ranks, program, { name: 'survives', who });
      const expected = [
        new RegExp(`^bcast on rank ${who}: there is no root ${ranks}, the ranks are 0 to ${ranks - 1}`),
        new RegExp(`^gather on rank ${who}: there is no root -1`),
        new RegExp(`^bcast on rank ${who}: a Uint8Array is needed, not null`),
        new RegExp(`^allgather on rank ${who}: a Uint8Array is needed, not "text"`),
        new RegExp(`^allreduce on rank ${who}: a Float64Array is needed, not a value of type Array`),
        new RegExp(`^allreduce on rank ${who}: .*not "product"`),
        new RegExp(`^exscan on rank ${who}: a Float64Array is needed, not undefined`),
        new RegExp(`^split on rank ${who}: a colour is a whole number`),
        /rank 0 (barrier|allreduce of 1 numbers \(sum\)), rank \d (barrier|allreduce of 1 numbers \(sum\))$/,
        /rank 0 (allgather|exscan of 1 numbers), rank \d (allgather|exscan of 1 numbers)$/,
        /allreduce of [34] numbers \(sum\), rank \d allreduce of [34] numbers/,
        /allreduce of (3|300000) numbers \(sum\), rank \d allreduce of (3|300000) numbers/,
        /\((min|max)\), rank \d allreduce of 1 numbers \((min|max)\)/,
        /exscan of [01] numbers, rank \d exscan of [01] numbers/,
        /gather with root [01], rank \d gather with root [01]/,
        /rank 0 (gather|bcast) with root 0, rank \d (gather|bcast) with root 0/,
      ];
      for (const { seen, sum } of results) {
        expect(sum).toBe(ranks);
        expect(seen).toHaveLength(expected.length);
        for (const [i, pattern] of expected.entries()) {
          expect(seen[i]).toMatchObject({ code: 'COMM', rank: i < 8 ? who : expect.any(Number) });
          expect(seen[i]?.message).toMatch(pattern);
          expect(seen[i]?.message).toBe(results[0]?.seen[i]?.message);
        }
      }
    },
  );

  test('in a group name the rank in the group and in the run', async () => {
    const results = await runThreads<{ seen: Seen[] }>(4, program, { name: 'survivesInGroup', who: 1 });
    for (const { seen } of results.slice(1)) {
      expect(seen).toHaveLength(16);
      expect(seen[0]).toMatchObject({ code: 'COMM', rank: 2 });
      expect(seen[0]?.message).toMatch(/^bcast on rank 1 of 3 \(rank 2 of the run\): there is no root 3/);
    }
  });

  test('such as closing too early are told to those that still wait', async () => {
    const told = await runThreads<Seen[]>(3, program, { name: 'closesEarly', who: 1 });
    for (const call of [0, 1])
      expect(told.map((seen) => seen[call]?.message)).toEqual([
        'barrier on rank 0: rank 1 has closed the communicator',
        'barrier on rank 1: the communicator is closed',
        'barrier on rank 2: rank 1 has closed the communicator',
      ]);
  });

  test('do not include a rank that returned and is not needed any more', async () => {
    expect(await runThreads(3, program, { name: 'leftGroup', who: 1 })).toEqual([2000, -1, 2000]);
  });
});

describe('a timeout', () => {
  test('ends the wait on all ranks, and is inherited by split', async () => {
    const { error, took } = await failed(3, { name: 'late', who: 1, value: 5000 }, 120);
    expect(isH5LogError(error, 'COMM') && error.message).toMatch(
      /waited 120 ms in barrier for rank 1, which did not come/,
    );
    expect((error as H5LogError).rank).toBe(1);
    const { waited } = error as unknown as { waited: number };
    expect(waited).toBeGreaterThanOrEqual(119);
    expect(waited).toBeLessThan(1000);
    expect(took).toBeLessThan(bound);
  });

  test('that is long enough does nothing', async () => {
    expect(await runThreads(3, program, { name: 'late', who: 1, value: 150 }, { timeout: 20_000 })).toEqual([
      20_000, 20_000, 20_000,
    ]);
  });

  test('can be set on a communicator', async () => {
    const { error } = await failed(2, { name: 'setsTimeout', who: 1 });
    expect(isH5LogError(error, 'COMM') && error.message).toMatch(/waited 80 ms in barrier for rank 1/);
  });

  test('fails the run even if the rank that gave up catches the error', async () => {
    const { error } = await failed(2, { name: 'catchesTimeout', who: 1 });
    expect(isH5LogError(error, 'COMM') && error.message).toMatch(/rank 0 waited 80 ms in barrier for rank 1/);
  });
});

async function failed(ranks: number, given: Case, timeout?: number): Promise<{ error: Error; took: number }> {
  const begin = performance.now();
  try {
    await runThreads(ranks, program, given, timeout === undefined ? {} : { timeout });
  } catch (error) {
    return { error: error as Error, took: performance.now() - begin };
  }
  throw new Error('the run did not fail');
}
