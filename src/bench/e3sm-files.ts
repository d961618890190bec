import type { AttributeValue } from '../api/attribute-values.ts';
import type { Dataset } from '../api/dataset.ts';
import { File } from '../api/file.ts';
import { sessionOf } from '../api/handle.ts';
import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import type { CreateOptions } from '../connector/options.ts';
import type { NumberType, TypedArray } from '../dtype/model.ts';
import { netcdf } from '../netcdf/group.ts';
import { type Selection, select } from '../space/select.ts';
import { sizeOf } from '../space/shape.ts';
import { type Decomposition, type Runs, runsOf } from './decomposition.ts';
import {
  arrayFor,
  compare,
  dtypeOf,
  gapsIn,
  type NumberArray,
  type PlannedFile,
  type PlannedVariable,
  valueAt,
  valuesOf,
  type WrongValue,
} from './e3sm-plan.ts';

/** One write of one rank, prepared before the clock starts. */
interface Post {
  readonly variable: number;
  readonly record: number;
  readonly data: NumberArray | string[];
}

type Described = Readonly<Record<string, AttributeValue>>;

/** Milliseconds of each phase of writing. */
export interface Phases {
  open: number;
  define: number;
  post: number;
  flush: number;
  close: number;
}

interface WriteOptions {
  readonly create: Pick<CreateOptions, 'logs' | 'table'>;
  /** Whether posts copy the data; otherwise the buffers are lent until the flush. */
  readonly copy: boolean;
  /** Whether dimensions and coordinates of netCDF are defined as well. */
  readonly netcdf: boolean;
}

/** A communicator that counts its collectives. */
type Counted = Communicator & { readonly count: number };

/** Writes the part of a file that belongs to one rank. */
export class FileWriter {
  readonly #comm: Counted;
  readonly #file: PlannedFile;
  readonly #posts: Post[] = [];
  readonly #selections: RankSelections;
  readonly #attributes: readonly Described[];
  /** Contiguous runs of elements that this rank posts. */
  requests = 0;
  bytes = 0;
  /** Collectives of each phase, of the last time. */
  readonly collectives: Phases = { open: 0, define: 0, post: 0, flush: 0, close: 0 };

