import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';

/** Appends twice to a file of the original: one element of /d1 a rank, and a dataset that it did not have. */
export default function append(
  world: Communicator,
  { path, ranks, round }: { path: string; ranks: number; round: number },
): number[] | null {
  const comm = world.split(world.rank < ranks ? 0 : 1);
  if (world.rank >= ranks) return null;
  const file = File.openSync(path, { comm, mode: 'r+' });
  const d1 = file.dataset('/d1');
  d1.write([7000 + round * 10 + comm.rank], { start: [comm.rank], count: [1] });
  // An element that all of them write: the highest rank wins.
  d1.write([8000 + round * 10 + comm.rank], { start: [9], count: [1] });
  file.flushSync();
  const made = file.createDataset(`/new${round}`, { dtype: 'int32', shape: [ranks] });
  if (comm.rank > 0 || ranks === 1) made.write(Int32Array.of(round), { start: [comm.rank], count: [1] });
  file.flushSync();
  const seen = [...(d1.readSync() as Int32Array)];
  file.closeSync();
  return seen;
}
