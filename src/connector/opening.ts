import { createTarget, joinTarget, openTarget, pathOf, readTarget, subfilesOf } from '#platform';
import { mustMeanOneRank, severalRanks } from '#several';
import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import { H5LogError, inFile } from '../errors.ts';
import { blobStorage } from '../storage/blob.ts';
import { httpStorage } from '../storage/http.ts';
import { checkStorage, isPath } from '../storage/source.ts';
import type { ByteStorage } from '../storage/storage.ts';
import type { Subfiles } from '../storage/subfiles.ts';
import { plainTarget, type WriteTarget } from '../storage/target.ts';
import { connectorFromEnvironment, indexLimit, subfileCount, tableOptions } from './environment.ts';
import { type CommonOptions, type CreateOptions, checkOptions, type OpenOptions } from './options.ts';
import { OneRank, type Ranks } from './ranks.ts';
import type { SessionOptions } from './session-options.ts';

/** Whether the native connector was asked for. Without being asked, an ordinary file is opened with our own structure. */
export function wantsNative(options: CommonOptions): boolean {
  return (options?.connector ?? connectorFromEnvironment()) === 'native';
}

/** What opening or creating has taken and must give back when it fails. */
export class Opening {
  readonly storage: ByteStorage;
  readonly session: SessionOptions;
  /** The communicator as the user gave it; the session has one of its own. */
  readonly given: Communicator;
  readonly #target: WriteTarget | null;
  readonly #isNew: boolean;
  readonly #ownsStorage: boolean;

  constructor(source: Source, ranks: Ranks, options: CommonOptions) {
    const { storage, target } = source;
    this.storage = storage;
    this.given = ranks.given;
    this.#target = target;
    this.#isNew = source.isNew;
    this.#ownsStorage = source.ownsStorage;
    this.session = {
      storage,
      target,
      ranks,
      power: options.durability === 'power',
      asOf: (options as OpenOptions).asOf,
      subfiles: source.subfiles,
      newSubfiles: source.isNew ? subfileCount(options as CreateOptions) : 0,
      isTogether: options.storage === 'mpi-io',
      path: source.path,
      log: {
        table: tableOptions(options),
        checksum: options.checksum !== false,
        bufferLimit: options.bufferLimit ?? Infinity,
        indexLimit: indexLimit(options),
        flushWhenFull: options.onBufferFull === 'flush',
      },
    };
    if (this.session.newSubfiles !== 0 && !source.subfiles)
      throw new H5LogError('OPTION', 'subfiles need a path: a storage has nothing beside it');
  }

  /** Whether there are other ranks, so that everything is done in blocking calls. */
  get isShared(): boolean {
    return this.session.ranks.comm.size > 1;
  }

  /** Gives everything back. */
  giveUp(): void {
    if (this.#ownsStorage) this.storage.blocking?.close();
    if (this.#isNew) this.#target?.discard();
    this.#target?.release();
  }

  /** Gives everything back, and says in the error which file it was. */
  failed(error: unknown): unknown {
    this.giveUp();
    if (this.isShared) this.session.ranks.comm.close();
    return inFile(error, this.storage.name);
  }
}

const isWeb = (source: string | URL): boolean => /^https?:\/\//i.test(String(source));

/** Where a file is, and what was taken for it. */
interface Source {
  /** null for what is not a file of this machine. */
  readonly path: string | null;
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly subfiles: Subfiles | null;
  readonly isNew: boolean;
  readonly ownsStorage: boolean;
}

/** The ranks of a file: those of the communicator that was given, else one. */
function ranksFor(options: CommonOptions, writing: boolean): Ranks {
  const given = options?.comm;
  if (!given && writing) mustMeanOneRank();
  return given && given.size > 1 ? severalRanks(given, options) : new OneRank(given ?? solo());
}

export function beginCreate(target: string | URL | ByteStorage, options: CreateOptions): Opening {
  const ranks = ranksFor(options, true);
  const effective = () => ({ table: tableOptions(options), subfiles: subfileCount(options) });
  return ranks.begin('File.create', target, { options, effective }, () => {
    checkOptions(options);
    if (!isPath(target)) {
      checkStorage(target);
      ranks.mustBeAlone();
      return new Opening({ ...plain(target, true), isNew: true }, ranks, options);
    }
    const made = ranks.leads ? createTarget(target, options.exclusive ?? false) : joinTarget(target);
    const { storage } = made;
    const place = { path: pathOf(target), subfiles: subfilesOf(target), isNew: true, ownsStorage: true };
    const source = { storage, target: made, ...place };
    return orRelease(made, () => new Opening(source, ranks, options));
  });
}

export function beginOpen(source: string | URL | Blob | ByteStorage, options: OpenOptions): Opening {
  const writing = options?.mode === 'r+';
  const ranks = ranksFor(options, writing);
  const effective = () => (writing ? { table: tableOptions(options) } : {});
  return ranks.begin('File.open', source, { options, effective }, () => {
    checkOptions(options);
    const { asOf } = options;
    if (writing && asOf !== undefined) throw new H5LogError('OPTION', 'an earlier state (asOf) can only be read');
    if (asOf !== undefined && !Number.isInteger(asOf))
      throw new H5LogError('OPTION', `asOf must be a sequence number, got ${String(asOf)}`);
    return new Opening(sourceOf(source, writing, ranks), ranks, options);
  });
}

function sourceOf(source: string | URL | Blob | ByteStorage, writing: boolean, ranks: Ranks): Source {
  if (isPath(source)) {
    if (isWeb(source)) return readOnly(httpStorage(source), writing);
    const beside = { path: pathOf(source), subfiles: subfilesOf(source), isNew: false, ownsStorage: true };
    if (!writing) return { storage: readTarget(source), target: null, ...beside };
    const opened = ranks.leads ? openTarget(source) : joinTarget(source);
    return { storage: opened.storage, target: opened, ...beside };
  }
  if (typeof Blob !== 'undefined' && source instanceof Blob) return readOnly(blobStorage(source), writing);
  checkStorage(source);
  if (writing) ranks.mustBeAlone();
  return plain(source as ByteStorage, writing);
}

function orRelease<T>(target: WriteTarget, work: () => T): T {
  try {
    return work();
  } catch (error) {
    target.storage.blocking?.close();
    target.discard();
    target.release();
    throw error;
  }
}

function plain(storage: ByteStorage, writing: boolean): Source {
  const target = writing ? plainTarget(storage) : null;
  return { path: null, storage, target, subfiles: null, isNew: false, ownsStorage: false };
}

function readOnly(storage: ByteStorage, writing: boolean): Source {
  if (writing) throw new H5LogError('READ_ONLY', `${storage.name} cannot be written`, { file: storage.name });
  return { path: null, storage, target: null, subfiles: null, isNew: false, ownsStorage: true };
}
