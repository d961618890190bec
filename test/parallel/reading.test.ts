import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import type { Cost, Watched } from './reading-rank.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./reading-rank.ts', import.meta.url);
const fresh = (): string => join(temporaryDirectory(), 'a.h5');

describe.each([0, 2])('with %i subfiles', (subfiles) => {
  test('a rank reads alone: what all have flushed, and its own posts', async () => {
    const ranks = await runRanks<Record<string, number[]>>(3, program, {
      work: 'independent',
      path: fresh(),
      subfiles,
    });
    const rows = (values: readonly number[]): number[] => values.flatMap((value) => new Array<number>(4).fill(value));
    ranks.forEach((seen, rank) => {
      const values = [10, 11, 12].map((value, r) => (r === rank ? value + 10 : value));
      const own = rows(values);
      const many = [values[1], values[1], values[0], values[0]];
      const after = rows([20, 21, 22]);
      expect(seen).toEqual({
        sync: own,
        async: own,
        many,
        manySync: many,
        'asked before': own,
        after,
        closed: after,
        'closed async': after,
      });
    });
  });

  test('what is read again is not looked for again, and after a flush only what is new', async () => {
    const ranks = await runRanks<Cost>(2, program, { work: 'cost', path: fresh(), subfiles });
    for (const { again, next } of ranks) {
      // The data itself may be read each time; tables are not.
      expect(again.bytes).toBeLessThan(1000 * 24 + 100_000);
      // The number of commits grows, and with it the records; the tables of 2,048 blocks a rank must not be read anew.
      const [early, late] = [next.slice(2, 8), next.slice(-6)].map((list) => Math.min(...(list ?? [])));
      expect(late as number).toBeLessThan(2 * (early as number) + 20_000);
    }
    const [first] = ranks;
    process.stdout.write(
      `1,000 small reads: ${first?.again.bytes} bytes; a read after flush 3 and 24: ${ranks.map(({ next }) => `${next[2]} and ${next.at(-1)}`).join(', ')} bytes\n`,
    );
  });

  test('readers on several ranks see the same state, although a writer goes on', async () => {
    const ranks = await runRanks<Watched>(3, program, { work: 'following', path: fresh(), subfiles });
    for (const other of ranks) expect(other).toEqual(ranks[0]);
    const { outcomes, seen } = ranks[0] as Watched;
    expect(outcomes[0]).toMatchObject({ code: 'STORAGE', rank: 2 });
    expect(outcomes[1]).toMatchObject({ code: 'fine' });
    expect(seen).toEqual([
      ['opened', [1, 1, 2]],
      ['refreshed', true, [2, 2, 3]],
      ['nothing new', false, [2, 2, 3]],
      ['third', true, [3, 3, 4]],
      ['more open files', false],
      ['past', 3, 3],
      ['after the error', false, [23, 23, 24]],
      ['watched', [24, 25, 26]],
    ]);
  });
});

test('structure looks the same on all ranks, flushed or not', async () => {
  const path = fresh();
  const ranks = await runRanks<unknown[]>(3, program, { work: 'structure', path });
  for (const other of ranks) expect(other).toEqual(ranks[0]);
  const shown = (values: number[]): unknown => [['g', 'h'], 'K', '/h', [values.length], values];
  expect(ranks[0]).toEqual([
    shown([-1, -1, -1, -1]),
    shown([-1, -1, -1, -1]),
    shown([1, 2, 3, 4]),
    shown([1, 2]),
    shown([1, 2, -1, -1]),
    shown([1, 2, -1, -1]),
    [
      ['g', 'i'],
      [1, 2, -1, -1],
    ],
  ]);
  const file = File.openSync(path);
  expect([...(file.dataset('/i').readSync() as Int32Array)]).toEqual([1, 2, -1, -1]);
  expect(file.has('/g/t')).toBe(false);
  file.closeSync();
});
