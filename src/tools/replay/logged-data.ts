import { applyFilters } from '../../filter/apply.ts';
import { type FilteredChunk, PendingBytes, unfilter } from '../../filter/pipeline.ts';
import type { ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { chunked, contiguous, type NewLayout, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import type { LogData } from '../../log/read/boxes.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { endOf, type RowBox, rowBoxes } from '../../space/box.ts';
import { checkChunkBytes, ordinaryChunks } from '../../space/chunk-shape.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { cellOf, gridOf, TouchedChunks } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import { CommittedBlocks, lastNotAbove } from '../committed-blocks.ts';
import type { Buffers, Made, Piece, RawData, Space } from './raw-data.ts';

/** A piece, and each buffer that it goes through, may take this fraction of the memory that the index leaves. */
const FRACTION = 16;
/** A piece may always take this fraction of all memory: with small pieces, scattered blocks would be read many times. */
const LEAST_FRACTION = 24;
const SMALLEST_LIMIT = 256 * 1024;
const LARGEST_LIMIT = 2 ** 30;
/** For a piece of more boxes, an index search for each box is faster than scanning the blocks of the piece for each. */
const FEW_BOXES = 8;
/** Blocks of at least this size are read once with any piece size; then small pieces are faster, because they stay in the CPU cache. */
const LARGE_BLOCK = 64 * 1024;
const LIMIT_OF_LARGE = 16 * 2 ** 20;

/**
 * Reads a dataset of the log in the order of its ordinary layout: chunk after chunk. A contiguous dataset is one chunk of the shape
 * of the dataset. A position counts the elements of the written chunks in this order; pieces are ranges of positions.
 */
export class LoggedData implements RawData {
  readonly total: number;
  readonly #dataset: LogDataset;
  readonly #blocks: CommittedBlocks;
  readonly #chunked: boolean;
  readonly #filtered: boolean;
  readonly #chunk: readonly number[];
  readonly #grid: readonly number[];
  /** Elements of a chunk. */
  readonly #elements: number;
  /** Bytes of an element, and of a chunk without filters. */
  readonly #size: number;
  readonly #chunkBytes: number;
  /** Size and shape of a chunk, for the filters. */
  readonly #whole: FilteredChunk;
  /** Row-major numbers, in the chunk grid, of the chunks that are written. */
  readonly #numbers: Float64Array;
  /** The largest piece in bytes. */
  readonly #pieceLimit: number;
  /** File offset of the first chunk without filters; of filtered chunks, the offset and size of each. */
  readonly #address: number;
  readonly #addresses: Float64Array;
  readonly #sizes: Float64Array;
  /** The fill value is zero, so that elements nobody wrote need not be written: a hole in a file reads as zeros. */
  readonly #zeroFill: boolean;
  /** First positions of all pieces, and the blocks that each may need. */
  readonly #begins: Float64Array;
  readonly #blocksOf: ((piece: number) => Uint32Array) | null;

  /** Reserves space for chunks without filters, whose size is known. */
  private constructor(
    blocks: CommittedBlocks,
    chunk: readonly number[] | null,
    numbers: Float64Array,
    pieceLimit: number,
    space: Space,
  ) {
    const { dataset } = blocks;
    this.#dataset = dataset;
    this.#blocks = blocks;
    this.#chunked = chunk !== null;
    this.#filtered = this.#chunked && dataset.filters.length > 0;
    this.#chunk = chunk ?? dataset.shape;
    this.#grid = gridOf(dataset.shape, this.#chunk);
    this.#elements = sizeOf(this.#chunk);
    this.#size = dataset.elements.size;
    this.#chunkBytes = this.#elements * this.#size;
    this.#whole = { size: this.#chunkBytes, elementSize: this.#size, shape: this.#chunk };
    this.#numbers = numbers;
    this.#pieceLimit = pieceLimit;
    this.total = numbers.length * this.#chunkBytes;
    this.#address = this.#filtered || this.total === 0 ? -1 : space.take(this.total);
    this.#addresses = new Float64Array(this.#filtered ? numbers.length : 0);
    this.#sizes = new Float64Array(this.#filtered ? numbers.length : 0);
    this.#zeroFill = dataset.fill?.every((byte) => byte === 0) ?? true;
    this.#begins = Float64Array.from(this.pieces(), ({ from }) => from);
    this.#blocksOf =
      this.#begins.length > 0
        ? blocks.assign(this.#begins, (index, block, range) => this.#positions(index, block, range))
        : null;
  }

  /** Decides on the layout and finds the chunks to write. */
  static *plan(dataset: LogDataset, memory: number, space: Space): Io<LoggedData> {
    const blocks = yield* CommittedBlocks.of(dataset);
    const { shape, maxShape, chunks, elements, filters } = dataset;
    const chunk = ordinaryChunks({ shape, maxShape, chunks, elementSize: elements.size }, filters.length > 0);
    if (chunk) checkChunkBytes(chunk, elements.size);
    const limit = pieceLimitOf(blocks, memory);
    const numbers = yield* writtenChunks(blocks, chunk ?? shape, limit);
    return new LoggedData(blocks, chunk, numbers, limit, space);
  }

  *pieces(): Iterable<Piece> {
    const together = Math.max(1, Math.floor(this.#pieceLimit / this.#chunkBytes));
    const whole = this.#filtered || this.#chunkBytes <= this.#pieceLimit;
    for (let i = 0; i < this.#numbers.length; i += whole ? together : 1) {
      const from = i * this.#elements;
      if (whole) {
        const chunks = Math.min(together, this.#numbers.length - i);
        yield { from, to: from + chunks * this.#elements, bytes: chunks * this.#chunkBytes };
        continue;
      }
      const limit = Math.max(1, Math.floor(this.#pieceLimit / this.#size));
      for (const box of rowBoxes(this.#chunk, 0, this.#elements, limit))
        yield { from: from + box.from, to: from + box.from + box.size, bytes: box.size * this.#size };
    }
  }

  *make(piece: Piece, buffers: Buffers): Io<readonly Made[]> {
    if (this.#filtered) return yield* this.#streams(piece, buffers);
    if (!this.#chunked && this.#zeroFill && this.#isHole(piece)) return [];
    const bytes = buffers.next(piece.bytes);
    yield* this.#fill(piece.from, piece.to, bytes, buffers);
    return [{ bytes, at: this.#address + piece.from * this.#size, chunk: -1 }];
  }

  placed(chunk: number, at: number, size: number): void {
    this.#addresses[chunk] = at;
    this.#sizes[chunk] = size;
  }

  layout(): NewLayout {
    if (!this.#chunked) return this.total === 0 ? unallocated : contiguous(this.#address);
    const chunks = Array.from(this.#numbers, (number, i): ChunkEntry => {
      const cell = cellOf(number, this.#grid);
      return this.#filtered
        ? { cell, address: this.#addresses[i] as number, size: this.#sizes[i] as number, mask: 0 }
        : { cell, address: this.#address + i * this.#chunkBytes, size: this.#chunkBytes, mask: 0 };
    });
    return chunked(this.#chunk, chunks);
  }

  release(): void {
    this.#blocks.release();
  }

  // ---------------------------------------------------------------- elements

  /** Writes the first and last position that a block may cover to `range`; false if the block lies outside the dataset. */
  #positions({ rank, starts, counts }: BlockIndex, block: number, range: Float64Array): boolean {
    const { shape } = this.#dataset;
    let [first, last, low, high] = [0, 0, 0, 0];
    for (let d = 0, k = block * rank; d < rank; d++, k++) {
      const start = starts[k] as number;
      const end = Math.min(start + (counts[k] as number), shape[d] as number) - 1;
      if (end < start) return false;
      const chunk = this.#chunk[d] as number;
      const cells = this.#grid[d] as number;
      first = first * cells + Math.floor(start / chunk);
      last = last * cells + Math.floor(end / chunk);
      low = low * chunk + (start % chunk);
      high = high * chunk + (end % chunk);
    }
    const alone = first === last;
    range[0] = lastNotAbove(this.#numbers, first) * this.#elements + (alone ? low : 0);
    range[1] = lastNotAbove(this.#numbers, last) * this.#elements + (alone ? high : this.#elements - 1);
    return true;
  }

  /** The blocks that a piece may need; undefined if each box has to search the index. */
  #among(from: number, boxes: number): Uint32Array | undefined {
    if (boxes > FEW_BOXES) return undefined;
    return this.#blocksOf?.(lastNotAbove(this.#begins, from));
  }

  /** Whether no block covers anything of a piece. */
  #isHole({ from }: Piece): boolean {
    return this.#among(from, 1)?.length === 0;
  }

  /** Fills `out` with the elements [from, to): some whole chunks, or a part of one. */
  *#fill(from: number, to: number, out: Uint8Array, buffers: Buffers): Io<void> {
    const first = Math.floor(from / this.#elements);
    const last = Math.ceil(to / this.#elements);
    if (from % this.#elements !== 0 || to % this.#elements !== 0) {
      const origin = cellOf(this.#numbers[first] as number, this.#grid).map((c, d) => c * (this.#chunk[d] as number));
      const begin = first * this.#elements;
      const boxes = [...rowBoxes(this.#chunk, from - begin, to - begin)];
      const among = this.#among(from, boxes.length);
      for (const box of boxes) {
        const at = (box.from - (from - begin)) * this.#size;
        const start = box.start.map((s, d) => s + (origin[d] as number));
        yield* this.#readPart(start, box.count, out, at, buffers, among);
      }
      return;
    }
    const boxes = [...this.#cellBoxes(first, last)];
    const among = this.#among(from, boxes.length);
    for (const { cells, at } of boxes) yield* this.#readCells(cells.start, cells.count, out, at, buffers, among);
  }

  /** The written chunks [first, last) as boxes of the chunk grid, with the offset of each box in a buffer for all of them. */
  *#cellBoxes(first: number, last: number): Generator<{ cells: RowBox; at: number }, void, undefined> {
    for (let i = first; i < last; ) {
      let run = 1;
      while (i + run < last && this.#numbers[i + run] === (this.#numbers[i] as number) + run) run++;
      const number = this.#numbers[i] as number;
      for (const cells of rowBoxes(this.#grid, number, number + run))
        yield { cells, at: (i - first + cells.from - number) * this.#chunkBytes };
      i += run;
    }
  }

  /** Reads a box that may reach beyond the dataset, as edge chunks do; elements outside get the fill value. */
  *#readPart(
    start: readonly number[],
    count: readonly number[],
    out: Uint8Array,
    at: number,
    buffers: Buffers,
    among: Uint32Array | undefined,
  ): Io<void> {
    const { shape, fill } = this.#dataset;
    const inside = count.map((n, d) => Math.max(0, Math.min(n, (shape[d] as number) - (start[d] as number))));
    const low = Float64Array.from(start);
    if (inside.every((n, d) => n === count[d])) {
      yield* this.#blocks.read(low, Float64Array.from(count), out, at, among);
      return;
    }
    fillWith(out, at, sizeOf(count), this.#size, fill);
    const there = sizeOf(inside);
    if (there === 0) return;
    const scratch = buffers.scratch('box', there * this.#size);
    yield* this.#blocks.read(low, Float64Array.from(inside), scratch, 0, among);
    const origin = inside.map(() => 0);
    copyBox(scratch, 0, inside, origin, out, at, count, origin, inside, this.#size);
  }

  /** Reads a box of whole chunks, chunk after chunk. */
  *#readCells(
    first: readonly number[],
    cells: readonly number[],
    out: Uint8Array,
    at: number,
    buffers: Buffers,
    among: Uint32Array | undefined,
  ): Io<void> {
    const chunk = this.#chunk;
    const { shape, fill } = this.#dataset;
    const start = first.map((c, d) => c * (chunk[d] as number));
    const count = cells.map((n, d) => Math.min(n * (chunk[d] as number), (shape[d] as number) - (start[d] as number)));
    const low = Float64Array.from(start);
    const clipped = count.some((n, d) => n < (cells[d] as number) * (chunk[d] as number));
    if (!clipped && this.#isInOrder(cells)) {
      yield* this.#blocks.read(low, Float64Array.from(count), out, at, among);
      return;
    }
    const scratch = buffers.scratch('box', sizeOf(count) * this.#size);
    yield* this.#blocks.read(low, Float64Array.from(count), scratch, 0, among);
    const origin = chunk.map(() => 0);
    const total = sizeOf(cells);
    for (let i = 0, to = at; i < total; i++, to += this.#chunkBytes) {
      const inBox = cellOf(i, cells).map((c, d) => c * (chunk[d] as number));
      const part = chunk.map((n, d) => Math.min(n, (count[d] as number) - (inBox[d] as number)));
      if (part.some((n, d) => n < (chunk[d] as number))) fillWith(out, to, this.#elements, this.#size, fill);
      copyBox(scratch, 0, count, inBox, out, to, chunk, origin, part, this.#size);
    }
  }

  /** Whether chunk after chunk is also the row-major order of the box of chunks, so that nothing needs to be copied. */
  #isInOrder(cells: readonly number[]): boolean {
    let d = 0;
    while (d < cells.length && this.#chunk[d] === 1) d++;
    return cells.slice(d + 1).every((n) => n === 1);
  }

  // ---------------------------------------------------------------- filtered chunks

  *#streams({ from, to }: Piece, buffers: Buffers): Io<readonly Made[]> {
    const made: Made[] = [];
    const last = to / this.#elements;
    let first = from / this.#elements;
    for (let i = first; i <= last; i++) {
      const stored = i < last ? yield* this.#storedStream(i) : null;
      if (i < last && !stored) continue;
      if (first < i) yield* this.#filter(first, i, made, buffers);
      if (stored) made.push({ bytes: stored, at: null, chunk: i });
      first = i + 1;
    }
    return made;
  }

  *#filter(first: number, end: number, made: Made[], buffers: Buffers): Io<void> {
    const bytes = buffers.scratch('chunks', (end - first) * this.#chunkBytes);
    yield* this.#fill(first * this.#elements, end * this.#elements, bytes, buffers);
    for (let i = first; i < end; i++) {
      const at = (i - first) * this.#chunkBytes;
      const chunk = bytes.subarray(at, at + this.#chunkBytes);
      const filtered = applyFilters(chunk, this.#dataset.filters, this.#whole, this.#dataset.layout.codecs);
      const stream = filtered instanceof PendingBytes ? yield* settle(filtered) : filtered;
      // A filter may return its input; the input buffer is reused before this stream is written, hence the copy.
      made.push({ bytes: stream.buffer === bytes.buffer ? stream.slice() : stream, at: null, chunk: i });
    }
  }

  /** The stored stream of a chunk, if the newest block is exactly this chunk: the log cuts filtered data at the chunk grid. */
  *#storedStream(i: number): Io<Uint8Array | null> {
    if (!this.#blocks.isWhole) return null;
    const chunk = Float64Array.from(this.#chunk);
    const start = Float64Array.from(cellOf(this.#numbers[i] as number, this.#grid), (c, d) => c * (chunk[d] as number));
    const high = endOf(start, chunk);
    const { index } = yield* this.#blocks.intersecting(start, chunk);
    const block = index.query(start, high).at(-1);
    if (block === undefined || !index.stored || (index.whole?.[block] ?? 0) > 0) return null;
    const { rank } = index;
    const k = block * rank;
    for (let d = 0; d < rank; d++)
      if (index.starts[k + d] !== start[d] || index.counts[k + d] !== chunk[d]) return null;
    // A piece of the block may have been cut off when the dataset was made smaller; an edge chunk is never kept like that.
    if (high.some((h, d) => h > (this.#dataset.shape[d] as number))) return null;
    const { file } = this.#dataset.log.files[index.stores?.[block] ?? 0] as LogData;
    const [at, size] = [index.offsets[block] as number, index.stored[block] as number];
    const bytes = yield* file.readCopy(at, size, 'data of the log');
    // Decoded only to find damage, which must not be copied silently. Inflating is far cheaper than deflating again.
    const sound = unfilter(bytes, this.#dataset.filters, 0, this.#whole, this.#dataset.layout.codecs);
    if (sound instanceof PendingBytes) yield* settle(sound);
    return bytes;
  }
}

/** The largest size of a piece in bytes. */
function pieceLimitOf(blocks: CommittedBlocks, memory: number): number {
  const { shape, elements } = blocks.dataset;
  const left = Math.floor(Math.max((memory - blocks.bytes) / FRACTION, memory / LEAST_FRACTION));
  const isLarge = blocks.length * LARGE_BLOCK <= sizeOf(shape) * elements.size;
  return Math.max(SMALLEST_LIMIT, Math.min(left, isLarge ? LIMIT_OF_LARGE : LARGEST_LIMIT));
}

/** Row-major numbers of the chunks that some block covers. */
export function* writtenChunks(
  blocks: CommittedBlocks,
  chunk: readonly number[],
  pieceLimit: number,
): Io<Float64Array> {
  const { shape, elements } = blocks.dataset;
  const grid = gridOf(shape, chunk);
  const total = sizeOf(grid);
  if (blocks.length === 0 || sizeOf(shape) === 0) return new Float64Array(0);
  if (total === 1) return Float64Array.of(0);
  const touched = new TouchedChunks(shape, chunk);
  const limit = blocks.isWhole ? total : Math.max(1, Math.floor(pieceLimit / (sizeOf(chunk) * elements.size)));
  for (const cells of rowBoxes(grid, 0, total, limit)) {
    const start = Float64Array.from(cells.start, (c, d) => c * (chunk[d] as number));
    const count = Float64Array.from(cells.count, (n, d) => n * (chunk[d] as number));
    touched.add((yield* blocks.intersecting(start, count)).index);
  }
  return touched.numbers();
}
