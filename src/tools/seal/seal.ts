import { createTarget, openTarget, realFile } from '#platform';
import { File } from '../../api/file.ts';
import { sessionOf } from '../../api/handle.ts';
import { H5LogError, inFile, inObject } from '../../base/errors.ts';
import { ANY, CALLBACK, checkOptions, FLAG, PATH } from '../../base/options.ts';
import { solo } from '../../comm/solo.ts';
import { hasSubfiles } from '../../connector/open-log.ts';
import { PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import { readSuperblock } from '../../hdf5/format/superblock.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { chunked } from '../../hdf5/layouts/new-dataset.ts';
import { openStructure } from '../../hdf5/open.ts';
import { prepareWriting } from '../../hdf5/prepare-writing.ts';
import { Appender } from '../../hdf5/write/appender.ts';
import { Committer } from '../../hdf5/write/commit.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { readCounts } from '../../log/format/log-group.ts';
import { settleScales } from '../../log/format/scales.ts';
import type { PublishWay } from '../../log/format/view.ts';
import type { Log } from '../../log/log.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { type Candidate, type MadeLayout, Publisher } from '../../log/publish/publish.ts';
import { LogStore } from '../../log/store.ts';
import { type Io, onStorage } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { storedBlocks } from '../committed-blocks.ts';
import { logOf, readingLog } from '../inside.ts';
import { copyBytes, Output } from '../output.ts';
import { Runner } from '../run.ts';
import { planSealing } from './plan.ts';
import { removeLog, sealAnchor, showNames, takeAnchor, takeNumbers } from './structure.ts';
import { VirtualLayouts } from './virtual-layouts.ts';

/** How a dataset became ordinary. */
export type SealWay = PublishWay;

export interface SealOptions {
  /** Write a sealed copy there, and leave the file as it is. */
  to?: string | URL;
  /** Replace `to` if it exists. */
  force?: boolean;
  progress?: (done: SealProgress) => void;
  signal?: AbortSignal;
}

export interface SealResult {
  /** The sealed file. */
  readonly path: string;
  readonly datasets: readonly SealedDataset[];
  /** Bytes of data that were copied inside the file; those of `to` do not count. */
  readonly moved: number;
}

/** What became of a dataset. */
export interface SealedDataset {
  readonly path: string;
  readonly way: SealWay;
  /** Bytes of data that were copied. */
  readonly moved: number;
  /** Chunks, mappings or blocks that it consists of now. */
  readonly pieces: number;
}

export interface SealProgress {
  /** Datasets done, of how many. */
  readonly done: number;
  readonly total: number;
  /** The dataset that is being sealed, or the last one. */
  readonly dataset: string;
  /** Bytes copied so far. */
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
  const {
    to,
    force = false,
    signal,
  } = checkOptions('seal', options, {
    to: PATH,
    force: FLAG,
    progress: CALLBACK,
    signal: ANY,
  });
  signal?.throwIfAborted();
  if (to !== undefined && realFile(path) === realFile(to))
    throw new H5LogError('OPTION', `${String(to)} is the file itself; without 'to' it is sealed in place`);
  const target = to === undefined ? openTarget(path) : createTarget(to, !force);
  const { storage } = target;
  try {
    const datasets = to === undefined ? await sealFile(storage, options) : await sealCopy(path, storage, options);
    await storage.close();
    if (to !== undefined) target.publish(true);
    return { path: storage.name, datasets, moved: datasets.reduce((sum, { moved }) => sum + moved, 0) };
  } catch (error) {
    await storage.close();
    if (to !== undefined) target.discard();
    throw inFile(error, String(path));
  } finally {
    target.release();
  }
}

/** Seals a copy of the last commit; the file may be written meanwhile. */
async function sealCopy(path: string | URL, to: ByteStorage, options: SealOptions): Promise<SealedDataset[]> {
  const source = await File.open(path, { connector: 'log' });
  try {
    const { storage } = sessionOf(source);
    const log = logOf(source) ?? notALog(storage.name);
    log.mustHoldData();
    const runner = new Runner(to, options.signal);
    await runner.run(copyCommitted(storage));
    await runner.finish();
    // Without subfiles the copy has all the data.
    return await sealFile(to, options, log.hasSubfiles ? { log, storage } : null);
  } finally {
    await source.close();
  }
}

/** Copies the last committed state. A writer only appends to it and changes its superblock, which therefore comes last. */
function* copyCommitted(from: ByteStorage): Io<void> {
  const { base, end, bytes } = yield* onStorage(from, readSuperblock());
  yield* copyBytes(from, base + end);
  yield { op: 'write', parts: [bytes], offset: base };
}

/** A log with its data in subfiles, and the storage of the file that they belong to. */
interface Elsewhere {
  readonly log: Log;
  readonly storage: ByteStorage;
}

/**
 * Makes the file in `storage` an ordinary one. One commit does it all: until then the file is the log that it was. `elsewhere` has
 * the data if it is in subfiles of the file that `storage` is a copy of.
 */
export async function sealFile(
  storage: ByteStorage,
  options: Pick<SealOptions, 'progress' | 'signal'>,
  elsewhere: Elsewhere | null = null,
): Promise<SealedDataset[]> {
  const runner = new Runner(storage, options.signal);
  const sealing = await runner.run(Sealing.open(storage.name, elsewhere));
  try {
    const sealed = await runner.run(sealing.prepare(options.progress));
    await runner.finish();
    // There is no way back from here on, so no signal stops it half-way.
    await new Runner(storage).run(sealing.commit());
    return sealed;
  } finally {
    // A file that stays longer than its contents is whole all the same; what went wrong before matters more.
    await new Runner(storage).run(sealing.close()).catch(() => {});
  }
}

/** A log that becomes ordinary: what is copied goes to the end of its file. */
class Sealing {
  readonly structure: Structure;
  readonly #log: Log;
  /** null: the file that is sealed. */
  readonly #logStorage: ByteStorage | null;
  readonly #committer: Committer;
  readonly #output: Output;
  readonly #virtual: VirtualLayouts;
  #targets: ReadonlyMap<number, ObjectNode> = new Map();
  #onAppend: () => void = () => {};
  /** Bytes that were appended. */
  #moved = 0;

  private constructor(log: Log, logStorage: ByteStorage | null, committer: Committer) {
    const { structure, appender } = committer;
    this.structure = structure;
    this.#log = log;
    this.#logStorage = logStorage;
    this.#committer = committer;
    this.#output = new Output(appender.base + appender.position, { appender });
    this.#virtual = new VirtualLayouts(structure, appender.base);
  }

  static *open(name: string, elsewhere: Elsewhere | null): Io<Sealing> {
    const opened = yield* openStructure();
    const log = elsewhere?.log ?? (yield* logIn(opened.structure, name));
    yield* prepareWriting(opened);
    const { structure, superblock, extension } = opened;
    if (log.structure.root.address !== structure.root.address)
      throw new H5LogError('STORAGE', 'another program changed the file while it was being sealed');
    const appender = new Appender({ name, superblock, power: true });
    yield* appender.begin();
    return new Sealing(log, elsewhere?.storage ?? null, new Committer(structure, appender, extension));
  }

  /** Copied data goes to the end of the file; gives its address. */
  *append(bytes: Uint8Array): Io<number> {
    const at = yield* this.#output.append(bytes);
    this.#moved += bytes.length;
    this.#onAppend();
    return at - this.#base;
  }

  get #base(): number {
    return this.#committer.appender.base;
  }

  /** Everything but the commit: data is copied, and the structure is changed. */
  *prepare(progress: SealOptions['progress']): Io<SealedDataset[]> {
    const datasets = [...(yield* this.#datasets()).values()];
    const sealed: SealedDataset[] = [];
    let path = '';
    const report = (): void =>
      progress?.({ done: sealed.length, total: datasets.length, dataset: path, moved: this.#moved });
    this.#onAppend = report;
    yield* this.#log.pointers.learn();
    this.#targets = takeNumbers(this.structure);
    removeLog(this.structure, this.#log.main.counts);
    for (const { node } of datasets) {
      const anchor = this.structure.loader.nodes.get(node.address);
      if (anchor) takeAnchor(this.structure, anchor);
    }
    showNames(this.structure);
    for (const dataset of datasets) {
      path = dataset.path;
      try {
        sealed.push({ path, ...(yield* this.#seal(dataset)) });
      } catch (error) {
        throw inObject(error, path);
      }
      report();
    }
    settleScales(this.structure, [...this.structure.loader.nodes.values()]);
    return sealed;
  }

  *#datasets(): ReturnType<Log['everyDataset']> {
    const all = this.#log.everyDataset();
    return yield* this.#logStorage ? onStorage(this.#logStorage, all) : all;
  }

  *#seal(dataset: LogDataset): Io<Omit<SealedDataset, 'path'>> {
    const { structure } = this;
    const { tables, hasSubfiles, main, files } = this.#log;
    const node = structure.loader.nodes.get(dataset.node.address);
    if (!node) throw new H5LogError('FORMAT', 'the dataset is not where it was');
    const { elements, shape, base } = dataset;
    const newer = yield* tables.index(dataset, null, tables.committed, base?.floor);
    const candidate: Candidate = { dataset, shape, newer };
    // What elements point to stays where it is, unless it is in another file, or was moved by another program.
    const isLocal = !hasSubfiles && !(elements.points && main.isMoved);
    const publisher = new Publisher(this, this.#base, files, {
      take: isLocal ? null : (...of) => this.#take(...of),
      chunked,
    });
    const plan = planSealing(candidate, isLocal);
    if (plan.kind === 'same') {
      const pieces = base ? (yield* storedBlocks(dataset, base)).length : 0;
      sealAnchor(structure, node, dataset, null);
      return { way: base?.view.way ?? 'empty', moved: 0, pieces };
    }
    if (plan.kind === 'virtual') {
      const { layout, pieces } = this.#virtual.layout(dataset, plan.pieces);
      sealAnchor(structure, node, dataset, layout);
      return { way: 'virtual', moved: 0, pieces };
    }
    const isReferring = plan.kind === 'references';
    const made = yield* isReferring
      ? publisher.refer(candidate, structure, this.#targets)
      : publisher.make(candidate, plan);
    if (isReferring) this.#moved += made.moved;
    sealAnchor(structure, node, dataset, made.layout);
    return madeBy(made);
  }

  /** Copies what elements point to, where it is not in the file, and gives them their ids. */
  *#take({ elements, log }: LogDataset, bytes: Uint8Array): Io<void> {
    const heap = yield* log.pointers.contents(elements, bytes);
    const placed = new PlacedHeap([heap], this.#output.end - this.#base, { reference: (number) => number });
    placed.patch(elements.dtype, bytes, bytes.length / elements.size);
    for (const image of placed.images) yield* this.append(image);
  }

  /** From here on the file is what the structure says. */
  *commit(): Io<void> {
    yield* this.#output.flush();
    this.#committer.appender.position = this.#output.end - this.#base;
    yield* this.#committer.write(this.#committer.plan());
  }

  /** Cuts the file to size, whether the commit was made or not. */
  *close(): Io<void> {
    yield* this.#committer.appender.close();
  }
}

const madeBy = ({ way, moved, pieces }: MadeLayout): Omit<SealedDataset, 'path'> => ({ way, moved, pieces });

/** The log of a file that has all of it in itself. */
function* logIn(structure: Structure, name: string): Io<Log> {
  const counts = (yield* readCounts(structure)) ?? notALog(name);
  if (hasSubfiles(counts))
    throw new H5LogError(
      'UNSUPPORTED',
      'the data is in subfiles: an ordinary file cannot be made of it in place; seal it to another file (to)',
    );
  const store = new LogStore(0, solo());
  store.attach({ storage: null, structure, counts });
  yield* store.load();
  // Before the structure changes.
  yield* store.everyNumbered();
  return readingLog(structure, store, [store]);
}

function notALog(name: string): never {
  const message = `${name} has no log: it is ordinary HDF5 already, and there is nothing to seal`;
  throw new H5LogError('UNSUPPORTED', message, { file: name });
}
