import { createTarget, nodeStorage, realFile } from '#platform';
import { File } from '../../api/file.ts';
import { sessionOf } from '../../api/handle.ts';
import { H5LogError, inFile, inObject } from '../../base/errors.ts';
import { ANY, CALLBACK, COUNT, checkOptions, FLAG, type Kinds, oneOf } from '../../base/options.ts';
import { onAllRanksAsync } from '../../comm/agreement.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { sameCall } from '../../comm/same-call.ts';
import { solo } from '../../comm/solo.ts';
import type { FileSession } from '../../connector/file-session.ts';
import { SUPERBLOCK_SIZE } from '../../hdf5/format/superblock.ts';
import type { NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { Appender } from '../../hdf5/write/appender.ts';
import { Committer } from '../../hdf5/write/commit.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { plainTarget, type WriteTarget } from '../../storage/storage.ts';
import { Output } from '../output.ts';
import { MEMORY, MEMORY_OPTION, Runner } from '../run.ts';
import { type InputObject, inputObjects } from './input-objects.ts';
import { LoggedData } from './logged-data.ts';
import type { ReplayOptions, ReplayResult } from './options.ts';
import { LoggedPointing, PointingData, pointsIntoFile, type TargetOf } from './pointing-data.ts';
import { Buffers, type Made, type Piece, type RawData, type Space } from './raw-data.ts';
import { StoredData } from './stored-data.ts';
import { outputStructure } from './structure.ts';
import { replayOnThreads } from './threads.ts';

const OPTIONS: Kinds<ReplayOptions> = {
  memory: MEMORY_OPTION,
  force: FLAG,
  threads: COUNT,
  comm: ANY,
  libver: oneOf('latest', 'earliest'),
  filterModules: ANY,
  progress: CALLBACK,
  signal: ANY,
};

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
  const began = performance.now();
  const { comm = solo(), threads = 1, memory = MEMORY, force = false, signal } = options ?? {};
  await onAllRanksAsync(comm, async () => {
    checkOptions('replay', options, OPTIONS);
    signal?.throwIfAborted();
    refuseSame(input, output);
  });
  if (threads > 1 && comm.size === 1) return replayOnThreads(threads, input, output, { ...options, memory });
  if (comm.size > 1)
    sameCall(comm, 'replay', () => ({
      input: String(input),
      output: String(output),
      memory,
      force,
      libver: options.libver,
    }));
  // A larger index of a dataset's blocks is not kept: blocks are looked up for each piece.
  const opening = () => File.open(input, { connector: 'log', indexLimit: memory, comm: solo() });
  const file = await onAllRanksAsync(comm, opening, (opened) => opened.close());
  try {
    const target = await outputFor(comm, output, force);
    const writer = new Runner(target.storage);
    try {
      const made = await new Replay(sessionOf(file), writer, memory, comm, options).run();
      await onAllRanksAsync(comm, () => target.storage.close());
      await onAllRanksAsync(comm, async () => {
        signal?.throwIfAborted();
        target.publish(false);
      });
      return { ...made, seconds: (performance.now() - began) / 1000 };
    } catch (error) {
      await writer.settle();
      await giveUp(target);
      throw inFile(error, sessionOf(file).storage.name);
    } finally {
      target.release();
    }
  } finally {
    await file.close();
  }
}

/** Rank 0 creates the output; the other ranks open it to write their part. */
async function outputFor(comm: Communicator, output: string | URL, force: boolean): Promise<WriteTarget> {
  const made = await onAllRanksAsync(comm, async () => (comm.rank === 0 ? createTarget(output, !force) : null));
  if (comm.size === 1) return made as WriteTarget;
  const at = new TextDecoder().decode(comm.bcast(made ? new TextEncoder().encode(made.at) : null, 0));
  return onAllRanksAsync(
    comm,
    async () => made ?? plainTarget(nodeStorage(at, 'r+', String(output))),
    async (target) => {
      await giveUp(target);
      target.release();
    },
  );
}

/** Removes the unfinished output; only the rank that created it does. */
async function giveUp(target: WriteTarget): Promise<void> {
  await target.storage.close();
  target.discard();
}

