import { mostBytes, mostHeap } from '#platform';
import { atOffset, H5LogError, inObject } from '../../base/errors.ts';
import { arrayKind } from '../../dtype/convert.ts';
import type { Resolver } from '../../dtype/decode.ts';
import type { TypedArray } from '../../dtype/model.ts';
import { pendingContents } from '../../hdf5/format/pending-heap.ts';
import { boxAt, endOf } from '../../space/box.ts';
import { manyInto, manyLength } from '../../space/check-boxes.ts';
import { type Blocks, dataLength, resolve, type Where } from '../../space/select.ts';
import { type Coordinates, sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { bytesOf, type LogDataset } from '../post/dataset.ts';
import { type InMemory, type MemoryLayout, memoryBlocks, putInto, reordered } from '../post/memory.ts';
import type { WritableDataset } from '../post/writable.ts';
import { BoxReader } from './boxes.ts';
import type { BlockIndex } from './index.ts';
import type { OrdinaryDataset } from './ordinary.ts';
import { applyPatches, fillOutside, pendingIn } from './overlay.ts';
import { mixedValues, type Published, readInside } from './published.ts';
import type { Committed } from './tables.ts';

export interface ReadRequest {
  readonly memory?: MemoryLayout;
  readonly into?: TypedArray | undefined;
  readonly raw?: boolean | undefined;
}

/** Boxes of a dataset as they were when the read was asked for. */
export interface FixedBoxes {
  /** Reads them one after the other into packed bytes, which may be known to be zero. */
  read(packed: Uint8Array, isZero?: boolean): Io<void>;
  /** Finds what elements refer to outside of themselves; not needed for most types. */
  resolver?: ((bytes: Uint8Array, count: number) => Io<Resolver>) | undefined;
}

/** What can be read: a dataset of the log, an ordinary one, or an ordinary one that may be changed. */
export type Readable = LogDataset | OrdinaryDataset | WritableDataset;

/** A read. What it sees is fixed when it is created; the file is read when it runs. */
export class Reading {
  readonly #source: Readable;
  readonly #blocks: Blocks;
  readonly #request: ReadRequest;
  readonly #memory: InMemory | null;
  readonly #packed: Uint8Array<ArrayBuffer>;
  readonly #boxes: FixedBoxes;
  #resolver: Resolver | undefined;

  private constructor(source: Readable, blocks: Blocks, request: ReadRequest, deferred: boolean) {
    const { elements, path } = source;
    this.#source = source;
    this.#blocks = blocks;
    this.#request = request;
    this.#memory = request.memory ? memoryBlocks(path, request.memory, dataLength(blocks)) : null;
    const total = this.#memory ? sizeOf(this.#memory.shape) : dataLength(blocks);
    if (request.into !== undefined && arrayKind(request.into) === undefined) {
      throw new H5LogError('DTYPE', `${path}: 'into' must be a typed array`, { object: path });
    }
    if (request.into && request.into.length !== total) {
      const text = `${path}: an array of ${request.into.length} elements to read ${total} into`;
      throw new H5LogError('SHAPE', text, { object: path });
    }
    const direct = request.into && elements.isNative(request.into) && !this.#memory && !blocks.elementOf;
    const values = request.raw || request.into ? 0 : elements.heapBytes(total);
    if (values > 0 && values > mostHeap()) throw tooLarge(source, total * elements.size);
    this.#packed = direct
      ? (bytesOf(request.into) as Uint8Array<ArrayBuffer>)
      : room(source, blocks.size * elements.size);
    this.#boxes = boxesOf(source, blocks, deferred);
  }

  /** `deferred`: other code may run before the read is finished. */
  static of(source: Readable, where: Where | undefined, request: ReadRequest, deferred: boolean): Reading {
    return new Reading(source, isNull(source) ? NO_BLOCKS : resolve(where, source.shape), request, deferred);
  }

  /** The blocks one after the other, in the caller's order. */
  static many(
    source: Readable,
    starts: Coordinates,
    counts: Coordinates,
    request: ReadRequest,
    deferred: boolean,
  ): Reading {
    if (isNull(source)) return new Reading(source, NO_BLOCKS, request, deferred);
    const rank = source.shape.length;
    const n = Math.max(0, Math.floor(manyLength(starts, rank)));
    const [flatStarts, flatCounts] = [new Float64Array(n * rank), new Float64Array(n * rank)];
    const { length, size } = manyInto(starts, counts, source.shape, flatStarts, flatCounts, 0);
    const blocks: Blocks = {
      rank,
      length,
      size,
      starts: flatStarts,
      counts: flatCounts,
      itemOf: null,
      elementOf: null,
    };
    return new Reading(source, blocks, request, deferred);
  }

  *run(): Io<void> {
    const boxes = this.#boxes;
    yield* boxes.read(this.#packed, this.#packed.buffer !== this.#request.into?.buffer);
    if (!boxes.resolver || this.#request.raw) return;
    try {
      this.#resolver = yield* boxes.resolver(this.#packed, this.#blocks.size);
    } catch (error) {
      const { headerAt, path } = this.#source;
      throw inObject(atOffset(error, headerAt), path);
    }
  }

  /** What the caller gets. */
  result(): unknown {
    const { elements } = this.#source;
    const { into, raw } = this.#request;
    let bytes = this.#packed;
    let count = this.#blocks.size;
    const { elementOf } = this.#blocks;
    if (elementOf) {
      bytes = reordered(bytes, elementOf, elements.size);
      count = elementOf.length;
    }
    const memory = this.#memory;
    if (memory) return this.#scatter(bytes, memory);
    if (raw) return bytes;
    if (!into) return this.#decoded(bytes, count);
    if (bytes !== this.#packed || bytes.buffer !== into.buffer) elements.decodeInto(bytes, count, into);
    return into;
  }

  /** The values; an unsound datatype is noticed here, and is in the dataset's header. */
  #decoded(bytes: Uint8Array<ArrayBuffer>, count: number): unknown {
    const { elements, headerAt } = this.#source;
    try {
      return elements.decode(bytes, count, this.#resolver);
    } catch (error) {
      throw atOffset(error, headerAt);
    }
  }

  /** Puts the elements where the memory selection says; the rest of the caller's array stays as it is. */
  #scatter(bytes: Uint8Array<ArrayBuffer>, memory: InMemory): unknown {
    const { elements, path } = this.#source;
    const { into, raw } = this.#request;
    const { blocks, shape } = memory;
    const ordered = blocks.itemOf ? reordered(bytes, blocks.itemOf, elements.size) : bytes;
    if (into) {
      const same: boolean = elements.isNative(into as unknown);
      if (!same) {
        const values = new (into.constructor as new (n: number) => TypedArray)(blocks.size);
        elements.decodeInto(ordered, blocks.size, values);
        putInto(bytesOf(into), memory, bytesOf(values), values.BYTES_PER_ELEMENT);
      } else putInto(bytesOf(into), memory, ordered, elements.size);
      return into;
    }
    if (blocks.size > sizeOf(shape))
      throw new H5LogError('SELECTION', `${path}: more elements than the memory holds`, { object: path });
    const target = room(this.#source, sizeOf(shape) * elements.size);
    putInto(target, memory, ordered, elements.size);
    return raw ? target : this.#decoded(target, sizeOf(shape));
  }
}

/** Fixes what a read of blocks will see. */
export function boxesOf(source: Readable, blocks: Blocks, deferred: boolean): FixedBoxes {
  if ('log' in source) return new LogBoxes(source, blocks, deferred);
  return 'committed' in source ? new ChangedBoxes(source, blocks, deferred) : source.boxes(blocks);
}

/** Boxes of an ordinary dataset, with what waits for the next flush. */
class ChangedBoxes implements FixedBoxes {
  readonly #dataset: WritableDataset;
  readonly #committed: OrdinaryDataset;
  readonly #blocks: Blocks;
  /** Up to where the committed data counts. */
  readonly #visible: Float64Array;
  readonly #patches: ReturnType<typeof pendingIn>[] = [];
  readonly resolver: FixedBoxes['resolver'];

  constructor(dataset: WritableDataset, blocks: Blocks, deferred: boolean) {
    this.#dataset = dataset;
    this.#committed = dataset.committed;
    this.#blocks = blocks;
    this.#visible = Float64Array.from(dataset.committed.shape);
    const stages = dataset.posts.stagesOf(dataset);
    const heaps = stages.flatMap(({ owner }) => owner.heap ?? []);
    const contents = heaps.length > 0 ? pendingContents(heaps) : undefined;
    this.resolver = dataset.committed.resolver(contents, (reference) => dataset.addressOf(reference));
    for (const { extent } of stages)
      extent?.forEach((size, d) => {
        this.#visible[d] = Math.min(size, this.#visible[d] as number);
      });
    if (stages.length === 0) return;
    for (let i = 0; i < blocks.length; i++) {
      const { start, count } = boxAt(blocks, i);
      this.#patches.push(
        stages.flatMap((stage) => [
          ...(stage.extent ? fillOutside(dataset, stage.extent, start, count) : []),
          ...pendingIn([stage], dataset, start, count, deferred),
        ]),
      );
    }
  }

  *read(packed: Uint8Array): Io<void> {
    const { elements, fill } = this.#dataset;
    const blocks = this.#blocks;
    yield* readInside(this.#committed, blocks, this.#visible, fill, packed);
    let at = 0;
    for (let i = 0; i < this.#patches.length; i++) {
      const { count } = boxAt(blocks, i);
      applyPatches(this.#patches[i] as ReturnType<typeof pendingIn>, packed, at, count, elements.size);
      at += elements.size * sizeOf(count);
    }
  }
}

/**
 * Boxes of a dataset of the log. The value of an element is that of the newest block committed after the dataset was last published,
 * else what its ordinary layout holds, else the fill value; then what was pending is copied over all of it.
 */
class LogBoxes implements FixedBoxes {
  readonly #dataset: LogDataset;
  readonly #blocks: Blocks;
  /** The ordinary layout; null if there is none. */
  readonly #base: Published | null;
  readonly #index: BlockIndex | null;
  readonly #limit: number;
  /** The tables at the creation of the read: it must not see what is flushed while it waits. */
  readonly #tables: Committed;
  readonly #patches: ReturnType<typeof pendingIn>[] = [];
  /** The layout, if the log was moved and all elements are from the layout: those point to where things are now. */
  #movedLayout: OrdinaryDataset | null = null;
  readonly resolver?: (bytes: Uint8Array, count: number) => Io<Resolver>;

  constructor(dataset: LogDataset, blocks: Blocks, deferred: boolean) {
    dataset.log.mustHoldData();
    const { log, elements } = dataset;
    if (elements.points) {
      // Heaps of flushed posts stay as they are while a read has them.
      const heaps = log.stagesOf(dataset).flatMap(({ owner }) => owner.heap ?? []);
      this.resolver = (bytes, count) =>
        this.#movedLayout?.resolver()?.(bytes, count) ?? log.pointers.resolver(elements.dtype, bytes, count, heaps);
    }
    this.#dataset = dataset;
    this.#blocks = blocks;
    this.#base = dataset.base;
    this.#tables = dataset.log.tables.committed;
    this.#index = dataset.index?.covered === this.#tables.coverage ? dataset.index : null;
    this.#limit = this.#index?.length ?? 0;
    const stages = dataset.log.stagesOf(dataset);
    const { validExtent } = dataset;
    if (stages.length === 0 && !validExtent) return;
    for (let i = 0; i < blocks.length; i++) {
      const { start, count } = boxAt(blocks, i);
      const gone = validExtent ? fillOutside(dataset, validExtent, start, count) : [];
      this.#patches.push([...gone, ...pendingIn(stages, dataset, start, count, deferred)]);
    }
  }

  *read(packed: Uint8Array): Io<void> {
    const { log, elements, layout } = this.#dataset;
    const blocks = this.#blocks;
    const base = this.#base;
    if (blocks.size === 0) return;
    const whole = yield* this.#wholeIndex();
    // The cached index grows with the next flush: blocks beyond `limit` are newer than this read.
    const limit = this.#index ? this.#limit : (whole?.length ?? Infinity);
    if (base) yield* this.#dataset.readBase(base, blocks, packed);
    const isPlain = base !== null && limit === 0;
    if (base && elements.points && log.main.ranges.isMoved) {
      if (!isPlain) throw mixedValues();
      this.#movedLayout = base.data;
    }
    if (isPlain && this.#patches.length === 0) return;
    const over = base !== null;
    const one = whole && new BoxReader(log.files, whole, limit, layout, over);
    let at = 0;
    for (let i = 0; i < blocks.length; i++) {
      const { start, count } = boxAt(blocks, i);
      if (!isPlain) {
        const reader = one ?? new BoxReader(log.files, yield* this.#indexOf(start, count), limit, layout, over);
        yield* reader.read(start, count, packed, at);
      }
      const patches = this.#patches[i];
      if (patches) applyPatches(patches, packed, at, count, elements.size);
      at += elements.size * sizeOf(count);
    }
  }

  /** All committed blocks of the dataset, or null if they would take more memory than allowed. */
  *#wholeIndex(): Io<BlockIndex | null> {
    if (this.#index) return this.#index;
    return yield* this.#dataset.log.tables.whole(this.#dataset, this.#tables, this.#base?.floor);
  }

  /** The blocks that touch a box, where an index of all would exceed the index limit. */
  *#indexOf(start: Float64Array, count: Float64Array): Io<BlockIndex> {
    const { tables } = this.#dataset.log;
    const box = { low: start, high: endOf(start, count) };
    return yield* tables.index(this.#dataset, box, this.#tables, this.#base?.floor);
  }
}

/** Of a NULL dataspace. */
const NO_BLOCKS: Blocks = {
  rank: 0,
  length: 0,
  size: 0,
  starts: new Float64Array(0),
  counts: new Float64Array(0),
  itemOf: null,
  elementOf: null,
};

const isNull = (source: Readable): boolean => {
  const ordinary = 'committed' in source ? source.committed : source;
  return 'isNull' in ordinary && ordinary.isNull;
};

/** What has elements of some size. */
type Sized = Pick<LogDataset, 'path' | 'elements'>;

/** Zeroed bytes for a result. */
function room(source: Sized, bytes: number): Uint8Array<ArrayBuffer> {
  if (bytes > mostBytes()) throw tooLarge(source, bytes);
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    throw tooLarge(source, bytes, cause);
  }
}

/** A dataset may be larger than any memory: a file of a few KiB can declare it and hold no data. */
function tooLarge({ path, elements }: Sized, bytes: number, cause?: unknown): H5LogError {
  const text = `${path}: ${bytes / elements.size} elements are more than can be held at once; read it in parts`;
  return new H5LogError('UNSUPPORTED', text, { object: path, cause });
}
