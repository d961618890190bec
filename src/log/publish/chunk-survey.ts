import { isContiguous, positionIn } from '../../space/box.ts';
import { sizeOf } from '../../space/shape.ts';
import type { BlockIndex } from '../read/index.ts';

/** No block lies in the cell; several do, or one that leaves a part of it free. */
const UNSEEN = -1;
const MIXED = -2;
/** Cells up to here have a list of their owners; beyond, only those that are met are kept. */
const LISTED = 2 ** 24;
/** And not more than so many. */
const MOST_KEPT = 2 ** 22;

/** What a dataset is, as far as a grid is concerned. */
export interface Extent {
  readonly shape: readonly number[];
  readonly elementSize: number;
  readonly filtered: boolean;
  /** The blocks are in the file itself: else none of them can be a chunk of it. */
  readonly isLocal: boolean;
}

/** A cell of the grid: where it is, how much of it lies in the dataset, and the byte of the file where its chunk is already. */
export interface Cell {
  /** In cells. */
  readonly at: number[];
  readonly start: Float64Array;
  readonly count: Float64Array;
  /** null: it has to be put together. */
  readonly offset: number | null;
  /** Bytes of the chunk in the file. */
  readonly stored: number;
  /** What can be seen in it is of one block, which covers it. */
  readonly isWhole: boolean;
  /** That block, or a negative number. */
  readonly block: number;
}

/** How the newest blocks of a dataset lie in a grid of chunks. */
export class ChunkSurvey {
  readonly chunk: readonly number[];
  /** Cells in which something was written, and how many of them are chunks as they are. */
  cells = 0;
  inPlace = 0;
  /** Blocks that are seen in cells of their own. */
  blocks = 0;
  /** Cells at the edge of the dataset that are one block, but smaller than a chunk. */
  edges = 0;
  /** Bytes of all cells that have to be put together, and of those that are no edges. */
  moving = 0;
  mixed = 0;
  readonly chunkBytes: number;
  readonly #index: BlockIndex;
  readonly #extent: Extent;
  readonly #per: readonly number[];
  readonly #owners: Int32Array | Map<number, number>;
  /** Cells that no block was found in yet. */
  #free: number;

  private constructor(index: BlockIndex, extent: Extent, chunk: readonly number[], per: readonly number[]) {
    const total = sizeOf(per);
    this.chunk = chunk;
    this.chunkBytes = extent.elementSize * sizeOf(chunk);
    this.#index = index;
    this.#extent = extent;
    this.#per = per;
    this.#free = total;
    this.#owners = total <= LISTED ? new Int32Array(total).fill(UNSEEN) : new Map();
  }

