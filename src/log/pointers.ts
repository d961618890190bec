import { H5LogError } from '../base/errors.ts';
import { decodeValues, type Resolver } from '../dtype/decode.ts';
import { containsReference } from '../dtype/describe.ts';
import { readAddress } from '../dtype/heap-ids.ts';
import type { DType } from '../dtype/model.ts';
import { putU64 } from '../hdf5/format/byte-writer.ts';
import { GlobalHeap } from '../hdf5/format/global-heap.ts';
import { PENDING, PendingHeap, pendingContents, takeContents } from '../hdf5/format/pending-heap.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { simpleSpace } from '../hdf5/messages/dataspace.ts';
import { setPlainAttribute } from '../hdf5/write/attributes.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import type { Io } from '../storage/io.ts';
import type { LogData } from './read/boxes.ts';
import type { LogStore } from './store.ts';

/** The number by which logged data refers to an object, and on the root how many were ever given. Objects move, and keep their numbers. */
export const NUMBER = '_number';
export const NUMBERS = '_numbers';

/** The log that points. */
interface PointingLog {
  readonly structure: Structure;
  readonly main: LogStore;
  readonly stores: readonly LogStore[];
}

/** What elements of logged datasets point to: contents in heaps, and objects. */
export class Pointers {
  readonly #log: PointingLog;
  /** Objects that posts refer to; null: there no longer. A reference that waits for a commit is PENDING plus the place in this list. */
  readonly #objects: (ObjectNode | null)[] = [];
  readonly #places = new Map<ObjectNode, number>();
  /** Those of them that had no number when they were first referred to, until a flush gives them one. */
  readonly #unnumbered = new Set<ObjectNode>();
  #heap: GlobalHeap | null = null;

  constructor(log: PointingLog) {
    this.#log = log;
  }

  /** The number that stands for a reference in posts. */
  refer(path: string): number {
    const { structure } = this.#log;
    const node = structure.now(structure.lookup(structure.root, structure.paths.stored(path)));
    if (!node) throw new H5LogError('NOT_FOUND', `a reference to ${path}, which does not exist`, { object: path });
    let place = this.#places.get(node);
    if (place === undefined) {
      if (!node.attributes.has(NUMBER)) {
        structure.checkMutable(node);
        this.#unnumbered.add(node);
      }
      place = this.#objects.push(node) - 1;
      this.#places.set(node, place);
    }
    return PENDING + place;
  }

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
      if (!node.attributes.has(NUMBER)) this.#unnumbered.add(node);
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

  /** Gives objects their numbers, in this order. */
  number(nodes: Iterable<ObjectNode>): void {
    const { structure } = this.#log;
    let last = numberOf(structure, structure.root, NUMBERS);
    for (const node of nodes) {
      if (!node.attributes.has(NUMBER)) writeNumber(structure, node, NUMBER, ++last);
      this.#unnumbered.delete(node);
    }
    writeNumber(structure, structure.root, NUMBERS, last);
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
        locate: (address, size) =>
          store.ranges.isMoved ? store.ranges.locate(store.base + address, size) : store.base + address,
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
    const { structure } = this.#log;
    const paths = yield* structure.pathsOf(wanted, (node) => this.#numberOf(node));
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

/** The number of an object; 0: it has none. */
export function numberOf(structure: Structure, node: ObjectNode, name = NUMBER): number {
  const parts = structure.describeAttribute(node, name);
  return parts && parts.data.length === 8 ? readAddress(parts.data, 0) : 0;
}

function writeNumber(structure: Structure, node: ObjectNode, name: string, number: number): void {
  const bytes = new Uint8Array(8);
  putU64(new DataView(bytes.buffer), 0, number);
  setPlainAttribute(structure, node, name, 'int64', simpleSpace([1]), bytes);
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
    const number = node.attributes.has(NUMBER) ? numberOf(structure, node) : 0;
    if (number > 0 && !numbers.has(number)) numbers.set(number, node);
  }
  return numbers;
}
