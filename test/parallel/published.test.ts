import { join } from 'node:path';
import { File } from 'h5log';
import { verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { expected, type Options } from './published-rank.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./published-rank.ts', import.meta.url);
const onMpi = new URL('./programs/published.ts', import.meta.url);

const LOOK = `
import h5py, json, sys
def plain(f, d):
    if h5py.check_ref_dtype(d.dtype): return [f[r].name for r in d[...].ravel()]
    return [v.decode() if isinstance(v, bytes) else v.item() if hasattr(v, 'item') else v for v in d[...].ravel()]
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps({name: plain(f, f[name]) for name in ['rows', 'packed', 'field', 'texts', 'targets', 'scalar']}))
`;

/** h5py, a new reader and the model agree, and nothing is wrong in the file. */
async function expectSeen(path: string, ranks: number, sessions: number): Promise<void> {
  const model = expected(ranks, sessions);
  expect(JSON.parse(pythonSync(LOOK, [path]))).toEqual(model);
  const file = await File.open(path);
  expect(file.published).toBe(file.sequence);
  for (const [name, values] of Object.entries(model)) {
    const read = await file.dataset(name).read();
    const list = typeof read === 'number' ? [read] : Array.from(read as ArrayLike<unknown>);
    expect(list, name).toEqual(values);
    expect(file.dataset(name).published, name).not.toBe(null);
  }
  await file.close();
  expect((await verify(path)).problems).toEqual([]);
}

withOracle('python', 'several ranks publish when they close', () => {
  test.each([
    [2, 1, false],
    [4, 3, false],
    [3, 2, true],
  ])('%i ranks, %i sessions, midway %s', async (ranks, sessions, midway) => {
    const path = join(temporaryDirectory(), 'a.h5');
    const data: Options = { path, sessions, midway };
    const published = await runRanks<(number | null)[]>(ranks, program, data, 60_000);
    for (const each of published) expect(each).toEqual(published[0]);
    if (midway) expect(published[0]?.length).toBe(4);
    await expectSeen(path, ranks, sessions);
  });

  withEachMpi('on ranks of MPI', (mpi) => {
    test(`on 3 ranks of ${mpi}`, async () => {
      const path = join(temporaryDirectory(), 'a.h5');
      const args = [path, JSON.stringify({ sessions: 2, midway: true })];
      const { code, stderr } = await runMpi({ mpi, ranks: 3, program: onMpi, args, timeout: 120_000 });
      expect(stderr).toBe('');
      expect(code).toBe(0);
      await expectSeen(path, 3, 2);
    }, 150_000);
  });
});

test.each([0, 1, 2])(
  'what rank %i of 3 cannot make is an error on all of them, and the file goes on',
  async (failing) => {
    const path = join(temporaryDirectory(), 'a.h5');
    const data: Options = { path, sessions: 1, failing };
    const outcomes = await runRanks<{ message: string; sequence: number }>(3, program, data, 60_000);
    for (const { message, sequence } of outcomes) {
      expect(message).toMatch(new RegExp(`rank ${failing}.*no encoder today`));
      expect(sequence).toBe(2);
    }
    expect((await verify(path)).problems).toEqual([]);
  },
);
