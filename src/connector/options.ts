import { environmentOptions } from '#platform';
import { H5LogError } from '../base/errors.ts';
import { AMOUNT, ANY, CALLBACK, checkOptions, FLAG, type Kinds, oneOf } from '../base/options.ts';
import type { Communicator } from '../comm/communicator.ts';
import { checkCodecs, type FilterCodec } from '../filter/pipeline.ts';
import type { LogLayout, LogScope, Publish } from '../log/format/log-group.ts';
import type { TableOptions } from '../log/format/table.ts';
import type { ByteStorage } from '../storage/storage.ts';

export interface CommonOptions {
  comm?: Communicator;
  connector?: 'log' | 'native';
  /** What a returned flush survives: the end of the process, or a power loss as well. */
  durability?: 'process' | 'power';
  checksum?: boolean;
  bufferLimit?: number;
  onBufferFull?: 'error' | 'flush';
  indexLimit?: number;
  storage?: 'node' | 'mpi-io';
  timeout?: number;
  commitOnSignal?: boolean;
  /** Several ranks: compare every call that changes the structure, instead of all of them at the next flush. For debugging. */
  checkCalls?: boolean;
  /** false: files that this one names (external data) are never opened. For files that nobody trusts. */
  external?: boolean;
  /**
   * Finds files that this one names, in place of the rules for paths: where it has no folder, or only some may be opened. The storage
   * needs its blocking half; null if there is none.
   */
  openExternal?: (name: string) => ByteStorage | null;
  /** When other programs see what is committed; 'never' without it. The file remembers it. */
  publish?: Publish;
  /** Filters of this file, by number. They win over those of `registerFilter`. */
  codecs?: Readonly<Record<number, FilterCodec>>;
}

export interface CreateOptions extends CommonOptions {
  /** Refuse to replace a file that exists. */
  exclusive?: boolean;
  /** How tables are written. 'classic': one entry a block, in the form of the first design; the other options do not apply to it. */
  table?: {
    merge?: boolean;
    encode?: boolean;
    share?: boolean;
    compress?: boolean | number;
    format?: 'original' | 'classic';
    bigEndian?: boolean;
  };
  subfiles?: number | 'node';
  /** Which datasets share a log: all of them, those of a group, or none. The file remembers it. */
  logs?: LogScope;
}

export interface OpenOptions extends CommonOptions {
  /** 'a': for writing; created if there is nothing yet. */
  mode?: 'r' | 'r+' | 'a';
  asOf?: number;
  /** Structure is loaded on demand, by `load`; only for reading. */
  lazy?: boolean;
}

const COMMON: Kinds<CommonOptions> = {
  comm: ANY,
  connector: oneOf('log', 'native'),
  durability: oneOf('process', 'power'),
  checksum: FLAG,
  bufferLimit: AMOUNT,
  onBufferFull: oneOf('error', 'flush'),
  indexLimit: AMOUNT,
  storage: oneOf('node', 'mpi-io'),
  timeout: ['a number of milliseconds above 0', (value) => typeof value === 'number' && value > 0],
  commitOnSignal: FLAG,
  checkCalls: FLAG,
  external: FLAG,
  openExternal: CALLBACK,
  publish: ["'never', 'close', 'flush', 'auto' or { interval: milliseconds }", isPublish],
  codecs: ANY,
};
const CREATE: Kinds<CreateOptions> = {
  ...COMMON,
  exclusive: FLAG,
  table: ANY,
  subfiles: ANY,
  logs: oneOf('shared', 'group', 'dataset'),
};
const OPEN: Kinds<OpenOptions> = { ...COMMON, mode: oneOf('r', 'r+', 'a'), asOf: ANY, lazy: FLAG };
const OPEN_OR_CREATE: Kinds<CreateOptions & OpenOptions> = { ...CREATE, ...OPEN };
const TABLE: Kinds<NonNullable<CreateOptions['table']>> = {
  merge: FLAG,
  encode: FLAG,
  share: FLAG,
  compress: ['true, false or a number', (value) => typeof value === 'boolean' || AMOUNT[1](value)],
  format: oneOf('original', 'classic'),
  bigEndian: FLAG,
};

