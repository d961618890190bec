// The editable structure of a file: objects and links are created, moved and removed here, in memory; the next commit writes
// what changed. Attributes are edited by attributes.ts, what exists already by rewrite.ts.

import { H5LogError } from '../../base/errors.ts';
import type { DType } from '../../dtype/model.ts';
import { type Io, runInMemory } from '../../storage/io.ts';
import { DEFAULT_K } from '../format/superblock.ts';
import {
  type FileExtent,
  HeaderMessage,
  type Link,
  moveToFirstChunk,
  ObjectNode,
  removeMessage,
} from '../graph/object-node.ts';
import { ObjectTree } from '../graph/object-tree.ts';
import {
  addReferrer,
  inSharedTable,
  pointsToObjects,
  removeReferrer,
  setReferences,
  withReferrers,
} from '../graph/references.ts';
import type { Referrers } from '../graph/survey.ts';
import { draftDataset, draftType, type MessageDraft, type NewDataset } from '../layouts/new-dataset.ts';
import { mayRefer } from '../messages/datatype.ts';
import { encodeLink, type LinkTarget } from '../messages/link.ts';
import * as MESSAGE_FLAG from '../messages/message-flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { isKnownMessage } from '../messages/message-types.ts';

const NO_MESSAGES: readonly HeaderMessage[] = [];

/** The objects of a file as the next commit will write them. */
export class Structure extends ObjectTree {
  /** Objects that differ from the file. */
  dirty = new Set<ObjectNode>();
  /** Raw bytes that the next commit appends, in this order. */
  extents = new Set<FileExtent>();
  /** Addresses of objects that must not move, because raw data refers to them; the value names the dataset. */
  readonly pinned = new Map<number, string>();
  /** Where objects were when the file was opened, or last published, that elements of published datasets refer to; the value names the dataset. */
  referred: ReadonlyMap<number, string> = new Map();
  /** Other addresses in such elements: objects have left them, or are gone. */
  left: ReadonlySet<number> = new Set();
  /** Datasets whose data is written anew when objects move that it refers to: those objects, or where they were when the file was opened. */
  readonly holders = new Map<ObjectNode, ReadonlySet<ObjectNode | number>>();
  /** Finds who holds the addresses of objects of the file; null: there are none but new ones. */
  referrers: Referrers | null = null;
  /** Runs code that may have to load objects. */
  now: <T>(io: Io<T>) => T = runInMemory;
  /** Why no object at all may move; null if they may. */
  frozen: string | null = null;
  writable = false;
  /** One link leads to each object, and nothing else holds addresses of objects: known to be so. */
  isTree = false;
  /** Objects say where they are. Called before a commit moves one that says that it is elsewhere: it may be no copy. null: none says anything. */
  findOwners: (() => void) | null = null;
  /** Called before anything changes, but for changes `withoutNotice`. */
  beforeChange: (() => void) | null = null;
  /** Called with every object that loses its last link. */
  onRelease: ((node: ObjectNode) => void) | null = null;
  /** Datasets are made for readers of HDF5 1.8. */
  earliest = false;
  /** Children of a node in the file's version 1 B-trees of chunks. */
  chunkFanout = 2 * DEFAULT_K.chunk;
  /** Number of the commit that the next changes belong to. */
  commitNumber = 1;

  /** To be called before anything is looked at in order to change it: what was asked for earlier may have to be finished first. */
  announce(): void {
    this.beforeChange?.();
  }

  /** Notes that an object changes; throws before anything has changed if it must not. */
  markDirty(node: ObjectNode): void {
    this.beforeChange?.();
    this.checkMutable(node);
    if (node.dirty) return;
    for (const message of node.otherMessages) markUnknown(message);
    node.dirty = true;
    this.dirty.add(node);
  }

