// Setting and deleting attributes of objects in memory, whose values are encoded at once; and dense storage, where the next commit
// writes attributes that do not fit into a header.

import { lookup3 } from '../../base/checksum.ts';
import { H5LogError } from '../../base/errors.ts';
import { type Encoded, encodeValues } from '../../dtype/encode.ts';
import type { DType } from '../../dtype/model.ts';
import type { Boxes } from '../../space/box.ts';
import { select, resolve as selected, type Where } from '../../space/select.ts';
import type { Io } from '../../storage/io.ts';
import { ByteWriter, putAddress, putU64 } from '../format/byte-writer.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import {
  type AddressSlot,
  type Attribute,
  HeaderMessage,
  type HeapSlot,
  isAtHome,
  moveToFirstChunk,
  ObjectNode,
  OWN_ADDRESS,
  OWN_ADDRESS_AT,
  type Relocatable,
  removeMessage,
} from '../graph/object-node.ts';
import { pointsToObjects, removeReferrer, setReferences } from '../graph/references.ts';
import { CHUNK_TREE, RecordTree } from '../layouts/record-tree.ts';
import { attributeNameBytes } from '../messages/attribute.ts';
import { type Dataspace, elementCount, simpleSpace } from '../messages/dataspace.ts';
import {
  encodeAttribute,
  encodeAttributeInfo,
  encodeTypedAttribute,
  renameAttributeMessage,
} from '../messages/encode.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { encodeSelection } from '../messages/selection.ts';
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
  const encoded = setUnlessReferring(structure, node, name, dtype, space, value);
  if (!encoded) return;
  const { body, dataAt } = encodeAttribute(name, dtype, space, encoded.bytes);
  const targets: AddressSlot[] = [];
  const heap: HeapSlot[] = [];
  yield* resolve(structure, encoded, dataAt, targets, heap);
  putAttribute(structure, node, name, body, targets, heap, null);
}

/**
 * Sets an attribute without references, which are nearly all: no object has to be looked up. Otherwise nothing is set, and the encoded
 * value is returned.
 */
export function setUnlessReferring(
  structure: Structure,
  node: ObjectNode,
  name: string,
  dtype: DType,
  space: Dataspace,
  value: unknown,
): Encoded | undefined {
  const count = elementCount(space);
  if (count === 0) {
    setPlainAttribute(structure, node, name, dtype, space, new Uint8Array(0));
    return undefined;
  }
  const encoded = encodeValues(dtype, value, count);
  if (encoded.references.length > 0 || encoded.heap.some(isNested)) return encoded;
  const { body, dataAt } = encodeAttribute(name, dtype, space, encoded.bytes);
  putAttribute(structure, node, name, body, NONE, textSlots(encoded, dataAt), null);
  return undefined;
}

/** The encoded value of an attribute without references, and where ids of heap objects are in it. */
export function encodeValue(
  dtype: DType,
  space: Dataspace,
  value: unknown,
): { value: Uint8Array; heap: readonly HeapSlot[] } {
  const encoded = encodeValues(dtype, value, elementCount(space));
  return { value: encoded.bytes, heap: textSlots(encoded, 0) };
}

/** Whether something in the heap points further. */
const isNested = ({ content }: Encoded['heap'][0]): boolean => content.references.length + content.heap.length > 0;

