import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { faultyStorage } from '../storage/faulty.ts';

const COUNT = 3 * 2 ** 20; // 24 MiB: data is written in pieces of 8 MiB, before everything else

/** A file with one large request pending, and how many operations its storage has seen. */
function pending(async: boolean): { disk: ReturnType<typeof faultyStorage>; file: File } {
  const disk = faultyStorage({ seed: async ? 1 : 2 });
  const file = File.createSync(disk, { durability: 'power' });
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [COUNT] });
  file.flushSync();
  dataset.write(new Float64Array(COUNT).map((_, i) => i));
  return { disk, file };
}

const total = ({ write, truncate, sync }: { write: number; truncate: number; sync: number }): number =>
  write + truncate + sync;

describe('a flush of several pieces', () => {
  test.each([true, false])('that fails at any operation leaves everything pending (async: %s)', async (async) => {
    const whole = pending(async);
    const before = total(whole.disk.counts);
    whole.file.flushSync();
    const operations = total(whole.disk.counts) - before;
    expect(operations).toBeGreaterThanOrEqual(7); // growth, three pieces, the rest, a sync, the superblock, a sync
    for (const op of ['write', 'truncate', 'sync'] as const) {
      const { disk } = pending(async);
      for (let k = 0; k < 6; k++) {
        const one = pending(async);
        one.disk.fail({ op, at: one.disk.counts[op] + k, landed: 'torn' });
        const failed = async ? one.file.flush() : (async () => one.file.flushSync())();
        const outcome = await failed.then(
          () => 'fine',
          (error: { code?: string }) => error.code,
        );
        if (outcome === 'fine') break;
        expect(outcome).toBe('STORAGE');
        one.disk.heal();
        expect(one.file.pending).toEqual({ requests: 1, bytes: COUNT * 8 });
        one.file.flushSync();
        one.file.closeSync();
        one.disk.reopen();
        const again = File.openSync(one.disk);
        const values = again.dataset('x', 'float64').readSync();
        expect([values[0], values[COUNT - 1], values[2 ** 19]]).toEqual([0, COUNT - 1, 2 ** 19]);
      }
      disk.heal();
    }
  });
});
