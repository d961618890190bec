import { formatError, H5LogError } from '../base/errors.ts';
import { checkFletcher32, fletcher32 } from './fletcher32.ts';
import { shuffle, unshuffle } from './shuffle.ts';

/** A filter as HDF5 numbers it: 1 deflate, 2 shuffle, 3 fletcher32. */
export interface FilterStep {
  readonly id: number;
  readonly flags: number;
  readonly values: readonly number[];
}

/** Inflates a zlib stream into at most `limit` bytes; provided by the platform. */
type Inflate = (bytes: Uint8Array, limit: number) => Uint8Array;
/** Compresses into a zlib stream; provided by the platform. */
type Deflate = (bytes: Uint8Array, level: number) => Uint8Array;

/** Undoes the filters of a chunk of `size` bytes, the last one first. Bit i of `mask` says that filter i was skipped. */
export function unfilter(
  bytes: Uint8Array,
  filters: readonly FilterStep[],
  mask: number,
  size: number,
  inflate: Inflate,
): Uint8Array {
  let data = bytes;
  for (let i = filters.length - 1; i >= 0; i--) {
    const filter = filters[i] as FilterStep;
    if (mask & (1 << i)) continue;
    if (filter.id === 1) data = inflate(data, size + 4 * filters.length);
    else if (filter.id === 2) data = unshuffle(data, filter.values[0] ?? 1);
    else if (filter.id === 3) data = checkFletcher32(data);
    else throw new H5LogError('UNSUPPORTED', `filter ${filter.id} is not supported`);
  }
  if (data.length !== size) throw formatError(`a chunk of ${data.length} bytes where ${size} were expected`);
  return data;
}

/** Applies filters to a chunk, in their order. */
export function applyFilters(bytes: Uint8Array, filters: readonly FilterStep[], deflate: Deflate): Uint8Array {
  let data = bytes;
  for (const filter of filters) {
    if (filter.id === 1) data = deflate(data, filter.values[0] ?? 6);
    else if (filter.id === 2) data = shuffle(data, filter.values[0] ?? 1);
    else if (filter.id === 3) data = fletcher32(data);
    else throw new H5LogError('UNSUPPORTED', `filter ${filter.id} is not supported`);
  }
  return data;
}
