import { allocate } from '../../base/buffers.ts';
import { formatError } from '../../base/errors.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import { putU64 } from '../../hdf5/format/byte-writer.ts';
import type { HeapSlot, ObjectNode } from '../../hdf5/graph/object-node.ts';
import { draftDataset, type NewDataset, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import { attributeHead } from '../../hdf5/messages/attribute.ts';
import { type Dataspace, NULL_SPACE, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { mayRefer } from '../../hdf5/messages/datatype.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { expectChange, setPlainAttribute } from '../../hdf5/write/attributes.ts';
import { createPrepared, HeaderComposer, takeApart } from '../../hdf5/write/prepared.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { mayGrow } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import {
  LOG_NUMBER,
  readLogNumber,
  readToken,
  TOKEN,
  type Token,
  tokenSpace,
  writeLogNumber,
  writeToken,
} from './log-group.ts';
import { ID, NOTE, VIEW } from './names.ts';
import {
  type DatasetShape,
  encodeFillValue,
  type Filter,
  fillValue,
  filterEntries,
  namedFilter,
} from './properties.ts';
import { readView, type View } from './view.ts';

const DIMS = '_dims';
const MAX_DIMS = '_mdims';
/** Chunk shape and filters. The original has no such attributes, and cannot read a dataset with a filter message. */
const CHUNKS = '_chunks';
const FILTERS = '_filters';
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
  VIEW,
  NOTE,
]);

/** The HDF5 object of a logged dataset: it has no data, and attributes with shape, maximum shape and ID. */
export interface Anchor extends DatasetShape, Identity {
  /** What other programs see of it; null: never published. */
  readonly view: View | null;
}

/** What makes a dataset one of a log: its number there, and the token of the file. */
export interface Identity {
  readonly id: number;
  /** That of the file it was made in; null in files of the original and of h5log 0.1. */
  readonly token: Token | null;
  /** The number of its log, where the datasets of a group share one; else null. */
  readonly log: number | null;
}

export interface NewAnchor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly fill?: unknown;
  readonly chunks: readonly number[] | null;
  readonly filters: readonly Filter[];
}

/** Creates an anchor in a group. */
export function createAnchor(
  structure: Structure,
  parent: ObjectNode,
  name: string,
  identity: Identity,
  anchor: NewAnchor,
): ObjectNode {
  const node = structure.createDataset(parent, name, anchorDataset(anchor));
  describeAnchor(structure, node, identity, anchor);
  return node;
}

export function anchorDataset({ dtype, fill }: NewAnchor): NewDataset {
  return {
    dtype,
    space: NULL_SPACE,
    layout: unallocated,
    ...(fill !== undefined && { fill: encodeFillValue(dtype, fill) }),
  };
}

/** An attribute of a new object: what comes before its value, the value, and where ids of heap objects are in that. */
export interface DraftedAttribute {
  readonly head: Uint8Array;
  readonly value: Uint8Array;
  readonly heap: readonly HeapSlot[];
}

/**
 * Creates an anchor as {@link createAnchor} does, with a user's attributes: its header is encoded at once, without an object for each of
 * its messages. null if it is too large for that, and nothing is created.
 */
export function createComposedAnchor(
  structure: Structure,
  parent: ObjectNode,
  name: string,
  identity: Identity,
  anchor: NewAnchor,
  attributes: readonly DraftedAttribute[],
): ObjectNode | null {
  const { shape, maxShape } = anchor;
  if (anchor.chunks || anchor.filters.length > 0 || identity.log !== null) return null;
  const { drafts } = draftDataset(anchorDataset(anchor), structure.chunkFanout, structure.earliest);
  const header = new HeaderComposer();
  for (const { type, flags, bytes } of drafts) {
    // The structure looks at messages that may point to objects.
    if (type === MESSAGE.datatype && mayRefer(bytes, 0, bytes.length)) return null;
    header.message(type, flags, bytes);
  }
  const rank = simpleSpace([shape.length]);
  header.attribute(attributeHead(DIMS, 'int64', rank), encodeNumbers(shape, 'int64'));
  header.attribute(attributeHead(MAX_DIMS, 'int64', rank), encodeNumbers(maxShape, 'int64'));
  header.attribute(attributeHead(ID, 'int32', ONE), encodeNumbers([identity.id], 'int32'));
  const { token } = identity;
  if (token) header.attribute(attributeHead(TOKEN, 'uint8', tokenSpace(token)), token);
  for (const { head, value, heap } of attributes) header.attribute(head, value, heap);
  if (!header.fits) return null;
  const prepared = header.done();
  const node = createPrepared(structure, parent, name, prepared, (made) =>
    takeApart(made, prepared, structure.commitNumber),
  );
  if (mayGrow(shape, maxShape)) node.defer(() => expectChange(structure, node, DIMS));
  return node;
}

