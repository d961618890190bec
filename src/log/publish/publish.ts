// Publishing: the newest blocks of a dataset become its ordinary HDF5 layout, which every program reads. The first time as a whole;
// then what changed since: chunks that newer blocks touch, and the paths to them in the index.

import { H5LogError } from '../../base/errors.ts';
import { containsReference } from '../../dtype/describe.ts';
import { hasPlainReferences } from '../../dtype/heap-ids.ts';
import { applyFilters } from '../../filter/apply.ts';
import { PendingBytes } from '../../filter/pipeline.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { FileExtent, ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { ChunkTree } from '../../hdf5/layouts/chunks/chunk-tree.ts';
import {
  chunkedByTree,
  chunkedLater,
  contiguous,
  type NewLayout,
  unallocated,
} from '../../hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { changeData, rewriteDataset } from '../../hdf5/write/rewrite.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { positionIn, rowBoxes } from '../../space/box.ts';
import { checkChunkBytes, defaultChunks, ordinaryChunks } from '../../space/chunk-shape.ts';
import { cellOf, gridOf } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import type { PublishWay } from '../format/view.ts';
import type { LogDataset } from '../post/dataset.ts';
import { BoxReader, type LogData } from '../read/boxes.ts';
import type { BlockIndex } from '../read/index.ts';
import type { Published } from '../read/published.ts';
import { ChunkSurvey, type SurveyedChunk, type SurveyedExtent } from './chunk-survey.ts';

import { bestGrid, newestBlock, wholeBlock } from './plan.ts';
import { referringLayout, wholeChunk } from './referring.ts';
import { type ChunkedDataset, type Sink, slabOf, treeOf, treeOverBytes } from './update.ts';

/** A dataset of at most so many bytes that is not chunked is copied as a whole. */
const WHOLE = 2 ** 20;
/** Found grids of smaller chunks are not used: programs that read chunk by chunk would be slow. */
const LEAST_FOUND = 64 * 1024;
/** Steps that looking at a grid may take. */
const VISITS = 2 ** 30;
/** Chunks that are put together at a time, in bytes. */
const BATCH = 16 * 2 ** 20;
/** Bytes that are copied at a time where nothing else sets a size. */
const WINDOW = 4 * 2 ** 20;

/** A dataset that is to be published. */
export interface Candidate {
  readonly dataset: LogDataset;
  /** That it has in the commit. */
  readonly shape: readonly number[];
  /** Blocks that its layout does not have, those of the commit among them. */
  readonly newer: BlockIndex;
}

/** How a layout becomes current. */
export type PublishPlan =
  | { readonly kind: 'same' }
  | { readonly kind: 'empty'; readonly chunk: readonly number[] | null }
  | { readonly kind: 'contiguous'; readonly offset: number }
  | { readonly kind: 'whole' }
  | { readonly kind: 'references' }
  | { readonly kind: 'chunks'; readonly survey: ChunkSurvey; readonly from: ChunksFrom };

/** What chunks are added to: those that are there, contiguous data that becomes chunks where it lies, or nothing: all are made anew. */
type ChunksFrom = 'chunks' | 'bytes' | 'nothing';

/** The layout of a dataset, made but not yet in its header. */
export interface MadeLayout {
  readonly dataset: LogDataset;
  readonly shape: readonly number[];
  /** null: as it was. */
  readonly layout: NewLayout | null;
  readonly tree: ChunkTree | null;
  readonly way: PublishWay;
  /** Bytes that were copied. */
  readonly moved: number;
  /** Chunks or blocks that the layout consists of. */
  readonly pieces: number;
  /** The objects that its elements refer to. */
  readonly targets?: readonly ObjectNode[];
}

/** For layouts that no later commit will change. */
interface FinalLayouts {
  /** Takes what elements point to along, if that is not in the file: gives them other ids. */
  readonly take: ((dataset: LogDataset, bytes: Uint8Array) => Io<void>) | null;
  /** Makes a layout of chunks with an index that is small, but cannot be changed by what is appended. */
  readonly chunked: (chunk: readonly number[], chunks: readonly ChunkEntry[]) => NewLayout;
}

