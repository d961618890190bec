import { type Communicator, File, select } from 'h5log';
import { peakMemory } from '../src/bench/workload.ts';

export interface Land {
  readonly path: string;
  readonly cells: number;
  readonly variables: number;
}

/** What a land model writes, on one rank: many variables at the same scattered points, nothing where there is sea. */
export default function land(comm: Communicator, { path, cells, variables }: Land): { pending: number; peak: number } {
  let state = 12345;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const mine: number[] = [];
  for (let cell = 0; cell < cells; cell++) {
    const [isLand, rank] = [random() < 0.6, Math.floor(random() * comm.size)];
    if (isLand && rank === comm.rank) mine.push(cell);
  }
  const where = select.blocks(
    mine.map((cell) => [0, cell]),
    mine.map(() => [1, 1]),
  );
  // One buffer for all posts: what the program itself holds is not to be counted.
  const data = new Float64Array(mine.length);
  const file = File.createSync(path, { comm });
  const datasets = Array.from({ length: variables }, (_, i) =>
    file.createDataset(`v${i}`, { dtype: 'float64', shape: [1, cells], maxShape: [null, cells] }),
  );
  datasets.forEach((dataset, i) => {
    data.fill(i);
    dataset.write(data, where);
  });
  const [pending] = comm.allreduce(Float64Array.of(file.pending.bytes), 'sum');
  file.closeSync();
  comm.barrier();
  return { pending: pending as number, peak: peakMemory() };
}
