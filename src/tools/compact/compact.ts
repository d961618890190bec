import { createTarget, realFile, subfilesOf } from '#platform';
import { File } from '../../api/file.ts';
import { sessionOf } from '../../api/handle.ts';
import { H5LogError, inFile } from '../../base/errors.ts';
import { ANY, CALLBACK, checkOptions, FLAG, type Kinds } from '../../base/options.ts';
import { solo } from '../../comm/solo.ts';
import { tableOptions } from '../../connector/options.ts';
import { type ObjectNode, OWN_ADDRESS } from '../../hdf5/graph/object-node.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { deleteAttribute, setAttribute, stateAddress } from '../../hdf5/write/attributes.ts';
import { emptyDataset, renameAttribute } from '../../hdf5/write/rewrite.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { REACH } from '../../log/format/anchor.ts';
import { PLAIN_VERSION, POINTER_VERSION } from '../../log/format/commit-record.ts';
import { COMMITS_GROUP, LOG_GROUP, LOG_NUMBER, LOGS_GROUP } from '../../log/format/log-group.ts';
import { writeLogNumber, writePublish } from '../../log/format/log-group-write.ts';
import { HIDDEN_ATTRIBUTES, ID, NOTE, NUMBER, NUMBERS, VIEW } from '../../log/format/names.ts';
import { resizeAnchor, writeNumber, writeNumbers } from '../../log/format/new-anchor.ts';
import type { Log } from '../../log/log.ts';
import { numberOf, statedNumber } from '../../log/pointers.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { type Io, runInMemory } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { drive, logOf } from '../inside.ts';
import { inputObjects } from '../replay/input-objects.ts';
import { replay } from '../replay/replay.ts';
import { MEMORY, MEMORY_OPTION, Runner } from '../run.ts';
import { copyDataset } from './dataset.ts';
import { MovedStructure } from './moved-structure.ts';
import { copyOrdinary } from './ordinary-data.ts';
import { CompactOutput } from './output.ts';

export interface CompactProgress {
  /** Datasets that are done, of how many. */
  readonly datasets: number;
  readonly total: number;
  /** The one under way. */
  readonly dataset: string;
  /** Bytes of data written so far. */
  readonly bytes: number;
}

export interface CompactOptions {
  /** Bytes of memory for data, index and table, 256 MiB without it. What a single chunk with filters needs is taken in any case. */
  memory?: number;
  /** Replace a file that exists. */
  force?: boolean;
  /** Whether the new file has checksums; it has without this. */
  checksum?: boolean;
  progress?: (done: CompactProgress) => void;
  signal?: AbortSignal;
}

const OPTIONS: Kinds<CompactOptions> = {
  memory: MEMORY_OPTION,
  force: FLAG,
  checksum: FLAG,
  progress: CALLBACK,
  signal: ANY,
};

export interface CompactResult {
  readonly datasets: number;
  /** Datasets that were not of the log: copied as they are stored. */
  readonly copied: number;
  /** Blocks in the tables of the input, with those that are hidden, and in the output. */
  readonly blocksBefore: number;
  readonly blocks: number;
  /** Of these, how many streams were copied as they are. */
  readonly kept: number;
  /** Sizes of the input, with its subfiles, and of the output. */
  readonly bytesBefore: number;
  readonly bytes: number;
  readonly seconds: number;
}

/**
 * Writes a log file anew, with nothing but what can still be seen in it: no hidden data, no old tables and structure, no earlier
 * commits. An ordinary file stays ordinary and loses what no object uses. The output is one file that appears under its name when it
 * is complete.
 *
 * ```ts
 * const { bytesBefore, bytes } = await compact('run.h5', 'run-compact.h5');
 * ```
 */