function isPublish(value: unknown): boolean {
  if (typeof value === 'string') return ['never', 'close', 'flush', 'auto'].includes(value);
  if (typeof value !== 'object' || value === null || Object.keys(value).join() !== 'interval') return false;
  const { interval } = value as { interval: unknown };
  return typeof interval === 'number' && Number.isInteger(interval) && interval >= 0;
}

/** Refuses options that there are not, and values that an option cannot have. */
export function checkCreateOptions(options: CreateOptions): void {
  checkOptions('File.create', options, CREATE);
  checkCodecs(options.codecs);
}

/** With mode 'a' the options of create count as well. */
export function checkOpenOptions(options: CreateOptions & OpenOptions): void {
  const { mode } = (options ?? {}) as { mode?: unknown };
  if (mode === 'w' || mode === 'w-' || mode === 'x')
    throw new H5LogError(
      'OPTION',
      `mode ${JSON.stringify(mode)} is File.create${mode === 'w' ? '' : ' with exclusive: true'}`,
    );
  if (mode !== 'a') {
    checkOptions<OpenOptions>('File.open', options, OPEN);
    checkCodecs(options.codecs);
    return;
  }
  checkOptions('File.open', options, OPEN_OR_CREATE);
  checkCodecs(options.codecs);
  if (options.exclusive)
    throw new H5LogError('OPTION', "mode 'a' opens a file that exists; exclusive is for File.create");
  subfileCount(options);
}

/** The options for creating the file that mode 'a' did not find. It may have been created meanwhile. */
export function creating({
  mode: _mode,
  asOf: _asOf,
  lazy: _lazy,
  ...options
}: CreateOptions & OpenOptions): CreateOptions {
  return { ...options, exclusive: true };
}

/** Entries from this many blocks on are compressed by default. */
const COMPRESS_FROM = 128;

/** How tables are written: options first, then the environment, then the defaults. */
export function tableOptions(options: CreateOptions): TableOptions {
  const table = checkOptions('table', options.table ?? {}, TABLE);
  const compress = table.compress ?? environmentOptions.compress ?? true;
  return {
    merge: table.merge ?? environmentOptions.merge ?? true,
    encode: table.encode ?? environmentOptions.encode ?? true,
    share: table.share ?? environmentOptions.share ?? true,
    classic: classicOrder(table),
    compressFrom: typeof compress === 'number' ? Math.max(2, compress) : compress ? COMPRESS_FROM : Infinity,
  };
}

function classicOrder({ format, bigEndian, ...others }: NonNullable<CreateOptions['table']>): TableOptions['classic'] {
  if (import.meta.page) return format === 'classic' ? 'little' : undefined;
  if (format !== 'classic') {
    if (bigEndian) throw new H5LogError('OPTION', "bigEndian is for tables of format: 'classic'");
    return undefined;
  }
  for (const [name, value] of Object.entries(others))
    if (value)
      throw new H5LogError('OPTION', `table: ${name} is not for format: 'classic', which has one entry a block`);
  return bigEndian ? 'big' : 'little';
}

/** What a new file has in place of the log of the original; null: that one. */
export function logLayout(options: CreateOptions): LogLayout | null {
  const { classic } = tableOptions(options);
  const { logs: scope = 'shared' } = options;
  return classic || scope !== 'shared' ? { scope, classic } : null;
}

/** Bytes of memory that indexes may take. */
export function indexLimit(options: CommonOptions): number {
  return options.indexLimit ?? environmentOptions.indexLimit ?? Infinity;
}

/** How many subfiles a new file gets: 0 none, 'node' one a machine. */
export function subfileCount({ subfiles }: CreateOptions): number | 'node' {
  if (subfiles === undefined) return environmentOptions.subfiles ?? 0;
  if (subfiles === 'node' || (Number.isInteger(subfiles) && subfiles >= 0)) return subfiles;
  throw new H5LogError('OPTION', `subfiles must be a number that is not negative, or 'node', got ${String(subfiles)}`);
}
