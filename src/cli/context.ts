import type { Communicator } from '../comm/communicator.ts';
import { findLauncher, type Launcher } from '../comm/launcher.ts';
import { solo } from '../comm/solo.ts';
import { noProgress, type Progress, progressOn } from './print.ts';

/** What a command runs in: its ranks, and where it prints. */
export interface CommandContext {
  /** All ranks of an MPI launcher, or one. */
  readonly comm: Communicator;
  /** Prints a line on standard output; only the first rank does. */
  print(line: string): void;
  printJson(value: unknown): void;
  readonly progress: Progress;
}

/** The MPI launcher that started this process as one of several; mind that Slurm without MPI is none. */
export function launcherOfSeveral(): Launcher | undefined {
  const found = findLauncher((name) => process.env[name]);
  return found && found.size > 1 ? found : undefined;
}

/** Joins the ranks of the launcher, if there is one. MPI is loaded only then. */
export async function findContext(): Promise<CommandContext> {
  const comm = launcherOfSeveral() ? (await import('../mpi.ts')).mpi() : solo();
  const leads = comm.rank === 0;
  const progress = leads ? progressOn(process.stderr) : noProgress;
  const print = (line: string): void => {
    progress.clear();
    if (leads) process.stdout.write(`${line}\n`);
  };
  return { comm, progress, print, printJson: (value) => print(JSON.stringify(value, null, 2)) };
}
