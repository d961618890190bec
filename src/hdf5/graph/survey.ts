// Who holds the addresses of which objects, found in one walk over a file: numbers in flat lists, some tens of bytes an object. A
// writer needs to know when an object moves. The objects themselves are loaded when a change touches them.

import { lookup3 } from '../../base/checksum.ts';
import { atOffset, formatError } from '../../base/errors.ts';
import { containsReference } from '../../dtype/describe.ts';
import type { Io } from '../../storage/io.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import { Budget } from '../format/file-bytes.ts';
import type { GlobalHeap } from '../format/global-heap.ts';
import { attributeMayRefer } from '../messages/attribute.ts';
import { mayRefer } from '../messages/datatype.ts';
import { hardLinkAddress, type LinkTarget, parseLink } from '../messages/link.ts';
import * as MESSAGE_FLAG from '../messages/message-flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { readHeader } from '../read/object-header.ts';
import { readSymbolTable } from '../read/symbol-table.ts';
import { datasetParts } from './dataset-header.ts';
import { addressOf, type ObjectLoader } from './object-loader.ts';
import type { ObjectNode } from './object-node.ts';
import { type Pointing, trackLink, trackMessages } from './references.ts';

/** The objects of a file by their addresses, each with those that hold its address. */
export class Survey {
  /** Objects that cannot move, because their addresses are where nothing is ever written again. */
  readonly fixed = new Set<number>();
  /** Datasets whose elements may refer to objects. */
  readonly referring: number[] = [];
  /** Whether there are dimension scales, and datasets that they are attached to. */
  hasScales = false;
  /** Every object, with the last pair of a link that holds its address. */
  readonly #linked = new AddressMap();
  /** Addresses that other messages hold, of an object or not, with the last pair of one that does. */
  readonly #pointed = new Map<number, number>();
  // Pairs of an address and its holder, chained by address: the holder, and the pair before.
  #holders = new Float64Array(1024);
  #before = new Int32Array(1024);
  #count = 0;

  has(address: number): boolean {
    return this.#linked.has(address);
  }

