import { mkdirSync } from 'node:fs';
import { together } from '../comm/agreement.ts';
import type { Communicator } from '../comm/communicator.ts';
import { temporaryFolder } from './temporary.ts';

/** A folder of the first rank's for all of them, which it removes when it ends. */
export function sharedFolder(comm: Communicator): string {
  const path = together(comm, () => (comm.rank === 0 ? temporaryFolder() : ''));
  const bytes = comm.bcast(comm.rank === 0 ? new TextEncoder().encode(path) : null, 0);
  return new TextDecoder().decode(bytes);
}

/** Makes a folder unless it is there; the first rank does it for all. */
export function makeFolder(comm: Communicator, path: string): void {
  together(comm, () => {
    if (comm.rank === 0) mkdirSync(path, { recursive: true });
  });
}
