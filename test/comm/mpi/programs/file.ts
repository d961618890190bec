// Ranks write interleaved areas of one file through MPI-IO; what an error looks like goes to standard output, one line a rank.

import { writeSync } from 'node:fs';
import { isH5LogError } from 'h5log';
import { mpi } from 'h5log/mpi';
import { openMpiFile } from '../../../../src/comm/mpi/file.ts';

const [path = ''] = process.argv.slice(2);
const comm = mpi();
try {
  const file = openMpiFile(comm, path);
  const { rank, size } = comm;
  for (let round = 0; round < 3; round++) {
    const parts = Array.from({ length: 300 }, () => new Uint8Array(7).fill(1 + rank + 16 * round));
    parts.push(new Uint8Array(1_500_000).fill(101 + rank), new Uint8Array(0));
    file.writeAtAll(round === 1 && rank === 0 ? [] : parts, (round * size + rank) * 1_502_100);
  }
  file.sync();
  file.close();
  writeSync(1, `rank ${rank} ok\n`);
} catch (e) {
  if (!isH5LogError(e)) throw e;
  writeSync(1, `rank ${comm.rank}: ${e.code} ${e.rank} ${e.message}\n`);
}
