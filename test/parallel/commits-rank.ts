import type { Communicator } from '../../src/comm/communicator.ts';
import { type Commit, File } from '../../src/index.ts';

/** The commits that flushes returned, and those that `commits()` lists; then those of a second session that changes nothing. */
export interface Seen {
  readonly flushed: readonly Commit[];
  readonly listed: readonly Commit[];
  readonly idle: Commit;
  readonly again: readonly Commit[];
}

export default (comm: Communicator, { path, subfiles }: { path: string; subfiles: number }): Seen => {
  const file = File.createSync(path, { comm, subfiles, publish: 'never' });
  const flushed = [file.flushSync()];
  const t = file.createDataset('t', { dtype: 'float64', shape: [4, 1000] });
  for (let k = 0; k < 40; k++) {
    // Some flushes have data of one rank only, some of none.
    if (k % 3 !== 0) {
      if (k % 2 === 0 || comm.rank === 0)
        t.write(new Float64Array(1000).fill(k), { start: [comm.rank, 0], count: [1, 1000] });
    } else t.attributes.set('k', k);
    flushed.push(file.flushSync());
  }
  const listed = file.commits();
  file.closeSync();
  const second = File.openSync(path, { comm, mode: 'r+' });
  const idle = second.flushSync();
  const again = second.commits();
  second.closeSync();
  return { flushed, listed, idle, again };
};
