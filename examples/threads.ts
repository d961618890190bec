// Several threads write one file together. This is the main program; threads-rank.ts is what each thread runs.
//   node threads.js [file] [threads]
import { File } from 'h5log';
import { runThreads } from 'h5log/threads';

const path = process.argv[2] ?? 'threads.h5';
const ranks = Number(process.argv[3] ?? 4);

// The module's default function is called once in every thread, with a communicator and this object.
// It gives back what the functions returned, in the order of ranks. Once compiled, the module is threads-rank.js.
const module = new URL('./threads-rank.ts', import.meta.url);
const sums = await runThreads<number>(ranks, module, { path, columns: 1000 });
console.log(`${ranks} threads wrote rows with the sums ${sums.join(', ')}`);

// The file is complete; from here on it is an ordinary file of one process.
const file = await File.open(path);
const rows = file.dataset('/rows', 'float64');
const data = await rows.read();
for (let rank = 0; rank < ranks; rank++) {
  const row = data.subarray(rank * 1000, (rank + 1) * 1000);
  const sum = row.reduce((total, value) => total + value, 0);
  if (sum !== sums[rank]) throw new Error(`row ${rank} has the sum ${sum}`);
}
console.log(`read back ${data.length} elements from ${file.commits().length} commits`);
await file.close();
