// Replays a file on the ranks of an MPI job: replay.ts IN OUT MEMORY
import { mpi } from 'h5log/mpi';
import { replay } from 'h5log/tools';

const [input, output, memory] = process.argv.slice(2) as [string, string, string];
await replay(input, output, { comm: mpi(), memory: Number(memory) });
