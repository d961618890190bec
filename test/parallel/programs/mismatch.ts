// Runs the programs of ranks that differ under mpiexec: mismatch.ts WORK AS JSON. Rank 0 prints what all ranks returned.
import { mpi } from 'h5log/mpi';
import mismatch, { type Work } from '../mismatch-rank.ts';

const comm = mpi();
const result = mismatch(comm, JSON.parse(process.argv[2] as string) as Work);
const all = comm.gather(new TextEncoder().encode(JSON.stringify(result)), 0);
if (all) console.log(`[${all.map((bytes) => new TextDecoder().decode(bytes)).join()}]`);
