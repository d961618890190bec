import { atOffset, formatError, H5LogError, inObject, isH5LogError } from '../../base/errors.ts';
import type { Resolver } from '../../dtype/decode.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import { adoptPointers, Pointers } from '../../dtype/pointers.ts';
import { translation } from '../../dtype/translate.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ObjectTree } from '../../hdf5/graph/object-tree.ts';
import { parseMappings, type StoredMapping } from '../../hdf5/layouts/virtual.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import {
  type Box,
  type Boxes,
  boxAt,
  clipInto,
  endOf,
  halves,
  isContiguous,
  overlaps,
  positionIn,
} from '../../space/box.ts';
import { BoxList } from '../../space/box-list.ts';
import { copyPlaces, fillWith, scatter } from '../../space/copy.ts';
import type { Blocks } from '../../space/select.ts';
import { sizeOf, stridesOf } from '../../space/shape.ts';
import { type Io, onStorage } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import type { LogDataset } from '../post/dataset.ts';
import {
  boundsOf,
  extentOf,
  gridOfBlock,
  gridOfSlices,
  lengthOf,
  Mapped,
  type Ordered,
  orderedIn,
  slicesWithin,
  type Unlimited,
} from './mapped.ts';
import { OrdinaryDataset, type OrdinaryOptions } from './ordinary.ts';
import { boxesOf, type FixedBoxes } from './reading.ts';
import { NumberList, PackedTree } from './rtree.ts';

/** A dataset that others show parts of; `storage` is that of its file if it is another one. */
export interface VirtualSource {
  readonly dataset: LogDataset | OrdinaryDataset;
  readonly storage: ByteStorage | null;
}

interface VirtualOptions extends OrdinaryOptions {
  /** A dataset of another file, or of this one ('.'); null if there is none. */
  source(file: string, dataset: string): VirtualSource | null;
}

/** A mapping as it is now: one source, and no end open. */
interface Piece {
  readonly file: string;
  readonly dataset: string;
  readonly target: Ordered;
  /** The elements of the source, whose shape may still matter. */
  source(shape: readonly number[]): Ordered;
}

/** Virtual datasets that show one another, and the work that a file may cause: their number grows as a power of their depth. */
const MOST_NESTED = 16;
const MOST_WORK = 2e7;
/** What looking at a source costs, in elements. */
const VISIT = 1000;
/** Sources whose names have a number; more files than that are no run of files. */
const MOST_NUMBERED = 1e6;
/** Bytes that are read from a source at a time, and elements where each may lie by itself. */
const WINDOW = 8 * 2 ** 20;
const MOST_SCATTERED = 2 ** 14;
/** Elements that are read for one that is wanted. */
const MOST_SPREAD = 8;

/** How deep a read is in virtual datasets, and what it may still cost. */
interface Nesting {
  readonly depth: number;
  readonly work: { left: number };
}

/** A virtual dataset, for reads: its elements are those of other datasets. */
export class VirtualDataset extends OrdinaryDataset {
  override readonly shape: readonly number[];
  readonly #options: VirtualOptions;
  readonly #pieces: readonly Piece[];
  readonly #bounds: Boxes;
  readonly #tree: PackedTree | null;
  readonly #mapped = new Map<number, { readonly shape: readonly number[]; readonly mapped: Mapped }>();

  private constructor(
    tree: ObjectTree,
    node: ObjectNode,
    path: string,
    options: VirtualOptions,
    shape: readonly number[],
    pieces: readonly Piece[],
  ) {
    super(tree, node, path, options);
    this.shape = shape;
    this.#options = options;
    this.#pieces = pieces;
    const rank = shape.length;
    const list = new BoxList(rank, pieces.length);
    const zero = new Float64Array(rank);
    for (const { target } of pieces) {
      const bounds = boundsOf(target);
      if (bounds && bounds.low.length !== rank)
        throw formatError(`a mapping of ${bounds.low.length} dimensions in a dataset of ${rank}`);
      list.push(bounds?.low ?? zero, bounds?.high ?? zero);
    }
    this.#bounds = list.toBoxes();
    this.#tree = pieces.length > 16 && rank > 0 ? new PackedTree(this.#bounds, 0, pieces.length) : null;
  }

