import { expect, test, vi } from 'vitest';
import { full, repeats, seed } from '../../seed.ts';
import { type MpiResult, runMpi, withEachMpi } from './job.ts';

const program = new URL('./programs/failure.ts', import.meta.url);
/** Milliseconds for a job that does not hang; it takes one or two seconds, and ten times as long on a busy machine. */
const bounded = 90_000;
vi.setConfig({ testTimeout: 120_000 });

withEachMpi('an MPI job', (mpi) => {
  // Not every way to fail on every MPI, unless everything is run: a fifth of them.
  let ways = seed(`ways to fail on ${mpi}`);
  const sometimes = (name: string, check: () => Promise<void>): void =>
    test.runIf(full || ways++ % 5 === 0)(name, check);
  const fail = async (how: string, env: Record<string, string> = {}): Promise<MpiResult> => {
    const result = await runMpi({ mpi, ranks: 4, program, args: [how], timeout: bounded, env });
    process.stdout.write(`${mpi}, ${how}: exit code ${result.code} after ${Math.round(result.milliseconds)} ms\n`);
    return result;
  };
  const lines = (text: string, wanted: RegExp) => text.split(/\r?\n/).filter((line) => wanted.test(line));

  test.each(['throw', 'reject'])('ends when a rank throws (%s)', async (how) => {
    const { code, stdout, stderr } = await fail(how);
    expect(code).not.toBe(0);
    expect(lines(stderr, /something of its own/)).toEqual(['rank 1 of 4: uncaught Error: something of its own']);
    expect(stderr).toContain('failure.ts');
    expect(stdout).not.toContain('never');
  });

  // MPICH's launcher forgets what it has not read when a rank aborts: 7 of 400 busy jobs ended without a word.
  test.runIf(mpi === 'mpich')('is told why it ended, every time', async () => {
    for (let jobs = 0; jobs < repeats(80); jobs += 4) {
      const four = await Promise.all([fail('throw'), fail('throw'), fail('throw'), fail('throw')]);
      for (const { stderr } of four) expect(lines(stderr, /something of its own/)).toHaveLength(1);
    }
  });

  test('ends when a rank has ended that others wait for', async () => {
    const { code, stdout, stderr } = await fail('exit 0');
    expect(code).not.toBe(0);
    expect(lines(stderr, /^COMM: /)).toEqual(['COMM: rank 1 of 4 has ended while rank 2 of 4 waits for it in barrier']);
    expect(stdout).not.toContain('never');
  });

  sometimes('ends when the rank is missed in a part of the job only', async () => {
    const { code, stderr } = await fail('part');
    expect(code).not.toBe(0);
    // Rank 0 misses it in its part, and rank 2, which gives way, in the whole.
    const [line] = lines(stderr, /^COMM: /);
    expect(line).toMatch(/^COMM: rank 1 of 4 has ended while rank [02] of 4 waits for it in barrier$/);
  });

  sometimes('ends when those between the rank that is missed and the one that waits have ended as well', async () => {
    const { code, stderr } = await fail('chain');
    expect(code).not.toBe(0);
    expect(lines(stderr, /^COMM: /)).toEqual(['COMM: rank 0 of 4 has ended while rank 3 of 4 waits for it in gather']);
  });

  sometimes('goes on when the rank that has ended did its part', async () => {
    const { code, stdout, stderr } = await fail('early');
    expect([code, stdout.trim(), stderr]).toEqual([0, 'gathered', '']);
  });

  test('ends with the exit code of process.exit, after the output of that rank', async () => {
    const { code, stdout } = await fail('exit 3');
    expect(code).toBe(3);
    const [text = ''] = lines(stdout, /^x/);
    expect(text.length).toBe(500_000);
    expect(stdout).toContain('last line');
    expect(stdout).not.toContain('never');
  });

  sometimes('ends with process.exitCode', async () => {
    const { code, stdout } = await fail('exitCode');
    expect(code).toBe(4);
    expect(stdout).not.toContain('never');
  });

  test('ends with an exit code that all ranks have, after the output of all', async () => {
    for (let jobs = 0; jobs < repeats(40); jobs += 2) {
      for (const { code, stdout } of await Promise.all([fail('all'), fail('all')])) {
        expect(code).toBe(4);
        expect(lines(stdout, /found something/).sort()).toEqual(
          [0, 1, 2, 3].map((rank) => `rank ${rank} found something`),
        );
      }
    }
  });

  sometimes('lets exit hooks communicate and change the exit code', async () => {
    const { code, stdout } = await fail('hook');
    expect(code).toBe(6);
    expect(stdout.trim()).toBe('4 ranks in the hook');
  });

  test('ends when a rank is killed', async () => {
    const { code, stdout } = await fail('kill');
    expect(code).not.toBe(0);
    expect(stdout).not.toContain('never');
  });

  sometimes('ends when a rank aborts', async () => {
    const { code, stdout } = await fail('abort');
    expect(code).toBe(5);
    expect(stdout).not.toContain('never');
  });

  test('ends when a timeout is over', async () => {
    const { code, stderr } = await fail('timeout');
    expect(code).not.toBe(0);
    const [line, ...more] = lines(stderr, /^COMM: /);
    expect(line).toMatch(/^COMM: rank 0 of 4 has waited \d{3,} ms in allreduce; the timeout is 300 ms$/);
    expect(more).toEqual([]);
  });

  sometimes('says once what all ranks agreed on', async () => {
    const { code, stderr } = await fail('agreed');
    expect(code).not.toBe(0);
    expect(lines(stderr, /H5LogError|allreduce: /)[0]).toBe(
      'rank 1 of 4: uncaught H5LogError: allreduce: rank 1 gave 3 values, rank 0 gave 2',
    );
    expect(lines(stderr, /uncaught/)).toHaveLength(1);
  });

  sometimes('names the call that does not fit, where that is asked for', async () => {
    const { code, stderr } = await fail('late', { H5LOG_MPI_CHECK: '1' });
    expect(code).not.toBe(0);
    expect(lines(stderr, /uncaught/)).toEqual([
      'rank 1 of 4: uncaught H5LogError: rank 1 calls split where rank 0 calls barrier',
    ]);
  });

  sometimes('waits at its end for a rank that still computes', async () => {
    const { code, stdout, stderr } = await fail('computing');
    expect([code, stdout.trim(), stderr]).toEqual([0, 'computed', '']);
  });
});