  /** Makes changes that belong to a commit which is being planned. */
  withoutNotice<T>(change: () => T): T {
    const { beforeChange } = this;
    this.beforeChange = null;
    try {
      return change();
    } finally {
      this.beforeChange = beforeChange;
    }
  }

  /**
   * Forgets what is waiting for a commit: it is planned, or another rank writes it. In new sets, because in V8 the contents of a set that
   * is cleared refer to those that follow: the garbage of one commit would keep that of the next alive.
   */
  forgetChanges(): void {
    this.dirty = new Set();
    this.extents = new Set();
  }

  /** Lets the next commit append these raw bytes before all others. */
  prepend(extents: readonly FileExtent[]): void {
    this.extents = new Set([...extents, ...this.extents]);
  }

  /** Throws if an object must not change, or must not move, which every change makes it do. */
  checkMutable(node: ObjectNode): void {
    if (!this.writable) throw new H5LogError('READ_ONLY', 'the file is open for reading only');
    if (node.dirty) return;
    for (const message of node.prepared ? NO_MESSAGES : node.otherMessages) {
      if (!isKnownMessage(message.type) && message.flags & MESSAGE_FLAG.failIfUnknownOnWrite) {
        throw new H5LogError(
          'UNSUPPORTED',
          `the object has a message of type ${message.type} that forbids changes by programs that do not know it`,
        );
      }
    }
    if (this.frozen) throw new H5LogError('UNSUPPORTED', this.frozen);
    this.settle(node);
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

  /** Before an object changes or moves: loads what moves with it. */
  settle(node: ObjectNode): void {
    if (!node.settled && this.referrers) this.now(this.referrers.settle(node));
  }

  /** Loads all objects if dimension scales are among them: every scale refers to the datasets that it is attached to. */
  loadScales(): void {
    if (this.referrers?.hasScales) this.now(this.referrers.settleAll());
  }

  // ---------------------------------------------------------------- objects

  createGroup(parent: ObjectNode, name: string): ObjectNode {
    return this.create(parent, name, new ObjectNode('group'), []);
  }

  createDataset(parent: ObjectNode, name: string, dataset: NewDataset): ObjectNode {
    const { drafts, extents } = draftDataset(dataset, this.chunkFanout, this.earliest);
    for (const { bytes } of drafts) checkMessageSize(bytes, name);
    if (dataset.dtype instanceof ObjectNode) this.checkMutable(dataset.dtype); // its count of uses grows
    const node = new ObjectNode('dataset');
    if (dataset.untracked) untrackOrder(node);
    this.create(parent, name, node, drafts);
    for (const extent of extents) this.extents.add(extent);
    return node;
  }

  /** Gives a prepared dataset its messages. */
  addDataset(node: ObjectNode, dataset: NewDataset): void {
    for (const draft of draftDataset(dataset, this.chunkFanout, this.earliest).drafts) this.addMessage(node, draft);
  }

  /** A committed datatype: one that datasets and attributes can share. */
  createDatatype(parent: ObjectNode, name: string, dtype: DType): ObjectNode {
    return this.create(parent, name, new ObjectNode('datatype'), [draftType(dtype, null)]);
  }

  /** Links a new object of these messages into a group. */
  create(parent: ObjectNode, name: string, node: ObjectNode, drafts: readonly MessageDraft[]): ObjectNode {
    this.announce();
    this.#checkNewLink(parent, name);
    for (const draft of drafts) this.addMessage(node, draft);
    node.dirty = true;
    this.dirty.add(node);
    this.addLink(parent, name, { kind: 'hard', address: node.address }, node);
    return node;
  }

  /** Adds a message to a new object. */
  addMessage(node: ObjectNode, { type, flags, bytes, targets, heap }: MessageDraft): void {
    const message = new HeaderMessage(node, type, flags, 0, bytes, true);
    setReferences(message, targets, heap);
    if (pointsToObjects(message) || (type === MESSAGE.datatype && mayRefer(bytes, 0, bytes.length)))
      this.isTree = false;
    this.#countTypeUses(message, 1);
    node.otherMessages.push(message);
    node.firstChunk.add(message);
  }

  /** libhdf5 counts every use of a committed datatype as a link to it. */
  #countTypeUses(message: HeaderMessage, by: 1 | -1): void {
    if (message.type !== MESSAGE.datatype || (message.flags & MESSAGE_FLAG.shared) === 0) return;
    for (const { target } of message.targets) if (target instanceof ObjectNode) this.countTypeUse(target, by);
  }

