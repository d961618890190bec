import type { Communicator } from '../comm/communicator.ts';
import { findLauncher, type Launcher } from '../comm/launcher.ts';
import { solo } from '../comm/solo.ts';
import { noProgress, type Progress, progressOn } from './print.ts';

/** The ranks that a command runs on, and its output. */
export interface CommandContext {
  /** All ranks of an MPI launcher, or a single one. */
  readonly comm: Communicator;
  /** Prints a line to standard output, on the first rank only. */
  print(line: string): void;
  printJson(value: unknown): void;
  readonly progress: Progress;
}

/** The launcher that started this process as one of several ranks, if there is one. */
export function launcherOfSeveral(): Launcher | undefined {
  const found = findLauncher((name) => process.env[name]);
  return found && found.size > 1 ? found : undefined;
}

/** Joins the ranks of the launcher. MPI is loaded only if there is one. */
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
