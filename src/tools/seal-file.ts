import { H5LogError } from '../errors.ts';
import type { File } from '../file.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset } from '../log/log-dataset.ts';
import { driveAsync, driveSync, type Io, within } from '../storage/drive.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { SealedLayouts, type SealWay } from './seal-data.ts';
import { SealOutput } from './seal-output.ts';
import { planSeal } from './seal-plan.ts';
import { removeLog, sealAnchor, showNames } from './seal-structure.ts';

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
  /** The one that was done last. */
  readonly dataset: string;
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
export async function sealFile(source: File, storage: ByteStorage, steps: SealSteps): Promise<SealedDataset[]> {
  const log = logOf(source);
  const output = await run(storage, SealOutput.open(storage.name));
  try {
    if (output.structure.root.address !== source.session.structure.root.address)
      throw new H5LogError('STORAGE', 'another program changed the file while it was being sealed');
    const sealed = await prepare(log, output, source.session.storage, storage, steps);
    // From here on there is no way back, and nothing is stopped half-way.
    await run(storage, output.commit());
    return sealed;
  } finally {
    // A file that stays longer than its contents is whole all the same; what went wrong before matters more.
    await run(storage, output.close()).catch(() => {});
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

async function prepare(
  log: Log,
  output: SealOutput,
  from: ByteStorage,
  storage: ByteStorage,
  { progress, signal }: SealSteps,
): Promise<SealedDataset[]> {
  const layouts = new SealedLayouts(output, from);
  const datasets = await run(from, log.everyDataset(), signal);
  const sealed: SealedDataset[] = [];
  const { structure } = output;
  removeLog(structure, log.main.counts);
  showNames(structure);
  let moved = 0;
  for (const dataset of datasets.values()) {
    signal?.throwIfAborted();
    const one = await run(storage, sealDataset(dataset, output, layouts, from), signal);
    sealed.push(one);
    moved += one.moved;
    progress?.({ done: sealed.length, total: datasets.size, dataset: one.path, moved });
  }
  return sealed;
}

function* sealDataset(
  dataset: LogDataset,
  output: SealOutput,
  layouts: SealedLayouts,
  from: ByteStorage,
): Io<SealedDataset> {
  const { log, path } = dataset;
  const { structure } = output;
  const node = structure.loader.nodes.get(dataset.node.address);
  if (!node) throw new H5LogError('FORMAT', `${path} is not where it was`, { object: path });
  const index = yield* within(from, log.tables.index(dataset, null, log.tables.committed));
  const made = yield* layouts.make(dataset, index, planSeal(dataset, index, !log.hasSubfiles));
  sealAnchor(structure, node, dataset, made);
  const { way, moved, pieces } = made;
  return { path, way, moved, pieces };
}

/** Blocking where that is possible: most of it is many small reads. */
async function run<T>(storage: ByteStorage, io: Io<T>, signal?: AbortSignal): Promise<T> {
  return storage.blocking ? driveSync(storage, io) : driveAsync(storage, io, signal);
}
