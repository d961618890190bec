// Reading boxes of chunked datasets: the chunks that a box touches are found in the index, read together, unfiltered, and copied
// into place.

import { atOffset, formatError } from '../../../base/errors.ts';
import { type Codecs, type FilterStep, PendingBytes, unfilter } from '../../../filter/pipeline.ts';
import { type Boxes, boxSize, isContiguous } from '../../../space/box.ts';
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

/** The parts of boxes that lie in chunks, as flat lists: which chunk, and which box. */
interface Parts {
  readonly chunks: Uint32Array;
  readonly boxes: Uint32Array;
  /** For each box whether all chunks that it touches exist. */
  readonly complete: Uint8Array;
  length: number;
}

export class ChunkReader {
  readonly #file: FileBytes;
  readonly #data: ChunkedData;
  readonly #codecs: Codecs | undefined;
  readonly #cache: ChunkCache;
  readonly #chunkShape: Float64Array;
  /** Bytes of a chunk without filters. */
  readonly #whole: number;
  #index: ChunkList | null = null;
  // Scratch: the part of a box that lies in a chunk, from the chunk's and from the box's start.
  readonly #inChunk: Float64Array;
  readonly #inBox: Float64Array;
  readonly #count: Float64Array;

  constructor(file: FileBytes, data: ChunkedData, cache: ChunkCache, codecs: Codecs | undefined) {
    const { layout, size, shape } = data;
    this.#file = file;
    this.#data = data;
    this.#cache = cache;
    this.#codecs = codecs;
    this.#chunkShape = Float64Array.from(layout.chunk);
    this.#whole = size * sizeOf(layout.chunk);
    const rank = shape.length;
    this.#inChunk = new Float64Array(rank);
    this.#inBox = new Float64Array(rank);
    this.#count = new Float64Array(rank);
    if (layout.elementSize !== size || layout.chunk.length !== rank)
      throw formatError(`chunks of ${layout.elementSize}-byte elements for a dataset of ${size}-byte elements`);
  }

