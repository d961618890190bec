// Commits: what changed in a structure gets addresses at the end of the file, is encoded, and is appended; then the superblock
// points to the new root group. Nothing that an earlier commit wrote changes.

import { allocate } from '../../base/buffers.ts';
import type { Io } from '../../storage/io.ts';
import { putAddress, putU64 } from '../format/byte-writer.ts';
import { UNDEFINED } from '../format/cursor.ts';
import { GlobalHeapWriter, type HeapId } from '../format/global-heap.ts';
import {
  type ContinuationBlock,
  type FileExtent,
  type HeaderMessage,
  isStray,
  isTemporary,
  moveToFirstChunk,
  type ObjectNode,
  OWN_ADDRESS_AT,
  type Relocatable,
} from '../graph/object-node.ts';
import { withReferrers } from '../graph/references.ts';
import type { Append, Appender } from './appender.ts';
import { type DensePlan, homeMessage, planDense } from './attributes.ts';
import {
  blockSize,
  encodeBlock,
  encodeFirstChunk,
  firstChunkSize,
  type GeneratedMessage,
  generatedBytes,
  generatedMessages,
  HeaderWriter,
  packHeader,
  unwrittenBlocks,
} from './object-header.ts';
import { encodePrepared } from './prepared.ts';
import type { Structure } from './structure.ts';

/** A commit whose bytes and addresses are fixed, but which is not written yet. */
export interface PlannedCommit {
  readonly plan: StructurePlan;
  readonly append: Append;
  /** Bytes added to the file. */
  readonly bytes: number;
}

/**
 * Turns what changed in a structure into commits. Planning is immediate and fixes the bytes; while they are written, the
 * structure may change further. Commits are written in the order they were planned; when one fails, those behind it must be
 * undone too, because they point into it.
 */
export class Committer {
  readonly structure: Structure;
  readonly appender: Appender;
  /** The superblock extension; written with the first commit. */
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
    const extension = this.#extension;
    const changed = extension && !this.#extensionPlanned ? [...structure.dirty, extension] : structure.dirty;
    const { position } = appender;
    const commit = structure.commitNumber++;
    const plan = planStructure(changed, [...structure.extents], position, commit, structure.findOwners);
    this.#extensionPlanned = true;
    appender.position = plan.end;
    structure.forgetChanges();
    const append = {
      at: plan.at,
      parts: plan.parts,
      end: plan.end,
      root: structure.root.address,
      extension: extension ? extension.address : UNDEFINED,
    };
    return { plan, append, bytes: plan.end - plan.at };
  }

  /** Writes a planned commit, with `body` if the caller writes the bytes. May be started again: bytes and addresses are fixed. */
  write(planned: PlannedCommit, body?: (append: Append) => Io<void>): Io<void> {
    return this.appender.commit(planned.append, body, this.structure.loader.file);
  }

  /**
   * The planned commit is not, and will not be, in the file: everything in it waits for the next commit. `reuse` says
   * that no write of it is under way any more, so that its space can be used again.
   */
  undo(planned: PlannedCommit, reuse: boolean): void {
    if (reuse) this.appender.retreat(planned.append);
    undoPlan(planned.plan);
    for (const node of planned.plan.nodes) {
      if (node === this.#extension) this.#extensionPlanned = false;
      else if (node.linkCount > 0) {
        this.structure.dirty.add(node);
        if (node.prepared?.extent) this.structure.extents.add(node.prepared.extent);
      }
    }
    for (const extent of planned.plan.extents) if (extent.referrers.size > 0) this.structure.extents.add(extent);
  }
}

const NONE: readonly never[] = [];

/** The header of an object with an address: what it generates, the blocks that are written with it, and the size of its first chunk. */
interface PlannedHeader {
  readonly node: ObjectNode;
  readonly generated: readonly GeneratedMessage[];
  readonly blocks: readonly ContinuationBlock[];
  readonly size: number;
}

