// Setting and deleting attributes of objects in memory; the next commit writes them. Values are encoded at once.

import { H5LogError } from '../../base/errors.ts';
import { type Encoded, encodeValues } from '../../dtype/encode.ts';
import type { DType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { putU64 } from '../format/byte-writer.ts';
import {
  type AddressSlot,
  type Attribute,
  HeaderMessage,
  type HeapSlot,
  moveToFirstChunk,
  ObjectNode,
  type Relocatable,
  removeMessage,
} from '../graph/object-node.ts';
import { removeReferrer, setReferences } from '../graph/references.ts';
import { encodeAttribute, encodeTypedAttribute } from '../messages/attribute.ts';
import { type Dataspace, elementCount } from '../messages/dataspace.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { encodeSharedObject, SHARED_ADDRESS_AT } from '../read/shared-messages.ts';
import type { Structure } from './structure.ts';

const NONE: readonly never[] = [];
/** Largest creation order of an attribute: it has 16 bits, and so has the next one, which the attribute info message holds. */
const MAX_ORDER = 0xfffe;
/** The most bytes of an attribute, which is in memory as a whole. */
const MAX_ATTRIBUTE = 2 ** 30;

/** Sets an attribute; later changes to `value` have no effect. */
export function* setAttribute(
  structure: Structure,
  node: ObjectNode,
  name: string,
  dtype: DType,
  space: Dataspace,
  value: unknown,
): Io<void> {
  const count = elementCount(space);
  const encoded: Encoded =
    count === 0 ? { bytes: new Uint8Array(0), heap: [], references: [] } : encodeValues(dtype, value, count);
  if (encoded.references.length + encoded.heap.length === 0) {
    setPlainAttribute(structure, node, name, dtype, space, encoded.bytes);
    return;
  }
  const { body, dataAt } = encodeAttribute(name, dtype, space, encoded.bytes);
  const targets: AddressSlot[] = [];
  const heap: HeapSlot[] = [];
  yield* resolve(structure, encoded, dataAt, targets, heap);
  putAttribute(structure, node, name, body, targets, heap, null);
}

/** Sets an attribute whose encoded value holds neither references nor variable-length parts. */
export function setPlainAttribute(
  structure: Structure,
  node: ObjectNode,
  name: string,
  dtype: DType,
  space: Dataspace,
  data: Uint8Array,
): void {
  setAttributeMessage(structure, node, name, encodeAttribute(name, dtype, space, data).body);
}

/** Sets an attribute from its encoded message, which holds neither references nor variable-length parts. */
export function setAttributeMessage(structure: Structure, node: ObjectNode, name: string, body: Uint8Array): void {
  putAttribute(structure, node, name, body, NONE, NONE, null);
}

/** Sets an attribute whose value is encoded and says what it points to. Its type is encoded too, or a committed datatype. */
export function setEncodedAttribute(
  structure: Structure,
  node: ObjectNode,
  name: string,
  type: Uint8Array | ObjectNode,
  space: Dataspace,
  value: Relocatable,
): void {
  const committed = type instanceof ObjectNode ? type : null;
  if (committed) structure.checkMutable(committed); // its count of uses grows
  const typeBytes = type instanceof ObjectNode ? encodeSharedObject(type.address) : type;
  const { body, typeAt, dataAt } = encodeTypedAttribute(name, typeBytes, committed !== null, space, value.bytes);
  const targets = value.targets.map(({ at, target }) => ({ at: at + dataAt, target }));
  if (committed) targets.push({ at: typeAt + SHARED_ADDRESS_AT, target: committed });
  const heap = value.heap.map(({ at, content }) => ({ at: at + dataAt, content }));
  putAttribute(structure, node, name, body, targets, heap, committed);
}

/** Deletes an attribute. */
export function deleteAttribute(structure: Structure, node: ObjectNode, name: string): void {
  const attribute = node.attributes.get(name);
  if (!attribute) throw new H5LogError('NOT_FOUND', `there is no attribute ${name}`);
  checkRemovable(structure, attribute);
  structure.markDirty(node);
  node.attributes.delete(name);
  remove(structure, attribute);
}

/** Sets an attribute from its message. A committed datatype counts one more use. */
function putAttribute(
  structure: Structure,
  node: ObjectNode,
  name: string,
  body: Uint8Array,
  targets: readonly AddressSlot[],
  heap: readonly HeapSlot[],
  committed: ObjectNode | null,
): void {
  if (body.length > MAX_ATTRIBUTE)
    throw new H5LogError('UNSUPPORTED', `attribute ${name} has ${body.length} bytes; at most 1 GiB is possible`);
  const old = node.attributes.get(name);
  if (old) checkRemovable(structure, old);
  structure.markDirty(node);
  const order = old ? old.order : nextOrder(node);
  if (old) remove(structure, old);
  const message = new HeaderMessage(node, MESSAGE.attribute, 0, order, body, true);
  message.changed = structure.commitNumber;
  if (targets.length > 0) {
    const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
    for (const { at, target } of targets) putU64(view, at, target.address);
  }
  setReferences(message, targets, heap);
  node.firstChunk.add(message);
  if (node.dense) node.dense.written = false;
  else if (body.length > MESSAGE.MAX_SIZE) node.dense = { info: body, written: false };
  const sharedType = committed?.message(MESSAGE.datatype)?.content ?? null;
  node.attributes.set(name, { name, order, message, sharedType, sharedSpace: null, committed });
  if (committed) structure.countTypeUse(committed, 1);
}

/** Turns the paths of references into objects and heap items into slots, also those inside heap items. */
function* resolve(
  structure: Structure,
  encoded: Encoded,
  shift: number,
  targets: AddressSlot[],
  heap: HeapSlot[],
): Io<void> {
  for (const { at, path } of encoded.references) {
    const target = yield* structure.lookup(structure.root, structure.paths.stored(path));
    if (!target) throw new H5LogError('NOT_FOUND', `a reference to ${path}, which does not exist`, { object: path });
    targets.push({ at: at + shift, target });
  }
  for (const { at, content } of encoded.heap) {
    const { bytes, references } = content;
    const slot = at + 4 + shift;
    if (references.length + content.heap.length === 0) {
      // Nearly always: a variable-length string.
      heap.push({ at: slot, content: { bytes, owned: true, targets: NONE, heap: NONE } });
      continue;
    }
    const inner = { bytes, owned: true, targets: [] as AddressSlot[], heap: [] as HeapSlot[] };
    yield* resolve(structure, content, 0, inner.targets, inner.heap);
    heap.push({ at: slot, content: inner });
  }
}

/** Before an attribute is removed or replaced. */
function checkRemovable(structure: Structure, attribute: Attribute): void {
  structure.refuseInSharedTable(attribute.message);
  if (attribute.committed) structure.checkMutable(attribute.committed);
}

/** Removes the message of an attribute, which is deleted or gets another message. */
function remove(structure: Structure, { message, committed }: Attribute): void {
  removeReferrer(message);
  removeMessage(message);
  if (committed) structure.countTypeUse(committed, -1);
}

/** The creation order of the next attribute; when all numbers are used up, the attributes are numbered again. */
function nextOrder(node: ObjectNode): number {
  const ordering = node.attributeOrder;
  if (!ordering.tracked) return 0;
  if (ordering.next > MAX_ORDER) {
    ordering.next = 0;
    for (const attribute of node.attributes.values()) {
      moveToFirstChunk(attribute.message);
      attribute.order = attribute.message.order = ordering.next++;
    }
    if (ordering.next > MAX_ORDER) throw new H5LogError('UNSUPPORTED', 'an object can have at most 65,535 attributes');
  }
  return ordering.next++;
}
