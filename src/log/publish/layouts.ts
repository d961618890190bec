import { containsReference } from '../../dtype/describe.ts';
import { applyFilters, PendingBytes } from '../../filter/pipeline.ts';
import { PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { chunked, contiguous, type NewLayout, unallocated, virtual } from '../../hdf5/layouts/new-dataset.ts';
import type { Mapping } from '../../hdf5/layouts/virtual.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { type Structure, untrackOrder } from '../../hdf5/write/structure.ts';
import { rowBoxes } from '../../space/box.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import type { PublishWay } from '../format/view.ts';
import type { LogDataset } from '../post/dataset.ts';
import { BoxReader } from '../read/boxes.ts';
import type { BlockIndex } from '../read/index.ts';
import type { ChunkSurvey, SurveyedChunk } from './chunk-survey.ts';
import type { MappedPiece } from './mapped-pieces.ts';
import type { LayoutPlan } from './plan.ts';
import { referringLayout, wholeChunk } from './referring.ts';

/** Bytes that are copied at a time where nothing else sets a size. */
const WINDOW = 4 * 2 ** 20;
/** The group of the datasets that virtual ones look through; with more underscores if the name is taken. */
const PIECES = '_pieces';

/** The ordinary layout of a dataset, and what it took. */
export interface PublishedData {
  readonly layout: NewLayout;
  readonly way: PublishWay;
  /** Bytes that were copied. */
  readonly moved: number;
  /** Chunks, mappings or blocks that the layout consists of. */
  readonly pieces: number;
}

/** The file that gets ordinary layouts: its structure, and its end, where copied data goes. */
export interface Destination {
  readonly structure: Structure;
  /** File offsets count from the start of the file, addresses from here. */
  readonly base: number;
  /** The address behind everything that was appended. */
  readonly end: number;
  /** Objects by the numbers by which logged data refers to them. */
  readonly targets: ReadonlyMap<number, ObjectNode>;
  /** Writes bytes, which must stay as they are, at the end of the file; gives their address. */
  append(bytes: Uint8Array): Io<number>;
}

/** Makes the ordinary layouts of datasets as planned, and copies what HDF5 cannot point at. */
export class PublishedLayouts {
  readonly #to: Destination;
  readonly #onMoved: (bytes: number) => void;
  #pieces: ObjectNode | null = null;
  /** Whether what elements point to has to be copied with them. */
  #takes = false;
  #piecesName = PIECES;

  /** `onMoved` is told of bytes whenever some were copied. */
  constructor(to: Destination, onMoved: (bytes: number) => void) {
    this.#to = to;
    this.#onMoved = onMoved;
  }

  /** `isLocal`: what elements point to is in the file, where it was written. Plans for data with references are never local. */
  *make(dataset: LogDataset, index: BlockIndex, plan: LayoutPlan, isLocal: boolean): Io<PublishedData> {
    const refers = containsReference(dataset.elements.dtype);
    this.#takes = dataset.elements.points && !isLocal;
    switch (plan.kind) {
      case 'empty': {
        const layout: NewLayout = plan.chunk ? chunked(plan.chunk, []) : unallocated;
        return { layout, way: 'empty', moved: 0, pieces: 0 };
      }
      case 'contiguous': {
        const layout: NewLayout = contiguous(plan.offset - this.#to.base);
        return { layout, way: 'contiguous', moved: 0, pieces: 1 };
      }
      case 'chunks':
        if (refers) return yield* this.#refer(dataset, index, plan.survey);
        return yield* this.#chunks(dataset, index, plan.survey);
      case 'virtual':
        return this.#virtual(dataset, plan.pieces);
      case 'copy':
        if (refers) return yield* this.#refer(dataset, index, null);
        return yield* this.#copy(dataset, index);
    }
  }

  *#refer(dataset: LogDataset, index: BlockIndex, survey: ChunkSurvey | null): Io<PublishedData> {
    const { structure, targets } = this.#to;
    const { shape } = dataset;
    const { layout, moved, pieces } = yield* referringLayout(dataset, this.#reader(dataset, index), {
      structure,
      targets,
      shape,
      survey,
      // biome-ignore lint/correctness/useYield: the other caller's layouts need more than the arguments.
      *chunked(chunk, chunks) {
        return chunked(chunk, chunks);
      },
    });
    this.#onMoved(moved);
    return { layout, way: 'copied', moved, pieces };
  }

  /** Copies what elements point to, where it is not in the file, and gives them their ids. */
  *#take({ elements, log }: LogDataset, bytes: Uint8Array): Io<void> {
    const heap = yield* log.pointers.contents(elements, bytes);
    const placed = new PlacedHeap([heap], this.#to.end, { reference: (number) => number });
    placed.patch(elements.dtype, bytes, bytes.length / elements.size);
    for (const image of placed.images) yield* this.#append(image);
  }

  #reader(dataset: LogDataset, index: BlockIndex): BoxReader {
    return new BoxReader(dataset.log.files, index, index.length, dataset.layout);
  }

  *#chunks(dataset: LogDataset, index: BlockIndex, survey: ChunkSurvey): Io<PublishedData> {
    const reader = this.#reader(dataset, index);
    const chunks: ChunkEntry[] = [];
    let moved = 0;
    for (const each of survey.all()) {
      const { cell, offset, stored } = each;
      if (offset !== null) {
        chunks.push({ cell, address: offset - this.#to.base, size: stored, mask: 0 });
        continue;
      }
      const bytes = yield* this.#chunk(dataset, reader, each, survey);
      chunks.push({ cell, address: yield* this.#append(bytes), size: bytes.length, mask: 0 });
      moved += bytes.length;
    }
    const layout: NewLayout = chunked(survey.chunk, chunks);
    return { layout, way: survey.inPlace > 0 ? 'chunked' : 'copied', moved, pieces: chunks.length };
  }

  *#append(bytes: Uint8Array): Io<number> {
    const address = yield* this.#to.append(bytes);
    this.#onMoved(bytes.length);
    return address;
  }

  /** The bytes of a chunk: the newest values, fill where nothing was written and beyond the edge of the dataset, filtered. */
  *#chunk(
    dataset: LogDataset,
    reader: BoxReader,
    { start, count }: SurveyedChunk,
    survey: ChunkSurvey,
  ): Io<Uint8Array> {
    const { chunk, chunkBytes } = survey;
    const { elements, fill, filters } = dataset;
    const { size } = elements;
    const inside = new Uint8Array(size * sizeOf(count));
    yield* reader.read(start, count, inside, 0);
    if (this.#takes) yield* this.#take(dataset, inside);
    const bytes = wholeChunk(inside, count, survey, size, fill);
    const filtered = applyFilters(
      bytes,
      filters,
      { size: chunkBytes, elementSize: size, shape: chunk },
      dataset.layout.codecs,
    );
    return filtered instanceof PendingBytes ? yield* settle(filtered) : filtered;
  }

  /** All of the dataset, in row-major order. */
  *#copy(dataset: LogDataset, index: BlockIndex): Io<PublishedData> {
    const { shape, elements } = dataset;
    const reader = this.#reader(dataset, index);
    let address = -1;
    let moved = 0;
    const waiting: Uint8Array[] = [];
    const limit = Math.max(1, Math.floor(WINDOW / elements.size));
    for (const { start, count, size } of rowBoxes(shape, 0, sizeOf(shape), limit)) {
      const bytes = new Uint8Array(elements.size * size);
      yield* reader.read(Float64Array.from(start), Float64Array.from(count), bytes, 0);
      moved += bytes.length;
      if (this.#takes) {
        // The elements must lie together: they wait until all that they point to is written.
        yield* this.#take(dataset, bytes);
        waiting.push(bytes);
        continue;
      }
      const at = yield* this.#append(bytes);
      if (address < 0) address = at;
    }
    for (const bytes of waiting) {
      const at = yield* this.#append(bytes);
      if (address < 0) address = at;
    }
    return { layout: contiguous(address), way: 'copied', moved, pieces: 1 };
  }

  // ---------------------------------------------------------------- virtual datasets

  #virtual(dataset: LogDataset, pieces: readonly MappedPiece[]): PublishedData {
    const { size } = dataset.elements;
    // A dataset over bytes of the log begins at one piece and reaches others only in steps of an element.
    const byRest = new Map<number, MappedPiece[]>();
    for (const piece of pieces) {
      const rest = piece.offset % size;
      const list = byRest.get(rest);
      if (list) list.push(piece);
      else byRest.set(rest, [piece]);
    }
    const mappings: Mapping[] = [];
    for (const list of byRest.values()) {
      const first = list.reduce((least, { offset }) => Math.min(least, offset), Infinity);
      const end = list.reduce((most, piece) => Math.max(most, endOf(piece, size)), 0);
      const source = this.#alias(dataset, first, (end - first) / size);
      for (const { start, count, offset, runs } of list) {
        const repeated = runs.times > 1 ? { repeated: { times: [runs.times], stride: [runs.stride] } } : {};
        const slab = { start: [(offset - first) / size], count: [runs.run], ...repeated };
        mappings.push({ file: '.', dataset: source, source: slab, target: { start, count } });
      }
    }
    return { layout: virtual(mappings), way: 'virtual', moved: 0, pieces: mappings.length };
  }

  /** A dataset of the same type over bytes of the log, from a file offset on; gives its path. */
  #alias(dataset: LogDataset, offset: number, length: number): string {
    const { structure, base } = this.#to;
    const group = this.#group();
    const name = String(group.links.size);
    structure.createDataset(group, name, {
      dtype: dataset.elements.dtype,
      space: simpleSpace([length]),
      layout: contiguous(offset - base),
      untracked: true,
    });
    return `/${this.#piecesName}/${name}`;
  }

  #group(): ObjectNode {
    if (this.#pieces) return this.#pieces;
    const { structure } = this.#to;
    while (structure.root.links.has(this.#piecesName)) this.#piecesName = `_${this.#piecesName}`;
    this.#pieces = structure.createGroup(structure.root, this.#piecesName);
    untrackOrder(this.#pieces);
    return this.#pieces;
  }
}

/** The byte behind the last one of a piece. */
function endOf({ offset, runs }: MappedPiece, size: number): number {
  return offset + ((runs.times - 1) * runs.stride + runs.run) * size;
}
