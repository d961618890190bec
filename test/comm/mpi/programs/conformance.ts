// The conformance suite on every rank of an MPI job.
import { mpi } from 'h5log/mpi';
import { conform } from '../../conformance.ts';

const comm = mpi();
const checks = conform(comm);
if (mpi() !== comm) throw new Error('mpi() twice gives two communicators');
const ranks = comm.allreduce(Float64Array.of(1), 'sum')[0];
if (comm.rank === 0) process.stdout.write(`${ranks} ranks passed ${checks.length} checks\n`);
