// Puts posts into the ordinary layout of a dataset: chunks that they touch are written anew at the end of the file, with their
// index; nothing that an earlier commit wrote changes.

import { heapSlots } from '../../dtype/heap-ids.ts';
import { applyFilters, lateLength } from '../../filter/apply.ts';
import { type FilterStep, PendingBytes, unusable } from '../../filter/pipeline.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import { type AddressSlot, FileExtent, type HeapSlot, type ObjectNode } from '../../hdf5/graph/object-node.ts';
import { relocatedCopy } from '../../hdf5/graph/references.ts';
import { type ChunkEntry, type ChunkGrid, readChunkIndex } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { ChunkTree } from '../../hdf5/layouts/chunks/chunk-tree.ts';
import { chunkedByTree, compact, contiguous, type NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { PendingCollections } from '../../hdf5/write/commit.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { clip, positionIn, rowBoxes } from '../../space/box.ts';
import { defaultChunks } from '../../space/chunk-shape.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { cellOf, gridOf } from '../../space/grid.ts';
import { mayGrow, sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import type { WritableDataset } from '../post/writable.ts';
import type { OrdinaryDataset } from '../read/ordinary.ts';
import { type DatasetChange, PostedBlocks, type TouchedChunk } from './posted-blocks.ts';
import { type ObjectOf, referencesIn, referringExtent } from './references.ts';

/** Contiguous data of at most so many bytes is written anew as a whole; more becomes chunks of about this size. */
const PIECE = 2 ** 20;
/** Chunks that are worked on at a time, in bytes. */
const BATCH = 16 * 2 ** 20;

/** A dataset with chunks, or one that gets some: as the last commit left it. */
export interface ChunkedDataset {
  readonly committed: OrdinaryDataset;
  /** The index of its chunks, if it was opened. */
  readonly tree: ChunkTree | null;
  readonly elements: { readonly size: number };
  readonly fill: Uint8Array | null;
  readonly maxShape: readonly (number | null)[];
  readonly structure: Structure;
}

/** Where new data goes. */
export interface Sink {
  /** Adds bytes, which must stay as they are, behind those before; gives where they are, or will be. */
  append(bytes: Uint8Array): Io<number | FileExtent>;
  /**
   * Of several ranks, which all call it: adds so many pieces, each made by one of them. `make` is given the numbers of those that this
   * rank makes. All ranks get the places of all pieces.
   */
  share?(count: number, make: (numbers: readonly number[]) => Io<Uint8Array[]>): Io<PlacedPiece[]>;
}

/** Where new data goes, one piece behind the other. */
interface End extends Sink {
  /** The address of the next piece. */
  readonly position: number;
}

interface PlacedPiece {
  readonly address: number | FileExtent;
  readonly size: number;
}

/** The layout of a dataset with the posts in it; null: as it was. */
export interface UpdatedLayout {
  readonly layout: NewLayout | null;
  /** The new index of its chunks. */
  readonly tree: ChunkTree | null;
  /** The objects that its data refers to; null if it does not refer. */
  readonly targets: ReadonlySet<ObjectNode> | null;
}

/** The parts of a flush that a dataset needs to get its posts into its layout: where data goes, and what its elements point to. */
interface Updating {
  readonly to: End;
  /** The places of what elements point to; null if none does. */
  readonly heap: PlacedHeap | null;
  readonly objectOf: ObjectOf;
}

/** Writes what posts change and gives the layout that finds it. Data that refers to objects is written anew as a whole. */
export function* updateLayout(change: DatasetChange, { to, heap, objectOf }: Updating): Io<UpdatedLayout> {
  const { dataset, shape } = change;
  const referring = dataset.refers ? new Referring(dataset, objectOf) : null;
  const { parts, elements } = dataset.committed;
  const { layout } = parts;
  const posts = new PostedBlocks(change, heap);
  if (layout?.kind === 'chunked')
    return yield* updateChunks(change, posts, layout.chunk, yield* treeOf(dataset), to, referring);
  const targets = referring?.targets ?? null;
  if (mayGrow(shape, dataset.maxShape)) {
    // Nothing but chunks can have another shape than the largest.
    const chunk = defaultChunks({ shape, maxShape: dataset.maxShape, elementSize: elements.size });
    return yield* updateChunks(change, posts, chunk, ChunkTree.empty(gridFor(dataset, chunk)), to, referring, true);
  }
  if (posts.length === 0 && !posts.wasCut && !referring) return { layout: null, tree: null, targets };
  const bytes = elements.size * sizeOf(shape);
  const isSmall = bytes <= PIECE || referring || dataset.node.message(MESSAGE.externalFiles) !== undefined;
  if (layout?.kind === 'compact' || isSmall) {
    const data = yield* whole(change, posts);
    yield* ownContents(dataset, data, to);
    if (layout?.kind === 'compact') return { layout: compact(data, referring?.slots(data)), tree: null, targets };
    if (referring) return { layout: contiguous(referring.extent(data)), tree: null, targets };
    return { layout: contiguous(yield* to.append(data)), tree: null, targets };
  }
  if (!hasData(parts) && posts.total >= sizeOf(shape) && posts.coverAll()) {
    const limit = Math.max(1, Math.floor((4 * PIECE) / elements.size));
    let first: number | FileExtent = -1;
    for (const { start, count, size } of rowBoxes(shape, 0, sizeOf(shape), limit)) {
      const data = new Uint8Array(size * elements.size);
      posts.applyTo(data, Float64Array.from(start), Float64Array.from(count), Float64Array.from(count), dataset.fill);
      const at = yield* to.append(data);
      if (first === -1) first = at;
    }
    return { layout: contiguous(first), tree: null, targets };
  }
  const chunk = slabOf(shape, elements.size);
  return yield* updateChunks(change, posts, chunk, yield* treeOverBytes(dataset, shape, chunk, to), to, null);
}

/** Data of a dataset that refers to objects: its references are filled in when the commit has given the objects their addresses. */
class Referring {
  readonly targets = new Set<ObjectNode>();
  readonly #dataset: WritableDataset;
  readonly #objectOf: ObjectOf;

  constructor(dataset: WritableDataset, objectOf: ObjectOf) {
    this.#dataset = dataset;
    this.#objectOf = objectOf;
  }

  slots(data: Uint8Array): AddressSlot[] {
    const { dtype, size } = this.#dataset.elements;
    const slots = referencesIn(dtype, data, data.length / size, this.#objectOf);
    for (const { target } of slots) this.targets.add(target as ObjectNode);
    return slots;
  }

  extent(data: Uint8Array, filters: readonly FilterStep[] = []): FileExtent {
    return referringExtent(data, this.slots(data), filters);
  }
}

function hasData({ layout }: DatasetParts): boolean {
  return layout?.kind === 'contiguous' && layout.address !== UNDEFINED;
}

/** All elements of a small dataset. */
function* whole({ dataset, shape }: DatasetChange, posts: PostedBlocks): Io<Uint8Array> {
  const { elements, committed, fill } = dataset;
  const count = Float64Array.from(shape);
  const start = new Float64Array(shape.length);
  const data = new Uint8Array(elements.size * sizeOf(shape));
  yield* committed.boxes(boxesFrom(shape.length, start, count)).read(data);
  posts.applyTo(data, start, count, count, fill);
  return data;
}

/** Chunks of contiguous data that lie in the file as they are: whole rows, planes and so on, equal parts of the next dimension. */
export function slabOf(shape: readonly number[], size: number): number[] {
  const chunk: number[] = shape.map(() => 1);
  for (let d = shape.length - 1, room = Math.max(1, Math.floor(PIECE / size)); d >= 0; d--) {
    const length = shape[d] as number;
    if (length > room) {
      chunk[d] = room;
      // Parts that fill the dimension exactly need no copy of the last one.
      for (let k = room; k > room / 2; k--) {
        if (length % k !== 0) continue;
        chunk[d] = k;
        break;
      }
      break;
    }
    chunk[d] = length;
    room = Math.floor(room / length);
  }
  return chunk;
}

/** An index of chunks over contiguous data where it lies. Chunks that reach beyond the edge have to be whole, and are copied. */
export function* treeOverBytes(
  dataset: ChunkedDataset,
  shape: readonly number[],
  chunk: number[],
  to: Sink,
): Io<ChunkTree> {
  const { committed, elements, fill } = dataset;
  const { layout } = committed.parts;
  const tree = ChunkTree.empty(gridFor(dataset, chunk));
  if (layout?.kind !== 'contiguous' || layout.address === UNDEFINED) return tree;
  const { size } = elements;
  const chunkBytes = size * sizeOf(chunk);
  const counts = gridOf(shape, chunk);
  const put: ChunkEntry[] = [];
  let at = layout.address;
  for (let i = 0, total = sizeOf(counts); i < total; i++) {
    const cell = cellOf(i, counts);
    const start = Float64Array.from(cell, (c, d) => c * (chunk[d] as number));
    const count = start.map((from, d) => Math.min(chunk[d] as number, (shape[d] as number) - from));
    const bytes = size * sizeOf(count);
    let address: number | FileExtent = at;
    if (bytes < chunkBytes) {
      const data = new Uint8Array(chunkBytes);
      fillWith(data, 0, sizeOf(chunk), size, fill);
      const inside = new Uint8Array(bytes);
      yield* committed.boxes(boxesFrom(shape.length, start, count)).read(inside);
      const origin = new Float64Array(shape.length);
      copyBox(inside, 0, count, origin, data, 0, chunk, origin, count, size);
      address = yield* to.append(data);
    }
    put.push({ cell, address, size: chunkBytes, mask: 0 });
    at += bytes;
  }
  return yield* tree.edit({ put });
}

function gridFor({ committed, maxShape }: ChunkedDataset, chunk: readonly number[]): ChunkGrid {
  const { filters } = committed.parts;
  return { maxShape, chunk, elementSize: committed.elements.size, filtered: filters.length > 0 };
}

/** The index of a dataset's chunks, to be edited: the one it has, or one made of an index of another kind. */
export function* treeOf(dataset: ChunkedDataset): Io<ChunkTree> {
  if (dataset.tree) return dataset.tree;
  const { layout, filters } = dataset.committed.parts;
  if (layout?.kind !== 'chunked') throw new TypeError('a dataset without chunks');
  const { index, chunk, edgesUnfiltered } = layout;
  const grid = gridFor(dataset, chunk);
  const { file } = dataset.structure.loader;
  if (index.address === UNDEFINED) return ChunkTree.empty(grid);
  const masksEdges = edgesUnfiltered && filters.length > 0;
  if (index.kind === 'btree2' && !masksEdges) return yield* ChunkTree.open(file, index.address, grid);
  // The new layout has no rule for chunks at the edge: they say themselves that they were stored without filters.
  const unfiltered = 2 ** filters.length - 1;
  const { shape } = dataset.committed;
  const isEdge = (cell: readonly number[]): boolean =>
    cell.some((c, d) => (c + 1) * (chunk[d] as number) > (shape[d] as number));
  const stored = yield* readChunkIndex(file, index, grid);
  const put = masksEdges ? stored.map((each) => (isEdge(each.cell) ? { ...each, mask: unfiltered } : each)) : stored;
  return yield* ChunkTree.empty(grid).edit({ put });
}

/** Writes the chunks that posts touch, or that were cut by a smaller shape, and edits their index. `all`: every chunk. */
function* updateChunks(
  { dataset, shape }: DatasetChange,
  posts: PostedBlocks,
  chunk: readonly number[],
  tree: ChunkTree,
  to: End,
  referring: Referring | null,
  all = false,
): Io<UpdatedLayout> {
  const grid = gridOf(shape, chunk);
  const { visible } = posts;
  const touched = posts.byChunk(shape, chunk);
  if (all) for (let i = 0; i < sizeOf(grid); i++) touched.add(i);
  const remove: (readonly number[])[] = [];
  if (posts.wasCut || referring) {
    for (const { cell } of yield* tree.all()) {
      const isOutside = cell.some((c, d) => c * (chunk[d] as number) >= (visible[d] as number));
      const isCut = cell.some((c, d) => (c + 1) * (chunk[d] as number) > (visible[d] as number));
      if (isOutside) remove.push(cell);
      else if (isCut || referring) touched.add(positionIn(grid, cell));
    }
  }
  const put: ChunkEntry[] = [];
  const writer = new ChunkWriter(dataset, posts, chunk, shape, to, referring);
  for (const batch of touched.batches(Math.max(1, Math.floor(BATCH / writer.bytes)))) {
    const cells = batch.map(({ number }) => cellOf(number, grid));
    put.push(...(yield* writer.write(cells, batch)));
  }
  const next = yield* tree.edit({ put, remove });
  const data = put.flatMap(({ address }) => (address instanceof FileExtent ? [address] : []));
  return { layout: chunkedByTree(chunk, next, data), tree: next, targets: referring?.targets ?? null };
}

/** Makes the new bytes of chunks and writes them. */
class ChunkWriter {
  readonly #dataset: WritableDataset;
  readonly #posts: PostedBlocks;
  readonly #chunk: Float64Array;
  readonly #shape: readonly number[];
  readonly #to: End;
  readonly #referring: Referring | null;
  /** Of a chunk without filters. */
  readonly bytes: number;

  constructor(
    dataset: WritableDataset,
    posts: PostedBlocks,
    chunk: readonly number[],
    shape: readonly number[],
    to: End,
    referring: Referring | null,
  ) {
    this.#dataset = dataset;
    this.#posts = posts;
    this.#chunk = Float64Array.from(chunk);
    this.#shape = shape;
    this.#to = to;
    this.#referring = referring;
    this.bytes = dataset.elements.size * sizeOf(chunk);
  }

  /** Writes the chunks of cells, each with its posts. */
  *write(cells: readonly (readonly number[])[], touched: readonly TouchedChunk[]): Io<ChunkEntry[]> {
    const { size } = this.#dataset.elements;
    const { fill, committed } = this.#dataset;
    const rank = this.#shape.length;
    const starts = new Float64Array(cells.length * rank);
    const counts = new Float64Array(cells.length * rank);
    const needsOld: number[] = [];
    cells.forEach((cell, i) => {
      for (let d = 0; d < rank; d++) {
        const from = (cell[d] as number) * (this.#chunk[d] as number);
        starts[i * rank + d] = from;
        counts[i * rank + d] = Math.min(this.#chunk[d] as number, (this.#shape[d] as number) - from);
      }
      const at = i * rank;
      const isNew = this.#posts.covered(
        touched[i] as TouchedChunk,
        starts.subarray(at, at + rank),
        counts.subarray(at, at + rank),
      );
      if (!isNew) needsOld.push(i);
    });
    // What the last commit left of them is read together.
    const old = clip(
      {
        rank,
        length: needsOld.length,
        starts: Float64Array.from(needsOld.flatMap((i) => [...starts.subarray(i * rank, (i + 1) * rank)])),
        counts: Float64Array.from(needsOld.flatMap((i) => [...counts.subarray(i * rank, (i + 1) * rank)])),
      },
      this.#posts.visible,
    );
    const before = new Uint8Array(old.size * size);
    yield* committed.boxes({ ...old, itemOf: null, elementOf: null }).read(before);
    const entries: ChunkEntry[] = [];
    const origin = new Float64Array(rank);
    for (let i = 0, k = 0, from = 0; i < cells.length; i++) {
      const start = starts.slice(i * rank, (i + 1) * rank);
      const count = counts.slice(i * rank, (i + 1) * rank);
      const data = new Uint8Array(this.bytes);
      fillWith(data, 0, this.bytes / size, size, fill);
      if (k < old.length && needsOld[old.from[k] as number] === i) {
        const part = old.counts.slice(k * rank, (k + 1) * rank);
        copyBox(before, from, part, origin, data, 0, this.#chunk, origin, part, size);
        from += size * sizeOf(part);
        k++;
      }
      this.#posts.applyTo(data, start, count, this.#chunk, fill, touched[i] as TouchedChunk);
      yield* ownContents(this.#dataset, data, this.#to);
      const cell = cells[i] as readonly number[];
      if (this.#referring) {
        // Its bytes are known last of all.
        const { filters } = committed.parts;
        const { length, mask } = lateLength(filters, data.length);
        entries.push({ cell, address: this.#referring.extent(data, filters), size: length, mask });
        continue;
      }
      const mask = unusable(committed.parts.filters);
      const stored = yield* this.#filtered(data, mask);
      entries.push({ cell, address: yield* this.#to.append(stored), size: stored.length, mask });
    }
    return entries;
  }

  /** Filters whose bits are set in the mask are left out. */
  *#filtered(data: Uint8Array, mask: number): Io<Uint8Array> {
    const { committed, posts } = this.#dataset;
    const filters = committed.parts.filters.filter((_, i) => (mask & (1 << i)) === 0);
    if (filters.length === 0) return data;
    const whole = { size: this.bytes, elementSize: committed.elements.size, shape: this.#chunk };
    const filtered = applyFilters(data, filters, whole, posts.options.codecs);
    return filtered instanceof PendingBytes ? yield* settle(filtered) : filtered;
  }
}

/** Gives elements that have the fill value contents of their own in the heap: libhdf5 removes those of elements that it overwrites. */
function* ownContents({ fill, elements, structure }: WritableDataset, data: Uint8Array, to: End): Io<void> {
  if (!fill || !elements.points) return;
  const { dtype, size } = elements;
  const shared = Array.from(heapSlots(dtype, fill, 1)).filter(({ address }) => address > 0);
  if (shared.length === 0) return;
  yield* structure.heap.load(dtype, fill, 1);
  const contentOf = structure.heap.contents();
  const heap: HeapSlot[] = [];
  for (const { at, base, length, address, index } of heapSlots(dtype, data, data.length / size)) {
    if (!shared.some((slot) => slot.address === address && slot.index === index)) continue;
    const content = contentOf(address, index);
    if (content) heap.push({ at: at + 4, content: relocatedCopy(base, content, length, contentOf, () => undefined) });
  }
  const collections = new PendingCollections([{ bytes: data, owned: true, targets: [], heap }]);
  collections.assignAddresses(to.position);
  collections.patchIds();
  const images: Uint8Array[] = [];
  collections.encode((_address, image) => images.push(image));
  for (const image of images) yield* to.append(image);
}

function boxesFrom(rank: number, start: Float64Array, count: Float64Array) {
  return { rank, length: 1, starts: start, counts: count, size: sizeOf(count), itemOf: null, elementOf: null };
}
