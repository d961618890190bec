import { containsReference } from '../../dtype/describe.ts';
import { heapSlots, visitReferences } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { Cursor } from '../format/cursor.ts';
import { parseAttribute } from '../messages/attribute.ts';
import * as MESSAGE_FLAG from '../messages/flags.ts';
import { parseLink } from '../messages/link.ts';
import * as MESSAGE from '../messages/message-types.ts';
import type { HeapContents, HeapReader } from '../read/global-heap.ts';
import { located } from '../read/located.ts';
import { parseShared } from '../read/shared-messages.ts';
import { attributeParts } from './attribute-value.ts';
import type { ObjectLoader } from './object-loader.ts';
import {
  type Attribute,
  type HeaderMessage,
  type HeapSlot,
  type ObjectNode,
  type Relocatable,
  type TargetSlot,
  visitTargets,
} from './object-node.ts';

/** Tells every object that the message points to who points to it. */
export function announce(message: HeaderMessage): void {
  visitTargets(message, (node) => node.incoming.add(message));
}

/** Takes that back, before the message changes or goes. */
export function renounce(message: HeaderMessage): void {
  visitTargets(message, (node) => node.incoming.delete(message));
}

/** Loads every object that can be reached from the root and finds out who points to whom. `pinned` gets those that cannot move. */
export function* connectAll(
  loader: ObjectLoader,
  root: ObjectNode,
  heap: HeapReader,
  pinned: Set<number>,
): Io<ObjectNode[]> {
  const all = new Set<ObjectNode>([root]);
  for (const node of all) {
    for (const link of node.links.values()) {
      const target = yield* loader.follow(link);
      if (target) all.add(target);
    }
  }
  // Committed types are objects too, even when no link leads to them any more.
  for (const node of loader.nodes.values()) all.add(node);
  const contentOf = heap.contents();
  for (const node of all) yield* connect(loader, node, heap, contentOf, pinned);
  return [...all];
}

function* connect(
  loader: ObjectLoader,
  node: ObjectNode,
  heap: HeapReader,
  contentOf: HeapContents,
  pinned: Set<number>,
): Io<void> {
  for (const link of node.links.values()) {
    if (!link.node) continue;
    const { addressAt } = parseLink(new Cursor(link.message.bytes, 0), loader.file.addressSize);
    link.message.targets = [{ at: addressAt, node: link.node }];
    announce(link.message);
  }
  for (const message of node.rest) {
    const slot = sharedSlot(
      loader,
      message.bytes,
      0,
      message.bytes.length,
      (message.flags & MESSAGE_FLAG.shared) !== 0,
    );
    if (!slot) continue;
    message.targets = [slot];
    announce(message);
  }
  for (const attribute of node.attributes.values()) {
    try {
      yield* connectAttribute(loader, attribute, heap, contentOf, pinned);
    } catch (error) {
      throw located(error, attribute.message.offset);
    }
  }
}

/** Where the address in a shared record lies, and which object it means. */
function sharedSlot(
  loader: ObjectLoader,
  bytes: Uint8Array,
  from: number,
  to: number,
  isShared: boolean,
): TargetSlot | null {
  if (!isShared) return null;
  const record = parseShared(new Cursor(bytes, 0, from, to), loader.file);
  if (record.kind !== 'object') return null;
  const node = loader.nodes.get(record.address);
  if (!node) return null;
  return { at: from + (bytes[from] === 1 ? 8 + loader.file.lengthSize : 2), node };
}

function* connectAttribute(
  loader: ObjectLoader,
  attribute: Attribute,
  heap: HeapReader,
  contentOf: HeapContents,
  pinned: Set<number>,
): Io<void> {
  const { message } = attribute;
  const targets: TargetSlot[] = [];
  if (attribute.sharedType || attribute.sharedSpace) {
    const parsed = parseAttribute(new Cursor(message.content, 0), loader.file.lengthSize);
    for (const part of [parsed.type, parsed.space]) {
      if (!('sharedAt' in part)) continue;
      const slot = sharedSlot(loader, message.content, part.sharedAt, part.sharedAt + part.sharedSize, true);
      if (!slot) continue;
      targets.push(slot);
      if (part === parsed.type) attribute.committed = slot.node as ObjectNode;
    }
  }
  const parts = attributeParts(attribute, loader.file.lengthSize);
  let slots: HeapSlot[] = [];
  if (containsReference(parts.dtype) && parts.count > 0) {
    yield* heap.load(parts.dtype, parts.data, parts.count);
    const found = relocations(loader, parts.dtype, parts.data, parts.count, contentOf);
    for (const { at, node } of found.targets) targets.push({ at: at + parts.dataAt, node });
    slots = found.heap.map(({ at, content }) => ({ at: at + parts.dataAt, content }));
  }
  if (targets.length === 0 && slots.length === 0) return;
  if (message.content !== message.bytes || message.owner.keptAttributeInfo) {
    // The attribute lies in the file's shared message heap, or in one with others too large for a header: never rewritten.
    visitTargets({ bytes: message.content, owned: false, targets, heap: slots }, (node) => pinned.add(node.address));
    return;
  }
  message.targets = targets;
  message.heap = slots;
  announce(message);
}

/** Which places of some elements hold addresses of known objects, and which heap contents do. */
function relocations(
  loader: ObjectLoader,
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  contentOf: HeapContents,
): Relocatable {
  const targets: TargetSlot[] = [];
  const slots: HeapSlot[] = [];
  visitReferences(
    dtype,
    bytes,
    count,
    (at, address) => {
      const node = loader.nodes.get(address);
      if (node) targets.push({ at, node });
    },
    (at, address, index) => {
      // A region: the heap holds the object's address and a selection.
      const content = contentOf(address, index);
      const node = content && content.length >= 8 ? loader.nodes.get(new Cursor(content, 0).address(8)) : undefined;
      if (content && node)
        slots.push({ at, content: { bytes: content, owned: false, targets: [{ at: 0, node }], heap: [] } });
    },
  );
  for (const slot of heapSlots(dtype, bytes, count)) {
    const content = slot.length > 0 ? contentOf(slot.address, slot.index) : undefined;
    if (!content || !containsReference(slot.base)) continue;
    slots.push({ at: slot.at + 4, content: relocations(loader, slot.base, content, slot.length, contentOf) });
  }
  return { bytes, owned: false, targets, heap: slots };
}

/** Whether a message is kept in the file's shared message heap: then the file's table counts it. */
export function inSharedTable(message: HeaderMessage, loader: ObjectLoader): boolean {
  if ((message.flags & MESSAGE_FLAG.shared) === 0 || message.type === MESSAGE.link) return false;
  return parseShared(new Cursor(message.bytes, 0), loader.file).kind === 'heap';
}
