import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type CreateOptions, File, T } from 'h5log';
import { compact, replay, seal } from 'h5log/tools';
import h5wasm, { type Dataset as WasmDataset } from 'h5wasm/node';
import { expect } from 'vitest';
import { keepInput } from '../failures.ts';
import { random } from '../seed.ts';
import {
  addToList,
  byH5py,
  type Change,
  type Expected,
  expectSeen,
  put,
  resized,
  type Value,
  valuesOf,
} from './model.ts';

/** Through libhdf5 2.0. */
async function byH5wasm(path: string, changes: readonly Change[]): Promise<void> {
  await h5wasm.ready;
  const file = new h5wasm.File(path, 'a');
  for (const change of changes) {
    const dataset = file.get(change.path) as WasmDataset;
    if ('shape' in change) dataset.resize([...change.shape]);
    else {
      const data = dataset.dtype === '<i' ? Int32Array.from(change.data) : Float64Array.from(change.data);
      dataset.write_slice(
        change.start.map((from, d) => [from, from + (change.count[d] as number)]),
        data,
      );
    }
  }
  file.close();
}

type Publish = NonNullable<CreateOptions['publish']>;

/** When a log publishes: every way, the last two at every flush or at some. */
const WAYS: readonly Publish[] = ['never', 'close', 'auto', 'flush', { interval: 0 }, { interval: 20 }];

/** The tools that make a file of a log. */
const WRITERS: Record<string, (from: string, to: string) => Promise<unknown>> = {
  replay,
  compact,
  seal: (path, to) => seal(path, { to }),
};

/** A random program that changes a file, ordinary or a log that publishes, beside a model of what is in it. */
export class Program {
  readonly path: string;
  readonly steps: string[] = [];
  flushes = 0;
  /** Why a flush that nobody waited for failed. */
  failed: unknown;
  readonly #next: () => number;
  readonly #model = new Map<string, Expected>();
  readonly #list: string;
  readonly #targets = new Set<string>();
  /** References that were written. */
  references = 0;
  #file: File;
  #made = 0;

  readonly #isLog: boolean;

