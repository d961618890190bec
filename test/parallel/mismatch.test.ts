import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import type { differentBeginnings, differentCalls, Told } from './mismatch-rank.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./mismatch-rank.ts', import.meta.url);

/** Every rank was told the same, and told what differs where. */
function expectMismatch(ranks: readonly (readonly Told[])[], odd: number): void {
  const told = ranks.map((list) => list.map(({ name, outcome }) => ({ name, ...outcome })));
  for (const other of told) expect(other).toEqual(told[0]);
  // The rank that is named is the first that differs from rank 0.
  const named = odd === 0 ? 1 : odd;
  for (const { name, code, rank, message } of told[0] ?? []) {
    expect({ name, code, rank, message }).toEqual({ name, code: 'MISMATCH', rank: named, message });
    expect(`${name}: ${message}`).toMatch(/rank 0/);
    expect(`${name}: ${message}`).toMatch(new RegExp(`rank ${named}`));
  }
}

describe.each([
  [2, 1],
  [3, 0],
])('of %i ranks number %i does something else', (ranks, odd) => {
  test('in a file: MISMATCH on all of them, nothing is changed, the file can be used and closed', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const results = await runRanks<ReturnType<typeof differentCalls>>(ranks, program, { work: 'calls', path, odd });
    expectMismatch(
      results.map(({ told }) => told),
      odd,
    );
    for (const { before, told } of results)
      for (const { name, after } of told) expect({ name, after }).toEqual({ name, after: before });
    const file = File.openSync(path);
    expect([...file.keys()]).toEqual(['t', 'u', 'last']);
    expect([...(file.dataset('/t').readSync() as Int32Array)]).toEqual([0, 1, ranks > 2 ? 2 : 0, 0, 0, 0]);
    file.closeSync();
  });

  test('with options: MISMATCH on all of them, and the file is as it was', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const results = await runRanks<ReturnType<typeof differentBeginnings>>(ranks, program, {
      work: 'beginnings',
      path,
      odd,
    });
    expectMismatch(
      results.map(({ told }) => told),
      odd,
    );
    for (const { told } of results)
      for (const { name, after } of told) expect({ name, after }).toEqual({ name, after: 'kept' });
  });
});

test('the order in which options stand is no difference', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  expect(await runRanks(2, program, { work: 'order', path })).toEqual([1, 1]);
});
