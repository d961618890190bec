import { atOffset, H5LogError } from '../../base/errors.ts';
import { checkNames } from '../../base/options.ts';
import { decodeOne } from '../../dtype/decode.ts';
import { encodeValues } from '../../dtype/encode.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import { FILTER, type FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';

export type Filter = 'shuffle' | 'fletcher32' | { readonly deflate: number };

/** What users see of a dataset besides its data. */
export interface DatasetShape {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly fill: unknown;
  readonly chunks: readonly number[] | null;
  readonly filters: readonly Filter[];
}

/** Refuses what is no list of filters. */
export function checkFilters(path: string, filters: readonly Filter[]): Filter[] {
  if (!Array.isArray(filters)) throw new H5LogError('OPTION', `${path}: filters must be a list`, { object: path });
  return filters.map((filter: unknown) => {
    if (filter === 'shuffle' || filter === 'fletcher32') return filter;
    if (typeof filter === 'object' && filter !== null && 'deflate' in filter)
      checkNames(`${path}: a filter`, filter, { deflate: true });
    const level = typeof filter === 'object' && filter !== null ? (filter as { deflate?: unknown }).deflate : undefined;
    if (typeof level === 'number' && Number.isInteger(level) && level >= 0 && level <= 9) return { deflate: level };
    throw new H5LogError(
      'OPTION',
      `${path}: a filter is 'shuffle', 'fletcher32' or { deflate: 0 to 9 }, got ${JSON.stringify(filter)}`,
      { object: path },
    );
  });
}

/** As HDF5 numbers them. */
export function filterEntries(filters: readonly Filter[], elementSize: number): FilterEntry[] {
  return filters.map((filter) => {
    if (filter === 'shuffle') return { id: FILTER.shuffle, name: '', flags: 1, values: [elementSize] };
    if (filter === 'fletcher32') return { id: FILTER.fletcher32, name: '', flags: 0, values: [] };
    return { id: FILTER.deflate, name: '', flags: 1, values: [filter.deflate] };
  });
}

/** A regular dataset; filters that have no name here are left out. */
export function regularDataset(parts: DatasetParts): DatasetShape {
  const { space, layout } = parts;
  return {
    dtype: parts.dtype,
    shape: space.kind === 'simple' ? space.shape : [],
    maxShape: space.kind === 'simple' ? space.maxShape : [],
    fill: typeof parts.fill.value === 'string' ? undefined : fillValue(parts.dtype, parts.fill.value, parts.fillOffset),
    chunks: layout?.kind === 'chunked' ? layout.chunk : null,
    filters: parts.filters.flatMap(namedFilter),
  };
}

export function namedFilter({ id, values }: { id: number; values: readonly number[] }): Filter[] {
  if (id === FILTER.shuffle) return ['shuffle'];
  if (id === FILTER.fletcher32) return ['fletcher32'];
  if (id === FILTER.deflate) return [{ deflate: values[0] ?? 6 }];
  return [];
}

/** A fill value in JavaScript; one that does not fit its type is as good as none. `offset` is where it lies in the file. */
export function fillValue(dtype: DType, bytes: Uint8Array, offset: number): unknown {
  if (bytes.length !== fullType(dtype).size) return undefined;
  try {
    return decodeOne(dtype, bytes, { heap: () => undefined, path: () => '' });
  } catch (error) {
    throw atOffset(error, offset);
  }
}

/** A fill value in the dataset's file type. */
export function encodeFillValue(dtype: DType, fill: unknown): Uint8Array {
  const encoded = encodeValues(dtype, fill, 1);
  if (encoded.heap.length > 0 || encoded.references.length > 0) {
    throw new H5LogError('UNSUPPORTED', 'a fill value cannot hold references or variable-length data');
  }
  return encoded.bytes;
}