  /** `isLog`: the file is made, as a log; else it exists, and is ordinary. Files for h5py, and what it should see, go to `list`. */
  constructor(path: string, from: number, list: string, isLog = false) {
    this.path = path;
    this.#isLog = isLog;
    this.#next = random(from);
    this.#list = list;
    if (isLog) {
      const publish = this.#one(WAYS);
      this.steps.push(`publish ${JSON.stringify(publish)}`);
      this.#file = File.createSync(path, { publish });
      for (let i = this.#pick(4); i >= 0; i--) this.#create();
    } else {
      this.#file = File.openSync(path, { mode: 'r+' });
      this.#learn();
    }
    this.#create([6], true);
  }

  /** Takes what h5log reads for true at the beginning; the first comparison with h5py shows whether it is. */
  #learn(): void {
    const visit = (path: string): void => {
      for (const [name, object] of this.#file.group(path === '' ? '/' : path).children()) {
        const at = `${path}/${name}`;
        if (object?.kind === 'group') visit(at);
        if (object?.kind !== 'dataset') continue;
        const { shape, maxShape, fill } = object;
        const values = valuesOf(object);
        const empty = typeof values[0] === 'string' ? '' : 0;
        this.#model.set(at, {
          shape: [...shape],
          maxShape,
          values,
          fill: (fill === undefined || fill === null
            ? empty
            : Number.isNaN(Number(fill))
              ? fill
              : Number(fill)) as Value,
          attributes: new Map(),
        });
      }
    };
    visit('');
  }

  #pick(n: number): number {
    return Math.floor(this.#next() * n);
  }

  #one<V>(list: readonly V[]): V {
    return list[this.#pick(list.length)] as V;
  }

  #any(): [string, Expected] {
    return this.#one([...this.#model]);
  }

  #value({ fill, refers }: Expected): Value {
    if (refers) return this.#pick(4) === 0 ? '' : this.#target();
    return typeof fill === 'string' ? 'w'.repeat(this.#pick(40)) : this.#pick(100);
  }

  /** An object that a reference may lead to; it is not deleted from then on. */
  #target(): string {
    const [path] = this.#any();
    this.#targets.add(path);
    this.references++;
    return path;
  }

  step(): void {
    const kind = this.#pick(20);
    if (kind < 8) this.#write();
    else if (kind < 11) this.#resize();
    else if (kind < 12) this.#append();
    else if (kind < 14) this.#create();
    else if (kind < 15) this.#delete();
    else if (kind < 16) this.#attribute();
    else if (kind < 17) this.#read();
    else if (kind < 18) this.reopen();
    else if (kind < 19) this.flush();
    else if (!this.#isLog || this.#pick(2) === 0) this.#flushLater();
    else this.#publish();
  }

  #box(shape: readonly number[]): { start: number[]; count: number[] } {
    const start = shape.map((n) => this.#pick(n));
    return { start, count: shape.map((n, d) => 1 + this.#pick(n - (start[d] as number))) };
  }

  #write(): void {
    const [path, model] = this.#any();
    if (model.shape.includes(0)) return;
    const { start, count: size } = this.#box(model.shape);
    const total = size.reduce((a, b) => a * b, 1);
    const data = Array.from({ length: total }, () => this.#value(model));
    this.steps.push(`write ${path} ${start} ${size}`);
    this.#file.dataset(path).write(data as never, model.shape.length === 0 ? undefined : { start, count: size });
    put(model, start, size, data);
  }

  #resize(): void {
    const [path, model] = this.#any();
    const shape = model.shape.map((n, d) => {
      const limit = model.maxShape[d] as number | null;
      if (limit === n && this.#pick(3) > 0) return n;
      return this.#pick(Math.min(limit ?? 30, 30) + 1);
    });
    if (model.maxShape.every((limit, d) => limit === model.shape[d]) && model.shape.every((n, d) => n === shape[d]))
      return;
    const dataset = this.#file.dataset(path);
    this.steps.push(`resize ${path} ${shape}`);
    dataset.resize(shape);
    resized(model, shape);
  }

  #append(): void {
    const growing = [...this.#model].filter(
      ([, { maxShape, shape }]) => maxShape[0] === null && !shape.slice(1).includes(0),
    );
    if (growing.length === 0) return;
    const [path, model] = this.#one(growing);
    const rows = 1 + this.#pick(4);
    const [first = 0, ...rest] = model.shape;
    if (first > 60) return;
    const data = Array.from({ length: rows * rest.reduce((a, b) => a * b, 1) }, () => this.#value(model));
    this.steps.push(`append ${path} ${rows}`);
    expect(this.#file.dataset(path).append(data as never)).toBe(first);
    resized(model, [first + rows, ...rest]);
    put(model, [first, ...rest.map(() => 0)], [rows, ...rest], data);
  }

  #create(shape = Array.from({ length: this.#pick(4) }, () => this.#pick(9)), refers = this.#pick(5) === 0): void {
    const path = `/new${this.#made++}`;
    const maxShape = shape.map((n) => this.#one([null, n, n + 4]));
    const isText = refers || this.#pick(4) === 0;
    const dtype = refers
      ? T.reference
      : isText
        ? T.string()
        : this.#one(['int32', 'float64', 'uint8', T.bigEndian('int16')] as const);
    const filters = shape.length === 0 ? [] : this.#one([[], ['shuffle', { deflate: 3 }], ['fletcher32']] as const);
    const fill = isText || this.#pick(2) === 0 ? undefined : this.#pick(50);
    this.steps.push(`create ${path} ${shape} of ${maxShape}`);
    this.#file.createDataset(path, {
      dtype: dtype as never,
      shape,
      maxShape,
      filters: [...filters],
      ...(fill === undefined ? {} : { fill: fill as never }),
      ...(shape.length > 0 && this.#pick(2) === 0 ? { chunks: shape.map(() => 1 + this.#pick(5)) } : {}),
    });
    const value: Value = isText ? '' : (fill ?? 0);
    const values = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => value);
    this.#model.set(path, { shape, maxShape, values, fill: value, attributes: new Map(), refers });
  }

  #delete(): void {
    const [path] = this.#any();
    if (this.#model.size < 8 || this.#targets.has(path)) return;
    this.steps.push(`delete ${path}`);
    this.#file.delete(path);
    this.#model.delete(path);
  }

  #attribute(): void {
    const [path, model] = this.#any();
    const name = this.#one(['a', 'b', 'c']);
    this.steps.push(`attribute ${path} ${name}`);
    if (model.attributes.has(name)) {
      this.#file.dataset(path).attributes.delete(name);
      model.attributes.delete(name);
    } else {
      const value = this.#pick(100);
      this.#file.dataset(path).attributes.set(name, value);
      model.attributes.set(name, value);
    }
  }

  #read(file = this.#file): void {
    for (const [path, { shape, values }] of this.#model) {
      const dataset = file.dataset(path);
      expect([...dataset.shape], `${path}, shape`).toEqual(shape);
      expect(valuesOf(dataset), path).toEqual(values);
    }
  }

  flush(): void {
    this.steps.push('flush');
    this.#file.flushSync();
    this.#read();
    this.#snapshot();
  }

  #publish(): void {
    this.steps.push('publish');
    const { without, sequence } = this.#file.publishSync();
    expect(without).toEqual([]);
    expect(sequence).toBe(this.#file.sequence);
    this.#read();
    this.#snapshot();
  }

  /** Begins a flush, which the next blocking call takes over at the latest. */
  #flushLater(): void {
    this.steps.push('flush, not awaited');
    this.#file.flush().catch((error: unknown) => {
      this.failed = error;
    });
  }

  reopen(): void {
    this.steps.push('reopen');
    this.#file.closeSync();
    this.#snapshot();
    this.#open();
  }

  #open(): void {
    const publish = this.#isLog && this.#pick(2) === 0 ? { publish: this.#one(WAYS) } : {};
    if ('publish' in publish) this.steps.push(JSON.stringify(publish));
    this.#file = File.openSync(this.path, { mode: 'r+', ...publish });
    expect(this.#file.connector).toBe(this.#isLog ? 'log' : 'native');
    this.#read();
  }

  end(): void {
    if (this.#isLog) this.#publish();
    this.#file.closeSync();
    this.#snapshot();
  }

  giveUp(): void {
    this.#file.discard();
  }

  /** Closes the file, lets libhdf5 change it as well, and opens it again. Texts, and types that h5wasm cannot write, are left alone. */
  async exchange(other: (path: string, changes: readonly Change[]) => Promise<void>): Promise<void> {
    if (this.#isLog) this.#publish();
    this.#file.closeSync();
    const reader = File.openSync(this.path);
    const shared = [...this.#model].filter(([path]) => {
      const { dtype, chunks, pipeline } = reader.dataset(path);
      // h5wasm has no lzf.
      if (pipeline.some(({ name }) => name === 'lzf')) return false;
      return chunks !== null && (dtype === 'int32' || dtype === 'float64');
    });
    reader.closeSync();
    const changes: Change[] = [];
    for (let i = 0; i < 6 && shared.length > 0; i++) {
      const [path, model] = this.#one(shared);
      if (this.#pick(2) === 0) {
        const shape = model.shape.map((n, d) => {
          const limit = model.maxShape[d] as number | null;
          return limit === n ? n : this.#pick(Math.min(limit ?? 30, 30) + 1);
        });
        changes.push({ path, shape });
        resized(model, shape);
      } else if (model.shape.length > 0 && !model.shape.includes(0)) {
        const { start, count: size } = this.#box(model.shape);
        const data = Array.from({ length: size.reduce((a, b) => a * b, 1) }, () => this.#pick(100));
        changes.push({ path, start, count: size, data });
        put(model, start, size, data);
      }
    }
    this.steps.push(`libhdf5: ${JSON.stringify(changes)}`);
    await other(this.path, changes);
    this.#open();
  }

  /** Closes the file, lets every tool that writes a file make another one of it, and opens it again. */
  async copy(): Promise<void> {
    this.#file.closeSync();
    for (const [name, write] of Object.entries(WRITERS)) {
      if (!this.#isLog && name === 'seal') continue;
      const to = `${this.path}.${name}`;
      this.steps.push(name);
      await write(this.path, to);
      const made = File.openSync(to);
      expect(made.connector).toBe(this.#isLog && name === 'compact' ? 'log' : 'native');
      this.#read(made);
      const isSeen = made.connector === 'native' || made.published === made.sequence;
      made.closeSync();
      if (isSeen) this.#show(to);
      rmSync(to);
    }
    this.#open();
  }

  /** For h5py, which looks at all of them together, if it is to see what the model has. */
  #snapshot(): void {
    if (this.#file.published === this.#file.sequence) this.#show(this.path);
  }

  #show(path: string): void {
    const file = `${this.path}.${this.flushes++}`;
    copyFileSync(path, file);
    addToList(this.#list, file, this.#model);
  }
}

/** Runs so many programs of so many steps, and lets h5py, and `look`, look at each of their states; gives what was done. */
export async function runPrograms(
  programs: number,
  length: number,
  folder: string,
  make: (number: number, list: string) => Program,
  look: (states: readonly string[]) => Promise<void> = async () => {},
): Promise<Record<string, number>> {
  let [states, steps, references] = [0, 0, 0];
  for (let i = 0; i < programs; ) {
    const list = join(folder, `list-${i}`);
    const done: Program[] = [];
    for (let k = 0; k < 40 && i < programs; k++, i++) {
      const program = make(i, list);
      try {
        for (let s = 0; s < length; s++) program.step();
        program.end();
        await Promise.resolve();
        expect(program.failed).toBe(undefined);
      } catch (error) {
        program.giveUp();
        keepInput(`program-${i}`, program.steps.join('\n'));
        throw new Error(`program ${i} of ${program.path}: ${program.steps.slice(-12).join('; ')}`, { cause: error });
      }
      done.push(program);
      steps += program.steps.length;
      references += program.references;
    }
    await expectSeen(list);
    const files = done.flatMap(({ path, flushes }) => Array.from({ length: flushes }, (_, s) => `${path}.${s}`));
    await look(files);
    states += files.length;
    for (const file of [...files, ...done.map(({ path }) => path)]) rmSync(file);
  }
  expect(references).toBeGreaterThan(0);
  return { programs, steps, references, 'states compared with h5py': states };
}

/** Lets libhdf5 1.10 and 2.0 change the files of programs between their steps, and tools copy them; h5py looks at all of them in the end. */
export async function takeTurns(programs: readonly Program[], turns: number, list: string): Promise<void> {
  for (const program of programs) {
    try {
      for (let turn = 0; turn < turns / 2; turn++) {
        for (let step = 0; step < 6; step++) program.step();
        await program.copy();
        await program.exchange(turn % 2 === 0 ? byH5py : byH5wasm);
      }
      program.end();
    } catch (error) {
      program.giveUp();
      throw new Error(`${program.path}: ${program.steps.slice(-12).join('; ')}`, { cause: error });
    }
  }
  await expectSeen(list);
}
