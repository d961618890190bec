// Ordinary datasets whose elements point into the file: variable-length values, object and region references. What they point to
// is elsewhere in the output, so their elements are rewritten.

import { formatError, H5LogError } from '../../base/errors.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import { applyFilters, type FilterStep, PendingBytes, problemOfEncoding, unfilter } from '../../filter/pipeline.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { FileBytes } from '../../hdf5/format/file-bytes.ts';
import { GlobalHeap } from '../../hdf5/format/global-heap.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode, Relocatable } from '../../hdf5/graph/object-node.ts';
import { relocatedCopy } from '../../hdf5/graph/references.ts';
import { type ChunkEntry, readChunkIndex, type StoredChunk } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { chunked, compact, contiguous, type NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import { hasOtherReferences } from '../../hdf5/layouts/raw-references.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { PendingCollections, patchTargets } from '../../hdf5/write/commit.ts';
import { copyBox } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import type { Output } from '../output.ts';
import type { Runner } from '../run.ts';
import type { InputObject } from './input-objects.ts';

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

  /** Reads parts, moves what they point to, and writes them. */
  async #rewrite(ways: Ways, targetOf: TargetOf, parts: Iterable<Part>, done: (bytes: number) => void): Promise<void> {
    const { dtype, type } = this.#parts;
    const { file, reader, writer, output } = ways;
    let batch: { copy: Relocatable; write: Part['write'] }[] = [];
    let waiting = 0;
    // A heap keeps what it has read: each batch has its own, so that memory stays bounded.
    let heap = new GlobalHeap(file);
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
      heap = new GlobalHeap(file);
    };
    for (const { read, count, write } of parts) {
      const bytes = await reader.run(read());
      if (count * type.size > bytes.length)
        throw formatError(`${this.path}: ${bytes.length} bytes of data for ${count} elements`);
      await reader.run(heap.load(dtype, bytes, count));
      batch.push({ copy: relocatedCopy(dtype, bytes, count, heap.contents(), targetOf), write });
      waiting += bytes.length;
      if (waiting >= BATCH) await finish();
    }
    if (batch.length > 0) await finish();
  }
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
