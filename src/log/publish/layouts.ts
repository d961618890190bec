import { applyFilters, PendingBytes } from '../../filter/pipeline.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { chunked, contiguous, type NewLayout, unallocated, virtual } from '../../hdf5/layouts/new-dataset.ts';
import type { Mapping } from '../../hdf5/layouts/virtual.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { type Structure, untrackOrder } from '../../hdf5/write/structure.ts';
import { rowBoxes } from '../../space/box.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import type { LogDataset } from '../post/dataset.ts';
import { BoxReader } from '../read/boxes.ts';
import type { BlockIndex } from '../read/index.ts';
import type { ChunkSurvey, SurveyedChunk } from './chunk-survey.ts';
import type { MappedPiece } from './mapped-pieces.ts';
import type { LayoutPlan } from './plan.ts';

/** Bytes that are copied at a time where nothing else sets a size. */
const WINDOW = 4 * 2 ** 20;
/** The group of the datasets that virtual ones look through; with more underscores if the name is taken. */
const PIECES = '_pieces';

/** How the ordinary layout of a dataset came about. */
export type PublishWay = 'empty' | 'contiguous' | 'chunked' | 'virtual' | 'copied';

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
  /** Writes bytes, which must stay as they are, at the end of the file; gives their address. */
  append(bytes: Uint8Array): Io<number>;
}

/** Makes the ordinary layouts of datasets as planned, and copies what HDF5 cannot point at. */
export class PublishedLayouts {
  readonly #to: Destination;
  readonly #onMoved: (bytes: number) => void;
  #pieces: ObjectNode | null = null;
  #piecesName = PIECES;

  /** `onMoved` is told of bytes whenever some were copied. */
  constructor(to: Destination, onMoved: (bytes: number) => void) {
    this.#to = to;
    this.#onMoved = onMoved;
  }

  *make(dataset: LogDataset, index: BlockIndex, plan: LayoutPlan): Io<PublishedData> {
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
        return yield* this.#chunks(dataset, index, plan.survey);
      case 'virtual':
        return this.#virtual(dataset, plan.pieces);
      case 'copy':
        return yield* this.#copy(dataset, index);
    }
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
    { chunk, chunkBytes }: ChunkSurvey,
  ): Io<Uint8Array> {
    const { elements, fill, filters } = dataset;
    const { size } = elements;
    const inside = new Uint8Array(size * sizeOf(count));
    yield* reader.read(start, count, inside, 0);
    let bytes = inside;
    if (inside.length < chunkBytes) {
      bytes = new Uint8Array(chunkBytes);
      fillWith(bytes, 0, chunkBytes / size, size, fill);
      const origin = new Float64Array(chunk.length);
      copyBox(inside, 0, count, origin, bytes, 0, chunk, origin, count, size);
    }
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
    const limit = Math.max(1, Math.floor(WINDOW / elements.size));
    for (const { start, count, size } of rowBoxes(shape, 0, sizeOf(shape), limit)) {
      const bytes = new Uint8Array(elements.size * size);
      yield* reader.read(Float64Array.from(start), Float64Array.from(count), bytes, 0);
      const at = yield* this.#append(bytes);
      if (moved === 0) address = at;
      moved += bytes.length;
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
