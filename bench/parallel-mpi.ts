// The measurements of parallel-rank.ts on the ranks of an MPI job: parallel-mpi.ts TASK-AS-JSON
import { mpi } from 'h5log/mpi';
import measure from './parallel-rank.ts';

const comm = mpi();
const times = measure(comm, JSON.parse(process.argv[2] as string));
if (comm.rank === 0) console.log(JSON.stringify(times));
