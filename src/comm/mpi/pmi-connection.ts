import { fstatSync } from 'node:fs';

/**
 * MPICH and its relatives give every rank a socket to the launcher, as a file descriptor that PMI_FD names. Programs of Node do not pass
 * such descriptors on to what they start; under that number there is then nothing, or a pipe of Node's own, and MPI must not write to
 * it. Says what is wrong, or nothing.
 */
export function lostConnection(environment: (name: string) => string | undefined): string | undefined {
  const text = environment('PMI_FD');
  if (text === undefined || !/^\d{1,9}$/.test(text)) return undefined;
  try {
    if (fstatSync(Number(text)).isSocket()) return undefined;
  } catch {
    // Nothing is open under that number.
  }
  return (
    `the connection to the launcher (PMI_FD ${text}) is lost: mpiexec must start node itself, ` +
    'not something like npx that starts node in turn (for example mpiexec -n 4 node_modules/.bin/h5log, not mpiexec -n 4 npx h5log)'
  );
}
