import { createTarget, openTarget, realFile } from '#platform';
import { File } from '../../api/file.ts';
import { sessionOf } from '../../api/handle.ts';
import { H5LogError, inFile, inObject } from '../../base/errors.ts';
import { readSuperblock } from '../../hdf5/format/superblock.ts';
import type { Log } from '../../log/log.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { driveAsync, type Io } from '../../storage/io.ts';
import type { ByteStorage, WriteTarget } from '../../storage/storage.ts';
import { type SealedData, SealedLayouts, type SealWay } from './layouts.ts';
import { SealOutput } from './output.ts';
import { planSeal } from './plan.ts';
import { runWhole, Steps } from './steps.ts';
import { removeLog, sealAnchor, showNames } from './structure.ts';

export type { SealWay } from './layouts.ts';

/** Bytes that are copied at a time. */
const WINDOW = 8 * 2 ** 20;

export interface SealOptions {
  /** Leave the file as it is and write a sealed copy there, replacing what is there. */
  to?: string | URL;
  progress?: (done: SealProgress) => void;
  signal?: AbortSignal;
}

export interface SealResult {
  /** The sealed file. */
  readonly path: string;
  readonly datasets: readonly SealedDataset[];
  /** Bytes of data that were written anew; not those of a copy. */
  readonly moved: number;
}

/**
 * Makes an ordinary HDF5 file of a log file. Data stays where it is wherever HDF5 can point to it: the file changes as a whole,
 * with one commit, and is the log that it was until then.
 *
 * ```ts
 * const { moved, datasets } = await seal('run.h5');
 * ```
 */
export async function seal(path: string | URL, options: SealOptions = {}): Promise<SealResult> {
  const { to, signal } = checked(options);
  signal?.throwIfAborted();
  if (to !== undefined && realFile(path) === realFile(to))
    throw new H5LogError('OPTION', `${String(to)} is the file itself; without 'to' it is sealed in place`);
  const target = to === undefined ? openTarget(path) : createTarget(to, false);
  const isCopy = to !== undefined;
  try {
    const datasets = isCopy ? await sealCopy(path, target, options) : await sealHere(path, target.storage, options);
    await target.storage.close();
    if (isCopy) target.publish(true);
    return {
      path: target.storage.name,
      datasets,
      moved: datasets.reduce((sum, { moved }) => sum + moved, 0),
    };
  } catch (error) {
    await target.storage.close();
    if (isCopy) target.discard();
    throw inFile(error, String(path));
  } finally {
    target.release();
  }
}

async function sealHere(path: string | URL, storage: ByteStorage, options: SealOptions): Promise<SealedDataset[]> {
  const source = await File.open(path, { connector: 'log' });
  try {
    if (logOf(source).hasSubfiles)
      throw new H5LogError(
        'UNSUPPORTED',
        'the data is in subfiles: an ordinary file cannot be made of it in place; seal it to another file (to)',
      );
    return await sealFile(source, storage, options);
  } finally {
    await source.close();
  }
}

async function sealCopy(path: string | URL, target: WriteTarget, options: SealOptions): Promise<SealedDataset[]> {
  const { storage } = target;
  const given = await File.open(path, { connector: 'log' });
  try {
    const isElsewhere = logOf(given).hasSubfiles;
    await copyState(sessionOf(given).storage, storage, options.signal);
    // Without subfiles the copy has all the data, and is sealed as it is, whatever happens to the file meanwhile.
    const source = isElsewhere ? given : await File.open(storage, { connector: 'log' });
    return await sealFile(source, storage, options);
  } finally {
    await given.close();
  }
}

/** Copies the last committed state; a file that is being written may grow meanwhile, and only its superblock changes. */
async function copyState(from: ByteStorage, to: ByteStorage, signal: AbortSignal | undefined): Promise<void> {
  const superblock = await driveAsync(from, readSuperblock(), signal);
  const end = superblock.base + superblock.end;
  function* write(bytes: Uint8Array, offset: number): Io<void> {
    yield { op: 'write', parts: [bytes], offset };
  }
  const window = new Uint8Array(Math.min(WINDOW, end));
  for (let at = 0; at < end; at += window.length) {
    signal?.throwIfAborted();
    const part = window.subarray(0, Math.min(window.length, end - at));
    const count = await from.read(part, at);
    if (count < part.length)
      throw new H5LogError('STORAGE', `the file ends at byte ${at + count}, before its ${end} bytes`);
    await driveAsync(to, write(part, at));
  }
  await driveAsync(to, write(superblock.bytes, superblock.base));
}

