import { formatError, H5LogError, isH5LogError, isUnreadable } from '../base/errors.ts';
import { decodeValues, type Resolver } from '../dtype/decode.ts';
import { containsReference } from '../dtype/describe.ts';
import { PENDING, readAddress, visitPointers } from '../dtype/heap-ids.ts';
import type { DType } from '../dtype/model.ts';
import { putU64 } from '../hdf5/format/byte-writer.ts';
import { GlobalHeap } from '../hdf5/format/global-heap.ts';
import { PendingHeap, pendingContents, takeContents } from '../hdf5/format/pending-heap.ts';
import { comesFirst, isStray, type ObjectNode } from '../hdf5/graph/object-node.ts';
import { withReferrers } from '../hdf5/graph/references.ts';
import { deleteAttribute } from '../hdf5/write/attributes.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { attemptIo, type Io } from '../storage/io.ts';
import { ID, NUMBER, NUMBERS } from './format/names.ts';
import { writeNumber, writeNumbers } from './format/new-anchor.ts';
import type { LogData } from './read/boxes.ts';
import type { LogStore } from './store.ts';

/** Stands for the address of a sequence of references that another program has written: what is in it are addresses. */
const FOREIGN = 2 ** 48 - 8;

/** The log that points. */
interface PointingLog {
  readonly structure: Structure;
  readonly main: LogStore;
  readonly stores: readonly LogStore[];
  readonly published: number | null;
  /** Finds out which objects have which numbers, where copies have the same. */
  owners(): Io<unknown>;
}

/** A dataset that is published, and the objects that its elements refer to, if they refer to any. */
interface NewReferences {
  readonly dataset: { readonly path: string };
  readonly targets?: readonly ObjectNode[];
}

/** What elements of logged datasets point to: contents in heaps, and objects. */
export class Pointers {
  readonly #log: PointingLog;
  /** Objects that posts refer to; null: there no longer. A reference that waits for a commit is PENDING plus the place in this list. */
  readonly #objects: (ObjectNode | null)[] = [];
  readonly #places = new Map<ObjectNode, number>();
  /** Those of them that had no number when they were first referred to, until a flush gives them one. */
  readonly #unnumbered = new Set<ObjectNode>();
  /** What stands for the objects that addresses in layouts lead to. */
  readonly #byAddress = new Map<number, number>([[0, 0]]);
  #heap: GlobalHeap | null = null;

  constructor(log: PointingLog) {
    this.#log = log;
  }

  /** The number that stands for a reference in posts. */
  refer(path: string): number {
    const { structure } = this.#log;
    const node = structure.now(structure.lookup(structure.root, structure.paths.stored(path)));
    if (!node) throw new H5LogError('NOT_FOUND', `a reference to ${path}, which does not exist`, { object: path });
    // Its number may be that of another one.
    if (!import.meta.page && isStray(node)) structure.now(this.#log.owners());
    if (numberOf(structure, node) === 0 && !this.#unnumbered.has(node)) {
      structure.checkMutable(node);
      this.#unnumbered.add(node);
    }
    return this.#placeOf(node);
  }

  #placeOf(node: ObjectNode): number {
    const known = this.#places.get(node);
    if (known !== undefined) return PENDING + known;
    const place = this.#objects.push(node) - 1;
    this.#places.set(node, place);
    return PENDING + place;
  }

  /** The object that a number without an object in the file stands for. */
  objectOf(number: number): ObjectNode | null | undefined {
    return number >= PENDING ? this.#objects[number - PENDING] : undefined;
  }

  // ---------------------------------------------------------------- references in layouts

  /** Exchanges the addresses that elements of an ordinary layout have as references for what stands for their objects in a log. */
  *fromLayout({ dtype, size }: { readonly dtype: DType; readonly size: number }, bytes: Uint8Array): Io<void> {
    if (!containsReference(dtype)) return;
    const count = bytes.length / size;
    const known = this.#byAddress;
    const unknown = new Set<number>();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    visitPointers(dtype, bytes, count, (at, { kind, base }) => {
      const address = readAddress(bytes, kind === 'heap' ? at + 4 : at);
      if (kind === 'object' && !known.has(address)) unknown.add(address);
      // Sequences of references are never published. Where h5log has newer ones, nobody asks for those that others wrote.
      if (kind === 'heap' && containsReference(base) && address > 0) putU64(view, at + 4, FOREIGN);
    });
    if (unknown.size > 0) yield* this.#identify(unknown);
    visitPointers(dtype, bytes, count, (at, { kind }) => {
      if (kind === 'object') putU64(view, at, known.get(readAddress(bytes, at)) ?? 0);
    });
  }

