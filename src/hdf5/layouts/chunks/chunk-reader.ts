// Reading boxes of chunked datasets: the chunks that a box touches are found in the index, read together, unfiltered, and copied
// into place.

import { atOffset, formatError } from '../../../base/errors.ts';
import { type Codecs, type FilterStep, PendingBytes, unfilter } from '../../../filter/pipeline.ts';
import { type Boxes, boxSize, isContiguous } from '../../../space/box.ts';
import { copyBox, fillWith } from '../../../space/copy.ts';
import { ChunkWalk, gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import { type Io, settle } from '../../../storage/io.ts';
import { UNDEFINED } from '../../format/cursor.ts';
import type { ChunkCache, FileBytes } from '../../format/file-bytes.ts';
import type { Layout } from '../../messages/layout.ts';
import { CACHED, GAP, RowMajorReader } from '../row-major.ts';
import { type ChunkFinder, chunkFinder, WantedChunks } from './chunk-finder.ts';

/** Chunks that are read from the file at once, in bytes. */
const BATCH = 16 * 2 ** 20;
/** Chunks closer together than this are read in one request. */
const REMOTE_GAP = 64 * 1024;
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

/** The parts of boxes that lie in chunks, as flat lists in the order of the chunks: which chunk, and which box. */
interface Parts {
  /** Places in the list of wanted chunks. */
  readonly chunks: Uint32Array;
  readonly boxes: Uint32Array;
  readonly length: number;
}

/** One call of `read`. Several may be under way, so nothing of it is kept in the reader. */
interface Task {
  readonly boxes: Boxes;
  readonly out: Uint8Array;
  readonly chunks: WantedChunks;
  readonly parts: Parts;
  /** Where each box begins in the result. */
  readonly places: Float64Array;
  readonly plain: RowMajorReader;
  /** A buffer for chunks, which batches share. */
  batch: ArrayBuffer | null;
}

export class ChunkReader {
  readonly #file: FileBytes;
  readonly #data: ChunkedData;
  readonly #codecs: Codecs | undefined;
  readonly #cache: ChunkCache;
  readonly #chunkShape: Float64Array;
  readonly #grid: readonly number[];
  /** Bytes of a chunk without filters. */
  readonly #whole: number;
  /** null: there are no chunks. */
  readonly #finder: ChunkFinder | null;
  // Scratch: the part of a box that lies in a chunk, from the chunk's and from the box's start.
  readonly #inChunk: Float64Array;
  readonly #inBox: Float64Array;
  readonly #count: Float64Array;

  constructor(file: FileBytes, data: ChunkedData, cache: ChunkCache, codecs: Codecs | undefined) {
    const { layout, size, shape, maxShape, filters } = data;
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
    this.#grid = gridOf(shape, layout.chunk);
    const grid = { maxShape, chunk: layout.chunk, elementSize: size, filtered: filters.length > 0 };
    this.#finder = chunkFinder(file, layout.index, grid, shape);
  }

  /** Reads boxes one after the other into `out`. Chunks are visited in the order of their numbers, each once. */
  *read(boxes: Boxes, out: Uint8Array): Io<void> {
    const { numbers, owners } = this.#touched(boxes);
    const { wanted, ...parts } = partsOf(numbers, owners);
    const chunks = new WantedChunks(wanted, this.#grid);
    if (this.#finder) yield* this.#finder.find(chunks);
    const task: Task = {
      boxes,
      out,
      chunks,
      parts: existing(parts, chunks),
      places: this.#places(boxes, out, parts, chunks),
      plain: new RowMajorReader('chunk'),
      batch: null,
    };
    for (let i = 0; i < task.parts.length; )
      i = this.#isReadAlone(task, i) ? yield* this.#readAlone(task, i) : yield* this.#readBatch(task, i);
  }

  /** The numbers of chunks that boxes touch, with the number of the box, in the order of the chunks. */
  #touched({ starts, counts, rank, length }: Boxes): { numbers: Float64Array; owners: Uint32Array } {
    const walk = new ChunkWalk(this.#data.shape, this.#chunkShape);
    let numbers = new Float64Array(Math.max(16, length));
    let owners = new Uint32Array(numbers.length);
    let found = 0;
    let sorted = true;
    for (let box = 0; box < length; box++) {
      for (let left = walk.begin(starts, counts, box * rank); left > 0; left--, walk.next()) {
        if (found === numbers.length) {
          numbers = grown(numbers, Float64Array);
          owners = grown(owners, Uint32Array);
        }
        if (found > 0 && walk.number < (numbers[found - 1] as number)) sorted = false;
        numbers[found] = walk.number;
        owners[found++] = box;
      }
    }
    numbers = numbers.subarray(0, found);
    owners = owners.subarray(0, found);
    if (!sorted) sortParts(numbers, owners, sizeOf(this.#grid), length);
    return { numbers, owners };
  }

  /** Where each box begins in the result. Boxes in which chunks are missing are filled. */
  #places({ counts, rank, length }: Boxes, out: Uint8Array, parts: Parts, { addresses }: WantedChunks): Float64Array {
    const { size, fill } = this.#data;
    const incomplete = new Uint8Array(length);
    for (let i = 0; i < parts.length; i++)
      if (addresses[parts.chunks[i] as number] === UNDEFINED) incomplete[parts.boxes[i] as number] = 1;
    const places = new Float64Array(length);
    for (let i = 0, at = 0; i < length; i++) {
      places[i] = at;
      const bytes = boxSize(counts, i * rank, rank, size);
      if (incomplete[i] && bytes > 0) fillWith(out, at, bytes / size, size, fill);
      at += bytes;
    }
    return places;
  }

  /** Whether part `i` is the only one of its chunk and better read by itself. Leaves it in the scratch. */
  #isReadAlone({ chunks, parts, boxes }: Task, i: number): boolean {
    const chunk = parts.chunks[i] as number;
    if (parts.chunks[i + 1] === chunk && i + 1 < parts.length) return false;
    if (!this.#isPlain(chunks, chunk)) return false;
    const k = (parts.boxes[i] as number) * boxes.rank;
    this.#cut(chunks, chunk, boxes, k);
    return this.#isBestAlone(boxes.counts.subarray(k, k + boxes.rank));
  }

  /** Reads the part in the scratch. Gives the number of the next one. */
  *#readAlone({ chunks, parts, boxes, places, out, plain }: Task, i: number): Io<number> {
    const chunk = parts.chunks[i] as number;
    const box = parts.boxes[i] as number;
    const { rank } = boxes;
    this.#mustBeWhole(chunks, chunk);
    const from = { shape: this.#chunkShape, start: this.#inChunk.slice() };
    const to = { shape: boxes.counts.slice(box * rank, (box + 1) * rank), start: this.#inBox.slice() };
    const address = chunks.addresses[chunk] as number;
    const { size } = this.#data;
    yield* plain.read(this.#file, address, from, this.#count.slice(), size, out, places[box] as number, to);
    return i + 1;
  }

  /** Reads the parts from `i` on in as many chunks as go into a batch. Gives the number of the next part. */
  *#readBatch(task: Task, i: number): Io<number> {
    const { chunks, parts, boxes, places, out } = task;
    const { rank, counts } = boxes;
    const wanted: number[] = [];
    let bytes = 0;
    let end = i;
    for (; end < parts.length; end++) {
      const next = parts.chunks[end] as number;
      if (next === wanted[wanted.length - 1]) continue;
      const more = Math.max(chunks.sizes[next] as number, this.#whole);
      if (wanted.length > 0 && bytes + more > BATCH) break;
      wanted.push(next);
      bytes += more;
    }
    // Where there are several batches, they share a buffer.
    task.batch ??= new ArrayBuffer(end < parts.length ? Math.min(bytes, this.#file.end) : 0);
    const ready = yield* this.#load(chunks, wanted, task.batch);
    const shape = counts.slice(0, rank);
    for (let at = i, k = 0; at < end; at++) {
      const chunk = parts.chunks[at] as number;
      while (wanted[k] !== chunk) k++;
      const box = parts.boxes[at] as number;
      this.#cut(chunks, chunk, boxes, box * rank);
      for (let d = 0; d < rank; d++) shape[d] = counts[box * rank + d] as number;
      const data = ready[k] as Uint8Array;
      const place = places[box] as number;
      copyBox(data, 0, this.#chunkShape, this.#inChunk, out, place, shape, this.#inBox, this.#count, this.#data.size);
    }
    return end;
  }

  /** Works out which part of a box lies in a chunk, into the scratch. */
  #cut({ cells }: WantedChunks, chunk: number, { starts, counts, rank }: Boxes, k: number): void {
    for (let d = 0; d < rank; d++) {
      const size = this.#chunkShape[d] as number;
      const origin = (cells[chunk * rank + d] as number) * size;
      const start = starts[k + d] as number;
      const low = Math.max(origin, start);
      this.#inChunk[d] = low - origin;
      this.#inBox[d] = low - start;
      this.#count[d] = Math.min(origin + size, start + (counts[k + d] as number)) - low;
    }
  }

  /** Whether a chunk lies in the file as it is: no filters, or none that were used for it. */
  #isPlain({ masks, cells }: WantedChunks, chunk: number): boolean {
    const { filters, layout, shape } = this.#data;
    if (filters.length === 0) return true;
    if (layout.edgesUnfiltered) {
      // A chunk at the edge reaches beyond the shape.
      const reach = (size: number, d: number): number => ((cells[chunk * shape.length + d] as number) + 1) * size;
      if (layout.chunk.some((size, d) => reach(size, d) > (shape[d] as number))) return true;
    }
    const all = 2 ** filters.length - 1;
    return ((masks[chunk] as number) & all) === all;
  }

  /** Whether the part in the scratch is read by itself: a run of bytes, or a little of a large chunk. */
  #isBestAlone(box: Float64Array): boolean {
    const bytes = this.#data.size * sizeOf(this.#count);
    if (isContiguous(this.#chunkShape, this.#count) && isContiguous(box, this.#count))
      return bytes > CACHED || bytes * 2 < this.#whole;
    return bytes * 4 < this.#whole || this.#whole > BATCH / 4;
  }

  #mustBeWhole({ sizes, addresses }: WantedChunks, chunk: number): void {
    const stored = sizes[chunk] as number;
    if (stored >= this.#whole) return;
    const offset = this.#file.base + (addresses[chunk] as number);
    throw formatError(`a chunk of ${stored} bytes where ${this.#whole} were expected`, offset);
  }

  /** Whole chunks without filters. Those that are as they lie in the file are in `batch`, and valid until it is used again. */
  *#load(index: WantedChunks, wanted: readonly number[], batch: ArrayBuffer): Io<Uint8Array[]> {
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
  *#fetch(index: WantedChunks, chunks: readonly number[], batch: ArrayBuffer): Io<Uint8Array[]> {
    const order = chunks.map((_, i) => i);
    const addressOf = (i: number): number => index.addresses[chunks[i] as number] as number;
    const endOf = (i: number): number => addressOf(i) + (index.sizes[chunks[i] as number] as number);
    order.sort((a, b) => addressOf(a) - addressOf(b));
    for (const i of order) this.#file.mustHold(addressOf(i), endOf(i) - addressOf(i), 'chunk');
    const stored: Uint8Array[] = new Array(chunks.length);
    const gap = this.#file.remote ? REMOTE_GAP : GAP;
    const reads: { into: Uint8Array; address: number }[] = [];
    let used = 0;
    for (let k = 0; k < order.length; ) {
      const begin = addressOf(order[k] as number);
      let end = endOf(order[k] as number);
      let to = k + 1;
      while (to < order.length && addressOf(order[to] as number) <= end + gap) {
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

  *#unfiltered(index: WantedChunks, chunk: number, stored: Uint8Array): Io<Uint8Array> {
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

function grown<A extends Float64Array | Uint32Array>(list: A, kind: new (length: number) => A): A {
  const larger = new kind(list.length * 2);
  larger.set(list);
  return larger;
}

/** Sorts pairs of chunk and box. Where a number has room for both, the pair is sorted as one: that is several times faster. */
function sortParts(numbers: Float64Array, owners: Uint32Array, chunks: number, boxes: number): void {
  const { length } = numbers;
  if (chunks * boxes <= Number.MAX_SAFE_INTEGER) {
    const keys = numbers.map((number, i) => number * boxes + (owners[i] as number)).sort();
    for (let i = 0; i < length; i++) {
      const key = keys[i] as number;
      const number = Math.floor(key / boxes);
      numbers[i] = number;
      owners[i] = key - number * boxes;
    }
    return;
  }
  const [oldNumbers, oldOwners] = [numbers.slice(), owners.slice()];
  const order = Uint32Array.from({ length }, (_, i) => i);
  order.sort((a, b) => (oldNumbers[a] as number) - (oldNumbers[b] as number) || a - b);
  order.forEach((from, i) => {
    numbers[i] = oldNumbers[from] as number;
    owners[i] = oldOwners[from] as number;
  });
}

/** Each chunk once, and the parts by their places in that list. */
function partsOf(numbers: Float64Array, boxes: Uint32Array): Parts & { readonly wanted: Float64Array } {
  const { length } = numbers;
  const chunks = new Uint32Array(length);
  let count = 0;
  for (let i = 0; i < length; i++) {
    if (i > 0 && numbers[i] !== numbers[i - 1]) count++;
    chunks[i] = count;
  }
  const wanted = new Float64Array(length === 0 ? 0 : count + 1);
  for (let i = 0; i < length; i++) wanted[chunks[i] as number] = numbers[i] as number;
  return { wanted, chunks, boxes, length };
}

/** The parts whose chunks are there. */
function existing({ chunks, boxes, length }: Parts, { addresses }: WantedChunks): Parts {
  let kept = 0;
  while (kept < length && addresses[chunks[kept] as number] !== UNDEFINED) kept++;
  if (kept === length) return { chunks, boxes, length };
  const some = { chunks: chunks.slice(), boxes: boxes.slice() };
  for (let i = kept; i < length; i++) {
    if (addresses[chunks[i] as number] === UNDEFINED) continue;
    some.chunks[kept] = chunks[i] as number;
    some.boxes[kept++] = boxes[i] as number;
  }
  return { ...some, length: kept };
}