function checked(options: SealOptions): SealOptions {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `options must be an object, got ${String(options)}`);
  const { to, progress } = options;
  if (to !== undefined && typeof to !== 'string' && !(to instanceof URL))
    throw new H5LogError('OPTION', `to must be a path, got ${String(to)}`);
  if (progress !== undefined && typeof progress !== 'function')
    throw new H5LogError('OPTION', `progress must be a function, got ${String(progress)}`);
  return options;
}

/** What became of a dataset. */
export interface SealedDataset {
  readonly path: string;
  readonly way: SealWay;
  /** Bytes of data that were written anew. */
  readonly moved: number;
  /** Chunks, mappings or blocks that it consists of now. */
  readonly pieces: number;
}

export interface SealProgress {
  /** Datasets done, of how many. */
  readonly done: number;
  readonly total: number;
  /** The one under way, or the last one. */
  readonly dataset: string;
  /** Bytes moved so far. */
  readonly moved: number;
}

export interface SealSteps {
  readonly progress?: ((done: SealProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes the file in `storage` an ordinary one. `source` is the same state of it, or of the file it is a copy of, open for
 * reading. One commit does it all: until then the file is the log that it was.
 */
export async function sealFile(source: File, storage: ByteStorage, options: SealSteps): Promise<SealedDataset[]> {
  const log = logOf(source);
  const output = await runWhole(storage, SealOutput.open(storage));
  try {
    if (output.structure.root.address !== sessionOf(source).structure.root.address)
      throw new H5LogError('STORAGE', 'another program changed the file while it was being sealed');
    const sealed = await prepare(log, output, sessionOf(source).storage, options);
    // From here on there is no way back, and nothing is stopped half-way.
    await runWhole(storage, output.commit());
    return sealed;
  } finally {
    // A file that stays longer than its contents is whole all the same; what went wrong before matters more.
    await runWhole(storage, output.close()).catch(() => {});
  }
}

/** Refuses what is no log. */
function logOf(file: File): Log {
  const session = sessionOf(file);
  const { log } = session;
  if (!log) {
    const message = `${session.storage.name} has no log: it is ordinary HDF5 already, and there is nothing to seal`;
    throw new H5LogError('UNSUPPORTED', message, { file: session.storage.name });
  }
  log.mustHoldData();
  return log;
}

/** Everything but the commit: data is moved, and the structure is as it shall be. */
async function prepare(
  log: Log,
  output: SealOutput,
  from: ByteStorage,
  { progress, signal }: SealSteps,
): Promise<SealedDataset[]> {
  const steps = new Steps(signal);
  const datasets = [...(await steps.run(from, log.everyDataset())).values()];
  const sealed: SealedDataset[] = [];
  let moved = 0;
  let path = '';
  const report = (): void => progress?.({ done: sealed.length, total: datasets.length, dataset: path, moved });
  const layouts = new SealedLayouts(output, from, steps, (bytes) => {
    moved += bytes;
    report();
  });
  const { structure } = output;
  removeLog(structure, log.main.counts);
  showNames(structure);
  for (const dataset of datasets) {
    path = dataset.path;
    const made = await about(path, sealOne(dataset));
    sealed.push({ path, way: made.way, moved: made.moved, pieces: made.pieces });
    report();
  }
  return sealed;

  async function sealOne(dataset: LogDataset): Promise<SealedData> {
    const node = structure.loader.nodes.get(dataset.node.address);
    if (!node) throw new H5LogError('FORMAT', 'the dataset is not where it was');
    const index = await steps.run(from, log.tables.index(dataset, null, log.tables.committed));
    const made = await layouts.make(dataset, index, planSeal(dataset, index, !log.hasSubfiles));
    sealAnchor(structure, node, dataset, made);
    return made;
  }
}

/** Says which dataset it was. */
async function about<R>(path: string, work: Promise<R>): Promise<R> {
  try {
    return await work;
  } catch (error) {
    throw inObject(error, path);
  }
}
