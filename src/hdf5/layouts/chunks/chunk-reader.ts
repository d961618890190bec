// Reading boxes of chunked datasets: the chunks that a box touches are found in the index, read together, unfiltered, and copied
// into place.

import { atOffset, formatError } from '../../../base/errors.ts';
import { type Codecs, type FilterStep, PendingBytes, unfilter } from '../../../filter/pipeline.ts';
import type { Room } from '../../../filter/shuffle.ts';
import { type Boxes, boxSize, isContiguous, positionIn, totalSize } from '../../../space/box.ts';
import { copyBox, fillWith, rowPlaces } from '../../../space/copy.ts';
import { ChunkWalk, gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import { type Io, settle } from '../../../storage/io.ts';
import { UNDEFINED } from '../../format/cursor.ts';
import type { ChunkCache, FileBytes } from '../../format/file-bytes.ts';
import { FILTER } from '../../messages/filter-pipeline.ts';
import type { Layout } from '../../messages/layout.ts';
import { CACHED, GAP, RowMajorReader } from '../row-major.ts';
import { type ChunkFinder, chunkFinder, WantedChunks } from './chunk-finder.ts';
import { LISTED_ROW, type Part, RowBuffer, RowViews, rowIn, SHORT_ROW } from './chunk-rows.ts';
import { TouchedChunks } from './touched-chunks.ts';

/** Chunks that are read from the file at once, in bytes. */
const BATCH = 16 * 2 ** 20;
/** Chunks closer together than this are read in one request. */
const REMOTE_GAP = 64 * 1024;
/** Rows of at least so many bytes are read straight to their places: making room for them twice costs more than a view of each. */
const LONG_ROW = 1024;
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

/** One round of a read. Several may be under way, so nothing of it is kept in the reader. */
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
  /** Buffers for chunks without their filters, if they are too many to stay in the cache. */
  readonly room: Room | undefined;
  /**
   * Views of the rows in these; null: each row gets a view when it is copied. What inflates chunks leaves a buffer behind for each, and is
   * much slower unless such garbage makes V8 collect them soon.
   */
  readonly rows: RowViews | null;
}

