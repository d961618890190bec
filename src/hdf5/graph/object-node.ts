import { GROUP_INFO, type LinkTarget } from '../messages/link.ts';
import { MESSAGE } from '../messages/message-types.ts';

/** Objects that are not in the file yet have addresses from here on, so that references to them can be told apart. */
export const PROVISIONAL = 2 ** 52;
let nextProvisional = 0;

/** Something in the file that others point to. */
export interface Addressable {
  /** Where it is, or will be once the running commit has succeeded; provisional (or -1) until it is first planned. */
  address: number;
  /** Messages that hold its address. */
  readonly referrers: Set<HeaderMessage>;
}

/**
 * Raw bytes that are appended with the next commit: data, or an index whose bytes depend on where other extents are. They are
 * asked for when all places are known; after a failed commit they are placed anew.
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

/** A place in some bytes that holds the address of an object or an extent. */
export interface AddressSlot {
  readonly at: number;
  readonly node: Addressable;
}

/** A place that holds a heap id (12 bytes: collection, index), and what lies in the heap. */
export interface HeapSlot {
  readonly at: number;
  readonly content: Relocatable;
}

/** Bytes that have to be patched whenever something they point to gets a new address. */
export interface Relocatable {
  bytes: Uint8Array;
  /** The bytes are nobody else's and may be patched; those of a page of the file may not. */
  owned: boolean;
  readonly targets: readonly AddressSlot[];
  readonly heap: readonly HeapSlot[];
}

const NONE: readonly never[] = [];

/** One message of an object's header, together with where it is kept and what it points to. */
export class HeaderMessage implements Relocatable {
  readonly type: number;
  flags: number;
  /** Creation order of an attribute; 0 for everything else. */
  order: number;
  readonly owner: ObjectNode;
  bytes: Uint8Array;
  /** What the message says when it is shared and `bytes` only point to it. */
  content: Uint8Array;
  /** Where the content lies in the file, for messages about damage; 0 for what is new. */
  offset = 0;
  targets: readonly AddressSlot[] = NONE;
  heap: readonly HeapSlot[] = NONE;
  /** The continuation block it lies in; null: the first chunk, which is written anew with every change of the object. */
  block: ContinuationBlock | null = null;
  /** The commit in which it last changed; decides what stays in the first chunk. */
  changed = 0;
  /** Its heap contents are not in the file yet. */
  heapPending = false;

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

/** Visits every object that some bytes point to, also from inside the heap. */
export function visitTargets(item: Relocatable, visit: (node: Addressable) => void): void {
  for (const slot of item.targets) visit(slot.node);
  for (const slot of item.heap) visitTargets(slot.content, visit);
}

export interface Link {
  readonly name: string;
  readonly order: number;
  /** A hard link's address is that of the object when it was loaded; `node` is the truth once known. */
  readonly target: LinkTarget;
  node: ObjectNode | null;
  message: HeaderMessage;
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

/** Whether and how far creation order is kept. */
export interface Ordering {
  tracked: boolean;
  indexed: boolean;
  next: number;
}

export type ObjectKind = 'group' | 'dataset' | 'datatype';

/** An object of the file in memory: its header's messages, sorted into links, attributes and the rest. */
export class ObjectNode implements Addressable {
  address: number;
  readonly kind: ObjectKind;
  /** Version 2 flags of the header (bits 2 to 5) with the times and phase change values that they announce. */
  flags: number;
  extras: Uint8Array;
  /** Number of hard links, as libhdf5 counts them. */
  linkCount: number;
  readonly links = new Map<string, Link>();
  readonly #attributes = new Map<string, Attribute>();
  readonly #otherMessages: HeaderMessage[] = [];
  #deferred: (() => void)[] | null = null;
  readonly linkOrder: Ordering = { tracked: true, indexed: true, next: 0 };
  readonly attributeOrder: Ordering = { tracked: true, indexed: true, next: 0 };
  /** How many links a group of libhdf5's is meant to keep in its header, and how long names are. */
  groupInfo: Uint8Array = GROUP_INFO;
  /** Messages in the first chunk. */
  firstChunk = new Set<HeaderMessage>();
  /** Continuation blocks that the first chunk points to. */
  blocks: ContinuationBlock[] = [];
  readonly referrers = new Set<HeaderMessage>();
  /** Differs from what the file holds. */
  dirty = false;
  /** Attributes too large for a header stay in the heap they are in; the object then cannot change its attributes. */
  denseAttributeInfo: HeaderMessage | null = null;

  constructor(kind: ObjectKind, address = PROVISIONAL + nextProvisional++) {
    this.kind = kind;
    this.address = address;
    this.flags = 0x0c; // attribute creation order tracked and indexed
    this.extras = new Uint8Array(0);
    this.linkCount = 0;
  }

  get attributes(): Map<string, Attribute> {
    if (this.#deferred) this.#addDeferred();
    return this.#attributes;
  }

  /** Dataspace, datatype, layout and whatever else the object has, known to us or not. */
  get otherMessages(): HeaderMessage[] {
    if (this.#deferred) this.#addDeferred();
    return this.#otherMessages;
  }

  /**
   * Adds attributes or messages when they are first asked for. A rank that never writes the structure creates hundreds of datasets
   * whose messages nobody looks at.
   */
  defer(add: () => void): void {
    if (this.#deferred) this.#deferred.push(add);
    else this.#deferred = [add];
  }

  #addDeferred(): void {
    const deferred = this.#deferred ?? [];
    this.#deferred = null;
    for (const add of deferred) add();
  }

  /** The message of a type among the rest. */
  message(type: number): HeaderMessage | undefined {
    return this.otherMessages.find((message) => message.type === type);
  }
}

/** Messages that are made anew from the node's fields whenever it is written. */
export const GENERATED: ReadonlySet<number> = new Set([
  MESSAGE.linkInfo,
  MESSAGE.groupInfo,
  MESSAGE.attributeInfo,
  MESSAGE.referenceCount,
  MESSAGE.symbolTable,
]);

/** A continuation block: messages, or pointers to further blocks, or (in files of others) both. */
export class ContinuationBlock {
  address = -1;
  size = 0;
  /** Lies in the file at `address` as it is here. */
  written = false;
  parent: ContinuationBlock | null = null;
  readonly messages = new Set<HeaderMessage>();
  children: ContinuationBlock[] = [];
  /** 0 for blocks of messages, else one more than its children. */
  level = 0;
}

/** The message is about to change: takes it out of its block, which must then be written again, into the first chunk. */
export function moveToFirstChunk(message: HeaderMessage): void {
  let block = message.block;
  message.block = null;
  message.owner.firstChunk.add(message);
  block?.messages.delete(message);
  for (; block?.written; block = block.parent) block.written = false;
}

/** Takes a message out of the header for good. */
export function removeMessage(message: HeaderMessage): void {
  moveToFirstChunk(message);
  message.owner.firstChunk.delete(message);
}
