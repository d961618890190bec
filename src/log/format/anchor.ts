import { formatError } from '../../base/errors.ts';
import { visitPointers } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import { type ObjectNode, OWN_ADDRESS } from '../../hdf5/graph/object-node.ts';
import type { Dataspace } from '../../hdf5/messages/dataspace.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import type { Io } from '../../storage/io.ts';
import { LOG_NUMBER, readLogNumber, readToken, TOKEN, type Token } from './log-group.ts';
import { ID, NOTE, VIEW } from './names.ts';
import { type DatasetShape, type Filter, fillValue, namedFilter } from './properties.ts';
import { readView, type View } from './view.ts';

export const DIMS = '_dims';
export const MAX_DIMS = '_mdims';
/** Chunk shape and filters. The original has no such attributes, and cannot read a dataset with a filter message. */
export const CHUNKS = '_chunks';
export const FILTERS = '_filters';
export const REACH = '_reach';
/** Attributes of an anchor that are not the user's. */
export const ANCHOR_ATTRIBUTES: ReadonlySet<string> = new Set([
  DIMS,
  MAX_DIMS,
  ID,
  CHUNKS,
  FILTERS,
  REACH,
  TOKEN,
  LOG_NUMBER,
  OWN_ADDRESS,
  VIEW,
  NOTE,
]);

/** The HDF5 object of a logged dataset: it has no data, and attributes with shape, maximum shape and ID. */
export interface Anchor extends DatasetShape, Identity {
  /** What other programs see of it; null: never published. */
  readonly view: View | null;
  /** `fill` as it is in the file, without what it points to; not there for a new dataset, and where there is no fill. */
  readonly fillBytes?: Uint8Array;
}

/** What makes a dataset one of a log: its number there, and the token of the file. */
export interface Identity {
  readonly id: number;
  /** That of the file it was made in; null in files of the original and of h5log 0.1. */
  readonly token: Token | null;
  /** The number of its log, where the datasets of a group share one; else null. */
  readonly log: number | null;
}

/** The largest shape the dataset ever had, if it was ever shrunk: committed blocks may lie beyond its present shape. */
export function* readReach(structure: Structure, node: ObjectNode): Io<readonly number[] | undefined> {
  const reach = yield* structure.attribute(node, REACH);
  return reach instanceof BigInt64Array ? Array.from(reach, sizeOf) : undefined;
}

/** Reads an anchor; undefined for a dataset that is none. */
export function* readAnchor(structure: Structure, node: ObjectNode): Io<Anchor | undefined> {
  const dims = yield* structure.attribute(node, DIMS);
  const maxDims = yield* structure.attribute(node, MAX_DIMS);
  const id = yield* structure.attribute(node, ID);
  if (!(dims instanceof BigInt64Array) || !(maxDims instanceof BigInt64Array) || !(id instanceof Int32Array))
    return undefined;
  if (dims.length !== maxDims.length || id.length !== 1) return undefined;
  const { dtype, fill, fillOffset, space } = structure.dataset(node);
  const offset = structure.loader.file.base + node.address;
  const view = yield* readView(structure, node);
  const sizes = (list: BigInt64Array): number[] => Array.from(list, (size) => sizeOf(size, offset));
  const chunks = yield* structure.attribute(node, CHUNKS);
  const filters = yield* structure.attribute(node, FILTERS);
  const value = typeof fill.value === 'string' ? undefined : fillValue(dtype, fill.value, fillOffset);
  return {
    id: id[0] as number,
    token: yield* readToken(structure, node),
    log: yield* readLogNumber(structure, node),
    dtype,
    view,
    shape: view ? presentShape(sizes(dims), view, space, offset) : sizes(dims),
    maxShape: Array.from(maxDims, (size) => (size === -1n ? null : sizeOf(size, offset))),
    fill: value,
    ...(value !== undefined && { fillBytes: withoutPointers(dtype, fill.value as Uint8Array) }),
    chunks: chunks instanceof BigInt64Array ? sizes(chunks) : null,
    filters:
      filters instanceof Int32Array
        ? pairs(filters).map(([filter, value]) => namedFilter({ id: filter, values: [value] }))
        : filters instanceof BigInt64Array
          ? numbered(Array.from(filters, Number), offset)
          : [],
  };
}

/** An element with null where it points to something: in a log nothing is there that fill values could point to. */
function withoutPointers(dtype: DType, element: Uint8Array): Uint8Array {
  const bytes = element.slice();
  visitPointers(dtype, bytes, 1, (at, { size }) => bytes.fill(0, at, at + size));
  return bytes;
}

/** Another program may have changed the dataspace of a published dataset; then it counts. */
function presentShape(dims: number[], { shape, cut }: View, space: Dataspace, offset: number): readonly number[] {
  const seen = space.kind === 'simple' ? space.shape : [];
  if (space.kind === 'null' || seen.length !== dims.length || shape.length !== dims.length)
    throw formatError('a published dataset whose dataspace has other dimensions', offset);
  if (isSame(seen, shape)) return dims;
  // Cut and grown again by h5log, grown by the other: which part of the layout counts is not known.
  const isGrownAgain = cut !== null && seen.some((size, d) => size > (shape[d] as number));
  if (isSame(dims, shape) && !isGrownAgain) return seen;
  throw formatError('h5log and another program have both changed the shape of a published dataset', offset);
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.every((size, d) => size === b[d]);
}

function sizeOf(size: bigint, offset: number): number {
  if (size < 0n || size > BigInt(Number.MAX_SAFE_INTEGER)) throw formatError(`a dimension of ${size} elements`, offset);
  return Number(size);
}

/** Filters as (number, number of parameters, parameters). */
function numbered(numbers: readonly number[], offset: number): Filter[] {
  const list: Filter[] = [];
  for (let i = 0; i < numbers.length; ) {
    const [id = 0, count = -1] = numbers.slice(i, i + 2);
    const values = numbers.slice(i + 2, i + 2 + count);
    if (count < 0 || values.length !== count) throw formatError('filters of a dataset are cut off', offset);
    list.push(namedFilter({ id, values }));
    i += 2 + count;
  }
  return list;
}

function pairs(numbers: Int32Array): [number, number][] {
  const list: [number, number][] = [];
  for (let i = 0; i + 1 < numbers.length; i += 2) list.push([numbers[i] as number, numbers[i + 1] as number]);
  return list;
}
