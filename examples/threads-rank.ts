// What each thread of threads.ts runs.
import { type Communicator, File } from 'h5log';

export default async function rank(comm: Communicator, { path, columns }: { path: string; columns: number }) {
  // Opening, closing, flushing and all changes of the structure are collective: every rank makes the same calls, in the same order.
  const file = await File.create(path, { comm });
  const rows = file.createDataset('/rows', { dtype: 'float64', shape: [comm.size, columns] });

  // Writing is not: each rank posts what it has, as often as it likes.
  let sum = 0;
  for (let column = 0; column < columns; column += 10) {
    const values = new Float64Array(10).fill(comm.rank + column);
    rows.write(values, { start: [comm.rank, column], count: [1, 10] });
    sum += values.reduce((total, value) => total + value, 0);
  }

  // One flush for all: the data of every rank becomes part of the file, or of none.
  await file.flush();
  await file.close();
  return sum;
}