/** Chooses how a dataset becomes current. Throws UNSUPPORTED if it cannot. */
export function planPublishing({ dataset, shape, newer }: Candidate): PublishPlan {
  const { elements, published } = dataset;
  if (containsReference(elements.dtype)) return planReferences(dataset, shape);
  const layout = published?.data.parts.layout ?? null;
  if (!published || !layout || (layout.kind === 'contiguous' && layout.address === UNDEFINED))
    return planFirst(dataset, shape, newer, published);
  const isSame = shape.every((size, d) => size === published.data.shape[d]);
  if (newer.length === 0 && isSame && !published.view.cut) return { kind: 'same' };
  if (layout.kind === 'chunked')
    return { kind: 'chunks', survey: surveyed(dataset, shape, newer, layout.chunk), from: 'chunks' };
  if (layout.kind !== 'contiguous')
    throw new H5LogError('UNSUPPORTED', `another program has made its layout ${layout.kind}`);
  if (!isSame || published.view.cut) return planAnew(dataset, shape, newer);
  const offset = inPlace(dataset, shape, newer);
  if (offset !== null) return { kind: 'contiguous', offset };
  if (elements.size * sizeOf(shape) <= WHOLE) return { kind: 'whole' };
  const chunk = slabOf(shape, elements.size);
  return { kind: 'chunks', survey: surveyed(dataset, shape, newer, chunk), from: 'bytes' };
}

/** Contiguous data cannot be seen in another shape, and HDF5 has no contiguous dataset that may grow. */
function planAnew(dataset: LogDataset, shape: readonly number[], newer: BlockIndex): PublishPlan {
  const { maxShape, filters, elements, chunks } = dataset;
  const chunk = ordinaryChunks({ shape, maxShape, chunks, elementSize: elements.size }, filters.length > 0);
  if (shape.includes(0)) return { kind: 'empty', chunk };
  if (chunk) return { kind: 'chunks', survey: surveyed(dataset, shape, newer, chunk), from: 'nothing' };
  const offset = inPlace(dataset, shape, newer);
  return offset === null ? { kind: 'whole' } : { kind: 'contiguous', offset };
}

/** Bytes that a plan copies. */
export function copiedBy({ dataset, shape }: Candidate, plan: PublishPlan): number {
  switch (plan.kind) {
    case 'whole':
    case 'references':
      return dataset.elements.size * sizeOf(shape);
    case 'chunks':
      return plan.from === 'nothing' ? dataset.elements.size * sizeOf(shape) : plan.survey.moving;
    default:
      return 0;
  }
}

function planReferences({ elements }: LogDataset, shape: readonly number[]): PublishPlan {
  if (!hasPlainReferences(elements.dtype) || elements.size * sizeOf(shape) > 64 * 2 ** 20)
    throw new H5LogError('UNSUPPORTED', 'only object references, in up to 64 MiB of data, can be published');
  return { kind: 'references' };
}

function planFirst(
  dataset: LogDataset,
  shape: readonly number[],
  newer: BlockIndex,
  published: Published | null,
): PublishPlan {
  const { maxShape, filters, elements, chunks } = dataset;
  const elementSize = elements.size;
  const filtered = filters.length > 0;
  const chunk = ordinaryChunks({ shape, maxShape, chunks, elementSize }, filtered);
  if (chunk) checkChunkBytes(chunk, elementSize);
  if (newestBlock(newer, shape) < 0) {
    const isSame = published && shape.every((size, d) => size === published.data.shape[d]);
    return isSame ? { kind: 'same' } : { kind: 'empty', chunk };
  }
  const offset = chunk ? null : inPlace(dataset, shape, newer);
  if (offset !== null) return { kind: 'contiguous', offset };
  if (!chunk && elementSize * sizeOf(shape) <= WHOLE) return { kind: 'whole' };
  const extent: SurveyedExtent = { shape, elementSize, filtered, isLocal: true };
  // Who declares chunks finds them in other programs, too.
  const found = chunks ? null : bestGrid(newer, extent, dataset, chunk, LEAST_FOUND);
  if (found) return { kind: 'chunks', survey: found, from: 'chunks' };
  const survey = surveyed(dataset, shape, newer, chunk ?? defaultChunks({ shape, maxShape, elementSize }));
  return { kind: 'chunks', survey, from: 'chunks' };
}

/** Where the whole dataset lies in the newest block, as it is. */
function inPlace(dataset: LogDataset, shape: readonly number[], newer: BlockIndex): number | null {
  const newest = newestBlock(newer, shape);
  return newest < 0 ? null : wholeBlock(newer, newest, shape, dataset.elements.size);
}

