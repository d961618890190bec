// Objects of a file in memory: their header messages, and which messages hold the addresses of which objects. Addresses are
// assigned when a commit is planned; messages that hold them are patched then, as a linker patches relocatable code.

import { formatError } from '../../base/errors.ts';
import { readUint32 } from '../../dtype/heap-ids.ts';
import { Cursor } from '../format/cursor.ts';
import { GROUP_INFO, isNamed, type LinkTarget, parseLink } from '../messages/link.ts';
import * as MESSAGE from '../messages/message-types.ts';
import type { RawMessage } from '../read/object-header.ts';

/** An attribute of datasets whose references may lead to where objects were: such data is published, and binds no object. */
export const DERIVED = '_view';

/** Objects that no commit was planned for yet have temporary addresses, from here on: no file is that long. */
export const TEMPORARY = 2 ** 52;
let nextTemporary = 0;

/** Whether an address is a temporary one, which no file contains. */
export function isTemporary(address: number): boolean {
  return address >= TEMPORARY;
}

/** Something in the file whose address header messages hold. */
export interface Addressable {
  /** Its address, as assigned by the last commit that was planned for it; temporary or UNDEFINED before that. */
  address: number;
  /** Messages that hold the address; they are written again when it changes. */
  readonly referrers: Set<HeaderMessage>;
}

/**
 * Raw bytes that the next commit appends: data, or an index whose bytes depend on the addresses of other extents. Therefore
 * `parts` is called after all addresses were assigned; a commit that is planned again assigns another address.
 */
export class FileExtent implements Addressable {
  address = -1;
  readonly referrers = new Set<HeaderMessage>();
  readonly size: number;
  readonly parts: () => readonly Uint8Array[];

  constructor(size: number, parts: () => readonly Uint8Array[]) {
    this.size = size;
    this.parts = parts;
  }
}

/** Position in some bytes of the address of an object or an extent. */
export interface AddressSlot {
  readonly at: number;
  readonly target: Addressable;
}

/** Position in some bytes of a global heap id (12 bytes: collection, index), and the heap object it stands for. */
export interface HeapSlot {
  readonly at: number;
  readonly content: Relocatable;
}

/** Bytes that hold addresses, which are patched whenever a commit assigns new ones. */
export interface Relocatable {
  bytes: Uint8Array;
  /** The bytes belong to this alone and may be patched; false for bytes of a cached page of the file. */
  owned: boolean;
  readonly targets: readonly AddressSlot[];
  readonly heap: readonly HeapSlot[];
}

const NONE: readonly never[] = [];
const NO_BYTES = new Uint8Array(0);

/** So often unparsed links are searched for one; whoever wants more of them has all parsed, or each would cost a look at all. */
const FEW_SEARCHES = 16;

/** One message of an object's header: its bytes, the addresses in them, and the header chunk that holds it. */
export class HeaderMessage implements Relocatable {
  readonly type: number;
  flags: number;
  /** Creation order of an attribute; 0 for everything else. */
  order: number;
  readonly owner: ObjectNode;
  bytes: Uint8Array;
  /** What a shared message says, of which `bytes` only hold the address; otherwise the same as `bytes`. */
  content: Uint8Array;
  /** File offset of the content, for error messages; 0 for new messages. */
  offset = 0;
  targets: readonly AddressSlot[] = NONE;
  heap: readonly HeapSlot[] = NONE;
  /** The continuation block that holds it; null for the first chunk, which is written with every change of the object. */
  block: ContinuationBlock | null = null;
  /** Number of the commit in which it last changed; what changed lately stays in the first chunk. */
  changed = 0;
  /** Its heap objects are not in the file yet. */
  heapPending = false;
  /** It keeps the addresses it has when its targets move: REFERENCE_LIST of a dimension scale, until the file is closed. */
  lags = false;
  /** Of an attribute in dense storage, the address; -1 for messages in the header, and while it has to be written there. */
  denseAddress = -1;

  owned: boolean;

  constructor(owner: ObjectNode, type: number, flags: number, order: number, bytes: Uint8Array, owned: boolean) {
    this.owned = owned;
    this.owner = owner;
    this.type = type;
    this.flags = flags;
    this.order = order;
    this.bytes = bytes;
    this.content = bytes;
  }
}

