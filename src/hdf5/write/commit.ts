import { allocate } from '../../base/buffers.ts';
import type { Io } from '../../storage/io.ts';
import { ByteWriter, putU64 } from '../format/byte-writer.ts';
import { UNDEFINED } from '../format/cursor.ts';
import { GlobalHeapWriter, type HeapId } from '../format/global-heap.ts';
import {
  type ContinuationBlock,
  type FileExtent,
  type HeaderMessage,
  isTemporary,
  moveToFirstChunk,
  type ObjectNode,
  type Relocatable,
} from '../graph/object-node.ts';
import { withReferrers } from '../graph/references.ts';
import { encodeAttributeInfo } from '../messages/attribute.ts';
import { encodeLinkInfo } from '../messages/link.ts';
import { MESSAGE } from '../messages/message-types.ts';
import type { Append, Appender } from './appender.ts';
import {
  blockSize,
  encodeBlock,
  encodeFirstChunk,
  firstChunkSize,
  type GeneratedMessage,
  generatedBytes,
  packHeader,
  unwrittenBlocks,
} from './object-header.ts';
import type { Structure } from './structure.ts';

/** A commit that is encoded and has its place, but is not written yet. */
export interface PlannedCommit {
  readonly plan: StructurePlan;
  readonly append: Append;
  /** Bytes added to the file. */
  readonly bytes: number;
}

/**
 * Turns what changed in a structure into commits. Planning happens at once and fixes the bytes; writing may take its time while
 * the structure changes further. Commits are written in the order they were planned; when one fails, those behind it must be
 * undone too, because they point into it.
 */
export class Committer {
  readonly structure: Structure;
  readonly appender: Appender;
  #extension: ObjectNode | null;
  #extensionPlanned = false;

  constructor(structure: Structure, appender: Appender, extension: ObjectNode | null) {
    this.structure = structure;
    this.appender = appender;
    this.#extension = extension;
  }

  /** Whether a commit would change the file. */
  get pending(): boolean {
    return this.structure.dirty.size > 0 || this.structure.extents.size > 0;
  }