  /** A committed datatype is used once more, or once less. */
  countTypeUse(type: ObjectNode, by: 1 | -1): void {
    type.linkCount += by;
    if (type.linkCount > 0) this.markDirty(type);
  }

  /** Throws if a message that is about to go is one whose uses the file's shared message table counts. */
  refuseInSharedTable(message: HeaderMessage): void {
    if (inSharedTable(message, this.loader)) {
      throw new H5LogError(
        'UNSUPPORTED',
        "the change would alter the file's table of shared messages, which is not supported",
      );
    }
  }

  // ---------------------------------------------------------------- links

  /** Before anything is made: the group may change, and the name is free and not too long. */
  #checkNewLink(group: ObjectNode, name: string): void {
    if (group.links.has(name)) throw new H5LogError('EXISTS', `${name} exists already`);
    // UTF-8 has at most three bytes for a UTF-16 unit: a name as short as this always fits.
    if (name.length > MESSAGE.MAX_SIZE / 4) checkMessageSize(encodeLink(name, 0, { kind: 'hard', address: 0 }), name);
    this.checkMutable(group);
  }

  addLink(group: ObjectNode, name: string, target: LinkTarget, node: ObjectNode | null): void {
    this.announce();
    if (node) this.checkMutable(node);
    this.#insertLink(group, name, target, node);
    if (!node) return;
    if (node.linkCount > 0) this.isTree = false;
    this.markDirty(node);
    node.linkCount++;
  }

  #insertLink(group: ObjectNode, name: string, target: LinkTarget, node: ObjectNode | null): void {
    if (group.links.has(name)) throw new H5LogError('EXISTS', `${name} exists already`);
    const order = group.linkOrder.tracked ? group.linkOrder.next : -1;
    const bytes = encodeLink(name, order, target);
    checkMessageSize(bytes, name);
    this.markDirty(group);
    group.linkOrder.next++;
    const message = new HeaderMessage(group, MESSAGE.link, 0, 0, bytes, true);
    message.changed = this.commitNumber;
    if (node) message.targets = [{ at: bytes.length - 8, target: node }];
    addReferrer(message);
    group.firstChunk.add(message);
    group.links.set(name, { name, order, target, node, message });
  }

  /** Removes a link. An object that loses its last link is removed with everything that only it links to. */
  removeLink(group: ObjectNode, name: string): void {
    const link = this.#checkRemoval(group, name);
    group.links.delete(name);
    this.#unlink(link);
  }

  /**
   * Removes several links from a group, and leaves a new list of links. V8 keeps what was removed from a map as garbage that refers to the
   * map's later contents: where each commit removes links, the garbage of one would keep that of the next.
   */
  removeLinks(group: ObjectNode, names: readonly string[]): void {
    const removed = new Set<Link>();
    for (const name of names) removed.add(this.#checkRemoval(group, name));
    const left = new Map<string, Link>();
    for (const link of group.links.values()) if (!removed.has(link)) left.set(link.name, link);
    group.links = left;
    for (const link of removed) this.#unlink(link);
  }

  /** Before a link is removed: it is there, and what loses it may change. */
  #checkRemoval(group: ObjectNode, name: string): Link {
    this.announce();
    const link = group.links.get(name);
    if (!link) throw new H5LogError('NOT_FOUND', `${name} does not exist`);
    const node = this.#follow(link);
    if (node) this.#checkRelease(node);
    this.markDirty(group);
    if (node && node.linkCount > 1) this.markDirty(node);
    return link;
  }

  /** Moves a link to another name, in the same group or another one. The object keeps its number of links. */
  moveLink(from: ObjectNode, name: string, to: ObjectNode, newName: string): void {
    this.announce();
    const link = from.links.get(name);
    if (!link) throw new H5LogError('NOT_FOUND', `${name} does not exist`);
    this.checkMutable(from);
    this.#follow(link);
    // The object itself keeps its address, unless something else changes it.
    const target: LinkTarget = link.node ? { kind: 'hard', address: link.node.address } : link.target;
    this.#insertLink(to, newName, target, link.node);
    this.markDirty(from);
    from.links.delete(name);
    forgetLink(link);
  }

  /** Before a link is removed: every object that will lose a link may change, and no message is in the shared table. */
  #checkRelease(first: ObjectNode): void {
    if (first.prepared) {
      this.checkMutable(first);
      return;
    }
    const losing = new Set([first]);
    for (const node of losing) {
      this.checkMutable(node);
      if (node.linkCount > 1 || node.prepared) continue;
      for (const message of node.otherMessages) {
        this.refuseInSharedTable(message);
        for (const { target } of message.targets) if (target instanceof ObjectNode) this.checkMutable(target);
      }
      for (const { message, committed } of node.attributes.values()) {
        this.refuseInSharedTable(message);
        if (committed) this.checkMutable(committed);
      }
      for (const link of node.links.values()) {
        const target = this.#follow(link);
        if (target) losing.add(target);
      }
    }
  }

  #follow(link: Link): ObjectNode | null {
    return link.node ?? this.now(this.loader.follow(link));
  }

  /** What it takes to remove a link that is in no group any more. */
  #unlink(link: Link): void {
    const released: ObjectNode[] = [];
    this.#decrementLink(link, released);
    // Not by recursion: groups may be nested deeper than the stack allows.
    for (let node = released.pop(); node; node = released.pop()) this.#release(node, released);
  }

  /** Forgets a link; an object that loses its last one is added to `released`. */
  #decrementLink(link: Link, released: ObjectNode[]): void {
    forgetLink(link);
    const { node } = link;
    if (!node) return;
    node.linkCount--;
    if (node.linkCount > 0) this.markDirty(node);
    else released.push(node);
  }

  #release(node: ObjectNode, released: ObjectNode[]): void {
    this.onRelease?.(node);
    this.dirty.delete(node);
    node.dirty = true; // further changes do not add it to this.dirty: it is never written again
    if (node.prepared) {
      if (node.prepared.extent) this.extents.delete(node.prepared.extent);
      return;
    }
    const links = [...node.links.values()];
    node.links.clear();
    for (const link of links) this.#decrementLink(link, released);
    for (const message of node.otherMessages) {
      removeReferrer(message);
      this.#countTypeUses(message, -1);
      for (const { target } of message.targets) {
        if (!(target instanceof ObjectNode) && target.referrers.size === 0) this.extents.delete(target as FileExtent);
      }
    }
    for (const { message, committed } of node.attributes.values()) {
      removeReferrer(message);
      if (committed) this.countTypeUse(committed, -1);
    }
  }
}

/** A link is gone: its message holds no address any more, and is in no header. */
function forgetLink({ message }: Link): void {
  removeReferrer(message);
  removeMessage(message);
}

/** Stops tracking creation order, which costs bytes in every message: for objects that are not the user's. */
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

/** Throws if a message does not fit into an object header. */
export function checkMessageSize(bytes: Uint8Array, name: string): void {
  if (bytes.length > MESSAGE.MAX_SIZE) {
    throw new H5LogError(
      'UNSUPPORTED',
      `${name} needs ${bytes.length} bytes in an object header, which holds at most ${MESSAGE.MAX_SIZE} for one message`,
    );
  }
}
