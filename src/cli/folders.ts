import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onAllRanks } from '../comm/agreement.ts';
import type { Communicator } from '../comm/communicator.ts';

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
