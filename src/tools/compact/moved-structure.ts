import { H5LogError } from '../../base/errors.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import { readCollection } from '../../hdf5/format/global-heap.ts';
import { DEFAULT_K } from '../../hdf5/format/superblock.ts';
import { attributeParts } from '../../hdf5/graph/attribute-value.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import { type Attribute, moveToFirstChunk, type ObjectNode } from '../../hdf5/graph/object-node.ts';
import { addReferrer, relocatedCopy, removeReferrer } from '../../hdf5/graph/references.ts';
import { buildChunkIndex, type ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { encodeLayout, layoutAddressAt } from '../../hdf5/messages/encode.ts';
import type { Layout } from '../../hdf5/messages/layout.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { openStructure } from '../../hdf5/open.ts';
import { prepareWriting } from '../../hdf5/prepare-writing.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { logNames } from '../../log/format/names.ts';
import { settleScales } from '../../log/format/scales.ts';
import type { Io } from '../../storage/io.ts';

/** An object of the structure, with a path that leads to it. */
interface MovedObject {
  readonly node: ObjectNode;
  readonly path: string;
}

/**
 * The structure of a file, loaded so that all of it will be written anew, elsewhere: nothing in it refers to bytes of the old file,
 * but for the data of ordinary datasets, which {@link placeContiguous} and {@link placeChunks} take care of.
 */
export class MovedStructure {
  readonly structure: Structure;
  readonly #pathOf = new Map<ObjectNode, string>();

  private constructor(structure: Structure) {
    this.structure = structure;
  }

  /** Of the state whose root is there. `own` are links of the root that are left behind. */
  static *load(root: number, own: readonly string[]): Io<MovedStructure> {
    const opened = yield* openStructure(root);
    const { structure } = opened;
    if (structure.loader.shared)
      throw new H5LogError(
        'UNSUPPORTED',
        'the file keeps messages that objects share in a table, which cannot be moved',
      );
    yield* prepareWriting(opened);
    for (const name of own) if (structure.root.links.has(name)) structure.removeLink(structure.root, name);
    structure.chunkFanout = 2 * DEFAULT_K.chunk;
    const moved = new MovedStructure(structure);
    moved.#findPaths();
    for (const [node, path] of moved.#pathOf) yield* moved.#detach(node, path);
    settleScales(structure, [...moved.#pathOf.keys()]);
    return moved;
  }

  get objects(): readonly MovedObject[] {
    return [...this.#pathOf].map(([node, path]) => ({ node, path }));
  }

  #findPaths(): void {
    const paths = this.#pathOf;
    paths.set(this.structure.root, '/');
    for (const [node, path] of paths) {
      for (const { name, node: target } of node.links.values())
        if (target && !paths.has(target))
          paths.set(target, `${path === '/' ? '' : path}/${logNames.shownInside(name)}`);
    }
    // Datatypes that no link leads to any more, but objects still use.
    for (const node of this.structure.loader.nodes.values()) {
      if (paths.has(node) || node.kind !== 'datatype') continue;
      for (const message of node.referrers) {
        if (!paths.has(message.owner)) continue;
        paths.set(node, `the datatype of ${paths.get(message.owner)}`);
        break;
      }
    }
  }

  /** Every message is to be written again, with what it has in the heap. */
  *#detach(node: ObjectNode, path: string): Io<void> {
    const { structure } = this;
    if (node.message(MESSAGE.externalFiles))
      throw new H5LogError('UNSUPPORTED', `${path} cannot be moved: its data is in other files`, { object: path });
    structure.markDirty(node);
    for (const link of node.links.values()) moveToFirstChunk(link.message);
    for (const message of node.otherMessages) moveToFirstChunk(message);
    for (const attribute of node.attributes.values()) {
      moveToFirstChunk(attribute.message);
      yield* this.#takeAlong(attribute);
    }
  }

  /** The contents of the heap, and the objects that are referred to, become part of the message. */
  *#takeAlong(attribute: Attribute): Io<void> {
    const { loader, heap } = this.structure;
    const { message } = attribute;
    const { dtype, data, dataAt, count } = attributeParts(attribute, loader.file.lengthSize);
    if (count === 0 || !(containsVlen(dtype) || containsReference(dtype))) return;
    yield* heap.load(dtype, data, count);
    removeReferrer(message);
    const shared = message.targets.filter(({ at }) => at < dataAt);
    const value = relocatedCopy(dtype, data, count, heap.contents(), (address) => this.#moved(address));
    message.bytes = message.bytes.slice();
    message.bytes.set(value.bytes, dataAt);
    message.content = message.bytes;
    message.owned = true;
    message.targets = [...shared, ...value.targets.map(({ at, target }) => ({ at: at + dataAt, target }))];
    message.heap = value.heap.map(({ at, content }) => ({ at: at + dataAt, content }));
    message.heapPending = message.heap.length > 0;
    addReferrer(message);
  }

  /** The object that was at an address, if it is moved. */
  #moved(address: number): ObjectNode | undefined {
    const node = this.structure.loader.nodes.get(address);
    return node && this.#pathOf.has(node) ? node : undefined;
  }

  // ---------------------------------------------------------------- the data of ordinary datasets

  placeContiguous(node: ObjectNode, address: number, size: number): void {
    this.#layout(node, { kind: 'contiguous', address, size });
  }

  /** An index of the chunks is made anew. */
  placeChunks(node: ObjectNode, parts: DatasetParts, chunks: readonly ChunkEntry[]): void {
    const { layout, space } = parts;
    if (layout?.kind !== 'chunked' || space.kind !== 'simple') return;
    const { chunk, elementSize } = layout;
    const { shape, maxShape } = space;
    const fanout = this.structure.chunkFanout;
    const grid = { shape, maxShape, chunk, elementSize, filtered: parts.filters.length > 0, fanout };
    const { index, extent } = buildChunkIndex(grid, chunks);
    const moved: Layout = { kind: 'chunked', chunk, elementSize, index };
    const message = this.#layout(node, moved);
    if (!message || !extent) return;
    this.structure.extents.add(extent);
    message.targets = [{ at: layoutAddressAt(moved, message.bytes.length), target: extent }];
    addReferrer(message);
  }

  /** What a virtual dataset is made of is in the heap. */
  *takeMappings(node: ObjectNode, layout: Layout): Io<void> {
    const message = node.message(MESSAGE.layout);
    if (layout.kind !== 'virtual' || !message) return;
    const { objects } = yield* readCollection(this.structure.loader.file, layout.heap);
    const content = objects.get(layout.index);
    if (!content) throw new H5LogError('FORMAT', 'the mappings of a virtual dataset are missing');
    message.bytes = message.bytes.slice();
    message.content = message.bytes;
    message.owned = true;
    message.heap = [{ at: 2, content: { bytes: content.slice(), owned: true, targets: [], heap: [] } }];
    message.heapPending = true;
  }

  #layout(node: ObjectNode, layout: Layout): ReturnType<ObjectNode['message']> {
    const message = node.message(MESSAGE.layout);
    if (!message) return undefined;
    removeReferrer(message);
    message.bytes = encodeLayout(layout);
    message.content = message.bytes;
    message.owned = true;
    message.targets = [];
    return message;
  }
}
