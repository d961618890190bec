// Reading boxes of chunked datasets: the chunks that a box touches are found in the index, read together, unfiltered, and copied
// into place.

import { atOffset, formatError } from '../../../base/errors.ts';
import { type Codecs, type FilterStep, PendingBytes, unfilter } from '../../../filter/pipeline.ts';
import { intersectInto, isContiguous } from '../../../space/box.ts';
import { copyBox, fillWith } from '../../../space/copy.ts';
import { ChunkWalk, gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import { type Io, settle } from '../../../storage/io.ts';
import type { ChunkCache } from '../../format/chunk-cache.ts';
import type { FileBytes } from '../../format/file-bytes.ts';
import type { Layout } from '../../messages/layout.ts';
import { CACHED, GAP, RowMajorReader } from '../row-major.ts';
import { readChunkIndex, type StoredChunk } from './chunk-index.ts';

/** Chunks that are read from the file at once, in bytes. */
const BATCH = 16 * 2 ** 20;
/** A chunk of more bytes than this is refused if so few are stored that no filter can have made it of them. */
const LARGE_CHUNK = 64 * 2 ** 20;
const MOST_DEFLATED = 1100;

/** What the header of a chunked dataset says, as far as reading needs it. */
interface ChunkedData {
  readonly layout: Layout & { readonly kind: 'chunked' };
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly filters: readonly FilterStep[];
  /** null: zeros. */
  readonly fill: Uint8Array | null;
  /** Bytes of an element. */
  readonly size: number;
}

/** A part of a box that lies in one chunk. */
interface ChunkPart {
  readonly chunk: number;
  readonly inChunk: Float64Array;
  readonly inBox: Float64Array;
  readonly count: Float64Array;
}

export class ChunkReader {
  readonly #file: FileBytes;
  readonly #data: ChunkedData;
  readonly #codecs: Codecs | undefined;
  readonly #cache: ChunkCache;
  readonly #plain = new RowMajorReader('chunk');
  readonly #chunkShape: Float64Array;
  /** Bytes of a chunk without filters. */
  readonly #whole: number;
  #index: ChunkList | null = null;

  constructor(file: FileBytes, data: ChunkedData, cache: ChunkCache, codecs: Codecs | undefined) {
    const { layout, size, shape } = data;
    this.#file = file;
    this.#data = data;
    this.#cache = cache;
    this.#codecs = codecs;
    this.#chunkShape = Float64Array.from(layout.chunk);
    this.#whole = size * sizeOf(layout.chunk);
    if (layout.elementSize !== size || layout.chunk.length !== shape.length)
      throw formatError(`chunks of ${layout.elementSize}-byte elements for a dataset of ${size}-byte elements`);
  }

  *read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number): Io<void> {
    const { size, fill } = this.#data;
    if (sizeOf(count) === 0) return;
    const index = yield* this.#chunks();
    const { parts, complete } = this.#partsOf(index, start, count);
    if (!complete) fillWith(out, at, sizeOf(count), size, fill);
    for (let i = 0; i < parts.length; ) {
      const part = parts[i] as ChunkPart;
      if (this.#isPlain(index, part) && (yield* this.#readPlain(index, part, count, out, at))) {
        i++;
        continue;
      }
      i = yield* this.#readBatch(index, parts, i, count, out, at);
    }
  }

  /** Every chunk of the dataset, for tools. */
  *chunks(): Io<readonly StoredChunk[]> {
    const { layout, maxShape, size, filters } = this.#data;
    const grid = { maxShape, chunk: layout.chunk, elementSize: size, filtered: filters.length > 0 };
    return yield* readChunkIndex(this.#file, layout.index, grid);
  }

  *#chunks(): Io<ChunkList> {
    this.#index ??= new ChunkList(yield* this.chunks(), gridOf(this.#data.shape, this.#data.layout.chunk));
    return this.#index;
  }

  /** The chunks that a box touches, and whether there are all of them. */
  #partsOf(index: ChunkList, start: Float64Array, count: Float64Array): { parts: ChunkPart[]; complete: boolean } {
    const rank = count.length;
    const walk = new ChunkWalk(this.#data.shape, this.#chunkShape);
    const parts: ChunkPart[] = [];
    const origin = new Float64Array(rank);
    let complete = true;
    for (let left = walk.begin(start, count, 0); left > 0; left--, walk.next()) {
      const chunk = index.find(walk.number);
      if (chunk < 0) {
        complete = false;
        continue;
      }
      for (let d = 0; d < rank; d++) origin[d] = (walk.cell[d] as number) * (this.#chunkShape[d] as number);
      const part = {
        chunk,
        inChunk: new Float64Array(rank),
        inBox: new Float64Array(rank),
        count: new Float64Array(rank),
      };
      intersectInto(origin, this.#chunkShape, 0, start, count, part.inChunk, part.inBox, part.count);
      parts.push(part);
    }
    return { parts, complete };
  }

  /** Whether a chunk lies in the file as it is: no filters, or none that were used for it. */
  #isPlain(index: ChunkList, { chunk }: ChunkPart): boolean {
    const { filters, layout } = this.#data;
    if (filters.length === 0) return true;
    if (layout.edgesUnfiltered && index.isAtEdge(chunk, this.#data.shape, layout.chunk)) return true;
    const all = 2 ** filters.length - 1;
    return ((index.masks[chunk] as number) & all) === all;
  }

  /** Reads a part of a chunk as it lies in the file; false if it should rather be read with others. */
  *#readPlain(index: ChunkList, part: ChunkPart, box: Float64Array, out: Uint8Array, at: number): Io<boolean> {
    const { size } = this.#data;
    const address = index.addresses[part.chunk] as number;
    if ((index.sizes[part.chunk] as number) < this.#whole)
      throw formatError(
        `a chunk of ${index.sizes[part.chunk]} bytes where ${this.#whole} were expected`,
        this.#file.base + address,
      );
    const bytes = size * sizeOf(part.count);
    const isRun = isContiguous(this.#chunkShape, part.count) && isContiguous(box, part.count);
    // A small chunk of which most is needed is quicker to read with its neighbours than by itself.
    if (!isRun && bytes * 4 > this.#whole && this.#whole <= BATCH / 4) return false;
    if (isRun && bytes <= CACHED && bytes * 2 > this.#whole) return false;
    const from = { shape: this.#chunkShape, start: part.inChunk };
    yield* this.#plain.read(this.#file, address, from, part.count, size, out, at, { shape: box, start: part.inBox });
    return true;
  }

  /** Reads whole chunks, from `parts[first]` on, as many as go into a batch; gives the number of the next part. */
  *#readBatch(
    index: ChunkList,
    parts: readonly ChunkPart[],
    first: number,
    box: Float64Array,
    out: Uint8Array,
    at: number,
  ): Io<number> {
    let next = first;
    let bytes = 0;
    const missing: number[] = [];
    const ready = new Map<number, Uint8Array>();
    for (; next < parts.length; next++) {
      const { chunk } = parts[next] as ChunkPart;
      const known = this.#cache.get(index.addresses[chunk] as number);
      if (known) {
        ready.set(chunk, known);
        continue;
      }
      const stored = index.sizes[chunk] as number;
      if (next > first && bytes + Math.max(stored, this.#whole) > BATCH) break;
      this.#file.mustHold(index.addresses[chunk] as number, stored, 'chunk');
      missing.push(chunk);
      bytes += Math.max(stored, this.#whole);
    }
    const stored = yield* this.#fetch(index, missing);
    for (const [i, chunk] of missing.entries()) {
      const raw = stored[i] as Uint8Array;
      const data = yield* this.#unfiltered(index, chunk, raw);
      this.#cache.add(index.addresses[chunk] as number, data);
      ready.set(chunk, data);
    }
    for (let i = first; i < next; i++) {
      const { chunk, inChunk, inBox, count } = parts[i] as ChunkPart;
      const data = ready.get(chunk) as Uint8Array;
      copyBox(data, 0, this.#chunkShape, inChunk, out, at, box, inBox, count, this.#data.size);
    }
    return next;
  }

  /** The stored bytes of chunks, those that lie together in the file in one read. */
  *#fetch(index: ChunkList, chunks: readonly number[]): Io<Uint8Array[]> {
    const order = chunks.map((_, i) => i);
    const addressOf = (i: number): number => index.addresses[chunks[i] as number] as number;
    const endOf = (i: number): number => addressOf(i) + (index.sizes[chunks[i] as number] as number);
    order.sort((a, b) => addressOf(a) - addressOf(b));
    const stored: Uint8Array[] = new Array(chunks.length);
    const reads: { into: Uint8Array; address: number }[] = [];
    for (let k = 0; k < order.length; ) {
      const begin = addressOf(order[k] as number);
      let end = endOf(order[k] as number);
      let to = k + 1;
      while (to < order.length && addressOf(order[to] as number) <= end + GAP) {
        end = Math.max(end, endOf(order[to] as number));
        to++;
      }
      // Chunks of a damaged file may overlap: together they are still no longer than it.
      const into = new Uint8Array(end - begin);
      reads.push({ into, address: begin });
      for (; k < to; k++) {
        const i = order[k] as number;
        stored[i] = into.subarray(addressOf(i) - begin, endOf(i) - begin);
      }
    }
    yield* this.#file.readMany(reads, 'chunk');
    return stored;
  }

  *#unfiltered(index: ChunkList, chunk: number, stored: Uint8Array): Io<Uint8Array> {
    const { filters, size, layout, shape } = this.#data;
    const offset = this.#file.base + (index.addresses[chunk] as number);
    if (this.#whole > LARGE_CHUNK && this.#whole > stored.length * MOST_DEFLATED)
      throw formatError(`a chunk of ${this.#whole} bytes, of which ${stored.length} are stored`, offset);
    const isEdge = layout.edgesUnfiltered && index.isAtEdge(chunk, shape, layout.chunk);
    const mask = isEdge ? -1 : (index.masks[chunk] as number);
    try {
      const whole = { size: this.#whole, elementSize: size, shape: layout.chunk };
      const data = unfilter(stored, filters, mask, whole, this.#codecs);
      return data instanceof PendingBytes ? yield* settle(data) : data;
    } catch (error) {
      throw atOffset(error, offset);
    }
  }
}

/** The chunks of a dataset as flat lists, in the order of their numbers in the grid of its shape. */
class ChunkList {
  readonly #numbers: Float64Array;
  readonly #cells: readonly (readonly number[])[];
  readonly addresses: Float64Array;
  readonly sizes: Float64Array;
  readonly masks: Uint32Array;

  constructor(chunks: readonly StoredChunk[], grid: readonly number[]) {
    // Chunks beyond the shape are left over from a larger one.
    const inside = chunks.filter(({ cell }) => cell.every((c, d) => c < (grid[d] as number)));
    const numbers = inside.map(({ cell }) => cell.reduce((sum, c, d) => sum * (grid[d] as number) + c, 0));
    const order = inside.map((_, i) => i).sort((a, b) => (numbers[a] as number) - (numbers[b] as number));
    this.#numbers = Float64Array.from(order, (i) => numbers[i] as number);
    this.#cells = order.map((i) => (inside[i] as StoredChunk).cell);
    this.addresses = Float64Array.from(order, (i) => (inside[i] as StoredChunk).address);
    this.sizes = Float64Array.from(order, (i) => (inside[i] as StoredChunk).size);
    this.masks = Uint32Array.from(order, (i) => (inside[i] as StoredChunk).mask);
  }

  /** The place in the lists of the chunk with a number; -1 if there is none. */
  find(number: number): number {
    let [low, high] = [0, this.#numbers.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#numbers[middle] as number) < number) low = middle + 1;
      else high = middle;
    }
    return this.#numbers[low] === number ? low : -1;
  }

  /** Whether a chunk reaches beyond the shape. */
  isAtEdge(chunk: number, shape: readonly number[], size: readonly number[]): boolean {
    const cell = this.#cells[chunk] as readonly number[];
    return cell.some((c, d) => (c + 1) * (size[d] as number) > (shape[d] as number));
  }
}
