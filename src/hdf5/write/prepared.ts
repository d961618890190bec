// Headers that are encoded as a whole when an object is created: of members of a log, and of datasets in it. Such an object has no
// messages in memory until somebody asks for them, which is rare where thousands are created.

import { allocate } from '../../base/buffers.ts';
import { lookup3 } from '../../base/checksum.ts';
import { putAddress } from '../format/byte-writer.ts';
import { Cursor } from '../format/cursor.ts';
import { HeaderMessage, type HeapSlot, ObjectNode, OWN_ADDRESS, type PreparedHeader } from '../graph/object-node.ts';
import { setReferences } from '../graph/references.ts';
import { attributeName } from '../messages/attribute.ts';
import { simpleSpace } from '../messages/dataspace.ts';
import { attributeHead, encodeAttributeInfo } from '../messages/encode.ts';
import * as MESSAGE from '../messages/message-types.ts';
import {
  encodeFirstChunk,
  firstChunkSize,
  generatedBytes,
  generatedMessages,
  HeaderWriter,
  NEW_FIRST_CHUNK_LIMIT,
  OHDR,
} from './object-header.ts';
import { type Structure, untrackOrder } from './structure.ts';

const NONE: readonly never[] = [];

/** Creates a dataset whose header is encoded already. It gets its messages, from `addMessages`, when somebody asks for them. */
export function createPrepared(
  structure: Structure,
  parent: ObjectNode,
  name: string,
  header: PreparedHeader,
  addMessages: (node: ObjectNode) => void,
): ObjectNode {
  const node = new ObjectNode('dataset');
  if (((header.bytes[5] as number) & 4) === 0) untrackOrder(node);
  node.defer(() => addMessages(node));
  node.prepared = header;
  structure.create(parent, name, node, NONE);
  if (header.extent) structure.extents.add(header.extent);
  return node;
}

/** Encoded headers that differ in numbers only. */
export class HeaderTemplate {
  readonly #bytes: Uint8Array;