  /** Reads boxes one after the other into `out`. Chunks are visited in the order of their numbers, each once. */
  *read(boxes: Boxes, out: Uint8Array): Io<void> {
    const { size, fill } = this.#data;
    const { starts, counts, rank, length } = boxes;
    const index = yield* this.#chunks();
    const parts = this.#partsOf(index, boxes);
    // Where each box begins in the result.
    const places = new Float64Array(length);
    for (let i = 0, at = 0; i < length; i++) {
      places[i] = at;
      const bytes = boxSize(counts, i * rank, rank, size);
      if (!parts.complete[i] && bytes > 0) fillWith(out, at, bytes / size, size, fill);
      at += bytes;
    }
    const shapes = length === 1 ? counts.slice(0, rank) : null;
    const target = (box: number): Float64Array => shapes ?? counts.subarray(box * rank, (box + 1) * rank);
    const plain = new RowMajorReader('chunk');
    let batch: ArrayBuffer | null = null;
    for (let i = 0; i < parts.length; ) {
      const chunk = parts.chunks[i] as number;
      let end = i + 1;
      while (end < parts.length && parts.chunks[end] === chunk) end++;
      const single = end === i + 1;
      if (single && this.#isPlain(index, chunk)) {
        const box = parts.boxes[i] as number;
        this.#cut(index, chunk, starts, counts, box * rank);
        if (this.#isBestAlone(target(box))) {
          this.#mustBeWhole(index, chunk);
          const from = { shape: this.#chunkShape, start: this.#inChunk.slice() };
          const to = { shape: target(box), start: this.#inBox.slice() };
          const address = index.addresses[chunk] as number;
          yield* plain.read(this.#file, address, from, this.#count.slice(), size, out, places[box] as number, to);
          i = end;
          continue;
        }
      }
      // As many chunks as go into a batch are read together.
      const wanted: number[] = [];
      let bytes = 0;
      end = i;
      for (; end < parts.length; end++) {
        const next = parts.chunks[end] as number;
        if (next === wanted[wanted.length - 1]) continue;
        const more = Math.max(index.sizes[next] as number, this.#whole);
        if (wanted.length > 0 && bytes + more > BATCH) break;
        wanted.push(next);
        bytes += more;
      }
      // Where there are several batches, they share a buffer.
      batch ??= new ArrayBuffer(end < parts.length ? Math.min(bytes, this.#file.end) : 0);
      const ready = yield* this.#load(index, wanted, batch);
      for (let k = 0; i < end; i++) {
        const current = parts.chunks[i] as number;
        while (wanted[k] !== current) k++;
        const box = parts.boxes[i] as number;
        this.#cut(index, current, starts, counts, box * rank);
        const data = ready[k] as Uint8Array;
        const at = places[box] as number;
        copyBox(data, 0, this.#chunkShape, this.#inChunk, out, at, target(box), this.#inBox, this.#count, size);
      }
    }
  }

  *#stored(): Io<readonly StoredChunk[]> {
    const { layout, maxShape, size, filters } = this.#data;
    const grid = { maxShape, chunk: layout.chunk, elementSize: size, filtered: filters.length > 0 };
    return yield* readChunkIndex(this.#file, layout.index, grid);
  }

  *#chunks(): Io<ChunkList> {
    this.#index ??= new ChunkList(yield* this.#stored(), gridOf(this.#data.shape, this.#data.layout.chunk));
    return this.#index;
  }

  /** Which chunks boxes touch, in the order of the chunks. */
  #partsOf(index: ChunkList, { starts, counts, rank, length }: Boxes): Parts {
    const walk = new ChunkWalk(this.#data.shape, this.#chunkShape);
    const complete = new Uint8Array(length).fill(1);
    let chunks = new Uint32Array(Math.max(16, length));
    let owners = new Uint32Array(chunks.length);
    let found = 0;
    let sorted = true;
    for (let box = 0; box < length; box++) {
      for (let left = walk.begin(starts, counts, box * rank); left > 0; left--, walk.next()) {
        const chunk = index.find(walk.number);
        if (chunk < 0) {
          complete[box] = 0;
          continue;
        }
        if (found === chunks.length) {
          chunks = grown(chunks);
          owners = grown(owners);
        }
        if (found > 0 && chunk < (chunks[found - 1] as number)) sorted = false;
        chunks[found] = chunk;
        owners[found++] = box;
      }
    }
    if (sorted) return { chunks, boxes: owners, complete, length: found };
    const order = Uint32Array.from({ length: found }, (_, i) => i);
    order.sort((a, b) => (chunks[a] as number) - (chunks[b] as number) || a - b);
    return {
      chunks: order.map((i) => chunks[i] as number),
      boxes: order.map((i) => owners[i] as number),
      complete,
      length: found,
    };
  }

  /** Works out which part of a box lies in a chunk, into the scratch. */
  #cut(index: ChunkList, chunk: number, starts: Float64Array, counts: Float64Array, k: number): void {
    const cell = index.cells[chunk] as readonly number[];
    for (let d = 0; d < cell.length; d++) {
      const size = this.#chunkShape[d] as number;
      const origin = (cell[d] as number) * size;
      const start = starts[k + d] as number;
      const low = Math.max(origin, start);
      this.#inChunk[d] = low - origin;
      this.#inBox[d] = low - start;
      this.#count[d] = Math.min(origin + size, start + (counts[k + d] as number)) - low;
    }
  }

  /** Whether a chunk lies in the file as it is: no filters, or none that were used for it. */
  #isPlain(index: ChunkList, chunk: number): boolean {
    const { filters, layout, shape } = this.#data;
    if (filters.length === 0) return true;
    if (layout.edgesUnfiltered && index.isAtEdge(chunk, shape, layout.chunk)) return true;
    const all = 2 ** filters.length - 1;
    return ((index.masks[chunk] as number) & all) === all;
  }

  /** Whether the part in the scratch is read by itself: a run of bytes, or a little of a large chunk. */
  #isBestAlone(box: Float64Array): boolean {
    const bytes = this.#data.size * sizeOf(this.#count);
    if (isContiguous(this.#chunkShape, this.#count) && isContiguous(box, this.#count))
      return bytes > CACHED || bytes * 2 < this.#whole;
    return bytes * 4 < this.#whole || this.#whole > BATCH / 4;
  }

  #mustBeWhole(index: ChunkList, chunk: number): void {
    const stored = index.sizes[chunk] as number;
    if (stored >= this.#whole) return;
    const offset = this.#file.base + (index.addresses[chunk] as number);
    throw formatError(`a chunk of ${stored} bytes where ${this.#whole} were expected`, offset);
  }

  /** Whole chunks without filters. Those that are as they lie in the file are in `batch`, and valid until it is used again. */
  *#load(index: ChunkList, wanted: readonly number[], batch: ArrayBuffer): Io<Uint8Array[]> {
    const ready: Uint8Array[] = new Array(wanted.length);
    const missing: number[] = [];
    wanted.forEach((chunk, k) => {
      const known = this.#cache.get(index.addresses[chunk] as number);
      if (known) ready[k] = known;
      else missing.push(k);
    });
    const stored = yield* this.#fetch(
      index,
      missing.map((k) => wanted[k] as number),
      batch,
    );
    for (const [i, k] of missing.entries()) {
      const chunk = wanted[k] as number;
      const raw = stored[i] as Uint8Array;
      if (this.#isPlain(index, chunk)) {
        this.#mustBeWhole(index, chunk);
        ready[k] = raw;
        continue;
      }
      const data = yield* this.#unfiltered(index, chunk, raw);
      ready[k] = data;
      this.#cache.add(index.addresses[chunk] as number, data.buffer === batch ? data.slice() : data);
    }
    return ready;
  }

  /** The stored bytes of chunks, those that lie together in the file in one read. */
  *#fetch(index: ChunkList, chunks: readonly number[], batch: ArrayBuffer): Io<Uint8Array[]> {
    const order = chunks.map((_, i) => i);
    const addressOf = (i: number): number => index.addresses[chunks[i] as number] as number;
    const endOf = (i: number): number => addressOf(i) + (index.sizes[chunks[i] as number] as number);
    order.sort((a, b) => addressOf(a) - addressOf(b));
    for (const i of order) this.#file.mustHold(addressOf(i), endOf(i) - addressOf(i), 'chunk');
    const stored: Uint8Array[] = new Array(chunks.length);
    const reads: { into: Uint8Array; address: number }[] = [];
    let used = 0;
    for (let k = 0; k < order.length; ) {
      const begin = addressOf(order[k] as number);
      let end = endOf(order[k] as number);
      let to = k + 1;
      while (to < order.length && addressOf(order[to] as number) <= end + GAP) {
        end = Math.max(end, endOf(order[to] as number));
        to++;
      }
      const length = end - begin;
      const into = used + length <= batch.byteLength ? new Uint8Array(batch, used, length) : new Uint8Array(length);
      used += Math.ceil(length / 8) * 8;
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
    const { filters, size, layout } = this.#data;
    const offset = this.#file.base + (index.addresses[chunk] as number);
    if (this.#whole > LARGE_CHUNK && this.#whole > stored.length * MOST_DEFLATED)
      throw formatError(`a chunk of ${this.#whole} bytes, of which ${stored.length} are stored`, offset);
    try {
      const whole = { size: this.#whole, elementSize: size, shape: layout.chunk };
      const data = unfilter(stored, filters, index.masks[chunk] as number, whole, this.#codecs);
      return data instanceof PendingBytes ? yield* settle(data) : data;
    } catch (error) {
      throw atOffset(error, offset);
    }
  }
}

function grown(list: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(list.length * 2);
  larger.set(list);
  return larger;
}

/** The chunks of a dataset as flat lists, in the order of their numbers in the grid of its shape. */
class ChunkList {
  readonly #numbers: Float64Array;
  readonly cells: readonly (readonly number[])[];
  readonly addresses: Float64Array;
  readonly sizes: Float64Array;
  readonly masks: Uint32Array;

  constructor(chunks: readonly StoredChunk[], grid: readonly number[]) {
    // Chunks beyond the shape are left over from a larger one.
    const inside = chunks.filter(({ cell }) => cell.every((c, d) => c < (grid[d] as number)));
    const numbers = inside.map(({ cell }) => cell.reduce((sum, c, d) => sum * (grid[d] as number) + c, 0));
    const order = inside.map((_, i) => i).sort((a, b) => (numbers[a] as number) - (numbers[b] as number));
    this.#numbers = Float64Array.from(order, (i) => numbers[i] as number);
    this.cells = order.map((i) => (inside[i] as StoredChunk).cell);
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
    const cell = this.cells[chunk] as readonly number[];
    return cell.some((c, d) => (c + 1) * (size[d] as number) > (shape[d] as number));
  }
}