  /** Finds out which objects are at addresses, or were when layouts got those. */
  *#identify(addresses: ReadonlySet<number>): Io<void> {
    const known = this.#byAddress;
    const isLearnt = keepsAddresses(this.#log.structure);
    if (isLearnt) yield* this.learn(addresses);
    // A look at all objects takes longer, and does not find those that could not be given the addresses which they have left.
    if (!import.meta.page) yield* this.#lookAtHeaders(addresses);
    const others = new Set([...addresses].filter((address) => !known.has(address)));
    if (others.size > 0 && !isLearnt) yield* this.learn(others);
    // What is not found now is gone.
    for (const address of others) if (!known.has(address)) known.set(address, 0);
  }

  /** Finds the numbers in the headers at addresses. Headers that are newer than what was published may be copies that have the number of the original. */
  *#lookAtHeaders(addresses: ReadonlySet<number>): Io<void> {
    if (import.meta.page) return;
    const { structure, main, published } = this.#log;
    const { loader } = structure;
    const commit = published === null ? undefined : main.commit(published);
    const end = commit ? commit.end - main.base : 0;
    const numberAt = function* (address: number): Io<number> {
      return numberOf(structure, yield* loader.glimpse(address));
    };
    for (const address of addresses) {
      if (this.#byAddress.has(address) || address >= end) continue;
      // Headers that an object had one after the other share most of their bytes.
      const done = yield* attemptIo(loader.apart(numberAt(address)));
      if ('error' in done && !isUnreadable(done.error)) throw done.error;
      if ('result' in done && done.result > 0) this.#byAddress.set(address, done.result);
    }
  }

  /** The object at an address has got a number. */
  know(address: number, number: number): void {
    this.#byAddress.set(address, number);
  }

  /** Learns which objects layouts know by addresses that they have left, and which of those without a number are at the `wanted` ones. */
  *learn(wanted: ReadonlySet<number> = new Set()): Io<void> {
    const { structure } = this.#log;
    const { root, loader } = structure;
    const all = new Set([root]);
    for (const node of all) {
      if (!import.meta.page && isStray(node)) yield* this.#log.owners();
      const [number = 0, ...before] = isStray(node) ? [] : numbersIn(structure, node);
      for (const address of before) this.#byAddress.set(address, number);
      if (wanted.has(node.address)) this.#byAddress.set(node.address, number || this.#placeOf(node));
      yield* loader.whole(node);
      for (const link of node.links.values()) {
        const target = yield* loader.follow(link);
        if (target) all.add(target);
      }
    }
  }

  /**
   * Gives numbers to the objects at addresses that layouts have, if they have none: from now on they may move, and the layouts have the
   * addresses until they are published again. Objects that cannot get one must stay where they are; in a page, all.
   */
  *adopt(addresses: ReadonlyMap<number, string>): Io<void> {
    const { structure } = this.#log;
    const { loader } = structure;
    if (structure.frozen) return;
    // Several ranks give the same numbers.
    for (const [address, path] of [...addresses].sort(([a], [b]) => a - b)) {
      if (numberOf(structure, yield* loader.apart(loader.glimpse(address))) > 0) continue;
      const node = yield* loader.node(address);
      if (import.meta.page || !unlessFixed(() => this.number([node], true))) structure.pinned.set(address, path);
    }
  }

  /** Before a commit is planned: objects that it moves keep the addresses that layouts have of them. */
  keepAddresses(): void {
    const { structure } = this.#log;
    const { referred, left, dirty, extents, root } = structure;
    if (referred.size === 0) return;
    let keeps = false;
    for (const node of [...withReferrers(dirty, extents)]) {
      const { address } = node;
      const isKnown = referred.has(address) && !isStray(node);
      const [number, ...before] = isKnown ? numbersIn(structure, node) : [];
      if (!number || before.includes(address)) continue;
      const used = before.filter((each) => referred.has(each) || left.has(each));
      // One that moves with another, and must not change itself, has its number in its old header.
      if (unlessFixed(() => writeNumber(structure, node, [number, ...used, address]))) keeps = true;
    }
    if (keeps) writeNumbers(structure, root, [statedNumber(structure, root, NUMBERS), 1]);
  }

