import { environment } from '#platform';
import { H5LogError } from '../errors.ts';
import type { TableOptions } from '../log/table-format.ts';
import type { CommonOptions, CreateOptions } from './options.ts';

/** Entries from this many blocks on are compressed by default. */
const COMPRESS_FROM = 128;

/** A variable that is on with "1" and off with anything else, as in the original; unset: as the default says. */
function flag(name: string, otherwise: boolean): boolean {
  const value = environment(name);
  return value === undefined ? otherwise : value === '1';
}

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
  const encoding = environment('H5VL_LOG_SEL_ENCODING');
  const zip = environment('H5VL_LOG_METADATA_ZIP');
  const compress = table.compress ?? (zip === undefined ? true : zip === '1');
  return {
    merge: table.merge ?? flag('H5VL_LOG_METADATA_MERGE', true),
    encode: table.encode ?? encoding !== 'canonical',
    share: table.share ?? flag('H5VL_LOG_METADATA_SHARE', true),
    compressFrom: typeof compress === 'number' ? Math.max(2, compress) : compress ? COMPRESS_FROM : Infinity,
  };
}

/** Bytes of memory that indexes may take. */
export function indexLimit(options: CommonOptions): number {
  if (options.indexLimit !== undefined) return options.indexLimit;
  const value = environment('H5VL_LOG_IDX_BSIZE');
  if (value === undefined || value === '') return Infinity;
  const bytes = Number(value);
  if (!Number.isInteger(bytes))
    throw new H5LogError('OPTION', `H5VL_LOG_IDX_BSIZE must be a number of bytes, got ${JSON.stringify(value)}`);
  return bytes < 0 ? Infinity : bytes;
}

/** The connector that HDF5_VOL_CONNECTOR asks for; names that are not ours mean nothing here. */
export function connectorFromEnvironment(): 'log' | 'native' | undefined {
  const value = environment('HDF5_VOL_CONNECTOR')?.trim().split(/\s+/)[0]?.toLowerCase();
  return value === 'log' ? 'log' : value === 'native' ? 'native' : undefined;
}

/** How many subfiles a new file gets: 0 none, 'node' one a machine. */
export function subfileCount({ subfiles }: CreateOptions): number | 'node' {
  if (subfiles !== undefined) {
    if (subfiles === 'node' || (Number.isInteger(subfiles) && subfiles >= 0)) return subfiles;
    throw new H5LogError(
      'OPTION',
      `subfiles must be a number that is not negative, or 'node', got ${String(subfiles)}`,
    );
  }
  const value = environment('H5VL_LOG_NSUBFILES')?.trim();
  if (value === undefined) return 0;
  if (value === '') return 'node';
  const count = Number(value);
  if (!Number.isInteger(count))
    throw new H5LogError('OPTION', `H5VL_LOG_NSUBFILES must be a whole number, got ${JSON.stringify(value)}`);
  return count < 0 ? 'node' : count;
}