  plan(): PlannedCommit {
    const { structure, appender } = this;
    const changed = new Set(structure.dirty);
    if (this.#extension && !this.#extensionPlanned) changed.add(this.#extension);
    const plan = planStructure(changed, [...structure.extents], appender.position, structure.commitNumber++);
    this.#extensionPlanned = true;
    appender.position = plan.end;
    structure.dirty.clear();
    structure.extents.clear();
    const extension = this.#extension ? this.#extension.address : UNDEFINED;
    const append = { at: plan.at, parts: plan.parts, end: plan.end, root: structure.root.address, extension };
    return { plan, append, bytes: plan.end - plan.at };
  }

  /** Writes a planned commit, its bytes by `body` if given. May be started again: the bytes and their places are fixed. */
  *write(planned: PlannedCommit, body?: (append: Append) => Io<void>): Io<void> {
    yield* this.appender.commit(planned.append, body);
    this.structure.loader.file.end = planned.append.end;
  }

  /**
   * The planned commit is not, and will not be, in the file: everything in it is pending again. `reuse`: no write of it is under
   * way any more, so that its space can be used again.
   */
  undo(planned: PlannedCommit, reuse: boolean): void {
    if (reuse) this.appender.retreat(planned.append);
    undoPlan(planned.plan);
    for (const node of planned.plan.nodes) {
      if (node === this.#extension) this.#extensionPlanned = false;
      else if (node.linkCount > 0) this.structure.dirty.add(node);
    }
    for (const extent of planned.plan.extents) if (extent.referrers.size > 0) this.structure.extents.add(extent);
  }
}

/** The structure of one commit, ready to be written at `at`. */
export interface StructurePlan {
  readonly at: number;
  /** What to write at `at`, one after the other: the extents, then the structure. */
  readonly parts: readonly Uint8Array[];
  readonly end: number;
  readonly extents: readonly FileExtent[];
  readonly nodes: readonly ObjectNode[];
  readonly blocks: readonly ContinuationBlock[];
  readonly messages: readonly HeaderMessage[];
}

/**
 * Gives every changed object and everything that points to one a new place from `at` on, and encodes them all. Sizes do not
 * depend on addresses, so places come first and cycles are no trouble.
 */
export function planStructure(
  changed: Iterable<ObjectNode>,
  extents: readonly FileExtent[],
  at: number,
  commit: number,
): StructurePlan {
  const nodes = [...withReferrers(changed, extents)];
  const messages = new Set<HeaderMessage>();
  for (const placed of [...extents, ...nodes]) for (const message of placed.referrers) messages.add(message);
  for (const node of nodes) for (const message of node.firstChunk) if (message.heapPending) messages.add(message);
  for (const message of messages) {
    moveToFirstChunk(message);
    message.changed = commit;
    // The heap contents may belong to a page of the file or to an earlier commit: never patch those in place.
    own(message);
  }

  const heap = new GlobalHeapWriter();
  const places: { item: Relocatable; at: number; place: HeapId }[] = [];
  for (const message of messages) if (message.heapPending || message.heap.length > 0) placeHeap(message, heap, places);
  let end = at;
  for (const extent of extents) {
    extent.address = extent.size === 0 ? -1 : end;
    end += extent.size;
  }
  const structureAt = end;
  const heapSizes = heap.sizes();
  const heapAddresses = heapSizes.map((size) => {
    const address = end;
    end += size;
    return address;
  });

  const generated = new Map<ObjectNode, GeneratedMessage[]>();
  const blocks: ContinuationBlock[] = [];
  const firstSizes: number[] = [];
  for (const node of nodes) {
    const made = generatedFor(node);
    const madeBytes = generatedBytes(node, made);
    generated.set(node, made);
    packHeader(node, madeBytes);
    for (const block of unwrittenBlocks(node.blocks)) {
      block.address = end;
      block.size = blockSize(node, block);
      end += block.size;
      blocks.push(block);
    }
    node.address = end;
    const size = firstChunkSize(node, madeBytes);
    firstSizes.push(size);
    end += size;
  }

  for (const message of messages) patchTargets(message);
  for (const { item, at: slot, place } of places) {
    const view = new DataView(item.bytes.buffer, item.bytes.byteOffset + slot, 12);
    putU64(view, 0, heapAddresses[place.collection] as number);
    view.setUint32(8, place.index, true);
  }

  const bytes = allocate(end - structureAt);
  heapAddresses.forEach((address, i) => {
    bytes.set(heap.encode(i), address - structureAt);
  });
  nodes.forEach((node, i) => {
    for (const block of unwrittenBlocks(node.blocks)) {
      encodeBlock(node, block, bytes.subarray(block.address - structureAt, block.address - structureAt + block.size));
    }
    const from = node.address - structureAt;
    encodeFirstChunk(node, generated.get(node) ?? [], bytes.subarray(from, from + (firstSizes[i] as number)));
    node.dirty = false;
  });
  for (const block of blocks) block.written = true;
  for (const message of messages) message.heapPending = false;
  const parts = [...extents.flatMap((extent) => extent.parts()), bytes];
  return { at, parts, end, extents, nodes, blocks, messages: [...messages] };
}

/** The commit failed: everything in it differs from the file again. */
export function undoPlan(plan: StructurePlan): void {
  for (const node of plan.nodes) node.dirty = true;
  for (const first of plan.blocks)
    for (let block: ContinuationBlock | null = first; block; block = block.parent) block.written = false;
  for (const message of plan.messages) {
    // Dropped or replaced since the commit was planned: it must not come back.
    if (message.block === null && !message.owner.firstChunk.has(message)) continue;
    moveToFirstChunk(message);
    message.heapPending = message.heap.length > 0;
  }
}

/** Bytes that may be patched: a copy of their own, all the way into the heap contents. */
function own(message: HeaderMessage): void {
  const same = message.content === message.bytes;
  ownBytes(message);
  if (same) message.content = message.bytes;
}

function ownBytes(item: Relocatable): void {
  if (!item.owned) item.bytes = item.bytes.slice();
  item.owned = true;
  for (const slot of item.heap) ownBytes(slot.content);
}

function placeHeap(
  item: Relocatable,
  heap: GlobalHeapWriter,
  places: { item: Relocatable; at: number; place: HeapId }[],
): void {
  for (const slot of item.heap) {
    placeHeap(slot.content, heap, places);
    places.push({ item, at: slot.at, place: heap.add(slot.content.bytes) });
  }
}

function patchTargets(item: Relocatable): void {
  if (item.targets.length > 0) {
    const view = new DataView(item.bytes.buffer, item.bytes.byteOffset, item.bytes.byteLength);
    // What was made and deleted again before it was ever written has no place: a null reference.
    for (const { at, target } of item.targets) putU64(view, at, isTemporary(target.address) ? 0 : target.address);
  }
  for (const slot of item.heap) patchTargets(slot.content);
}

/** The messages that follow from a node's fields. */
function generatedFor(node: ObjectNode): GeneratedMessage[] {
  const made: GeneratedMessage[] = [];
  if (node.kind === 'group') {
    const { tracked, indexed, next } = node.linkOrder;
    made.push({ type: MESSAGE.linkInfo, bytes: encodeLinkInfo({ tracked, indexed, nextOrder: next }) });
    made.push({ type: MESSAGE.groupInfo, bytes: node.groupInfo });
  }
  if (node.denseAttributeInfo) made.push({ type: MESSAGE.attributeInfo, bytes: node.denseAttributeInfo.bytes });
  else if (node.attributes.size > 0) {
    const { tracked, indexed, next } = node.attributeOrder;
    made.push({
      type: MESSAGE.attributeInfo,
      bytes: encodeAttributeInfo({ tracked, indexed, nextOrder: Math.min(next, 0xffff) }),
    });
  }
  if (node.linkCount > 1)
    made.push({ type: MESSAGE.referenceCount, bytes: new ByteWriter(5).u8(0).u32(node.linkCount).done() });
  return made;
}