  /** The objects in the order in which they were found; more may be found meanwhile. */
  *addresses(): Generator<number, void> {
    for (let i = 0; i < this.#linked.size; i++) yield this.#linked.key(i);
  }

  addObject(address: number): void {
    if (!this.#linked.has(address)) this.#linked.set(address, -1);
  }

  addLink(target: number, holder: number): void {
    this.#linked.set(target, this.#chain(this.#linked.get(target), holder));
  }

  addPointer(target: number, holder: number): void {
    this.#pointed.set(target, this.#chain(this.#pointed.get(target) ?? -1, holder));
  }

  #chain(before: number, holder: number): number {
    const at = this.#count++;
    if (at === this.#holders.length) {
      const holders = new Float64Array(2 * at);
      const chain = new Int32Array(2 * at);
      holders.set(this.#holders);
      chain.set(this.#before);
      this.#holders = holders;
      this.#before = chain;
    }
    this.#holders[at] = holder;
    this.#before[at] = before;
    return at;
  }

  /** The objects that hold an address, and how many links of each do. */
  holdersOf(target: number): Map<number, number> {
    const holders = new Map<number, number>();
    for (let at = this.#linked.get(target); at >= 0; at = this.#before[at] as number) {
      const holder = this.#holders[at] as number;
      holders.set(holder, (holders.get(holder) ?? 0) + 1);
    }
    for (let at = this.#pointed.get(target) ?? -1; at >= 0; at = this.#before[at] as number) {
      const holder = this.#holders[at] as number;
      if (!holders.has(holder)) holders.set(holder, 0);
    }
    return holders;
  }

  /** Whether one link leads to each object, and nothing else holds addresses of objects. */
  get isTree(): boolean {
    return this.#count === this.#linked.size - 1 && this.#pointed.size + this.fixed.size + this.referring.length === 0;
  }

  /** The number of links to an object. */
  linksTo(target: number): number {
    let count = 0;
    for (let at = this.#linked.get(target); at >= 0; at = this.#before[at] as number) count++;
    return count;
  }
}

/** Numbers by addresses, in the order in which the addresses were added: a third of the time and the memory of a Map. */
class AddressMap {
  #keys = new Float64Array(4096);
  #values = new Int32Array(4096);
  /** Places of keys plus 1, by their hashes; 0 is free. At least half are. */
  #table = new Int32Array(2 * 4096);
  size = 0;

  key(i: number): number {
    return this.#keys[i] as number;
  }

  has(key: number): boolean {
    return this.#table[this.#slot(key)] !== 0;
  }

  /** -1 for an address that was not added. */
  get(key: number): number {
    const place = this.#table[this.#slot(key)] as number;
    return place === 0 ? -1 : (this.#values[place - 1] as number);
  }

  set(key: number, value: number): void {
    const slot = this.#slot(key);
    const place = this.#table[slot] as number;
    if (place > 0) {
      this.#values[place - 1] = value;
      return;
    }
    this.#keys[this.size] = key;
    this.#values[this.size] = value;
    this.#table[slot] = ++this.size;
    if (this.size === this.#keys.length) this.#grow();
  }

  /** Where a key is in the table, or the free place where it belongs. */
  #slot(key: number): number {
    const table = this.#table;
    const mask = table.length - 1;
    // Addresses are multiples of small numbers, and may need more than 32 bits.
    let slot = (Math.imul((key ^ (key / 2 ** 32)) | 0, 0x9e3779b1) >>> 8) & mask;
    for (let place = table[slot] as number; place > 0; place = table[slot] as number) {
      if (this.#keys[place - 1] === key) return slot;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const room = 4 * this.size;
    const keys = new Float64Array(room);
    const values = new Int32Array(room);
    keys.set(this.#keys);
    values.set(this.#values);
    this.#keys = keys;
    this.#values = values;
    this.#table = new Int32Array(2 * room);
    for (let i = 0; i < this.size; i++) this.#table[this.#slot(keys[i] as number)] = i + 1;
  }
}

/** Walks over every object that can be reached from the root, or whose type another one uses. */
export function* surveyFile(loader: ObjectLoader, root: ObjectNode, heap: GlobalHeap): Io<Survey> {
  const { file } = loader;
  const found = new Survey();
  const budget = new Budget(file);
  const contentOf = heap.contents();
  let behind = -1;
  let ahead = 0;
  file.overlapping = (yield { op: 'overlaps' }) === 1;
  found.addObject(root.address);
  for (const address of found.addresses()) {
    const known = loader.nodes.get(address);
    if (!known && isPlainInPage(address)) continue;
    if (!import.meta.page && !known && !file.cached(address, 1)) yield* readAhead(address);
    try {
      if (known) yield* lookInside(known);
      else yield* lookAt(address);
    } catch (error) {
      throw atOffset(error, file.base + address);
    }
  }
  return found;

  /** Objects of a large file mostly lie one behind the other: whoever reads them gets more and more pages at once, as from a kernel. */
  function* readAhead(address: number): Io<void> {
    const start = file.pageStart(address);
    ahead = start === behind ? Math.min(2 * ahead, MOST_AHEAD) : FIRST_AHEAD;
    behind = start + ahead;
    yield* file.together([{ address: start, length: ahead }]);
  }

  /** Most objects of a large file take one look into a page that is in memory. */
  function isPlainInPage(address: number): boolean {
    const page = file.cached(address, Math.min(HEADER_BYTES, file.end - address));
    const size = !import.meta.page && page ? plainDatasetSize(page, address - file.pageStart(address)) : 0;
    if (size > 0) budget.spend(size, address, 'object headers');
    return size > 0;
  }

  function* lookAt(holder: number): Io<void> {
    const { messages } = yield* readHeader(file, holder, budget);
    if (!messages.every(({ type, flags, body }) => isPlain(type, flags, body, 0, body.length))) {
      yield* lookInside(yield* loader.glimpse(holder));
      return;
    }
    for (const { type, body, offset } of messages) {
      if (type === MESSAGE.link) {
        const address = hardLinkAddress(body) ?? addressIn(parseLink(new Cursor(body, offset), file.addressSize));
        if (address !== null) addLink(holder, address);
      } else if (type === MESSAGE.symbolTable) {
        const cursor = new Cursor(body, offset);
        const [names, texts] = [cursor.address(file.addressSize), cursor.address(file.addressSize)];
        for (const link of yield* readSymbolTable(file, names, texts, budget)) {
          const address = addressIn(link);
          if (address !== null) addLink(holder, address);
        }
      }
    }
  }

  function* lookInside(node: ObjectNode): Io<void> {
    for (const link of node.links.values()) {
      const address = addressIn(link);
      if (address !== null) addLink(node.address, address);
    }
    for (const name of node.attributes.keys())
      if (name.endsWith('DIMENSION_LIST') || name.endsWith('REFERENCE_LIST')) found.hasScales = true;
    const targetOf: Pointing['targetOf'] = (address, fixed) => {
      if (fixed) found.fixed.add(address);
      else found.addPointer(address, node.address);
      // A committed datatype that no link leads to any more was loaded because of the object that uses it.
      if (loader.nodes.has(address)) found.addObject(address);
      return undefined;
    };
    yield* trackMessages({ loader, heap, contentOf, targetOf }, node);
    if (node.kind === 'dataset' && containsReference(datasetParts(node, file).dtype))
      found.referring.push(node.address);
  }

  function addLink(holder: number, target: number): void {
    if (target === UNDEFINED) throw formatError('a link that leads to no object');
    found.addLink(target, holder);
  }
}

function addressIn({ target }: { readonly target: LinkTarget }): number | null {
  return target.kind === 'hard' ? target.address : null;
}

/** Whether a message holds the address of no object, but for links in the header; false if that takes a closer look. */
function isPlain(type: number, flags: number, bytes: Uint8Array, from: number, to: number): boolean {
  if (flags & MESSAGE_FLAG.shared) return false;
  switch (type) {
    case MESSAGE.datatype:
      return !mayRefer(bytes, from, to);
    case MESSAGE.attribute:
      return !attributeMayRefer(bytes, from, to);
    case MESSAGE.attributeInfo:
      return isUndefined(bytes, from + ((bytes[from + 1] as number) & 1 ? 4 : 2), to);
    case MESSAGE.linkInfo:
      return isUndefined(bytes, from + ((bytes[from + 1] as number) & 1 ? 10 : 2), to);
    default:
      return MESSAGE.isKnownMessage(type);
  }
}

/** Whether an address of 8 bytes is the undefined one: there is no dense storage. */
function isUndefined(bytes: Uint8Array, at: number, to: number): boolean {
  for (let i = at; i < at + 8; i++) if (i >= to || bytes[i] !== 0xff) return false;
  return true;
}

/** Bytes that are read at once: at first, and where all before them were needed. */
const FIRST_AHEAD = 64 * 1024;
const MOST_AHEAD = 2 ** 20;
/** Bytes of a header that are looked at in place: most headers of datasets are shorter. */
const HEADER_BYTES = 1024;
/** Bytes before the messages of a version 1 header. */
const PREFIX_1 = 16;

/** The size of the header there, if it is that of a dataset or a datatype in one piece whose messages are plain; else 0. */
function plainDatasetSize(bytes: Uint8Array, start: number): number {
  if (start + PREFIX_1 > bytes.length) return 0;
  const isOld = bytes[start] === 1;
  if (!isOld && !(bytes[start] === 0x4f && bytes[start + 1] === 0x48 && bytes[start + 4] === 2)) return 0;
  const flags = isOld ? 0 : (bytes[start + 5] as number);
  let at = start + (isOld ? 8 : 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0));
  let size = 0;
  const sizeBytes = isOld ? 4 : 1 << (flags & 3);
  if (at + sizeBytes > bytes.length || sizeBytes > 4) return 0;
  for (let i = sizeBytes - 1; i >= 0; i--) size = size * 256 + (bytes[at + i] as number);
  at = isOld ? start + PREFIX_1 : at + sizeBytes;
  const stop = at + size;
  if (stop + 4 > bytes.length) return 0;
  const head = isOld ? 8 : flags & 4 ? 6 : 4;
  let hasType = false;
  while (at + head <= stop) {
    const type = (bytes[at] as number) | (isOld ? (bytes[at + 1] as number) << 8 : 0);
    const sizeAt = at + (isOld ? 2 : 1);
    const from = at + head;
    at = from + ((bytes[sizeAt] as number) | ((bytes[sizeAt + 1] as number) << 8));
    if (at > stop || type === MESSAGE.continuation || type === MESSAGE.linkInfo || type === MESSAGE.symbolTable)
      return 0;
    if (!isPlain(type, bytes[sizeAt + 2] as number, bytes, from, at)) return 0;
    if (type === MESSAGE.datatype) hasType = true;
  }
  if (!hasType) return 0;
  if (isOld) return stop - start;
  // A wrong checksum is reported by whoever takes the closer look.
  return new Cursor(bytes, 0, stop).u32() === lookup3(bytes, start, stop) ? stop + 4 - start : 0;
}

/** Loads what a change touches: whoever holds the address of an object that moves. */
export class Referrers {
  /** null: not needed yet. */
  #survey: Survey | null;
  readonly #find: () => Io<Survey>;
  readonly #loader: ObjectLoader;
  readonly #root: ObjectNode;
  readonly #heap: GlobalHeap;

  /**
   * Of a file that is known to be a tree, where one link leads to each object and nothing else does, `survey` is null: `find` makes it,
   * of the file as it was opened, if it is needed after all.
   */
  constructor(
    survey: Survey | null,
    find: () => Io<Survey>,
    { loader, root, heap }: { loader: ObjectLoader; root: ObjectNode; heap: GlobalHeap },
  ) {
    this.#survey = survey;
    this.#find = find;
    this.#loader = loader;
    this.#root = root;
    this.#heap = heap;
    loader.onLoad = (node) => {
      // A count that is too low would let an object be removed while links still lead to it. The superblock counts as a link.
      const links = survey ? survey.linksTo(node.origin) + (node === root ? 1 : 0) : 1;
      node.linkCount = Math.max(node.linkCount, links);
    };
    loader.onFollow = (link) => trackLink(link, loader.file.addressSize);
    for (const node of loader.nodes.values()) {
      loader.onLoad(node);
      for (const link of node.links.values()) loader.onFollow(link);
    }
  }

  /** Every object of the file as it was opened. */
  *survey(): Io<Survey> {
    this.#survey ??= yield* this.#find();
    return this.#survey;
  }

  /** Whether there was an object when the file was opened. Nothing in a tree leads to one that is not loaded. */
  has(address: number): boolean {
    return this.#survey?.has(address) ?? this.#loader.nodes.has(address);
  }

  get hasScales(): boolean {
    return this.#survey?.hasScales ?? false;
  }

  /** Before an object changes or moves: loads everything that would move with it, and finds out what its messages point to. */
  *settle(first: ObjectNode): Io<void> {
    const waiting = [first];
    for (let node = waiting.pop(); node; node = waiting.pop()) {
      if (node.settled) continue;
      yield* this.#track(node);
      yield* this.#findReferrers(node);
      node.settled = true;
      for (const { owner, lags } of node.referrers) if (!lags) waiting.push(owner);
    }
  }

  /** Loads all objects: for tools, and where nothing can be loaded later without waiting. */
  *settleAll(): Io<void> {
    const loader = this.#loader;
    for (const address of (yield* this.survey()).addresses()) {
      const node = yield* loader.node(address);
      for (const link of node.links.values()) yield* loader.follow(link);
    }
    for (const node of [...loader.nodes.values()]) yield* this.settle(node);
  }

  *#findReferrers(node: ObjectNode): Io<void> {
    // The one link of an object in a tree is known from the way to it. Another program may have made a second one where something else
    // had been, which leaves the length of the file as it was: but it counts the links of each object. It may have made a reference to it
    // as well, and then what it took away is often missing here, or in a group above.
    const isReached = node === this.#root || [...node.referrers].some(({ type }) => type === MESSAGE.link);
    const isOurs = node.linkCount <= 1 && (import.meta.page || !node.hasGaps);
    const survey = this.#survey ?? (isReached && isOurs ? null : yield* this.survey());
    for (const [address, links] of survey?.holdersOf(node.origin) ?? []) {
      const holder = yield* this.#loader.node(address);
      if (holder.linkCount === 0) continue; // it was removed since
      yield* this.#track(holder);
      let missing = links;
      // Links that were made since are none of those.
      for (const { owner, type, offset } of node.referrers)
        if (owner === holder && type === MESSAGE.link && offset > 0) missing--;
      if (missing <= 0) continue;
      for (const link of holder.links.values())
        if (!link.node && addressOf(link) === node.origin) yield* this.#loader.follow(link);
    }
  }

  /** Finds out what the messages of an object point to, and loads that. Once: from then on whoever changes a message sees to it. */
  *#track(node: ObjectNode): Io<void> {
    if (node.tracked) return;
    const loader = this.#loader;
    const pointing = { loader, heap: this.#heap, contentOf: this.#heap.contents() };
    const wanted = new Set<number>();
    const collect = (address: number): undefined => {
      if (this.has(address)) wanted.add(address);
    };
    yield* trackMessages({ ...pointing, targetOf: collect }, node);
    for (const address of wanted) yield* loader.node(address);
    // Another call may have been faster.
    if (node.tracked) return;
    node.tracked = true;
    if (wanted.size > 0) yield* trackMessages({ ...pointing, targetOf: (address) => loader.nodes.get(address) }, node);
  }
}