  constructor(comm: Counted, file: PlannedFile, selections: RankSelections) {
    this.#comm = comm;
    this.#file = file;
    this.#selections = selections;
    this.#attributes = file.variables.map(({ attributes }) =>
      Object.fromEntries(attributes.map(({ name, value }) => [name, value])),
    );
    for (const [i, variable] of file.variables.entries()) this.#prepare(variable, i);
  }

  #prepare(variable: PlannedVariable, number: number): void {
    const { isRecord, shape, decomposition, type } = variable;
    const whole = sizeOf(isRecord ? shape.slice(1) : shape);
    const runs = decomposition < 0 ? wholeRun(this.#comm.rank === 0 ? whole : 0) : this.#selections.runs(decomposition);
    if (runs.elements === 0) return;
    for (let record = 0; record < (isRecord ? (shape[0] as number) : 1); record++) {
      const data =
        type === null
          ? textsOf(variable, record, runs)
          : valuesOf(variable as PlannedVariable & { type: NumberType }, record, runs);
      this.#posts.push({ variable: number, record, data });
      this.requests += runs.length;
      this.bytes += 'byteLength' in data ? data.byteLength : 0;
    }
  }

  /** Creates the file, writes all data and closes it. Adds to `times`; returns the size of the metadata tables. */
  write(path: string, times: Phases, { create, copy, netcdf: isNetcdf }: WriteOptions): number {
    let last = performance.now();
    let { count } = this.#comm;
    const took = (phase: keyof Phases): void => {
      const now = performance.now();
      times[phase] += now - last;
      last = now;
      this.collectives[phase] = this.#comm.count - count;
      count = this.#comm.count;
    };
    const file = File.createSync(path, {
      publish: 'never',
      comm: this.#comm,
      ...create,
      bufferLimit: Number.MAX_SAFE_INTEGER,
    });
    took('open');
    const { variables, attributes, groups } = this.#file;
    for (const { name, value } of attributes) file.attributes.set(name, value);
    for (const group of groups) {
      const made = file.createGroup(group.name);
      for (const { name, value } of group.attributes) made.attributes.set(name, value);
    }
    const datasets = isNetcdf ? this.#defineNetcdf(file) : this.#define(file);
    took('define');
    for (const { variable: number, record, data } of this.#posts) {
      const variable = variables[number] as PlannedVariable;
      datasets[number]?.write(data, this.#where(variable, record), copy ? undefined : { copy });
    }
    took('post');
    file.flushSync();
    took('flush');
    const { log } = sessionOf(file);
    file.closeSync();
    took('close');
    return log?.tables.committed.items.reduce((sum, { size }) => sum + size, 0) ?? 0;
  }

  #define(file: File): Dataset[] {
    return this.#file.variables.map((variable, i) => {
      const { path, shape, maxShape, fill } = variable;
      return file.createDataset(path, {
        dtype: dtypeOf(variable),
        shape,
        maxShape,
        ...(fill !== undefined && { fill }),
        attributes: this.#attributes[i] as Described,
      });
    });
  }

  /** Defines the variables through the netCDF layer: with their dimensions, and those named like a dimension as its coordinates. */
  #defineNetcdf(file: File): Dataset[] {
    const { dimensions, variables } = this.#file;
    const root = netcdf(file);
    for (const { name, size } of dimensions) root.createDimension(name, size);
    return variables.map((variable, i) => {
      const { _FillValue, ...attributes } = this.#attributes[i] as Described;
      const { dataset } = root.createVariable(variable.path, {
        dtype: dtypeOf(variable),
        dimensions: variable.dimensions,
        ...(variable.fill !== undefined && { fill: variable.fill as never }),
        attributes,
      });
      if (variable.isRecord) dataset.resize(variable.shape);
      return dataset as Dataset;
    });
  }

  #where({ decomposition, isRecord, shape }: PlannedVariable, record: number): Selection | undefined {
    if (decomposition >= 0) return this.#selections.of(decomposition, isRecord ? record : -1);
    return isRecord ? this.#selections.record(shape.slice(1), record) : undefined;
  }
}

/** The selections of one rank, each built once for all variables of all files that have the same decomposition. */
export class RankSelections {
  readonly #map: readonly Decomposition[];
  readonly #runs: readonly Runs[];
  readonly #known = new Map<string, Selection>();

  constructor(map: readonly Decomposition[], rank: number, ranks: number) {
    this.#map = map;
    this.#runs = map.map((decomposition) => runsOf(decomposition, rank, ranks));
  }

  runs(decomposition: number): Runs {
    return this.#runs[decomposition] as Runs;
  }

  /** The rank's selection in a record, or (record -1) in a variable of fixed size. */
  of(decomposition: number, record: number): Selection {
    return this.#once(`${decomposition} ${record}`, () => {
      const { dims } = this.#map[decomposition] as Decomposition;
      return runSelection(this.runs(decomposition), dims, record);
    });
  }

  /** The selection of a whole record. */
  record(shape: readonly number[], record: number): Selection {
    return this.#once(`${shape.join()}: ${record}`, () => select.box([record, ...shape.map(() => 0)], [1, ...shape]));
  }

  #once(key: string, make: () => Selection): Selection {
    const known = this.#known.get(key);
    if (known) return known;
    const made = make();
    this.#known.set(key, made);
    return made;
  }
}

/** Runs as a selection of blocks in an array of these dimensions. */
function runSelection({ length, offsets, lengths }: Runs, dims: readonly number[], record: number): Selection {
  const first = record < 0 ? 0 : 1;
  const rank = dims.length + first;
  const starts = new Float64Array(length * rank).fill(record);
  const counts = new Float64Array(length * rank).fill(1);
  for (let i = 0, end = rank; i < length; i++, end += rank) {
    let rest = offsets[i] as number;
    for (let d = dims.length - 1, at = end - 1; d >= 0; d--, at--) {
      const size = dims[d] as number;
      const above = Math.floor(rest / size);
      starts[at] = rest - above * size;
      rest = above;
    }
    if (dims.length > 0) counts[end - 1] = lengths[i] as number;
  }
  return select.blocks(starts, counts, rank);
}

