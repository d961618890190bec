import { type Communicator, type CreateOptions, File } from 'h5log';

/** Many small blocks, so that the table is large and each rank writes its own section of it. */
export default function manyBlocks(comm: Communicator, options: CreateOptions & { path: string }): number {
  const { path, ...rest } = options;
  const table = { merge: false, encode: false, share: false, compress: false };
  const file = File.createSync(path, { ...rest, comm, table });
  const d = file.createDataset('d', { dtype: 'int16', shape: [100_000, 4] });
  for (let step = 0; step < 2; step++) {
    for (let i = comm.rank; i < 100_000; i += 3 * comm.size)
      d.write(Int16Array.of(i, step), { start: [i, step], count: [1, 2] });
    file.flushSync();
  }
  file.closeSync();
  return file.sequence;
}
