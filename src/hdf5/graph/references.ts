// Which messages hold the addresses of which objects: links, object and region references in attributes, committed datatypes.
// Whoever holds the address of an object that moves is written again.

import { atOffset, formatError } from '../../base/errors.ts';
import { containsReference } from '../../dtype/describe.ts';
import { heapSlots, visitReferences } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { Cursor } from '../format/cursor.ts';
import type { GlobalHeap, HeapLookup } from '../format/global-heap.ts';
import { parseAttribute } from '../messages/attribute.ts';
import { parseLink } from '../messages/link.ts';
import * as MESSAGE_FLAG from '../messages/message-flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { parseShared } from '../read/shared-messages.ts';
import { attributeParts } from './attribute-value.ts';
import type { ObjectLoader } from './object-loader.ts';
import {
  type AddressSlot,
  type Attribute,
  type FileExtent,
  type HeaderMessage,
  type HeapSlot,
  type Link,
  ObjectNode,
  type Relocatable,
  TEMPORARY,
  visitTargets,
} from './object-node.ts';

const NONE: readonly never[] = [];

/** Adds the message to the referrers of everything that it points to. */
export function addReferrer(message: HeaderMessage): void {
  visitTargets(message, (target) => target.referrers.add(message));
}

/** Undoes {@link addReferrer}, before the message changes or is removed. */
export function removeReferrer(message: HeaderMessage): void {
  visitTargets(message, (target) => target.referrers.delete(message));
}

/** Sets what a new message points to. */
export function setReferences(
  message: HeaderMessage,
  targets: readonly AddressSlot[] = NONE,
  heap: readonly HeapSlot[] = NONE,
): void {
  message.targets = targets;
  message.heap = heap;
  message.heapPending = heap.length > 0;
  assignTemporaryHeapIds(message);
  addReferrer(message);
}

/** Whether a message that is no link, or what it has in a heap, points to objects. */
export function pointsToObjects({ targets, heap }: Pick<Relocatable, 'targets' | 'heap'>): boolean {
  return (
    targets.some(({ target }) => target instanceof ObjectNode) || heap.some(({ content }) => pointsToObjects(content))
  );
}

let lastTemporaryIndex = 0;

/** Stands in heap ids in place of an address. */
const TEMPORARY_ADDRESS = new ByteWriter(8).u64(TEMPORARY).done();

/** Gives heap objects that are not in the file yet temporary ids, by which they can be read before they are committed. */
function assignTemporaryHeapIds(item: Relocatable): void {
  const { heap, bytes } = item;
  // Texts of thousands of attributes: no view is made for each.
  for (let i = 0; i < heap.length; i++) {
    const { at, content } = heap[i] as HeapSlot;
    lastTemporaryIndex = (lastTemporaryIndex + 1) % 0xffffffff;
    bytes.set(TEMPORARY_ADDRESS, at);
    for (let k = 0; k < 4; k++) bytes[at + 8 + k] = (lastTemporaryIndex + 1) >>> (8 * k);
    if (content.heap.length > 0) assignTemporaryHeapIds(content);
  }
}

/** The changed objects and everything that points to them, however indirectly: all of these get new addresses. */
export function withReferrers(changed: Iterable<ObjectNode>, extents: Iterable<FileExtent> = []): Set<ObjectNode> {
  const moving = new Set(changed);
  for (const extent of extents) for (const message of extent.referrers) moving.add(message.owner);
  for (const node of moving) for (const message of node.referrers) if (!message.lags) moving.add(message.owner);
  return moving;
}

/** Whether a message lies in the file's shared message heap, whose table counts its uses. */
export function inSharedTable(message: HeaderMessage, loader: ObjectLoader): boolean {
  if ((message.flags & MESSAGE_FLAG.shared) === 0 || message.type === MESSAGE.link) return false;
  return parseShared(new Cursor(message.bytes, 0), loader.file).kind === 'heap';
}

// ------------------------------------------------------------------ finding references in a file

/** What is needed to find the references of an object. */
export interface Pointing {
  readonly loader: ObjectLoader;
  readonly heap: GlobalHeap;
  readonly contentOf: HeapLookup;
  /** The object at an address that a message holds. `fixed`: the message is never written again, so that the object cannot move. */
  targetOf(address: number, fixed: boolean): ObjectNode | undefined;
}

/** Sets what a link points to, once its object is loaded. */
export function trackLink({ node, message }: Link, addressSize: number): void {
  if (!node || message.targets.length > 0) return;
  const { addressAt } = parseLink(new Cursor(message.bytes, 0), addressSize);
  message.targets = [{ at: addressAt, target: node }];
  addReferrer(message);
}

/** Finds what the messages of an object point to, but for links. They become referrers of the objects that `targetOf` gives. */
export function* trackMessages(pointing: Pointing, node: ObjectNode): Io<void> {
  for (const message of node.otherMessages) {
    const found =
      message.flags & MESSAGE_FLAG.shared
        ? sharedTarget(pointing, message.bytes, 0, message.bytes.length, false)
        : undefined;
    if (!found) continue;
    message.targets = [found];
    addReferrer(message);
  }
  for (const attribute of node.attributes.values()) {
    try {
      yield* trackAttribute(pointing, attribute);
    } catch (error) {
      throw atOffset(error, attribute.message.offset);
    }
  }
}

