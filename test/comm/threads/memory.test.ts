import { describe, expect, test } from 'vitest';
import { isH5LogError } from '../../../src/base/errors.ts';
import { allocateThreads, blockSize, SharedRun } from '../../../src/comm/threads/memory.ts';

describe('the memory of communicators', () => {
  test('is used again, zeroed, when all members have closed', () => {
    const run = new SharedRun(allocateThreads(3));
    const first = run.allocate(3);
    const other = run.allocate(2);
    new Uint8Array(run.memory.control, first, blockSize(3)).fill(7);
    new Int32Array(run.memory.control, first, 2).fill(0);
    for (let member = 0; member < 3; member++) {
      expect(run.allocate(3)).not.toBe(first);
      run.release(first, 3);
    }
    expect(run.allocate(2)).not.toBe(first);
    expect(run.allocate(3)).toBe(first);
    expect(new Uint8Array(run.memory.control, first, blockSize(3)).every((byte) => byte === 0)).toBe(true);
    expect(run.allocate(3)).not.toBe(first);
    expect(other).not.toBe(first);
  });

  test('grows, never overlaps, and has an end that is an error', () => {
    const run = new SharedRun(allocateThreads(64));
    const blocks: number[] = [];
    const error = (() => {
      try {
        while (true) blocks.push(run.allocate(64));
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(isH5LogError(error, 'COMM') && error.message).toMatch(/too many communicators are open/);
    expect(blocks.length).toBeGreaterThan(3000);
    for (const [i, block] of blocks.entries()) {
      expect(block).toBeGreaterThanOrEqual((blocks[i - 1] ?? run.firstBlock) + blockSize(64));
    }
    for (let member = 0; member < 64; member++) run.release(blocks[5] as number, 64);
    expect(run.allocate(64)).toBe(blocks[5]);
  });
});

describe('the failure of a run', () => {
  test('is the first one', () => {
    const run = new SharedRun(allocateThreads(2));
    expect(run.failure()).toBeUndefined();
    const first = { owner: 1, rank: 0, kind: 'exit', reason: 'größer' } as const;
    expect(run.fail(first)).toBe(true);
    expect(run.fail({ owner: 0, rank: 1, kind: 'abort', reason: 'later' })).toBe(false);
    expect(new SharedRun(run.memory).failure()).toEqual(first);
  });

  test('is cut when its text is long', () => {
    const run = new SharedRun(allocateThreads(1));
    run.fail({ owner: 0, rank: 0, kind: 'error', reason: 'x'.repeat(100_000) });
    expect(run.failure()?.reason).toBe('x'.repeat(4096));
  });
});