  /** `node` is one of these objects, with all of its messages in the first chunk. */
  constructor(node: ObjectNode) {
    const generated = generatedMessages(node);
    const size = firstChunkSize(node, generatedBytes(node, generated));
    this.#bytes = new Uint8Array(size);
    encodeFirstChunk(node, generated, new HeaderWriter(this.#bytes), 0, size);
  }

  /** Where the only message of a type begins. */
  find(type: number): number {
    const view = new DataView(this.#bytes.buffer);
    for (let at = 7; at < this.#bytes.length - 4; at += 4 + view.getUint16(at + 1, true))
      if (view.getUint8(at) === type) return at + 4;
    throw new TypeError(`a template without a message of type ${type}`);
  }

  /** A header whose numbers, and whose checksum, are to be filled in. */
  copy(): Uint8Array {
    const bytes = allocate(this.#bytes.length);
    bytes.set(this.#bytes);
    return bytes;
  }
}

const OWN_ADDRESS_HEAD = attributeHead(OWN_ADDRESS, 'int64', simpleSpace([1]));
const NO_ADDRESS = new Uint8Array(8);

/** Bytes before the messages of a header that is being composed: signature, version, flags and size, which is not known yet. */
const COMPOSED_AT = 16;
const COMPOSED = new Uint8Array(COMPOSED_AT + NEW_FIRST_CHUNK_LIMIT);
/** One at a time: composing never calls back. */
const COMPOSING = new HeaderWriter(COMPOSED);
const ATTRIBUTE_INFO = encodeAttributeInfo({ tracked: true, indexed: true, next: 0 });

/** Composes the header of a dataset, which tracks and indexes the creation order of its attributes, without an object for each message. */
export class HeaderComposer {
  readonly #out = COMPOSING;
  readonly #heap: HeapSlot[] = [];
  #attributes = 0;
  #ownAddressAt = 0;
  /** Whether all messages had room in the first chunk. */
  fits = true;

  constructor() {
    this.#out.begin(COMPOSED_AT, true);
    // With the number of attributes, this will be the attribute info message.
    this.message(MESSAGE.attributeInfo, 0, ATTRIBUTE_INFO);
  }

  message(type: number, flags: number, body: Uint8Array): void {
    if (this.#hasRoom(body.length)) this.#out.message(type, flags, 0, body);
  }

  /** `head` is what comes before the value; `heap` says where ids of heap objects are in the value. */
  attribute(head: Uint8Array, value: Uint8Array, heap: readonly HeapSlot[] = NONE): void {
    const length = head.length + value.length;
    if (!this.#hasRoom(length)) return;
    this.#out.parts(MESSAGE.attribute, this.#attributes++, head, value);
    const valueAt = this.#out.at - value.length;
    for (const { at, content } of heap) this.#heap.push({ at: at + valueAt, content });
  }

  /** The attribute in which the object says where it is. */
  ownAddress(): void {
    this.attribute(OWN_ADDRESS_HEAD, NO_ADDRESS);
    this.#ownAddressAt = this.#out.at - NO_ADDRESS.length;
  }

  #hasRoom(length: number): boolean {
    this.fits &&= this.#out.at + 6 + length <= COMPOSED.length;
    return this.fits;
  }

  done(): PreparedHeader {
    const size = this.#out.at - COMPOSED_AT;
    const width = size < 0x100 ? 1 : 2;
    const messagesAt = 6 + width;
    const bytes = allocate(messagesAt + size + 4);
    bytes.set(OHDR);
    bytes[5] = 0x0c | (width >> 1);
    bytes[6] = size;
    if (width > 1) bytes[7] = size >> 8;
    bytes.set(COMPOSED.subarray(COMPOSED_AT, COMPOSED_AT + size), messagesAt);
    // Behind the head of the message, its version and its flags.
    bytes[messagesAt + 8] = this.#attributes;
    bytes[messagesAt + 9] = this.#attributes >> 8;
    const shift = messagesAt - COMPOSED_AT;
    const heap = this.#heap.map(({ at, content }) => ({ at: at + shift, content }));
    const ownAddressAt = this.#ownAddressAt && this.#ownAddressAt + shift;
    return { bytes, owned: true, targets: NONE, heap, extent: null, addressAt: 0, ownAddressAt, planned: false };
  }
}

/** Gives a dataset the messages that its composed header consists of. `commit` is the number of the next one. */
export function takeApart(
  node: ObjectNode,
  { bytes, heap, ownAddressAt, planned }: PreparedHeader,
  commit: number,
): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (ownAddressAt > 0) putAddress(bytes, ownAddressAt, node.address);
  for (let at = (bytes[5] as number) & 1 ? 8 : 7; at < bytes.length - 4; ) {
    const [type, size, flags] = [view.getUint8(at), view.getUint16(at + 1, true), view.getUint8(at + 3)];
    const order = view.getUint16(at + 4, true);
    const from = at + 6;
    at = from + size;
    if (type === MESSAGE.attributeInfo) continue;
    const message = new HeaderMessage(node, type, flags, order, bytes.subarray(from, at), true);
    message.changed = commit;
    node.firstChunk.add(message);
    if (type !== MESSAGE.attribute) {
      node.otherMessages.push(message);
      continue;
    }
    const slots = heap
      .filter((slot) => slot.at >= from && slot.at < from + size)
      .map((slot) => ({ at: slot.at - from, content: slot.content }));
    // What a commit was planned for has the ids of the file.
    if (planned) message.heap = slots;
    else setReferences(message, NONE, slots);
    const name = attributeName(new Cursor(message.bytes, 0));
    node.attributes.set(name, { name, order, message, sharedType: null, sharedSpace: null, committed: null });
    node.attributeOrder.next = order + 1;
  }
}

/** Writes a prepared header, of an object that gets an address, from `at` on. */
export function encodePrepared(
  { bytes, extent, addressAt, ownAddressAt }: PreparedHeader,
  to: Uint8Array,
  at: number,
  address: number,
): void {
  to.set(bytes, at);
  if (extent) putAddress(to, at + addressAt, extent.address);
  if (ownAddressAt > 0) putAddress(to, at + ownAddressAt, address);
  const end = at + bytes.length - 4;
  const sum = lookup3(to, at, end);
  for (let i = 0; i < 4; i++) to[end + i] = sum >>> (8 * i);
}
