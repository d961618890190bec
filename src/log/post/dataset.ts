import { containsReference } from '../../dtype/describe.ts';
import type { DType, TypedArray } from '../../dtype/model.ts';
import type { PendingHeap } from '../../hdf5/format/pending-heap.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkTree } from '../../hdf5/layouts/chunks/chunk-tree.ts';
import { boxInto, isPlainBox, manyInto, manyLength } from '../../space/check-boxes.ts';
import { fillWith } from '../../space/copy.ts';
import { type Blocks, dataLength, resolve, type Where } from '../../space/select.ts';
import { type Coordinates, sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import type { Anchor } from '../format/anchor.ts';
import { resizeAnchor } from '../format/new-anchor.ts';
import { encodeFillValue, filterEntries } from '../format/properties.ts';
import { type View, writeView } from '../format/view.ts';
import type { Log } from '../log.ts';
import type { ElementLayout } from '../read/boxes.ts';
import { BlockIndex } from '../read/index.ts';
import { OrdinaryDataset } from '../read/ordinary.ts';
import { Published, readInside } from '../read/published.ts';
import { goneBuffer } from './arena.ts';
import { Elements, notData, wrongLength } from './elements.ts';
import { type InMemory, type MemoryLayout, memoryBlocks, reordered, takeFrom } from './memory.ts';
import type { Posts } from './posts.ts';
import type { DatasetStage } from './stage.ts';

/** Elements up to here are copied in a loop; a call of `set` costs as much as about so many steps. */
const LOOP = 36;

export interface PostOptions {
  readonly copy?: boolean;
  readonly memory?: MemoryLayout;
}

/** What reading has found out about the committed blocks of a dataset. */
export interface KnownBlocks {
  readonly index: BlockIndex;
  /** Up to where the layout has everything, and the index nothing. */
  readonly floor: number;
  readonly isDeflated: boolean;
  readonly elementSize: number;
}

/** What posts must know of a dataset. */
interface Described {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  /** An encoded element; null: zeros. */
  readonly fill: Uint8Array | null;
}

/** A dataset that takes posts: everything a post needs without looking into the structure. */
export abstract class PostedDataset {
  readonly posts: Posts<PostedDataset>;
  readonly node: ObjectNode;
  readonly path: string;
  readonly elements: Elements;
  readonly maxShape: readonly (number | null)[];
  /** null: zeros. */
  readonly fill: Uint8Array | null;
  shape: readonly number[];
  #frozen: readonly number[] | null = null;
  #stage: DatasetStage<PostedDataset> | null = null;
  // A view of the stage's current chunk as the dataset's own number type, for small posts.
  #chunk: Uint8Array | null = null;
  #view: TypedArray | null = null;

  constructor(posts: Posts<PostedDataset>, node: ObjectNode, path: string, described: Described) {
    this.posts = posts;
    this.node = node;
    this.path = path;
    this.elements = new Elements(described.dtype);
    this.shape = described.shape;
    // Users get this list as it is.
    this.maxShape = Object.freeze(described.maxShape);
    this.fill = described.fill;
  }

  /** The shape for users, frozen when somebody asks for it: freezing the shape of every append would double its cost. */
  get frozenShape(): readonly number[] {
    if (this.#frozen !== this.shape) this.#frozen = Object.freeze(this.shape);
    return this.#frozen as readonly number[];
  }

  /** Throws if the shape cannot change, whatever the maximum shape says. */
  mustResize(): void {}

  /** File offset of its header. */
  abstract readonly headerAt: number;

  /** Whether the last link to it is gone. */
  get deleted(): boolean {
    return this.node.linkCount === 0;
  }

  /** The stage that takes posts until the next flush. */
  stage(): DatasetStage<PostedDataset> {
    let stage = this.#stage;
    if (stage && this.posts.isCurrent(stage)) return stage;
    stage = this.posts.openStage(this);
    this.#stage = stage;
    this.#chunk = null;
    return stage;
  }

  /** Posts one request. */
  post(data: unknown, where: Where | undefined, options: PostOptions | undefined): void {
    const isCopied = options === undefined || (options.copy !== false && options.memory === undefined);
    if (isCopied && isPlainBox(where) && this.elements.isNative(data)) {
      this.#postBox(data, where);
      return;
    }
    this.#postAny(data, where, options ?? {});
  }

  /** The fast path of nearly all writes: a typed array of the dataset's own type, and one box. Allocates nothing. */
  #postBox(data: TypedArray, where: { start: Coordinates; count: Coordinates }): void {
    const stage = this.stage();
    const rank = this.shape.length;
    stage.reserve(1);
    const size = boxInto(where, this.shape, stage.starts, stage.counts, stage.length * rank);
    if (data.length !== size) throw wrongLength(this.path, data.length, size);
    if (size === 0) return;
    const bytes = size * this.elements.size;
    this.posts.claim(bytes, this);
    if (!this.posts.isCurrent(stage)) {
      // The buffer was full and the stage was flushed: the post belongs to the next stage.
      this.#postBox(data, where);
      return;
    }
    const { arena } = stage;
    arena.reserve(bytes);
    if (size <= LOOP) {
      if (this.#chunk !== arena.chunk) this.#useChunk(arena.chunk, data);
      const view = this.#view as TypedArray;
      const at = arena.used / this.elements.size;
      let hasNan = false;
      for (let i = 0; i < size; i++) {
        const value = data[i] as number;
        view[at + i] = value;
        if (Number.isNaN(value)) hasNan = true;
      }
      // Copied as a number a NaN may lose payload bits.
      if (hasNan) arena.chunk.set(bytesOf(data), arena.used);
    } else arena.chunk.set(bytesOf(data), arena.used);
    arena.advance(bytes);
    stage.accept(bytes);
    this.posts.posted(1, bytes);
  }

  #useChunk(chunk: Uint8Array, like: TypedArray): void {
    const make = like.constructor as new (buffer: ArrayBufferLike, at: number, length: number) => TypedArray;
    this.#chunk = chunk;
    this.#view = new make(chunk.buffer, chunk.byteOffset, Math.floor(chunk.length / this.elements.size));
  }

  #postAny(given: unknown, where: Where | undefined, options: PostOptions): void {
    if (given === undefined || given === null) throw notData(this.path, given);
    const blocks = resolve(where, this.shape);
    const wanted = dataLength(blocks);
    const memory = options.memory && memoryBlocks(this.path, options.memory, wanted);
    const have = this.elements.count(given);
    const expected = memory ? sizeOf(memory.shape) : wanted;
    if (have !== expected) throw wrongLength(this.path, have, expected, given);
    if (blocks.size === 0) return;
    const bytes = blocks.size * this.elements.size;
    const lent = options.copy === false && this.elements.canWait(given);
    let held = lent ? 0 : bytes;
    if (lent) this.#lend(given, blocks, memory ?? null, bytes);
    else if (this.elements.points)
      held += this.#packPointing(bytes, (out, at, heap) => this.#pack(given, blocks, memory ?? null, out, at, heap));
    else {
      this.posts.claim(bytes, this);
      const stage = this.stage();
      const { arena } = stage;
      arena.reserve(bytes);
      this.#pack(given, blocks, memory ?? null, arena.chunk, arena.used);
      arena.advance(bytes);
    }
    this.#acceptBlocks(blocks, bytes);
    this.posts.posted(1, held);
  }

  /**
   * Puts elements that point elsewhere into the arena, and what they point to into the heap of the stage; returns the bytes that
   * the heap grew by. How many that are is known afterwards: a post that finds no room is taken back, and made again after a flush.
   */
  #packPointing(bytes: number, pack: (out: Uint8Array, at: number, heap: PendingHeap) => void): number {
    for (let isFirst = true; ; isFirst = false) {
      const stage = this.stage();
      const { arena } = stage;
      const heap = this.posts.heapOf(stage.owner);
      const mark = heap.mark();
      const before = heap.held;
      arena.reserve(bytes);
      try {
        pack(arena.chunk, arena.used, heap);
      } catch (error) {
        heap.rollback(mark);
        throw error;
      }
      const grown = heap.held - before;
      if (!isFirst || this.posts.hasRoom(bytes + grown)) {
        arena.advance(bytes);
        return grown;
      }
      heap.rollback(mark);
      this.posts.claim(bytes + grown, this);
    }
  }

  /** Flushes if what is about to be posted finds no room, or throws, as the post itself would. */
  claimFor(data: unknown, count: number): void {
    const bytes = count * this.elements.size;
    let grown = 0;
    if (this.elements.points && this.posts.hasLimit) {
      const heap = this.posts.heapOf(this.stage().owner);
      const mark = heap.mark();
      const before = heap.held;
      try {
        this.elements.encode(data, count, new Uint8Array(bytes), 0, heap);
        grown = heap.held - before;
      } finally {
        heap.rollback(mark);
      }
    }
    this.posts.claim(bytes + grown, this);
  }

  #acceptBlocks(blocks: Blocks, bytes: number): void {
    const stage = this.stage();
    if (blocks.length > 1 || (blocks.points && this.posts.options.keepsPoints)) {
      stage.acceptShared(blocks, bytes);
      return;
    }
    stage.reserve(1);
    const at = stage.length * this.shape.length;
    stage.starts.set(blocks.starts.subarray(0, this.shape.length), at);
    stage.counts.set(blocks.counts.subarray(0, this.shape.length), at);
    stage.accept(bytes);
  }

  /** The elements in the order of the blocks, in the file's type, into `out`. */
  #pack(data: unknown, blocks: Blocks, memory: InMemory | null, out: Uint8Array, at: number, heap?: PendingHeap): void {
    const { size } = this.elements;
    if (!memory && !blocks.itemOf) {
      if (this.elements.isNative(data)) out.set(bytesOf(data), at);
      else this.elements.encode(data, blocks.size, out, at, heap);
      return;
    }
    // Rare: the elements are not in file order. Everything is converted first, then picked.
    const total = this.elements.count(data);
    const all = new Uint8Array(total * size);
    this.elements.encode(data, total, all, 0, heap);
    const picked = memory ? takeFrom(all, memory, size) : all;
    out.set(blocks.itemOf ? reordered(picked, blocks.itemOf, size) : picked, at);
  }

  /** Keeps the caller's buffer until the flush. */
  #lend(data: TypedArray, blocks: Blocks, memory: InMemory | null, bytes: number): void {
    const { byteLength } = data;
    const check = (): void => {
      if (data.byteLength === byteLength) return;
      throw goneBuffer(this.path);
    };
    const plain = !memory && !blocks.itemOf && this.elements.isNative(data);
    this.stage().lend({
      size: bytes,
      bytes: () => {
        check();
        if (plain) return bytesOf(data);
        const out = new Uint8Array(bytes);
        this.#pack(data, blocks, memory, out, 0);
        return out;
      },
    });
  }

  /** Posts fill over a box, ignoring the buffer limit: a resize must not stop halfway. */
  postFill({ start, count }: { start: readonly number[]; count: readonly number[] }): void {
    const size = sizeOf(count);
    const bytes = size * this.elements.size;
    const stage = this.stage();
    stage.arena.reserve(bytes);
    fillWith(stage.arena.chunk, stage.arena.used, size, this.elements.size, this.fill);
    stage.arena.advance(bytes);
    stage.reserve(1);
    stage.starts.set(start, stage.length * start.length);
    stage.counts.set(count, stage.length * start.length);
    stage.accept(bytes);
    this.posts.posted(1, bytes);
  }

  /** The stage was flushed, or replaced by another. */
  forgetStage(stage: DatasetStage<PostedDataset>): void {
    if (this.#stage === stage) this.#stage = null;
  }

  /** Posts n blocks, in the caller's order. */
  postMany(data: unknown, starts: Coordinates, counts: Coordinates, copy: boolean): void {
    if (data === undefined || data === null) throw notData(this.path, data);
    const stage = this.stage();
    const rank = this.shape.length;
    const n = manyLength(starts, rank);
    if (Number.isInteger(n)) stage.reserve(n);
    const { length, size } = manyInto(starts, counts, this.shape, stage.starts, stage.counts, stage.length * rank);
    const have = this.elements.count(data);
    if (have !== size) throw wrongLength(this.path, have, size, data);
    if (size === 0) return;
    const bytes = size * this.elements.size;
    const lent = !copy && this.elements.canWait(data);
    let held = lent ? 0 : bytes;
    if (lent) {
      const blocks = { size, itemOf: null } as Blocks;
      this.#lend(data, blocks, null, bytes);
    } else if (this.elements.points) {
      held += this.#packPointing(bytes, (out, at, heap) => this.elements.encode(data, size, out, at, heap));
      if (!this.posts.isCurrent(stage)) {
        // The buffer was full: the lists that the blocks were written to have been flushed.
        const now = this.stage();
        now.reserve(n);
        manyInto(starts, counts, this.shape, now.starts, now.counts, now.length * rank);
        now.acceptMany(length, bytes);
        this.posts.posted(length, held);
        return;
      }
    } else {
      this.posts.claim(bytes, this);
      if (!this.posts.isCurrent(stage)) {
        this.postMany(data, starts, counts, copy);
        return;
      }
      const { arena } = stage;
      arena.reserve(bytes);
      if (this.elements.isNative(data)) arena.chunk.set(bytesOf(data), arena.used);
      else this.elements.encode(data, size, arena.chunk, arena.used);
      arena.advance(bytes);
    }
    stage.acceptMany(length, bytes);
    this.posts.posted(length, held);
  }
}

