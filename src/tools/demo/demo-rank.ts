import { File } from '../../api/file.ts';
import { H5LogError } from '../../base/errors.ts';
import type { Communicator } from '../../comm/communicator.ts';

/** What every rank is told. */
export interface DemoTask {
  readonly path: string;
  /** Only check a file that was written before. */
  readonly check: boolean;
  readonly size: number;
  readonly steps: number;
  /** 0: none. */
  readonly subfiles: number;
  readonly storage: 'node' | 'mpi-io';
  /** Where the first rank counts the steps that it has written and checked; shared between threads. */
  readonly count: Int32Array;
}

/** What is known at the end, the same on all ranks. */
export interface DemoReport {
  readonly kind: 'solo' | 'threads' | 'mpi';
  /** Those that ran this; a file that is only checked may have been written by more or fewer. */
  readonly ranks: number;
  /** Rows and columns of tiles. */
  readonly grid: readonly [number, number];
  readonly size: number;
  readonly steps: number;
  /** Absent if a file was only checked. */
  readonly subfiles?: number;
  /** Of all ranks together. */
  readonly requests: number;
  /** That were posted, halos included. */
  readonly bytes: number;
  /** That the file, and its subfiles, grew by. */
  readonly written: number;
  /** Of the slowest rank. */
  readonly postSeconds: number;
  readonly flushSeconds: number;
  readonly verifySeconds: number;
  readonly verified: number;
  readonly wrong: number;
  readonly firstWrong?: WrongElement;
}

export interface WrongElement {
  readonly step: number;
  readonly row: number;
  readonly column: number;
  readonly expected: number;
  readonly found: number;
}

const NAME = 'field';
/** Kept in the file, so that it can be checked by any number of ranks. */
const RANKS = 'ranks';

/** One rank of the demonstration: in a thread, a process of MPI, or alone. `onStep` is called after every step. */
export function demoRank(comm: Communicator, task: DemoTask, onStep: () => void = () => {}): DemoReport {
  const counted = (): void => {
    if (comm.rank === 0) Atomics.add(task.count, 0, 1);
    onStep();
  };
  const written = task.check ? nothingWritten : write(comm, task, counted);
  const { field, verified, wrong, verifySeconds, firstWrong } = verify(comm, task.path, counted);
  const [requests, bytes] = comm.allreduce(Float64Array.of(written.requests, written.bytes), 'sum');
  const [postSeconds, flushSeconds] = comm.allreduce(Float64Array.of(written.post, written.flush), 'max');
  return {
    kind: comm.kind,
    ranks: comm.size,
    grid: gridOf(field.ranks),
    size: field.size,
    steps: field.steps,
    ...(!task.check && { subfiles: Math.min(task.subfiles, comm.size) }),
    requests: requests as number,
    bytes: bytes as number,
    written: written.grown,
    postSeconds: postSeconds as number,
    flushSeconds: flushSeconds as number,
    verifySeconds,
    verified,
    wrong,
    ...(firstWrong && { firstWrong }),
  };
}

/** What `runThreads` starts. */
export default function demoThread(comm: Communicator, task: DemoTask): DemoReport {
  return demoRank(comm, task);
}

// ---------------------------------------------------------------- writing

interface Written {
  readonly requests: number;
  readonly bytes: number;
  readonly grown: number;
  readonly post: number;
  readonly flush: number;
}

const nothingWritten: Written = { requests: 0, bytes: 0, grown: 0, post: 0, flush: 0 };

/** In every step each rank posts its tile with a halo, row by row, and all flush together. */
function write(comm: Communicator, task: DemoTask, onStep: () => void): Written {
  const { path, size, steps, subfiles, storage } = task;
  const field: Field = { ranks: comm.size, size, steps };
  const file = File.createSync(path, { comm, storage, ...(subfiles > 0 && { subfiles }) });
  const dataset = file.createDataset(NAME, {
    dtype: 'float64',
    shape: [0, size, size],
    maxShape: [null, size, size],
    fill: 0,
  });
  dataset.attributes.set(RANKS, comm.size);
  const { rows, columns } = tileOf(field, comm.rank);
  const width = columns.end - columns.start;
  const tile = new Float64Array((rows.end - rows.start) * width);
  let [requests, grown, post, flush] = [0, 0, 0, 0];
  for (let step = 0; step < steps; step++) {
    dataset.resize([step + 1, size, size]);
    for (let row = rows.start, at = 0; row < rows.end; row++) {
      for (let column = columns.start; column < columns.end; column++, at++)
        tile[at] = elementValue(field, step, row, column, comm.rank);
    }
    const begun = performance.now();
    for (let row = rows.start, at = 0; row < rows.end; row++, at += width) {
      dataset.write(tile.subarray(at, at + width), { start: [step, row, columns.start], count: [1, 1, width] });
      requests++;
    }
    const posted = performance.now();
    grown += file.flushSync().bytes;
    flush += performance.now() - posted;
    post += posted - begun;
    onStep();
  }
  file.closeSync();
  return { requests, bytes: requests * width * 8, grown, post: post / 1000, flush: flush / 1000 };
}

