import { H5LogError } from '../../base/errors.ts';
import type { DType } from '../../dtype/model.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import { FILTER, type FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';
import { fillValue } from './fill-value.ts';

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
