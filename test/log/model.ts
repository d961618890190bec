import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, isH5LogError, type TypedArray } from 'h5log';
import { type MemoryStorage, memoryStorage } from 'h5log/storage';
import { faultyStorage } from '../../src/storage/faulty.ts';
import { random } from '../seed.ts';
import { figures } from './model-compare.ts';
import { scribble } from './model-flushes.ts';
import type { Setup, Step } from './model-program.ts';
import { Readers } from './model-readers.ts';
import { type Chosen, randomMany, randomMemory, randomWhere } from './model-selections.ts';
import {
  compareBytes,
  compareNumbers,
  compareValues,
  Difference,
  ModelDataset,
  type ModelFile,
  sizeOf,
} from './model-state.ts';
import {
  below,
  chance,
  MOST,
  pick,
  type Random,
  randomArray,
  randomFilters,
  randomType,
  source,
} from './model-types.ts';

const PATHS = ['a', 'b', 'c', 'g/a', 'g/_b', '_c', 'h/k/d', '__e'];
const WIDEST = [1, 40, 12, 6, 4, 3];

/** Takes a file and the model of it through the same steps; each kind of step is a method. */
export class Machine extends Readers {
  readonly #handles = new Map<ModelDataset, Dataset>();
  /** The only dataset that steps may choose. */
  #only: string | null = null;

  static async start(setup: Setup, folder: string): Promise<Machine> {
    const { storage: kind, seed } = setup;
    const delays = kind !== 'faulty';
    const disk =
      kind === 'memory' || kind === 'node'
        ? null
        : kind === 'async'
          ? faultyStorage({ seed, delays, asyncOnly: true })
          : faultyStorage({ seed, delays });
    const storage = disk ?? (kind === 'memory' ? memoryStorage() : join(folder, `${figures.programs}-${seed}.h5`));
    return new Machine(setup, storage, disk, await File.create(storage, setup.create));
  }

  async step({ kind, seed }: Step): Promise<void> {
    figures.steps++;
    await this[kind](random(seed));
    if (this.wrong) throw this.wrong;
  }

  // ---------------------------------------------------------------- structure

