// Commits row after row until it is killed: endless.ts FOLDER [OPTIONS AS JSON]. Tells its process ids and every commit.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { mpi } from 'h5log/mpi';
import { ROW, rowOf } from '../rows.ts';

const [folder, options] = process.argv.slice(2) as [string, string];
const { failing, ...rest } = JSON.parse(options ?? '{}');
const comm = mpi();
writeFileSync(join(folder, `pid.${comm.rank}`), String(process.pid));
const file = File.createSync(join(folder, 'rows.h5'), { ...rest, comm });
const width = comm.size * ROW;
const rows = file.createDataset('rows', { dtype: 'float64', shape: [0, width], maxShape: [null, width], fill: -1 });
for (let step = 0; ; step++) {
  rows.resize([step + 1, width]);
  rows.write(rowOf(step, comm.rank), { start: [step, comm.rank * ROW], count: [1, ROW] });
  if (failing !== undefined && step === failing && comm.rank === 1) throw new Error('trouble in the middle of a step');
  const { sequence } = file.flushSync();
  if (comm.rank === 0) appendFileSync(join(folder, 'reported'), `${sequence}\n`);
}
