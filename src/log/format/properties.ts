import { atOffset, H5LogError } from '../../base/errors.ts';
import { checkNames } from '../../base/options.ts';
import { decodeOne, type Resolver } from '../../dtype/decode.ts';
import { containsVlen, describeType } from '../../dtype/describe.ts';
import { encodeValues } from '../../dtype/encode.ts';
import { type DType, fullType, HEAP_ID_SIZE } from '../../dtype/model.ts';
import { filterName } from '../../filter/pipeline.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { chunkedLater, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { FILTER, type FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { checkChunkBytes, ordinaryChunks } from '../../space/chunk-shape.ts';

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

/** Refuses what is no list of filters. */
export function checkFilters(path: string, filters: readonly Filter[]): Filter[] {
  if (!Array.isArray(filters)) throw new H5LogError('OPTION', `${path}: filters must be a list`, { object: path });
  return filters.map((filter: unknown) => {
    if (filter === 'shuffle' || filter === 'fletcher32') return filter;
    if (typeof filter === 'object' && filter !== null && 'deflate' in filter)
      checkNames(`${path}: a filter`, filter, { deflate: true });
    const level = typeof filter === 'object' && filter !== null ? (filter as { deflate?: unknown }).deflate : undefined;
    if (typeof level === 'number' && Number.isInteger(level) && level >= 0 && level <= 9) return { deflate: level };
    if (typeof filter === 'object' && filter !== null && 'id' in filter) return numberedFilter(path, filter);
    throw new H5LogError(
      'OPTION',
      `${path}: a filter is 'shuffle', 'fletcher32', { deflate: 0 to 9 } or { id, parameters }, got ${JSON.stringify(filter)}`,
      { object: path },
    );
  });
}

function numberedFilter(path: string, filter: object): Filter {
  checkNames(`${path}: a filter`, filter, { id: true, parameters: true });
  const { id, parameters = [] } = filter as { id?: unknown; parameters?: unknown };
  const isWord = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32;
  if (!isWord(id) || id === 0 || (id as number) > 65_535)
    throw new H5LogError('OPTION', `${path}: a filter has a number from 1 to 65535, not ${String(id)}`, {
      object: path,
    });
  if (!Array.isArray(parameters) || parameters.length > 65_535 || !parameters.every(isWord))
    throw new H5LogError('OPTION', `${path}: parameters of a filter are 32-bit numbers`, { object: path });
  // Their parameters name the number of elements, but a log stores blocks of any size.
  if (id === FILTER.szip || id === FILTER.nbit || id === FILTER.scaleOffset)
    throw new H5LogError('UNSUPPORTED', `${path}: filter ${id} is for chunks of one size, not for a log`, {
      object: path,
    });
  return namedFilter({ id: id as number, values: parameters as number[] });
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

/** Makes an ordinary dataset. It is chunked where a dataset of a log would get chunks when it is published. */
export function createOrdinary(
  structure: Structure,
  parent: ObjectNode,
  name: string,
  { dtype, shape, maxShape, chunks: declared, filters, fill }: Omit<DatasetShape, 'fill'> & { readonly fill?: unknown },
): ObjectNode {
  const elementSize = fullType(dtype).size;
  const chunks = ordinaryChunks({ shape, maxShape, chunks: declared, elementSize }, filters.length > 0);
  if (chunks) checkChunkBytes(chunks, elementSize);
  if (!chunks && filters.length > 0 && shape.length === 0)
    throw new H5LogError('SHAPE', 'a scalar has no chunks and no filters');
  return structure.createDataset(parent, name, {
    dtype,
    space: shape.length === 0 ? SCALAR_SPACE : simpleSpace(shape, maxShape),
    layout: chunks ? chunkedLater(chunks) : unallocated,
    filters: chunks ? filterEntries(filters, elementSize) : [],
    ...(fill !== undefined && { fill: encodeFillValue(dtype, fill) }),
  });
}

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

/** A log has references to objects, and no others: regions are in the heap, and hold addresses of objects that move. */
export function mustBeLoggable(path: string, dtype: DType): void {
  const type = fullType(dtype);
  if (type.class === 'compound') for (const field of type.fields) mustBeLoggable(path, field.dtype);
  if (type.class === 'array' || type.class === 'vlen') mustBeLoggable(path, type.base);
  const isShort = (type.class === 'vlen' || (type.class === 'string' && type.variable)) && type.size !== HEAP_ID_SIZE;
  if ((type.class !== 'reference' || type.to === 'object') && !isShort) return;
  throw new H5LogError('UNSUPPORTED', `${path}: a dataset of a log cannot hold ${describeType(dtype)}`, {
    object: path,
  });
}
