import { H5LogError } from '../../base/errors.ts';
import { ByteWriter, textLength } from '../format/byte-writer.ts';
import { Cursor } from '../format/cursor.ts';
import {
  type AddressSlot,
  HeaderMessage,
  type HeapSlot,
  moveToFirstChunk,
  type ObjectNode,
  removeMessage,
} from '../graph/object-node.ts';
import { addReferrer, assignTemporaryHeapIds, removeReferrer } from '../graph/references.ts';
import { draftDataset, type MessageDraft, type NewDataset } from '../layouts/new-dataset.ts';
import { encodeLink, type LinkTarget } from '../messages/link.ts';
import { MESSAGE, MESSAGE_FLAG } from '../messages/message-types.ts';
import type { Structure } from './structure.ts';

/** What a dataset is given besides the type it has. */
export type Rewritten = Omit<NewDataset, 'dtype' | 'plain'>;

/**
 * Gives an existing dataset another shape, fill value, layout and other filters. Its type, its attributes and everything that
 * points to it stay as they are.
 */
export function rewriteDataset(structure: Structure, node: ObjectNode, dataset: Rewritten): void {
  const { dtype } = structure.dataset(node);
  const { drafts, extents } = draftDataset({ ...dataset, dtype }, structure.chunkFanout);
  structure.markDirty(node);
  for (const draft of drafts) if (draft.type !== MESSAGE.datatype) put(structure, node, draft);
  for (const extent of extents) structure.extents.add(extent);
}

function put(structure: Structure, node: ObjectNode, draft: MessageDraft): void {
  const known = node.message(draft.type);
  if (known) replaceMessage(structure, node, draft.type, draft.bytes);
  const message = known ?? new HeaderMessage(node, draft.type, draft.flags, 0, draft.bytes, true);
  message.targets = draft.targets ?? [];
  message.heap = draft.heap ?? [];
  assignTemporaryHeapIds(message);
  addReferrer(message);
  if (known) return;
  message.changed = structure.commitNumber;
  node.otherMessages.push(message);
  node.firstChunk.add(message);
}

/** Replaces a message of the rest, for example a datatype by the one that the input has. */
export function replaceMessage(structure: Structure, node: ObjectNode, type: number, bytes: Uint8Array): void {
  const message = node.message(type);
  if (!message) throw new H5LogError('UNSUPPORTED', `the object has no message of type ${type}`);
  structure.refuseInSharedTable(message);
  structure.markDirty(node);
  moveToFirstChunk(message);
  removeReferrer(message);
  Object.assign(message, {
    bytes,
    content: bytes,
    owned: true,
    targets: [],
    heap: [],
    changed: structure.commitNumber,
    flags: message.flags & ~MESSAGE_FLAG.shared,
  });
}

/** Gives a link another name, or a soft link another path. It keeps its place in the order of creation. */
export function renameLink(
  structure: Structure,
  group: ObjectNode,
  name: string,
  newName: string,
  path: string | null = null,
): void {
  const link = group.links.get(name);
  if (!link) throw new H5LogError('NOT_FOUND', `${name} does not exist`);
  if (newName !== name && group.links.has(newName)) throw new H5LogError('EXISTS', `${newName} exists already`);
  structure.markDirty(group);
  const { node, order } = link;
  const target: LinkTarget =
    link.target.kind === 'soft' && path !== null
      ? { kind: 'soft', path }
      : node
        ? { kind: 'hard', address: node.address }
        : link.target;
  const bytes = encodeLink(newName, order, target);
  const message = successor(structure, link.message, bytes, 0);
  if (node) message.targets = [{ at: bytes.length - 8, node }];
  addReferrer(message);
  group.links.delete(name);
  group.links.set(newName, { name: newName, order, target, node, message });
}

/** Gives an attribute another name. */
export function renameAttribute(structure: Structure, node: ObjectNode, name: string, newName: string): void {
  const attribute = node.attributes.get(name);
  if (!attribute) throw new H5LogError('NOT_FOUND', `there is no attribute ${name}`);
  if (node.attributes.has(newName)) throw new H5LogError('EXISTS', `there is an attribute ${newName} already`);
  const old = attribute.message;
  structure.refuseInSharedTable(old);
  if (node.denseAttributeInfo)
    throw new H5LogError('UNSUPPORTED', `${name} cannot be renamed: the object has attributes of more than 64 KiB`);
  structure.markDirty(node);
  const { bytes, shift } = renamed(old.bytes, newName);
  if (bytes.length > 0xffff)
    throw new H5LogError('UNSUPPORTED', `attribute ${newName} needs ${bytes.length} bytes in an object header`);
  const message = successor(structure, old, bytes, attribute.order);
  message.targets = old.targets.map(({ at, node: target }): AddressSlot => ({ at: at + shift, node: target }));
  message.heap = old.heap.map(({ at, content }): HeapSlot => ({ at: at + shift, content }));
  message.heapPending = message.heap.length > 0;
  addReferrer(message);
  node.attributes.delete(name);
  node.attributes.set(newName, { ...attribute, name: newName, message });
}

/** A message that takes the place of another one. */
function successor(structure: Structure, old: HeaderMessage, bytes: Uint8Array, order: number): HeaderMessage {
  removeReferrer(old);
  removeMessage(old);
  const message = new HeaderMessage(old.owner, old.type, old.type === MESSAGE.link ? 0 : old.flags, order, bytes, true);
  message.changed = structure.commitNumber;
  message.owner.firstChunk.add(message);
  return message;
}

/**
 * The same attribute message with another name, as version 3. `shift`: how far everything behind the name moved; only in
 * version 1, whose parts are padded, not by the same number of bytes, and that one has no shared parts.
 */
function renamed(body: Uint8Array, name: string): { bytes: Uint8Array; shift: number } {
  const cursor = new Cursor(body, 0);
  const version = cursor.u8();
  const second = cursor.u8();
  const nameSize = cursor.u16();
  const typeSize = cursor.u16();
  const spaceSize = cursor.u16();
  if (version === 3) cursor.skip(1);
  const padded = (size: number): number => (version === 1 ? Math.ceil(size / 8) * 8 : size);
  cursor.skip(padded(nameSize));
  const type = cursor.take(padded(typeSize), 'attribute type').subarray(0, typeSize);
  const space = cursor.take(padded(spaceSize), 'attribute dataspace').subarray(0, spaceSize);
  const length = textLength(name);
  const out = new ByteWriter(body.length + length + 16)
    .u8(3)
    .u8(version === 1 ? 0 : second)
    .u16(length + 1)
    .u16(typeSize)
    .u16(spaceSize)
    .u8(length === name.length ? 0 : 1);
  const head = out.text(name).u8(0).put(type).put(space).done().length;
  const dataAt = cursor.at;
  return { bytes: out.put(body.subarray(dataAt)).done(), shift: head - dataAt };
}