  /**
   * A commit that is planned publishes these datasets; the returned function says that it does not. `all`: what layouts of others refer to
   * is not needed any more, because data with references is always written anew.
   */
  layoutsRefer(made: Iterable<NewReferences>, all: boolean): () => void {
    const { structure } = this.#log;
    const { referred, left } = structure;
    const addresses = new Map(all ? [] : referred);
    let refers = false;
    for (const { dataset, targets } of made) {
      refers ||= targets !== undefined;
      for (const { address } of targets ?? []) addresses.set(address, dataset.path);
    }
    if (refers) {
      structure.referred = addresses;
      if (all) structure.left = new Set();
    }
    return () => {
      structure.referred = referred;
      structure.left = left;
    };
  }

  // ---------------------------------------------------------------- numbers

  /**
   * Refers to the same objects as the posts of another state of the file. `same` knows some of them, also under other names, or that they
   * are gone (null); the others are those at the same paths.
   */
  takeOver(other: Pointers, same: (node: ObjectNode) => ObjectNode | null | undefined): void {
    if (other.#objects.length === 0) return;
    const { structure } = this.#log;
    const known = other.#objects.map((node) => node && same(node));
    const places = new Set([...known.keys()].filter((place) => known[place] === undefined));
    const paths = other.#log.structure.now(
      other.#log.structure.pathsOf(places, (node) => other.#places.get(node) ?? -1),
    );
    for (const [place, found] of known.entries()) {
      const path = paths.get(place);
      const node = path === undefined ? found : structure.now(structure.lookup(structure.root, path));
      // An object that is gone keeps its place: a null reference.
      this.#objects.push(node ?? null);
      if (!node) continue;
      this.#places.set(node, place);
      if (numberOf(structure, node) === 0) this.#unnumbered.add(node);
    }
  }

