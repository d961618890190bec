// Changes to what exists: other names for links and attributes, other messages and layouts for datasets. Only tools need them.

import { H5LogError } from '../../base/errors.ts';
import { HeaderMessage, moveToFirstChunk, type ObjectNode, removeMessage } from '../graph/object-node.ts';
import { addReferrer, pointsToObjects, removeReferrer, setReferences } from '../graph/references.ts';
import {
  draftDataset,
  type MessageDraft,
  type NewDataset,
  type NewLayout,
  unallocated,
} from '../layouts/new-dataset.ts';
import { type Dataspace, NULL_SPACE } from '../messages/dataspace.ts';
import { encodeDataspace, renameAttributeMessage } from '../messages/encode.ts';
import { encodeLink, type LinkTarget } from '../messages/link.ts';
import * as MESSAGE_FLAG from '../messages/message-flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { checkMessageSize, type Structure } from './structure.ts';

/** Gives a link another name, or a soft link another path. It keeps its creation order. */
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
  const message = successor(structure, link.message, 0, bytes, 0);
  if (node) message.targets = [{ at: bytes.length - 8, target: node }];
  addReferrer(message);
  group.links.delete(name);
  group.links.set(newName, { name: newName, order, target, node, message });
}

/** Gives an attribute another name. It keeps its creation order. */
export function renameAttribute(structure: Structure, node: ObjectNode, name: string, newName: string): void {
  const attribute = node.attributes.get(name);
  if (!attribute) throw new H5LogError('NOT_FOUND', `there is no attribute ${name}`);
  if (node.attributes.has(newName)) throw new H5LogError('EXISTS', `there is an attribute ${newName} already`);
  const old = attribute.message;
  structure.refuseInSharedTable(old);
  structure.markDirty(node);
  const { bytes, shift } = renameAttributeMessage(old.bytes, newName);
  if (bytes.length > MESSAGE.MAX_SIZE) node.dense ??= { info: bytes, written: false };
  const message = successor(structure, old, old.flags, bytes, attribute.order);
  message.targets = old.targets.map(({ at, target }) => ({ at: at + shift, target }));
  message.heap = old.heap.map(({ at, content }) => ({ at: at + shift, content }));
  message.heapPending = message.heap.length > 0;
  addReferrer(message);
  node.attributes.delete(name);
  node.attributes.set(newName, { ...attribute, name: newName, message });
}

/** A message in place of another one, which is removed. */
function successor(
  structure: Structure,
  old: HeaderMessage,
  flags: number,
  bytes: Uint8Array,
  order: number,
): HeaderMessage {
  removeReferrer(old);
  removeMessage(old);
  const message = new HeaderMessage(old.owner, old.type, flags, order, bytes, true);
  message.changed = structure.commitNumber;
  message.owner.firstChunk.add(message);
  return message;
}

/**
 * Gives an existing dataset another shape, layout and other filters; the returned function puts back what there was. Its type, its
 * attributes, everything that points to it and, unless another is given, its fill value stay as they are.
 */
export function rewriteDataset(
  structure: Structure,
  node: ObjectNode,
  dataset: Omit<NewDataset, 'dtype' | 'untracked'>,
): () => void {
  const { dtype, fill } = structure.dataset(node);
  const kept = fill.value === 'default' ? {} : { fill: fill.value };
  const { drafts, extents } = draftDataset({ ...kept, ...dataset, dtype }, structure.chunkFanout);
  for (const { bytes } of drafts) checkMessageSize(bytes, 'the layout');
  structure.markDirty(node);
  const before = drafts
    .filter(({ type }) => type !== MESSAGE.datatype)
    .map((draft) => {
      const bytes = node.message(draft.type)?.content.slice();
      putMessage(structure, node, draft);
      return { type: draft.type, bytes };
    });
  for (const extent of extents) structure.extents.add(extent);
  return () => {
    for (const { type, bytes } of before) {
      const message = node.message(type);
      if (bytes) replaceMessage(structure, node, type, bytes);
      else if (message) dropMessage(node, message);
    }
  };
}

/** Takes its data and its dataspace from a dataset. */
export function emptyDataset(structure: Structure, node: ObjectNode): void {
  rewriteDataset(structure, node, { space: NULL_SPACE, layout: unallocated });
  const filters = node.message(MESSAGE.filters);
  if (filters) dropMessage(node, filters);
}

/** What changes in the header of a dataset when its data does. */
interface DataChange {
  readonly space: Dataspace;
  /** null: as it is. */
  readonly layout: NewLayout | null;
}

/** Gives a dataset another shape and another layout; the returned function puts back what there was. */
export function changeData(structure: Structure, node: ObjectNode, { space, layout }: DataChange): () => void {
  const { type, filters, space: oldSpace } = structure.dataset(node);
  structure.markDirty(node);
  const before = [MESSAGE.dataspace, MESSAGE.layout].flatMap((kind) => {
    const message = node.message(kind);
    return message ? [{ kind, bytes: message.content.slice() }] : [];
  });
  if (!sameSpace(oldSpace, space))
    putMessage(structure, node, { type: MESSAGE.dataspace, flags: 0, bytes: encodeDataspace(space) });
  let external: HeaderMessage | undefined;
  if (layout) {
    const context = { space, elementSize: type.size, filtered: filters.length > 0, fanout: structure.chunkFanout };
    const { draft, extents } = layout.draft(context);
    checkMessageSize(draft.bytes, 'the layout');
    putMessage(structure, node, draft);
    for (const extent of extents) structure.extents.add(extent);
    external = node.message(MESSAGE.externalFiles);
    if (external) dropMessage(node, external);
  }
  return () => {
    for (const { kind, bytes } of before) replaceMessage(structure, node, kind, bytes);
    if (!external) return;
    node.otherMessages.push(external);
    node.firstChunk.add(external);
  };
}

function sameSpace(a: Dataspace, b: Dataspace): boolean {
  if (a.kind !== 'simple' || b.kind !== 'simple') return a.kind === b.kind;
  return a.shape.every((size, d) => size === b.shape[d]);
}

function dropMessage(node: ObjectNode, message: HeaderMessage): void {
  removeMessage(message);
  node.otherMessages.splice(node.otherMessages.indexOf(message), 1);
}

/** Replaces the message of the draft's type, or adds it if there is none. */
function putMessage(structure: Structure, node: ObjectNode, draft: MessageDraft): void {
  const old = node.message(draft.type);
  if (old) replaceMessage(structure, node, draft.type, draft.bytes);
  const message = old ?? new HeaderMessage(node, draft.type, draft.flags, 0, draft.bytes, true);
  setReferences(message, draft.targets, draft.heap);
  if (pointsToObjects(message)) structure.isTree = false;
  if (old) return;
  message.changed = structure.commitNumber;
  node.otherMessages.push(message);
  node.firstChunk.add(message);
}

/** Replaces the bytes of a message, for example a datatype by one that is encoded otherwise. They point to nothing. */
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
