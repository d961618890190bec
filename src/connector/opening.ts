import { createSource, environmentOptions, openSource, remoteUrl } from '#platform';
import { H5LogError, inFile } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import { blobStorage } from '../storage/blob.ts';
import { httpStorage } from '../storage/http.ts';
import { bytesOf, memoryStorage } from '../storage/memory.ts';
import { type ByteStorage, bytesError, checkStorage, isPath, plainTarget, type Source } from '../storage/storage.ts';
import {
  type CommonOptions,
  type CreateOptions,
  checkCreateOptions,
  checkOpenOptions,
  indexLimit,
  logLayout,
  type OpenOptions,
  subfileCount,
  tableOptions,
} from './options.ts';
import { mustMeanOneRank, OneRank, type Ranks, severalRanks } from './ranks.ts';
import type { SessionOptions } from './state.ts';

type Choices = Omit<SessionOptions, keyof Source | 'ranks'>;

/** What the options come to; before anything is taken, because they may be wrong. */
function choicesOf(options: CreateOptions & OpenOptions, newSubfiles: number | 'node'): Choices {
  const newLogs = logLayout(options);
  return {
    ordinary: (options.connector ?? environmentOptions.connector) === 'native',
    power: options.durability === 'power',
    asOf: options.asOf,
    external: options.external !== false,
    openExternal: options.openExternal,
    lazy: options.lazy === true,
    openSubfiles: new Map(),
    newSubfiles,
    newLogs,
    publish: options.publish,
    mpiIo: options.storage === 'mpi-io',
    log: {
      table: tableOptions(options),
      checksum: options.checksum !== false,
      bufferLimit: options.bufferLimit ?? Infinity,
      indexLimit: indexLimit(options),
      flushWhenFull: options.onBufferFull === 'flush',
      codecs: options.codecs,
    },
  };
}

/** Whether the storage is ours to close, and a new file ours to remove. */
interface Taken {
  readonly storage: boolean;
  readonly name: boolean;
}

/** What opening or creating has taken and must give back when it fails. */
export class Opening {
  readonly session: SessionOptions;
  readonly #taken: Taken;

  constructor(source: Source, taken: Taken, ranks: Ranks, choices: Choices) {
    this.session = { ...source, ...choices, ranks };
    this.#taken = taken;
  }

  get storage(): ByteStorage {
    return this.session.storage;
  }

  /** The communicator as the user gave it; the session has one of its own. */
  get given(): Communicator {
    return this.session.ranks.given;
  }

  /** Whether there are other ranks, so that everything is done in blocking calls. */
  get isShared(): boolean {
    return this.session.ranks.comm.size > 1;
  }

  get isWriting(): boolean {
    return this.session.target !== null;
  }

  /** Gives everything back. */
  giveUp(): void {
    const { storage, target } = this.session;
    if (this.#taken.storage) storage.blocking?.close();
    if (this.#taken.name) target?.discard();
    target?.release();
  }

  /** Gives everything back, and says in the error which file it was. */
  failed(error: unknown): unknown {
    this.giveUp();
    if (this.isShared) this.session.ranks.comm.close();
    return inFile(error, this.storage.name);
  }
}

/** The ranks of a file: those of the communicator that was given, else one. */
function ranksFor(options: CommonOptions, writing: boolean): Ranks {
  const given = options?.comm;
  if (!import.meta.page && !given && writing) mustMeanOneRank();
  if (!given || given.size === 1) return new OneRank(given ?? solo());
  if (!import.meta.page) return severalRanks(given, options);
  throw new H5LogError('UNSUPPORTED', 'a page is one rank');
}

export function beginCreate(target: string | URL | ByteStorage, options: CreateOptions): Opening {
  const ranks = ranksFor(options, true);
  const effective = () => ({ table: tableOptions(options), subfiles: subfileCount(options), logs: options.logs });
  return ranks.begin('File.create', target, { options, effective }, () => {
    checkCreateOptions(options);
    const subfiles = subfileCount(options);
    const choices = choicesOf(options, subfiles);
    if (isPath(target))
      return new Opening(
        createSource(target, ranks.leads, options.exclusive ?? false),
        { storage: true, name: true },
        ranks,
        choices,
      );
    checkStorage(target);
    ranks.mustBeAlone();
    if (subfiles !== 0) throw new H5LogError('OPTION', 'subfiles need a path: a storage has nothing beside it');
    return new Opening(plain(target, true), { storage: false, name: true }, ranks, choices);
  });
}

/** What can be opened. */
export type Openable = string | URL | Blob | ArrayBuffer | Uint8Array | ByteStorage;

export function beginOpen(source: Openable, options: OpenOptions): Opening {
  const writing = options?.mode === 'r+' || options?.mode === 'a';
  const ranks = ranksFor(options, writing);
  const effective = () => (writing ? { table: tableOptions(options) } : {});
  return ranks.begin('File.open', source, { options, effective }, () => {
    checkOpenOptions(options);
    const { asOf } = options;
    if (writing && asOf !== undefined) throw new H5LogError('OPTION', 'an earlier state (asOf) can only be read');
    if (writing && options.lazy)
      throw new H5LogError('OPTION', 'lazy is for reading: a writer loads all of the structure');
    if (asOf !== undefined && !Number.isInteger(asOf))
      throw new H5LogError('OPTION', `asOf must be a sequence number, got ${String(asOf)}`);
    const choices = choicesOf(options, 0);
    const remote = readOnly(source);
    if (remote?.write && writing) throw bytesError();
    if (remote && writing) throw new H5LogError('READ_ONLY', `${remote.name} cannot be written`, { file: remote.name });
    if (remote) return new Opening(plain(remote, false), { storage: true, name: false }, ranks, choices);
    if (isPath(source))
      return new Opening(openSource(source, writing, ranks.leads), { storage: true, name: false }, ranks, choices);
    checkStorage(source);
    if (writing) ranks.mustBeAlone();
    return new Opening(plain(source as ByteStorage, writing), { storage: false, name: false }, ranks, choices);
  });
}

/** The storage of what can only be read. */
function readOnly(source: Openable): ByteStorage | undefined {
  if (isPath(source)) {
    const url = remoteUrl(source);
    return url === undefined ? undefined : httpStorage(url);
  }
  if (typeof Blob !== 'undefined' && source instanceof Blob) return blobStorage(source);
  const bytes = bytesOf(source);
  return bytes && memoryStorage(bytes);
}

function plain(storage: ByteStorage, writing: boolean): Source {
  return { path: null, storage, target: writing ? plainTarget(storage) : null, subfiles: null };
}
