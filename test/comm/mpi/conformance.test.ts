import { expect, test, vi } from 'vitest';
import { full } from '../../seed.ts';
import { runMpi, withEachMpi } from './job.ts';

const conformance = new URL('./programs/conformance.ts', import.meta.url);
vi.setConfig({ testTimeout: 300_000 });
const large = new URL('./programs/large.ts', import.meta.url);

withEachMpi('the MPI communicator', (mpi) => {
  test.each([1, 2, 5])('conforms on %i ranks', async (ranks) => {
    const { code, stdout, stderr, milliseconds } = await runMpi({ mpi, ranks, program: conformance, timeout: 280_000 });
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${ranks} ranks passed \\d\\d checks\\r?\\n$`));
    process.stdout.write(`${mpi}, ${stdout.trim()} in ${Math.round(milliseconds)} ms\n`);
  });

  test.runIf(full)('compares the calls of all ranks where that is asked for', async () => {
    const env = { H5LOG_MPI_CHECK: '1' };
    const { code, stdout } = await runMpi({ mpi, ranks: 2, program: conformance, timeout: 280_000, env });
    expect(stdout.trim()).toMatch(/^2 ranks passed \d+ checks$/);
    expect(code).toBe(0);
  });

  // Counts are int32 in MPI. Needs 10 GB of memory.
  test.runIf(full)('sends messages of more than 2 GiB', async () => {
    const { code, stdout, milliseconds } = await runMpi({ mpi, ranks: 2, program: large, timeout: 280_000 });
    expect([code, stdout.trim()]).toEqual([0, 'large messages arrived']);
    process.stdout.write(`${mpi}, messages of more than 2 GiB in ${Math.round(milliseconds)} ms\n`);
  });
});
