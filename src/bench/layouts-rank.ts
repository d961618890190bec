import type { Dataset } from '../api/dataset.ts';
import { File } from '../api/file.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { CreateOptions } from '../connector/options.ts';

/** Rows of three numbers, each posted by itself, in an order that leaves no two together. */
export interface LayoutTask {
  readonly path: string;
  readonly create: Pick<CreateOptions, 'logs' | 'table'>;
  readonly datasets: number;
  /** Rows of each dataset, by all ranks together, and in how many flushes they are written. */
  readonly rows: number;
  readonly flushes: number;
}

/** Seconds of the slowest rank. */
export interface LayoutTimes {
  readonly post: number;
  readonly flush: number;
}

const COLUMNS = 3;
/** Prime to most numbers of rows: neighbours in time are not neighbours in the dataset. */
const STRIDE = 7919;

/** Where row number `i` goes, of twice as many: no two rows touch. */
export const rowAt = (i: number, rows: number): number => 2 * ((i * STRIDE) % rows);

/** Datasets are in groups of fifty. */
export const pathOf = (dataset: number): string => `g${Math.floor(dataset / 50)}/d${dataset}`;

/** One rank of the workload: every rank posts its share of the rows. */
export default function layoutsRank(comm: Communicator, task: LayoutTask): LayoutTimes {
  const { path, create, datasets, rows, flushes } = task;
  const file = File.createSync(path, { ...create, ...(comm.size > 1 && { comm }), publish: 'never' });
  const all: Dataset<'float64'>[] = [];
  for (let d = 0; d < datasets; d++)
    all.push(file.createDataset(pathOf(d), { dtype: 'float64', shape: [2 * rows, COLUMNS] }));
  file.flushSync();
  const row = new Float64Array(COLUMNS);
  const where = { start: [0, 0], count: [1, COLUMNS] };
  let [post, flush] = [0, 0];
  for (let f = 0; f < flushes; f++) {
    const begun = performance.now();
    for (let i = Math.floor((f * rows) / flushes); i < Math.floor(((f + 1) * rows) / flushes); i++) {
      if (i % comm.size !== comm.rank) continue;
      where.start[0] = rowAt(i, rows);
      for (const dataset of all) dataset.write(row.fill(i), where);
    }
    const posted = performance.now();
    file.flushSync();
    post += posted - begun;
    flush += performance.now() - posted;
  }
  file.closeSync();
  const slowest = comm.allreduce(Float64Array.of(post, flush), 'max');
  return { post: (slowest[0] as number) / 1000, flush: (slowest[1] as number) / 1000 };
}
