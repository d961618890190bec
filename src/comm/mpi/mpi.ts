import { fstatSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { H5LogError } from '../../base/errors.ts';
import { checkNames } from '../../base/options.ts';
import type { Communicator } from '../communicator.ts';
import { findLauncher, type Launcher } from '../launcher.ts';
import { type Binding, type Handle, loadBinding } from './binding.ts';
import { MpiCommunicator } from './communicator.ts';
import { endWith, type Member, makeOutputBlocking } from './end.ts';
import { Job } from './job.ts';

let world: MpiCommunicator | undefined;

/**
 * All ranks of the MPI job. The first call loads koffi and the MPI library and initialises MPI; later ones give the same
 * communicator. MPI ends with the process.
 *
 * @example const file = await File.create('run.h5', { comm: mpi() });   // mpiexec -n 4 node program.js
 */
export function mpi(options: { library?: string } = {}): Communicator {
  checkNames('mpi', options, { library: true });
  const { library } = options;
  if (world) {
    const { library: loaded } = world.job.binding;
    if (library === undefined || library === loaded) return world;
    throw new H5LogError('OPTION', `mpi() has loaded ${loaded} in this process; it cannot load ${library} as well`);
  }
  if (!isMainThread) {
    throw new H5LogError(
      'COMM',
      'mpi() works only on the main thread of a process; in worker threads use h5log/threads',
    );
  }
  // Must come before MPI_Init, which sets variables of its own.
  const started = findLauncher((name) => process.env[name]);
  if (started?.kind === 'srun') {
    throw new H5LogError('COMM', `srun started ${started.size} tasks without MPI; use srun --mpi=pmix`, {
      rank: started.rank,
    });
  }
  const lost = lostConnection((name) => process.env[name]);
  if (lost) throw new H5LogError('COMM', lost, { rank: started?.rank });
  world = start(loadBinding(library, started), started);
  return world;
}

function start(binding: Binding, started: Launcher | undefined): MpiCommunicator {
  const { calls, constants } = binding;
  const answer = new Int32Array(new ArrayBuffer(4));
  const ask = (call: (answer: Int32Array) => number): number => {
    call(answer);
    return answer[0] ?? 0;
  };
  if (ask(calls.Finalized)) throw new H5LogError('COMM', 'MPI has ended in this process and cannot be started again');
  const ours = !ask(calls.Initialized);
  const level = ask(ours ? (cell) => calls.Init_thread(0, 0, constants.THREAD_FUNNELED, cell) : calls.Query_thread);
  if (level < constants.THREAD_FUNNELED) {
    if (ours) calls.Finalize();
    const message = `${binding.library} (${binding.version}) gives thread level ${level}; MPI_THREAD_FUNNELED is needed, because Node has threads`;
    throw new H5LogError('UNSUPPORTED', message);
  }
  const size = ask((cell) => calls.Comm_size(constants.COMM_WORLD, cell));
  const rank = ask((cell) => calls.Comm_rank(constants.COMM_WORLD, cell));
  if (started && started.size !== size) {
    if (ours && size === 1) calls.Finalize();
    const only = size < started.size ? ' only' : '';
    const message =
      `${launchers[started.kind]} started ${started.size} processes, but ${binding.library} (${binding.version}) knows${only} ${size}; ` +
      'set MPI_LIB, or use the launcher of the same installation';
    throw new H5LogError('COMM', message, { rank: started.rank });
  }
  const job = new Job(binding, rank, size);
  makeOutputBlocking();
  const handler = binding.errorsReturn();
  job.check(calls.Comm_set_errhandler(constants.COMM_WORLD, handler), 'MPI_Comm_set_errhandler');
  const duplicate = () => {
    const cell = binding.cells(1);
    job.check(calls.Comm_dup(constants.COMM_WORLD, cell), 'MPI_Comm_dup');
    job.check(calls.Comm_set_errhandler(Number(cell[0]) as Handle, handler), 'MPI_Comm_set_errhandler');
    return cell;
  };
  // One for the collectives, and one that is used only when the job ends.
  const [cell, farewell] = [duplicate(), duplicate()];
  const open = new Set<Member>();
  endWith(job, open, Number(farewell[0]), ours);
  const members = Array.from({ length: size }, (_, index) => index);
  return new MpiCommunicator(job, cell, members, open, Number.POSITIVE_INFINITY, null);
}

const launchers: Readonly<Record<Launcher['kind'], string>> = {
  openmpi: 'mpiexec of Open MPI',
  pmi: 'a launcher with PMI (mpiexec of MPICH or Intel MPI, srun --mpi=pmi2)',
  pmix: 'srun --mpi=pmix',
  srun: 'srun',
};

/**
 * MPICH and compatible libraries give every rank a socket to the launcher; PMI_FD is its file descriptor. Node programs do not pass
 * such descriptors on to their child processes: there the number is closed, or a pipe of Node's own, and MPI must not write to it.
 * Returns what is wrong, or undefined.
 */
function lostConnection(environment: (name: string) => string | undefined): string | undefined {
  const text = environment('PMI_FD');
  if (text === undefined || !/^\d{1,9}$/.test(text)) return undefined;
  try {
    if (fstatSync(Number(text)).isSocket()) return undefined;
  } catch {
    // The descriptor is not open.
  }
  return (
    `the connection to the launcher (PMI_FD ${text}) is lost: mpiexec must start node itself, ` +
    'not something like npx that starts node in turn (for example mpiexec -n 4 node_modules/.bin/h5log, not mpiexec -n 4 npx h5log)'
  );
}