/** Where the heap ids of variable-length texts and numbers are in a message. */
function textSlots({ heap }: Encoded, dataAt: number): readonly HeapSlot[] {
  if (heap.length === 0) return NONE;
  const slots: HeapSlot[] = [];
  for (const { at, content } of heap)
    slots.push({ at: at + 4 + dataAt, content: { bytes: content.bytes, owned: true, targets: NONE, heap: NONE } });
  return slots;
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

/** Makes an object say where it is. Commits keep it right. */
export function stateAddress(structure: Structure, node: ObjectNode): void {
  const body = STATED.slice();
  putAddress(body, OWN_ADDRESS_AT, node.address);
  setAttributeMessage(structure, node, OWN_ADDRESS, body);
}

const STATED = encodeAttribute(OWN_ADDRESS, 'int64', simpleSpace([1]), new Uint8Array(8)).body;

/** The message in which an object rightly says where it is, ready for a commit that moves the object and puts its address there. */
export function homeMessage(node: ObjectNode): HeaderMessage | undefined {
  const message = isAtHome(node) ? node.attributes.get(OWN_ADDRESS)?.message : undefined;
  // Another program may have written it anew, or put it elsewhere.
  if (message?.bytes.length !== OWN_ADDRESS_AT + 8) return undefined;
  moveToFirstChunk(message);
  message.bytes = message.content = message.bytes.slice();
  message.owned = true;
  // It changes whenever the header is written.
  message.changed = Infinity;
  return message;
}

/** Sets an attribute from its encoded message, which holds neither references nor variable-length parts. */
export function setAttributeMessage(structure: Structure, node: ObjectNode, name: string, body: Uint8Array): void {
  putAttribute(structure, node, name, body, NONE, NONE, null);
}

/** Gives a prepared object an attribute that its encoded header has. */
export function addAttributeMessage(node: ObjectNode, name: string, body: Uint8Array): void {
  const order = nextOrder(node);
  const message = new HeaderMessage(node, MESSAGE.attribute, 0, order, body, true);
  node.firstChunk.add(message);
  node.attributes.set(name, { name, order, message, sharedType: null, sharedSpace: null, committed: null });
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
  structure.announce();
  const attribute = node.attributes.get(name);
  if (!attribute) throw new H5LogError('NOT_FOUND', `there is no attribute ${name}`);
  structure.checkMutable(node);
  checkRemovable(structure, attribute);
  structure.markDirty(node);
  node.attributes.delete(name);
  remove(structure, attribute);
}

/** Sets another attribute to the same value. */
export function copyAttribute(structure: Structure, node: ObjectNode, from: string, to: string): void {
  const attribute = node.attributes.get(from);
  if (!attribute) throw new H5LogError('NOT_FOUND', `there is no attribute ${from}`);
  const { message, committed } = attribute;
  const { bytes, shift } = renameAttributeMessage(message.bytes, to);
  const targets = message.targets.map(({ at, target }) => ({ at: at + shift, target }));
  const heap = message.heap.map(({ at, content }) => ({ at: at + shift, content: copied(content) }));
  putAttribute(structure, node, to, bytes, targets, heap, committed);
}

/** What an attribute points to, in bytes of its own. */
function copied({ bytes, targets, heap }: Relocatable): Relocatable {
  return {
    bytes: bytes.slice(),
    owned: true,
    targets,
    heap: heap.map(({ at, content }) => ({ at, content: copied(content) })),
  };
}

/** Says that an attribute will change again soon: in a large header it is then stored apart from what does not. */
export function expectChange(structure: Structure, node: ObjectNode, name: string): void {
  const attribute = node.attributes.get(name);
  if (attribute) attribute.message.changed = structure.commitNumber + 1;
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
  structure.announce();
  if (body.length > MAX_ATTRIBUTE)
    throw new H5LogError('UNSUPPORTED', `attribute ${name} has ${body.length} bytes; at most 1 GiB is possible`);
  const old = node.attributes.get(name);
  if (old) structure.checkMutable(node);
  if (old) checkRemovable(structure, old);
  structure.markDirty(node);
  const order = old ? old.order : nextOrder(node);
  if (old) remove(structure, old);
  const message = new HeaderMessage(node, MESSAGE.attribute, 0, order, body, true);
  message.changed = structure.commitNumber;
  setReferences(message, targets, heap);
  if (pointsToObjects(message)) structure.isTree = false;
  if (targets.length + heap.length > 0) putAddresses(message);
  node.firstChunk.add(message);
  if (node.dense) node.dense.written = false;
  else if (body.length > MESSAGE.MAX_SIZE) node.dense = { info: body, written: false };
  const sharedType = committed?.message(MESSAGE.datatype)?.content ?? null;
  node.attributes.set(name, { name, order, message, sharedType, sharedSpace: null, committed });
  if (committed) structure.countTypeUse(committed, 1);
}

/** Writes the addresses that objects have now, temporary ones included: an attribute can be read before it is committed. */
function putAddresses({ bytes, targets, heap }: Relocatable): void {
  if (targets.length > 0) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const { at, target } of targets) putU64(view, at, target.address);
  }
  for (const { content } of heap) putAddresses(content);
}

