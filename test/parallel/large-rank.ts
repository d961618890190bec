import { readdirSync } from 'node:fs';
import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';
import { outcomeOf } from './outcome.ts';

export interface Large {
  readonly path: string;
  readonly subfiles: number;
}

const BLOCKS = 40_000;

/** Tables so large that each rank writes its own section, small ones before and after, and data of several pieces a rank. */
function tables(comm: Communicator, { path, subfiles }: Large): string[] {
  const wrong: string[] = [];
  const file = File.createSync(path, { comm, subfiles, table: { compress: false } });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [comm.size, 2 * BLOCKS] });
  const whole = file.createDataset('/whole', { dtype: 'float64', shape: [comm.size, 700_000] });
  const model = new Int32Array(comm.size * 2 * BLOCKS);
  const starts = (rank: number, offset: number): Float64Array => {
    const list = new Float64Array(2 * BLOCKS);
    for (let i = 0; i < BLOCKS; i++) {
      list[2 * i] = rank;
      list[2 * i + 1] = 2 * i + offset;
    }
    return list;
  };
  const check = (when: string): void => {
    const seen = t.readSync() as Int32Array;
    const at = seen.findIndex((value, i) => value !== model[i]);
    if (at >= 0) wrong.push(`${when}: element ${at} is ${seen[at]}, not ${model[at]}`);
  };
  for (let k = 1; k <= 4; k++) {
    // In flush 3 only the last rank has many; in the others all have.
    for (let rank = 0; rank < comm.size; rank++) {
      if (k === 3 && rank < comm.size - 1) continue;
      for (let i = 0; i < BLOCKS; i++) model[rank * 2 * BLOCKS + 2 * i + (k % 2)] = k * 10 + rank;
      if (rank === comm.rank) t.writeMany(new Int32Array(BLOCKS).fill(k * 10 + rank), starts(rank, k % 2), [1, 1]);
    }
    file.flushSync();
    check(`flush ${k}`);
    model[k] = 900 + k;
    if (comm.rank === 0) t.write(Int32Array.of(900 + k), { start: [0, k], count: [1, 1] });
    file.flushSync();
    check(`small flush ${k}`);
  }
  whole.write(new Float64Array(700_000).fill(comm.rank + 0.5), { start: [comm.rank, 0], count: [1, 700_000] });
  file.closeSync();
  const again = File.openSync(path, { comm });
  const all = again.dataset('/whole').readSync() as Float64Array;
  const bad = all.findIndex((value, i) => value !== Math.floor(i / 700_000) + 0.5);
  if (bad >= 0) wrong.push(`whole: element ${bad} is ${all[bad]}`);
  again.closeSync();
  return wrong;
}

/** The same communicator, with a count of those made from it that were not closed. */
function counted(comm: Communicator, count: { open: number }): Communicator {
  return {
    rank: comm.rank,
    size: comm.size,
    kind: comm.kind,
    barrier: () => comm.barrier(),
    bcast: (bytes, root) => comm.bcast(bytes, root),
    allreduce: (values, op) => comm.allreduce(values, op),
    exscan: (values) => comm.exscan(values),
    gather: (bytes, root) => comm.gather(bytes, root),
    allgather: (bytes) => comm.allgather(bytes),
    abort: (code) => comm.abort(code),
    split: (color) => {
      count.open++;
      return counted(comm.split(color), count);
    },
    close: () => {
      count.open--;
      comm.close();
    },
  };
}

/** Files are made and opened so often that whatever is not given back runs out. */
function often(world: Communicator, { path, subfiles }: Large): { files: number; communicators: number } {
  const made = { open: 0 };
  const comm = counted(world, made);
  const count = (): number => readdirSync('/proc/self/fd').length;
  let before = 0;
  const rounds = 300;
  for (let k = 0; k < rounds; k++) {
    const mode = k % 3 === 1 ? 'r' : 'r+';
    const file = k % 3 === 0 ? File.createSync(path, { comm, subfiles }) : File.openSync(path, { comm, mode });
    if (k % 3 === 0) file.createDataset('/t', { dtype: 'int8', shape: [comm.size] });
    if (file.mode === 'r+') file.dataset('/t').write(Int8Array.of(1), { start: [comm.rank], count: [1] });
    else file.dataset('/t').readSync();
    if (k % 30 === 2) file.discard();
    else file.closeSync();
    outcomeOf(() => File.openSync(`${path}.none`, { comm }));
    outcomeOf(() => File.createSync(`${path}/none`, { comm, subfiles }));
    comm.barrier();
    if (k === 10) before = count();
    comm.barrier();
  }
  return { files: count() - before, communicators: made.open };
}

export default (comm: Communicator, data: Large & { work: string }): unknown =>
  data.work === 'tables' ? tables(comm, data) : often(comm, data);
