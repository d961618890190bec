import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { H5LogError } from '../base/errors.ts';
import { onAllRanks } from '../comm/agreement.ts';
import type { Communicator } from '../comm/communicator.ts';
import { findLauncher, type Launcher } from '../comm/launcher.ts';
import { solo } from '../comm/solo.ts';
import { specifierOf } from '../comm/threads/run.ts';
import { failureText, noProgress, type Progress, progressOn } from './print.ts';

/** The ranks that a command runs on, and its output. */
export interface CommandContext {
  /** All ranks of an MPI launcher, or a single one. */
  readonly comm: Communicator;
  /** Modules that register filters, loaded in this process; threads of a tool have to load them as well. */
  readonly filterModules: readonly string[];
  /** Prints a line to standard output, on the first rank only. */
  print(line: string): void;
  printJson(value: unknown): void;
  /** Prints an error that does not end the command to standard error, on the first rank only. */
  fail(error: unknown): void;
  readonly progress: Progress;
}

/** The launcher that started this process as one of several ranks, if there is one. */
export function launcherOfSeveral(): Launcher | undefined {
  const found = findLauncher((name) => process.env[name]);
  return found && found.size > 1 ? found : undefined;
}

/** Joins the ranks of the launcher. MPI is loaded only if there is one. */
export async function findContext(filterModules: readonly string[] = []): Promise<CommandContext> {
  for (const module of filterModules) await loadFilters(module);
  const comm = launcherOfSeveral() ? (await import('../mpi.ts')).mpi() : solo();
  const leads = comm.rank === 0;
  const progress = leads ? progressOn(process.stderr) : noProgress;
  const print = (line: string): void => {
    progress.clear();
    if (leads) process.stdout.write(`${line}\n`);
  };
  const fail = (error: unknown): void => {
    progress.clear();
    if (leads) process.stderr.write(failureText(error, false));
  };
  return { comm, filterModules, progress, fail, print, printJson: (value) => print(JSON.stringify(value, null, 2)) };
}

async function loadFilters(module: string): Promise<void> {
  try {
    await import(specifierOf(module));
  } catch (cause) {
    throw new H5LogError('NOT_FOUND', `--filter ${module}: ${(cause as Error).message}`, { cause });
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Creates a temporary directory that is removed when the process ends, also by a signal. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-cli-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.on('exit', remove);
  const signalled = (signal: NodeJS.Signals): void => {
    remove();
    for (const name of SIGNALS) process.removeListener(name, signalled);
    process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.on(signal, signalled);
  return folder;
}

/** Collective: a temporary directory for all ranks. The first rank removes it when it ends. */
export function sharedFolder(comm: Communicator): string {
  const path = onAllRanks(comm, () => (comm.rank === 0 ? temporaryFolder() : ''));
  const bytes = comm.bcast(comm.rank === 0 ? new TextEncoder().encode(path) : null, 0);
  return new TextDecoder().decode(bytes);
}

/** Collective: the first rank creates a directory unless it exists. */
export function makeFolder(comm: Communicator, path: string): void {
  onAllRanks(comm, () => {
    if (comm.rank === 0) mkdirSync(path, { recursive: true });
  });
}
