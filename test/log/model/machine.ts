import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, isH5LogError } from 'h5log';
import { type MemoryStorage, memoryStorage } from 'h5log/storage';
import { random } from '../../seed.ts';
import { faultyStorage } from '../../storage/faulty.ts';
import { ATTRIBUTES, PATHS, randomAttribute, randomDataset, randomShape } from './choices.ts';
import { figures } from './compare.ts';
import { type Post, randomManyPost, randomPost, scribble } from './posts.ts';
import type { Setup, Step } from './program.ts';
import { Readers } from './readers.ts';
import { compareRead, compareReadMany } from './reads.ts';
import { type Chosen, randomWhere } from './selections.ts';
import type { ModelDataset, ModelFile } from './state.ts';
import { below, chance, pick, type Random } from './types.ts';

/** How many machines were started. A program that failed leaves its file locked, and a smaller one of the same seed needs another. */
let started = 0;

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
    const storage = disk ?? (kind === 'memory' ? memoryStorage() : join(folder, `program-${started++}.h5`));
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
    const { options, model } = randomDataset(random);
    if (this.model.datasets.has(path)) {
      this.refused(() => this.file.createDataset(path, options), 'EXISTS');
      return;
    }
    this.#handles.set(model, this.file.createDataset(path, options));
    this.model.datasets.set(path, model);
  }

  resize(random: Random): void {
    const found = this.#dataset(random);
    const shape = found && randomShape(random, found.model);
    if (!shape) return;
    found.dataset.resize(shape);
    found.model.resize(shape);
  }

  attribute(random: Random): void {
    const found = this.#dataset(random);
    const { attributes } = found && chance(random, 0.8) ? found.dataset : this.file;
    const model =
      attributes === this.file.attributes ? this.model.attributes : (found as { model: ModelDataset }).model.attributes;
    const name = pick(random, ATTRIBUTES);
    if (model.has(name) && chance(random, 0.3)) {
      attributes.delete(name);
      model.delete(name);
      return;
    }
    const value = randomAttribute(random);
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

  #write(random: Random, dataset: Dataset, model: ModelDataset, chosen: Chosen): void {
    this.#post(random, dataset, model, randomPost(random, model, chosen));
  }

  many(random: Random): void {
    const found = this.#dataset(random);
    if (found) this.#post(random, found.dataset, found.model, randomManyPost(random, found.model));
  }

  #post(random: Random, dataset: Dataset, model: ModelDataset, post: Post): void {
    const { view, copy } = post;
    if (!this.#accepted(random, () => post.make(dataset), post.bytes, post.requests)) return;
    if (view && copy) scribble(view);
    else if (view) this.lent.push(view);
    model.write(post.at, post.values);
  }

  /** Posts, and looks at what is said to be pending. False: there was no room, or the flush that was to make it failed. */
  #accepted(random: Random, call: () => void, bytes: number, requests: number | null): boolean {
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
      return this.#accepted(random, () => retry(call), bytes, requests);
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
    if (found) await compareRead(random, found, now);
  }

  async readMany(random: Random): Promise<void> {
    const found = this.#dataset(random);
    if (found) await compareReadMany(random, found, this.blocks && chance(random, 0.5));
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
