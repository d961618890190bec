// Datasets whose elements point into the file: variable-length values, object and region references. What they point to
// is elsewhere in the output, so their elements are rewritten.

import { formatError, H5LogError } from '../../base/errors.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import { applyFilters } from '../../filter/apply.ts';
import { type FilterStep, PendingBytes, problemOfEncoding, unfilter } from '../../filter/pipeline.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { FileBytes } from '../../hdf5/format/file-bytes.ts';
import { GlobalHeap, type HeapLookup } from '../../hdf5/format/global-heap.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode, Relocatable } from '../../hdf5/graph/object-node.ts';
import { relocatedCopy } from '../../hdf5/graph/references.ts';
import { type ChunkEntry, readChunkIndex, type StoredChunk } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { chunked, compact, contiguous, type NewLayout, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import { hasOtherReferences } from '../../hdf5/layouts/raw-references.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { PendingCollections, patchTargets } from '../../hdf5/write/commit.ts';
import type { Log } from '../../log/log.ts';
import { numbersOf } from '../../log/pointers.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { rowBoxes } from '../../space/box.ts';
import { checkChunkBytes, ordinaryChunks } from '../../space/chunk-shape.ts';
import { copyBox } from '../../space/copy.ts';
import { cellOf, gridOf } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import { CommittedBlocks } from '../committed-blocks.ts';
import type { Output } from '../output.ts';
import type { Runner } from '../run.ts';
import type { InputObject } from './input-objects.ts';
import { writtenChunks } from './logged-data.ts';

/** Elements that are rewritten together: their heap objects share collections, which have 4 KiB at least. */
const BATCH = 2 ** 20;

/** The object of the output that was at an address of the input. */
export type TargetOf = (address: number) => ObjectNode | undefined;

/** Where elements are read from, and where they go. */
interface Ways {
  readonly file: FileBytes;
  readonly reader: Runner;
  readonly writer: Runner;
  readonly output: Output;
}

/** Some elements of the output. */
interface Part {
  readonly read: () => Io<Uint8Array>;
  readonly count: number;
  readonly write: (bytes: Uint8Array) => Promise<void>;
}

/** Whether an ordinary dataset has elements that point into the file. */
export function pointsIntoFile({ node, logged }: InputObject, { layout, dtype, space }: DatasetParts): boolean {
  if (logged || !layout || layout.kind === 'virtual' || node.message(MESSAGE.externalFiles)) return false;
  if (elementCount(space) === 0 || (layout.kind === 'contiguous' && layout.address === UNDEFINED)) return false;
  return containsVlen(dtype) || containsReference(dtype);
}

/** The elements of one such dataset. */
export class PointingData {
  readonly path: string;
  /** Whether there are references, which can be rewritten when the objects of the output have addresses. */
  readonly refers: boolean;
  /** Bytes of the elements. */
  readonly size: number;
  readonly #parts: DatasetParts;
  readonly #chunks: readonly StoredChunk[];

  private constructor(path: string, parts: DatasetParts, chunks: readonly StoredChunk[]) {
    this.path = path;
    this.#parts = parts;
    this.#chunks = chunks;
    this.refers = containsReference(parts.dtype);
    this.size = elementCount(parts.space) * parts.type.size;
  }

  static *plan(file: FileBytes, path: string, parts: DatasetParts): Io<PointingData> {
    const { layout, space, filters } = parts;
    if (file.addressSize !== 8)
      throw unsupported(path, `its elements point into a file with addresses of ${file.addressSize} bytes`);
    if (hasOtherReferences(parts.dtype)) throw unsupported(path, 'it holds references of a kind that is not known');
    if (layout?.kind !== 'chunked' || space.kind !== 'simple') return new PointingData(path, parts, []);
    const { chunk, elementSize, index } = layout;
    const grid = { maxShape: space.maxShape, chunk, elementSize, filtered: filters.length > 0 };
    const chunks = yield* readChunkIndex(file, index, grid);
    const isInside = ({ cell }: StoredChunk): boolean =>
      cell.every((k, d) => k * (chunk[d] as number) < (space.shape[d] as number));
    return new PointingData(path, parts, chunks.filter(isInside));
  }

  /** A layout whose messages are as long as those of the real one: with it the objects of the output get their addresses. */
  placeholder(): NewLayout {
    const { layout } = this.#parts;
    if (layout?.kind === 'compact') return compact(layout.data);
    if (layout?.kind !== 'chunked') return contiguous(8);
    const size = this.#chunkBytes();
    return chunked(
      layout.chunk,
      this.#chunks.map(({ cell }, i) => ({ cell, address: 8 + i * size, size, mask: 0 })),
    );
  }

  #chunkBytes(): number {
    const { layout } = this.#parts;
    return layout?.kind === 'chunked' ? layout.elementSize * sizeOf(layout.chunk) : 0;
  }

  /** Writes the elements, and what they have in heaps; gives the layout that finds them. */
  async copy(ways: Ways, targetOf: TargetOf, done: (bytes: number) => void): Promise<NewLayout> {
    const { layout } = this.#parts;
    if (layout?.kind === 'compact') {
      let data = layout.data;
      const take = async (bytes: Uint8Array): Promise<void> => {
        data = bytes;
      };
      const count = elementCount(this.#parts.space);
      await this.#rewrite(ways, targetOf, [{ read: () => given(layout.data), count, write: take }], done);
      return compact(data);
    }
    if (layout?.kind === 'contiguous') {
      const address = ways.output.take(this.size);
      await this.#rewrite(ways, targetOf, this.#contiguousParts(ways, layout.address, address), done);
      return contiguous(address);
    }
    if (layout?.kind !== 'chunked') throw unsupported(this.path, 'its layout has no elements');
    const placed: ChunkEntry[] = [];
    await this.#rewrite(ways, targetOf, this.#chunkParts(ways, layout, placed), done);
    return chunked(layout.chunk, placed);
  }

  *#contiguousParts({ file, writer, output }: Ways, from: number, to: number): Iterable<Part> {
    const { type } = this.#parts;
    const step = Math.max(1, Math.floor(BATCH / type.size)) * type.size;
    for (let at = 0; at < this.size; at += step) {
      const bytes = Math.min(step, this.size - at);
      yield {
        read: () => file.readCopy(from + at, bytes, 'data'),
        count: bytes / type.size,
        write: (made) => writer.run(output.write(made, to + at)),
      };
    }
  }

  *#chunkParts(
    { file, reader, writer, output }: Ways,
    layout: { readonly chunk: readonly number[]; readonly elementSize: number; readonly edgesUnfiltered?: true },
    placed: ChunkEntry[],
  ): Iterable<Part> {
    const { filters, space } = this.#parts;
    const { chunk, elementSize } = layout;
    const shape = space.kind === 'simple' ? space.shape : [];
    const size = this.#chunkBytes();
    const whole = { size, elementSize, shape: chunk };
    const canFilter = problemOfEncoding(filters) === null;
    const all = 2 ** filters.length - 1;
    // Without filters all chunks have one size, and their places are known now: an index may depend on them.
    const first = filters.length === 0 ? output.take(size * this.#chunks.length) : 0;
    for (const [i, { cell, address, size: stored, mask }] of this.#chunks.entries()) {
      const inside = cell.map((k, d) => Math.min(chunk[d] as number, (shape[d] as number) - k * (chunk[d] as number)));
      const isEdge = inside.some((n, d) => n < (chunk[d] as number));
      const skipped = layout.edgesUnfiltered && isEdge ? all : mask;
      yield {
        *read() {
          const bytes = yield* file.readCopy(address, stored, 'chunk');
          const data = unfilter(bytes, filters, skipped, whole);
          const plain = data instanceof PendingBytes ? yield* settle(data) : data;
          return isEdge ? cut(plain, chunk, inside, elementSize) : plain;
        },
        count: size / elementSize,
        write: async (made) => {
          // Filters that were left out stay out: some cannot work on such elements.
          const kept = [...filters.keys()].filter((k) => !(skipped & (1 << k)));
          const used = kept.map((k) => filters[k] as FilterStep);
          const left = { mask: 0 };
          const filtered = canFilter ? applyFilters(made, used, whole, undefined, left) : made;
          const bytes = filtered instanceof PendingBytes ? await reader.run(settle(filtered)) : filtered;
          const at = filters.length === 0 ? first + i * size : output.take(bytes.length);
          await writer.run(output.write(bytes, at));
          const out = kept.reduce((bits, k, n) => (left.mask & (1 << n) ? bits | (1 << k) : bits), skipped & all);
          placed.push({ cell, address: at, size: bytes.length, mask: canFilter ? out : all });
        },
      };
    }
  }

  async #rewrite(ways: Ways, targetOf: TargetOf, parts: Iterable<Part>, done: (bytes: number) => void): Promise<void> {
    const { dtype } = this.#parts;
    const heap = new GlobalHeap(ways.file);
    const elements = { path: this.path, dtype, lookup: heap.lookup.bind(heap, dtype) };
    await rewrite(elements, ways, targetOf, parts, done);
  }
}