/** Visits every object and extent that some bytes point to, also from inside the heap. */
export function visitTargets(item: Relocatable, visit: (target: Addressable) => void): void {
  for (const slot of item.targets) visit(slot.target);
  for (const slot of item.heap) visitTargets(slot.content, visit);
}

export interface Link {
  readonly name: string;
  readonly order: number;
  /** Of a hard link, the address at which the object was when the link was loaded; once loaded, `node` is current. */
  readonly target: LinkTarget;
  node: ObjectNode | null;
  message: HeaderMessage;
}

/** Links of a group that were not read: where they are, and names that were looked for in vain. */
interface UnreadLinks {
  readonly kind: 'table' | 'dense';
  /** B-tree of the names, and the heap that they are in. */
  readonly names: number;
  readonly heap: number;
  readonly absent: Set<string>;
}

export interface Attribute {
  readonly name: string;
  order: number;
  readonly message: HeaderMessage;
  /** Encoded type and dataspace when they are shared and the message only points to them. */
  readonly sharedType: Uint8Array | null;
  readonly sharedSpace: Uint8Array | null;
  /** The committed datatype it uses, known once the file is open for writing. */
  committed: ObjectNode | null;
}

/** Whether creation order is tracked and indexed, and the next number of it. */
interface Ordering {
  tracked: boolean;
  indexed: boolean;
  next: number;
}

/** Dense storage, which holds all attributes of an object if one of them does not fit into a header. */
interface DenseAttributes {
  /** The attribute info message, which has the addresses. */
  info: Uint8Array;
  /** The file holds the storage as it is here. */
  written: boolean;
}

/**
 * A header that is encoded as a whole, but for one address, ids of heap objects and the checksum: of an object whose messages hardly
 * anybody asks for.
 */
export interface PreparedHeader extends Relocatable {
  /** Texts of attributes. */
  readonly heap: readonly HeapSlot[];
  /** The data, and where its address is in the bytes; null: the address is there already. */
  readonly extent: FileExtent | null;
  readonly addressAt: number;
  /** Where the address of the header itself is in the bytes; 0: nowhere. */
  readonly ownAddressAt: number;
  /** A commit was planned for it, which has given it the ids of its heap objects. */
  planned: boolean;
}

export type ObjectKind = 'group' | 'dataset' | 'datatype';

/** An object of the file: its header's messages, sorted into links, attributes and others. */
export class ObjectNode implements Addressable {
  address: number;
  readonly kind: ObjectKind;
  /** Version 2 flags of the header (bits 2 to 5), and the times and phase change values that they announce. */
  flags: number;
  extras: Uint8Array;
  /** Number of hard links, as libhdf5 counts them. */
  linkCount: number;
  #links: Map<string, Link> | null = null;
  /** Hard links of a file that is only read, which are parsed when somebody asks for them. */
  unparsed: readonly RawMessage[] | null = null;
  #searches = 0;
  /** null: `links` are all that there are. */
  unread: UnreadLinks | null = null;
  #attributes: Map<string, Attribute> | null = null;
  #otherMessages: HeaderMessage[] | null = null;
  /** Its header, until somebody asks for its messages. */
  prepared: PreparedHeader | null = null;
  #deferred: (() => void)[] | null = null;
  readonly linkOrder: Ordering = { tracked: true, indexed: true, next: 0 };
  readonly attributeOrder: Ordering = { tracked: true, indexed: true, next: 0 };
  /** The group info message: after how many links libhdf5 changes to dense storage, and how long it expects names to be. */
  groupInfo: Uint8Array = GROUP_INFO;
  #firstChunk: Set<HeaderMessage> | null = null;
  /** Continuation blocks that the first chunk points to. */
  blocks: ContinuationBlock[] = [];
  readonly referrers = new Set<HeaderMessage>();
  /** Differs from the file. */
  dirty = false;
  /** It is no copy, although it says that it is elsewhere: the next commit that writes it says where it is then. */
  declare isClaimed?: boolean;
  /** Its header has gaps, which h5log never leaves: another program has changed it in place. */
  declare hasGaps?: boolean;
  /** The address at which it was loaded; that of a new object is temporary. */
  readonly origin: number;
  /** Its messages know what they point to: new ones, and those of objects that change. */
  tracked: boolean;
  /** `referrers` are all that hold its address, and so it is with the objects that hold it. */
  settled: boolean;
  /** Where attributes are if one of them is too large for a header; null if they are in the header. */
  dense: DenseAttributes | null = null;

