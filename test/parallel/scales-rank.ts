import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';

/** Scales of several ranks: rank 0 alone finishes them when the file is closed. */
export default (comm: Communicator, { path, checkCalls }: { path: string; checkCalls: boolean }): number => {
  const file = File.createSync(path, { comm, checkCalls });
  const x = file.createDataset('x', { dtype: 'float64', shape: [0], maxShape: [null] });
  x.attributes.set('_Netcdf4Dimid', Int32Array.of(0));
  const data = file.createDataset('data', { dtype: 'int32', shape: [0], maxShape: [null] });
  data.attachScale(0, x);
  file.flushSync();
  data.resize([2 * comm.size]);
  data.write(Int32Array.of(comm.rank, comm.rank), { start: [2 * comm.rank], count: [2] });
  file.closeSync();
  return file.sequence;
};