/** Two buffers, in turn: a filter needs another one than that of its input. */
function sharedRoom(): Room {
  let [one, other] = [new Uint8Array(0), new Uint8Array(0)];
  return (length) => {
    [one, other] = [other, one];
    if (one.length < length) one = new Uint8Array(length);
    return one.subarray(0, length);
  };
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
  /** Scratch. */
  readonly #part: Part;

  constructor(file: FileBytes, data: ChunkedData, cache: ChunkCache, codecs: Codecs | undefined) {
    const { layout, size, shape, maxShape, filters } = data;
    this.#file = file;
    this.#data = data;
    this.#cache = cache;
    this.#codecs = codecs;
    this.#chunkShape = Float64Array.from(layout.chunk);
    this.#whole = size * sizeOf(layout.chunk);
    const rank = shape.length;
    this.#part = {
      chunk: this.#chunkShape,
      inChunk: new Float64Array(rank),
      inBox: new Float64Array(rank),
      count: new Float64Array(rank),
    };
    if (layout.elementSize !== size || layout.chunk.length !== rank)
      throw formatError(`chunks of ${layout.elementSize}-byte elements for a dataset of ${size}-byte elements`);
    this.#grid = gridOf(shape, layout.chunk);
    const grid = { maxShape, chunk: layout.chunk, elementSize: size, filtered: filters.length > 0 };
    this.#finder = chunkFinder(file, layout.index, grid, shape);
  }

  /**
   * Reads boxes one after the other into `out`, which may be known to hold zeros. Chunks are visited in the order of their numbers, each
   * once in a round.
   */
  *read(boxes: Boxes, out: Uint8Array, isZero = false): Io<void> {
    const { size, fill } = this.#data;
    const places = placesOf(boxes, size);
    const touched = new TouchedChunks(boxes, new ChunkWalk(this.#data.shape, this.#chunkShape), sizeOf(this.#grid));
    for (let first = true; touched.next(); first = false) {
      const { wanted, ...parts } = partsOf(touched.numbers, touched.owners);
      const chunks = new WantedChunks(wanted, this.#grid);
      if (this.#finder) yield* this.#finder.find(chunks);
      if (first && (fill || !isZero)) {
        // A later round must not fill what this one reads.
        if (touched.isLast) this.#fillIncomplete(boxes, places, out, parts, chunks);
        else fillWith(out, 0, totalSize(boxes), size, fill);
      }
      const plain = new RowMajorReader('chunk');
      const found = existing(parts, chunks);
      const room = this.#cache.holds(found.length * this.#whole) ? undefined : sharedRoom();
      const rows =
        import.meta.page || !room || this.#data.filters.some(({ id }) => id === FILTER.deflate) ? null : new RowViews();
      const whole: Task = { boxes, out, chunks, parts: found, places, plain, batch: null, room, rows };
      const task =
        import.meta.page || this.#whole <= CACHED
          ? whole
          : yield* readRows(this.#file, whole, size, this.#part, (i) => this.#isOnlyPart(whole, i));
      for (let i = 0; i < task.parts.length; )
        i = this.#isReadAlone(task, i) ? yield* this.#readAlone(task, i) : yield* this.#readBatch(task, i);
    }
  }

  /** Fills boxes in which chunks are missing. */
  #fillIncomplete(
    boxes: Boxes,
    places: Float64Array,
    out: Uint8Array,
    parts: Parts,
    { addresses }: WantedChunks,
  ): void {
    const { size, fill } = this.#data;
    const filled = new Uint8Array(boxes.length);
    for (let i = 0; i < parts.length; i++) {
      const box = parts.boxes[i] as number;
      if (addresses[parts.chunks[i] as number] !== UNDEFINED || filled[box]) continue;
      filled[box] = 1;
      fillWith(out, places[box] as number, boxSize(boxes.counts, box * boxes.rank, boxes.rank), size, fill);
    }
  }

  /** Whether part `i` is the only one of its chunk, which lies in the file as it is, and must be whole. Leaves it in the scratch. */
  #isOnlyPart({ chunks, parts, boxes }: Task, i: number): boolean {
    const chunk = parts.chunks[i] as number;
    if (parts.chunks[i + 1] === chunk && i + 1 < parts.length) return false;
    if (parts.chunks[i - 1] === chunk && i > 0) return false;
    if (!this.#isPlain(chunks, chunk)) return false;
    this.#mustBeWhole(chunks, chunk);
    this.#cut(chunks, chunk, boxes, (parts.boxes[i] as number) * boxes.rank);
    return true;
  }

  /** Whether part `i` is the only one of its chunk and better read by itself. Leaves it in the scratch. */
  #isReadAlone(task: Task, i: number): boolean {
    if (!this.#isOnlyPart(task, i)) return false;
    // A little of a chunk, or a large chunk, which would be in memory twice.
    const bytes = this.#data.size * sizeOf(this.#part.count);
    const times = isContiguous(this.#chunkShape, this.#part.count) ? 2 : 4;
    return bytes * times < this.#whole || this.#whole > BATCH / 4;
  }

  /** Reads the part in the scratch. Gives the number of the next one. */
  *#readAlone({ chunks, parts, boxes, places, out, plain }: Task, i: number): Io<number> {
    const chunk = parts.chunks[i] as number;
    const box = parts.boxes[i] as number;
    const { rank } = boxes;
    const from = { shape: this.#chunkShape, start: this.#part.inChunk.slice() };
    const to = { shape: boxes.counts.slice(box * rank, (box + 1) * rank), start: this.#part.inBox.slice() };
    const address = chunks.addresses[chunk] as number;
    const { size } = this.#data;
    yield* plain.read(this.#file, address, from, this.#part.count.slice(), size, out, places[box] as number, to);
    return i + 1;
  }

  /** Reads the parts from `i` on in as many chunks as go into a batch. Gives the number of the next part. */
  *#readBatch(task: Task, i: number): Io<number> {
    const { chunks, parts, boxes, out } = task;
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
    // Other reads change the cache while this one waits.
    const known = wanted.map((chunk) => this.#cache.get(chunks.addresses[chunk] as number));
    const missing = wanted.filter((_, k) => !known[k]);
    const stored = (yield* this.#fetch(chunks, missing, task.batch)).values();
    const shape = counts.slice(0, rank);
    for (let at = i, k = 0; at < end; k++) {
      const chunk = wanted[k] as number;
      const data = known[k] ?? (yield* this.#unfiltered(task, chunk, stored.next().value as Uint8Array));
      for (; at < end && parts.chunks[at] === chunk; at++) {
        const box = parts.boxes[at] as number;
        this.#cut(chunks, chunk, boxes, box * rank);
        for (let d = 0; d < rank; d++) shape[d] = counts[box * rank + d] as number;
        const place = task.places[box] as number;
        if (!import.meta.page && task.rows && rowIn(this.#part, shape, this.#data.size) >= SHORT_ROW) {
          const from = positionIn(this.#chunkShape, this.#part.inChunk) * this.#data.size;
          const { places, run } = rowPlaces(place, shape, this.#part.inBox, this.#part.count, this.#data.size);
          const rows = task.rows.of(data, from, run, places.length);
          for (let r = 0; r < places.length; r++) out.set(rows[r] as Uint8Array, places[r]);
          continue;
        }
        copyBox(
          data,
          0,
          this.#chunkShape,
          this.#part.inChunk,
          out,
          place,
          shape,
          this.#part.inBox,
          this.#part.count,
          this.#data.size,
        );
      }
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
      this.#part.inChunk[d] = low - origin;
      this.#part.inBox[d] = low - start;
      this.#part.count[d] = Math.min(origin + size, start + (counts[k + d] as number)) - low;
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

  #mustBeWhole({ sizes, addresses }: WantedChunks, chunk: number): void {
    const stored = sizes[chunk] as number;
    if (stored >= this.#whole) return;
    const offset = this.#file.base + (addresses[chunk] as number);
    throw formatError(`a chunk of ${stored} bytes where ${this.#whole} were expected`, offset);
  }

  /** The stored bytes of chunks, those that lie together in the file in one read: in `batch`, and valid until it is used again. */
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

  /** A chunk that was fetched, without its filters: valid until the next one. */
  *#unfiltered(task: Task, chunk: number, bytes: Uint8Array): Io<Uint8Array> {
    const { chunks, batch, room } = task;
    const address = chunks.addresses[chunk] as number;
    if (this.#isPlain(chunks, chunk)) {
      this.#mustBeWhole(chunks, chunk);
      return bytes;
    }
    const { filters, size, layout } = this.#data;
    const offset = this.#file.base + address;
    if (this.#whole > LARGE_CHUNK && this.#whole > bytes.length * MOST_DEFLATED)
      throw formatError(`a chunk of ${this.#whole} bytes, of which ${bytes.length} are stored`, offset);
    let data: Uint8Array;
    try {
      const whole = { size: this.#whole, elementSize: size, shape: layout.chunk };
      const result = unfilter(bytes, filters, chunks.masks[chunk] as number, whole, this.#codecs, room);
      data = result instanceof PendingBytes ? yield* settle(result) : result;
    } catch (error) {
      throw atOffset(error, offset);
    }
    if (!room) this.#cache.add(address, data.buffer === batch ? data.slice() : data);
    return data;
  }
}

/**
 * Reads those parts that are runs of bytes in the file and rows of some length in their boxes, straight into place or nearly so. Leaves
 * the other ones. `isAlone` says whether a part may be read by itself, and brings it into `part`.
 */
function* readRows(file: FileBytes, task: Task, size: number, part: Part, isAlone: (i: number) => boolean): Io<Task> {
  if (!(yield* file.scatters())) return task;
  const isBlocking = (yield { op: 'overlaps' }) === 0;
  const { chunks, parts, boxes, places, out } = task;
  const buffer = new RowBuffer(file, out);
  const { rank } = boxes;
  const others: number[] = [];
  let reads: { readonly into: Uint8Array[]; readonly address: number; end: number }[] = [];
  let bytes = 0;
  for (let i = 0; i < parts.length; i++) {
    const box = parts.boxes[i] as number;
    const shape = boxes.counts.subarray(box * rank, (box + 1) * rank);
    if (!isAlone(i) || rowIn(part, shape, size) < (isBlocking ? SHORT_ROW : LONG_ROW)) {
      others.push(i);
      continue;
    }
    const address = chunks.addresses[parts.chunks[i] as number] as number;
    const begin = address + positionIn(part.chunk, part.inChunk) * size;
    const length = size * sizeOf(part.count);
    file.mustHold(begin, length, 'chunk');
    const rows = rowPlaces(places[box] as number, shape, part.inBox, part.count, size);
    if (isBlocking && rows.run < LISTED_ROW) {
      yield* buffer.add(begin, rows);
      continue;
    }
    let read = reads[reads.length - 1];
    if (read?.end !== begin) {
      read = { into: [], address: begin, end: begin };
      reads.push(read);
    }
    for (const place of rows.places) read.into.push(out.subarray(place, place + rows.run));
    read.end += length;
    bytes += length;
    if (bytes < BATCH) continue;
    yield* file.readMany(reads, 'chunk');
    reads = [];
    bytes = 0;
  }
  yield* file.readMany(reads, 'chunk');
  yield* buffer.read();
  if (others.length === parts.length) return task;
  const some = Uint32Array.from(others);
  const rest: Parts = {
    chunks: some.map((i) => parts.chunks[i] as number),
    boxes: some.map((i) => parts.boxes[i] as number),
    length: some.length,
  };
  return { ...task, parts: rest };
}

/** Where each box begins in the result. */
function placesOf({ counts, rank, length }: Boxes, size: number): Float64Array {
  const places = new Float64Array(length);
  for (let i = 0, at = 0; i < length; i++) {
    places[i] = at;
    at += boxSize(counts, i * rank, rank, size);
  }
  return places;
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