/** The bytes of one commit, and what they are made of. */
interface StructurePlan {
  /** Address of the first byte. */
  readonly at: number;
  /** What to write there, one after the other: the extents, then heap collections and headers. */
  readonly parts: readonly Uint8Array[];
  /** Address behind the last byte. */
  readonly end: number;
  readonly extents: readonly FileExtent[];
  readonly nodes: readonly ObjectNode[];
  readonly blocks: readonly ContinuationBlock[];
  /** Messages that were patched. */
  readonly messages: readonly HeaderMessage[];
  readonly dense: readonly DensePlan[];
  /** Objects whose header was encoded already, and got the ids of heap objects. */
  readonly prepared: readonly ObjectNode[];
}

/**
 * Assigns addresses from `at` on to every changed object and everything that points to one, patches the messages that hold
 * these addresses, and encodes them all. Sizes do not depend on addresses: objects may point to one another in cycles.
 */
function planStructure(
  changed: Iterable<ObjectNode>,
  extents: readonly FileExtent[],
  at: number,
  commit: number,
  findOwners: Structure['findOwners'],
): StructurePlan {
  const nodes = [...withReferrers(changed, extents)];
  if (!import.meta.page && findOwners && nodes.some((node) => !isTemporary(node.address) && isStray(node)))
    findOwners();
  const messages = messagesToPatch(nodes, extents, commit);
  const heap = new PendingCollections(messages);
  const prepared = import.meta.page ? NONE : nodes.filter((node) => node.prepared);
  if (!import.meta.page) for (const { prepared: header } of prepared) if (header) heap.add(header);

  let end = at;
  for (const extent of extents) {
    extent.address = extent.size === 0 ? UNDEFINED : end;
    end += extent.size;
  }
  const structureAt = end;
  end = heap.assignAddresses(end);
  const blocks: ContinuationBlock[] = [];
  const headers: PlannedHeader[] = [];
  const dense: DensePlan[] = [];
  for (const node of nodes) {
    if (!import.meta.page && node.prepared) {
      node.address = end;
      const size = node.prepared.bytes.length;
      headers.push({ node, generated: NONE, blocks: NONE, size });
      end += size;
      continue;
    }
    // A copy goes on saying where its original was.
    const own = findOwners ? homeMessage(node) : undefined;
    const attributes = node.dense && planDense(node, end);
    if (attributes) {
      dense.push(attributes);
      end = attributes.end;
    }
    const generated = generatedMessages(node);
    const generatedSize = generatedBytes(node, generated);
    packHeader(node, generatedSize, commit);
    const unwritten = unwrittenBlocks(node.blocks);
    for (const block of unwritten) {
      block.address = end;
      block.size = blockSize(node, block);
      end += block.size;
      blocks.push(block);
    }
    node.address = end;
    if (own) putAddress(own.bytes, OWN_ADDRESS_AT, end);
    const size = firstChunkSize(node, generatedSize);
    headers.push({ node, generated, blocks: unwritten, size });
    end += size;
  }

  for (const message of messages) patchTargets(message);
  heap.patchIds();

  const bytes = allocate(end - structureAt);
  const room = (address: number, size: number): Uint8Array =>
    bytes.subarray(address - structureAt, address - structureAt + size);
  heap.encode((address, collection) => room(address, collection.length).set(collection));
  for (const { encode } of dense) encode(room);
  const out = new HeaderWriter(bytes);
  for (const { node, generated, blocks: own, size } of headers) {
    for (const block of own) encodeBlock(node, block, out, block.address - structureAt);
    const first = node.address - structureAt;
    if (!import.meta.page && node.prepared) {
      encodePrepared(node.prepared, bytes, first, node.address);
      node.prepared.planned = true;
    } else encodeFirstChunk(node, generated, out, first, size);
    node.dirty = false;
    if (!import.meta.page && node.hasGaps) node.hasGaps = false;
  }
  for (const block of blocks) block.written = true;
  for (const message of messages) message.heapPending = false;
  const parts = [...extents.flatMap((extent) => extent.parts()), bytes];
  return { at, parts, end, extents, nodes, blocks, messages: [...messages], dense, prepared };
}

