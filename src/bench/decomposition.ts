import { File } from '../api/file.ts';
import { H5LogError } from '../base/errors.ts';
import { sizeOf } from '../space/shape.ts';

/** Which process writes which elements of an array: runs of elements in row-major order, process after process. */
export interface Decomposition {
  readonly name: string;
  readonly dims: readonly number[];
  /** Number of runs of each process. */
  readonly counts: Float64Array;
  readonly offsets: Float64Array;
  readonly lengths: Float64Array;
}

/** A decomposition from the runs of each process, as pairs of offset and length. */
export function decomposition(
  name: string,
  dims: number[],
  processes: readonly (readonly [number, number])[][],
): Decomposition {
  const runs = processes.flat();
  return {
    name,
    dims,
    counts: Float64Array.from(processes, ({ length }) => length),
    offsets: Float64Array.from(runs, ([offset]) => offset),
    lengths: Float64Array.from(runs, ([, length]) => length),
  };
}

/** Reads the decompositions D1, D2, ... of a map file of E3SM-IO, an ordinary HDF5 file. */
export async function readMap(path: string): Promise<Decomposition[]> {
  const file = await File.open(path, { mode: 'r', connector: 'native' });
  try {
    const many = file.attributes.get('-DIM_num_decomp');
    const processes = Number(file.attributes.get('-DIM_decomp_nprocs') ?? Number.NaN);
    if (many === undefined || !Number.isSafeInteger(processes)) throw bad(path, 'it has no decompositions');
    const found: Decomposition[] = [];
    for (let k = 1; k <= Number(many); k++) {
      const numbers = async (what: string): Promise<Float64Array> => {
        const dataset = file.dataset(`D${k}.${what}`);
        return Float64Array.from((await dataset.read()) as ArrayLike<number>, Number);
      };
      const dims = file.attributes.get(`D${k}.dims`);
      if (dims === undefined) throw bad(path, `D${k}.dims is missing`);
      const decomposition = {
        name: `D${k}`,
        dims: typeof dims === 'object' ? Array.from(dims as ArrayLike<number>, Number) : [Number(dims)],
        counts: await numbers('nreqs'),
        offsets: await numbers('offsets'),
        lengths: await numbers('lengths'),
      };
      checkDecomposition(decomposition, processes, path);
      found.push(decomposition);
    }
    return found;
  } finally {
    await file.close();
  }
}

function checkDecomposition(of: Decomposition, processes: number, path: string): void {
  const { name, dims, counts, offsets, lengths } = of;
  if (counts.length !== processes) throw bad(path, `${name} is of ${counts.length} processes, the map of ${processes}`);
  const runs = counts.reduce((sum, count) => sum + count, 0);
  if (runs !== offsets.length || runs !== lengths.length)
    throw bad(path, `${name} has ${runs} runs, but ${offsets.length} offsets and ${lengths.length} lengths`);
  const size = sizeOf(dims);
  for (let i = 0; i < runs; i++) {
    const [offset, length] = [offsets[i] as number, lengths[i] as number];
    if (!(offset >= 0 && length >= 0 && offset + length <= size))
      throw bad(path, `run ${i} of ${name} is from ${offset} to ${offset + length}, of ${size} elements`);
  }
}

function bad(path: string, message: string): H5LogError {
  return new H5LogError('FORMAT', `${path} is not a map of E3SM-IO: ${message}`, { file: path });
}

/** The runs of one rank in ascending order. Adjacent runs are merged; runs that span several rows are split. */
export interface Runs {
  readonly length: number;
  readonly offsets: Float64Array;
  readonly lengths: Float64Array;
  readonly elements: number;
}

/** The runs of a rank: process p of n belongs to rank floor(p * ranks / n). Without a rank: the runs of all processes. */
export function runsOf({ dims, counts, offsets, lengths }: Decomposition, rank?: number, ranks = 1): Runs {
  const processes = counts.length;
  const mine: number[] = [];
  for (let p = 0, at = 0; p < processes; p++) {
    const end = at + (counts[p] as number);
    const isMine = rank === undefined || Math.floor((p * ranks) / processes) === rank;
    for (; at < end; at++) if (isMine && (lengths[at] as number) > 0) mine.push(at);
  }
  mine.sort((a, b) => (offsets[a] as number) - (offsets[b] as number));
  const row = dims.at(-1) ?? 1;
  const from: number[] = [];
  const size: number[] = [];
  let elements = 0;
  const add = (start: number, length: number): void => {
    elements += length;
    for (let at = start, end = start + length; at < end; ) {
      const stop = Math.min(end, (Math.floor(at / row) + 1) * row);
      from.push(at);
      size.push(stop - at);
      at = stop;
    }
  };
  let [start, end] = [0, 0];
  for (const at of mine) {
    const offset = offsets[at] as number;
    const behind = offset + (lengths[at] as number);
    if (offset <= end && end > start) end = Math.max(end, behind);
    else {
      if (end > start) add(start, end - start);
      [start, end] = [offset, behind];
    }
  }
  if (end > start) add(start, end - start);
  return { length: from.length, offsets: Float64Array.from(from), lengths: Float64Array.from(size), elements };
}
