// Loading objects: turns object headers of any version, with dense storage and symbol tables, into nodes.

import { lookup3 } from '../../base/checksum.ts';
import { atOffset, formatError, H5LogError, isH5LogError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import { Budget, type FileBytes, type Place } from '../format/file-bytes.ts';
import { attributeName, parseAttribute, parseAttributeInfo } from '../messages/attribute.ts';
import { encodeLink, hardLinkAddress, type LinkTarget, parseLink, parseLinkInfo } from '../messages/link.ts';
import * as MESSAGE_FLAG from '../messages/message-flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { isKnownMessage } from '../messages/message-types.ts';
import { findHash, readBtree2, readTreeHeader } from '../read/btree.ts';
import { FractalHeap } from '../read/fractal-heap.ts';
import { type RawHeader, type RawMessage, readHeader } from '../read/object-header.ts';
import { parseShared, type SharedTable } from '../read/shared-messages.ts';
import { findSymbol, readSymbolTable } from '../read/symbol-table.ts';
import {
  type Attribute,
  ContinuationBlock,
  GENERATED,
  HeaderMessage,
  type Link,
  markUnwritten,
  moveToFirstChunk,
  type ObjectKind,
  ObjectNode,
  sortMap,
} from './object-node.ts';

/** So many bytes are read ahead for a header whose size is not known yet: most headers are shorter. */
const HEADER_BYTES = 512;
/** Nodes of a symbol table, of 4 to 8 links each, that are read without being asked for. */
const FEW_NODES = 4;
/** Objects whose messages are shared by objects whose messages are shared, and so on. */
const MAX_DEPTH = 64;
/** Continuation blocks that lead to continuation blocks; a header with a longer chain is written without its blocks. */
const MAX_CHAIN = 64;

/** A header with at least so many links is searched for one that is wanted before all are parsed. */
const MANY_LINKS = 32;

/** Objects that are being loaded, by address. */
type Chain = Map<number, ObjectNode>;

/** Loads objects, each address once. */
export class ObjectLoader {
  readonly file: FileBytes;
  readonly shared: SharedTable | null;
  readonly nodes = new Map<number, ObjectNode>();
  /** Leaves the links of large groups unread until {@link whole} or {@link link} want them. */
  lazy = false;
  /** Leaves the links in headers of large groups unparsed until somebody asks for all of them: nothing will be written. */
  readOnly = false;
  /** Objects that were loaded with everything behind them. */
  readonly complete = new WeakSet<ObjectNode>();
  /** Addresses of objects that could not be loaded with all others, where nothing can be read later, and why. */
  readonly failed = new Map<number, unknown>();
  /** For a writer: called with every object that was loaded, and with every link whose object was. */
  onLoad: ((node: ObjectNode) => void) | null = null;
  onFollow: ((link: Link) => void) | null = null;
  /** How many objects there were when those out of reach were last forgotten. */
  #kept = 0;
  /** Bound on the bytes of headers, trees and heaps of all objects. */
  #budget: Budget;

  constructor(file: FileBytes, shared: SharedTable | null) {
    this.file = file;
    this.shared = shared;
    this.#budget = new Budget(file);
  }

  /**
   * The object whose header is at `address`. `chain` are objects that are being loaded because they share a message of one another;
   * others see an object when it is complete.
   */
  *node(address: number, chain: Chain = new Map()): Io<ObjectNode> {
    const known = this.nodes.get(address) ?? chain.get(address);
    if (known) return known;
    if (this.failed.has(address)) throw this.failed.get(address);
    const { spent } = this.#budget;
    try {
      if (chain.size >= MAX_DEPTH) throw formatError('messages shared by objects that share messages, too deep');
      if (address === UNDEFINED) throw formatError('an object without an address');
      const header = yield* readHeader(this.file, address, this.#budget);
      const node = new ObjectNode(kindOf(header, this.file.base + address), address);
      // Before its messages are read: a committed datatype may be used by its own attributes.
      chain.set(address, node);
      yield* this.#fill(node, header, chain);
      // Another call may have been faster.
      const first = this.nodes.get(address);
      if (first) return first;
      this.nodes.set(address, node);
      this.onLoad?.(node);
      return node;
    } catch (error) {
      this.#budget.refund(spent);
      throw atOffset(error, this.file.base + Math.max(0, address));
    } finally {
      chain.delete(address);
    }
  }

  /** The node that a hard link leads to; null for other links. */
  *follow(link: Link): Io<ObjectNode | null> {
    if (link.node || link.target.kind !== 'hard') return link.node;
    const { address } = link.target;
    if (address === UNDEFINED) throw formatError(`link ${link.name} leads to no object`, link.message.offset);
    link.node = yield* this.node(address);
    this.onFollow?.(link);
    return link.node;
  }

  /** An object that is looked at and forgotten, unless it is known already. */
  *glimpse(address: number): Io<ObjectNode> {
    const isKnown = this.nodes.has(address);
    const node = yield* this.node(address);
    if (!isKnown) this.nodes.delete(address);
    return node;
  }

  /** Does work that looks at objects which are loaded another time later on, and does not count against the budget then. */
  *apart<T>(work: Io<T>): Io<T> {
    const budget = this.#budget;
    this.#budget = new Budget(this.file);
    try {
      return yield* work;
    } finally {
      this.#budget = budget;
    }
  }

  /** The objects that links lead to will be needed. */
  ahead(links: readonly Link[]): Io<void> {
    return this.file.ahead(this.#headersOf(links));
  }

  /** Reads the headers of objects that are certainly needed, several at a time where reads overlap. */
  together(links: readonly Link[]): Io<void> {
    return this.file.together(this.#headersOf(links));
  }

  #headersOf(links: readonly Link[]): Place[] {
    const missing = links.map(addressOf).filter((address) => address !== UNDEFINED && !this.nodes.has(address));
    return missing.map((address) => ({ address, length: HEADER_BYTES }));
  }

  /** The file has grown: objects of its new state are loaded beside those of earlier ones. */
  reopen(end: number): void {
    this.file.end = Math.max(this.file.end, end);
    this.#budget = new Budget(this.file);
  }

  /** Forgets objects that cannot be reached from a root: those of earlier states, once they are many. */
  forgetOthers(root: ObjectNode): void {
    if (this.nodes.size < 2 * this.#kept + 64) return;
    const reached = new Set([root]);
    for (const { links } of reached) for (const { node } of links.values()) if (node) reached.add(node);
    for (const [address, node] of this.nodes) if (!reached.has(node)) this.nodes.delete(address);
    this.#kept = this.nodes.size;
  }

  *#fill(node: ObjectNode, header: RawHeader, chain: Chain): Io<void> {
    node.linkCount = header.referenceCount;
    if (!import.meta.page && header.hasGaps) node.hasGaps = true;
    if (header.version === 2) {
      node.flags = header.flags & 0x3c;
      node.extras = header.extras;
    } else node.flags = 0;
    node.linkOrder.tracked = node.linkOrder.indexed = false;
    node.attributeOrder.tracked = (node.flags & 4) !== 0;
    node.attributeOrder.indexed = (node.flags & 8) !== 0;
    const blocks = header.version === 2 && longestChain(header) <= MAX_CHAIN ? blocksOf(header) : null;
    const unparsed = !import.meta.page && this.readOnly && this.file.addressSize === 8 ? plainLinks(header) : null;
    for (const raw of header.messages) {
      if (!import.meta.page && unparsed && raw.type === MESSAGE.link) continue;
      refuseUnknown(raw);
      const message = new HeaderMessage(node, raw.type, raw.flags, raw.order, raw.body, false);
      message.offset = raw.offset;
      if (raw.flags & MESSAGE_FLAG.shared)
        message.content = yield* this.#sharedContent(raw.type, new Cursor(raw.body, raw.offset), chain);
      if (GENERATED.has(raw.type)) {
        // It is encoded again when the object is written, in the first chunk: its block has to be written without it.
        const block = blocks?.[raw.chunk];
        if (block) markUnwritten(block);
        yield* this.#generated(node, message, raw, chain);
        continue;
      }
      if (raw.type === MESSAGE.time && header.version === 1) {
        convertTime(node, new Cursor(raw.body, raw.offset));
        continue;
      }
      putInChunk(message, blocks?.[raw.chunk] ?? null);
      if (raw.type === MESSAGE.link) this.#addLink(node, message, raw);
      else if (raw.type === MESSAGE.attribute) yield* this.#addAttribute(node, message, raw.offset, chain);
      else node.otherMessages.push(message);
    }
    if (!import.meta.page && unparsed) node.unparsed = unparsed;
    else sortMap(node.links, node.linkOrder.tracked);
    sortMap(node.attributes, node.attributeOrder.tracked);
    if (blocks) node.blocks = blocks.filter((block) => block !== null && block.parent === null) as ContinuationBlock[];
  }

  /** Reads a message that says where links and attributes are, or how many links lead here. */
  *#generated(node: ObjectNode, message: HeaderMessage, raw: RawMessage, chain: Chain): Io<void> {
    const cursor = new Cursor(message.content, raw.offset);
    if (raw.type === MESSAGE.referenceCount) {
      cursor.expect(0, 'version of the reference count');
      node.linkCount = cursor.u32();
    } else if (raw.type === MESSAGE.symbolTable) {
      const btree = cursor.address(this.file.addressSize);
      const heap = cursor.address(this.file.addressSize);
      node.unread = { kind: 'table', names: btree, heap, absent: new Set() };
      if (!this.lazy) yield* this.whole(node);
    } else if (raw.type === MESSAGE.linkInfo) {
      const info = parseLinkInfo(cursor, this.file.addressSize);
      Object.assign(node.linkOrder, { tracked: info.tracked, indexed: info.indexed, next: info.nextOrder });
      if (info.heap !== UNDEFINED) {
        node.unread = { kind: 'dense', names: info.names, heap: info.heap, absent: new Set() };
        if (!this.lazy) yield* this.whole(node);
      }
    } else if (raw.type === MESSAGE.groupInfo) {
      node.groupInfo = message.content.slice();
    } else if (raw.type === MESSAGE.attributeInfo) {
      const info = parseAttributeInfo(cursor, this.file.addressSize);
      node.attributeOrder.next = info.nextOrder;
      if (info.heap !== UNDEFINED) yield* this.#denseAttributes(node, message, info.heap, info.names, chain);
    }
  }

  /** Reads the links of a group that were left unread. */
  *whole(node: ObjectNode): Io<void> {
    const { unread } = node;
    if (!unread) return;
    const found: { name: string; order: number; target: LinkTarget; offset: number }[] = [];
    if (unread.kind === 'table') {
      const offset = this.file.base + node.address;
      for (const old of yield* readSymbolTable(this.file, unread.names, unread.heap, this.#budget))
        found.push({ ...old, order: -1, offset });
    } else {
      const heap = yield* FractalHeap.open(this.file, unread.heap, this.#budget);
      yield* heap.ahead();
      for (const record of yield* readBtree2(this.file, unread.names, [5], this.#budget)) {
        record.skip(4);
        const object = yield* heap.object(record);
        found.push({ ...parseLink(object, this.file.addressSize), offset: object.base });
      }
    }
    // Another call may have been faster.
    if (node.unread !== unread) return;
    node.unread = null;
    // Objects of links that were looked up are loaded already.
    const known = new Map(node.links);
    if (this.lazy) for (const { name } of found) node.links.delete(name);
    for (const { name, order, target, offset } of found) {
      this.#insertLink(node, name, order, target, null, offset);
      const link = node.links.get(name);
      if (link) link.node = known.get(name)?.node ?? null;
    }
    sortMap(node.links, node.linkOrder.tracked);
  }

  /** Whether links were left unread that are in more than one node of their tree. */
  *hasManyLinks({ unread }: ObjectNode): Io<boolean> {
    if (!unread) return false;
    if (unread.kind === 'dense') return (yield* readTreeHeader(this.file, unread.names, [5])).depth > 0;
    const head = yield* this.file.cursor(unread.names, 8, 'B-tree node');
    head.skip(5);
    return head.u8() > 0 || head.u16() > FEW_NODES;
  }

  /** A link of a group by its name. Of a large group only what is on the way to it is read. */
  *link(node: ObjectNode, name: string): Io<Link | undefined> {
    const known = node.link(name);
    const { unread } = node;
    if (known || !unread || unread.absent.has(name)) return known;
    const offset = this.file.base + node.address;
    if (unread.kind === 'table') {
      const target = yield* findSymbol(this.file, unread.names, unread.heap, name);
      if (target && !node.links.has(name)) this.#insertLink(node, name, -1, target, null, offset);
    } else {
      const id = yield* findHash(this.file, unread.names, lookup3(new TextEncoder().encode(name)));
      const object = id && (yield* (yield* FractalHeap.open(this.file, unread.heap)).object(id));
      const link = object && parseLink(object, this.file.addressSize);
      if (link && link.name !== name) {
        // Two names of the same hash.
        yield* this.whole(node);
        return node.links.get(name);
      }
      if (link && !node.links.has(name)) this.#insertLink(node, name, link.order, link.target, null, offset);
    }
    const found = node.links.get(name);
    if (!found) unread.absent.add(name);
    return found;
  }

  *#denseAttributes(node: ObjectNode, info: HeaderMessage, heapAddress: number, names: number, chain: Chain): Io<void> {
    const heap = yield* FractalHeap.open(this.file, heapAddress, this.#budget);
    yield* heap.ahead();
    let largest = 0;
    for (const record of yield* readBtree2(this.file, names, [8], this.#budget)) {
      const id = new Cursor(record.bytes, record.base, record.at, record.at + 8);
      record.skip(8);
      const flags = record.u8();
      const order = record.u32();
      const message = new HeaderMessage(node, MESSAGE.attribute, flags, order, new Uint8Array(0), false);
      let offset = id.offset;
      if (flags & MESSAGE_FLAG.shared) {
        message.content = yield* this.#sharedTable().content(MESSAGE.attribute, id);
        message.flags &= ~MESSAGE_FLAG.shared;
      } else {
        const object = yield* heap.object(id);
        offset = object.offset;
        message.content = object.bytes.subarray(object.at, object.end);
        message.denseAddress = offset - this.file.base;
      }
      message.bytes = message.content;
      message.offset = offset;
      largest = Math.max(largest, message.bytes.length);
      yield* this.#addAttribute(node, message, offset, chain);
    }
    if (largest > MESSAGE.MAX_SIZE) node.dense = { info: info.bytes, written: true };
    else for (const attribute of node.attributes.values()) moveToFirstChunk(attribute.message);
  }

  /** Reads the content of a shared message. */
  *#sharedContent(type: number, cursor: Cursor, chain: Chain): Io<Uint8Array> {
    const record = parseShared(cursor, this.file);
    if (record.kind === 'heap') return yield* this.#sharedTable().content(type, record.id);
    const holder = yield* this.node(record.address, chain);
    const message = holder.message(type);
    if (!message) throw formatError('a shared message that its object does not have', cursor.offset);
    return message.content;
  }

  #sharedTable(): SharedTable {
    if (!this.shared) throw formatError('a shared message in a file without a shared message table');
    return this.shared;
  }

  #addLink(node: ObjectNode, message: HeaderMessage, raw: RawMessage): void {
    const link = parseLink(new Cursor(message.content, raw.offset), this.file.addressSize);
    this.#insertLink(node, link.name, link.order, link.target, message, raw.offset);
  }

  #insertLink(
    node: ObjectNode,
    name: string,
    order: number,
    target: LinkTarget,
    stored: HeaderMessage | null,
    offset: number,
  ): void {
    if (node.links.has(name)) throw formatError(`two links named ${name}`, offset);
    let message = stored;
    if (order >= Number.MAX_SAFE_INTEGER) throw formatError(`link ${name} with creation order ${order}`, offset);
    if (!message) {
      message = new HeaderMessage(node, MESSAGE.link, 0, 0, encodeLink(name, order, target), true);
      message.offset = offset;
      node.firstChunk.add(message);
    }
    node.links.set(name, { name, order, target, node: null, message });
    if (order >= node.linkOrder.next) node.linkOrder.next = order + 1;
  }

  *#addAttribute(node: ObjectNode, message: HeaderMessage, offset: number, chain: Chain): Io<void> {
    const cursor = new Cursor(message.content, offset);
    let name: string;
    try {
      name = attributeName(cursor);
    } catch (error) {
      if (!isH5LogError(error, 'FORMAT')) throw error;
      // An attribute of another kind does not take its object along; verify finds it.
      node.otherMessages.push(message);
      return;
    }
    if (name === '') throw formatError('attribute without a name', offset);
    if (node.attributes.has(name)) throw formatError(`two attributes named ${name}`, offset);
    let sharedType: Uint8Array | null = null;
    let sharedSpace: Uint8Array | null = null;
    const sharing = message.content[0] === 1 ? 0 : (message.content[1] ?? 0);
    if (sharing & 3) {
      cursor.at = 0;
      const parsed = parseAttribute(cursor, this.file.lengthSize);
      const part = (at: { sharedAt: number; sharedSize: number }): Cursor =>
        new Cursor(message.content, offset, at.sharedAt, at.sharedAt + at.sharedSize);
      if ('sharedAt' in parsed.type)
        sharedType = yield* this.#sharedContent(MESSAGE.datatype, part(parsed.type), chain);
      if ('sharedAt' in parsed.space)
        sharedSpace = yield* this.#sharedContent(MESSAGE.dataspace, part(parsed.space), chain);
    }
    const attribute: Attribute = { name, order: message.order, message, sharedType, sharedSpace, committed: null };
    node.attributes.set(name, attribute);
    if (message.order >= node.attributeOrder.next) node.attributeOrder.next = message.order + 1;
  }
}

/** The address of the object that a hard link leads to; UNDEFINED for other links. */
export function addressOf({ node, target }: Link): number {
  return node?.address ?? (target.kind === 'hard' ? target.address : UNDEFINED);
}

/** The link messages of a header, if they are many and each is a hard link without anything odd; else null. */
function plainLinks({ version, messages }: RawHeader): RawMessage[] | null {
  if (version !== 2 || messages.length < MANY_LINKS) return null;
  const links = messages.filter(({ type }) => type === MESSAGE.link);
  const isPlain = ({ flags, body }: RawMessage): boolean =>
    (flags & MESSAGE_FLAG.shared) === 0 && hardLinkAddress(body) !== null;
  return links.length >= MANY_LINKS && links.every(isPlain) ? links : null;
}

/** Refuses a message that forbids those who do not know it to open the object. */
function refuseUnknown({ type, flags, offset }: RawMessage): void {
  if (isKnownMessage(type) || (flags & MESSAGE_FLAG.failIfUnknown) === 0) return;
  throw new H5LogError(
    'UNSUPPORTED',
    `the object has a message of type ${type} that only programs that know it may open (at byte ${offset})`,
    { offset },
  );
}

function kindOf(header: RawHeader, offset: number): ObjectKind {
  const has = (type: number): boolean => header.messages.some((message) => message.type === type);
  if (has(MESSAGE.linkInfo) || has(MESSAGE.symbolTable)) return 'group';
  if (has(MESSAGE.layout) || has(MESSAGE.dataspace)) return 'dataset';
  if (has(MESSAGE.datatype)) return 'datatype';
  throw formatError('object that is neither group, dataset nor datatype', offset);
}

/** The most continuations between the first chunk and another one. */
function longestChain(header: RawHeader): number {
  const lengths: number[] = [];
  // Chunks come after the ones that point to them.
  header.chunks.forEach(({ parent }, i) => {
    lengths.push(i === 0 ? 0 : (lengths[parent] ?? 0) + 1);
  });
  return lengths.reduce((longest, length) => Math.max(longest, length), 0);
}

/** The continuation blocks of a version 2 header, by chunk number; chunk 0 has none. */
function blocksOf(header: RawHeader): (ContinuationBlock | null)[] {
  const blocks = header.chunks.map(({ address, size }, i) => {
    if (i === 0) return null;
    const block = new ContinuationBlock();
    Object.assign(block, { address, size, written: true });
    return block;
  });
  header.chunks.forEach(({ parent }, i) => {
    const block = blocks[i];
    const above = blocks[parent];
    if (!block || !above) return;
    block.parent = above;
    above.children.push(block);
  });
  for (let i = blocks.length - 1; i > 0; i--) {
    const block = blocks[i];
    if (block?.parent) block.parent.level = Math.max(block.parent.level, block.level + 1);
  }
  return blocks;
}

/** Turns the modification time message of a version 1 header into the four times of a version 2 header. */
function convertTime(node: ObjectNode, cursor: Cursor): void {
  cursor.expect(1, 'version of the modification time');
  cursor.skip(3);
  const seconds = cursor.u32();
  node.flags |= 0x20;
  const times = new ByteWriter(16);
  node.extras = times.u32(seconds).u32(seconds).u32(seconds).u32(seconds).done();
}

function putInChunk(message: HeaderMessage, block: ContinuationBlock | null): void {
  message.block = block;
  if (block) block.messages.add(message);
  else message.owner.firstChunk.add(message);
}
