// Four threads, two files: with subfiles not all ranks write into one file. On a parallel file system that can be faster;
// whoever reads does not notice. Main program and ranks are one module here.
//   node subfiles.js [file]
import { readdirSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { type Communicator, File } from 'h5log';
import { runThreads } from 'h5log/threads';

/** What each thread does. */
export default async function rank(comm: Communicator, path: string) {
  // Ranks 0 and 1 write into the first subfile, ranks 2 and 3 into the second. 'node' would be one for every machine.
  const file = await File.create(path, { comm, subfiles: 2 });
  const cells = file.createDataset('/cells', { dtype: 'int32', shape: [4 * comm.size] });
  // Neighbours overlap by one element. Within a flush the higher rank wins, whichever subfile it writes to.
  const start = Math.max(0, 4 * comm.rank - 1);
  const count = 4 * (comm.rank + 1) - start;
  cells.write(new Int32Array(count).fill(comm.rank), { start: [start], count: [count] });
  await file.close();
}

if (isMainThread) {
  const path = process.argv[2] ?? 'subfiles.h5';
  await runThreads(4, import.meta.url, path);

  // The main file has the structure, the folder beside it the data. Move or copy them together, under the same names.
  console.log(`beside the file: ${readdirSync(`${path}.subfiles`).sort().join(', ')}`);
  const file = await File.open(path);
  console.log((await file.dataset('/cells', 'int32').read()).join(' '));
  await file.close();
}
