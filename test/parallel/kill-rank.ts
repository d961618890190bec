import { writeSync } from 'node:fs';
import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';

/** Flushes again and again, until the process is killed; rank 0 says which flushes have returned. */
export default function flushForever(comm: Communicator, { path, subfiles }: { path: string; subfiles: number }): void {
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [0, comm.size, 16], maxShape: [null, comm.size, 16] });
  for (let k = 1; ; k++) {
    t.resize([k, comm.size, 16]);
    t.write(new Int32Array(16).fill(k), { start: [k - 1, comm.rank, 0], count: [1, 1, 16] });
    file.attributes.set('k', k);
    file.flushSync();
    if (comm.rank === 0) writeSync(1, `${k}\n`);
  }
}
