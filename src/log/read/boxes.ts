import { atOffset } from '../../base/errors.ts';
import { type Codecs, type FilterStep, PendingBytes, unfilter } from '../../filter/pipeline.ts';
import { FileBytes, type Place } from '../../hdf5/format/file-bytes.ts';
import { CACHED, GAP, RowMajorReader, WINDOW } from '../../hdf5/layouts/row-major.ts';
import { endOf, halves, intersectInto, isContiguous, positionIn } from '../../space/box.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import type { BlockIndex } from './index.ts';
import { readRuns } from './runs.ts';
import { overlapping, visible } from './visible.ts';

/** A box of more elements that more than so many blocks touch is read in halves, so that what is visible stays small. */
const LARGE_BOX = 4 * 2 ** 20;
const MANY_BLOCKS = 16;
/** Of more blocks no pages are read together: many of them lie side by side. */
const MOST_TOGETHER = 512;

/** Where reads block, so many small ones are done without pages: a program that reads a little of a large file needs no more. */
const READS_WITHOUT_PAGES = 64;

/** The file that holds the data of a log, with a page cache for small reads. */
export class LogData {
  readonly file: FileBytes;

  constructor(base: number, end: number, storage: ByteStorage | null) {
    this.file = new FileBytes(base, end, 8, 8, { size: 16 * 1024, cached: 2048 }, storage);
  }

  /** Whether reads that are given together are under way together. */
  set overlapping(overlapping: boolean) {
    this.file.overlapping = overlapping;
    if (!import.meta.page && !overlapping) this.file.alone = READS_WITHOUT_PAGES;
  }
}

/** How the elements of a dataset are stored. */
export interface ElementLayout {
  readonly size: number;
  readonly fill: Uint8Array | null;
  readonly filters: readonly FilterStep[];
  readonly codecs?: Codecs | undefined;
}

/** Reads boxes of one dataset into packed buffers. */
export class BoxReader {
  /** By store, as numbered in the index. */
  readonly #files: readonly LogData[];
  readonly index: BlockIndex;
  /** Bytes of an element. */
  readonly size: number;
  readonly #limit: number;
  readonly #over: boolean;
  readonly #layout: ElementLayout;
  readonly #rank: number;
  // Scratch: the part of a block that lies in the box, from the block's and from the box's start.
  readonly #inBlock: Float64Array;
  readonly #inBox: Float64Array;
  readonly #part: Float64Array;
  readonly #shape: Float64Array;
  readonly #plain = new RowMajorReader('data of the log');

  /**
   * Only the first `limit` blocks of the index count: those committed when the read was asked for. `over`: what no block covers stays
   * as it is in the buffer; else it becomes fill.
   */
  constructor(files: readonly LogData[], index: BlockIndex, limit: number, layout: ElementLayout, over = false) {
    this.#over = over;
    this.#files = files;
    this.index = index;
    this.#limit = limit;
    this.#layout = layout;
    this.size = layout.size;
    this.#rank = index.rank;
    this.#inBlock = new Float64Array(index.rank);
    this.#inBox = new Float64Array(index.rank);
    this.#part = new Float64Array(index.rank);
    this.#shape = new Float64Array(index.rank);
  }