  /** Looks where the blocks lie; null if that takes more than `visits` steps, or more memory than is reasonable. */
  static of(index: BlockIndex, extent: Extent, chunk: readonly number[], visits: number): ChunkSurvey | null {
    const per = chunk.map((size, d) => Math.ceil((extent.shape[d] as number) / size));
    if (!Number.isSafeInteger(sizeOf(per))) return null;
    const survey = new ChunkSurvey(index, extent, chunk, per);
    if (!survey.#own(visits)) return null;
    const seen = new Uint8Array(index.length);
    for (const cell of survey.all()) survey.#count(cell, seen);
    return survey;
  }

  /** Gives every cell to the newest block in it, from the newest block to the oldest. */
  #own(visits: number): boolean {
    const { rank, starts, counts } = this.#index;
    const { shape } = this.#extent;
    const [first, last, at] = [new Float64Array(rank), new Float64Array(rank), new Float64Array(rank)];
    // Whether the block reaches over the whole of its first and its last cell in a dimension; those between it does.
    const [wholeFirst, wholeLast] = [new Uint8Array(rank), new Uint8Array(rank)];
    let left = visits;
    for (let block = this.#index.length - 1; block >= 0 && this.#free > 0; block--) {
      let touched = 1;
      for (let d = 0; d < rank; d++) {
        const size = this.chunk[d] as number;
        const end = shape[d] as number;
        const low = starts[block * rank + d] as number;
        const high = Math.min(low + (counts[block * rank + d] as number), end);
        first[d] = at[d] = Math.floor(low / size);
        last[d] = Math.floor((high - 1) / size);
        touched *= high > low ? (last[d] as number) - (first[d] as number) + 1 : 0;
        const covers = (cell: number): number =>
          low <= cell * size && high >= Math.min((cell + 1) * size, end) ? 1 : 0;
        wholeFirst[d] = covers(first[d] as number);
        wholeLast[d] = covers(last[d] as number);
      }
      left -= touched;
      if (left < 0 || (this.#owners instanceof Map && this.#owners.size + touched > MOST_KEPT)) return false;
      for (let i = 0; i < touched; i++) {
        let cell = 0;
        let whole = true;
        for (let d = 0; d < rank; d++) {
          const c = at[d] as number;
          cell = cell * (this.#per[d] as number) + c;
          if ((c === first[d] && wholeFirst[d] === 0) || (c === last[d] && wholeLast[d] === 0)) whole = false;
        }
        this.#claim(cell, whole ? block : MIXED);
        for (let d = rank - 1; d >= 0; d--) {
          at[d] = (at[d] as number) + 1;
          if ((at[d] as number) <= (last[d] as number)) break;
          at[d] = first[d] as number;
        }
      }
    }
    return true;
  }

  #claim(cell: number, owner: number): void {
    const owners = this.#owners;
    if (owners instanceof Map) {
      if (owners.has(cell)) return;
      owners.set(cell, owner);
    } else {
      if (owners[cell] !== UNSEEN) return;
      owners[cell] = owner;
    }
    this.#free--;
  }

  /** The cells in which something was written, in the order of the grid. */
  *all(): Generator<Cell, void, undefined> {
    const owners = this.#owners;
    if (owners instanceof Map) {
      const cells = Float64Array.from(owners.keys()).sort();
      for (const cell of cells) yield this.#cell(cell, owners.get(cell) as number);
      return;
    }
    for (let cell = 0; cell < owners.length; cell++) {
      const owner = owners[cell] as number;
      if (owner !== UNSEEN) yield this.#cell(cell, owner);
    }
  }

  #cell(cell: number, owner: number): Cell {
    const { shape } = this.#extent;
    const rank = shape.length;
    const at: number[] = new Array(rank).fill(0);
    const start = new Float64Array(rank);
    const count = new Float64Array(rank);
    let left = cell;
    for (let d = rank - 1; d >= 0; d--) {
      const per = this.#per[d] as number;
      const size = this.chunk[d] as number;
      at[d] = left % per;
      left = Math.floor(left / per);
      start[d] = (at[d] as number) * size;
      count[d] = Math.min(size, (shape[d] as number) - (start[d] as number));
    }
    const isFull = count.every((n, d) => n === this.chunk[d]);
    const offset = owner >= 0 && isFull && this.#extent.isLocal ? this.#offset(owner, start, count) : null;
    const stored = offset !== null && this.#extent.filtered ? (this.#index.stored?.[owner] as number) : this.chunkBytes;
    return { at, start, count, offset, stored, isWhole: owner >= 0, block: owner };
  }

  /** Where the chunk's bytes are, if they are one stretch of the block (or its whole stream). */
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

  #count({ offset, isWhole, count, block }: Cell, seen: Uint8Array): void {
    this.cells++;
    if (isWhole && seen[block] === 0) {
      seen[block] = 1;
      this.blocks++;
    }
    if (offset !== null) {
      this.inPlace++;
      return;
    }
    this.moving += this.chunkBytes;
    if (isWhole && count.some((n, d) => n < (this.chunk[d] as number))) this.edges++;
    else this.mixed += this.chunkBytes;
  }
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
