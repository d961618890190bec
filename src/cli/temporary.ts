import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A new folder that goes when the process ends, also by a signal. */
export function temporaryFolder(): string {
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
