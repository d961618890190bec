import { join } from 'node:path';
import { solo } from 'h5log';
import { runThreads } from 'h5log/threads';
import { beforeAll, describe, expect, test } from 'vitest';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { temporaryDirectory } from '../temporary.ts';
import { contentsOf, logOf } from './contents.ts';
import scripted, { WORKERS } from './scripted.ts';

const folder = temporaryDirectory();
const script = new URL('./scripted.ts', import.meta.url);
const program = new URL('./programs/scripted.ts', import.meta.url);

describe('the same program', () => {
  const onThreads = join(folder, 'threads.h5');
  let expected: Record<string, string>;

  beforeAll(async () => {
    const path = join(folder, 'solo.h5');
    scripted(solo(), { path });
    expected = contentsOf(path);
    await runThreads(WORKERS, script, { path: onThreads });
  });

  const mustEqual = (path: string): void => {
    expect(Object.keys(expected).length).toBeGreaterThan(10);
    expect(contentsOf(path)).toEqual(expected);
  };

  test(`on ${WORKERS} threads`, () => mustEqual(onThreads));

  test.each([1, 2, 3])('on threads with %i subfiles', async (subfiles) => {
    const path = join(folder, `threads-${subfiles}.h5`);
    await runThreads(WORKERS, script, { path, subfiles });
    mustEqual(path);
  });

  test('on 2 threads, each with the work of two', async () => {
    const path = join(folder, 'two.h5');
    await runThreads(2, script, { path, subfiles: 2 });
    mustEqual(path);
  });

  withEachMpi('one program on ranks of MPI', (mpi) => {
    const onMpi = async (name: string, options: object): Promise<string> => {
      const path = join(folder, `${mpi}-${name}.h5`);
      const args = [path, JSON.stringify(options)];
      const { code, stderr } = await runMpi({ mpi, ranks: WORKERS, program, args, timeout: 120_000 });
      expect(stderr).toBe('');
      expect(code).toBe(0);
      return path;
    };

    test(`on ${WORKERS} ranks of ${mpi}, with the same bytes in log and tables as on threads`, async () => {
      const path = await onMpi('plain', {});
      mustEqual(path);
      const bytes = logOf(path);
      expect(Object.keys(bytes).length).toBeGreaterThan(5);
      expect(bytes).toEqual(logOf(onThreads));
    }, 150_000);

    test(`on ${WORKERS} ranks of ${mpi} with 2 subfiles`, async () => {
      mustEqual(await onMpi('subfiles', { subfiles: 2 }));
    }, 150_000);

    test(`on ${WORKERS} ranks of ${mpi} through MPI-IO`, async () => {
      mustEqual(await onMpi('mpi-io', { storage: 'mpi-io' }));
      mustEqual(await onMpi('mpi-io-subfiles', { storage: 'mpi-io', subfiles: 2, durability: 'power' }));
    }, 300_000);
  });
});