  /** Objects that posts refer to and that have no number yet. */
  unnumbered(): ObjectNode[] {
    return [...this.#unnumbered].filter((node) => node.linkCount > 0);
  }

  /** The paths in the file of these objects. */
  unnumberedPaths(): string[] {
    const { structure } = this.#log;
    const places = new Set(this.unnumbered().map((node) => this.#places.get(node) as number));
    if (places.size === 0) return [];
    const found = structure.now(structure.pathsOf(places, (node) => this.#places.get(node) ?? -1));
    return [...found.values()];
  }

  /** Gives the objects at these paths in the file their numbers. */
  numberAt(paths: readonly string[]): void {
    if (paths.length === 0) return;
    const { structure } = this.#log;
    this.number(paths.flatMap((path) => structure.now(structure.lookup(structure.root, path)) ?? []));
  }

  /** Gives objects their numbers, in this order. `known`: other programs know them by their addresses. */
  number(nodes: Iterable<ObjectNode>, known = false): void {
    const { structure } = this.#log;
    const isKnown = known || keepsAddresses(structure);
    let last = statedNumber(structure, structure.root, NUMBERS);
    for (const node of nodes) {
      if (numberOf(structure, node) === 0) {
        // A copy of a dataset must not become the dataset by saying where it is.
        if (isStray(node) && node.attributes.has(ID)) deleteAttribute(structure, node, ID);
        writeNumber(structure, node, [++last, ...(known ? [node.address] : [])]);
      }
      this.#unnumbered.delete(node);
    }
    writeNumbers(structure, structure.root, [last, ...(isKnown ? [1] : [])]);
  }

  /** The number in the file for one that stands in posts; 0, a null reference, for an object that is gone. */
  readonly placed = (pending: number): number => {
    const node = this.#objects[pending - PENDING];
    return node && node.linkCount > 0 ? numberOf(this.#log.structure, node) : 0;
  };

  /** A copy of what committed elements point to; the elements get its temporary ids. References stay as they are, unless it is said. */
  *contents(
    { dtype, size }: { readonly dtype: DType; readonly size: number },
    bytes: Uint8Array,
    reference = (number: number): number => number,
    heap = new PendingHeap(0, () => 0),
    source = this.heap,
  ): Io<PendingHeap> {
    const count = bytes.length / size;
    takeContents(dtype, bytes, count, yield* source.lookup(dtype, bytes, count), heap, reference);
    return heap;
  }

  /** The heaps of the stores. */
  get heap(): GlobalHeap {
    this.#heap ??= this.heapIn();
    return this.#heap;
  }

  /** The heaps of the stores, in these files: they may have more than is committed. */
  heapIn(files?: readonly LogData[]): GlobalHeap {
    const { stores, main } = this.#log;
    return new GlobalHeap(
      main.data.file,
      stores.map((store, i) => ({
        get file() {
          return (files?.[i] ?? store.data).file;
        },
        // Heaps lie in the log, and move with it. Where it has not moved, another program may have added heaps of its own.
        locate: (address, size) => {
          if (address === FOREIGN) throw formatError('another program has written references in sequences');
          return store.ranges.isMoved ? store.ranges.locate(store.base + address, size) : store.base + address;
        },
      })),
    );
  }

  /** What some elements point to. `heaps` are those of posts. */
  *resolver(dtype: DType, bytes: Uint8Array, count: number, heaps: readonly PendingHeap[] = []): Io<Resolver> {
    const pending = heaps.length === 0 ? undefined : pendingContents(heaps);
    const heap = yield* this.heap.lookup(dtype, bytes, count, pending);
    if (!containsReference(dtype)) return { heap, path: () => '' };
    // Finding paths takes I/O, so a first pass of decoding only collects the numbers.
    const wanted = new Set<number>();
    const path = (number: number): string => {
      wanted.add(this.#current(number));
      return '';
    };
    decodeValues(dtype, bytes, count, { heap, path });
    const { structure, main } = this.#log;
    if (!main.isOurs) yield* this.#log.owners();
    let hasStrays = false;
    let paths = yield* structure.pathsOf(wanted, (node) => {
      if (!import.meta.page) hasStrays ||= isStray(node);
      return this.#numberOf(node);
    });
    // One that has no object may be that of one which a program has moved that does not know what it says.
    if (!import.meta.page && hasStrays && paths.size < wanted.size) {
      yield* this.#log.owners();
      paths = yield* structure.pathsOf(wanted, (node) => this.#numberOf(node));
    }
    return { heap, path: (number) => structure.paths.shown(paths.get(this.#current(number)) ?? '') };
  }

  /** An object that has no number yet has the one of its posts. */
  #numberOf(node: ObjectNode): number {
    const number = numberOf(this.#log.structure, node);
    return number > 0 ? number : PENDING + (this.#places.get(node) ?? NaN);
  }

  #current(number: number): number {
    const node = number >= PENDING ? this.#objects[number - PENDING] : undefined;
    return node ? this.#numberOf(node) : number;
  }
}

/** The number of an object; 0: it has none, or is a copy that has that of another one. */
export function numberOf(structure: Structure, node: ObjectNode): number {
  return isStray(node) ? 0 : statedNumber(structure, node);
}

/** The number that an object or a copy of it has. */
export function statedNumber(structure: Structure, node: ObjectNode, name = NUMBER): number {
  return numbersIn(structure, node, name)[0] ?? 0;
}

/** Whether some objects have addresses behind their numbers. */
function keepsAddresses(structure: Structure): boolean {
  return numbersIn(structure, structure.root, NUMBERS).length > 1;
}

/** The number of an object, and what is behind it. */
function numbersIn(structure: Structure, node: ObjectNode, name = NUMBER): number[] {
  const { data } = structure.describeAttribute(node, name) ?? {};
  return Array.from({ length: data ? Math.floor(data.length / 8) : 0 }, (_, i) =>
    readAddress(data as Uint8Array, 8 * i),
  );
}

/** Changes an object; false: it must not change. */
function unlessFixed(change: () => void): boolean {
  try {
    change();
    return true;
  } catch (error) {
    if (!isH5LogError(error, 'UNSUPPORTED')) throw error;
    return false;
  }
}

/** All objects with a path from the root, new ones among them. They must have been loaded. */
export function linkedObjects({ root }: Structure): ReadonlySet<ObjectNode> {
  const all = new Set([root]);
  for (const group of all) for (const { node } of group.links.values()) if (node) all.add(node);
  return all;
}

/** Objects by the numbers by which logged data refers to them. */
export function numbersOf(structure: Structure): Map<number, ObjectNode> {
  const numbers = new Map<number, ObjectNode>();
  for (const node of linkedObjects(structure)) {
    const number = node.attributes.has(NUMBER) ? statedNumber(structure, node) : 0;
    if (number > 0 && comesFirst(node, numbers.get(number))) numbers.set(number, node);
  }
  return numbers;
}