function surveyed(
  { elements, filters }: LogDataset,
  shape: readonly number[],
  newer: BlockIndex,
  chunk: readonly number[],
): ChunkSurvey {
  const extent: SurveyedExtent = { shape, elementSize: elements.size, filtered: filters.length > 0, isLocal: true };
  const survey = ChunkSurvey.of(newer, extent, chunk, VISITS);
  if (survey) return survey;
  throw new H5LogError('UNSUPPORTED', `[${shape.join(', ')}] has more chunks than can be listed`);
}

/** Makes layouts as planned: what HDF5 cannot point at is copied to `to`. */
export class Publisher {
  readonly #to: Sink;
  /** Addresses count from here in the file. */
  readonly #base: number;
  /** The files of the log, with the data of the commit. */
  readonly #files: readonly LogData[];
  readonly #final: FinalLayouts | null;

  constructor(to: Sink, base: number, files: readonly LogData[], final: FinalLayouts | null = null) {
    this.#to = to;
    this.#base = base;
    this.#files = files;
    this.#final = final;
  }

  /** Data with references: written anew as a whole, with the addresses that objects get in this commit. */
  *refer(candidate: Candidate, structure: Structure, targets: ReadonlyMap<number, ObjectNode>): Io<MadeLayout> {
    const { dataset, shape, newer } = candidate;
    const { maxShape, filters, elements } = dataset;
    const declared = { shape, maxShape, chunks: dataset.chunks, elementSize: elements.size };
    const chunk = ordinaryChunks(declared, filters.length > 0);
    const survey = chunk && surveyed(dataset, shape, newer, chunk);
    const chunks = survey && (yield* this.#written(dataset, shape, survey));
    const filtered = filters.length > 0;
    const made = yield* referringLayout(dataset, {
      read: (start, count, packed) => this.#read(candidate, start, count, 1, packed, true),
      structure,
      targets,
      shape,
      files: this.#files,
      chunks: survey && chunks && { chunk: survey.chunk, chunkBytes: survey.chunkBytes, all: chunks },
      *chunked(chunk, put, data) {
        const empty = ChunkTree.empty({ maxShape, chunk, elementSize: elements.size, filtered });
        return chunkedByTree(chunk, yield* empty.edit({ put }), data);
      },
    });
    return { dataset, shape, tree: null, way: 'copied', ...made };
  }

  /** The chunks that have values: those that newer blocks touch, and those of the layout. */
  *#written(dataset: LogDataset, shape: readonly number[], survey: ChunkSurvey): Io<SurveyedChunk[]> {
    const chunks = [...survey.all()];
    const before = dataset.base?.isAllocated ? chunkedDataset(dataset) : null;
    if (!before) return chunks;
    const { chunk } = survey;
    const grid = gridOf(shape, chunk);
    const known = new Set(chunks.map(({ cell }) => positionIn(grid, cell)));
    const { layout } = before.committed.parts;
    const isSame = layout?.kind === 'chunked' && layout.chunk.every((size, d) => size === chunk[d]);
    const cells = isSame
      ? (yield* (yield* treeOf(before)).all()).map(({ cell }) => cell)
      : Array.from({ length: sizeOf(grid) }, (_, i) => cellOf(i, grid));
    for (const cell of cells) {
      const isInside = cell.every((c, d) => c < (grid[d] as number));
      if (isInside && !known.has(positionIn(grid, cell))) chunks.push(survey.at(cell));
    }
    return chunks;
  }

