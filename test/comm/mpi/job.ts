import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compiled } from '../../compiled.ts';
import { type Oracle, oracle, withOracle } from '../../oracles.ts';

export type Mpi = 'openmpi' | 'mpich';

export interface MpiJob {
  readonly mpi: Mpi;
  readonly ranks: number;
  /** A TypeScript module, run by node with the sources of h5log, in one piece with them. */
  readonly program: URL | string;
  /** It looks for files beside itself: it is compiled where it is, by every rank. */
  readonly inPlace?: boolean;
  readonly args?: readonly string[];
  /** Milliseconds; a job that takes longer is killed with all of its processes, and the promise is rejected. */
  readonly timeout?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Flags of mpiexec itself. */
  readonly flags?: readonly string[];
}

export interface MpiResult {
  /** Of mpiexec; 128 and the signal's number if it was killed. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly milliseconds: number;
}

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/**
 * Runs a program on some ranks and waits for its end.
 *
 * @example const { code, stdout } = await runMpi({ mpi: 'mpich', ranks: 4, program: new URL('./sum.ts', import.meta.url) });
 */
export function runMpi(job: MpiJob): Promise<MpiResult> {
  const path = oracle(launcherOf(job.mpi));
  if (path === undefined) throw new Error(`${launcherOf(job.mpi)} not found; npm run oracles installs it`);
  const { ranks, args = [], timeout = 30_000, flags = [] } = job;
  const program = job.program instanceof URL ? fileURLToPath(job.program) : job.program;
  const node = job.inPlace
    ? [process.execPath, '--conditions=h5log-source', '--import', tsx, program, ...args]
    : [process.execPath, '--enable-source-maps', compiled(program), ...args];
  // What Open MPI leaves behind when it is killed goes with this directory.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'h5log-mpi-'));
  const mark = randomUUID();
  const env = { ...process.env, ...settings(job.mpi, folder), ...job.env, H5LOG_TEST_JOB: mark };
  const own = job.mpi === 'openmpi' ? ['--oversubscribe', '--bind-to', 'none'] : [];
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(path, [...own, ...flags, '-n', String(ranks), ...node], {
      detached: true,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    let late = false;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const limit = setTimeout(() => {
      late = true;
      if (child.pid !== undefined) killAll(child.pid, mark);
    }, timeout);
    child.on('error', reject);
    child.on('close', (status, signal) => {
      clearTimeout(limit);
      // Open MPI puts its ranks into groups of their own, and a launcher that was killed cannot end them.
      killMarked(mark);
      rmSync(folder, { recursive: true, force: true });
      const output = `\n--- stdout\n${stdout}\n--- stderr\n${stderr}`;
      if (late) {
        reject(new Error(`${job.mpi} with ${ranks} ranks of ${program} took longer than ${timeout} ms${output}`));
        return;
      }
      const code = status ?? 128 + (signal ? constants.signals[signal] : 0);
      resolve({ code, stdout, stderr, milliseconds: performance.now() - start });
    });
  });
}

/** The suite once for every MPI; one line where it is absent. */
export function withEachMpi(checks: string, suite: (mpi: Mpi) => void): void {
  for (const mpi of ['openmpi', 'mpich'] as const) withOracle(launcherOf(mpi), `${checks} (${mpi})`, () => suite(mpi));
}

function launcherOf(mpi: Mpi): Oracle {
  return `mpiexec.${mpi}`;
}

function settings(mpi: Mpi, folder: string): Record<string, string> {
  if (mpi === 'mpich') return {};
  return {
    OMPI_ALLOW_RUN_AS_ROOT: '1',
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
    OMPI_MCA_btl_vader_backing_directory: folder,
    OMPI_MCA_orte_tmpdir_base: folder,
  };
}

function killAll(group: number, mark: string): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // It has ended in between.
  }
  killMarked(mark);
}

/** Ends what is left of one job, known by a variable that only its processes have, and waits until it is gone: the dying still hold locks. */
function killMarked(mark: string): void {
  if (!existsSync('/proc/self/environ')) return;
  const until = performance.now() + 5000;
  for (let left = marked(mark); left.length > 0 && performance.now() < until; left = marked(mark)) {
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended in between.
      }
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
  }
}

function marked(mark: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`H5LOG_TEST_JOB=${mark}`);
    } catch {
      // Somebody else's process, or one that has ended.
      return false;
    }
  });
}
