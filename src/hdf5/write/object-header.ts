// Version 2 object headers: which message goes into which chunk, and the bytes (HDF5 file format specification, IV.A.1.b).
//
// A header stays cheap to change although it may hold 10,000 links. What changed lately is in the first chunk, which is small
// and written with every change of the object. Everything else is in continuation blocks, which stay where they are. When the
// first chunk grows too large, its older messages move into a new block. When there are many blocks, eight of them are put
// behind one block that only points to them. A message that changes leaves its block, which is then written without it.

import { lookup3 } from '../../base/checksum.ts';
import { ByteWriter, putU64 } from '../format/byte-writer.ts';
import { ContinuationBlock, type HeaderMessage, isTemporary, type ObjectNode } from '../graph/object-node.ts';
import { encodeAttributeInfo, encodeLinkInfo } from '../messages/encode.ts';
import * as MESSAGE from '../messages/message-types.ts';

/** Bytes of messages that the first chunk may hold before some of them move to a block. */
const FIRST_CHUNK_LIMIT = 512;
/** Of messages that have not changed for so many commits, the first chunk may hold so many bytes. */
const STALE_COMMITS = 8;
const STALE_LIMIT = 96;
/** A header that is written for the first time may hold this much in the first chunk: many are never changed. */
export const NEW_FIRST_CHUNK_LIMIT = 2048;
/** Bytes of messages in a block. */
const BLOCK_LIMIT = 1024;
/** Blocks to a block that points to others. */
const FANOUT = 8;
/** Signatures; that of the first chunk with the version of the header. */
const OCHK = [0x4f, 0x43, 0x48, 0x4b];
export const OHDR = [0x4f, 0x48, 0x44, 0x52, 2];

const headSize = (node: ObjectNode): number => (node.flags & 4 ? 6 : 4);
const messageSize = (node: ObjectNode, message: HeaderMessage): number => headSize(node) + message.bytes.length;
const continuationSize = (node: ObjectNode): number => headSize(node) + 16;

/** Decides which messages stay in the first chunk, beside the generated ones, and packs the others into blocks. `commit` is the number of this one. */
export function packHeader(node: ObjectNode, generatedSize: number, commit = 0): void {
  if (node.blocks.some(({ written }) => !written)) node.blocks = removeSparse(node, node.blocks);
  let bytes = generatedSize;
  let stale = 0;
  for (const message of node.firstChunk) {
    const size = messageSize(node, message);
    bytes += size;
    if (message.changed < commit - STALE_COMMITS) stale += size;
  }
  if (isTemporary(node.address)) {
    const growing = !import.meta.page && bytes > FIRST_CHUNK_LIMIT ? changingNext(node, commit) : null;
    if (growing) spill(node, growing);
    else if (bytes > NEW_FIRST_CHUNK_LIMIT) spill(node, latest(node, generatedSize));
  } else if (bytes > FIRST_CHUNK_LIMIT) spill(node, latest(node, generatedSize));
  else if (stale > STALE_LIMIT) spill(node, lively(node, commit));
  if (node.blocks.length >= FANOUT) gatherBlocks(node);
}

/** Removes blocks that have lost most of their messages; the others go back to the first chunk. Returns the remaining blocks. */
function removeSparse(node: ObjectNode, blocks: ContinuationBlock[]): ContinuationBlock[] {
  const remaining: ContinuationBlock[] = [];
  for (const block of blocks) {
    if (!block.written) {
      block.children = removeSparse(node, block.children);
      let bytes = 0;
      for (const message of block.messages) bytes += messageSize(node, message);
      if (block.children.length === 0 && bytes < BLOCK_LIMIT / 4) {
        for (const message of block.messages) {
          message.block = null;
          node.firstChunk.add(message);
        }
        block.messages.clear();
        continue;
      }
    }
    remaining.push(block);
  }
  return remaining;
}

/** The messages that changed last, as many as half of a first chunk holds. */
function latest(node: ObjectNode, generatedSize: number): Set<HeaderMessage> {
  const staying = new Set<HeaderMessage>();
  let bytes = generatedSize;
  for (const message of [...node.firstChunk].sort((a, b) => b.changed - a.changed)) {
    bytes += messageSize(node, message);
    if (bytes > FIRST_CHUNK_LIMIT / 2) break;
    staying.add(message);
  }
  return staying;
}