const ONE = simpleSpace([1]);

/** Sets the attributes of an anchor, in the order in which the original creates them. */
export function describeAnchor(structure: Structure, node: ObjectNode, identity: Identity, anchor: NewAnchor): void {
  writeSizes(structure, node, DIMS, anchor.shape);
  if (!import.meta.page && mayGrow(anchor.shape, anchor.maxShape)) expectChange(structure, node, DIMS);
  writeSizes(structure, node, MAX_DIMS, anchor.maxShape);
  writeNumbers(structure, node, ID, [identity.id]);
  if (anchor.chunks) writeSizes(structure, node, CHUNKS, anchor.chunks);
  if (anchor.filters.length > 0) {
    const entries = filterEntries(anchor.filters, fullType(anchor.dtype).size);
    // Pairs of number and first parameter say all about the filters of version 0.1. Others have any number of parameters.
    if (anchor.filters.every((filter) => typeof filter === 'string' || 'deflate' in filter)) {
      const numbers = entries.flatMap(({ id: filter, values }) => [filter, values[0] ?? 0]);
      writeNumbers(structure, node, FILTERS, numbers);
    } else {
      const numbers = entries.flatMap(({ id: filter, values }) => [filter, values.length, ...values]);
      writeNumbers(structure, node, FILTERS, numbers, 'int64');
    }
  }
  if (identity.token) writeToken(structure, node, identity.token);
  if (identity.log !== null) writeLogNumber(structure, node, identity.log);
}

/** Sizes; unlimited is -1. */
function writeSizes(structure: Structure, node: ObjectNode, name: string, sizes: readonly (number | null)[]): void {
  writeNumbers(structure, node, name, sizes, 'int64');
}

function writeNumbers(
  structure: Structure,
  node: ObjectNode,
  name: string,
  numbers: readonly (number | null)[],
  dtype: 'int32' | 'int64' = 'int32',
): void {
  setPlainAttribute(structure, node, name, dtype, simpleSpace([numbers.length]), encodeNumbers(numbers, dtype));
}

function encodeNumbers(numbers: readonly (number | null)[], dtype: 'int32' | 'int64'): Uint8Array {
  const isLong = dtype === 'int64';
  const bytes = allocate(numbers.length * (isLong ? 8 : 4));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  numbers.forEach((number, i) => {
    if (isLong) putU64(view, i * 8, number ?? -1);
    else view.setInt32(i * 4, number as number, true);
  });
  return bytes;
}

export function resizeAnchor(structure: Structure, node: ObjectNode, shape: readonly number[]): void {
  writeSizes(structure, node, DIMS, shape);
  if (!import.meta.page) expectChange(structure, node, DIMS);
}

/** The largest shape the dataset ever had, if it was ever shrunk: committed blocks may lie beyond its present shape. */
export function* readReach(structure: Structure, node: ObjectNode): Io<readonly number[] | undefined> {
  const reach = yield* structure.attribute(node, REACH);
  return reach instanceof BigInt64Array ? Array.from(reach, sizeOf) : undefined;
}

export function writeReach(structure: Structure, node: ObjectNode, reach: readonly number[]): void {
  writeSizes(structure, node, REACH, reach);
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
  return {
    id: id[0] as number,
    token: yield* readToken(structure, node),
    log: yield* readLogNumber(structure, node),
    dtype,
    view,
    shape: view ? presentShape(sizes(dims), view, space, offset) : sizes(dims),
    maxShape: Array.from(maxDims, (size) => (size === -1n ? null : sizeOf(size, offset))),
    fill: typeof fill.value === 'string' ? undefined : fillValue(dtype, fill.value, fillOffset),
    chunks: chunks instanceof BigInt64Array ? sizes(chunks) : null,
    filters:
      filters instanceof Int32Array
        ? pairs(filters).map(([filter, value]) => namedFilter({ id: filter, values: [value] }))
        : filters instanceof BigInt64Array
          ? numbered(Array.from(filters, Number), offset)
          : [],
  };
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
