import { createTarget, realFile } from '#platform';
import type { FileSession } from '../connector/file-session.ts';
import { H5LogError } from '../errors.ts';
import { File } from '../file.ts';
import { Appender } from '../hdf5/appender.ts';
import { Committer } from '../hdf5/commit.ts';
import type { NewLayout } from '../hdf5/dataset-messages.ts';
import { elementCount } from '../hdf5/dataspace.ts';
import { driveAsync, driveSync, type Io } from '../storage/drive.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { type InputObject, inputObjects, refuseUncopyable } from './input-objects.ts';
import { LoggedData } from './logged-data.ts';
import { outputStructure } from './output-structure.ts';
import { Buffers, type RawData, type Space } from './raw-data.ts';
import { RawOutput } from './raw-output.ts';
import { StoredData } from './stored-data.ts';

const MEMORY = 256 * 2 ** 20;
const LEAST_MEMORY = 2 ** 20;

export interface ReplayProgress {
  /** Bytes of raw data dealt with, of how many; the total grows as datasets are looked at. */
  readonly bytes: number;
  readonly total: number;
  /** The dataset under way. */
  readonly dataset: string;
}

export interface ReplayOptions {
  /** Bytes of memory for data and index, 256 MiB without it. What a single chunk with filters needs is taken in any case. */
  memory?: number;
  /** Replace a file that exists. */
  force?: boolean;
  progress?: (done: ReplayProgress) => void;
  signal?: AbortSignal;
}

export interface ReplayResult {
  readonly groups: number;
  readonly datasets: number;
  /** Datasets that were not of the log: copied as they were stored. */
  readonly copied: number;
  readonly attributes: number;
  /** Elements of all datasets. */
  readonly elements: number;
  /** Raw data written, and the size of the output. */
  readonly dataBytes: number;
  readonly bytes: number;
  readonly seconds: number;
}

/**
 * Writes what a log file holds as ordinary HDF5: contiguous datasets, or chunked ones with their filters, with all groups,
 * attributes and links. The output appears under its name when it is complete.
 *
 * ```ts
 * await replay('run.h5', 'run-canonical.h5');
 * ```
 */
export async function replay(
  input: string | URL,
  output: string | URL,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  const { memory = MEMORY, force = false, signal } = checked(options);
  const began = performance.now();
  signal?.throwIfAborted();
  refuseSame(input, output);
  // An index of a dataset's blocks that is larger than that is looked up piece by piece.
  const file = await File.open(input, { connector: 'log', indexLimit: memory });
  try {
    const target = createTarget(output, !force);
    const raw = new RawOutput(target.storage);
    try {
      const made = await new Replay(file.session, raw, memory, options).run(target.storage);
      await target.storage.close();
      signal?.throwIfAborted();
      target.publish(false);
      return { ...made, seconds: (performance.now() - began) / 1000 };
    } catch (error) {
      await raw.abandon();
      await target.storage.close();
      target.discard();
      throw named(error, file.session.storage.name);
    } finally {
      target.release();
    }
  } finally {
    await file.close();
  }
}

class Replay {
  readonly #session: FileSession;
  readonly #raw: RawOutput;
  readonly #memory: number;
  readonly #options: ReplayOptions;
  readonly #buffers = new Buffers();
  #done = 0;
  #total = 0;

  constructor(session: FileSession, raw: RawOutput, memory: number, options: ReplayOptions) {
    this.#session = session;
    this.#raw = raw;
    this.#memory = memory;
    this.#options = options;
  }