/** The messages of a dataset that will change as it grows; null if it is not expected to. */
function changingNext(node: ObjectNode, commit: number): Set<HeaderMessage> | null {
  const all = [...node.firstChunk];
  if (!all.some(({ changed }) => changed > commit && changed < Infinity)) return null;
  const types = [MESSAGE.dataspace, MESSAGE.layout];
  return new Set(all.filter(({ changed, type }) => changed > commit || types.includes(type)));
}

/** The messages that changed in the last commits. */
function lively(node: ObjectNode, commit: number): Set<HeaderMessage> {
  const staying = new Set<HeaderMessage>();
  for (const message of node.firstChunk) if (message.changed >= commit - STALE_COMMITS) staying.add(message);
  return staying;
}

/** Keeps some messages in the first chunk and moves the others, in their order, into new blocks. */
function spill(node: ObjectNode, staying: Set<HeaderMessage>): void {
  let block: ContinuationBlock | null = null;
  let filled = 0;
  for (const message of node.firstChunk) {
    if (staying.has(message)) continue;
    const size = messageSize(node, message);
    if (!block || filled + size > BLOCK_LIMIT) {
      block = new ContinuationBlock();
      node.blocks.push(block);
      filled = 0;
    }
    message.block = block;
    block.messages.add(message);
    filled += size;
  }
  node.firstChunk = staying;
}

/** Puts every eight blocks of a level behind one of the next level, so that the first chunk never points to many. */
function gatherBlocks(node: ObjectNode): void {
  for (let level = 0; node.blocks.length >= FANOUT; level++) {
    const same = node.blocks.filter((block) => block.level === level);
    // The rest of many goes behind one block as well: each would cost its pointer in every commit.
    const rest = same.length % FANOUT;
    const whole = same.length > 2 * FANOUT && rest > 1 ? same.length : same.length - rest;
    const gathered = new Set<ContinuationBlock>();
    const parents: ContinuationBlock[] = [];
    for (let i = 0; i < whole; i += FANOUT) {
      const parent = new ContinuationBlock();
      parent.level = level + 1;
      parent.children = same.slice(i, i + FANOUT);
      for (const child of parent.children) {
        child.parent = parent;
        gathered.add(child);
      }
      parents.push(parent);
    }
    if (parents.length > 0) node.blocks = [...node.blocks.filter((block) => !gathered.has(block)), ...parents];
    if (!node.blocks.some((block) => block.level > level)) break;
  }
}

/** Blocks that must be written, children before the blocks that point to them; `found` is where they are added. */
export function unwrittenBlocks(
  blocks: readonly ContinuationBlock[],
  found: ContinuationBlock[] = [],
): readonly ContinuationBlock[] {
  for (const block of blocks) {
    if (block.written) continue;
    unwrittenBlocks(block.children, found);
    found.push(block);
  }
  return found;
}

export function blockSize(node: ObjectNode, block: ContinuationBlock): number {
  let size = 8 + block.children.length * continuationSize(node);
  for (const message of block.messages) size += messageSize(node, message);
  return size;
}

export function firstChunkSize(node: ObjectNode, generatedSize: number): number {
  let size = generatedSize + node.blocks.length * continuationSize(node);
  for (const message of node.firstChunk) size += messageSize(node, message);
  return 5 + 1 + node.extras.length + sizeBytes(size) + size + 4;
}

/** Width of the field for the size of the first chunk. The header's flags hold it as a power of two. */
function sizeBytes(size: number): 1 | 2 | 4 {
  return size < 0x100 ? 1 : size < 0x10000 ? 2 : 4;
}

/** A message that is encoded from the node's fields whenever the node is written. */
export interface GeneratedMessage {
  readonly type: number;
  readonly bytes: Uint8Array;
}

