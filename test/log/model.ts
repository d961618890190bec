import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ByteStorage, type CommonOptions, type CreateOptions, type Dataset, File, Group, isH5LogError, type TypedArray } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { type FaultyStorage, faultyStorage } from '../../src/storage/faulty.ts';
import { random } from '../seed.ts';
import { type Chosen, randomMany, randomMemory, randomWhere } from './model-selections.ts';
import { compareBytes, compareNumbers, compareValues, Difference, ModelDataset, ModelFile, sizeOf } from './model-state.ts';
import { below, chance, MOST, pick, type Random, randomArray, randomFilters, randomType, shown, source } from './model-types.ts';

export const STORAGES = ['memory', 'faulty', 'delayed', 'async', 'node'] as const;

export interface Setup {
  readonly storage: (typeof STORAGES)[number];
  readonly create: CreateOptions;
  readonly seed: number;
}

export interface Step {
  readonly kind: StepKind;
  readonly seed: number;
}

/** How often each kind of step comes, in programs of different character. */
const plain = {
  create: 6, write: 26, shared: 5, many: 8, resize: 7, attribute: 3, remove: 2, move: 2, hardLink: 1,
  flushSync: 5, flush: 5, flushLater: 8, settle: 3, failing: 5, read: 14, readLater: 8, readMany: 5,
  reopen: 3, reader: 3, commits: 2, burst: 0.3,
};
export type StepKind = keyof typeof plain;
export const WEIGHTS: Readonly<Record<string, Readonly<Record<StepKind, number>>>> = {
  plain,
  /** Much is under way at the same time, and fails. */
  races: { ...plain, resize: 16, flushLater: 22, flush: 1, flushSync: 3, failing: 12, readLater: 16, shared: 2, many: 3, reopen: 1, reader: 1 },
  /** Few datasets, many flushes: tables and logs are merged again and again. */
  tiers: { ...plain, create: 1, burst: 8, remove: 4, reopen: 8 },
  /** Selections that tables can share, and records. */
  sharing: { ...plain, create: 12, shared: 40, write: 8, flushSync: 12, remove: 6 },
};

/** Figures of a whole test run. */
export const figures = { programs: 0, steps: 0, compared: 0, commits: 0, failures: 0, refused: 0 };

/** A flush on its way: what it will have committed, and the buffers it must have read by then. */
interface Flight {
  readonly snapshot: ModelFile;
  readonly lent: TypedArray[];
}

const PATHS = ['a', 'b', 'c', 'g/a', 'g/_b', '_c', 'h/k/d', '__e'];
const WIDEST = [1, 40, 12, 6, 4, 3];

/** A file and the model of it, going through the same steps. */
export class Machine {
  readonly #setup: Setup;
  readonly #storage: ByteStorage | string;
  readonly #disk: FaultyStorage | null;
  #file: File;
  #options: CommonOptions;
  #model = new ModelFile();
  readonly #snapshots = new Map<number, ModelFile>();
  readonly #handles = new Map<ModelDataset, Dataset>();
  #lent: TypedArray[] = [];
  #flights: Promise<void>[] = [];
  #reads: Promise<void>[] = [];
  #armed = false;
  #wrong: unknown = null;

  private constructor(setup: Setup, storage: ByteStorage | string, disk: FaultyStorage | null, file: File) {
    this.#setup = setup;
    this.#options = setup.create;
    this.#storage = storage;
    this.#disk = disk;
    this.#file = file;
    this.#snapshots.set(file.sequence, this.#model.clone());
  }

  static async start(setup: Setup, folder: string): Promise<Machine> {
    const { storage: kind, seed } = setup;
    const delays = kind !== 'faulty';
    const disk = kind === 'memory' || kind === 'node' ? null : kind === 'async' ? faultyStorage({ seed, delays, asyncOnly: true }) : faultyStorage({ seed, delays });
    const storage = disk ?? (kind === 'memory' ? memoryStorage() : join(folder, `${figures.programs}-${seed}.h5`));
    return new Machine(setup, storage, disk, await File.create(storage, setup.create));
  }