function wholeRun(size: number): Runs {
  return { length: size > 0 ? 1 : 0, offsets: new Float64Array(1), lengths: Float64Array.of(size), elements: size };
}

function textsOf(variable: PlannedVariable, record: number, { length, offsets, lengths }: Runs): string[] {
  const texts: string[] = [];
  for (let i = 0; i < length; i++) {
    for (let k = 0; k < (lengths[i] as number); k++)
      texts.push(String(valueAt(variable, record, (offsets[i] as number) + k)));
  }
  return texts;
}

export interface Checked {
  verified: number;
  wrong: number;
  first: WrongValue | undefined;
}

/** Reads files back and checks every element. Each variable is read whole by one rank, in turn. */
export class FileReader {
  readonly #comm: Communicator;
  /** Of each decomposition, the elements that no process writes. */
  readonly #gaps: readonly Float64Array[];

  constructor(comm: Communicator, map: readonly Decomposition[]) {
    this.#comm = comm;
    this.#gaps = map.map((decomposition) => gapsIn(runsOf(decomposition), sizeOf(decomposition.dims)));
  }

  read(path: string, { variables }: PlannedFile, checked: Checked): void {
    const file = File.openSync(path, { comm: solo() });
    const { rank, size } = this.#comm;
    for (let i = 0; i < variables.length; i++) {
      // Shifted by one, so that other ranks read the first variables, which rank 0 alone has usually written.
      if ((i + 1) % size === rank) this.#variable(file, path, variables[i] as PlannedVariable, checked);
    }
    file.closeSync();
  }

  #variable(file: File, path: string, variable: PlannedVariable, checked: Checked): void {
    const { shape, isRecord, type, decomposition } = variable;
    const dataset = file.dataset(variable.path);
    const elements = sizeOf(isRecord ? shape.slice(1) : shape);
    const records = isRecord ? (shape[0] as number) : 1;
    const wrong = (
      record: number,
      position: number,
      count: number,
      expected: string | number,
      found: unknown,
    ): void => {
      checked.wrong += count;
      const value = typeof found === 'string' ? found : Number(found);
      checked.first ??= { file: path, variable: variable.path, record, position, expected, found: value };
    };
    if (sizeOf(dataset.shape) !== elements * records) {
      wrong(0, 0, elements * records, `shape ${shape.join(' x ')}`, `shape ${dataset.shape.join(' x ')}`);
      return;
    }
    checked.verified += elements * records;
    if (elements * records === 0) return;
    if (type === null) {
      const texts = dataset.readSync() as string[];
      texts.forEach((found, at) => {
        const [record, position] = [Math.floor(at / elements), at % elements];
        const expected = String(valueAt(variable, record, position));
        if (found !== expected) wrong(record, position, 1, expected, found);
      });
      return;
    }
    // 64-bit integers are converted to float64; other types are read as stored.
    const isLong = type === 'int64' || type === 'uint64';
    const all = (
      isLong ? dataset.readSync(undefined, { into: arrayFor(type, elements * records) }) : dataset.readSync()
    ) as TypedArray;
    const gaps = decomposition < 0 ? NONE : (this.#gaps[decomposition] as Float64Array);
    for (let record = 0; record < records; record++) {
      const found = records === 1 ? all : (all.subarray(record * elements, (record + 1) * elements) as TypedArray);
      const { count, position } = compare(found, variable, record, gaps);
      if (count > 0) wrong(record, position, count, this.#expected(variable, record, position, gaps), found[position]);
    }
  }

  #expected(variable: PlannedVariable, record: number, position: number, gaps: Float64Array): number {
    return gaps.includes(position) ? (variable.fill ?? 0) : valueAt(variable, record, position);
  }
}

const NONE = new Float64Array(0);
