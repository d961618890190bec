import { rmSync } from 'node:fs';
import { type Communicator, File } from 'h5log';
import { plainWrites } from '../src/bench/workload.ts';

const MIB = 2 ** 20;

export interface ParallelTask {
  readonly folder: string;
  readonly rounds: number;
  /** MiB of each rank. */
  readonly size: number;
}

export interface ParallelTimes {
  /** Milliseconds of the slowest rank. */
  readonly flush: number[];
  readonly plain: number[];
  readonly emptyFlush: number;
  readonly barrier: number;
  readonly call: number;
}

/** Flushes of all ranks together beside plain writes of the same bytes by one of them, in turn. */
export default function measure(comm: Communicator, { folder, rounds, size }: ParallelTask): ParallelTimes {
  const values = new Float64Array((size * MIB) / 8).map((_, i) => i + comm.rank);
  const block = MIB / 8;
  const blocks = values.length / block;
  const slowest = (milliseconds: number): number => comm.allreduce(Float64Array.of(milliseconds), 'max')[0] as number;
  const [flush, plain]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    comm.barrier();
    if (comm.rank === 0) plain.push(1000 * plainWrites(`${folder}/plain`, values, comm.size));
    comm.barrier();
    const path = `${folder}/ranks.h5`;
    const file = File.createSync(path, { comm });
    const d = file.createDataset('d', { dtype: 'float64', shape: [comm.size * blocks, block] });
    for (let i = 0; i < blocks; i++) {
      const where = { start: [comm.rank * blocks + i, 0], count: [1, block] };
      d.write(values.subarray(i * block, (i + 1) * block), where, { copy: false });
    }
    comm.barrier();
    const begun = performance.now();
    file.flushSync();
    flush.push(slowest(performance.now() - begun));
    file.discard();
    comm.barrier();
    if (comm.rank === 0) rmSync(path);
  }
  const file = File.createSync(`${folder}/empty.h5`, { comm });
  const emptyFlush = slowest(each(2000, () => file.flushSync()));
  const call = slowest(each(500, (i) => file.attributes.set(`a${i % 10}`, i)));
  file.closeSync();
  const barrier = slowest(each(10_000, () => comm.barrier()));
  return { flush, plain, emptyFlush, barrier, call };
}

/** Milliseconds of one call, the median of ten lots. */
function each(count: number, work: (i: number) => void): number {
  const lots = Array.from({ length: 10 }, () => {
    const begun = performance.now();
    for (let i = 0; i < count / 10; i++) work(i);
    return (performance.now() - begun) / (count / 10);
  });
  return lots.sort((a, b) => a - b)[5] as number;
}
