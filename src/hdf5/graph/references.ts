import { inflate } from '#platform';
import { atOffset } from '../../base/errors.ts';
import { containsReference } from '../../dtype/describe.ts';
import { heapSlots, visitReferences } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import { unfilter } from '../../filter/pipeline.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { putU64 } from '../format/byte-writer.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import type { Budget, FileBytes } from '../format/file-bytes.ts';
import type { GlobalHeap, HeapLookup } from '../format/global-heap.ts';
import { parseAttribute } from '../messages/attribute.ts';
import { elementCount } from '../messages/dataspace.ts';
import { parseLink } from '../messages/link.ts';
import { MESSAGE, MESSAGE_FLAG } from '../messages/message-types.ts';
import { walkBtree1 } from '../read/btree.ts';
import { parseShared } from '../read/shared-messages.ts';
import { attributeParts } from './attribute-value.ts';
import type { DatasetParts } from './dataset-header.ts';
import type { ObjectLoader } from './object-loader.ts';
import {
  type AddressSlot,
  type Attribute,
  type FileExtent,
  type HeaderMessage,
  type HeapSlot,
  type ObjectNode,
  PROVISIONAL,
  type Relocatable,
  visitTargets,
} from './object-node.ts';

/** Tells every object that the message points to who points to it. */
export function addReferrer(message: HeaderMessage): void {
  visitTargets(message, (node) => node.referrers.add(message));
}

/** Takes that back, before the message changes or goes. */
export function removeReferrer(message: HeaderMessage): void {
  visitTargets(message, (node) => node.referrers.delete(message));
}

let provisionalIndex = 0;

/** Gives every heap id of a new message a provisional value, so that it can be read back before it is committed. */
export function assignTemporaryHeapIds(message: HeaderMessage): void {
  message.heapPending = message.heap.length > 0;
  mark(message);
}

function mark(item: Relocatable): void {
  for (const { at, content } of item.heap) {
    const view = new DataView(item.bytes.buffer, item.bytes.byteOffset + at, 12);
    putU64(view, 0, PROVISIONAL);
    provisionalIndex = (provisionalIndex + 1) % 0xffffffff;
    view.setUint32(8, provisionalIndex + 1, true);
    mark(content);
  }
}

/** Every object that has to be written because it, or something it points to, changed. */
export function withReferrers(changed: Iterable<ObjectNode>, extents: Iterable<FileExtent> = []): Set<ObjectNode> {
  const moving = new Set(changed);
  for (const extent of extents) for (const message of extent.referrers) moving.add(message.owner);
  for (const node of moving) for (const message of node.referrers) moving.add(message.owner);
  return moving;
}