  constructor(kind: ObjectKind, address = TEMPORARY + nextTemporary++) {
    this.kind = kind;
    this.address = address;
    this.origin = address;
    this.tracked = this.settled = isTemporary(address);
    this.flags = 0x0c; // attribute creation order tracked and indexed
    this.extras = NO_BYTES;
    this.linkCount = 0;
  }

  get links(): Map<string, Link> {
    if (!import.meta.page && this.unparsed) {
      this.#links = parsedLinks(this, this.unparsed, this.#links);
      this.unparsed = null;
    }
    this.#links ??= new Map();
    return this.#links;
  }

  set links(links: Map<string, Link>) {
    this.#links = links;
  }

  /** One link, for which the others are not parsed. */
  link(name: string): Link | undefined {
    let link = this.#links?.get(name);
    if (!import.meta.page && !link && this.unparsed) {
      // A name in another encoding has such characters in place of its own.
      if (name.includes('\ufffd') || this.#searches++ >= FEW_SEARCHES) return this.links.get(name);
      link = linkNamed(this, this.unparsed, name);
      this.#links ??= new Map();
      if (link) this.#links.set(name, link);
    }
    return link;
  }

  /** Messages in the first chunk of the header. */
  get firstChunk(): Set<HeaderMessage> {
    this.#firstChunk ??= new Set();
    return this.#firstChunk;
  }

  set firstChunk(messages: Set<HeaderMessage>) {
    this.#firstChunk = messages;
  }

  get attributes(): Map<string, Attribute> {
    if (this.#deferred) this.#addDeferred();
    this.#attributes ??= new Map();
    return this.#attributes;
  }

  /** Dataspace, datatype, layout and every other message that is neither a link nor an attribute, of known types or not. */
  get otherMessages(): HeaderMessage[] {
    if (this.#deferred) this.#addDeferred();
    this.#otherMessages ??= [];
    return this.#otherMessages;
  }

  /**
   * Adds attributes or messages when they are first asked for. A rank that never writes the structure creates hundreds of datasets
   * whose messages nobody reads.
   */
  defer(add: () => void): void {
    if (this.#deferred) this.#deferred.push(add);
    else this.#deferred = [add];
  }

  #addDeferred(): void {
    const deferred = this.#deferred ?? [];
    this.#deferred = null;
    this.prepared = null;
    for (const add of deferred) add();
  }

  /** The first message of a type among those that are neither links nor attributes. */
  message(type: number): HeaderMessage | undefined {
    return this.otherMessages.find((message) => message.type === type);
  }
}

/** All of some links in the order in which they are listed; those that are known already stay what they are. */
function parsedLinks(
  owner: ObjectNode,
  unparsed: readonly RawMessage[],
  known: ReadonlyMap<string, Link> | null,
): Map<string, Link> {
  const links = new Map<string, Link>();
  for (const raw of unparsed) {
    const link = parsedLink(owner, raw);
    if (links.has(link.name)) throw formatError(`two links named ${link.name}`, raw.offset);
    links.set(link.name, known?.get(link.name) ?? link);
  }
  sortMap(links, owner.linkOrder.tracked);
  return links;
}

function linkNamed(owner: ObjectNode, unparsed: readonly RawMessage[], name: string): Link | undefined {
  const bytes = new TextEncoder().encode(name);
  const found = unparsed.find(({ body }) => isNamed(body, bytes));
  const link = found && parsedLink(owner, found);
  return link?.name === name ? link : undefined;
}

function parsedLink(owner: ObjectNode, { type, flags, order: messageOrder, body, offset }: RawMessage): Link {
  const { name, order, target } = parseLink(new Cursor(body, offset), 8);
  if (order >= Number.MAX_SAFE_INTEGER) throw formatError(`link ${name} with creation order ${order}`, offset);
  const message = new HeaderMessage(owner, type, flags, messageOrder, body, false);
  message.offset = offset;
  return { name, order, target, node: null, message };
}

/** Sorts links or attributes as libhdf5 lists them: dense storage is sorted by hashes, and changed messages come first. */
export function sortMap<V extends { readonly name: string; readonly order: number }>(
  map: Map<string, V>,
  byCreation: boolean,
): void {
  const before = byCreation ? (a: V, b: V) => a.order - b.order : (a: V, b: V) => compareNames(a.name, b.name);
  const sorted = [...map.values()].sort(before);
  map.clear();
  for (const item of sorted) map.set(item.name, item);
}

/** Compares names in the order of their UTF-8 bytes, which is that of code points; in UTF-16, surrogates would come too early. */
function compareNames(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return x >= 0xd800 && y >= 0xd800 ? ((x + 0x2000) & 0xffff) - ((y + 0x2000) & 0xffff) : x - y;
  }
  return a.length - b.length;
}

/** Types of messages that are encoded from the node's fields whenever it is written. */
export const GENERATED: ReadonlySet<number> = new Set([
  MESSAGE.linkInfo,
  MESSAGE.groupInfo,
  MESSAGE.attributeInfo,
  MESSAGE.referenceCount,
  MESSAGE.symbolTable,
]);

/** A continuation block of a header: messages, or pointers to further blocks, or (in files of other programs) both. */
export class ContinuationBlock {
  address = -1;
  size = 0;
  /** The file holds it as it is here, at `address`. */
  written = false;
  parent: ContinuationBlock | null = null;
  readonly messages = new Set<HeaderMessage>();
  children: ContinuationBlock[] = [];
  /** 0 for blocks of messages, else one more than its children. */
  level = 0;
}

/**
 * Takes a message that is about to change out of its block, which is then written again without it, into the first chunk. From there
 * the next commit takes attributes into dense storage if there is one.
 */
export function moveToFirstChunk(message: HeaderMessage): void {
  const { block, owner } = message;
  message.block = null;
  owner.firstChunk.add(message);
  takeOut(message, block);
}

/** Takes a message out of the header for good. */
export function removeMessage(message: HeaderMessage): void {
  const { block, owner } = message;
  message.block = null;
  // Not by way of the first chunk: what is added to a set and removed again stays in it as a gap.
  owner.firstChunk.delete(message);
  takeOut(message, block);
}

function takeOut(message: HeaderMessage, block: ContinuationBlock | null): void {
  const { dense } = message.owner;
  message.denseAddress = -1;
  if (dense && message.type === MESSAGE.attribute) dense.written = false;
  if (!block) return;
  block.messages.delete(message);
  markUnwritten(block);
}

/** The block changes: it and those that lead to it have to be written again. */
export function markUnwritten(block: ContinuationBlock): void {
  for (let b: ContinuationBlock | null = block; b?.written; b = b.parent) b.written = false;
}

// ------------------------------------------------------------------ where an object says that it is

// Whoever copies an object copies that as well, so that copies can be told from originals.

/** An attribute with the address of the header that it is in: one int64. */
export const OWN_ADDRESS = '_at';
/** Where the address is in its message, as h5log writes it: at the end. */
export const OWN_ADDRESS_AT = 37;

/** Whether an object says that it is where it is; undefined: it says nothing. */
export function isAtHome(node: ObjectNode): boolean | undefined {
  const stated = statedAddress(node);
  return stated === undefined ? undefined : stated === node.address || !!node.isClaimed;
}

/** Where an object says that it is; NaN: not as h5log writes it. */
export function statedAddress({ attributes }: ObjectNode): number | undefined {
  const content = attributes.get(OWN_ADDRESS)?.message.content;
  if (!content) return undefined;
  if (content.length !== OWN_ADDRESS_AT + 8) return NaN;
  return readUint32(content, OWN_ADDRESS_AT) + readUint32(content, OWN_ADDRESS_AT + 4) * 2 ** 32;
}

/** Whether an object says that it is elsewhere: it is a copy, or a program that does not know what it says has moved it. */
export function isStray(node: ObjectNode): boolean {
  return isAtHome(node) === false;
}

/** Whether an object comes before another one that has the same number: it has it, and the other is a copy. */
export function comesFirst(node: ObjectNode, other: ObjectNode | undefined): boolean {
  const isHome = isAtHome(node) === true;
  return !other || (isHome === (isAtHome(other) === true) ? node.origin < other.origin : isHome);
}