  /** Sources of mappings without a limit are opened: they decide about the shape. */
  static *open(tree: ObjectTree, node: ObjectNode, path: string, options: VirtualOptions): Io<VirtualDataset> {
    const { space } = tree.dataset(node);
    const stored = space.kind === 'simple' ? space.shape : [];
    const limits = space.kind === 'simple' ? space.maxShape : [];
    try {
      const mappings = yield* readMappings(tree, node);
      const shape = extentWith(mappings, stored, limits, options);
      const pieces: Piece[] = [];
      for (const mapping of mappings) addPieces(mapping, shape, stored, options, pieces);
      return new VirtualDataset(tree, node, path, options, shape, pieces);
    } catch (error) {
      throw atOffset(error, tree.loader.file.base + node.address);
    }
  }

  override boxes(blocks: Blocks, nesting?: Nesting): FixedBoxes {
    const { dtype } = this.elements;
    const pointers = containsVlen(dtype) || containsReference(dtype) ? new Pointers() : null;
    const work = nesting?.work ?? { left: MOST_WORK + VISIT * blocks.size };
    const inner = { depth: (nesting?.depth ?? 0) + 1, work };
    const read = (packed: Uint8Array): Io<void> => this.#readAll(blocks, packed, inner, pointers);
    if (!pointers) return { read };
    // biome-ignore lint/correctness/useYield: the sources have been read
    const resolver = function* (): Io<Resolver> {
      return pointers;
    };
    return { read, resolver };
  }

  *#readAll(blocks: Blocks, packed: Uint8Array, nesting: Nesting, pointers: Pointers | null): Io<void> {
    try {
      if (nesting.depth > MOST_NESTED)
        throw formatError(`virtual datasets are nested more than ${MOST_NESTED} deep, or lead to themselves`);
      if (blocks.size === 0) return;
      fillWith(packed, 0, blocks.size, this.elements.size, this.fill);
      const offsets = new Float64Array(blocks.length);
      for (let i = 1, at = 0; i < blocks.length; i++) {
        at += sizeOf(blocks.counts.subarray((i - 1) * blocks.rank, i * blocks.rank)) * this.elements.size;
        offsets[i] = at;
      }
      // In the order of the mappings: where they overlap the last one wins.
      for (const [piece, boxes] of this.#touched(blocks)) {
        const { file, dataset } = this.#pieces[piece] as Piece;
        const source = this.#options.source(file, dataset);
        if (source) yield* this.#readPiece(piece, source, blocks, boxes, offsets, packed, nesting, pointers);
      }
    } catch (error) {
      throw inObject(atOffset(error, this.headerAt), this.path);
    }
  }

  /** The mappings that blocks touch, each with the numbers of these blocks. */
  #touched(blocks: Blocks): Map<number, number[]> {
    const touched = new Map<number, number[]>();
    const { starts, counts, rank, length } = this.#bounds;
    for (let i = 0; i < blocks.length; i++) {
      const { start, count } = boxAt(blocks, i);
      const high = endOf(start, count);
      const found = new NumberList();
      if (this.#tree) this.#tree.query(start, high, found);
      else for (let k = 0; k < length; k++) if (overlaps(starts, counts, k * rank, rank, start, high)) found.push(k);
      for (const piece of found.values.subarray(0, found.length)) {
        const list = touched.get(piece);
        if (list) list.push(i);
        else touched.set(piece, [i]);
      }
    }
    return new Map([...touched].sort(([a], [b]) => a - b));
  }

  #mapping(piece: number, { dataset }: VirtualSource): Mapped {
    const known = this.#mapped.get(piece);
    const { shape } = dataset;
    if (known?.shape.every((size, d) => size === shape[d])) return known.mapped;
    const { target, source } = this.#pieces[piece] as Piece;
    const ordered = source(shape);
    const rank = 'start' in ordered ? ordered.start.length : ordered.boxes.rank;
    if (rank !== shape.length && lengthOf(ordered) > 0)
      throw formatError(`a mapping of ${rank} dimensions to ${dataset.path}, which has ${shape.length}`);
    const mapped = new Mapped(target, ordered);
    this.#mapped.set(piece, { shape: [...shape], mapped });
    return mapped;
  }

  *#readPiece(
    piece: number,
    source: VirtualSource,
    blocks: Blocks,
    numbers: readonly number[],
    offsets: Float64Array,
    packed: Uint8Array,
    nesting: Nesting,
    pointers: Pointers | null,
  ): Io<void> {
    const mapped = this.#mapping(piece, source);
    const reader = new SourceReader(source, this, nesting, pointers);
    const { rank, starts, counts } = this.#bounds;
    for (const i of numbers) {
      const box = boxAt(blocks, i);
      const shared = { start: new Float64Array(rank), count: new Float64Array(rank) };
      const high = endOf(box.start, box.count);
      clipInto(starts, counts, piece * rank, rank, box.start, high, shared.start, shared.count, 0);
      const most = reader.isDense(mapped) ? Math.max(1, WINDOW / reader.width / mapped.spread) : MOST_SCATTERED;
      const waiting: Box[] = [shared];
      for (let window = waiting.pop(); window; window = waiting.pop()) {
        if (sizeOf(window.count) > most) {
          const { first, later, second } = halves(window.start, window.count);
          waiting.push({ start: later, count: second }, { start: window.start, count: first });
          continue;
        }
        const into = { out: packed, at: offsets[i] as number, ...box };
        yield* reader.read(mapped, window.start, endOf(window.start, window.count), into);
      }
    }
  }
}