  /**
   * Reads the box (start, count) into `out` from byte `at` on. `among` are numbers of blocks, ascending: no other one is in the box,
   * though not all of them need be. Without it the index is asked.
   */
  *read(start: Float64Array, count: Float64Array, out: Uint8Array, at: number, among?: Uint32Array): Io<void> {
    const size = sizeOf(count);
    if (size === 0) return;
    const candidates = among
      ? overlapping(this.index, among, start, count)
      : this.index.query(start, endOf(start, count), this.#limit);
    if (size > LARGE_BOX && candidates.length > MANY_BLOCKS) {
      const { first, later, second } = halves(start, count);
      const known = among ? candidates : undefined;
      yield* this.read(start, first, out, at, known);
      yield* this.read(later, second, out, at + this.size * sizeOf(first), known);
      return;
    }
    const { blocks, complete, runs } = visible(this.index, candidates, start, count);
    if (!complete && !this.#over) fillWith(out, at, size, this.size, this.#layout.fill);
    if (runs) yield* readRuns(this, runs, out, at);
    else yield* this.#readBlocks(blocks, start, count, out, at);
  }

  fileOf(block: number): FileBytes {
    return (this.#files[this.index.stores?.[block] ?? 0] as LogData).file;
  }

  /** Reads the blocks, neighbours in the file together, and copies what lies in the box; later blocks over earlier ones. */
  *#readBlocks(blocks: Uint32Array, start: Float64Array, count: Float64Array, out: Uint8Array, at: number): Io<void> {
    const { offsets, stored, stores } = this.index;
    if (this.mayOverlap(blocks))
      yield* this.together(blocks, (block) => {
        const held = stored?.[block] ?? 0;
        if (held > 0) return { address: offsets[block] as number, length: held };
        const address = this.#firstByte(block, start, count);
        return { address, length: this.#lastByte(block) - address };
      });
    for (let i = 0; i < blocks.length; ) {
      const block = blocks[i] as number;
      const file = this.fileOf(block);
      if (stored && (stored[block] as number) > 0) {
        yield* this.#readFiltered(block, start, count, out, at);
        i++;
        continue;
      }
      const from = this.#firstByte(block, start, count);
      let end = this.#lastByte(block);
      if (end - from > CACHED && isContiguous(this.#shape, this.#part) && isContiguous(count, this.#part)) {
        const to = at + positionIn(count, this.#inBox) * this.size;
        yield* this.direct(file, out.subarray(to, to + end - from), from);
        i++;
        continue;
      }
      if (end - from > WINDOW) {
        const offset = this.index.offsets[block] as number;
        const inBlock = { shape: this.#shape.slice(), start: this.#inBlock.slice() };
        const inBox = { shape: count, start: this.#inBox.slice() };
        yield* this.#plain.read(file, offset, inBlock, this.#part.slice(), this.size, out, at, inBox);
        i++;
        continue;
      }
      let next = i + 1;
      // Whether the scratch still is that of the first block.
      let isCut = true;
      for (; next < blocks.length; next++) {
        const candidate = blocks[next] as number;
        // Most blocks of a random order are far from one another: that needs no look at what of them is in the box.
        if ((offsets[candidate] as number) > end + GAP) break;
        if ((stored && (stored[candidate] as number) > 0) || (stores && stores[candidate] !== stores[block])) break;
        isCut = false;
        const a = this.#firstByte(candidate, start, count);
        if (a < end || a > end + GAP) break;
        const b = this.#lastByte(candidate);
        if (b - from > WINDOW) break;
        end = b;
      }
      // A cached page is used without a generator: most small reads end here.
      const page = file.cached(from, end - from);
      const bytes = page ?? (yield* this.fetch(file, from, end - from));
      const base = page ? file.pageStart(from) : from;
      for (; i < next; i++, isCut = false) {
        const copied = blocks[i] as number;
        if (!isCut) this.#cut(copied, start, count);
        this.#copy(copied, count, bytes, base, out, at);
      }
    }
  }

  /** Whether parts of these blocks should be read together. Most reads are blocking and small: they end here, without a generator. */
  mayOverlap(blocks: Uint32Array): boolean {
    const { length } = blocks;
    return length > 1 && length <= MOST_TOGETHER && this.fileOf(blocks[0] as number).overlapping;
  }

  /** Reads the pages of small parts of a few blocks, where reads overlap: one behind the other they take as long as all of them. */
  *together(blocks: Uint32Array, partOf: (block: number, i: number) => Place): Io<void> {
    const file = this.fileOf(blocks[0] as number);
    const places: Place[] = [];
    blocks.forEach((block, i) => {
      const part = partOf(block, i);
      if (part.length <= CACHED && this.fileOf(block) === file) places.push(part);
    });
    yield* file.together(places);
  }

  fetch(file: FileBytes, from: number, length: number): Io<Uint8Array> {
    return this.#plain.fetch(file, from, length);
  }

  direct(file: FileBytes, into: Uint8Array, address: number): Io<void> {
    return this.#plain.direct(file, into, address);
  }

  /** Computes which part of a block lies in the box, into the scratch; returns the file offset of its first byte. */
  #firstByte(block: number, start: Float64Array, count: Float64Array): number {
    return (this.index.offsets[block] as number) + this.#cut(block, start, count) * this.size;
  }

  /** Fills the scratch for a block; returns the position of the first element inside it. */
  #cut(block: number, start: Float64Array, count: Float64Array): number {
    const { starts, counts } = this.index;
    const k = block * this.#rank;
    for (let d = 0; d < this.#rank; d++) this.#shape[d] = counts[k + d] as number;
    intersectInto(starts, counts, k, start, count, this.#inBlock, this.#inBox, this.#part);
    return positionIn(this.#shape, this.#inBlock);
  }

  /** The byte behind the last one that is needed of the block in the scratch. */
  #lastByte(block: number): number {
    let position = 0;
    for (let d = 0; d < this.#rank; d++) {
      position = position * (this.#shape[d] as number) + (this.#inBlock[d] as number) + (this.#part[d] as number) - 1;
    }
    return (this.index.offsets[block] as number) + (position + 1) * this.size;
  }

  /** Copies the part of the block in the scratch from bytes that begin at file offset `from`. */
  #copy(block: number, count: Float64Array, bytes: Uint8Array, from: number, out: Uint8Array, at: number): void {
    const blockAt = (this.index.offsets[block] as number) - from;
    copyBox(bytes, blockAt, this.#shape, this.#inBlock, out, at, count, this.#inBox, this.#part, this.size);
  }

  *#readFiltered(block: number, start: Float64Array, count: Float64Array, out: Uint8Array, at: number): Io<void> {
    const { offsets, stored } = this.index;
    const held = (stored as Float64Array)[block] as number;
    const bytes = (yield* this.fetch(this.fileOf(block), offsets[block] as number, held)).slice();
    this.#cut(block, start, count);
    const { size, filters } = this.#layout;
    const whole = this.index.whole?.[block] ?? 0;
    const length = whole > 0 ? whole : size * sizeOf(this.#shape);
    const chunk = { size: length, elementSize: size, shape: this.#shape };
    let data: Uint8Array;
    try {
      const unfiltered = unfilter(bytes, whole > 0 ? DEFLATED : filters, 0, chunk, this.#layout.codecs);
      data = unfiltered instanceof PendingBytes ? yield* settle(unfiltered) : unfiltered;
    } catch (error) {
      throw atOffset(error, offsets[block] as number);
    }
    const from = this.index.inner?.[block] ?? 0;
    copyBox(data, from, this.#shape, this.#inBlock, out, at, count, this.#inBox, this.#part, size);
  }
}

/** The pipeline of requests that the original deflated as one stream. */
const DEFLATED: readonly FilterStep[] = [{ id: 1, flags: 0, values: [] }];
