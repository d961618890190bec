import { type Communicator, File } from 'h5log';

/** What one rank does in a case that a random program found; gives what it read. */
const cases: Record<string, (comm: Communicator, path: string) => number[][]> = {
  /** All ranks make a dataset smaller and larger again: what was cut off is gone for all of them, before the flush as well. */
  'shrink and grow': (comm, path) => {
    const file = File.createSync(path, { comm });
    const d = file.createDataset('d', { dtype: 'int32', shape: [4], fill: -1 });
    if (comm.rank === 0) d.write([1, 2, 3, 4]);
    file.flushSync();
    d.resize([1]);
    d.resize([4]);
    const pending = [...d.readSync()];
    if (comm.rank === 1) d.write([9], { start: [2], count: [1] });
    const own = [...d.readSync()];
    file.flushSync();
    const flushed = [...d.readSync()];
    file.closeSync();
    return [pending, own, flushed];
  },

  /** An index of blocks in two subfiles is put in order and then grows. */
  'two subfiles': (comm, path) => {
    const file = File.createSync(path, { comm, subfiles: 2 });
    const d = file.createDataset('d', { dtype: 'int32', shape: [8], fill: -1 });
    const seen: number[][] = [];
    for (let turn = 0; turn < 4; turn++) {
      d.write([10 * turn + comm.rank], { start: [2 * turn + comm.rank], count: [1] });
      file.flushSync();
      // The second time, later blocks of the first subfile come behind earlier ones of the second.
      if (turn > 0) seen.push([...d.readSync()]);
    }
    file.closeSync();
    return seen;
  },
};

export default function rank(comm: Communicator, { name, path }: { name: string; path: string }): number[][] {
  return (cases[name] as (comm: Communicator, path: string) => number[][])(comm, path);
}