/** A box of the virtual dataset in the bytes of a read. */
interface Into {
  readonly out: Uint8Array;
  readonly at: number;
  readonly start: Float64Array;
  readonly count: Float64Array;
}

/** Reads from one source what a virtual dataset shows of it. */
class SourceReader {
  readonly #source: VirtualSource;
  readonly #target: OrdinaryDataset;
  readonly #nesting: Nesting;
  readonly #pointers: Pointers | null;
  readonly #translate: ReturnType<typeof translation>;
  /** Bytes of an element, on the side where they are more. */
  readonly width: number;

  constructor(source: VirtualSource, target: OrdinaryDataset, nesting: Nesting, pointers: Pointers | null) {
    this.#source = source;
    this.#target = target;
    this.#nesting = nesting;
    this.#pointers = pointers;
    const { dtype, size } = source.dataset.elements;
    this.#translate = translation(dtype, target.elements.dtype);
    this.width = Math.max(size, target.elements.size);
    if (size > WINDOW && this.#translate)
      throw new H5LogError('UNSUPPORTED', `elements of ${size} bytes cannot be converted`);
  }

  /** Whether elements are read together, with what lies between them. */
  isDense(mapped: Mapped): boolean {
    return mapped.isBox || (!this.#pointers && mapped.spread <= MOST_SPREAD);
  }

  *read(mapped: Mapped, low: Float64Array, high: Float64Array, into: Into): Io<void> {
    if (!mapped.isBox && this.isDense(mapped)) {
      yield* this.#readDense(mapped, low, high, into);
      return;
    }
    const { dataset } = this.#source;
    const { size } = this.#target.elements;
    const pairs = { targets: new BoxList(low.length), sources: new BoxList(dataset.shape.length) };
    const count = mapped.collect(low, high, pairs);
    this.#spend(count);
    if (count === 0) return;
    const { starts, counts, length, rank } = pairs.targets.toBoxes();
    for (let k = 0; k < starts.length; k++) starts[k] = (starts[k] as number) - (into.start[k % rank] as number);
    const isRun = length === 1 && !this.#translate && !this.#pointers && isContiguous(into.count, counts);
    const from = into.at + positionIn(into.count, starts.subarray(0, rank)) * size;
    const bytes = isRun ? into.out.subarray(from, from + count * size) : new Uint8Array(count * dataset.elements.size);
    yield* this.#fetch(pairs.sources, count, bytes);
    if (isRun) return;
    const translated = this.#translate ? this.#translate(bytes, count) : bytes;
    for (let i = 0, at = 0; i < length; i++)
      at = scatter(translated, at, into.out, into.at, into.count, starts, counts, size, i * rank);
  }

  #spend(elements: number): void {
    const { work } = this.#nesting;
    work.left -= VISIT + elements;
    if (work.left < 0) throw formatError('virtual datasets that show one another many times over');
  }

  /** Reads the box around the elements that are wanted, and takes these out of it. */
  *#readDense(mapped: Mapped, low: Float64Array, high: Float64Array, into: Into): Io<void> {
    const window = mapped.window(low, high);
    if (!window) return;
    const { lo, hi, along, targets, sources } = window;
    const { dataset } = this.#source;
    const { size } = this.#target.elements;
    const span = new BoxList(lo.length);
    span.push(lo, hi);
    const count = span.volume();
    this.#spend(count);
    const bytes = new Uint8Array(count * dataset.elements.size);
    yield* this.#fetch(span, count, bytes);
    const translated = this.#translate ? this.#translate(bytes, count) : bytes;
    const inSource = stridesOf(lo.map((x, d) => (hi[d] as number) - x));
    const inTarget = stridesOf(into.count);
    const places = (at: Float64Array, from: number, stride: number) => at.map((x) => (x - from) * stride * size);
    copyPlaces(
      translated,
      sources.map((at, d) => places(at, lo[along[d] as number] ?? 0, inSource[along[d] as number] ?? 0)),
      into.out.subarray(into.at),
      targets.map((at, d) => places(at, into.start[d] as number, inTarget[d] as number)),
      size,
    );
  }

