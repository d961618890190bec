import { H5LogError } from '../../base/errors.ts';
import { type Encoded, encodeValues } from '../../dtype/encode.ts';
import type { DType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { DEFAULT_K } from '../format/superblock.ts';
import {
  type AddressSlot,
  type Attribute,
  type FileExtent,
  HeaderMessage,
  type HeapSlot,
  type Link,
  moveToFirstChunk,
  ObjectNode,
  removeMessage,
} from '../graph/object-node.ts';
import { ObjectTree } from '../graph/object-tree.ts';
import {
  addReferrer,
  assignTemporaryHeapIds,
  inSharedTable,
  removeReferrer,
  withReferrers,
} from '../graph/references.ts';
import { draftDataset, type MessageDraft, type NewDataset } from '../layouts/new-dataset.ts';
import { encodeAttribute } from '../messages/attribute.ts';
import { type Dataspace, elementCount } from '../messages/dataspace.ts';
import { encodeLink, type LinkTarget } from '../messages/link.ts';
import { isKnownMessage, MESSAGE, MESSAGE_FLAG } from '../messages/message-types.ts';

/** A message is at most 64 KiB; libhdf5 stops a little earlier. */
const MAX_MESSAGE = 0xffff;
const NONE: readonly never[] = [];

/** The objects of a file as they shall be: changes are made here and become part of the file with the next commit. */
export class Structure extends ObjectTree {
  /** Objects that differ from the file, and raw bytes that wait for the next commit. */
  readonly dirty = new Set<ObjectNode>();
  readonly extents = new Set<FileExtent>();
  /** Addresses that raw data refers to: objects that must not move. The value names who refers to them. */
  readonly pinned = new Map<number, string>();
  /** Why nothing at all may move, if so. */
  frozen: string | null = null;
  writable = false;
  /** Told of every object that loses its last link. */
  onRelease: ((node: ObjectNode) => void) | null = null;
  /** Children of a node in the file's version 1 B-trees of chunks. */
  chunkFanout = 2 * DEFAULT_K.chunk;
  /** Number of the commit being prepared; tells lately changed messages from old ones. */
  commitNumber = 1;

  /** Makes sure that the object may be changed, before anything is. */
  markDirty(node: ObjectNode): void {
    this.checkMutable(node);
    if (node.dirty) return;
    for (const message of node.otherMessages) markUnknown(message);
    node.dirty = true;
    this.dirty.add(node);
  }

  /** Somebody else writes what was changed here. */
  forgetChanges(): void {
    this.dirty.clear();
    this.extents.clear();
  }

  /** Raw bytes that go before all others that wait. */
  prepend(extent: FileExtent): void {
    const waiting = [...this.extents];
    this.extents.clear();
    for (const each of [extent, ...waiting]) this.extents.add(each);
  }

  checkMutable(node: ObjectNode): void {
    if (!this.writable) throw new H5LogError('READ_ONLY', 'the file is open for reading only');
    if (node.dirty) return;
    for (const message of node.otherMessages) {
      if (!isKnownMessage(message.type) && message.flags & MESSAGE_FLAG.failIfUnknownOnWrite) {
        throw new H5LogError(
          'UNSUPPORTED',
          `the object has a message of type ${message.type} that forbids changes by programs that do not know it`,
        );
      }
    }
    if (this.frozen) throw new H5LogError('UNSUPPORTED', this.frozen);
    if (this.pinned.size === 0) return;
    for (const moving of withReferrers([node])) {
      const holder = this.pinned.get(moving.address);
      if (holder !== undefined) {
        throw new H5LogError(
          'UNSUPPORTED',
          `the data of ${holder} refers to an object that this change would move; references inside data cannot be updated`,
        );
      }
    }
  }

  createGroup(parent: ObjectNode, name: string): ObjectNode {
    return this.create(parent, name, new ObjectNode('group'), []);
  }

  createDataset(parent: ObjectNode, name: string, dataset: NewDataset): ObjectNode {
    const { drafts, extents } = draftDataset(dataset, this.chunkFanout);
    for (const { bytes } of drafts) checkMessage(bytes, name);
    if (dataset.dtype instanceof ObjectNode) this.checkMutable(dataset.dtype); // its count of uses grows
    const node = new ObjectNode('dataset');
    if (dataset.plain) untrackOrder(node);
    this.create(parent, name, node, drafts);
    for (const extent of extents) this.extents.add(extent);
    return node;
  }

  /** Puts a new object of these messages into a group. */
  create(parent: ObjectNode, name: string, node: ObjectNode, drafts: readonly MessageDraft[]): ObjectNode {
    this.#mayLink(parent, name);
    for (const draft of drafts) this.addMessage(node, draft);
    node.dirty = true;
    this.dirty.add(node);
    this.addLink(parent, name, { kind: 'hard', address: node.address }, node);
    return node;
  }

  /** Before anything is made: the group may change, and the name is free and not too long. */
  #mayLink(group: ObjectNode, name: string): void {
    if (group.links.has(name)) throw new H5LogError('EXISTS', `${name} exists already`);
    // Shorter ones surely fit; a character has at most three bytes per unit of its length.
    if (name.length > MAX_MESSAGE / 4) checkMessage(encodeLink(name, 0, { kind: 'hard', address: 0 }), name);
    this.checkMutable(group);
  }

  /** Adds a message to an object that is new. */
  addMessage(node: ObjectNode, draft: MessageDraft): void {
    const message = new HeaderMessage(node, draft.type, draft.flags, 0, draft.bytes, true);
    if (draft.targets) message.targets = draft.targets;
    if (draft.heap) {
      message.heap = draft.heap;
      assignTemporaryHeapIds(message);
    }
    addReferrer(message);
    this.#countShared(message, 1);
    node.otherMessages.push(message);
    node.firstChunk.add(message);
  }

  /** libhdf5 counts every use of a committed datatype as a link to it. */
  #countShared(message: HeaderMessage, by: 1 | -1): void {
    if (message.type !== MESSAGE.datatype || (message.flags & MESSAGE_FLAG.shared) === 0) return;
    for (const { node } of message.targets) if (node instanceof ObjectNode) this.#countUse(node, by);
  }

  #countUse(type: ObjectNode, by: 1 | -1): void {
    type.linkCount += by;
    if (type.linkCount > 0) this.markDirty(type);
  }

  refuseInSharedTable(message: HeaderMessage): void {
    if (inSharedTable(message, this.loader)) {
      throw new H5LogError(
        'UNSUPPORTED',
        "the change would alter the file's table of shared messages, which is not supported",
      );
    }
  }

  addLink(group: ObjectNode, name: string, target: LinkTarget, node: ObjectNode | null): void {
    if (node) this.checkMutable(node);
    this.#insertLink(group, name, target, node);
    if (!node) return;
    this.markDirty(node);
    node.linkCount++;
  }

  #insertLink(group: ObjectNode, name: string, target: LinkTarget, node: ObjectNode | null): void {
    if (group.links.has(name)) throw new H5LogError('EXISTS', `${name} exists already`);
    const order = group.linkOrder.tracked ? group.linkOrder.next : -1;
    const bytes = encodeLink(name, order, target);
    checkMessage(bytes, name);
    this.markDirty(group);
    group.linkOrder.next++;
    const message = new HeaderMessage(group, MESSAGE.link, 0, 0, bytes, true);
    message.changed = this.commitNumber;
    if (node) message.targets = [{ at: bytes.length - 8, node }];
    addReferrer(message);
    group.firstChunk.add(message);
    group.links.set(name, { name, order, target, node, message });
  }

  /** Removes a link; an object without links goes with everything that only it links to. */
  removeLink(group: ObjectNode, name: string): void {
    const link = group.links.get(name);
    if (!link) throw new H5LogError('NOT_FOUND', `${name} does not exist`);
    const node = link.node;
    if (node) this.#refuseRelease(node);
    this.markDirty(group);
    if (node && node.linkCount > 1) this.markDirty(node);
    this.#unlink(group, link);
  }

  /** Gives an object another name, in the same group or another one. The number of its links stays the same. */
  moveLink(from: ObjectNode, name: string, to: ObjectNode, newName: string): void {
    const link = from.links.get(name);
    if (!link) throw new H5LogError('NOT_FOUND', `${name} does not exist`);
    this.checkMutable(from);
    // The object itself stays where it is, unless something else moves it.
    const target: LinkTarget = link.node ? { kind: 'hard', address: link.node.address } : link.target;
    this.#insertLink(to, newName, target, link.node);
    this.markDirty(from);
    this.#takeOut(from, link);
  }

  /** Before anything is changed: every object that will lose a link may change, and none is in the shared table. */
  #refuseRelease(first: ObjectNode): void {
    const losing = new Set([first]);
    for (const node of losing) {
      this.checkMutable(node);
      if (node.linkCount > 1) continue;
      for (const message of node.otherMessages) {
        this.refuseInSharedTable(message);
        for (const { node: target } of message.targets) if (target instanceof ObjectNode) this.checkMutable(target);
      }
      for (const { message, committed } of node.attributes.values()) {
        this.refuseInSharedTable(message);
        if (committed) this.checkMutable(committed);
      }
      for (const link of node.links.values()) if (link.node) losing.add(link.node);
    }
  }

  #takeOut(group: ObjectNode, link: Link): void {
    group.links.delete(link.name);
    removeReferrer(link.message);
    removeMessage(link.message);
  }

  #unlink(group: ObjectNode, link: Link): void {
    const released: ObjectNode[] = [];
    this.#cut(group, link, released);
    // Not by recursion: groups may be nested deeper than the stack goes.
    for (let node = released.pop(); node; node = released.pop()) this.#release(node, released);
  }

  #cut(group: ObjectNode, link: Link, released: ObjectNode[]): void {
    this.#takeOut(group, link);
    const node = link.node;
    if (!node) return;
    node.linkCount--;
    if (node.linkCount > 0) this.markDirty(node);
    else released.push(node);
  }

  #release(node: ObjectNode, released: ObjectNode[]): void {
    this.onRelease?.(node);
    this.dirty.delete(node);
    node.dirty = true; // nothing that happens to it from now on is written
    for (const link of [...node.links.values()]) this.#cut(node, link, released);
    for (const message of node.otherMessages) {
      removeReferrer(message);
      this.#countShared(message, -1);
      for (const { node: placed } of message.targets) {
        if (!(placed instanceof ObjectNode) && placed.referrers.size === 0) this.extents.delete(placed as FileExtent);
      }
    }
    for (const { message, committed } of node.attributes.values()) {
      removeReferrer(message);
      if (committed) this.#countUse(committed, -1);
    }
  }

  // ---------------------------------------------------------------- attributes

  /** Sets an attribute; the value is encoded now and is not looked at again. */
  *setAttribute(node: ObjectNode, name: string, dtype: DType, space: Dataspace, value: unknown): Io<void> {
    const count = elementCount(space);
    const encoded: Encoded =
      count === 0 ? { bytes: new Uint8Array(0), heap: [], references: [] } : encodeValues(dtype, value, count);
    if (encoded.references.length + encoded.heap.length === 0) {
      this.setPlainAttribute(node, name, dtype, space, encoded.bytes);
      return;
    }
    const { body, dataAt } = encodeAttribute(name, dtype, space, encoded.bytes);
    const targets: AddressSlot[] = [];
    const heap: HeapSlot[] = [];
    yield* this.#slots(encoded, dataAt, targets, heap);
    this.putAttribute(node, name, body, targets, heap);
  }

  /** An attribute without references and variable-length parts, its value already encoded. */
  setPlainAttribute(node: ObjectNode, name: string, dtype: DType, space: Dataspace, data: Uint8Array): void {
    this.putAttribute(node, name, encodeAttribute(name, dtype, space, data).body, NONE, NONE);
  }

  /** An attribute from its message. A committed type is used once more by it. */
  putAttribute(
    node: ObjectNode,
    name: string,
    body: Uint8Array,
    targets: readonly AddressSlot[],
    heap: readonly HeapSlot[],
    committed: ObjectNode | null = null,
  ): void {
    checkMessage(body, name);
    this.#makeRoom(node);
    const old = node.attributes.get(name);
    if (old) this.#mayDrop(old);
    this.markDirty(node);
    const order = old ? old.order : this.#nextAttributeOrder(node);
    if (old) this.#retire(old);
    const message = new HeaderMessage(node, MESSAGE.attribute, 0, order, body, true);
    message.changed = this.commitNumber;
    message.targets = targets;
    message.heap = heap;
    assignTemporaryHeapIds(message);
    for (const { at, node: target } of targets)
      new DataView(body.buffer, body.byteOffset + at).setBigUint64(0, BigInt(target.address), true);
    addReferrer(message);
    node.firstChunk.add(message);
    const sharedType = committed?.message(MESSAGE.datatype)?.content ?? null;
    node.attributes.set(name, { name, order, message, sharedType, sharedSpace: null, committed });
    if (committed) this.#countUse(committed, 1);
  }

  /** Turns paths into objects and heap items into slots, all the way down. */
  *#slots(encoded: Encoded, shift: number, targets: AddressSlot[], heap: HeapSlot[]): Io<void> {
    for (const { at, path } of encoded.references) {
      const node = yield* this.lookup(this.root, this.paths.stored(path));
      if (!node) throw new H5LogError('NOT_FOUND', `a reference to ${path}, which does not exist`, { object: path });
      targets.push({ at: at + shift, node });
    }
    for (const { at, content } of encoded.heap) {
      const { bytes, references } = content;
      const slot = at + 4 + shift;
      if (references.length + content.heap.length === 0) {
        // A text, as most are.
        heap.push({ at: slot, content: { bytes, owned: true, targets: NONE, heap: NONE } });
        continue;
      }
      const inner = { bytes, owned: true, targets: [] as AddressSlot[], heap: [] as HeapSlot[] };
      yield* this.#slots(content, 0, inner.targets, inner.heap);
      heap.push({ at: slot, content: inner });
    }
  }

  deleteAttribute(node: ObjectNode, name: string): void {
    const attribute = node.attributes.get(name);
    if (!attribute) throw new H5LogError('NOT_FOUND', `there is no attribute ${name}`);
    this.#makeRoom(node);
    this.#mayDrop(attribute);
    this.markDirty(node);
    node.attributes.delete(name);
    this.#retire(attribute);
  }

  #mayDrop(attribute: Attribute): void {
    this.refuseInSharedTable(attribute.message);
    if (attribute.committed) this.checkMutable(attribute.committed);
  }

  /** Its message goes; a new one takes its place, or it is gone. */
  #retire({ message, committed }: Attribute): void {
    removeReferrer(message);
    removeMessage(message);
    if (committed) this.#countUse(committed, -1);
  }

  #makeRoom(node: ObjectNode): void {
    if (node.denseAttributeInfo) {
      throw new H5LogError(
        'UNSUPPORTED',
        'the object has attributes of more than 64 KiB; its attributes cannot be changed',
      );
    }
  }

  /** The creation order has 16 bits; when they are used up the attributes are numbered anew. */
  #nextAttributeOrder(node: ObjectNode): number {
    const ordering = node.attributeOrder;
    if (!ordering.tracked) return 0;
    if (ordering.next > 0xfffe) {
      ordering.next = 0;
      for (const attribute of node.attributes.values()) {
        moveToFirstChunk(attribute.message);
        attribute.order = attribute.message.order = ordering.next++;
      }
      if (ordering.next > 0xfffe) throw new H5LogError('UNSUPPORTED', 'an object can have at most 65,535 attributes');
    }
    return ordering.next++;
  }
}

/** For objects that are not the user's: creation order costs bytes in every message. */
export function untrackOrder(node: ObjectNode): void {
  node.flags = 0;
  for (const order of [node.linkOrder, node.attributeOrder]) order.tracked = order.indexed = false;
}

/** Tells programs that know the message that one that does not know it changed the object. */
function markUnknown(message: HeaderMessage): void {
  const { flags } = message;
  if (isKnownMessage(message.type) || !(flags & MESSAGE_FLAG.markIfUnknown) || flags & MESSAGE_FLAG.wasUnknown) return;
  moveToFirstChunk(message);
  message.flags |= MESSAGE_FLAG.wasUnknown;
}

function checkMessage(bytes: Uint8Array, name: string): void {
  if (bytes.length > MAX_MESSAGE) {
    throw new H5LogError(
      'UNSUPPORTED',
      `${name} needs ${bytes.length} bytes in an object header, which holds at most ${MAX_MESSAGE} for one message`,
      { object: name },
    );
  }
}
