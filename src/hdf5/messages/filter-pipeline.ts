// The filter pipeline message: versions 1 and 2 are read, version 2 is written (HDF5 file format specification, IV.A.2.l).

import { type Cursor, textFrom } from '../format/cursor.ts';

/** Numbers of the filters of libhdf5. */
export const FILTER = { deflate: 1, shuffle: 2, fletcher32: 3, szip: 4, nbit: 5, scaleOffset: 6 } as const;

/** The name of a filter of libhdf5; '' for others. */
export function filterName(id: number): string {
  return Object.entries(FILTER).find(([, known]) => known === id)?.[0] ?? '';
}

export interface FilterEntry {
  readonly id: number;
  readonly name: string;
  /** Bit 0: the filter is optional and may be left out for a chunk. */
  readonly flags: number;
  /** Client data: the parameters of the filter. */
  readonly values: readonly number[];
}

export function parseFilters(cursor: Cursor): FilterEntry[] {
  const version = cursor.u8();
  if (version !== 1 && version !== 2) cursor.fail(`filter pipeline version ${version} is not known`);
  const count = cursor.u8();
  if (count > 32) cursor.fail(`pipeline of ${count} filters`);
  if (version === 1) cursor.skip(6);
  const filters: FilterEntry[] = [];
  for (let i = 0; i < count; i++) {
    const id = cursor.u16();
    const nameLength = version === 1 || id >= 256 ? cursor.u16() : 0;
    const flags = cursor.u16();
    const valueCount = cursor.u16();
    const raw = cursor.take(version === 1 ? Math.ceil(nameLength / 8) * 8 : nameLength, 'filter name');
    const stop = raw.indexOf(0);
    const name = textFrom(stop < 0 ? raw : raw.subarray(0, stop));
    const values: number[] = [];
    for (let v = 0; v < valueCount; v++) values.push(cursor.u32());
    if (version === 1 && valueCount % 2 === 1) cursor.skip(4);
    filters.push({ id, name, flags, values });
  }
  return filters;
}
