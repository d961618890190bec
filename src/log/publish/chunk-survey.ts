import { isContiguous, positionIn } from '../../space/box.ts';
import { ChunkWalk, cellOf, gridOf } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';
import type { BlockIndex } from '../read/index.ts';

/** Owner of a chunk that no block touches, and of one that several blocks show through in, or that its newest block does not cover. */
const NOBODY = -1;
const MIXED = -2;
/** Grids of up to this many chunks have a list of owners; in larger ones only the owners of touched chunks are kept ... */
const LISTED = 2 ** 24;
/** ... and not more than this many. */
const MOST_KEPT = 2 ** 22;

/** Grids of up to this many chunks always have a list. */
const SMALL_GRID = 2 ** 12;

/** What a survey needs to know of a dataset. */
export interface SurveyedExtent {
  readonly shape: readonly number[];
  readonly elementSize: number;
  readonly filtered: boolean;
  /** The blocks are in the file itself: else none of them can be a chunk of it. */
  readonly isLocal: boolean;
}

/** A chunk in which something was written. */
export interface SurveyedChunk {
  /** Its coordinates, in chunks. */
  readonly cell: number[];
  /** The part of it that lies in the dataset. */
  readonly start: Float64Array;
  readonly count: Float64Array;
  /** Where its bytes are in the file, if they are stored as a chunk; null: they have to be copied. */
  readonly offset: number | null;
  /** Bytes of the chunk in the file. */
  readonly stored: number;
  /** The block that covers it and is all that can be seen in it, or a negative number. */
  readonly owner: number;
}

/** How the newest blocks of a dataset lie in a chunk grid. */
export class ChunkSurvey {
  readonly chunk: readonly number[];
  /** Chunks in which something was written, and how many of them the file holds as they are. */
  chunks = 0;
  inPlace = 0;
  /** Blocks that own chunks. */
  blocks = 0;
  /** Bytes of all chunks that have to be copied, and of those that are not only cut off by the edge of the dataset. */
  moving = 0;
  mixed = 0;
  readonly chunkBytes: number;
  readonly #index: BlockIndex;
  readonly #extent: SurveyedExtent;
  readonly #grid: readonly number[];
  readonly #owners: Int32Array | Map<number, number>;
  /** Chunks without an owner. */
  #free: number;

  private constructor(index: BlockIndex, extent: SurveyedExtent, chunk: readonly number[], grid: readonly number[]) {
    const total = sizeOf(grid);
    this.chunk = chunk;
    this.chunkBytes = extent.elementSize * sizeOf(chunk);
    this.#index = index;
    this.#extent = extent;
    this.#grid = grid;
    this.#free = total;
    // A few blocks in a large grid must not cost what the grid does.
    const isListed = total <= SMALL_GRID || (total <= LISTED && total <= 8 * touchedBy(index, extent.shape, chunk));
    this.#owners = isListed ? new Int32Array(total).fill(NOBODY) : new Map();
  }

