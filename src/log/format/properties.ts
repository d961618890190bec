import { atOffset, H5LogError } from '../../base/errors.ts';
import { decodeOne, type Resolver } from '../../dtype/decode.ts';
import { containsVlen } from '../../dtype/describe.ts';
import { encodeValues } from '../../dtype/encode.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import { filterName } from '../../filter/pipeline.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import { FILTER, type FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';

/** The last form: any other filter, by its number; see `registerFilter`. */
export type Filter =
  | 'shuffle'
  | 'fletcher32'
  | { readonly deflate: number }
  | { readonly id: number; readonly parameters?: readonly number[] };

/** What users see of a dataset besides its data. */
export interface DatasetShape {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly fill: unknown;
  readonly chunks: readonly number[] | null;
  readonly filters: readonly Filter[];
}

/** As HDF5 numbers them. */
export function filterEntries(filters: readonly Filter[], elementSize: number): FilterEntry[] {
  return filters.map((filter) => {
    if (filter === 'shuffle') return { id: FILTER.shuffle, name: '', flags: 1, values: [elementSize] };
    if (filter === 'fletcher32') return { id: FILTER.fletcher32, name: '', flags: 0, values: [] };
    if ('deflate' in filter) return { id: FILTER.deflate, name: '', flags: 1, values: [filter.deflate] };
    const { id, parameters = [] } = filter;
    // The revision of the filter and of LZF that h5py expects, and a chunk size that it need not know.
    const values = id === LZF && parameters.length === 0 ? [4, 0x105, 0] : parameters;
    return { id, name: filterName(id), flags: 1, values };
  });
}

const LZF = 32_000;

/** A regular dataset. `resolve` finds what a fill value has in the heap. */
export function regularDataset(
  parts: DatasetParts,
  resolve: (dtype: DType, bytes: Uint8Array) => Resolver,
): DatasetShape {
  const { space, layout } = parts;
  return {
    dtype: parts.dtype,
    shape: space.kind === 'simple' ? space.shape : [],
    maxShape: space.kind === 'simple' ? space.maxShape : [],
    // Only when it is asked for: it may have to be read.
    get fill() {
      const { value } = parts.fill;
      return typeof value === 'string' ? undefined : fillValue(parts.dtype, value, parts.fillOffset, resolve);
    },
    chunks: layout?.kind === 'chunked' ? layout.chunk : null,
    filters: parts.filters.map(namedFilter),
  };
}

export function namedFilter({ id, values }: { id: number; values: readonly number[] }): Filter {
  if (id === FILTER.shuffle) return 'shuffle';
  if (id === FILTER.fletcher32) return 'fletcher32';
  if (id === FILTER.deflate) return { deflate: values[0] ?? 6 };
  return { id, parameters: values };
}

const NOTHING: Resolver = { heap: () => undefined, path: () => '' };

/** A fill value in JavaScript; one that does not fit its type is as good as none. `offset` is where it lies in the file. */
export function fillValue(
  dtype: DType,
  bytes: Uint8Array,
  offset: number,
  resolve: (dtype: DType, bytes: Uint8Array) => Resolver = () => NOTHING,
): unknown {
  if (bytes.length !== fullType(dtype).size) return undefined;
  try {
    return decodeOne(dtype, bytes, containsVlen(dtype) ? resolve(dtype, bytes) : NOTHING);
  } catch (error) {
    throw atOffset(error, offset);
  }
}

/** A fill value in the dataset's file type. */
export function encodeFillValue(dtype: DType, fill: unknown): Uint8Array {
  const encoded = encodeValues(dtype, fill, 1);
  // Empty texts become null ids, which read the same.
  if (encoded.heap.some(({ length }) => length > 0) || encoded.references.length > 0) {
    throw new H5LogError('UNSUPPORTED', 'a fill value cannot hold references or variable-length data');
  }
  return encoded.bytes;
}