/** Elements that are rewritten, and how what they point to is found. */
interface Rewritten {
  readonly path: string;
  readonly dtype: DType;
  lookup(bytes: Uint8Array, count: number): Io<HeapLookup>;
}

/** Reads parts, moves what they point to, and writes them. */
async function rewrite(
  { path, dtype, lookup }: Rewritten,
  { reader, writer, output }: Ways,
  targetOf: TargetOf,
  parts: Iterable<Part>,
  done: (bytes: number) => void,
): Promise<void> {
  let batch: { copy: Relocatable; write: Part['write'] }[] = [];
  let waiting = 0;
  const finish = async (): Promise<void> => {
    const collections = new PendingCollections(batch.map(({ copy }) => copy));
    output.end = collections.assignAddresses(output.take(0));
    for (const { copy } of batch) patchTargets(copy);
    collections.patchIds();
    const made: [number, Uint8Array][] = [];
    collections.encode((address, bytes) => made.push([address, bytes]));
    for (const [address, bytes] of made) await writer.run(output.write(bytes, address));
    for (const { copy, write } of batch) {
      await write(copy.bytes);
      done(copy.bytes.length);
    }
    batch = [];
    waiting = 0;
  };
  for (const { read, count, write } of parts) {
    const bytes = await reader.run(read());
    if (count * fullType(dtype).size > bytes.length)
      throw formatError(`${path}: ${bytes.length} bytes of data for ${count} elements`);
    const contentOf = await reader.run(lookup(bytes, count));
    batch.push({ copy: relocatedCopy(dtype, bytes, count, contentOf, targetOf), write });
    waiting += bytes.length;
    if (waiting >= BATCH) await finish();
  }
  if (batch.length > 0) await finish();
}