  /** The elements of boxes of the source one after the other; beyond its shape they are its fill value. */
  *#fetch(sources: BoxList, count: number, bytes: Uint8Array): Io<void> {
    const { dataset } = this.#source;
    const { shape, elements } = dataset;
    const { rank, length, lo, hi } = sources;
    let isInside = true;
    for (let k = 0; k < length * rank; k++) if ((hi[k] as number) > (shape[k % rank] as number)) isInside = false;
    const whole = sources.toBoxes();
    if (isInside) {
      yield* this.#packed(whole, count, bytes);
      return;
    }
    fillWith(bytes, 0, count, elements.size, dataset.fill);
    const inside = new BoxList(rank, length);
    const places: number[] = [];
    for (let i = 0, at = 0; i < length; i++) {
      const low = lo.subarray(i * rank, (i + 1) * rank);
      const high = hi.slice(i * rank, (i + 1) * rank).map((x, d) => Math.min(x, shape[d] as number));
      if (low.every((x, d) => x < (high[d] as number))) {
        inside.push(low, high);
        places.push(i, at);
      }
      at += sizeOf(whole.counts.subarray(i * rank, (i + 1) * rank)) * elements.size;
    }
    const part = new Uint8Array(inside.volume() * elements.size);
    yield* this.#packed(inside.toBoxes(), inside.volume(), part);
    const { counts } = inside.toBoxes();
    const origin = new Float64Array(counts.length);
    for (let k = 0, at = 0; k < inside.length; k++) {
      const [i, to] = [places[2 * k] as number, places[2 * k + 1] as number];
      const box = whole.counts.subarray(i * rank, (i + 1) * rank);
      at = scatter(part, at, bytes, to, box, origin, counts, elements.size, k * rank);
    }
  }

  *#packed(boxes: Boxes, size: number, bytes: Uint8Array): Io<void> {
    const { dataset, storage } = this.#source;
    const blocks = { ...boxes, size, itemOf: null, elementOf: null };
    const fixed: FixedBoxes =
      dataset instanceof VirtualDataset ? dataset.boxes(blocks, this.#nesting) : boxesOf(dataset, blocks, true);
    const on = <T>(io: Io<T>): Io<T> => (storage ? onStorage(storage, io) : io);
    yield* on(fixed.read(bytes));
    if (this.#pointers && fixed.resolver)
      adoptPointers(dataset.elements.dtype, bytes, size, yield* on(fixed.resolver(bytes, size)), this.#pointers);
  }
}

function* readMappings(tree: ObjectTree, node: ObjectNode): Io<StoredMapping[]> {
  const { layout } = tree.dataset(node);
  if (layout?.kind !== 'virtual' || layout.heap <= 0) return [];
  // That of a new dataset is not in the file yet.
  const pending = node.message(MESSAGE.layout)?.heap[0]?.content.bytes;
  const content = pending ?? (yield* tree.heap.object(layout.heap, layout.index));
  return parseMappings(new Cursor(content, tree.loader.file.base + layout.heap), tree.loader.file.lengthSize);
}

/** The shape: dimensions without a limit end with the last source that is there, and hold all that is fixed. */
function extentWith(
  mappings: readonly StoredMapping[],
  stored: readonly number[],
  limits: readonly (number | null)[],
  options: VirtualOptions,
): readonly number[] {
  const shape = new Map<number, number>();
  for (const { target, ...mapping } of mappings) {
    if (target.kind !== 'slab' || target.unlimited < 0) continue;
    const d = target.unlimited;
    if (d >= stored.length) throw formatError(`a mapping of ${d + 1} dimensions in a dataset of ${stored.length}`);
    const extent = extentOf(target, slicesOf(target, mapping, stored[d] as number, options).slices);
    shape.set(d, Math.max(shape.get(d) ?? 0, extent));
  }
  if (shape.size === 0) return stored;
  for (const { target } of mappings) {
    if (target.kind === 'all' || target.kind === 'none') continue;
    const unlimited = target.kind === 'slab' ? target.unlimited : -1;
    const ends = target.kind === 'slab' && unlimited >= 0 ? gridOfBlock(target, 0) : orderedIn(target, stored);
    const high = boundsOf(ends)?.high ?? [];
    for (const [d, extent] of shape) if (d !== unlimited) shape.set(d, Math.max(extent, high[d] ?? 0));
  }
  return stored.map((size, d) => Math.min(shape.get(d) ?? size, limits[d] ?? Infinity));
}

/** Coordinates of the unlimited dimension that have a source. One that must not or cannot be opened leaves what the file says. */
function slicesOf(
  target: Unlimited,
  mapping: Omit<StoredMapping, 'target'>,
  stored: number,
  options: VirtualOptions,
): { readonly slices: number; readonly problem?: H5LogError } {
  const { source, file, dataset } = mapping;
  try {
    if (source.kind !== 'slab' || source.unlimited < 0) {
      const block = target.slab.block[target.unlimited] as number;
      if (block === Infinity) throw formatError('a mapping to a block without end');
      return { slices: block * numbered(mapping, options) };
    }
    const found = options.source(nameOf(file, 0), nameOf(dataset, 0));
    if (!found) return { slices: 0 };
    const size = found.dataset.shape[source.unlimited];
    if (size === undefined) throw formatError(`a mapping of ${source.unlimited + 1} dimensions to ${dataset}`);
    return { slices: slicesWithin(source, size) };
  } catch (error) {
    if (!isH5LogError(error)) throw error;
    return { slices: slicesWithin(target, stored), problem: error };
  }
}

/** How many sources there are whose names have numbers, from 0 on. */
function numbered({ file, dataset }: Omit<StoredMapping, 'target'>, options: VirtualOptions): number {
  if (nameOf(file, 0) === nameOf(file, 1) && nameOf(dataset, 0) === nameOf(dataset, 1))
    throw formatError('a mapping without end to a source without a number');
  let n = 0;
  while (n < MOST_NUMBERED && options.source(nameOf(file, n), nameOf(dataset, n))) n++;
  return n;
}

/** The name of a source: %b is the number of the block, %% a percent sign. */
function nameOf(name: string, block: number): string {
  return name.replace(/%(.?)/gs, (_, letter: string) => {
    if (letter !== 'b' && letter !== '%') throw formatError(`%${letter} in the name of a source, ${name}`);
    return letter === 'b' ? String(block) : '%';
  });
}

/** A mapping as it is in a dataset of this shape. */
function addPieces(
  mapping: StoredMapping,
  shape: readonly number[],
  stored: readonly number[],
  options: VirtualOptions,
  pieces: Piece[],
): void {
  const { file, dataset, source, target } = mapping;
  const names = (block: number) => ({ file: nameOf(file, block), dataset: nameOf(dataset, block) });
  const isOpen = source.kind === 'slab' && source.unlimited >= 0;
  if (target.kind !== 'slab' || target.unlimited < 0) {
    if (isOpen) throw formatError('a mapping of a source without end to a part of a dataset');
    pieces.push({ ...names(0), target: orderedIn(target, shape), source: (size) => orderedIn(source, size) });
    return;
  }
  const d = target.unlimited;
  const { slices, problem } = slicesOf(target, mapping, stored[d] as number, options);
  if (isOpen || problem) {
    // The source may have grown since.
    const from = (): Ordered => {
      if (problem) throw problem;
      return gridOfSlices(source as Unlimited, slices);
    };
    pieces.push({ ...names(0), target: gridOfSlices(target, slices), source: from });
    return;
  }
  for (let j = 0; j * (target.slab.block[d] as number) < slices; j++)
    pieces.push({ ...names(j), target: gridOfBlock(target, j), source: (size) => orderedIn(source, size) });
}
