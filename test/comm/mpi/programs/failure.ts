// One rank of an MPI job goes wrong, in the way that is named, while the others wait for it in a collective.

import { mpi } from 'h5log/mpi';
import type { TimeoutCommunicator } from '../../../../src/comm/communicator.ts';

const [how = ''] = process.argv.slice(2);
const comm = mpi() as TimeoutCommunicator;
comm.barrier();
const odd = comm.rank === 1;

const ways: Record<string, () => unknown> = {
  throw: () => {
    throw new Error('something of its own');
  },
  reject: () => Promise.reject(new Error('something of its own')),
  'exit 0': () => process.exit(0),
  'exit 3': () => {
    // More than a pipe holds: it must all be out when the job ends.
    process.stdout.write(`${'x'.repeat(500_000)}\nlast line\n`);
    process.exit(3);
  },
  exitCode: () => {
    process.exitCode = 4;
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  abort: () => comm.abort(5),
  late: () => comm.split(0),
};

if (how === 'computing') {
  // One rank goes on for a while after the others have ended: nothing wrong at all.
  if (odd) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
  if (odd) process.stdout.write('computed\n');
} else if (how === 'early') {
  // Rank 3 has done its part and ended while rank 0 still waits, but for rank 1: nothing wrong either.
  if (odd) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
  if (comm.gather(Uint8Array.of(comm.rank), 0)) process.stdout.write('gathered\n');
} else if (how === 'chain') {
  // Rank 0 ends without its part. Rank 1, which is told, has done its own and ended, and so has rank 2.
  if (comm.rank !== 0) comm.gather(Uint8Array.of(comm.rank), 3);
} else if (how === 'hook') {
  // Exit hooks of others still have a communicator, although they were added after mpi(), and may change the exit code.
  process.on('exit', () => {
    const sum = comm.allreduce(Float64Array.of(1), 'sum')[0];
    if (odd) process.stdout.write(`${sum} ranks in the hook\n`);
    if (odd) process.exitCode = 6;
  });
} else if (how === 'all') {
  // Every rank knows that something went wrong, says so, and ends, some sooner than others.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100 * comm.rank);
  process.stdout.write(`rank ${comm.rank} found something\n`);
  process.exitCode = 4;
} else if (how === 'timeout') {
  comm.timeout = 300;
  if (odd) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  else comm.allreduce(Float64Array.of(1), 'sum');
} else if (how === 'part') {
  // The rank that ends is missed in a part of the job, while the other part is busy with itself.
  const part = comm.split(comm.rank < 2 ? 0 : 1);
  if (odd) process.exit(0);
  part.barrier();
  if (part.size < 2 || comm.rank > 1) comm.barrier();
} else if (how === 'agreed') {
  // A wrong length is seen by every rank, and no one catches it.
  comm.allreduce(new Float64Array(odd ? 3 : 2), 'sum');
} else if (odd) {
  ways[how]?.();
} else {
  comm.barrier();
  process.stdout.write('never\n');
}