/** The elements of a dataset of the log: they get the layout that any dataset of the log gets. */
export class LoggedPointing {
  readonly path: string;
  readonly refers: boolean;
  readonly size: number;
  readonly #blocks: CommittedBlocks;
  /** Shape and cells of the chunks; null: contiguous. */
  readonly #chunk: readonly number[] | null;
  readonly #cells: readonly (readonly number[])[];

  private constructor(blocks: CommittedBlocks, chunk: readonly number[] | null, cells: readonly (readonly number[])[]) {
    const { path, elements, shape } = blocks.dataset;
    this.path = path;
    this.refers = containsReference(elements.dtype);
    this.#blocks = blocks;
    this.#chunk = chunk;
    this.#cells = cells;
    this.size = elements.size * (chunk ? cells.length * sizeOf(chunk) : sizeOf(shape));
  }

  static *plan(dataset: LogDataset, memory: number): Io<LoggedPointing> {
    const { shape, maxShape, chunks, elements, filters } = dataset;
    const blocks = yield* CommittedBlocks.of(dataset);
    const chunk = ordinaryChunks({ shape, maxShape, chunks, elementSize: elements.size }, filters.length > 0);
    if (chunk) checkChunkBytes(chunk, elements.size);
    const numbers = yield* writtenChunks(blocks, chunk ?? shape, memory);
    const grid = gridOf(shape, chunk ?? shape);
    return new LoggedPointing(
      blocks,
      chunk,
      Array.from(numbers, (number) => cellOf(number, grid)),
    );
  }

  /** As for {@link PointingData}. */
  placeholder(): NewLayout {
    const { elements } = this.#blocks.dataset;
    const chunk = this.#chunk;
    if (!chunk) return this.#cells.length === 0 ? unallocated : contiguous(8);
    const size = elements.size * sizeOf(chunk);
    return chunked(
      chunk,
      this.#cells.map((cell, i) => ({ cell, address: 8 + i * size, size, mask: 0 })),
    );
  }

