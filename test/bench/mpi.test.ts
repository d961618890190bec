import { test } from 'vitest';
import { LAUNCHERS, type Launcher, runMpi } from '../../bench/mpi.ts';
import { withOracle } from '../oracles.ts';

for (const launcher of Object.keys(LAUNCHERS) as Launcher[]) {
  withOracle(launcher, `a job of ${launcher}`, () => {
    test.concurrent('gives its output', async ({ expect }) => {
      expect(await runMpi(launcher, 2, ['echo', 'here'])).toEqual({ stdout: 'here\nhere\n' });
    });

    test.concurrent('that takes too long is ended', async ({ expect }) => {
      const begun = performance.now();
      expect(await runMpi(launcher, 2, ['sleep', '50'], 500)).toBe('too long');
      expect(performance.now() - begun).toBeLessThan(10_000);
    });

    test.concurrent('that fails says why', async ({ expect }) => {
      const job = runMpi(launcher, 1, ['sh', '-c', 'echo broken >&2; exit 3']);
      await expect(job).rejects.toThrow(/mpiexec\.\w+ ended with 3: [\s\S]*broken/);
    });
  });
}

test('a launcher that is not there is told from a job that fails', async ({ expect }) => {
  expect(await runMpi('mpiexec.nobody' as Launcher, 1, ['true'])).toBe('not installed');
});