/** A dataset of the log while the file is open: everything a post or a read needs without looking into the structure. */
export class LogDataset extends PostedDataset {
  readonly log: Log;
  readonly id: number;
  /** The number of its log, in a file whose logs have numbers. */
  readonly logNumber: number;
  readonly chunks: readonly number[] | null;
  readonly filters: ReturnType<typeof filterEntries>;
  /** Entries within one record name it once. */
  readonly records: boolean;
  /** Whether it was ever smaller than before, so that committed data may come back into view; null: not known yet. */
  wasShrunk: boolean | null = null;
  /**
   * After a resize by several ranks, until the next flush: beyond this extent committed data was cut off. Rank 0 has posted fill
   * where the dataset grew again; the other ranks do not see its posts, but must not see what was cut off either.
   */
  validExtent: readonly number[] | null = null;
  /** Committed blocks, those of the layout not among them; null until the first read. */
  index: BlockIndex | null = null;
  /** What other programs see; null: never published. */
  published: Published | null;
  /** What they will see once the commit under way is in the file; null: none, or it does not publish this dataset. */
  planned: View | null = null;
  /** The original deflated its data, which only the data tells. */
  isDeflated = false;

  constructor(log: Log, node: ObjectNode, path: string, anchor: Anchor) {
    const { dtype, fill, fillBytes } = anchor;
    super(log, node, path, {
      ...anchor,
      fill: fillBytes ?? (fill === undefined ? null : encodeFillValue(dtype, fill)),
    });
    this.log = log;
    this.id = anchor.id;
    this.logNumber = log.numberOf(anchor);
    this.chunks = anchor.chunks;
    this.filters = filterEntries(anchor.filters, this.elements.size);
    this.records = anchor.maxShape.length > 0 && anchor.maxShape[0] === null;
    this.published = anchor.view && this.publishedAs(anchor.view);
  }