/** The object that a shared record points to, and the position of its address; undefined if it points to a heap. */
function sharedTarget(
  { loader, targetOf }: Pointing,
  bytes: Uint8Array,
  from: number,
  to: number,
  fixed: boolean,
): { readonly at: number; readonly target: ObjectNode } | undefined {
  const record = parseShared(new Cursor(bytes, 0, from, to), loader.file);
  const target = record.kind === 'object' ? targetOf(record.address, fixed) : undefined;
  return target && { at: from + (bytes[from] === 1 ? 8 + loader.file.lengthSize : 2), target };
}

function* trackAttribute(pointing: Pointing, attribute: Attribute): Io<void> {
  const { loader, heap } = pointing;
  const { message } = attribute;
  const { lengthSize } = loader.file;
  // An attribute in the shared message heap is never written again.
  const fixed = message.content !== message.bytes;
  const targets: AddressSlot[] = [];
  if (attribute.sharedType || attribute.sharedSpace) {
    const parsed = parseAttribute(new Cursor(message.content, 0), lengthSize);
    for (const part of [parsed.type, parsed.space]) {
      if (!('sharedAt' in part)) continue;
      const { sharedAt, sharedSize } = part;
      const found = sharedTarget(pointing, message.content, sharedAt, sharedAt + sharedSize, fixed);
      if (!found) continue;
      targets.push(found);
      if (part === parsed.type) attribute.committed = found.target;
    }
  }
  const parts = attributeParts(attribute, lengthSize);
  let slots: HeapSlot[] = [];
  if (containsReference(parts.dtype) && parts.count > 0) {
    yield* heap.load(parts.dtype, parts.data, parts.count);
    const found = referencesIn(pointing, parts.dtype, parts.data, parts.count, fixed);
    for (const { at, target } of found.targets) targets.push({ at: at + parts.dataAt, target });
    slots = found.heap.map(({ at, content }) => ({ at: at + parts.dataAt, content }));
  }
  if (fixed || (targets.length === 0 && slots.length === 0)) return;
  message.targets = targets;
  message.heap = slots;
  message.lags = /^_?REFERENCE_LIST$/.test(attribute.name);
  addReferrer(message);
}

/** The addresses of known objects in some elements, and the heap objects that hold such addresses. */
function referencesIn(pointing: Pointing, dtype: DType, bytes: Uint8Array, count: number, fixed: boolean): Relocatable {
  const { contentOf, targetOf } = pointing;
  const targets: AddressSlot[] = [];
  const heap: HeapSlot[] = [];
  visitReferences(
    dtype,
    bytes,
    count,
    (at, address) => {
      const target = targetOf(address, fixed);
      if (target) targets.push({ at, target });
    },
    (at, address, index) => {
      // A region reference: the heap holds the object's address and a selection.
      const content = contentOf(address, index);
      const target = content && content.length >= 8 ? targetOf(new Cursor(content, 0).address(8), fixed) : undefined;
      if (content && target)
        heap.push({ at, content: { bytes: content, owned: false, targets: [{ at: 0, target }], heap: [] } });
    },
  );
  for (const slot of heapSlots(dtype, bytes, count)) {
    const content = slot.length > 0 ? contentOf(slot.address, slot.index) : undefined;
    if (!content || !containsReference(slot.base)) continue;
    heap.push({ at: slot.at + 4, content: referencesIn(pointing, slot.base, content, slot.length, fixed) });
  }
  return { bytes, owned: false, targets, heap };
}

// ------------------------------------------------------------------ copying values to another file

const NOTHING = new Uint8Array(0);

/**
 * A copy of encoded elements for another file, with their heap objects. References lead to the objects that `targetOf` gives for
 * the addresses in the old file; where it gives none they become null references.
 */
export function relocatedCopy(
  dtype: DType,
  data: Uint8Array,
  count: number,
  contentOf: HeapLookup,
  targetOf: (address: number) => ObjectNode | undefined,
): Relocatable {
  const bytes = data.slice();
  const targets: AddressSlot[] = [];
  const heap: HeapSlot[] = [];
  visitReferences(
    dtype,
    data,
    count,
    (at, address) => {
      const target = targetOf(address);
      if (target) targets.push({ at, target });
      else bytes.fill(0, at, at + 8);
    },
    (at, address, index) => {
      // A region reference: the heap holds the object's address and a selection.
      const content = contentAt(contentOf, address, index);
      const target = content.length >= 8 ? targetOf(new Cursor(content, 0).address(8)) : undefined;
      if (target)
        heap.push({ at, content: { bytes: content.slice(), owned: true, targets: [{ at: 0, target }], heap: [] } });
      else bytes.fill(0, at, at + 12);
    },
  );
  for (const { at, length, address, index, base } of heapSlots(dtype, data, count)) {
    if (address === 0) {
      bytes.fill(0, at, at + 16);
      continue;
    }
    // An empty string is not a null string: libhdf5 has it in the heap, and fails where the heap object is missing.
    const content = length === 0 ? NOTHING : contentAt(contentOf, address, index);
    heap.push({ at: at + 4, content: relocatedCopy(base, content, length, contentOf, targetOf) });
  }
  return { bytes, owned: true, targets, heap };
}

function contentAt(contentOf: HeapLookup, address: number, index: number): Uint8Array {
  const content = contentOf(address, index);
  if (!content) throw formatError(`object ${index} of the heap at ${address} is missing`);
  return content;
}
