import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Launcher = 'mpiexec.openmpi' | 'mpiexec.mpich';

export const LAUNCHERS: Readonly<Record<Launcher, string>> = {
  'mpiexec.openmpi': 'Open MPI',
  'mpiexec.mpich': 'MPICH',
};

/** Milliseconds that a launcher has to end its ranks. */
const PATIENCE = 5_000;

/** What a job gave: its output, or that it took too long, or that there is no such launcher here. */
export type MpiOutcome = { readonly stdout: string } | 'too long' | 'not installed';

/** Runs a command on some ranks, at most for so many milliseconds; 0: as long as it takes. A job that fails throws. */
export function runMpi(
  launcher: Launcher,
  ranks: number,
  command: readonly string[],
  timeout = 0,
): Promise<MpiOutcome> {
  const own = launcher === 'mpiexec.openmpi' ? ['--oversubscribe', '--bind-to', 'none'] : [];
  // Jobs that begin and end at the same time must not share Open MPI's folder: one removes it while another one makes it.
  const folder = mkdtempSync(join(tmpdir(), 'h5log-mpi-'));
  const env = {
    ...process.env,
    OMPI_ALLOW_RUN_AS_ROOT: '1',
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
    OMPI_MCA_orte_tmpdir_base: folder,
  };
  return new Promise((resolve, reject) => {
    const args = [...own, '-n', String(ranks), ...command];
    const child = execFile(launcher, args, { encoding: 'utf8', env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      for (const timer of timers) clearTimeout(timer);
      rmSync(folder, { recursive: true, force: true });
      // Not by how it ended: MPICH is content when it is told to end.
      if (child.killed) resolve('too long');
      else if (!error) resolve({ stdout });
      else if (error.code === 'ENOENT') resolve('not installed');
      else reject(new Error(`${launcher} ended with ${error.code ?? error.signal}: ${stderr.trim()}`));
    });
    // The launcher ends its ranks when it is told to end. Open MPI then sometimes stays itself.
    const timers =
      timeout === 0
        ? []
        : [
            setTimeout(() => child.kill('SIGTERM'), timeout),
            setTimeout(() => child.kill('SIGKILL'), timeout + PATIENCE),
          ];
  });
}

/** The last line of an output, which is JSON. */
export function lastLine<T>(stdout: string): T {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) as string) as T;
}