/** Turns the paths of references into objects and heap items into slots, also those inside heap items. */
function* resolve(
  structure: Structure,
  encoded: Encoded,
  shift: number,
  targets: AddressSlot[],
  heap: HeapSlot[],
): Io<void> {
  for (const { at, path, where } of encoded.references) {
    const target = yield* structure.lookup(structure.root, structure.paths.stored(path));
    if (!target) throw new H5LogError('NOT_FOUND', `a reference to ${path}, which does not exist`, { object: path });
    if (where) heap.push({ at: at + shift, content: regionOf(structure, target, path, where as Where) });
    else targets.push({ at: at + shift, target });
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

/** The heap object of a region reference: the address of a dataset and the selection. */
function regionOf(structure: Structure, target: ObjectNode, path: string, where: Where): Relocatable {
  if (target.kind !== 'dataset')
    throw new H5LogError('DTYPE', `a reference to a region of ${path}, which is a ${target.kind}`, { object: path });
  const { space } = structure.dataset(target);
  // A dataset of a log has its shape elsewhere.
  const blocks = space.kind === 'simple' ? selected(where, space.shape) : fixed(where);
  const bytes = new ByteWriter(64).u64(target.address).put(encodeSelection(blocks)).done();
  return { bytes, owned: true, targets: [{ at: 0, target }], heap: NONE };
}

/** The boxes of a selection that does not depend on a shape. */
function fixed(where: Where): Boxes {
  const list = [...select.none().or(where).boxes()];
  const flat = (of: 'start' | 'count') => Float64Array.from(list.flatMap((box) => box[of]));
  return { rank: list[0]?.start.length ?? 1, length: list.length, starts: flat('start'), counts: flat('count') };
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

// ------------------------------------------------------------------ dense storage

// All attributes of an object with one that does not fit into a header are huge objects of a fractal heap (HDF5 file format
// specification, III.G and IV.A.2.v), that is, each lies in the file by itself: one that does not change stays where it is. The
// heap's header and the B-trees that find the attributes are written again with every change.

/** Bytes of a heap's header with addresses and lengths of 8 bytes. */
const HEAP_HEADER = 146;
/** What libhdf5 writes in place of a creation order that is not tracked. */
const NO_ORDER = 0xffff;

/** Dense storage with its addresses. */
export interface DensePlan {
  readonly node: ObjectNode;
  /** Attributes that are written with it; the others are in the file. */
  readonly written: readonly HeaderMessage[];
  /** Address behind the last byte. */
  readonly end: number;
  /** Encodes it, after all messages were patched; `room` gives the bytes at an address. */
  readonly encode: (room: (address: number, size: number) => Uint8Array) => void;
}

/**
 * Assigns addresses from `at` on to the dense storage of an object and takes its attributes out of the header; null if there is
 * nothing to write. An object that has no large attribute any more gets its attributes back into the header.
 */
export function planDense(node: ObjectNode, at: number): DensePlan | null {
  const { dense } = node;
  if (!dense || dense.written) return null;
  const messages = [...node.attributes.values()].map(({ message }) => message);
  if (!messages.some(({ bytes }) => bytes.length > MESSAGE.MAX_SIZE)) {
    node.dense = null;
    messages.forEach(moveToFirstChunk);
    return null;
  }
  let end = at;
  const place = (size: number): number => {
    end += size;
    return end - size;
  };
  const written = messages.filter(({ denseAddress }) => denseAddress < 0);
  for (const message of written) {
    removeMessage(message);
    message.denseAddress = place(message.bytes.length);
  }
  const { tracked, indexed } = node.attributeOrder;
  const trees = [hugeTree(messages), nameTree(messages, tracked), ...(indexed ? [orderTree(messages)] : [])];
  const extents = trees.map(({ extent }) => {
    extent.address = place(extent.size);
    return extent;
  });
  const [huge = UNDEFINED, names = UNDEFINED, orders = UNDEFINED] = extents.map(({ address }) => address);
  const heap = place(HEAP_HEADER);
  dense.info = encodeAttributeInfo(node.attributeOrder, { heap, names, orders });
  dense.written = true;
  const encode: DensePlan['encode'] = (room) => {
    for (const { denseAddress, bytes } of written) room(denseAddress, bytes.length).set(bytes);
    for (const { address, size, parts } of extents) room(address, size).set(parts()[0] as Uint8Array);
    room(heap, HEAP_HEADER).set(encodeHeap(messages, huge));
  };
  return { node, written, end, encode };
}

/** Finds the objects of the heap: address, length and number of each. */
function hugeTree(messages: readonly HeaderMessage[]): RecordTree {
  const out = new ByteWriter(24 * messages.length);
  for (const [i, { denseAddress, bytes }] of messages.entries())
    out
      .u64(denseAddress)
      .u64(bytes.length)
      .u64(i + 1);
  return treeOf(1, 24, out);
}

/** Finds attributes by the hash of their name: heap ID, flags, creation order, hash. */
function nameTree(messages: readonly HeaderMessage[], tracked: boolean): RecordTree {
  const names = messages.map(({ bytes }) => attributeNameBytes(new Cursor(bytes, 0)));
  const hashes = names.map((name) => lookup3(name));
  const order = [...messages.keys()].sort(
    (a, b) =>
      (hashes[a] as number) - (hashes[b] as number) || compareBytes(names[a] as Uint8Array, names[b] as Uint8Array),
  );
  const out = new ByteWriter(17 * messages.length);
  for (const i of order) {
    const { flags, order: created } = messages[i] as HeaderMessage;
    putHeapId(out, i)
      .u8(flags)
      .u32(tracked ? created : NO_ORDER)
      .u32(hashes[i] as number);
  }
  return treeOf(8, 17, out);
}

/** Finds attributes by their creation order: heap ID, flags, creation order. */
function orderTree(messages: readonly HeaderMessage[]): RecordTree {
  const order = [...messages.entries()].sort(([, a], [, b]) => a.order - b.order);
  const out = new ByteWriter(13 * messages.length);
  for (const [i, { flags, order: created }] of order) putHeapId(out, i).u8(flags).u32(created);
  return treeOf(9, 13, out);
}

/** The heap ID of a huge object that a B-tree finds by its number. */
function putHeapId(out: ByteWriter, i: number): ByteWriter {
  return out.u8(0x10).uint(i + 1, 7);
}

function treeOf(type: number, recordSize: number, records: ByteWriter): RecordTree {
  return RecordTree.ofSorted({ ...CHUNK_TREE, nodeSize: 512, type, recordSize }, records.done());
}

/** The heap's header, with the sizes that libhdf5 chooses for attributes. */
function encodeHeap(messages: readonly HeaderMessage[], huge: number): Uint8Array {
  const bytes = messages.reduce((sum, message) => sum + message.bytes.length, 0);
  const out = new ByteWriter(HEAP_HEADER).text('FRHP').u8(0);
  // Heap IDs of 8 bytes, no filters, checksums in direct blocks, managed objects of at most 4 KiB; the number of the last huge
  // object, and its tree.
  out.u16(8).u16(0).u8(2).u32(4096).u64(messages.length).u64(huge);
  // No managed space: none free, no manager of free space, no blocks, no objects.
  out.u64(0).u64(UNDEFINED).u64(0).u64(0).u64(0).u64(0);
  // Huge objects: bytes and number; no tiny ones.
  out.u64(bytes).u64(messages.length).u64(0).u64(0);
  // The doubling table: its width, block sizes, bits of an offset, rows at first; no root block.
  out.u16(4).u64(1024).u64(65_536).u16(40).u16(1).u64(UNDEFINED).u16(0);
  return out.u32(lookup3(out.done())).done();
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const i = a.findIndex((byte, k) => byte !== b[k]);
  return i < 0 ? a.length - b.length : (a[i] as number) - (b[i] ?? -1);
}
