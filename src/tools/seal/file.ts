import type { File } from '../../api/file.ts';
import { H5LogError } from '../../base/errors.ts';
import type { Log } from '../../log/log.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { type SealedData, SealedLayouts, type SealWay } from './layouts.ts';
import { SealOutput } from './output.ts';
import { planSeal } from './plan.ts';
import { runWhole, Steps } from './steps.ts';
import { removeLog, sealAnchor, showNames } from './structure.ts';

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
    if (output.structure.root.address !== source.session.structure.root.address)
      throw new H5LogError('STORAGE', 'another program changed the file while it was being sealed');
    const sealed = await prepare(log, output, source.session.storage, options);
    // From here on there is no way back, and nothing is stopped half-way.
    await runWhole(storage, output.commit());
    return sealed;
  } finally {
    // A file that stays longer than its contents is whole all the same; what went wrong before matters more.
    await runWhole(storage, output.close()).catch(() => {});
  }
}

/** Refuses what is no log. */
export function logOf({ session }: File): Log {
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
    if (!(error instanceof H5LogError) || error.object !== undefined) throw error;
    const { code, message, offset, file } = error;
    throw new H5LogError(code, `${path}: ${message}`, { object: path, offset, file, cause: error });
  }
}
