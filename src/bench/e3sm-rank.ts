import { nodeStorage } from '#platform';
import { H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
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
  const writers = files.map((file) => new FileWriter(comm, file, selections));
  const reader = task.read ? new FileReader(comm, map) : null;
  const prepareSeconds = slowest(comm, [(performance.now() - begun) / 1000])[0] as number;
  const checked: Checked = { verified: 0, wrong: 0, first: undefined };
  const options = { copy: task.copy, table: task.compress === undefined ? {} : { compress: task.compress } };
  const times: E3smTimes[] = [];
  let tables: number[] = [];
  for (let k = 0; k < repeat; k++) {
    if (comm.rank === 0) for (const path of paths) makeEmpty(path);
    comm.barrier();
    const phases: Phases = { open: 0, define: 0, post: 0, flush: 0, close: 0 };
    const start = performance.now();
    tables = writers.map((writer, i) => writer.write(paths[i] as string, phases, options));
    const total = performance.now() - start;
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
    const all = slowest(comm, [open, define, post, flush, close, total, read]).map((one) => one / 1000);
    times.push(timesOf(all, reader !== null));
  }
  const written = files.map((file, i) => {
    const { requests, bytes } = writers[i] as FileWriter;
    const sums = comm.allreduce(Float64Array.of(requests, bytes), 'sum');
    const tableBytes = slowest(comm, [tables[i] as number])[0] as number;
    const counts = { requests: sums[0] as number, bytes: sums[1] as number, tableBytes };
    const path = paths[i] as string;
    return { path, variables: file.variables.length, records: file.records, ...counts, fileBytes: fileSize(path) };
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
  const [open, define, post, flush, close, total, read] = all as unknown as readonly [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return { open, define, post, flush, close, total, ...(isRead && { read }) };
}

function slowest(comm: Communicator, values: readonly number[]): number[] {
  return [...comm.allreduce(Float64Array.from(values), 'max')];
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