  /** Surveys the blocks; null if that takes more than `visits` steps, or too much memory. */
  static of(index: BlockIndex, extent: SurveyedExtent, chunk: readonly number[], visits: number): ChunkSurvey | null {
    const grid = gridOf(extent.shape, chunk);
    if (!Number.isSafeInteger(sizeOf(grid))) return null;
    const survey = new ChunkSurvey(index, extent, chunk, grid);
    if (!survey.#findOwners(visits)) return null;
    const seen = new Uint8Array(index.length);
    for (const each of survey.all()) survey.#count(each, seen);
    return survey;
  }

  /** Finds the newest block of every chunk, from the newest block to the oldest. */
  #findOwners(visits: number): boolean {
    const { rank, starts, counts } = this.#index;
    const { shape } = this.#extent;
    const walk = new ChunkWalk(shape, this.chunk);
    const { first, last, cell } = walk;
    // Whether the block covers its first and its last chunk along a dimension; it does cover those between.
    const [coversFirst, coversLast] = [new Uint8Array(rank), new Uint8Array(rank)];
    let steps = visits;
    for (let block = this.#index.length - 1; block >= 0 && this.#free > 0; block--) {
      const k = block * rank;
      const touched = walk.begin(starts, counts, k);
      steps -= touched;
      if (steps < 0 || (this.#owners instanceof Map && this.#owners.size + touched > MOST_KEPT)) return false;
      if (touched === 0) continue;
      for (let d = 0; d < rank; d++) {
        const size = this.chunk[d] as number;
        const low = starts[k + d] as number;
        const high = low + (counts[k + d] as number);
        coversFirst[d] = low <= (first[d] as number) * size ? 1 : 0;
        coversLast[d] = high >= Math.min(((last[d] as number) + 1) * size, shape[d] as number) ? 1 : 0;
      }
      for (let left = touched; left > 0; left--, walk.next()) {
        let isCovered = true;
        for (let d = 0; d < rank; d++) {
          const c = cell[d];
          if ((c === first[d] && coversFirst[d] === 0) || (c === last[d] && coversLast[d] === 0)) isCovered = false;
        }
        this.#claim(walk.number, isCovered ? block : MIXED);
      }
    }
    return true;
  }

  #claim(chunk: number, owner: number): void {
    const owners = this.#owners;
    if (owners instanceof Map) {
      if (owners.has(chunk)) return;
      owners.set(chunk, owner);
    } else {
      if (owners[chunk] !== NOBODY) return;
      owners[chunk] = owner;
    }
    this.#free--;
  }

  /** The chunks in which something was written, in row-major order. */
  *all(): Generator<SurveyedChunk, void, undefined> {
    const owners = this.#owners;
    if (owners instanceof Map) {
      const chunks = Float64Array.from(owners.keys()).sort();
      for (const chunk of chunks) yield this.#chunk(cellOf(chunk, this.#grid), owners.get(chunk) as number);
      return;
    }
    for (let chunk = 0; chunk < owners.length; chunk++) {
      const owner = owners[chunk] as number;
      if (owner !== NOBODY) yield this.#chunk(cellOf(chunk, this.#grid), owner);
    }
  }

  /** A chunk that no block touches, but that has to be copied. */
  at(cell: readonly number[]): SurveyedChunk {
    return this.#chunk([...cell], MIXED);
  }

  #chunk(cell: number[], owner: number): SurveyedChunk {
    const { shape, isLocal, filtered } = this.#extent;
    const start = Float64Array.from(cell, (c, d) => c * (this.chunk[d] as number));
    const count = Float64Array.from(this.chunk, (size, d) =>
      Math.min(size, (shape[d] as number) - (start[d] as number)),
    );
    const isFull = count.every((n, d) => n === this.chunk[d]);
    const offset = owner >= 0 && isFull && isLocal ? this.#offset(owner, start, count) : null;
    const stored = offset !== null && filtered ? (this.#index.stored?.[owner] as number) : this.chunkBytes;
    return { cell, start, count, offset, stored, owner };
  }

  /** Where the chunk's bytes are, if they are contiguous in the block, or its whole stream. */
  #offset(block: number, start: Float64Array, count: Float64Array): number | null {
    const { rank, starts, counts, offsets, stored } = this.#index;
    const shape = counts.subarray(block * rank, (block + 1) * rank);
    const inBlock = start.map((s, d) => s - (starts[block * rank + d] as number));
    const offset = offsets[block] as number;
    if (stored && (stored[block] as number) > 0) {
      const isStream = this.#extent.filtered && !(this.#index.whole?.[block] ?? 0);
      return isStream && inBlock.every((s) => s === 0) && shape.every((n, d) => n === count[d]) ? offset : null;
    }
    if (this.#extent.filtered || !isContiguous(shape, count)) return null;
    return offset + positionIn(shape, inBlock) * this.#extent.elementSize;
  }

  #count({ offset, owner, count }: SurveyedChunk, seen: Uint8Array): void {
    this.chunks++;
    if (owner >= 0 && seen[owner] === 0) {
      seen[owner] = 1;
      this.blocks++;
    }
    if (offset !== null) {
      this.inPlace++;
      return;
    }
    this.moving += this.chunkBytes;
    const isEdge = owner >= 0 && count.some((n, d) => n < (this.chunk[d] as number));
    if (!isEdge) this.mixed += this.chunkBytes;
  }
}

/** How many chunks the blocks touch, each counted for every block. */
function touchedBy(index: BlockIndex, shape: readonly number[], chunk: readonly number[]): number {
  const walk = new ChunkWalk(shape, chunk);
  let touched = 0;
  for (let block = 0; block < index.length; block++)
    touched += walk.begin(index.starts, index.counts, block * index.rank);
  return touched;
}

/**
 * The grid that all blocks fit into: in each dimension the greatest common divisor of their starts and sizes. The size of a block
 * that ends where the dataset does says nothing.
 */
export function commonGrid(index: BlockIndex, shape: readonly number[]): number[] | null {
  const { rank, starts, counts } = index;
  const chunk: number[] = new Array(rank).fill(0);
  const largest: number[] = new Array(rank).fill(1);
  for (let block = 0; block < index.length; block++) {
    if (!meetsShape(index, block, shape)) continue;
    for (let d = 0; d < rank; d++) {
      const start = starts[block * rank + d] as number;
      const count = counts[block * rank + d] as number;
      const isLast = start + count >= (shape[d] as number);
      chunk[d] = divisor(chunk[d] as number, isLast ? start : divisor(start, count));
      largest[d] = Math.max(largest[d] as number, Math.min(count, (shape[d] as number) - start));
    }
  }
  return chunk.map((size, d) => (size === 0 ? (largest[d] as number) : size));
}

/** The shape of the newest block that does not end at the edge, or of the newest. */
export function newestGrid(index: BlockIndex, shape: readonly number[]): number[] | null {
  const { rank, starts, counts } = index;
  let edge: number[] | null = null;
  for (let block = index.length - 1; block >= 0; block--) {
    if (!meetsShape(index, block, shape)) continue;
    const count = [...counts.subarray(block * rank, (block + 1) * rank)];
    if (count.every((n, d) => (starts[block * rank + d] as number) + n < (shape[d] as number))) return count;
    edge ??= count.map((n, d) => Math.min(n, shape[d] as number));
    if (index.length - block > 1024) break;
  }
  return edge;
}

/** Whether a part of the block lies in the dataset. */
export function meetsShape({ rank, starts, counts }: BlockIndex, block: number, shape: readonly number[]): boolean {
  for (let d = 0; d < rank; d++) {
    const k = block * rank + d;
    if ((starts[k] as number) >= (shape[d] as number) || (counts[k] as number) === 0) return false;
  }
  return true;
}

function divisor(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}
