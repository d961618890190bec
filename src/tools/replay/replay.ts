import { createTarget, nodeStorage, realFile } from '#platform';
import { File } from '../../api/file.ts';
import { sessionOf } from '../../api/handle.ts';
import { H5LogError, inFile, inObject } from '../../base/errors.ts';
import { type Attempt, agreeOn } from '../../comm/agreement.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { solo } from '../../comm/solo.ts';
import type { FileSession } from '../../connector/file-session.ts';
import type { NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import { Appender } from '../../hdf5/write/appender.ts';
import { Committer } from '../../hdf5/write/commit.ts';
import { sizeOf } from '../../space/shape.ts';
import { driveAsync, driveSync, type Io } from '../../storage/io.ts';
import { type ByteStorage, plainTarget, type WriteTarget } from '../../storage/storage.ts';
import { type InputObject, inputObjects, refuseUncopyable } from './input-objects.ts';
import { LoggedData } from './logged-data.ts';
import type { ReplayOptions, ReplayResult } from './options.ts';
import { Buffers, type Made, type Piece, type RawData, type Space } from './raw-data.ts';
import { RawOutput } from './raw-output.ts';
import { StoredData } from './stored-data.ts';
import { outputStructure } from './structure.ts';
import { replayOnThreads } from './threads.ts';

const MEMORY = 256 * 2 ** 20;
const LEAST_MEMORY = 2 ** 20;

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
  const { comm = solo(), threads = 1 } = options;
  if (threads > 1 && comm.size === 1) return replayOnThreads(threads, input, output, { ...options, memory });
  // An index of a dataset's blocks that is larger than that is looked up piece by piece.
  const opening = () => File.open(input, { connector: 'log', indexLimit: memory, comm: solo() });
  const file = await onAll(comm, opening);
  try {
    const target = await outputFor(comm, output, force);
    const raw = new RawOutput(target.storage);
    try {
      const made = await new Replay(sessionOf(file), raw, memory, comm, options).run(target.storage);
      await target.storage.close();
      await onAll(comm, async () => {
        signal?.throwIfAborted();
        target.publish(false);
      });
      return { ...made, seconds: (performance.now() - began) / 1000 };
    } catch (error) {
      await raw.abandon();
      await target.storage.close();
      target.discard();
      throw inFile(error, sessionOf(file).storage.name);
    } finally {
      target.release();
    }
  } finally {
    await file.close();
  }
}

/** Does something on every rank; when it fails on one, the same error is thrown on all. */
async function onAll<T>(comm: Communicator, work: () => Promise<T>): Promise<T> {
  if (comm.size === 1) return work();
  let outcome: Attempt<T>;
  try {
    outcome = { result: await work() };
  } catch (error) {
    outcome = { error };
  }
  return agreeOn(comm, outcome);
}

/** The first rank makes the new file, the others write into it as well. */
async function outputFor(comm: Communicator, output: string | URL, force: boolean): Promise<WriteTarget> {
  const made = await onAll(comm, async () => (comm.rank === 0 ? createTarget(output, !force) : null));
  if (comm.size === 1) return made as WriteTarget;
  const at = new TextDecoder().decode(comm.bcast(made ? new TextEncoder().encode(made.at) : null, 0));
  return onAll(comm, async () => made ?? plainTarget(nodeStorage(at, 'r+', String(output))));
}

class Replay {
  readonly #session: FileSession;
  readonly #raw: RawOutput;
  readonly #memory: number;
  readonly #comm: Communicator;
  readonly #options: ReplayOptions;
  readonly #buffers = new Buffers();
  #done = 0;
  #total = 0;

  constructor(session: FileSession, raw: RawOutput, memory: number, comm: Communicator, options: ReplayOptions) {
    this.#session = session;
    this.#raw = raw;
    this.#memory = memory;
    this.#comm = comm;
    this.#options = options;
  }