/** Loads every object that can be reached from the root and finds out who points to whom. `pinned` gets those that cannot move. */
export function* trackReferences(
  loader: ObjectLoader,
  root: ObjectNode,
  heap: GlobalHeap,
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
  heap: GlobalHeap,
  contentOf: HeapLookup,
  pinned: Set<number>,
): Io<void> {
  for (const link of node.links.values()) {
    if (!link.node) continue;
    const { addressAt } = parseLink(new Cursor(link.message.bytes, 0), loader.file.addressSize);
    link.message.targets = [{ at: addressAt, node: link.node }];
    addReferrer(link.message);
  }
  for (const message of node.otherMessages) {
    const slot = sharedSlot(
      loader,
      message.bytes,
      0,
      message.bytes.length,
      (message.flags & MESSAGE_FLAG.shared) !== 0,
    );
    if (!slot) continue;
    message.targets = [slot];
    addReferrer(message);
  }
  for (const attribute of node.attributes.values()) {
    try {
      yield* connectAttribute(loader, attribute, heap, contentOf, pinned);
    } catch (error) {
      throw atOffset(error, attribute.message.offset);
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
): AddressSlot | null {
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
  heap: GlobalHeap,
  contentOf: HeapLookup,
  pinned: Set<number>,
): Io<void> {
  const { message } = attribute;
  const targets: AddressSlot[] = [];
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
  if (message.content !== message.bytes || message.owner.denseAttributeInfo) {
    // The attribute lies in the file's shared message heap, or in one with others too large for a header: never rewritten.
    visitTargets({ bytes: message.content, owned: false, targets, heap: slots }, (node) => pinned.add(node.address));
    return;
  }
  message.targets = targets;
  message.heap = slots;
  addReferrer(message);
}

/** Which places of some elements hold addresses of known objects, and which heap contents do. */
function relocations(
  loader: ObjectLoader,
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  contentOf: HeapLookup,
): Relocatable {
  const targets: AddressSlot[] = [];
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
      // A region reference: the heap holds the object's address and a selection.
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

/** The largest dataset of references that is looked through; beyond, nothing may move. */
const MOST_BYTES = 256 * 2 ** 20;

/**
 * The addresses of objects that a dataset's raw data refers to, or the reason why they cannot be found out. Objects that raw
 * data refers to must stay where they are, because data is never rewritten.
 */
export type RawReferences = typeof rawReferences;

export function* rawReferences(
  file: FileBytes,
  parts: DatasetParts,
  heap: GlobalHeap,
  budget: Budget,
): Io<Set<number> | string> {
  const found = new Set<number>();
  const { dtype, type, layout } = parts;
  if (!layout) return found;
  const count = elementCount(parts.space);
  if (count * type.size > MOST_BYTES) return `more than ${MOST_BYTES} bytes of references`;
  const look = function* (bytes: Uint8Array): Io<void> {
    const elements = Math.floor(bytes.length / type.size);
    yield* heap.load(dtype, bytes, elements);
    collect(dtype, bytes, elements, heap.contents());
  };
  const regions: [number, number][] = [];
  const collect = (inner: typeof dtype, bytes: Uint8Array, elements: number, contentOf: HeapLookup): void => {
    visitReferences(
      inner,
      bytes,
      elements,
      (_at, address) => found.add(address),
      (_at, address, index) => regions.push([address, index]),
    );
    for (const slot of heapSlots(inner, bytes, elements)) {
      const content = slot.length > 0 ? contentOf(slot.address, slot.index) : undefined;
      if (content && containsReference(slot.base)) collect(slot.base, content, slot.length, contentOf);
    }
  };
  if (hasOtherReferences(dtype)) return 'references of a kind that h5log does not know';
  if (parts.fill.value instanceof Uint8Array) yield* look(parts.fill.value);
  if (layout.kind === 'compact') yield* look(layout.data);
  else if (layout.kind === 'contiguous') {
    if (layout.address === UNDEFINED) return found;
    budget.spend(layout.size, layout.address, 'data');
    yield* look(yield* file.read(layout.address, layout.size, 'data'));
  } else if (layout.kind === 'chunked') {
    if (layout.index.address === UNDEFINED) return found;
    if (layout.index.kind !== 'btree1') return `references in chunks with a ${layout.index.kind} index`;
    const known = new Set([1, 2, 3]);
    if (parts.filters.some(({ id }) => !known.has(id)))
      return 'references in chunks with a filter that h5log does not know';
    const chunkBytes = layout.elementSize * sizeOf(layout.chunk);
    if (chunkBytes > MOST_BYTES) return `chunks of more than ${MOST_BYTES} bytes`;
    yield* walkBtree1(file, layout.index.address, 1, 8 + 8 * (layout.chunk.length + 1), budget, function* (key, child) {
      const size = key.u32();
      const mask = key.u32();
      const stored = yield* file.read(child, size, 'chunk');
      budget.spend(size, child, 'chunks');
      yield* look(unfilter(stored, parts.filters, mask, chunkBytes, inflate));
    });
  }
  for (const [address, index] of regions) {
    const content = heap.get(address, index);
    if (!content) return 'region references';
    if (content.length >= 8) found.add(new Cursor(content, 0).address(8));
  }
  return found;
}

function hasOtherReferences(dtype: DatasetParts['dtype']): boolean {
  if (typeof dtype === 'string') return false;
  const type = dtype as DatasetParts['type'];
  switch (type.class) {
    case 'reference':
      return type.to === 'other';
    case 'compound':
      return type.fields.some((field) => hasOtherReferences(field.dtype));
    case 'array':
    case 'vlen':
      return hasOtherReferences(type.base);
    default:
      return false;
  }
}