  /** What classic entries say of its filters: none, deflate, or others. */
  get filterCode(): number {
    const { filters } = this;
    return filters.length === 0 ? 0 : filters.length === 1 && filters[0]?.id === DEFLATE ? 1 : 2;
  }

  /** The layout that the header describes. */
  publishedAs(view: View, tree: ChunkTree | null = null): Published {
    const { log, node, path } = this;
    const options = { codecs: log.options.codecs, open: () => null };
    return new Published(view, () => new OrdinaryDataset(log.structure, node, path, options), tree);
  }

  /** The ordinary layout, for reads. h5repack, which moves logs, loses references in layouts: such data is read from the log alone. */
  get base(): Published | null {
    const { published, elements, log } = this;
    return published && containsReference(elements.dtype) && log.main.isMoved ? null : published;
  }

  /** What the layout has of some blocks, one after the other, as the log would have it. */
  *readBase({ data, visible }: Published, blocks: Blocks, packed: Uint8Array): Io<void> {
    yield* readInside(data, blocks, visible, this.fill, packed);
    if (this.elements.points) yield* this.log.pointers.fromLayout(this.elements, packed);
  }

  /** Whether another program has changed the dataspace since the dataset was published. */
  get hasForeignShape(): boolean {
    const { published } = this;
    return published?.view.shape.some((size, d) => size !== published.data.shape[d]) ?? false;
  }

