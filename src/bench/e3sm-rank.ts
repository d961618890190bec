import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { nodeStorage } from '#platform';
import { H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { CreateOptions } from '../connector/options.ts';
import type { Decomposition } from './decomposition.ts';
import { type Checked, FileReader, FileWriter, type Phases, RankSelections } from './e3sm-files.ts';
import type { PlannedFile, WrongValue } from './e3sm-plan.ts';

/** The task of all ranks. */
export interface E3smTask {
  readonly files: readonly PlannedFile[];
  readonly paths: readonly string[];
  readonly map: readonly Decomposition[];
  readonly repeat: number;
  readonly read: boolean;
  readonly copy: boolean;
  readonly compress: boolean | undefined;
  /** Define the dimensions and coordinates of netCDF as well. */
  readonly netcdf: boolean;
  readonly create: Pick<CreateOptions, 'logs' | 'table'>;
}

/** Seconds to write all files once: of each phase, the time of the slowest rank. */
export interface E3smTimes {
  readonly open: number;
  readonly define: number;
  readonly post: number;
  readonly flush: number;
  readonly close: number;
  /** From opening the first file to closing the last. */
  readonly total: number;
  /** Plain writes of as many bytes by one rank to a new file, right after that. */
  readonly plain: number;
  /** Reading everything back and comparing it, if that was requested. */
  readonly read?: number;
}

interface E3smFile {
  readonly path: string;
  readonly variables: number;
  readonly records: number;
  /** Contiguous runs of elements that all ranks post. */
  readonly requests: number;
  /** Size of the data. */
  readonly bytes: number;
  readonly tableBytes: number;
  readonly fileBytes: number;
  /** Collective calls of a rank in each phase. */
  readonly collectives: Phases;
}

/** The result of the workload; the same on all ranks. */
export interface E3smReport {
  readonly kind: 'solo' | 'threads' | 'mpi';
  readonly ranks: number;
  readonly files: readonly E3smFile[];
  /** Preparing data and selections, before the first file is opened. */
  readonly prepareSeconds: number;
  /** Times of each repetition; the first one is cold. */
  readonly times: readonly E3smTimes[];
  /** Elements read back in all repetitions. */
  readonly verified: number;
  readonly wrong: number;
  readonly firstWrong?: WrongValue;
}

/** The module that `runThreads` runs: one rank of the workload. */
export default function e3smRank(comm: Communicator, task: E3smTask): E3smReport {
  const { files, paths, map, repeat } = task;
  const begun = performance.now();
  const selections = new RankSelections(map, comm.rank, comm.size);
  const writers = files.map((file) => new FileWriter(new CountedCommunicator(comm), file, selections));
  const sizes = comm.allreduce(
    Float64Array.from(writers, ({ bytes }) => bytes),
    'sum',
  );
  const reader = task.read ? new FileReader(comm, map) : null;
  const prepareSeconds = slowest(comm, [(performance.now() - begun) / 1000])[0] as number;
  const checked: Checked = { verified: 0, wrong: 0, first: undefined };
  const { copy, netcdf } = task;
  const table = task.compress === undefined ? {} : { compress: task.compress };
  const options = { copy, netcdf, create: { table, ...task.create } };
  const times: E3smTimes[] = [];
  let tables: number[] = [];
  for (let k = 0; k < repeat; k++) {
    if (comm.rank === 0) for (const path of paths) makeEmpty(path);
    comm.barrier();
    const phases: Phases = { open: 0, define: 0, post: 0, flush: 0, close: 0 };
    const start = performance.now();
    tables = writers.map((writer, i) => writer.write(paths[i] as string, phases, options));
    const total = performance.now() - start;
    comm.barrier();
    const plain = comm.rank === 0 ? writePlain(paths, sizes) : 0;
    let read = 0;
    if (reader) {
      comm.barrier();
      const before = performance.now();
      files.forEach((file, i) => {
        reader.read(paths[i] as string, file, checked);
      });
      read = performance.now() - before;
    }
    const { open, define, post, flush, close } = phases;
    const all = slowest(comm, [open, define, post, flush, close, total, plain, read]).map((one) => one / 1000);
    times.push(timesOf(all, reader !== null));
  }
  const written = files.map((file, i) => {
    const { requests, bytes, collectives } = writers[i] as FileWriter;
    const sums = comm.allreduce(Float64Array.of(requests, bytes), 'sum');
    const tableBytes = slowest(comm, [tables[i] as number])[0] as number;
    const counts = { requests: sums[0] as number, bytes: sums[1] as number, tableBytes };
    const path = paths[i] as string;
    const { variables, records } = file;
    return { path, variables: variables.length, records, ...counts, fileBytes: fileSize(path), collectives };
  });
  const [verified, wrong] = comm.allreduce(Float64Array.of(checked.verified, checked.wrong), 'sum');
  const told = comm
    .allgather(new TextEncoder().encode(checked.first ? JSON.stringify(checked.first) : ''))
    .find((bytes) => bytes.length > 0);
  return {
    kind: comm.kind,
    ranks: comm.size,
    files: written,
    prepareSeconds,
    times,
    verified: verified as number,
    wrong: wrong as number,
    ...(told && { firstWrong: JSON.parse(new TextDecoder().decode(told)) as WrongValue }),
  };
}

function timesOf(all: readonly number[], isRead: boolean): E3smTimes {
  const [open, define, post, flush, close, total, plain, read] = all as unknown as readonly [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return { open, define, post, flush, close, total, plain, ...(isRead && { read }) };
}

function slowest(comm: Communicator, values: readonly number[]): number[] {
  return [...comm.allreduce(Float64Array.from(values), 'max')];
}

/** Bytes of a plain write. */
const PIECE = new Uint8Array(8 * 2 ** 20).fill(1);

/** Writes as many bytes as the files hold, one plain file each; returns milliseconds. The files are removed. */
function writePlain(paths: readonly string[], sizes: Float64Array): number {
  let time = 0;
  paths.forEach((path, i) => {
    const name = `${path}.plain`;
    const start = performance.now();
    const file = openSync(name, 'w');
    for (let left = sizes[i] as number; left > 0; ) left -= writeSync(file, PIECE, 0, Math.min(PIECE.length, left));
    closeSync(file);
    time += performance.now() - start;
    rmSync(name);
  });
  return time;
}

/** Empties a file of the previous repetition: freeing its blocks must not count as writing the next one. */
function makeEmpty(path: string): void {
  try {
    const storage = nodeStorage(path, 'r+').blocking;
    storage.truncate(0);
    storage.close();
  } catch (error) {
    // It does not exist yet. Any other problem shows when the file is created.
    if (!(error instanceof H5LogError)) throw error;
  }
}

function fileSize(path: string): number {
  const storage = nodeStorage(path, 'r').blocking;
  const size = storage.size();
  storage.close();
  return size;
}

/** A communicator that counts its collectives, and those of the communicators that are split from it. */
class CountedCommunicator implements Communicator {
  readonly #comm: Communicator;
  readonly #counter: { count: number };

  constructor(comm: Communicator, counter = { count: 0 }) {
    this.#comm = comm;
    this.#counter = counter;
  }

  /** Collectives until now. */
  get count(): number {
    return this.#counter.count;
  }

  get rank(): number {
    return this.#comm.rank;
  }

  get size(): number {
    return this.#comm.size;
  }

  get kind(): Communicator['kind'] {
    return this.#comm.kind;
  }

  barrier(): void {
    this.#counter.count++;
    this.#comm.barrier();
  }

  bcast(bytes: Uint8Array | null, root: number): Uint8Array {
    this.#counter.count++;
    return this.#comm.bcast(bytes, root);
  }

  allreduce(values: Float64Array, op: 'sum' | 'min' | 'max'): Float64Array {
    this.#counter.count++;
    return this.#comm.allreduce(values, op);
  }

  exscan(values: Float64Array): Float64Array {
    this.#counter.count++;
    return this.#comm.exscan(values);
  }

  gather(bytes: Uint8Array, root: number): Uint8Array[] | null {
    this.#counter.count++;
    return this.#comm.gather(bytes, root);
  }

  allgather(bytes: Uint8Array): Uint8Array[] {
    this.#counter.count++;
    return this.#comm.allgather(bytes);
  }

  split(color: number): Communicator {
    this.#counter.count++;
    return new CountedCommunicator(this.#comm.split(color), this.#counter);
  }

  abort(code: number): never {
    return this.#comm.abort(code);
  }

  close(): void {
    this.#comm.close();
  }
}
