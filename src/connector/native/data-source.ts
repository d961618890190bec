import { H5LogError } from '../../base/errors.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import { FILTER, type FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';
import type { NativeFile } from './native-file.ts';

/** The filters that are part of h5wasm; others only if somebody gave it a plugin. */
const BUILT_IN: ReadonlySet<number> = new Set(Object.values(FILTER));

export function unavailable({ id }: FilterEntry): boolean {
  return !BUILT_IN.has(id);
}

/**
 * Refuses datasets whose data cannot be had, or not all of it, before h5wasm is asked for it. A filter that h5wasm lacks is no
 * reason as long as no chunk was packed with it: that is seen when the data is read.
 */
export function checkSource(
  file: NativeFile,
  path: string,
  parts: DatasetParts,
  use: { readonly externalFiles: boolean; readonly writing: boolean },
): void {
  const refuse = (what: string): H5LogError =>
    new H5LogError('UNSUPPORTED', `${file.name}: ${path} ${what}`, { file: file.name, object: path });
  if (parts.space.kind === 'null') throw refuse('has a NULL dataspace: there are no elements to read or write');
  if (!parts.layout) throw refuse('has no data layout');
  if (file.alone && use.externalFiles) throw refuse('keeps its data in other files, which cannot be reached from here');
  // Missing sources read as fill values: right where files can be looked for, wrong where they cannot.
  if (file.alone && parts.layout.kind === 'virtual')
    throw refuse('is a virtual dataset, whose sources cannot be reached from here');
  // libhdf5 would write some chunks without the filter and fail at others.
  const lacking = use.writing ? parts.filters.filter(unavailable) : [];
  if (lacking.length > 0) throw refuse(`cannot be written: h5wasm does not have the filter ${listFilters(lacking)}`);
}

export function listFilters(filters: readonly FilterEntry[]): string {
  return filters.map(({ id, name }) => `${name || 'unnamed'} (${id})`).join(', ');
}