  /** The shape for the header, with the next commit. What lies outside of a smaller shape is gone from the layout, too. */
  writeShape(shape: readonly number[]): void {
    this.log.structure.announce();
    const { log, node, published, planned } = this;
    resizeAnchor(log.structure, node, shape);
    log.touched.add(this);
    if (planned && isCutBy(shape, planned)) this.planned = { ...planned, cut: cutBy(shape, planned) };
    // Another program has changed the dataspace: from now on the shape in the log counts again.
    const current = published && this.hasForeignShape ? published.withShape(published.data.shape) : published;
    this.published = current && isCutBy(shape, current.view) ? current.cutTo(cutBy(shape, current.view)) : current;
    const view = this.planned ?? this.published?.view;
    if (view && (this.planned !== planned || this.published !== published)) writeView(log.structure, node, view);
  }

  /** A commit has put the planned view into the file. */
  wasPublished(tree: ChunkTree | null): void {
    const { planned, log } = this;
    if (!planned || this.deleted) return;
    this.planned = null;
    tree?.committed(log.structure.loader.file);
    this.published = this.publishedAs(planned, tree);
    if (!this.base) return;
    // Everything that is committed is in the layout.
    this.index = new BlockIndex(this.shape.length);
    this.index.covered = log.tables.committed.coverage;
  }

