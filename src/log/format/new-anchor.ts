// Anchors of new datasets, and what changes about an anchor.

import { allocate } from '../../base/buffers.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import { putU64 } from '../../hdf5/format/byte-writer.ts';
import { type HeapSlot, isAtHome, isStray, type ObjectNode, OWN_ADDRESS } from '../../hdf5/graph/object-node.ts';
import { draftDataset, type NewDataset, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import { NULL_SPACE, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { mayRefer } from '../../hdf5/messages/datatype.ts';
import { attributeHead } from '../../hdf5/messages/encode.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { deleteAttribute, expectChange, setPlainAttribute, stateAddress } from '../../hdf5/write/attributes.ts';
import { createPrepared, HeaderComposer, takeApart } from '../../hdf5/write/prepared.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { mayGrow } from '../../space/shape.ts';
import { CHUNKS, DIMS, FILTERS, type Identity, MAX_DIMS, REACH } from './anchor.ts';
import { TOKEN } from './log-group.ts';
import { tokenSpace, writeLogNumber, writeToken } from './log-group-write.ts';
import { ID, NUMBER, NUMBERS } from './names.ts';
import { encodeFillValue, type Filter, filterEntries } from './properties.ts';

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
  header.ownAddress();
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
  writeNumbersOf(structure, node, ID, [identity.id], 'int32');
  if (anchor.chunks) writeSizes(structure, node, CHUNKS, anchor.chunks);
  if (anchor.filters.length > 0) {
    const entries = filterEntries(anchor.filters, fullType(anchor.dtype).size);
    // Pairs of number and first parameter say all about the filters of version 0.1. Others have any number of parameters.
    if (anchor.filters.every((filter) => typeof filter === 'string' || 'deflate' in filter)) {
      const numbers = entries.flatMap(({ id: filter, values }) => [filter, values[0] ?? 0]);
      writeNumbersOf(structure, node, FILTERS, numbers, 'int32');
    } else {
      const numbers = entries.flatMap(({ id: filter, values }) => [filter, values.length, ...values]);
      writeNumbersOf(structure, node, FILTERS, numbers);
    }
  }
  if (identity.token) writeToken(structure, node, identity.token);
  if (identity.log !== null) writeLogNumber(structure, node, identity.log);
  stateAddress(structure, node);
}

/** Sizes; unlimited is -1. */
function writeSizes(structure: Structure, node: ObjectNode, name: string, sizes: readonly (number | null)[]): void {
  writeNumbersOf(structure, node, name, sizes);
}

function writeNumbersOf(
  structure: Structure,
  node: ObjectNode,
  name: string,
  numbers: readonly (number | null)[],
  dtype: 'int32' | 'int64' = 'int64',
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

export function writeReach(structure: Structure, node: ObjectNode, reach: readonly number[]): void {
  writeSizes(structure, node, REACH, reach);
}

/** Takes the numbers of others from copies; gives the numbers of all datasets. */
export function freeCopies(
  structure: Structure,
  nodes: Iterable<ObjectNode>,
  owners: ReadonlyMap<number, ObjectNode>,
): number[] {
  const numbers: number[] = [];
  for (const node of nodes) {
    const id = node.kind === 'dataset' ? structure.now(structure.attribute(node, ID)) : undefined;
    const number = id instanceof Int32Array && id.length === 1 ? (id[0] as number) : -1;
    numbers.push(number);
    const wrong: string[] = [];
    if (owners.has(number) && owners.get(number) !== node) wrong.push(ID, ...(import.meta.page ? [] : [OWN_ADDRESS]));
    // What leads to a copy is not meant for it.
    if (!import.meta.page && isStray(node)) wrong.push(NUMBER);
    for (const name of wrong) if (import.meta.page || node.attributes.has(name)) deleteAttribute(structure, node, name);
  }
  return numbers;
}

/** Gives an object its number, by which it is known from now on: copies of it are told by where it says that it is. */
export function writeNumber(structure: Structure, node: ObjectNode, numbers: readonly number[]): void {
  writeNumbersOf(structure, node, NUMBER, numbers);
  if (!isAtHome(node)) stateAddress(structure, node);
}

/** How many numbers were given, of the root. */
export function writeNumbers(structure: Structure, root: ObjectNode, numbers: readonly number[]): void {
  writeNumbersOf(structure, root, NUMBERS, numbers);
}
