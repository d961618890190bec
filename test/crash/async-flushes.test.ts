import { describe, expect, test } from 'vitest';
import { type Dataset, File } from '../../src/index.ts';
import { count } from '../counts.ts';
import { full, random, repeats, seed } from '../seed.ts';
import { type FaultyStorage, faultyStorage } from '../storage/faulty.ts';
import { commitIn } from './images.ts';
import { applyCommit, commitOf } from './states.ts';

const chosen = seed('asynchronous flushes');

describe('asynchronous flushes', () => {
  const commitsSeen = (disk: FaultyStorage): number[] => {
    const found: number[] = [];
    disk.log.forEach((operation, k) => {
      if (operation.kind === 'write' && operation.offset === 0 && !operation.failed)
        found.push(commitIn(disk.processImageAfter(k + 1)));
    });
    return found;
  };

  test.each(['power', 'process'] as const)(
    '%s: finish in order, however late and mixed up the writes are',
    async (durability) => {
      for (let trial = 0; trial < 20; trial++) {
        const options = { seed: chosen + trial, delays: true };
        // Half of them without blocking calls, where even the flip is asynchronous.
        const disk = trial % 2 === 0 ? faultyStorage(options) : faultyStorage({ ...options, asyncOnly: true });
        const file = await File.create(disk, { durability });
        const order: number[] = [];
        const flushes: Promise<unknown>[] = [];
        for (let n = 1; n <= 8; n++) {
          applyCommit(file, n);
          flushes.push(file.flush().then(({ sequence }) => order.push(sequence)));
          if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        await Promise.all(flushes);
        expect(order).toEqual([...order].sort((a, b) => a - b));
        const states = commitsSeen(disk);
        expect(states).toEqual([...states].sort((a, b) => a - b));
        expect(states.at(-1)).toBe(8);
      }
    },
  );

  // These are planned when their job runs, behind data that is written before.
  test.each([
    ['a flush that publishes', { publish: 'flush' }],
    ['a flush of an ordinary file', { connector: 'native' }],
  ] as const)(
    '%s, taken over by one that fails: what still lands does not meet what is written later',
    async (_, options) => {
      const rows = Float64Array.from({ length: 20_000 }, (_, i) => i);
      let failures = 0;
      for (let turns = 0; turns < 24; turns++) {
        const disk = faultyStorage({ seed: chosen + turns, delays: true });
        const file = await File.create(disk, options);
        const [x, y] = ['x', 'y'].map((name) =>
          file.createDataset(name, { dtype: 'float64', shape: [rows.length], chunks: [5000] }),
        ) as [Dataset<'float64'>, Dataset<'float64'>];
        await file.flush();
        y.write([1, 2, 3], { start: [0], count: [3] });
        x.write(rows);
        let isOver = false;
        const flush = file.flush().finally(() => {
          isOver = true;
        });
        flush.catch(() => {});
        for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
        disk.pause();
        await new Promise((resolve) => setImmediate(resolve));
        if (!isOver) {
          disk.fail({ op: 'write', at: disk.counts.write, code: 'ENOSPC', landed: 'none' });
          expect(() => file.flushSync()).toThrow('ENOSPC');
          disk.heal();
          failures++;
        }
        // Now the data of y is longer, and that of x lies behind it.
        y.write(rows);
        file.flushSync();
        disk.resume();
        await flush.catch(() => {});
        for (let i = 0; i < 12; i++) await new Promise((resolve) => setImmediate(resolve));
        file.closeSync();
        const again = File.openSync(disk.processImage());
        expect(again.dataset('x').readSync()).toEqual(rows);
        expect(again.dataset('y').readSync()).toEqual(rows);
        again.closeSync();
      }
      expect(failures).toBeGreaterThan(0);
    },
  );

  test.each(['power', 'process'] as const)('%s: a sync flush at any moment takes them over', async (durability) => {
    let takeovers = 0;
    for (let trial = 0; trial < 60; trial++) {
      const disk = faultyStorage({ seed: chosen + trial, delays: true });
      const file = await File.create(disk, { durability });
      applyCommit(file, 1);
      let early = false;
      const first = file.flush();
      const isEarly = first.then(() => {
        early = true;
      });
      applyCommit(file, 2);
      const second = file.flush();
      // A different number of turns and microtasks each time, so that every step of a commit is met.
      for (let i = 0; i < trial % 12; i++) await new Promise((resolve) => setImmediate(resolve));
      for (let i = 0; i < Math.floor(trial / 12); i++) await null;
      if (!early) takeovers++;
      applyCommit(file, 3);
      const third = file.flushSync();
      expect(commitIn(disk.processImage())).toBe(3);
      // What was on its way still lands, and changes nothing: also when the memory it came from was free to be used again.
      for (let n = 4; n <= 9; n++) applyCommit(file, n);
      expect((await first).sequence).toBeLessThan((await second).sequence);
      expect((await second).sequence).toBeLessThan(third.sequence);
      await isEarly;
      await file.flush();
      expect(commitIn(disk.processImage())).toBe(9);
      applyCommit(file, 10);
      file.flushSync();
      expect(commitIn(disk.processImage())).toBe(10);
      const states = commitsSeen(disk);
      expect(states).toEqual([...states].sort((a, b) => a - b));
      file.closeSync();
      expect(commitIn(disk.processImage())).toBe(10);
    }
    expect(takeovers).toBeGreaterThan(5);
  });

  test.each(['power', 'process'] as const)(
    '%s: one that a sync flush takes over and cannot finish is not in the file',
    async (durability) => {
      let [failed, fine] = [0, 0];
      for (let moment = 0; moment < 60; moment++) {
        const disk = faultyStorage({ seed: chosen + moment });
        const file = await File.create(disk, { durability });
        applyCommit(file, 1);
        const first = file.flush();
        first.catch(() => {});
        applyCommit(file, 2);
        // Every moment of a commit is met, also those behind its last operation.
        for (let i = 0; i < moment; i++) await null;
        disk.fail({ op: 'write', at: disk.counts.write, landed: 'torn' });
        let committed = 0;
        try {
          file.flushSync();
          committed = 2;
          fine++;
        } catch {
          await first.then(
            () => {
              committed = 1;
            },
            () => failed++,
          );
        }
        expect(commitIn(disk.processImage()), `after ${moment} turns`).toBe(committed);
        disk.heal();
        file.flushSync();
        expect(commitIn(disk.processImage())).toBe(2);
        file.closeSync();
      }
      expect(failed).toBeGreaterThan(5);
      expect(failed + fine).toBeLessThan(60);
    },
  );

  test.each(['power', 'process'] as const)(
    '%s: when one fails those behind it fail, and all is pending again',
    async (durability) => {
      let failures = 0;
      for (let at = full ? 0 : chosen % 2; at < (durability === 'power' ? 24 : 16); at += full ? 1 : 2) {
        const disk = faultyStorage({ seed: chosen + at, delays: true });
        const file = await File.create(disk, { durability });
        // Far enough for deletions, moves and headers of several blocks.
        for (let n = 1; n <= 40; n++) applyCommit(file, n);
        file.flushSync();
        disk.fail({ op: 'any', at: disk.counts.any + at, landed: 'torn' });
        const flushes: Promise<unknown>[] = [];
        for (let n = 41; n <= 43; n++) {
          applyCommit(file, n);
          flushes.push(file.flush());
        }
        const behind = file.flush(); // nothing of its own, but it covers all of them
        const outcomes = (await Promise.allSettled([...flushes, behind])).map(({ status }) => status === 'fulfilled');
        const succeeded = outcomes.indexOf(false);
        if (disk.injected === 0) continue;
        failures++;
        expect(succeeded).toBeGreaterThanOrEqual(0);
        expect(outcomes.slice(succeeded)).toEqual(outcomes.slice(succeeded).fill(false));
        expect(commitIn(disk.processImage())).toBe(40 + succeeded);
        expect(commitOf(file)).toBe(43);
        disk.heal();
        await file.flush();
        expect(commitIn(disk.processImage())).toBe(43);
      }
      expect(failures).toBeGreaterThan(5);
    },
  );

  test.each(['power', 'process'] as const)(
    '%s: on a disk that fails now and then, nothing is lost and nothing comes half',
    async (durability) => {
      const trials = repeats(40);
      let [commits, failures] = [0, 0];
      for (let trial = 0; trial < trials; trial++) {
        const chance = random(chosen + trial);
        const disk = faultyStorage({ seed: chosen + trial, delays: true });
        let file = await File.create(disk, { durability });
        let reported = 0;
        let flushes: Promise<unknown>[] = [];
        for (let n = 1; n <= 60; n++) {
          applyCommit(file, n);
          if (chance() < 0.3) disk.fail({ op: 'any', at: disk.counts.any + Math.floor(chance() * 8), landed: 'torn' });
          const done = (): void => {
            reported = Math.max(reported, n);
          };
          const way = chance();
          if (way < 0.6) flushes.push(file.flush().then(done, () => failures++));
          else if (way < 0.8) {
            try {
              file.flushSync();
              done();
            } catch {
              failures++;
            }
            expect(commitIn(disk.processImage())).toBeGreaterThanOrEqual(reported);
          }
          for (let i = chance() * 6; i > 1; i--) await new Promise((resolve) => setImmediate(resolve));
          if (chance() < 0.3) {
            disk.heal(); // or the faults would hit the reads
            expect(commitOf(file)).toBe(n);
          }
          if (chance() < 0.8) continue;
          await Promise.all(flushes);
          flushes = [];
          expect(commitIn(disk.processImage())).toBeGreaterThanOrEqual(reported);
          if (durability === 'power') expect(commitIn(disk.image('none'))).toBeGreaterThanOrEqual(reported);
          if (chance() < 0.8) continue;
          disk.heal();
          await file.close();
          disk.reopen();
          file = await File.open(disk, { mode: 'r+', durability });
          expect(commitOf(file)).toBe(n);
        }
        disk.heal();
        await Promise.all(flushes);
        expect(commitOf(file)).toBe(60);
        await file.close();
        expect(commitIn(disk.processImage())).toBe(60);
        commits += 60;
      }
      count(`a disk that fails now and then, ${durability}`, { states: commits, 'failed flushes': failures });
      expect(failures).toBeGreaterThan(0);
    },
  );

  test('a blocking call that takes over a flush and fails rejects its promise too', async () => {
    const disk = faultyStorage({ seed: chosen, delays: true });
    const file = await File.create(disk);
    applyCommit(file, 1);
    const flush = file.flush();
    const rejected = expect(flush).rejects.toMatchObject({ code: 'STORAGE' });
    disk.fail({ op: 'any', at: disk.counts.any, times: 5 });
    expect(() => file.flushSync()).toThrow(expect.objectContaining({ code: 'STORAGE' }));
    await rejected;
    disk.heal();
    expect(commitIn(disk.processImage())).toBe(0);
    await file.flush();
    expect(commitIn(disk.processImage())).toBe(1);
  });

  test('what a flush on its way covers can be read', async () => {
    const disk = faultyStorage({ seed: chosen, delays: true });
    const file = await File.create(disk);
    disk.pause();
    applyCommit(file, 1);
    const flush = file.flush();
    expect(commitOf(file)).toBe(1);
    applyCommit(file, 2);
    expect(commitOf(file)).toBe(2);
    disk.resume();
    await flush;
    expect(commitIn(disk.processImage())).toBe(1);
    expect(commitOf(file)).toBe(2);
    await file.close();
    expect(commitIn(disk.processImage())).toBe(2);
  });
});