  get #blocks(): boolean {
    return this.#setup.storage !== 'async';
  }

  async step({ kind, seed }: Step): Promise<void> {
    figures.steps++;
    await this[kind](random(seed));
    if (this.#wrong) throw this.#wrong;
  }

  // ---------------------------------------------------------------- structure

  #dataset(random: Random): { path: string; model: ModelDataset; dataset: Dataset } | undefined {
    const names = [...this.#model.datasets.keys()];
    if (names.length === 0) return undefined;
    const path = pick(random, names);
    const model = this.#model.datasets.get(path) as ModelDataset;
    const known = this.#handles.get(model);
    return { path, model, dataset: known && chance(random, 0.7) ? known : this.#file.dataset(path) };
  }

  create(random: Random): void {
    const path = pick(random, PATHS);
    const rank = chance(random, 0.03) ? 32 : below(random, 6);
    const widest = WIDEST[rank] ?? 1;
    const shape = Array.from({ length: rank }, () => (chance(random, 0.06) ? 0 : 1 + below(random, widest)));
    const maxShape = shape.map((n) => (chance(random, 0.4) ? null : chance(random, 0.5) ? n + below(random, 4) : n));
    const limited = chance(random, 0.7);
    const type = randomType(random);
    const fill = chance(random, 0.6) ? 0 : 1 + below(random, MOST);
    const options = {
      dtype: type.dtype,
      shape,
      ...(limited && { maxShape }),
      ...(fill > 0 && { fill: type.value(fill) }),
      ...(chance(random, 0.4) && { chunks: shape.map(() => 1 + below(random, 4)) }),
      filters: randomFilters(random),
    };
    if (this.#model.datasets.has(path)) {
      this.#refused(() => this.#file.createDataset(path, options), 'EXISTS');
      return;
    }
    const dataset = this.#file.createDataset(path, options);
    const model = new ModelDataset(type, shape, limited ? maxShape : shape, fill);
    this.#model.datasets.set(path, model);
    this.#handles.set(model, dataset);
  }

  resize(random: Random): void {
    const found = this.#dataset(random);
    if (!found) return;
    const { model, dataset } = found;
    const shape = model.shape.map((n, d) => {
      const most = Math.min(model.maxShape[d] ?? Infinity, WIDEST[model.shape.length] ?? 2);
      return chance(random, 0.4) ? Math.min(n, model.maxShape[d] ?? n) : below(random, most + 1);
    });
    if (sizeOf(shape) > 1000) return;
    dataset.resize(shape);
    model.resize(shape);
  }

  attribute(random: Random): void {
    const found = this.#dataset(random);
    const { attributes } = found && chance(random, 0.8) ? found.dataset : this.#file;
    const model = attributes === this.#file.attributes ? this.#model.attributes : (found as { model: ModelDataset }).model.attributes;
    const name = pick(random, ['units', '_x', 'long name']);
    if (model.has(name) && chance(random, 0.3)) {
      attributes.delete(name);
      model.delete(name);
      return;
    }
    const value = pick(random, [below(random, 1000), 'text', true, Int32Array.of(1, 2, below(random, 9)), ['a', 'bc'], 7n]);
    attributes.set(name, value);
    model.set(name, value);
  }

  remove(random: Random): void {
    const found = this.#dataset(random);
    if (!found) return;
    const whole = found.path.includes('/') && chance(random, 0.5);
    const path = whole ? found.path.slice(0, found.path.indexOf('/')) : found.path;
    this.#file.delete(path);
    for (const name of [...this.#model.datasets.keys()]) {
      if (name === path || name.startsWith(`${path}/`)) this.#model.datasets.delete(name);
    }
  }

  #freePath(random: Random): string | undefined {
    const free = PATHS.filter((path) => !this.#model.datasets.has(path));
    return free.length > 0 ? pick(random, free) : undefined;
  }

  move(random: Random): void {
    const found = this.#dataset(random);
    const to = this.#freePath(random);
    if (!found || to === undefined) return;
    this.#file.move(found.path, to);
    this.#model.datasets.delete(found.path);
    this.#model.datasets.set(to, found.model);
  }

  hardLink(random: Random): void {
    const found = this.#dataset(random);
    const to = this.#freePath(random);
    if (!found || to === undefined) return;
    this.#file.createHardLink(to, found.path);
    this.#model.datasets.set(to, found.model);
  }

  // ---------------------------------------------------------------- posting

  write(random: Random): void {
    const found = this.#dataset(random);
    if (found) this.#write(random, found.dataset, found.model, randomWhere(random, found.model.shape));
  }

  /** One selection object for several datasets. */
  shared(random: Random): void {
    const found = this.#dataset(random);
    if (!found) return;
    const rank = found.model.shape.length;
    const all = [...this.#model.datasets].filter(([, { shape }]) => shape.length === rank);
    const least = found.model.shape.map((_, d) => Math.min(...all.map(([, { shape }]) => shape[d] as number)));
    const chosen = randomWhere(random, least, true);
    for (const [path, model] of all) this.#write(random, this.#file.dataset(path), model, chosen);
  }

  #write(random: Random, dataset: Dataset, model: ModelDataset, { where, at }: Chosen): void {
    const values = at.map(() => below(random, MOST + 1));
    const memory = chance(random, 0.2) ? randomMemory(random, at.length) : null;
    const inMemory = memory ? new Array<number>(sizeOf(memory.shape)).fill(0) : values;
    memory?.places.forEach((place, i) => {
      inMemory[place] = values[i] as number;
    });
    // A place that was taken twice holds the later value.
    const written = memory ? memory.places.map((place) => inMemory[place] as number) : values;
    const { data, view } = source(random, model.type, inMemory);
    const copy = !view || chance(random, 0.7);
    const options = {
      ...(copy ? {} : { copy: false }),
      ...(memory && { memory: { shape: memory.shape, ...(memory.where && { where: memory.where }) } }),
    };
    const call = (): void => dataset.write(data as TypedArray, where, Object.keys(options).length > 0 ? options : undefined);
    const distinct = new Set(at.map(String)).size;
    if (!this.#post(random, call, distinct * model.type.size, 1)) return;
    if (view && copy) scribble(view);
    else if (view) this.#lent.push(view);
    model.write(at, written);
  }

  many(random: Random): void {
    const found = this.#dataset(random);
    if (!found) return;
    const { dataset, model } = found;
    const { starts, counts, at } = randomMany(random, model.shape);
    const values = at.map(() => below(random, MOST + 1));
    const { data, view } = source(random, model.type, values);
    const copy = !view || chance(random, 0.7);
    const call = (): void => dataset.writeMany(data as TypedArray, starts, counts, copy ? undefined : { copy: false });
    if (!this.#post(random, call, at.length * model.type.size, null)) return;
    if (view && copy) scribble(view);
    else if (view) this.#lent.push(view);
    model.write(at, values);
  }

  /** Posts, and looks at what is said to be pending. False: there was no room, or the flush that was to make it failed. */
  #post(random: Random, call: () => void, bytes: number, requests: number | null): boolean {
    const { bufferLimit, onBufferFull } = this.#options;
    const before = this.#file.pending;
    const { sequence } = this.#file;
    const state = onBufferFull === 'flush' ? this.#model.clone() : null;
    try {
      call();
    } catch (error) {
      this.#note(sequence, state);
      const full = isH5LogError(error, 'BUFFER_FULL') && bufferLimit !== undefined;
      const failed = isH5LogError(error, 'STORAGE') && this.#armed && state !== null;
      if (!full && !failed) throw error;
      figures.refused++;
      if (full) this.#same('pending after BUFFER_FULL', this.#file.pending, before);
      if (!full || !this.#blocks || chance(random, 0.5) || !this.#flushNow()) return false;
      return this.#post(random, () => retry(call), bytes, requests);
    }
    this.#note(sequence, state);
    if (state) return true;
    const { pending } = this.#file;
    this.#same('pending bytes', pending.bytes, before.bytes + bytes);
    if (requests !== null || bytes === 0) this.#same('pending requests', pending.requests, before.requests + (bytes > 0 ? (requests ?? 1) : 0));
    return true;
  }

  /** A post may have flushed what was there before it. */
  #note(sequence: number, state: ModelFile | null): void {
    if (state && this.#file.sequence > sequence) this.#snapshots.set(this.#file.sequence, state);
  }

  #same(what: string, got: unknown, expected: unknown): void {
    if (shown(got) !== shown(expected)) throw new Difference(`${what}: ${shown(got)}, expected ${shown(expected)}`);
  }

  #refused(call: () => void, code: Parameters<typeof isH5LogError>[1]): void {
    try {
      call();
    } catch (error) {
      if (isH5LogError(error, code)) return;
      throw error;
    }
    throw new Difference(`nothing thrown where ${code} was expected`);
  }

  // ---------------------------------------------------------------- flushing

  #takeOff(): Flight {
    const flight = { snapshot: this.#model.clone(), lent: this.#lent };
    this.#lent = [];
    return flight;
  }

  #landed({ snapshot, lent }: Flight, sequence: number): void {
    figures.commits++;
    this.#snapshots.set(sequence, snapshot);
    lent.forEach(scribble);
  }

  #crashed(flight: Flight, error: unknown): void {
    if (!isH5LogError(error, 'STORAGE') || !this.#armed) throw error;
    figures.failures++;
    this.#lent.push(...flight.lent);
  }

  /** True if it succeeded. */
  #flushNow(): boolean {
    const flight = this.#takeOff();
    try {
      const commit = this.#file.flushSync();
      this.#landed(flight, commit.sequence);
      this.#same('the last sequence', this.#file.sequence, commit.sequence);
      this.#same('pending after a flush', this.#file.pending, { requests: 0, bytes: 0 });
      return true;
    } catch (error) {
      this.#crashed(flight, error);
      return false;
    }
  }

  flushSync(): void {
    if (this.#blocks) this.#flushNow();
  }

  flushLater(): void {
    const flight = this.#takeOff();
    this.#flights.push(
      this.#file.flush().then(
        ({ sequence }) => this.#landed(flight, sequence),
        (error: unknown) => this.#crashed(flight, error),
      ),
    );
  }

  async flush(): Promise<void> {
    this.flushLater();
    await Promise.all(this.#flights);
  }

  /** Everything that is under way comes to its end. */
  async settle(): Promise<void> {
    await Promise.all([...this.#flights, ...this.#reads]);
    this.#flights = [];
    this.#reads = [];
    this.#disk?.heal();
    this.#armed = false;
  }

  /** The next operation of a kind fails: of a flush now, or of whatever comes until the next settling. */
  async failing(random: Random): Promise<void> {
    const disk = this.#disk;
    if (!disk) return;
    if (this.#armed) await this.settle();
    const op = pick(random, ['write', 'write', 'sync', 'truncate'] as const);
    const times = 1 + below(random, 2);
    // When a superblock lands although its write fails, and putting the old one back fails as well, readers see a commit that
    // was reported as failed. One failure alone must not do that.
    const landed = times === 1 ? pick(random, ['none', 'torn'] as const) : 'none';
    const fault = { op, at: disk.counts[op] + below(random, 3), times, code: pick(random, ['ENOSPC', 'EIO']), landed };
    if (chance(random, 0.5)) {
      this.#armed = true;
      disk.fail(fault);
      return;
    }
    await this.settle();
    this.#armed = true;
    disk.fail({ ...fault, at: disk.counts[op] + below(random, 3) });
    const { injected } = disk;
    const { pending, sequence } = this.#file;
    const flight = this.#takeOff();
    const outcome = await (this.#blocks && chance(random, 0.5) ? (async () => this.#file.flushSync())() : this.#file.flush()).then(
      (commit) => ({ commit }),
      (error: unknown) => ({ error }),
    );
    if ('error' in outcome) {
      this.#crashed(flight, outcome.error);
      this.#same('pending after a failed flush', this.#file.pending, pending);
      this.#same('sequence after a failed flush', this.#file.sequence, sequence);
    } else {
      this.#landed(flight, outcome.commit.sequence);
      if (disk.injected > injected) throw new Difference('an operation failed and the flush did not');
    }
    disk.heal();
    this.#armed = false;
  }

  async burst(random: Random): Promise<void> {
    await this.settle();
    for (let left = 15 + below(random, 30); left > 0; left--) {
      this.write(random);
      if (this.#blocks && chance(random, 0.5)) this.#flushNow();
      else this.flushLater();
    }
    await this.settle();
  }

  // ---------------------------------------------------------------- reading

  async read(random: Random): Promise<void> {
    await this.#read(random, this.#blocks && chance(random, 0.6));
  }

  /** The answer is looked at later; it must be what it would have been now. */
  readLater(random: Random): void {
    this.#reads.push(
      this.#read(random, false).catch((error: unknown) => {
        this.#wrong ??= error;
      }),
    );
  }

  async #read(random: Random, now: boolean): Promise<void> {
    const found = this.#dataset(random);
    if (!found) return;
    const { path, model, dataset } = found;
    const { type } = model;
    const { where, at } = randomWhere(random, model.shape);
    const expected = model.read(at);
    figures.compared += at.length;
    const what = `${now ? 'readSync' : 'read'} of ${path}`;
    const form = random();
    const memory = chance(random, 0.2) ? randomMemory(random, at.length) : null;
    const common = memory ? { memory: { shape: memory.shape, ...(memory.where && { where: memory.where }) } } : {};
    const size = memory ? sizeOf(memory.shape) : at.length;
    const spread = (background: number): number[] => {
      const all = new Array<number>(size).fill(background);
      memory?.places.forEach((place, i) => {
        all[place] = expected[i] as number;
      });
      return memory ? all : expected;
    };
    if (form < 0.2) {
      const wanted = spread(0);
      const got = now ? dataset.readSync(where, { ...common, raw: true }) : await dataset.read(where, { ...common, raw: true });
      compareBytes(what, type, got, wanted);
    } else if (form < 0.5 && type.isNumber) {
      const wanted = spread(MOST + 11);
      const into = randomArray(random, size, MOST + 11);
      const got = now ? dataset.readSync(where, { ...common, into }) : await dataset.read(where, { ...common, into });
      if (got !== into) throw new Difference(`${what}: not the array it was given`);
      compareNumbers(`${what} into`, type, into as ArrayLike<number | bigint>, wanted);
    } else {
      const wanted = spread(0);
      compareValues(what, type, now ? dataset.readSync(where, common) : await dataset.read(where, common), wanted);
    }
  }

  async readMany(random: Random): Promise<void> {
    const found = this.#dataset(random);
    if (!found) return;
    const { starts, counts, at } = randomMany(random, found.model.shape);
    const expected = found.model.read(at);
    const now = this.#blocks && chance(random, 0.5);
    const got = now ? found.dataset.readManySync(starts, counts) : await found.dataset.readMany(starts, counts);
    compareValues(`readMany of ${found.path}`, found.model.type, got, expected);
  }

  async commits(): Promise<void> {
    await this.settle();
    this.#compareCommits(this.#file, this.#file.sequence);
  }

  #compareCommits(file: File, last: number): void {
    const known = [...this.#snapshots.keys()].filter((sequence) => sequence <= last).sort((a, b) => a - b);
    this.#same('commits', file.commits().map(({ sequence }) => sequence), known);
  }

  #image(): ByteStorage | string {
    if (this.#disk) return memoryStorage(this.#disk.processImage());
    return typeof this.#storage === 'string' ? this.#storage : memoryStorage((this.#storage as ReturnType<typeof memoryStorage>).bytes());
  }

  /** Another reader opens the file beside the writer, at its last commit and at an earlier one. */
  async reader(random: Random): Promise<void> {
    // A superblock whose write failed may be there for a moment, until the old one is put back.
    if (this.#setup.storage === 'node' || this.#armed) await this.settle();
    const image = this.#image();
    await this.settle();
    await this.#compareImage(image, chance(random, 0.5) ? {} : { indexLimit: below(random, 200) });
    const asOf = pick(random, [...this.#snapshots.keys()].filter((sequence) => sequence <= this.#seen));
    await this.#compareImage(image, { asOf });
  }

  #seen = 0;

  async #compareImage(image: ByteStorage | string, options: { indexLimit?: number; asOf?: number }): Promise<void> {
    const file = await File.open(image, options);
    this.#seen = file.sequence;
    const model = this.#snapshots.get(file.sequence);
    if (!model) throw new Difference(`a reader found commit ${file.sequence}, which nobody made`);
    if (options.asOf !== undefined) this.#same('sequence of asOf', file.sequence, options.asOf);
    await compareFile(file, model, `commit ${file.sequence} with ${JSON.stringify(options)}`);
    this.#compareCommits(file, file.sequence);
    await file.close();
  }

  async #close(random: Random): Promise<void> {
    await this.settle();
    const flight = this.#takeOff();
    if (this.#blocks && chance(random, 0.5)) this.#file.closeSync();
    else await this.#file.close();
    this.#landed(flight, this.#file.sequence);
  }

  async reopen(random: Random): Promise<void> {
    await this.#close(random);
    this.#disk?.reopen();
    this.#options = {
      ...(chance(random, 0.3) && { indexLimit: below(random, 300) }),
      ...(chance(random, 0.2) && { bufferLimit: 50 + below(random, 2000) }),
      ...(chance(random, 0.5) && this.#blocks && { onBufferFull: 'flush' }),
    };
    const options = { ...this.#options, mode: 'r+' } as const;
    this.#file = this.#blocks && chance(random, 0.5) ? File.openSync(this.#storage, options) : await File.open(this.#storage, options);
    this.#handles.clear();
  }

  /** Closes, and compares everything through an index and without; gives the bytes of the file. */
  async end(): Promise<Uint8Array> {
    const last = random(this.#setup.seed);
    await this.#close(last);
    if (this.#wrong) throw this.#wrong;
    const image = this.#image();
    await this.#compareImage(image, {});
    await this.#compareImage(image, { indexLimit: 0 });
    const earlier = [...this.#snapshots.keys()];
    for (let i = 0; i < 3; i++) await this.#compareImage(image, { asOf: pick(last, earlier), ...(i === 0 && { indexLimit: 0 }) });
    figures.programs++;
    return typeof image === 'string' ? readFileSync(image) : (image as ReturnType<typeof memoryStorage>).bytes();
  }
}

/** The first call is done with; it is made once more. */
function retry(call: () => void): void {
  call();
}

function scribble(view: TypedArray): void {
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).fill(0x6b);
}

function* datasetsOf(group: Group): Generator<Dataset> {
  for (const [, child] of group.children()) {
    if (child instanceof Group) yield* datasetsOf(child);
    else if (child) yield child;
  }
}

/** Everything in the file is as in the model. */
export async function compareFile(file: File, model: ModelFile, what: string): Promise<void> {
  const found = new Map([...datasetsOf(file)].map((dataset) => [dataset.path.slice(1), dataset]));
  const names = (paths: Iterable<string>): string => [...paths].sort().join(' ');
  if (names(found.keys()) !== names(model.datasets.keys())) {
    throw new Difference(`${what}: datasets ${names(found.keys())}, expected ${names(model.datasets.keys())}`);
  }
  compareAttributes(file, model.attributes, what);
  for (const [path, dataset] of found) {
    const { shape, maxShape, type, values, attributes } = model.datasets.get(path) as ModelDataset;
    if (shown([dataset.shape, dataset.maxShape]) !== shown([shape, maxShape])) throw new Difference(`${what}: ${path} has shape ${shown(dataset.shape)}, expected ${shown(shape)}`);
    figures.compared += values.length;
    compareValues(`${what}: ${path} ${type.name}`, type, await dataset.read(), values);
    compareAttributes(dataset, attributes, `${what}: ${path}`);
  }
}

function compareAttributes(object: File | Dataset, expected: ReadonlyMap<string, unknown>, what: string): void {
  const sorted = (entries: Iterable<[string, unknown]>): string => shown([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
  if (sorted(object.attributes) !== sorted(expected)) {
    throw new Difference(`${what}: attributes ${sorted(object.attributes)}, expected ${sorted(expected)}`);
  }
}