/** The messages that hold addresses or heap ids that this commit assigns, ready to be patched and in the first chunk. */
function messagesToPatch(
  nodes: readonly ObjectNode[],
  extents: readonly FileExtent[],
  commit: number,
): ReadonlySet<HeaderMessage> {
  const messages = new Set<HeaderMessage>();
  for (const extent of extents) for (const message of extent.referrers) messages.add(message);
  for (const node of nodes) for (const message of node.referrers) if (!message.lags) messages.add(message);
  for (const node of nodes)
    for (const message of node.prepared ? NONE : node.firstChunk) if (message.heapPending) messages.add(message);
  for (const message of messages) {
    moveToFirstChunk(message);
    message.changed = commit;
    // Bytes of a cached page or of an earlier commit must not be patched.
    const isShared = message.content !== message.bytes;
    copyOnWrite(message);
    if (!isShared) message.content = message.bytes;
  }
  return messages;
}

/** Gives a message and its heap objects bytes of their own. */
function copyOnWrite(item: Relocatable): void {
  if (!item.owned) item.bytes = item.bytes.slice();
  item.owned = true;
  for (const slot of item.heap) copyOnWrite(slot.content);
}

/** The heap objects of some messages or elements, in collections that are appended with them. */
export class PendingCollections {
  /** null: most commits have no heap objects. */
  #writer: GlobalHeapWriter | null = null;
  readonly #ids: { readonly item: Relocatable; readonly at: number; readonly id: HeapId }[] = [];
  #addresses: number[] = [];

  constructor(items: Iterable<Relocatable>) {
    for (const item of items) this.add(item);
  }

  add(item: Relocatable): void {
    for (const { at, content } of item.heap) {
      if (content.heap.length > 0) this.add(content);
      this.#writer ??= new GlobalHeapWriter();
      this.#ids.push({ item, at, id: this.#writer.add(content.bytes) });
    }
  }

  /** Assigns addresses from `at` on and gives the address behind the last collection. */
  assignAddresses(at: number): number {
    let end = at;
    this.#addresses = (this.#writer?.sizes() ?? []).map((size) => {
      const address = end;
      end += size;
      return address;
    });
    return end;
  }

  patchIds(): void {
    for (const { item, at, id } of this.#ids) {
      const view = new DataView(item.bytes.buffer, item.bytes.byteOffset + at, 12);
      putU64(view, 0, this.#addresses[id.collection] as number);
      view.setUint32(8, id.index, true);
    }
  }

  /** Encodes every collection, after all heap objects were patched. */
  encode(put: (address: number, collection: Uint8Array) => void): void {
    this.#addresses.forEach((address, i) => {
      if (this.#writer) put(address, this.#writer.encode(i));
    });
  }
}

/** Writes the addresses of its targets into a message, or into elements, and into their heap objects. */
export function patchTargets(item: Relocatable): void {
  // An object that was created and deleted before it was ever written has no address: a null reference.
  for (const { at, target } of item.targets)
    putAddress(item.bytes, at, isTemporary(target.address) ? 0 : target.address);
  for (const slot of item.heap) patchTargets(slot.content);
}

/** The commit failed: everything in it differs from the file again. */
function undoPlan(plan: StructurePlan): void {
  for (const node of plan.nodes) node.dirty = true;
  for (const first of plan.blocks)
    for (let block: ContinuationBlock | null = first; block; block = block.parent) block.written = false;
  for (const message of plan.messages) {
    // A message that was removed or replaced since the commit was planned must not come back.
    if (message.block === null && message.denseAddress < 0 && !message.owner.firstChunk.has(message)) continue;
    moveToFirstChunk(message);
    message.heapPending = message.heap.length > 0;
  }
  for (const node of import.meta.page ? NONE : plan.prepared) {
    if (node.prepared) node.prepared.planned = false;
    else for (const message of node.firstChunk) message.heapPending = message.heap.length > 0;
  }
  for (const { node, written } of plan.dense) {
    if (node.dense) node.dense.written = false;
    for (const message of written) if (message.denseAddress >= 0) moveToFirstChunk(message);
  }
}