  async run(storage: ByteStorage): Promise<Omit<ReplayResult, 'seconds'>> {
    const comm = this.#comm;
    const objects = await onAll(comm, async () => {
      this.#session.log?.mustHoldData();
      return this.#read(inputObjects(this.#session));
    });
    const datasets = objects.filter(({ node }) => node.kind === 'dataset');
    const layouts = new Map<InputObject, NewLayout>();
    // One dataset after the other, so that only one index is in memory. All ranks plan the same places.
    for (const dataset of datasets) {
      const planning = planData(this.#session, dataset, this.#memory, this.#raw);
      const data = await onAll(comm, () => this.#read(about(dataset.path, planning)));
      this.#total += data.total;
      await this.#write(dataset.path, data);
      layouts.set(dataset, data.layout());
      data.release();
    }
    await onAll(comm, () => this.#raw.finish());
    const bytes = await onAll(comm, async () => (comm.rank === 0 ? this.#finish(storage, objects, layouts) : 0));
    const [written, end] = comm.allreduce(Float64Array.of(this.#raw.written, bytes), 'sum');
    return {
      groups: objects.filter(({ node }) => node.kind === 'group').length,
      datasets: datasets.length,
      copied: datasets.filter(({ logged }) => !logged).length,
      attributes: objects.reduce((sum, { attributes }) => sum + attributes.size, 0),
      elements: datasets.reduce((sum, dataset) => sum + elementsOf(this.#session, dataset), 0),
      dataBytes: written as number,
      bytes: end as number,
    };
  }

  /** The structure behind the data, and the superblock that makes it a file; gives its size. */
  async #finish(
    storage: ByteStorage,
    objects: readonly InputObject[],
    layouts: ReadonlyMap<InputObject, NewLayout>,
  ): Promise<number> {
    const structure = await this.#read(outputStructure(this.#session, objects, layouts));
    const superblock = { base: 0, end: this.#raw.end, bytes: new Uint8Array(0) };
    const appender = new Appender({ name: storage.name, superblock, power: false });
    const committer = new Committer(structure, appender, null);
    await driveAsync(storage, committer.write(committer.plan()));
    await driveAsync(storage, appender.close());
    return appender.committedEnd;
  }

  async #write(path: string, data: RawData): Promise<void> {
    const { progress, signal } = this.#options;
    const comm = this.#comm;
    for (const round of inRounds(data.pieces(), comm.size)) {
      const mine = round[comm.rank];
      const made = await onAll(comm, async () => {
        signal?.throwIfAborted();
        return mine ? this.#read(about(path, data.make(mine, this.#buffers))) : [];
      });
      const places = this.#places(data, made);
      await onAll(comm, async () => {
        for (const [i, { bytes }] of made.entries()) await this.#raw.write(bytes, places[i] as number);
      });
      for (const { bytes } of round) this.#done += bytes;
      progress?.({ bytes: this.#done, total: this.#total, dataset: path });
    }
  }

  /** Where the pieces of this rank go. Those without a place of their own get one in the order of ranks, which all ranks keep count of. */
  #places(data: RawData, made: readonly Made[]): number[] {
    const comm = this.#comm;
    const places = made.map(({ at }) => at ?? -1);
    const loose = made.flatMap(({ at, chunk, bytes }, i) => (at === null ? [{ chunk, size: bytes.length, i }] : []));
    const mine = Float64Array.from(loose.flatMap(({ chunk, size }) => [chunk, size]));
    const all =
      comm.size === 1
        ? [mine]
        : comm.allgather(new Uint8Array(mine.buffer)).map((bytes) => new Float64Array(bytes.slice().buffer));
    all.forEach((list, rank) => {
      for (let k = 0; k < list.length; k += 2) {
        const [chunk, size] = [list[k] as number, list[k + 1] as number];
        const place = this.#raw.take(size);
        data.placed(chunk, place, size);
        if (rank === comm.rank) places[(loose[k / 2] as { i: number }).i] = place;
      }
    });
    return places;
  }

  /** Blocking where that is possible: it is faster for small reads, and what was made before is written meanwhile. */
  async #read<T>(io: Io<T>): Promise<T> {
    const { storage } = this.#session;
    return storage.blocking ? driveSync(storage, io) : driveAsync(storage, io, this.#options.signal);
  }
}

/** So many at a time, one for each rank. */
function* inRounds(pieces: Iterable<Piece>, size: number): Iterable<readonly Piece[]> {
  let round: Piece[] = [];
  for (const piece of pieces) {
    round.push(piece);
    if (round.length < size) continue;
    yield round;
    round = [];
  }
  if (round.length > 0) yield round;
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
    throw inObject(error, path);
  }
}

function elementsOf({ structure }: FileSession, { logged, node }: InputObject): number {
  if (logged) return sizeOf(logged.shape);
  return elementCount(structure.dataset(node).space);
}

function checked(options: ReplayOptions): ReplayOptions {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `options must be an object, got ${String(options)}`);
  const { memory, force, progress, threads } = options;
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1))
    throw new H5LogError('OPTION', `threads must be a whole number of at least 1, got ${String(threads)}`);
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
