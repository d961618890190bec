// Several processes of MPI write one file together. It needs an MPI library and: npm install koffi
//   mpiexec -n 2 node mpi.js [file]
import { File } from 'h5log';
import { mpi } from 'h5log/mpi';

const path = process.argv[2] ?? 'mpi.h5';
const comm = mpi();

// Every rank opens the file, with the same options.
const file = await File.create(path, { comm });
const field = file.createDataset('/field', { dtype: 'int32', shape: [0, comm.size], maxShape: [null, comm.size] });

for (let step = 0; step < 3; step++) {
  // Changes of the structure are made by all ranks alike ...
  field.resize([step + 1, comm.size]);
  // ... data by each rank for itself; a rank may also have nothing to write.
  field.write(Int32Array.of(100 * step + comm.rank), { start: [step, comm.rank], count: [1, 1] });
  const { sequence, bytes } = await file.flush();
  if (comm.rank === 0) console.log(`commit ${sequence}: ${bytes} bytes of ${comm.size} ranks`);
}

// After a flush every rank reads what all have written.
const last = await field.read({ start: [2, 0] });
const [ranks] = comm.allreduce(Float64Array.of(last.every((value, rank) => value === 200 + rank) ? 1 : 0), 'sum');
if (comm.rank === 0) console.log(`${ranks} of ${comm.size} ranks read ${last.join(', ')}`);
await file.close();