  get #floor(): number {
    return this.base?.view.end ?? 0;
  }

  /** Gives the index away, to the same dataset in a newer state: two must not add to it. */
  giveBlocks(): KnownBlocks | null {
    const { index, isDeflated, elements } = this;
    this.index = null;
    return index && { index, floor: this.#floor, isDeflated, elementSize: elements.size };
  }

  /** Takes the index of the same dataset in an earlier state; the next read adds what is new. */
  takeBlocks({ index, floor, isDeflated, elementSize }: KnownBlocks): void {
    if (elementSize !== this.elements.size || index.rank !== this.shape.length || floor !== this.#floor) return;
    this.index = index;
    this.isDeflated = isDeflated;
  }

  /** How its elements are stored, for those who read or write blocks. */
  get layout(): ElementLayout {
    const { elements, fill, filters, log } = this;
    return { size: elements.size, fill, filters, codecs: log.options.codecs };
  }

  /** File offset of its header. */
  override get headerAt(): number {
    return this.log.main.base + this.node.address;
  }
}

/** Number of the filter. */
const DEFLATE = 1;

function isCutBy(shape: readonly number[], view: View): boolean {
  const before = view.cut ?? view.shape;
  return shape.some((size, d) => size < (before[d] as number));
}

function cutBy(shape: readonly number[], view: View): number[] {
  return (view.cut ?? view.shape).map((size, d) => Math.min(size, shape[d] as number));
}

export function bytesOf(data: TypedArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