export async function compact(
  input: string | URL,
  output: string | URL,
  options: CompactOptions = {},
): Promise<CompactResult> {
  const { memory = MEMORY, force = false, signal } = checkOptions('compact', options, OPTIONS);
  const began = performance.now();
  signal?.throwIfAborted();
  const file = await File.open(input, { connector: 'log', indexLimit: Math.floor(memory / 4) });
  try {
    const { log, storage } = sessionOf(file);
    if (!/^https?:/i.test(String(input)) && realFile(input) === realFile(output))
      throw new H5LogError('OPTION', `${String(output)} is the input itself; a file cannot be compacted into itself`);
    if (!log) return await compactOrdinary(file, input, output, options);
    log.mustHoldData();
    const target = createTarget(output, !force);
    try {
      const made = await new Runner(storage, signal).run(new Compaction(log, target.storage, memory, options).run());
      const bytes = log.published === null ? made.bytes : await published(target.storage);
      await target.storage.close();
      signal?.throwIfAborted();
      target.publish(false);
      // A file that had subfiles may have been replaced.
      subfilesOf(output).tidy(0);
      let bytesBefore = 0;
      for (const each of sessionOf(file).storages) bytesBefore += await each.size();
      return { ...made, bytes, bytesBefore, seconds: (performance.now() - began) / 1000 };
    } catch (error) {
      await target.storage.close();
      target.discard();
      throw inFile(error, storage.name);
    } finally {
      target.release();
    }
  } finally {
    await file.close();
  }
}

/** Makes other programs see the output, as they saw the input; gives its size. */
async function published(storage: ByteStorage): Promise<number> {
  const file = await File.open(storage, { mode: 'r+', comm: solo() });
  try {
    await file.publish();
    return logOf(file)?.main.end ?? 0;
  } finally {
    await file.close();
  }
}

/** Makes a dataset one that was never published. Its shape is in the dataspace, if another program has changed it. */
function hide(structure: Structure, node: ObjectNode, { shape }: LogDataset): void {
  emptyDataset(structure, node);
  resizeAnchor(structure, node, shape);
  deleteAttribute(structure, node, VIEW);
  for (const name of HIDDEN_ATTRIBUTES)
    if (node.attributes.has(name.slice(1))) renameAttribute(structure, node, name.slice(1), name);
}

/** A file without a log is written anew as replay does it: nothing of it but what objects need. */
async function compactOrdinary(
  file: File,
  input: string | URL,
  output: string | URL,
  { memory, force, signal, progress }: CompactOptions,
): Promise<CompactResult> {
  const { storage } = sessionOf(file);
  const objects = await drive(file, inputObjects(sessionOf(file)));
  const total = objects.filter(({ node }) => node.kind === 'dataset').length;
  const seen = new Set<string>();
  const { datasets, bytes, seconds } = await replay(input, output, {
    ...(memory !== undefined && { memory }),
    ...(force !== undefined && { force }),
    ...(signal && { signal }),
    progress: ({ dataset, bytes: written }) => {
      seen.add(dataset);
      progress?.({ datasets: seen.size - 1, total, dataset, bytes: written });
    },
  });
  const none = { datasets: 0, blocksBefore: 0, blocks: 0, kept: 0 };
  return { ...none, copied: datasets, bytesBefore: await storage.size(), bytes, seconds };
}

class Compaction {
  readonly #log: Log;
  readonly #storage: ByteStorage;
  readonly #memory: number;
  readonly #options: CompactOptions;

  /** `storage` gets the output; the generators are run on the input. */
  constructor(log: Log, storage: ByteStorage, memory: number, options: CompactOptions) {
    this.#log = log;
    this.#storage = storage;
    this.#memory = memory;
    this.#options = options;
  }