  async run(storage: ByteStorage): Promise<Omit<ReplayResult, 'seconds'>> {
    this.#session.log?.mustHoldData();
    const objects = await this.#read(inputObjects(this.#session));
    const datasets = objects.filter(({ node }) => node.kind === 'dataset');
    const layouts = new Map<InputObject, NewLayout>();
    // One dataset after the other, so that only one index is in memory. Everybody would plan the same places.
    for (const dataset of datasets) {
      const data = await this.#read(about(dataset.path, planData(this.#session, dataset, this.#memory, this.#raw)));
      this.#total += data.total;
      await this.#write(dataset.path, data);
      layouts.set(dataset, data.layout());
      data.release();
    }
    await this.#raw.finish();
    const structure = await this.#read(outputStructure(this.#session, objects, layouts));
    const superblock = { base: 0, end: this.#raw.end, bytes: new Uint8Array(0) };
    const appender = new Appender({ name: storage.name, superblock, power: false });
    const committer = new Committer(structure, appender, null);
    await driveAsync(storage, committer.write(committer.plan()));
    await driveAsync(storage, appender.close());
    return {
      groups: objects.filter(({ node }) => node.kind === 'group').length,
      datasets: datasets.length,
      copied: datasets.filter(({ logged }) => !logged).length,
      attributes: objects.reduce((sum, { attributes }) => sum + attributes.size, 0),
      elements: datasets.reduce((sum, dataset) => sum + elementsOf(this.#session, dataset), 0),
      dataBytes: this.#raw.written,
      bytes: appender.committedEnd,
    };
  }

  async #write(path: string, data: RawData): Promise<void> {
    const { progress, signal } = this.#options;
    for (const piece of data.pieces()) {
      signal?.throwIfAborted();
      for (const { bytes, at, chunk } of await this.#read(about(path, data.make(piece, this.#buffers)))) {
        const place = at ?? this.#raw.take(bytes.length);
        if (at === null) data.placed(chunk, place, bytes.length);
        await this.#raw.write(bytes, place);
      }
      this.#done += piece.bytes;
      progress?.({ bytes: this.#done, total: this.#total, dataset: path });
    }
  }

  /** Blocking where that is possible: it is faster for small reads, and what was made before is written meanwhile. */
  async #read<T>(io: Io<T>): Promise<T> {
    const { storage } = this.#session;
    return storage.blocking ? driveSync(storage, io) : driveAsync(storage, io, this.#options.signal);
  }
}

function* planData(session: FileSession, object: InputObject, memory: number, space: Space): Io<RawData> {
  const { logged, node, path } = object;
  if (logged) return yield* LoggedData.plan(logged, memory, space);
  refuseUncopyable(object);
  const { structure } = session;
  return yield* StoredData.plan(structure.loader.file, path, structure.dataset(node), memory, space);
}

/** Says which dataset it was. */
function* about<T>(path: string, io: Io<T>): Io<T> {
  try {
    return yield* io;
  } catch (error) {
    if (!(error instanceof H5LogError) || error.object !== undefined) throw error;
    const { code, offset, message } = error;
    throw new H5LogError(code, `${path}: ${message}`, { object: path, offset, cause: error });
  }
}

function elementsOf({ structure }: FileSession, { logged, node }: InputObject): number {
  if (logged) return logged.shape.reduce((product, n) => product * n, 1);
  return elementCount(structure.dataset(node).space);
}

function checked(options: ReplayOptions): ReplayOptions {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `options must be an object, got ${String(options)}`);
  const { memory, force, progress } = options;
  if (memory !== undefined && !(typeof memory === 'number' && memory >= LEAST_MEMORY))
    throw new H5LogError('OPTION', `memory must be a number of at least ${LEAST_MEMORY} bytes, got ${String(memory)}`);
  if (force !== undefined && typeof force !== 'boolean')
    throw new H5LogError('OPTION', `force must be true or false, got ${String(force)}`);
  if (progress !== undefined && typeof progress !== 'function')
    throw new H5LogError('OPTION', `progress must be a function, got ${String(progress)}`);
  return options;
}

function refuseSame(input: string | URL, output: string | URL): void {
  if (/^https?:\/\//i.test(String(input)) || realFile(input) !== realFile(output)) return;
  throw new H5LogError('OPTION', `${String(output)} is the input itself; a file cannot be replayed into itself`);
}

/** Says which file it was. */
function named(error: unknown, file: string): unknown {
  if (!(error instanceof H5LogError) || error.file !== undefined) return error;
  const { code, message, offset, object, rank } = error;
  return new H5LogError(code, `${file}: ${message}`, { file, offset, object, rank, cause: error.cause ?? error });
}
