import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { ran } from '../comm/threads/process.ts';
import { some } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { Ending } from './endings-rank.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./endings-rank.ts', import.meta.url);
const RANKS = 3;
// Starting threads that compile TypeScript takes seconds on a busy machine; after a failure there is a second to clean up.
const SOON = 30_000;

/** What the run rejects with; the last commit stands, and the next writer gets in. */
const endings: readonly [how: string, text: RegExp][] = [
  ['throws', /the tide is out/],
  ['exits', /rank \d ended with exit code 3/],
  ['returns without close', /rank \d/],
  ['all return without close', /rank \d .*without closing/],
  ['one returns with everything flushed', /rank \d/],
  ['stuck in a flush', /waited 1500 ms/],
  ['never opens again', /waited 1500 ms/],
  ['stuck while others throw', /somebody is stuck/],
  ['aborts', /aborted the run with code 7/],
  ['discards', /has closed the communicator/],
];

function expectLastCommit(path: string, value: number): void {
  const reader = File.openSync(path);
  expect([...(reader.dataset('/t').readSync() as Int32Array)]).toEqual(new Array(RANKS).fill(value));
  reader.closeSync();
  const writer = File.openSync(path, { mode: 'r+' });
  writer.dataset('/t').write(new Int32Array(RANKS).fill(9));
  writer.closeSync();
  expect(existsSync(`${path}.lock`)).toBe(false);
  const again = File.openSync(path);
  expect([...(again.dataset('/t').readSync() as Int32Array)]).toEqual(new Array(RANKS).fill(9));
  again.closeSync();
}

const places = [
  [0, 0],
  [1, 0],
  [2, 2],
  [0, 2],
  [1, 2],
  [2, 0],
] as const;
// Those at the same distance differ in both, so that two of them show the most.
for (const [who, subfiles] of some(places, 'who ends')) {
  describe(`rank ${who} of ${RANKS}, with ${subfiles} subfiles`, () => {
    test.each(endings)('%s: the run rejects, the last commit stands, the lock is no obstacle', async (how, text) => {
      const path = join(temporaryDirectory(), 'a.h5');
      const from = performance.now();
      const data = { how, path, who, subfiles } as Ending;
      const error = await runRanks(RANKS, program, data, Number.POSITIVE_INFINITY).then(
        (results) => new Error(`resolved with ${JSON.stringify(results)}`),
        (reason: Error) => reason,
      );
      expect(error.message).toMatch(text);
      expect(performance.now() - from).toBeLessThan(SOON);
      expectLastCommit(path, how === 'one returns with everything flushed' ? 2 : 1);
      expect(readdirSync(join(path, '..')).filter((name) => /lock|new/.test(name))).toEqual([]);
    });
  });
}

test('a rank that ends with pending requests: a line says so, and the process ends with an error', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  const data = { how: 'all return without close', path, who: 1, subfiles: 0 };
  const { stderr, code } = await ran([2, program.href, data], {}, 'loud');
  expect(stderr).toMatch(/rank 1 of 2 ended without closing .*a\.h5; 1 requests after commit 1 were not committed/);
  expect(code).not.toBe(0);
});