  *run(): Io<Omit<CompactResult, 'bytesBefore' | 'seconds'>> {
    const { progress, checksum = true } = this.#options;
    const own = [LOG_GROUP, LOGS_GROUP, COMMITS_GROUP];
    const moved = yield* MovedStructure.load(this.#log.structure.root.address, own);
    const byNumber = yield* this.#log.everyDataset();
    const logged: { node: ObjectNode; path: string; dataset: LogDataset }[] = [];
    const ordinary: { node: ObjectNode; path: string }[] = [];
    for (const { node, path } of moved.objects) {
      if (node.kind !== 'dataset') continue;
      const id = node.attributes.has(ID) ? runInMemory(moved.structure.attribute(node, ID)) : undefined;
      const dataset = id instanceof Int32Array ? byNumber.get(id[0] as number) : undefined;
      if (dataset?.node.address === node.address) logged.push({ node, path, dataset });
      else ordinary.push({ node, path });
    }
    // A dataset with a number that is not in the log is a copy that another program made: without the number it stays ordinary.
    for (const { node } of ordinary) if (node.attributes.has(ID)) deleteAttribute(moved.structure, node, ID);
    for (const { node } of moved.objects)
      if (node.attributes.has(OWN_ADDRESS)) deleteAttribute(moved.structure, node, OWN_ADDRESS);
    moved.structure.findOwners = () => {};
    for (const [i, { node, dataset }] of logged.entries()) {
      stateAddress(moved.structure, node);
      runInMemory(setAttribute(moved.structure, node, ID, 'int32', simpleSpace([1]), Int32Array.of(i)));
      for (const name of [REACH, NOTE]) if (node.attributes.has(name)) deleteAttribute(moved.structure, node, name);
      if (node.attributes.has(VIEW)) hide(moved.structure, node, dataset);
    }
    this.#numberObjects(moved);
    const numbers = this.#renumber(moved, logged);
    const { publishState } = this.#log;
    if (publishState) writePublish(moved.structure, { ...publishState, sequence: null, copied: 0, isTree: false });
    const table = tableOptions({});
    const tableLimit = Math.floor(this.#memory / 4);
    const version = logged.some(({ dataset }) => dataset.elements.points) ? POINTER_VERSION : PLAIN_VERSION;
    const how = { table, checksum, tableLimit, version };
    const output = new CompactOutput(this.#storage, moved.structure, logged.length, how);
    const total = logged.length + ordinary.length;
    const totals = { blocksBefore: 0, blocks: 0, kept: 0, bytes: 0 };
    let datasets = 0;
    const done = (path: string, bytes: number): void => {
      totals.bytes += bytes;
      progress?.({ datasets, total, dataset: path, bytes: totals.bytes });
    };
    // Before the first commit, which brings the structure: that has to know where they are.
    for (const { node, path } of ordinary) {
      yield* copyOrdinary(moved, node, path, output, (bytes) => done(path, bytes));
      datasets++;
    }
    for (const [id, { dataset, path }] of logged.entries()) {
      const made = yield* copyDataset(
        dataset,
        { id, logNumber: numbers[id] as number },
        output,
        this.#memory,
        (bytes) => done(path, bytes),
      );
      totals.blocksBefore += made.blocksBefore;
      totals.blocks += made.blocks;
      totals.kept += made.kept;
      datasets++;
      done(path, 0);
    }
    yield* output.finish();
    return { datasets: logged.length, copied: ordinary.length, ...totals, bytes: output.size };
  }

  /** Gives numbers to objects that other programs refer to. Nobody knows objects by the addresses that they had in the input. */
  #numberObjects({ structure, objects }: MovedStructure): void {
    const { pointers, structure: input } = this.#log;
    let last = statedNumber(structure, structure.root, NUMBERS);
    for (const { node } of objects) {
      const { address } = node;
      const isReferred = structure.referred.has(address);
      const before = input.loader.nodes.get(address);
      const number = (before && numberOf(input, before)) || (isReferred ? ++last : 0);
      if (number > 0) writeNumber(structure, node, [number]);
      else if (node.attributes.has(NUMBER)) deleteAttribute(structure, node, NUMBER);
      if (isReferred) pointers.know(address, number);
    }
    if (last > 0) writeNumbers(structure, structure.root, [last]);
    // A commit gives objects the addresses that they leave and that layouts have: those of the input may be others' in the output.
    structure.referred = new Map();
    structure.left = new Set();
  }

  /** Logs are numbered by their first datasets, whose numbers are new. Gives the number of the log of each dataset. */
  #renumber(
    { structure, objects }: MovedStructure,
    logged: readonly { readonly node: ObjectNode; readonly dataset: LogDataset }[],
  ): number[] {
    const { layout } = this.#log;
    if (layout?.scope !== 'group') return logged.map((_, id) => (layout?.scope === 'dataset' ? id : 0));
    const numbers = new Map<number, number>();
    logged.forEach(({ dataset }, id) => {
      if (!numbers.has(dataset.logNumber)) numbers.set(dataset.logNumber, id);
    });
    for (const { node } of objects) {
      const known = node.attributes.has(LOG_NUMBER) ? runInMemory(structure.attribute(node, LOG_NUMBER)) : undefined;
      const number = known instanceof Int32Array ? numbers.get(known[0] as number) : undefined;
      if (number !== undefined) writeLogNumber(structure, node, number);
      else if (known !== undefined) deleteAttribute(structure, node, LOG_NUMBER);
    }
    return logged.map(({ dataset }) => numbers.get(dataset.logNumber) as number);
  }
}