  #dataset(random: Random): { path: string; model: ModelDataset; dataset: Dataset } | undefined {
    const all = [...this.model.datasets.keys()];
    const names = this.#only && this.model.datasets.has(this.#only) ? [this.#only] : all;
    if (names.length === 0) return undefined;
    const path = pick(random, names);
    const model = this.model.datasets.get(path) as ModelDataset;
    const known = this.#handles.get(model);
    return { path, model, dataset: known && chance(random, 0.7) ? known : this.file.dataset(path) };
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
    if (this.model.datasets.has(path)) {
      this.refused(() => this.file.createDataset(path, options), 'EXISTS');
      return;
    }
    const dataset = this.file.createDataset(path, options);
    const model = new ModelDataset(type, shape, limited ? maxShape : shape, fill);
    this.model.datasets.set(path, model);
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
    const { attributes } = found && chance(random, 0.8) ? found.dataset : this.file;
    const model =
      attributes === this.file.attributes ? this.model.attributes : (found as { model: ModelDataset }).model.attributes;
    const name = pick(random, ['units', '_x', 'long name']);
    if (model.has(name) && chance(random, 0.3)) {
      attributes.delete(name);
      model.delete(name);
      return;
    }
    const value = pick(random, [
      below(random, 1000),
      'text',
      true,
      Int32Array.of(1, 2, below(random, 9)),
      ['a', 'bc'],
      7n,
    ]);
    attributes.set(name, value);
    model.set(name, value);
  }

  remove(random: Random): void {
    const found = this.#dataset(random);
    if (!found) return;
    const whole = found.path.includes('/') && chance(random, 0.5);
    const path = whole ? found.path.slice(0, found.path.indexOf('/')) : found.path;
    this.file.delete(path);
    for (const name of [...this.model.datasets.keys()]) {
      if (name === path || name.startsWith(`${path}/`)) this.model.datasets.delete(name);
    }
  }

  #freePath(random: Random): string | undefined {
    const free = PATHS.filter((path) => !this.model.datasets.has(path));
    return free.length > 0 ? pick(random, free) : undefined;
  }

  move(random: Random): void {
    const found = this.#dataset(random);
    const to = this.#freePath(random);
    if (!found || to === undefined) return;
    this.file.move(found.path, to);
    this.model.datasets.delete(found.path);
    this.model.datasets.set(to, found.model);
  }

  hardLink(random: Random): void {
    const found = this.#dataset(random);
    const to = this.#freePath(random);
    if (!found || to === undefined) return;
    this.file.createHardLink(to, found.path);
    this.model.datasets.set(to, found.model);
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
    const all = [...this.model.datasets].filter(([, { shape }]) => shape.length === rank);
    const least = found.model.shape.map((_, d) => Math.min(...all.map(([, { shape }]) => shape[d] as number)));
    const chosen = randomWhere(random, least, true);
    for (const [path, model] of all) this.#write(random, this.file.dataset(path), model, chosen);
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
    const call = (): void =>
      dataset.write(data as TypedArray, where, Object.keys(options).length > 0 ? options : undefined);
    const distinct = new Set(at.map(String)).size;
    if (!this.#post(random, call, distinct * model.type.size, 1)) return;
    if (view && copy) scribble(view);
    else if (view) this.lent.push(view);
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
    else if (view) this.lent.push(view);
    model.write(at, values);
  }

  /** Posts, and looks at what is said to be pending. False: there was no room, or the flush that was to make it failed. */
  #post(random: Random, call: () => void, bytes: number, requests: number | null): boolean {
    const { bufferLimit, onBufferFull } = this.options;
    const before = this.file.pending;
    const { sequence } = this.file;
    const state = onBufferFull === 'flush' ? this.model.clone() : null;
    try {
      call();
    } catch (error) {
      this.#note(sequence, state);
      const full = isH5LogError(error, 'BUFFER_FULL') && bufferLimit !== undefined;
      const failed = isH5LogError(error, 'STORAGE') && this.armed && state !== null;
      if (!full && !failed) throw error;
      figures.refused++;
      if (full) this.same('pending after BUFFER_FULL', this.file.pending, before);
      if (!full || !this.blocks || chance(random, 0.5) || !this.flushNow()) return false;
      return this.#post(random, () => retry(call), bytes, requests);
    }
    this.#note(sequence, state);
    if (state) return true;
    const { pending } = this.file;
    this.same('pending bytes', pending.bytes, before.bytes + bytes);
    if (requests !== null || bytes === 0)
      this.same('pending requests', pending.requests, before.requests + (bytes > 0 ? (requests ?? 1) : 0));
    return true;
  }

  /** A post may have flushed what was there before it. */
  #note(sequence: number, state: ModelFile | null): void {
    if (state && this.file.sequence > sequence) this.snapshots.set(this.file.sequence, state);
  }

  /** Much happens to one dataset at once. */
  async storm(random: Random): Promise<void> {
    this.#only = this.#dataset(random)?.path ?? null;
    for (let left = 6 + below(random, 6); left > 0; left--) {
      const kind = pick(random, [
        'write',
        'write',
        'resize',
        'flushLater',
        'readLater',
        'readLater',
        'failing',
        'flushSync',
      ] as const);
      await this[kind](random);
    }
    await this.settle();
    await this.read(random);
    this.#only = null;
  }

  async burst(random: Random): Promise<void> {
    await this.settle();
    for (let left = 15 + below(random, 30); left > 0; left--) {
      this.write(random);
      if (this.blocks && chance(random, 0.5)) this.flushNow();
      else this.flushLater();
    }
    await this.settle();
  }

  // ---------------------------------------------------------------- reading

  async read(random: Random): Promise<void> {
    await this.#read(random, this.blocks && chance(random, 0.6));
  }

  /** The answer is looked at later; it must be what it would have been now. */
  readLater(random: Random): void {
    this.reads.push(
      this.#read(random, false).catch((error: unknown) => {
        this.wrong ??= error;
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
      const got = now
        ? dataset.readSync(where, { ...common, raw: true })
        : await dataset.read(where, { ...common, raw: true });
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
    const now = this.blocks && chance(random, 0.5);
    const got = now ? found.dataset.readManySync(starts, counts) : await found.dataset.readMany(starts, counts);
    compareValues(`readMany of ${found.path}`, found.model.type, got, expected);
  }

  async #close(random: Random): Promise<void> {
    await this.settle();
    const flight = this.takeOff();
    if (this.blocks && chance(random, 0.5)) this.file.closeSync();
    else await this.file.close();
    this.landed(flight, this.file.sequence);
  }

  async reopen(random: Random): Promise<void> {
    await this.#close(random);
    this.disk?.reopen();
    this.options = {
      ...(chance(random, 0.3) && { indexLimit: below(random, 300) }),
      ...(chance(random, 0.2) && { bufferLimit: 50 + below(random, 2000) }),
      ...(chance(random, 0.5) && this.blocks && { onBufferFull: 'flush' }),
    };
    const options = { ...this.options, mode: 'r+' } as const;
    this.file =
      this.blocks && chance(random, 0.5)
        ? File.openSync(this.storage, options)
        : await File.open(this.storage, options);
    this.#handles.clear();
  }

  /** Closes, and compares everything through an index and without; gives the bytes of the file. */
  async end(): Promise<Uint8Array> {
    const last = random(this.setup.seed);
    await this.#close(last);
    if (this.wrong) throw this.wrong;
    const image = this.image();
    await this.compareImage(image, {});
    await this.compareImage(image, { indexLimit: 0 });
    const earlier = [...this.snapshots.keys()];
    for (let i = 0; i < 3; i++)
      await this.compareImage(image, { asOf: pick(last, earlier), ...(i === 0 && { indexLimit: 0 }) });
    figures.programs++;
    return typeof image === 'string' ? readFileSync(image) : (image as MemoryStorage).bytes();
  }
}

/** The first call is done with; it is made once more. */
function retry(call: () => void): void {
  call();
}
