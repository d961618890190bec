// Properties of new datasets: what they may be, and ordinary datasets that have them.

import { H5LogError } from '../../base/errors.ts';
import { checkNames } from '../../base/options.ts';
import { describeType } from '../../dtype/describe.ts';
import { type DType, fullType, HEAP_ID_SIZE } from '../../dtype/model.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { chunkedLater, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { FILTER } from '../../hdf5/messages/filter-pipeline.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { checkChunkBytes, ordinaryChunks } from '../../space/chunk-shape.ts';
import { type DatasetShape, encodeFillValue, type Filter, filterEntries, namedFilter } from './properties.ts';

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