/** The messages that say how many links and attributes an object has, how they are ordered, and how many links lead to it. */
export function generatedMessages(node: ObjectNode): GeneratedMessage[] {
  const made: GeneratedMessage[] = [];
  if (node.kind === 'group') {
    const { tracked, indexed, next } = node.linkOrder;
    made.push({ type: MESSAGE.linkInfo, bytes: encodeLinkInfo({ tracked, indexed, nextOrder: next }) });
    made.push({ type: MESSAGE.groupInfo, bytes: node.groupInfo });
  }
  if (node.dense) made.push({ type: MESSAGE.attributeInfo, bytes: node.dense.info });
  else if (node.attributes.size > 0)
    made.push({ type: MESSAGE.attributeInfo, bytes: encodeAttributeInfo(node.attributeOrder) });
  if (node.linkCount > 1)
    made.push({ type: MESSAGE.referenceCount, bytes: new ByteWriter(5).u8(0).u32(node.linkCount).done() });
  return made;
}

/** The bytes of some messages with their message headers. */
export function generatedBytes(node: ObjectNode, generated: readonly GeneratedMessage[]): number {
  let sum = 0;
  for (const { bytes } of generated) sum += headSize(node) + bytes.length;
  return sum;
}

/** Writes header chunks into a buffer, which has their size. */
export class HeaderWriter {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  #orders = false;
  #start = 0;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Begins a chunk. `orders`: whether its messages have creation orders. */
  begin(at: number, orders: boolean): void {
    this.#start = at;
    this.#orders = orders;
    this.at = at;
  }

  raw(values: ArrayLike<number>): void {
    const { bytes, at } = this;
    const { length } = values;
    // A loop is faster than the call of `set` for a few bytes, and slower for more as long as V8 has not compiled it.
    if (import.meta.page || length > 24) bytes.set(values, at);
    else for (let i = 0; i < length; i++) bytes[at + i] = values[i] as number;
    this.at = at + length;
  }

  u32(value: number): void {
    this.#view.setUint32(this.at, value, true);
    this.at += 4;
  }

  uint(value: number, size: 1 | 2 | 4): void {
    for (let i = 0; i < size; i++) this.bytes[this.at + i] = value >>> (8 * i);
    this.at += size;
  }

  #head(type: number, size: number, flags: number, order: number): void {
    const at = this.at;
    this.#view.setUint8(at, type);
    this.#view.setUint16(at + 1, size, true);
    this.#view.setUint8(at + 3, flags);
    if (this.#orders) this.#view.setUint16(at + 4, order, true);
    this.at = at + (this.#orders ? 6 : 4);
  }

  message(type: number, flags: number, order: number, body: Uint8Array): void {
    this.#head(type, body.length, flags, order);
    this.raw(body);
  }

  /** A message whose body is in two parts. */
  parts(type: number, order: number, first: Uint8Array, second: Uint8Array): void {
    this.#head(type, first.length + second.length, 0, order);
    this.raw(first);
    this.raw(second);
  }

  continuation(block: ContinuationBlock): void {
    this.#head(MESSAGE.continuation, 16, 0, 0);
    putU64(this.#view, this.at, block.address);
    putU64(this.#view, this.at + 8, block.size);
    this.at += 16;
  }

  checksum(): void {
    this.u32(lookup3(this.bytes, this.#start, this.at));
  }
}

/** Encodes a continuation block from `at` on. All addresses are assigned. */
export function encodeBlock(node: ObjectNode, block: ContinuationBlock, out: HeaderWriter, at: number): void {
  out.begin(at, (node.flags & 4) !== 0);
  out.raw(OCHK);
  for (const child of block.children) out.continuation(child);
  for (const message of block.messages) out.message(message.type, message.flags, message.order, message.bytes);
  out.checksum();
}

/** Encodes the first chunk, which has a size, from `at` on. All addresses are assigned. */
export function encodeFirstChunk(
  node: ObjectNode,
  generated: readonly GeneratedMessage[],
  out: HeaderWriter,
  at: number,
  size: number,
): void {
  out.begin(at, (node.flags & 4) !== 0);
  out.raw(OHDR);
  const rest = size - OHDR.length - 1 - node.extras.length - 4;
  const width = rest - 1 < 0x100 ? 1 : rest - 2 < 0x10000 ? 2 : 4;
  out.uint((node.flags & 0x3c) | (width >> 1), 1);
  out.raw(node.extras);
  out.uint(rest - width, width);
  for (const message of generated) out.message(message.type, 0, 0, message.bytes);
  for (const block of node.blocks) out.continuation(block);
  for (const message of node.firstChunk) out.message(message.type, message.flags, message.order, message.bytes);
  out.checksum();
}