class Replay {
  readonly #session: FileSession;
  readonly #reader: Runner;
  readonly #writer: Runner;
  readonly #output = new Output(SUPERBLOCK_SIZE);
  readonly #memory: number;
  readonly #comm: Communicator;
  readonly #options: ReplayOptions;
  readonly #buffers = new Buffers();
  #done = 0;
  #total = 0;

  constructor(session: FileSession, writer: Runner, memory: number, comm: Communicator, options: ReplayOptions) {
    this.#session = session;
    this.#reader = new Runner(session.storage, options.signal);
    this.#writer = writer;
    this.#memory = memory;
    this.#comm = comm;
    this.#options = options;
  }

  async run(): Promise<Omit<ReplayResult, 'seconds'>> {
    const comm = this.#comm;
    const objects = await onAllRanksAsync(comm, async () => {
      this.#session.log?.mustHoldData();
      return this.#reader.run(inputObjects(this.#session));
    });
    const datasets = objects.filter(({ node }) => node.kind === 'dataset');
    const layouts = new Map<InputObject, NewLayout>();
    const pointing = new Map<InputObject, PointingData | LoggedPointing>();
    // One dataset after the other, so that only one index is in memory. All ranks reserve the same file offsets.
    for (const dataset of datasets) {
      const late = await onAllRanksAsync(comm, () =>
        this.#reader.run(inDataset(dataset.path, this.#pointing(dataset))),
      );
      if (late) {
        this.#total += late.size;
        pointing.set(dataset, late);
        continue;
      }
      const planning = planData(this.#session, dataset, this.#memory, this.#output);
      const data = await onAllRanksAsync(comm, () => this.#reader.run(inDataset(dataset.path, planning)));
      this.#total += data.total;
      await this.#write(dataset.path, data);
      layouts.set(dataset, data.layout());
      data.release();
    }
    await onAllRanksAsync(comm, async () => {
      await this.#writer.run(this.#output.flush());
      await this.#writer.finish();
    });
    const bytes = await onAllRanksAsync(comm, async () =>
      comm.rank === 0 ? this.#finish(objects, layouts, pointing) : 0,
    );
    const [written, end] = comm.allreduce(Float64Array.of(this.#output.written, bytes), 'sum');
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

  /** The data of a dataset that points into the file, which is copied last and by one rank; null for others. */
  *#pointing(object: InputObject): Io<PointingData | LoggedPointing | null> {
    const { structure } = this.#session;
    if (object.logged)
      return object.logged.elements.points ? yield* LoggedPointing.plan(object.logged, this.#memory) : null;
    const parts = structure.dataset(object.node);
    if (!pointsIntoFile(object, parts)) return null;
    return yield* PointingData.plan(structure.loader.file, object.path, parts);
  }

  /**
   * Writes data that points into the file, appends the structure, writes the superblock, and returns the size of the file.
   * References hold the addresses of objects. A first structure, with layouts that only have the right length, tells them; the data
   * goes behind it, and the structure is made again with the right layouts.
   */
  async #finish(
    objects: readonly InputObject[],
    layouts: Map<InputObject, NewLayout>,
    pointing: ReadonlyMap<InputObject, PointingData | LoggedPointing>,
  ): Promise<number> {
    const build = () => this.#reader.run(outputStructure(this.#session, objects, layouts, this.#isEarliest));
    const copy = async (refers: boolean, targetOf: TargetOf): Promise<void> => {
      for (const [object, data] of pointing)
        if (data.refers === refers) layouts.set(object, await this.#copyPointing(data, targetOf));
    };
    await copy(false, () => undefined);
    await this.#writer.run(this.#output.flush());
    const at = this.#output.take(0);
    let end = 0;
    const late = [...pointing].filter(([, { refers }]) => refers);
    if (late.length > 0) {
      for (const [object, data] of late) layouts.set(object, data.placeholder());
      const { structure, made } = await build();
      end = this.#committer(structure, at).plan().append.end;
      this.#output.end = end;
      const { nodes } = this.#session.structure.loader;
      await copy(true, (address) => {
        const node = nodes.get(address);
        return node && made.get(node);
      });
      await this.#writer.run(this.#output.flush());
    }
    const committer = this.#committer((await build()).structure, at);
    const planned = committer.plan();
    const { append } = planned;
    if (end > 0 && append.end !== end)
      throw new H5LogError('UNSUPPORTED', 'references cannot be copied: the objects that they lead to moved');
    await this.#writer.run(
      committer.write({ ...planned, append: { ...append, end: Math.max(append.end, end && this.#output.end) } }),
    );
    await this.#writer.run(committer.appender.close());
    return committer.appender.committedEnd;
  }

  get #isEarliest(): boolean {
    return this.#options.libver === 'earliest';
  }

  #committer(structure: Structure, at: number): Committer {
    const superblock = { base: 0, end: at, bytes: new Uint8Array(0) };
    const appender = new Appender({
      name: this.#writer.storage.name,
      superblock,
      power: false,
      version: this.#isEarliest ? 2 : 3,
    });
    return new Committer(structure, appender, null);
  }

  async #copyPointing(data: PointingData | LoggedPointing, targetOf: TargetOf): Promise<NewLayout> {
    const { progress, signal } = this.#options;
    const { file } = this.#session.structure.loader;
    const ways = { file, reader: this.#reader, writer: this.#writer, output: this.#output };
    try {
      return await data.copy(ways, targetOf, (bytes) => {
        signal?.throwIfAborted();
        this.#done += bytes;
        progress?.({ bytes: this.#done, total: this.#total, dataset: data.path });
      });
    } catch (error) {
      throw inObject(error, data.path);
    }
  }

  async #write(path: string, data: RawData): Promise<void> {
    const { progress, signal } = this.#options;
    const comm = this.#comm;
    for (const round of inRounds(data.pieces(), comm.size)) {
      const mine = round[comm.rank];
      const made = await onAllRanksAsync(comm, async () => {
        signal?.throwIfAborted();
        return mine ? this.#reader.run(inDataset(path, data.make(mine, this.#buffers))) : [];
      });
      const offsets = this.#offsets(data, made);
      await onAllRanksAsync(comm, async () => {
        for (const [i, { bytes }] of made.entries())
          await this.#writer.run(this.#output.write(bytes, offsets[i] as number));
        for (const { bytes } of round) this.#done += bytes;
        progress?.({ bytes: this.#done, total: this.#total, dataset: path });
      });
    }
  }

  /** File offsets for the pieces of this rank. All ranks reserve space for the filtered chunks of all ranks, in rank order. */
  #offsets(data: RawData, made: readonly Made[]): number[] {
    const comm = this.#comm;
    const offsets = made.map(({ at }) => at ?? -1);
    const loose = made.flatMap(({ at, chunk, bytes }, i) => (at === null ? [{ chunk, size: bytes.length, i }] : []));
    const mine = Float64Array.from(loose.flatMap(({ chunk, size }) => [chunk, size]));
    const all =
      comm.size === 1
        ? [mine]
        : comm.allgather(new Uint8Array(mine.buffer)).map((bytes) => new Float64Array(bytes.slice().buffer));
    all.forEach((list, rank) => {
      for (let k = 0; k < list.length; k += 2) {
        const [chunk, size] = [list[k] as number, list[k + 1] as number];
        const at = this.#output.take(size);
        data.placed(chunk, at, size);
        if (rank === comm.rank) offsets[(loose[k / 2] as { i: number }).i] = at;
      }
    });
    return offsets;
  }
}

/** Deals the pieces out: in each round at most one to each rank. */
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
  const { structure } = session;
  const external = node.message(MESSAGE.externalFiles);
  return yield* StoredData.plan(structure.loader.file, path, structure.dataset(node), external, memory, space);
}

/** Adds the path of the dataset to errors. */
function* inDataset<T>(path: string, io: Io<T>): Io<T> {
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

function refuseSame(input: string | URL, output: string | URL): void {
  if (/^https?:\/\//i.test(String(input)) || realFile(input) !== realFile(output)) return;
  throw new H5LogError('OPTION', `${String(output)} is the input itself; a file cannot be replayed into itself`);
}
