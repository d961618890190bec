// Messages of more than 2 GiB, which MPI cannot send in one piece.
import { mpi } from 'h5log/mpi';

const comm = mpi();
const { rank, size } = comm;
const length = 2 ** 31 + 12_345;

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`rank ${rank}: ${what}`);
}

/** Every place differs from its neighbours and from the same place in the next piece. */
function fill(bytes: Uint8Array, seed: number): Uint8Array {
  for (let from = 0; from < bytes.length; from += 65_536) {
    bytes.fill((seed + from / 65_536) % 251, from, from + 65_536);
  }
  return bytes;
}

function check(bytes: Uint8Array | undefined, count: number, seed: number, what: string): void {
  expect(bytes?.length === count, `${what}: ${bytes?.length} bytes, not ${count}`);
  for (let at = 0; at < count; at += 9973) {
    const wanted = (seed + Math.floor(at / 65_536)) % 251;
    expect(bytes?.[at] === wanted, `${what}: byte ${at} is ${bytes?.[at]}, not ${wanted}`);
  }
}

{
  const sent = rank === 1 ? fill(new Uint8Array(length), 1) : null;
  check(comm.bcast(sent, 1), length, 1, 'bcast');
}
{
  const all = comm.gather(fill(new Uint8Array(rank === 1 ? length : 7), rank), 0);
  if (rank === 0) check(all?.[1], length, 1, 'gather');
}
{
  const all = comm.allgather(fill(new Uint8Array(rank === 0 ? 1.2 * 2 ** 30 : 5), rank));
  for (let r = 0; r < size; r++) check(all[r], r === 0 ? Math.floor(1.2 * 2 ** 30) : 5, r, 'allgather');
}
{
  const count = 2 ** 27 + 99;
  const values = new Float64Array(count);
  for (let at = 0; at < count; at += 1000) values[at] = at + rank;
  const most = comm.allreduce(values, 'max');
  for (let at = 0; at < count; at += 1000) expect(most[at] === at + size - 1, `allreduce: ${at} is ${most[at]}`);
}
if (rank === 0) process.stdout.write('large messages arrived\n');
