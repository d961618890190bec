import { environmentOptions } from '#platform';
import { H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { TableOptions } from '../log/format/table.ts';

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
}

export interface CreateOptions extends CommonOptions {
  /** Refuse to replace a file that exists. */
  exclusive?: boolean;
  table?: { merge?: boolean; encode?: boolean; share?: boolean; compress?: boolean | number };
  subfiles?: number | 'node';
}

export interface OpenOptions extends CommonOptions {
  mode?: 'r' | 'r+';
  asOf?: number;
}

const CHOICES: Readonly<Record<string, readonly unknown[]>> = {
  connector: ['log', 'native'],
  durability: ['process', 'power'],
  onBufferFull: ['error', 'flush'],
  storage: ['node', 'mpi-io'],
  mode: ['r', 'r+'],
  checksum: [true, false],
  commitOnSignal: [true, false],
  exclusive: [true, false],
};

/** Refuses values that an option cannot have. */
export function checkOptions(options: CommonOptions & { mode?: unknown; exclusive?: unknown }): void {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `options must be an object, got ${String(options)}`);
  for (const [name, allowed] of Object.entries(CHOICES)) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined && !allowed.includes(value)) {
      throw new H5LogError(
        'OPTION',
        `${name} must be ${allowed.map((choice) => JSON.stringify(choice)).join(' or ')}, got ${show(value)}`,
      );
    }
  }
  const { timeout } = options as { readonly timeout?: unknown };
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0))
    throw new H5LogError('OPTION', `timeout must be a number of milliseconds above 0, got ${show(timeout)}`);
  for (const name of ['bufferLimit', 'indexLimit'] as const) {
    const value: unknown = options[name];
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw new H5LogError('OPTION', `${name} must be a number that is not negative, got ${show(value)}`);
    }
  }
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** Entries from this many blocks on are compressed by default. */
const COMPRESS_FROM = 128;

/** How tables are written: options first, then the environment, then the defaults. */
export function tableOptions(options: CreateOptions): TableOptions {
  const table = options.table ?? {};
  if (typeof table !== 'object') throw new H5LogError('OPTION', `table must be an object, got ${String(table)}`);
  for (const [name, value] of Object.entries(table)) {
    const right =
      name === 'compress'
        ? typeof value === 'boolean' || (typeof value === 'number' && value >= 0)
        : typeof value === 'boolean';
    if (!['merge', 'encode', 'share', 'compress'].includes(name) || (value !== undefined && !right)) {
      throw new H5LogError('OPTION', `table.${name} cannot be ${String(value)}`);
    }
  }
  const compress = table.compress ?? environmentOptions.compress ?? true;
  return {
    merge: table.merge ?? environmentOptions.merge ?? true,
    encode: table.encode ?? environmentOptions.encode ?? true,
    share: table.share ?? environmentOptions.share ?? true,
    compressFrom: typeof compress === 'number' ? Math.max(2, compress) : compress ? COMPRESS_FROM : Infinity,
  };
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
