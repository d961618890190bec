// Finding objects: paths to objects through hard and soft links, and objects to paths.

import { decodeValues, type Resolver } from '../../dtype/decode.ts';
import { containsReference } from '../../dtype/describe.ts';
import type { DType } from '../../dtype/model.ts';
import type { Selection } from '../../space/select.ts';
import type { Io } from '../../storage/io.ts';
import { Cursor } from '../format/cursor.ts';
import { ChunkCache } from '../format/file-bytes.ts';
import { GlobalHeap, type HeapLookup } from '../format/global-heap.ts';
import { parseSelection, selectionOf } from '../messages/selection.ts';
import { type AttributeParts, attributeParts, readAttribute } from './attribute-value.ts';
import { type DatasetParts, datasetParts } from './dataset-header.ts';
import { addressOf, type ObjectLoader } from './object-loader.ts';
import type { Link, ObjectNode } from './object-node.ts';

/** Soft links that are followed on the way to an object, as in libhdf5. */
const MAX_SOFT_LINKS = 16;

/** The objects of a file, which are loaded when they are first needed. */
export class ObjectTree {
  readonly loader: ObjectLoader;
  readonly heap: GlobalHeap;
  readonly root: ObjectNode;
  /** Chunks of ordinary datasets that were read lately. */
  readonly chunks = new ChunkCache();
  /** How paths in references of the user are translated to paths in the file, and back: a log stores some names escaped. */
  paths: { stored(path: string): string; shown(path: string): string } = {
    stored: (path) => path,
    shown: (path) => path,
  };

  constructor(loader: ObjectLoader, root: ObjectNode, heap = new GlobalHeap(loader.file)) {
    this.loader = loader;
    this.heap = heap;
    this.root = root;
  }

  /** Follows a path from a group through hard and soft links. Gives undefined if there is no object, or behind external links. */
  *lookup(from: ObjectNode, path: string): Io<ObjectNode | undefined> {
    return yield* this.#walk(path.startsWith('/') ? this.root : from, path, { soft: 0 });
  }

  *#walk(start: ObjectNode, path: string, followed: { soft: number }): Io<ObjectNode | undefined> {
    let node: ObjectNode | undefined = start;
    for (const name of path.split('/')) {
      if (name === '' || name === '.') continue;
      const link: Link | undefined = yield* this.loader.link(node, name);
      if (!link) return undefined;
      node = yield* this.target(node, link, followed);
      if (!node) return undefined;
    }
    return node;
  }

  /** The object that a link of `group` leads to. `followed` counts soft links over the whole path: their paths contain others. */
  *target(group: ObjectNode, link: Link, followed = { soft: 0 }): Io<ObjectNode | undefined> {
    if (link.target.kind === 'hard') return (yield* this.loader.follow(link)) ?? undefined;
    if (link.target.kind !== 'soft' || followed.soft++ >= MAX_SOFT_LINKS) return undefined;
    const { path } = link.target;
    return yield* this.#walk(path.startsWith('/') ? this.root : group, path, followed);
  }

  /** The shortest path to the object at an address; '' if there is none. */
  *pathOf(address: number): Io<string> {
    return (yield* this.pathsOf(new Set([address]))).get(address) ?? '';
  }

  /**
   * Shortest paths to objects by their addresses, or by another number, found in one breadth-first walk; objects without one are
   * left out.
   */
  *pathsOf(addresses: ReadonlySet<number>, numberOf?: (node: ObjectNode) => number): Io<Map<number, string>> {
    const paths = new Map<number, string>();
    const found = (number: number, path: string): void => {
      if (addresses.has(number) && !paths.has(number)) paths.set(number, path);
    };
    found(numberOf ? numberOf(this.root) : this.root.address, '/');
    const seen = new Set<number>([this.root.address]);
    yield* this.loader.whole(this.root);
    let level: [string, Link][] = linksOf('', this.root);
    while (level.length > 0 && paths.size < addresses.size) {
      const inside: [string, Link][] = [];
      for (const [path, link] of level) {
        // A link says where its object is: that is loaded only if the walk has to go through it.
        const address = addressOf(link);
        if (link.target.kind !== 'hard' || seen.has(address)) continue;
        seen.add(address);
        if (!numberOf) found(address, path);
        inside.push([path, link]);
      }
      level = [];
      if (paths.size === addresses.size) break;
      yield* this.loader.ahead(inside.map(([, link]) => link));
      for (const [path, link] of inside) {
        const node = yield* this.loader.follow(link);
        if (node && numberOf) found(numberOf(node), path);
        if (node?.kind !== 'group') continue;
        yield* this.loader.whole(node);
        for (const item of linksOf(path, node)) level.push(item);
      }
    }
    return paths;
  }

  dataset(node: ObjectNode): DatasetParts {
    return datasetParts(node, this.loader.file);
  }

  describeAttribute(node: ObjectNode, name: string): AttributeParts | undefined {
    const attribute = node.attributes.get(name);
    return attribute && attributeParts(attribute, this.loader.file.lengthSize);
  }

  /** The value of an attribute, or undefined. */
  *attribute(node: ObjectNode, name: string): Io<unknown> {
    const attribute = node.attributes.get(name);
    if (!attribute) return undefined;
    return yield* readAttribute(attribute, this.loader.file.lengthSize, this.heap, {
      pathsOf: (addresses) => this.#shownPaths(addresses),
      selection: this.#selection,
    });
  }

  /** What some elements refer to: reads the heap collections they need, and finds the paths of objects. `pending`: see GlobalHeap.lookup; `addressOf` gives the address of the object that a reference stands for. */
  *resolver(
    dtype: DType,
    bytes: Uint8Array,
    count: number,
    pending?: HeapLookup,
    addressOf: (reference: number) => number = (address) => address,
  ): Io<Resolver> {
    const heap = yield* this.heap.lookup(dtype, bytes, count, pending);
    if (!containsReference(dtype)) return { heap, path: () => '' };
    // Finding paths takes I/O, so a first pass of decoding only collects the addresses.
    const wanted = new Set<number>();
    const path = (reference: number): string => {
      wanted.add(addressOf(reference));
      return '';
    };
    decodeValues(dtype, bytes, count, { heap, path, selection: this.#selection });
    const paths = yield* this.#shownPaths(wanted);
    return { heap, path: (reference) => paths.get(addressOf(reference)) ?? '', selection: this.#selection };
  }

  /** Datasets whose shapes selections depend on; they are loaded with the paths of objects, before the selections are made again. */
  readonly #wanted = new Set<number>();

  /** A selection of elements of the dataset at an address. */
  readonly #selection = (content: Uint8Array, at: number, address: number): Selection => {
    const node = this.loader.nodes.get(address);
    const space = node?.kind === 'dataset' ? this.dataset(node).space : undefined;
    const stored = parseSelection(new Cursor(content, 0, at));
    if (stored.kind === 'all' && !node) this.#wanted.add(address);
    return selectionOf(stored, space?.kind === 'simple' ? space.shape : null);
  };

  *#shownPaths(addresses: ReadonlySet<number>): Io<Map<number, string>> {
    const paths = yield* this.pathsOf(addresses);
    for (const [address, path] of paths) paths.set(address, this.paths.shown(path));
    for (const address of this.#wanted) {
      this.#wanted.delete(address);
      if (paths.has(address)) yield* this.loader.node(address);
    }
    return paths;
  }
}

function linksOf(path: string, group: ObjectNode): [string, Link][] {
  return Array.from(group.links.values(), (link) => [`${path}/${link.name}`, link]);
}
