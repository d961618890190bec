// Runs the scripted program under mpiexec: scripted.ts PATH [OPTIONS AS JSON]
import { mpi } from 'h5log/mpi';
import scripted from '../scripted.ts';

const [path, options] = process.argv.slice(2);
const comm = mpi();
const sequence = scripted(comm, { path: path as string, ...JSON.parse(options ?? '{}') });
if (comm.rank === 0) console.log(`sequence ${sequence} on ${comm.size} ranks`);