  *make(candidate: Candidate, plan: Exclude<PublishPlan, { kind: 'same' | 'references' }>): Io<MadeLayout> {
    const { dataset, shape } = candidate;
    const same = { dataset, shape, tree: null };
    switch (plan.kind) {
      case 'empty': {
        const layout = plan.chunk ? chunkedLater(plan.chunk) : unallocated;
        return { ...same, layout, way: 'empty', moved: 0, pieces: 0 };
      }
      case 'contiguous':
        return { ...same, layout: contiguous(plan.offset - this.#base), way: 'contiguous', moved: 0, pieces: 1 };
      case 'whole':
        return { ...same, ...(yield* this.#whole(candidate)), way: 'copied', pieces: 1 };
      case 'chunks':
        return yield* this.#chunks(candidate, plan.survey, plan.from);
    }
  }

  /** Boxes as the commit leaves them, one after the other. `below`: blocks do not cover all of them. */
  *#read(
    { dataset, newer }: Candidate,
    starts: Float64Array,
    counts: Float64Array,
    length: number,
    packed: Uint8Array,
    below: boolean,
  ): Io<void> {
    const { base, layout, elements, shape } = dataset;
    const rank = shape.length;
    const size = packed.length / elements.size;
    if (base && below)
      yield* dataset.readBase(base, { rank, length, starts, counts, size, itemOf: null, elementOf: null }, packed);
    const reader = new BoxReader(this.#files, newer, newer.length, layout, base !== null);
    for (let i = 0, at = 0; i < length; i++) {
      const count = counts.slice(i * rank, (i + 1) * rank);
      yield* reader.read(starts.slice(i * rank, (i + 1) * rank), count, packed, at);
      at += elements.size * sizeOf(count);
    }
    // References, and what they come with, are taken along when their objects have addresses.
    if (!import.meta.page && elements.points && !containsReference(elements.dtype))
      yield* this.#final?.take?.(dataset, packed) ?? [];
  }

  /** All of the dataset, in row-major order. */
  *#whole(candidate: Candidate): Io<Pick<MadeLayout, 'layout' | 'moved'>> {
    const { dataset, shape } = candidate;
    const { size } = dataset.elements;
    const waiting: Uint8Array[] = [];
    let first: number | FileExtent | null = null;
    let moved = 0;
    const limit = Math.max(1, Math.floor(WINDOW / size));
    for (const { start, count, size: length } of rowBoxes(shape, 0, sizeOf(shape), limit)) {
      const bytes = new Uint8Array(length * size);
      yield* this.#read(candidate, Float64Array.from(start), Float64Array.from(count), 1, bytes, true);
      moved += bytes.length;
      waiting.push(bytes);
      // The elements must lie together: they wait until all that they point to is written.
      if (this.#final?.take && dataset.elements.points) continue;
      const at = yield* this.#to.append(waiting.pop() as Uint8Array);
      first ??= at;
    }
    for (const bytes of waiting) {
      const at = yield* this.#to.append(bytes);
      first ??= at;
    }
    return { layout: first === null ? unallocated : contiguous(first), moved };
  }

  *#chunks(candidate: Candidate, survey: ChunkSurvey, from: ChunksFrom): Io<MadeLayout> {
    const { dataset, shape } = candidate;
    const { chunk } = survey;
    const before = chunkedDataset(dataset);
    const first = ChunkTree.empty({
      maxShape: dataset.maxShape,
      chunk,
      elementSize: dataset.elements.size,
      filtered: dataset.filters.length > 0,
    });
    const tree =
      !before || !hasLayout(before) || from === 'nothing'
        ? first
        : from === 'bytes'
          ? yield* treeOverBytes(before, shape, [...chunk], this.#to)
          : yield* treeOf(before);
    const put: ChunkEntry[] = [];
    const remove: (readonly number[])[] = [];
    const copied: SurveyedChunk[] = [];
    const known = new Set<number>();
    const grid = gridOf(shape, chunk);
    const { published } = dataset;
    const isCut = published?.view.cut != null;
    for (const each of survey.all()) {
      if (isCut || from === 'nothing') known.add(positionIn(grid, each.cell));
      if (each.offset !== null)
        put.push({ cell: each.cell, address: each.offset - this.#base, size: each.stored, mask: 0 });
      else copied.push(each);
    }
    // Blocks do not touch the others, but older data may be in them.
    if (from === 'nothing')
      for (let i = 0; i < sizeOf(grid); i++) if (!known.has(i)) copied.push(survey.at(cellOf(i, grid)));
    // What a smaller shape has cut off is gone, also from chunks that reach over its edge.
    if (isCut && published) {
      const { visible } = published;
      for (const { cell } of yield* tree.all()) {
        const isOutside = cell.some(
          (c, d) => c * (chunk[d] as number) >= Math.min(visible[d] as number, shape[d] as number),
        );
        const reaches = cell.some((c, d) => (c + 1) * (chunk[d] as number) > (visible[d] as number));
        const isInside = cell.every((c, d) => c < (grid[d] as number));
        if (isInside && known.has(positionIn(grid, cell))) continue;
        if (isOutside) remove.push(cell);
        else if (reaches) copied.push(survey.at(cell));
      }
    }
    let moved = 0;
    const to = this.#to;
    const batch = Math.max(1, Math.floor(BATCH / survey.chunkBytes));
    for (let from = 0; from < copied.length; from += batch) {
      const some = copied.slice(from, from + batch);
      const make = (numbers: readonly number[]): Io<Uint8Array[]> =>
        this.#bytesOf(
          candidate,
          survey,
          numbers.map((i) => some[i] as SurveyedChunk),
        );
      const placed =
        !import.meta.page && to.share
          ? yield* to.share(some.length, make)
          : yield* appendAll(to, yield* make([...some.keys()]));
      placed.forEach(({ address, size }, i) => {
        put.push({ cell: (some[i] as SurveyedChunk).cell, address, size, mask: 0 });
        moved += size;
      });
    }
    const way = put.length > copied.length || (from === 'bytes' && put.length === 0) ? 'chunked' : 'copied';
    if (!import.meta.page && this.#final && tree === first) {
      put.sort((a, b) => positionIn(grid, a.cell) - positionIn(grid, b.cell));
      return { dataset, shape, layout: this.#final.chunked(chunk, put), tree: null, way, moved, pieces: put.length };
    }
    const next = yield* tree.edit({ put, remove });
    return { dataset, shape, layout: chunkedByTree(chunk, next), tree: next, way, moved, pieces: next.count };
  }

  /** The bytes of chunks: the newest values, fill where nothing was written and beyond the edge of the dataset, filtered. */
  *#bytesOf(candidate: Candidate, survey: ChunkSurvey, chunks: readonly SurveyedChunk[]): Io<Uint8Array[]> {
    const { dataset } = candidate;
    const { elements, filters, fill, layout } = dataset;
    const { size } = elements;
    const rank = survey.chunk.length;
    const made = new Map<SurveyedChunk, Uint8Array>();
    for (const below of [false, true]) {
      const some = chunks.filter(({ owner }) => owner < 0 === below);
      const starts = new Float64Array(some.length * rank);
      const counts = new Float64Array(some.length * rank);
      some.forEach(({ start, count }, i) => {
        starts.set(start, i * rank);
        counts.set(count, i * rank);
      });
      const total = some.reduce((sum, { count }) => sum + sizeOf(count), 0);
      const packed = new Uint8Array(total * size);
      yield* this.#read(candidate, starts, counts, some.length, packed, below);
      let at = 0;
      for (const each of some) {
        const bytes = size * sizeOf(each.count);
        const whole = wholeChunk(packed.slice(at, at + bytes), each.count, survey, size, fill);
        at += bytes;
        const filtered = applyFilters(
          whole,
          filters,
          { size: survey.chunkBytes, elementSize: size, shape: survey.chunk },
          layout.codecs,
        );
        made.set(each, filtered instanceof PendingBytes ? yield* settle(filtered) : filtered);
      }
    }
    return chunks.map((each) => made.get(each) as Uint8Array);
  }
}

function* appendAll(to: Sink, pieces: readonly Uint8Array[]): Io<Pick<ChunkEntry, 'address' | 'size'>[]> {
  const placed: Pick<ChunkEntry, 'address' | 'size'>[] = [];
  for (const bytes of pieces) placed.push({ address: yield* to.append(bytes), size: bytes.length });
  return placed;
}

/** The published layout, for changes to its chunks. */
function chunkedDataset(dataset: LogDataset): ChunkedDataset | null {
  const { published, elements, fill, maxShape, log } = dataset;
  if (!published) return null;
  return { committed: published.data, tree: published.tree, elements, fill, maxShape, structure: log.structure };
}

function hasLayout({ committed }: ChunkedDataset): boolean {
  const { layout } = committed.parts;
  return layout?.kind === 'chunked' || (layout?.kind === 'contiguous' && layout.address !== UNDEFINED);
}

/** Puts a shape and a layout, unless that stays as it is, into the header of a dataset; the returned function takes both out again. */
export function putLayout(
  structure: Structure,
  node: ObjectNode,
  { published, maxShape, filters }: LogDataset,
  shape: readonly number[],
  layout: NewLayout | null,
): () => void {
  const space = shape.length === 0 ? SCALAR_SPACE : simpleSpace(shape, maxShape);
  if (!layout || published?.data.parts.layout?.kind === layout.kind)
    return changeData(structure, node, { space, layout });
  // Nothing but chunks can be filtered.
  return rewriteDataset(structure, node, { space, layout, ...(layout.kind === 'chunked' ? { filters } : {}) });
}
