// Dense storage of attributes, written for objects with an attribute that does not fit into a header (HDF5 file format
// specification, III.G and IV.A.2.v). All attributes of the object are huge objects of a fractal heap, that is, each lies in the
// file by itself: one that does not change stays where it is. The heap's header and the B-trees that find the attributes are
// written again with every change.

import { lookup3 } from '../../base/checksum.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import { type HeaderMessage, moveToFirstChunk, type ObjectNode, removeMessage } from '../graph/object-node.ts';
import { CHUNK_TREE, RecordTree } from '../layouts/record-tree.ts';
import { attributeNameBytes, encodeAttributeInfo } from '../messages/attribute.ts';
import * as MESSAGE from '../messages/message-types.ts';

/** Bytes of a heap's header with addresses and lengths of 8 bytes. */
const HEAP_HEADER = 146;
/** What libhdf5 writes in place of a creation order that is not tracked. */
const NO_ORDER = 0xffff;

/** Dense storage with its addresses. */
export interface DensePlan {
  readonly node: ObjectNode;
  /** Attributes that are written with it; the others are in the file. */
  readonly written: readonly HeaderMessage[];
  /** Address behind the last byte. */
  readonly end: number;
  /** Encodes it, after all messages were patched; `room` gives the bytes at an address. */
  readonly encode: (room: (address: number, size: number) => Uint8Array) => void;
}

/**
 * Assigns addresses from `at` on to the dense storage of an object and takes its attributes out of the header; null if there is
 * nothing to write. An object that has no large attribute any more gets its attributes back into the header.
 */
export function planDense(node: ObjectNode, at: number): DensePlan | null {
  const { dense } = node;
  if (!dense || dense.written) return null;
  const messages = [...node.attributes.values()].map(({ message }) => message);
  if (!messages.some(({ bytes }) => bytes.length > MESSAGE.MAX_SIZE)) {
    node.dense = null;
    messages.forEach(moveToFirstChunk);
    return null;
  }
  let end = at;
  const place = (size: number): number => {
    end += size;
    return end - size;
  };
  const written = messages.filter(({ denseAddress }) => denseAddress < 0);
  for (const message of written) {
    removeMessage(message);
    message.denseAddress = place(message.bytes.length);
  }
  const { tracked, indexed } = node.attributeOrder;
  const trees = [hugeTree(messages), nameTree(messages, tracked), ...(indexed ? [orderTree(messages)] : [])];
  const extents = trees.map(({ extent }) => {
    extent.address = place(extent.size);
    return extent;
  });
  const [huge = UNDEFINED, names = UNDEFINED, orders = UNDEFINED] = extents.map(({ address }) => address);
  const heap = place(HEAP_HEADER);
  dense.info = encodeAttributeInfo(node.attributeOrder, { heap, names, orders });
  dense.written = true;
  const encode: DensePlan['encode'] = (room) => {
    for (const { denseAddress, bytes } of written) room(denseAddress, bytes.length).set(bytes);
    for (const { address, size, parts } of extents) room(address, size).set(parts()[0] as Uint8Array);
    room(heap, HEAP_HEADER).set(encodeHeap(messages, huge));
  };
  return { node, written, end, encode };
}

/** Finds the objects of the heap: address, length and number of each. */
function hugeTree(messages: readonly HeaderMessage[]): RecordTree {
  const out = new ByteWriter(24 * messages.length);
  for (const [i, { denseAddress, bytes }] of messages.entries())
    out
      .u64(denseAddress)
      .u64(bytes.length)
      .u64(i + 1);
  return treeOf(1, 24, out);
}

/** Finds attributes by the hash of their name: heap ID, flags, creation order, hash. */
function nameTree(messages: readonly HeaderMessage[], tracked: boolean): RecordTree {
  const names = messages.map(({ bytes }) => attributeNameBytes(new Cursor(bytes, 0)));
  const hashes = names.map((name) => lookup3(name));
  const order = [...messages.keys()].sort(
    (a, b) =>
      (hashes[a] as number) - (hashes[b] as number) || compareBytes(names[a] as Uint8Array, names[b] as Uint8Array),
  );
  const out = new ByteWriter(17 * messages.length);
  for (const i of order) {
    const { flags, order: created } = messages[i] as HeaderMessage;
    putHeapId(out, i)
      .u8(flags)
      .u32(tracked ? created : NO_ORDER)
      .u32(hashes[i] as number);
  }
  return treeOf(8, 17, out);
}

/** Finds attributes by their creation order: heap ID, flags, creation order. */
function orderTree(messages: readonly HeaderMessage[]): RecordTree {
  const order = [...messages.entries()].sort(([, a], [, b]) => a.order - b.order);
  const out = new ByteWriter(13 * messages.length);
  for (const [i, { flags, order: created }] of order) putHeapId(out, i).u8(flags).u32(created);
  return treeOf(9, 13, out);
}

/** The heap ID of a huge object that a B-tree finds by its number. */
function putHeapId(out: ByteWriter, i: number): ByteWriter {
  return out.u8(0x10).uint(i + 1, 7);
}

function treeOf(type: number, recordSize: number, records: ByteWriter): RecordTree {
  return RecordTree.ofSorted({ ...CHUNK_TREE, nodeSize: 512, type, recordSize }, records.done());
}

/** The heap's header, with the sizes that libhdf5 chooses for attributes. */
function encodeHeap(messages: readonly HeaderMessage[], huge: number): Uint8Array {
  const bytes = messages.reduce((sum, message) => sum + message.bytes.length, 0);
  const out = new ByteWriter(HEAP_HEADER).text('FRHP').u8(0);
  // Heap IDs of 8 bytes, no filters, checksums in direct blocks, managed objects of at most 4 KiB; the number of the last huge
  // object, and its tree.
  out.u16(8).u16(0).u8(2).u32(4096).u64(messages.length).u64(huge);
  // No managed space: none free, no manager of free space, no blocks, no objects.
  out.u64(0).u64(UNDEFINED).u64(0).u64(0).u64(0).u64(0);
  // Huge objects: bytes and number; no tiny ones.
  out.u64(bytes).u64(messages.length).u64(0).u64(0);
  // The doubling table: its width, block sizes, bits of an offset, rows at first; no root block.
  out.u16(4).u64(1024).u64(65_536).u16(40).u16(1).u64(UNDEFINED).u16(0);
  return out.u32(lookup3(out.done())).done();
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const i = a.findIndex((byte, k) => byte !== b[k]);
  return i < 0 ? a.length - b.length : (a[i] as number) - (b[i] ?? -1);
}
