import { File } from '../api/file.ts';
import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import type { TypedArray } from '../dtype/model.ts';
import { sizeOf } from '../space/shape.ts';
import { type Decomposition, runsOf } from './decomposition.ts';
import type { PlannedFile, PlannedVariable } from './e3sm-plan.ts';
import { arrayFor, compare, gapsIn, valueAt, type WrongValue } from './e3sm-values.ts';

export interface Checked {
  verified: number;
  wrong: number;
  first: WrongValue | undefined;
}

/** Reads files back and checks every element: ranks take turns with the variables, each as a whole, whoever wrote it. */
export class FileReader {
  readonly #comm: Communicator;
  /** Of each decomposition, elements that nobody writes. */
  readonly #gaps: readonly Float64Array[];

  constructor(comm: Communicator, map: readonly Decomposition[]) {
    this.#comm = comm;
    this.#gaps = map.map((decomposition) => gapsIn(runsOf(decomposition), sizeOf(decomposition.dims)));
  }

  read(path: string, { variables }: PlannedFile, checked: Checked): void {
    const file = File.openSync(path, { comm: solo() });
    const { rank, size } = this.#comm;
    for (let i = 0; i < variables.length; i++) {
      // Not the variables that this rank alone has written.
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
    // 64-bit integers are converted, the others are read as they are.
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
