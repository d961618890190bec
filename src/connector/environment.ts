import { asked } from '#platform';
import { H5LogError } from '../base/errors.ts';
import type { TableOptions } from '../log/format/table.ts';
import type { CommonOptions, CreateOptions } from './options.ts';

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
  const compress = table.compress ?? asked.compress ?? true;
  return {
    merge: table.merge ?? asked.merge ?? true,
    encode: table.encode ?? asked.encode ?? true,
    share: table.share ?? asked.share ?? true,
    compressFrom: typeof compress === 'number' ? Math.max(2, compress) : compress ? COMPRESS_FROM : Infinity,
  };
}

/** Bytes of memory that indexes may take. */
export function indexLimit(options: CommonOptions): number {
  return options.indexLimit ?? asked.indexLimit ?? Infinity;
}

/** How many subfiles a new file gets: 0 none, 'node' one a machine. */
export function subfileCount({ subfiles }: CreateOptions): number | 'node' {
  if (subfiles === undefined) return asked.subfiles ?? 0;
  if (subfiles === 'node' || (Number.isInteger(subfiles) && subfiles >= 0)) return subfiles;
  throw new H5LogError('OPTION', `subfiles must be a number that is not negative, or 'node', got ${String(subfiles)}`);
}