  async copy(ways: Ways, targetOf: TargetOf, done: (bytes: number) => void): Promise<NewLayout> {
    const { log, elements, path } = this.#blocks.dataset;
    const { dtype } = elements;
    const { heap, isRewritten } = this.#blocks;
    const rewritten = { path, dtype, lookup: heap.lookup.bind(heap, dtype) };
    const named = isRewritten ? targetOf : numbered(log, targetOf);
    if (!this.#chunk) {
      if (this.#cells.length === 0) return unallocated;
      const address = ways.output.take(this.size);
      await rewrite(rewritten, ways, named, this.#rows(ways, address), done);
      return contiguous(address);
    }
    const placed: ChunkEntry[] = [];
    await rewrite(rewritten, ways, named, this.#chunks(ways, this.#chunk, placed), done);
    this.#blocks.release();
    return chunked(this.#chunk, placed);
  }

  *#rows({ writer, output }: Ways, to: number): Iterable<Part> {
    const { shape, elements } = this.#blocks.dataset;
    const { size } = elements;
    for (const box of rowBoxes(shape, 0, sizeOf(shape), Math.max(1, Math.floor(BATCH / size)))) {
      yield {
        read: () => this.#read(Float64Array.from(box.start), Float64Array.from(box.count)),
        count: box.size,
        write: (made) => writer.run(output.write(made, to + box.from * size)),
      };
    }
  }

  *#read(start: Float64Array, count: Float64Array): Io<Uint8Array> {
    const bytes = new Uint8Array(sizeOf(count) * this.#blocks.dataset.elements.size);
    yield* this.#blocks.read(start, count, bytes, 0);
    return bytes;
  }

  *#chunks({ reader, writer, output }: Ways, chunk: readonly number[], placed: ChunkEntry[]): Iterable<Part> {
    const { shape, elements, filters, layout } = this.#blocks.dataset;
    const { size } = elements;
    const whole = { size: size * sizeOf(chunk), elementSize: size, shape: chunk };
    // Without filters all chunks have one size, and lie together: an index may depend on it.
    const first = filters.length === 0 ? output.take(whole.size * this.#cells.length) : 0;
    const read = (cell: readonly number[]): Io<Uint8Array> => this.#read(...inside(cell, chunk, shape));
    for (const [i, cell] of this.#cells.entries()) {
      yield {
        *read() {
          const [, count] = inside(cell, chunk, shape);
          const bytes = yield* read(cell);
          if (bytes.length === whole.size) return bytes;
          const made = new Uint8Array(whole.size);
          const origin = new Float64Array(chunk.length);
          copyBox(bytes, 0, count, origin, made, 0, Float64Array.from(chunk), origin, count, size);
          return made;
        },
        count: sizeOf(chunk),
        write: async (made) => {
          const filtered = applyFilters(made, filters, whole, layout.codecs);
          const bytes = filtered instanceof PendingBytes ? await reader.run(settle(filtered)) : filtered;
          const at = filters.length === 0 ? first + i * whole.size : output.take(bytes.length);
          await writer.run(output.write(bytes, at));
          placed.push({ cell, address: at, size: bytes.length, mask: 0 });
        },
      };
    }
  }
}

/** The part of a chunk that lies in a dataset. */
function inside(
  cell: readonly number[],
  chunk: readonly number[],
  shape: readonly number[],
): [start: Float64Array, count: Float64Array] {
  const start = Float64Array.from(cell, (k, d) => k * (chunk[d] as number));
  return [start, start.map((from, d) => Math.min(chunk[d] as number, (shape[d] as number) - from))];
}

/** Logged data refers to objects by their numbers. */
function numbered({ structure, pointers }: Log, targetOf: TargetOf): TargetOf {
  const numbers = numbersOf(structure);
  return (number) => {
    const address = (pointers.objectOf(number) ?? numbers.get(number))?.address;
    return address === undefined ? undefined : targetOf(address);
  };
}

/** A chunk with zeros in place of what lies beyond the shape: nobody sees it, and it may point to anything. */
function cut(bytes: Uint8Array, chunk: readonly number[], inside: readonly number[], size: number): Uint8Array {
  const made = new Uint8Array(bytes.length);
  const shape = Float64Array.from(chunk);
  const origin = new Float64Array(chunk.length);
  copyBox(bytes, 0, shape, origin, made, 0, shape, origin, Float64Array.from(inside), size);
  return made;
}

// biome-ignore lint/correctness/useYield: other layouts read from the file
function* given(bytes: Uint8Array): Io<Uint8Array> {
  return bytes;
}

function unsupported(path: string, why: string): H5LogError {
  return new H5LogError('UNSUPPORTED', `${path} cannot be copied: ${why}`, { object: path });
}
