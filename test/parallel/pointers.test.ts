import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { compact, replay, seal, verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { temporaryDirectory } from '../temporary.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./pointers-rank.ts', import.meta.url);
const onMpi = new URL('./programs/pointers.ts', import.meta.url);

interface Outcome {
  readonly seen: unknown[][];
  readonly expected: unknown[][];
}

test.each([
  [1, 0],
  [3, 0],
  [4, 2],
])('values that point elsewhere, of %i ranks, %i subfiles', async (size, subfiles) => {
  const folder = temporaryDirectory();
  const path = join(folder, 'a.h5');
  for (const { seen, expected } of await runRanks<Outcome>(size, program, { path, subfiles }))
    expect(seen).toEqual(expected);
  expect((await verify(path)).problems).toEqual([]);
  const made = {
    replay: join(folder, 'replayed.h5'),
    compact: join(folder, 'compact.h5'),
    seal: join(folder, 'sealed.h5'),
  };
  await replay(path, made.replay);
  await compact(path, made.compact);
  await seal(path, { to: made.seal });
  const file = await File.open(path);
  for (const [tool, other] of Object.entries(made)) {
    const copy = await File.open(other);
    for (const name of ['plain', 'packed', 'records', 'numbers'])
      expect(await copy.dataset(name).read(), `${tool} of ${name}`).toEqual(await file.dataset(name).read());
    await copy.close();
  }
  await file.close();
});

withEachMpi('values that point elsewhere, on ranks of MPI', (mpi) => {
  test.each([0, 2])(
    `on 3 ranks of ${mpi}, %i subfiles`,
    async (subfiles) => {
      const path = join(temporaryDirectory(), 'a.h5');
      const args = [path, JSON.stringify({ subfiles })];
      const { code, stderr } = await runMpi({ mpi, ranks: 3, program: onMpi, args, timeout: 120_000 });
      expect(stderr).toBe('');
      expect(code).toBe(0);
      expect((await verify(path)).problems).toEqual([]);
    },
    150_000,
  );
});

test('damage in the heap of a rank is damage of its data', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  await runRanks<Outcome>(3, program, { path });
  const at = readFileSync(path).indexOf('rank 2, ');
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.from('R'), 0, 1, at);
  closeSync(file);
  const { problems, newestSound } = await verify(path);
  expect(problems.map(({ what }) => what).join('\n')).toMatch(/plain uses data of rank 2 in commit 1/);
  expect(newestSound).toBe(0);
});
