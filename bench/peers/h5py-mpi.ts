import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlannedFile } from '../../src/bench/e3sm-plan.ts';
import { lastLine, runMpi } from '../mpi.ts';
import { type Dealt, planned, writePlan } from './e3sm-plan-file.ts';
import { PYTHON } from './python.ts';

const SCRIPT = fileURLToPath(new URL('./e3sm_peer.py', import.meta.url));
/** Milliseconds for all repetitions. */
const TIMEOUT = 300_000;

/** Two ways of parallel HDF5 to write; which one is faster depends on the machine. */
export const WAYS = ['collective', 'independent'] as const;

export interface MpiTask {
  readonly folder: string;
  readonly files: readonly PlannedFile[];
  readonly dealt: readonly Dealt[];
  readonly ranks: number;
  readonly repeat: number;
}

/** What is not installed for it, or undefined. */
export async function mpiLacks(): Promise<string | undefined> {
  const check = 'from mpi4py import MPI; import h5py; assert h5py.get_config().mpi';
  try {
    if (typeof (await runMpi('mpiexec.openmpi', 1, [PYTHON, '-c', check])) === 'object') return undefined;
    return 'mpiexec.openmpi is not installed; apt install openmpi-bin';
  } catch {
    return `${PYTHON} with mpi4py and an h5py for MPI is not installed; apt install python3-mpi4py python3-h5py-mpi`;
  }
}

/** Seconds of each repetition, and the files of the last; or that it had not ended after so many seconds. */
export async function writeWithMpi(
  way: (typeof WAYS)[number],
  { folder, files, dealt, ranks, repeat }: MpiTask,
): Promise<{ times: number[]; paths: string[] } | { moreThan: number }> {
  const own = mkdtempSync(join(folder, 'h5py-mpi-'));
  const plan = writePlan(own, files, dealt, repeat);
  const outcome = await runMpi('mpiexec.openmpi', ranks, [PYTHON, '-m', 'mpi4py', SCRIPT, plan, way], TIMEOUT);
  if (typeof outcome === 'string') return { moreThan: TIMEOUT / 1000 / repeat };
  return { times: lastLine<number[]>(outcome.stdout), paths: files.map(({ name }, i) => planned(own, name, i)) };
}