// ---------------------------------------------------------------- checking

interface Verified {
  readonly field: Field;
  readonly verified: number;
  readonly wrong: number;
  readonly verifySeconds: number;
  readonly firstWrong: WrongElement | undefined;
}

/** Every element of every step; each rank reads rows that, with several ranks, others have written. */
function verify(comm: Communicator, path: string, onStep: () => void): Verified {
  const begun = performance.now();
  const file = File.openSync(path, { comm });
  const dataset = file.dataset(NAME, 'float64');
  const ranks = dataset.attributes.get(RANKS);
  const [steps, size] = dataset.shape as readonly [number, number, number];
  if (typeof ranks !== 'number' || !(ranks >= 1) || dataset.rank !== 3)
    throw new H5LogError('FORMAT', `${path} was not written by the demonstration`, {
      file: path,
      object: dataset.path,
    });
  const field: Field = { ranks, size, steps };
  const [down, across] = gridOf(ranks);
  const lastDown = lastWriters(down, size);
  const lastAcross = lastWriters(across, size);
  const { start, end } = bandOf((comm.rank + 1) % comm.size, comm.size, size);
  let wrong = 0;
  let first: WrongElement | undefined;
  for (let step = 0; step < steps; step++) {
    const found =
      start === end
        ? new Float64Array(0)
        : dataset.readSync({ start: [step, start, 0], count: [1, end - start, size] });
    for (let row = start, at = 0; row < end; row++) {
      for (let column = 0; column < size; column++, at++) {
        const writer = (lastDown[row] as number) * across + (lastAcross[column] as number);
        const expected = elementValue(field, step, row, column, writer);
        if (found[at] === expected) continue;
        wrong++;
        first ??= { step, row, column, expected, found: found[at] as number };
      }
    }
    onStep();
  }
  file.closeSync();
  const sums = comm.allreduce(Float64Array.of(steps * (end - start) * size, wrong), 'sum');
  const texts = comm.allgather(new TextEncoder().encode(first ? JSON.stringify(first) : ''));
  const told = texts.find((bytes) => bytes.length > 0);
  return {
    field,
    verified: sums[0] as number,
    wrong: sums[1] as number,
    verifySeconds: (performance.now() - begun) / 1000,
    firstWrong: told && (JSON.parse(new TextDecoder().decode(told)) as WrongElement),
  };
}

/** How a square field is cut into tiles, one a rank, and which value each element has in the end. */
export interface Field {
  readonly ranks: number;
  /** Elements a side. */
  readonly size: number;
  readonly steps: number;
}

/** A range of rows or columns, `end` excluded. */
interface Band {
  readonly start: number;
  readonly end: number;
}

/** The most nearly square grid of that many tiles: rows and columns of tiles. */
export function gridOf(ranks: number): readonly [number, number] {
  let rows = Math.floor(Math.sqrt(ranks));
  while (ranks % rows !== 0) rows--;
  return [rows, ranks / rows];
}

/** Part `part` of `parts` of so many elements; sizes differ by one at most. */
export function bandOf(part: number, parts: number, size: number): Band {
  return { start: Math.floor((part * size) / parts), end: Math.floor(((part + 1) * size) / parts) };
}

/** The same with one more element on each side, as far as there are some; a band without elements stays so. */
function withHalo({ start, end }: Band, size: number): Band {
  return start === end ? { start, end } : { start: Math.max(0, start - 1), end: Math.min(size, end + 1) };
}

/** Rows and columns of a rank's tile with its halo: what the rank writes in every step. */
export function tileOf({ ranks, size }: Field, rank: number): { readonly rows: Band; readonly columns: Band } {
  const [down, across] = gridOf(ranks);
  const rows = bandOf(Math.floor(rank / across), down, size);
  const columns = bandOf(rank % across, across, size);
  // A tile without elements has no halo in the other direction either.
  if (rows.start === rows.end || columns.start === columns.end) return { rows: nowhere, columns: nowhere };
  return { rows: withHalo(rows, size), columns: withHalo(columns, size) };
}

const nowhere: Band = { start: 0, end: 0 };

/**
 * What a rank writes to an element. It tells step, place and writer, so that an element which a wrong rank, a wrong step or
 * nobody wrote is noticed; a whole number that float64 holds exactly.
 */
export function elementValue({ ranks, size }: Field, step: number, row: number, column: number, rank: number): number {
  return ((step * size + row) * size + column) * ranks + rank + 1;
}

/** Of the bands whose halo reaches an element the last, for each element of a side: of ranks in one flush the highest wins. */
export function lastWriters(parts: number, size: number): Uint32Array {
  const last = new Uint32Array(size);
  for (let part = 0; part < parts; part++) {
    const { start, end } = withHalo(bandOf(part, parts, size), size);
    last.fill(part, start, end);
  }
  return last;
}
