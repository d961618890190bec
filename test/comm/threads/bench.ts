// Latency and throughput of the threads communicator: tsx --conditions=h5log-source test/comm/threads/bench.ts [ranks...]
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import type { Communicator } from '../../../src/comm/communicator.ts';
import { runThreads } from '../../../src/comm/threads/run.ts';

type Figures = Record<string, [best: number, median: number]>;

/** Microseconds of small collectives, milliseconds of large ones: the best batch, which other programs disturb least, and the median. */
export default function rank(comm: Communicator): Figures {
  const values = Float64Array.of(1, comm.rank, 3);
  const small = new Uint8Array(64);
  const large = new Uint8Array(100_000_000).fill(comm.rank);
  const count = 500;
  const micro = (call: () => unknown) => measure(comm, 200, count, call, 1000 / count);
  return {
    'barrier, us': micro(() => comm.barrier()),
    'allreduce of 24 bytes, us': micro(() => comm.allreduce(values, 'sum')),
    'exscan of 24 bytes, us': micro(() => comm.exscan(values)),
    'allgather of 64 bytes, us': micro(() => comm.allgather(small)),
    'bcast of 64 bytes, us': micro(() => comm.bcast(small, 0)),
    'gather of 100 MB a rank, ms': measure(comm, 5, 1, () => comm.gather(large, 0)),
    'bcast of 100 MB, ms': measure(comm, 5, 1, () => comm.bcast(large, 0)),
    'allreduce of 100 MB, ms': measure(comm, 5, 1, () => comm.allreduce(new Float64Array(large.buffer), 'sum')),
  };
}

function measure(comm: Communicator, batches: number, count: number, call: () => unknown, scale = 1): [number, number] {
  const times: number[] = [];
  for (let batch = 0; batch < batches; batch++) {
    comm.barrier();
    const begin = performance.now();
    for (let i = 0; i < count; i++) call();
    times.push((performance.now() - begin) * scale);
  }
  times.sort((a, b) => a - b);
  return [times[0] as number, times[batches >> 1] as number];
}

if (isMainThread && process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const sizes = process.argv.slice(2).map(Number);
  for (const ranks of sizes.length > 0 ? sizes : [2, 5]) {
    const [figures = {}] = await runThreads<Figures>(ranks, new URL(import.meta.url));
    const text = Object.entries(figures).map(
      ([name, times]) => `  ${name}: ${times.map(short).join(' best, ')} median`,
    );
    process.stdout.write(`${ranks} threads on ${availableParallelism()} cores\n${text.join('\n')}\n`);
  }
}

function short(value: number): string {
  return value.toFixed(value < 10 ? 2 : 0);
}
