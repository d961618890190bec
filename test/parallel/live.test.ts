import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { File } from 'h5log';
import { expect, test } from 'vitest';
import { repeats } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { startRanks } from './run-ranks.ts';

const program = new URL('./kill-rank.ts', import.meta.url);
const RANKS = 3;

/** Row by row what the writer writes: the number of its flush. */
function expectWhole(file: File): number {
  const k = file.attributes.get('k') as number;
  const t = file.dataset('/t');
  expect(t.shape).toEqual([k, RANKS, 16]);
  const last = t.readSync({ start: [Math.max(0, k - 20), 0, 0] }) as Int32Array;
  expect(last.every((value, i) => value === Math.max(0, k - 20) + 1 + Math.floor(i / (RANKS * 16)))).toBe(true);
  return k;
}

test.each([0, 2])(
  'while ranks write with %i subfiles, every reader sees whole flushes',
  async (subfiles) => {
    const path = join(temporaryDirectory(), 'a.h5');
    const child = startRanks(RANKS, program, { path, subfiles, rest: 3 });
    const ended = once(child, 'exit');
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    // It goes on reading: a full pipe would stop the writer.
    lines.on('line', () => {});
    await Promise.race([once(lines, 'line'), ended]);
    const follower = File.openSync(path);
    let last = 0;
    let moved = 0;
    for (let i = 0; i < repeats(1000); i++) {
      const fresh = File.openSync(path);
      const k = expectWhole(fresh);
      fresh.closeSync();
      expect(k).toBeGreaterThanOrEqual(last);
      if (follower.refreshSync()) moved++;
      const followed = expectWhole(follower);
      expect(followed).toBeGreaterThanOrEqual(k);
      last = followed;
      // A state of the past stays what it was.
      if (i % 10 === 0) {
        const past = File.openSync(path, { asOf: Math.ceil(k / 2) });
        expect(expectWhole(past)).toBe(Math.ceil(k / 2));
        past.closeSync();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    follower.closeSync();
    child.kill('SIGKILL');
    // Not before: it has no reason to end.
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(moved).toBeGreaterThan(0);
    process.stdout.write(
      `${repeats(1000)} readers beside ${RANKS} ranks with ${subfiles} subfiles, up to flush ${last}\n`,
    );
  },
  300_000,
);
