import { join } from 'node:path';
import { File } from 'h5log';
import { verify } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { temporaryDirectory } from '../temporary.ts';
import type {
  differentBeginnings,
  differentCalls,
  differentFlushes,
  keptReferences,
  lostPosts,
  lostTexts,
  manyCalls,
  Told,
} from './mismatch-rank.ts';
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

  test.each([0, 2])(
    'before a flush, with %i subfiles: the flush fails on all of them, the file is that of the last commit',
    async (subfiles) => {
      const path = join(temporaryDirectory(), 'a.h5');
      const data = { work: 'flushes', path, odd, subfiles };
      const results = await runRanks<ReturnType<typeof differentFlushes>>(ranks, program, data);
      const alone: Record<string, string> = {
        'dataset bad shape on one': 'SHAPE',
        'dataset no options on one': 'DTYPE',
        'bad name': 'OPTION',
      };
      const isFailure = ({ name }: Told): boolean => name in alone;
      expectMismatch(
        results.map(({ told }) => told.filter((one) => !isFailure(one))),
        odd,
      );
      for (const { told, before } of results) {
        for (const { name, after } of told) expect({ name, after }).toEqual({ name, after: before });
        const failed = told.filter(isFailure).map(({ name, outcome: { code, rank } }) => [name, code, rank]);
        expect(failed).toEqual(Object.entries(alone).map(([name, code]) => [name, code, odd]));
      }
      const file = File.openSync(path);
      expect([...file.keys()]).toEqual(['t', 'u', 'last']);
      expect([...(file.dataset('/t').readSync() as Int32Array)]).toEqual([1, 2, ranks > 2 ? 3 : 0, 0, 0, 0]);
      expect(file.sequence).toBe(2);
      file.closeSync();
    },
  );

  test.each([0, 2])(
    'before a flush, with %i subfiles: posts stay pending, and are dropped where their dataset is not in the last commit',
    async (subfiles) => {
      const path = join(temporaryDirectory(), 'a.h5');
      const data = { work: 'posts', path, odd, subfiles };
      const results = await runRanks<ReturnType<typeof lostPosts>>(ranks, program, data);
      const named = odd === 0 ? 1 : odd;
      const commit = '; the structure is again that of commit 1';
      const mismatch = `the ranks do not make the same calls: `;
      const calls = (first: string, other: string): string =>
        odd === 0
          ? `rank 0 calls ${other}, rank ${named} calls ${first}`
          : `rank 0 calls ${first}, rank ${named} calls ${other}`;
      const differs = (what: string, first: string, other: string): string =>
        odd === 0
          ? `${what} is ${other} on rank 0, ${first} on rank ${named}`
          : `${what} is ${first} on rank 0, ${other} on rank ${named}`;
      for (const { outcomes } of results) {
        expect(outcomes.map(({ code, rank, message }) => [code, rank, message])).toEqual([
          ['MISMATCH', named, `${mismatch}${calls('createGroup ("/left-out")', 'flush')}${commit}`],
          [
            'MISMATCH',
            named,
            `${mismatch}createGroup: ${differs('path', '"/a"', '"/b"')}${commit}; posts were dropped: all to /fresh`,
          ],
          [
            'MISMATCH',
            named,
            `${mismatch}${calls('flush', 'createGroup ("/c")')}${commit}; posts were dropped: those to /t outside of its shape`,
          ],
          ['MISMATCH', named, `${mismatch}${calls('close', 'createGroup ("/d")')}${commit}`],
          [
            'foreign RangeError',
            undefined,
            `rank ${odd}: attributes.set: Array buffer allocation failed; on rank ${odd === 0 ? 1 : 0} it did not fail${commit}`,
          ],
          [
            'NOT_FOUND',
            odd,
            `rank ${odd}: delete ("/nothing"): there is no /nothing; rank ${odd === 0 ? 1 : 0} calls flush there${commit}`,
          ],
          ['MISMATCH', named, `${mismatch}resize: ${differs('shape', '[11]', '[12]')}${commit}`],
        ]);
      }
      results.forEach(({ values, pending }, rank) => {
        const first = new Array<number>(8).fill(5);
        first[rank] = 10 + rank;
        const second = first.slice();
        second[4 + rank] = 20 + rank;
        expect(values).toEqual([first, first, second, second, second, second, second]);
        expect(pending).toEqual([1, 1, 2, 4, 4, 4, 4]);
      });
      const end = Array.from({ length: 8 }, (_, i) => (i < ranks ? 10 + i : i >= 4 && i < 4 + ranks ? 16 + i : 5));
      for (const { kept } of results)
        expect(kept).toEqual({
          keys: ['t', 'links', 'end'],
          attributes: [],
          values: end,
          links: ['/t', ...new Array<string>(ranks - 1).fill('/links')],
          gone: 'NOT_FOUND',
          sequence: 2,
        });
    },
  );

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

test.each([0, 2])('texts that were dropped leave a file with %i subfiles as it should be', async (subfiles) => {
  const path = join(temporaryDirectory(), 'a.h5');
  const data = { work: 'texts', path, odd: 1, subfiles };
  for (const { code, message } of await runRanks<ReturnType<typeof lostTexts>>(2, program, data))
    expect([code, message]).toEqual(['MISMATCH', expect.stringContaining('posts were dropped: all to /texts')]);
  const file = File.openSync(path);
  expect([...file.keys()]).toEqual(['numbers']);
  expect(file.dataset('/numbers').readSync()).toEqual(Int32Array.of(5, 6));
  file.closeSync();
  expect((await verify(path)).sound).toBe(true);
});

test.each([0, 2])('posts refer to what they did before calls that did not last, %i subfiles', async (subfiles) => {
  const path = join(temporaryDirectory(), 'a.h5');
  const data = { work: 'references', path, odd: 1, subfiles };
  const links = ['/x', '/y', '/gone', '/g'];
  for (const seen of await runRanks<ReturnType<typeof keptReferences>>(2, program, data))
    expect(seen).toEqual({ code: 'MISMATCH', pending: links, committed: links });
});

test('one call of thousands', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  const results = await runRanks<ReturnType<typeof manyCalls>>(2, program, { work: 'many', path });
  for (const found of results)
    expect(found.map(({ code, message }) => [code, /\w+-\d+/.exec(message)?.[0]])).toEqual([
      ['MISMATCH', 'g-10'],
      ['MISMATCH', 'g-5000'],
      ['fine', undefined],
    ]);
  const file = File.openSync(path);
  const wrong = [...file.keys()].filter((name) => {
    const { attributes } = file.dataset(name);
    return attributes.get('a') !== `two ${name.slice(2)}` || attributes.get('b') !== 'one';
  });
  expect([[...file.keys()].length, wrong]).toEqual([6000, []]);
  file.closeSync();
});

test('the order in which options stand is no difference', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  expect(await runRanks(2, program, { work: 'order', path })).toEqual([1, 1]);
});

withEachMpi('ranks of MPI that differ', (mpi) => {
  test.each(['flushes', 'posts'])(`on ${mpi}, %s: as on threads`, { timeout: 120_000 }, async (work) => {
    const folder = temporaryDirectory();
    const expected = await runRanks(2, program, { work, path: join(folder, 'threads.h5'), odd: 1 });
    const args = [JSON.stringify({ work, path: join(folder, 'mpi.h5'), odd: 1 })];
    const script = new URL('./programs/mismatch.ts', import.meta.url);
    const { code, stdout, stderr } = await runMpi({ mpi, ranks: 2, program: script, args, timeout: 100_000 });
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(expected).replaceAll('threads.h5', 'mpi.h5')));
  });
});
