// Chunk grids: the chunks of a dataset begin at its origin and are numbered in row-major order. A chunk is named by its number or by
// its cell, which are its coordinates in chunks.

import type { Boxes } from './box.ts';
import { sizeOf } from './shape.ts';

/** How many chunks there are along each dimension. */
export function gridOf(shape: readonly number[], chunk: readonly number[]): number[] {
  return shape.map((size, d) => Math.ceil(size / (chunk[d] as number)));
}

/** The cell of a chunk, from its number. */
export function cellOf(number: number, grid: readonly number[]): number[] {
  const cell: number[] = new Array(grid.length);
  for (let d = grid.length - 1, rest = number; d >= 0; d--) {
    cell[d] = rest % (grid[d] as number);
    rest = Math.floor(rest / (grid[d] as number));
  }
  return cell;
}

/**
 * Walks through the chunks that a box touches, in row-major order. One walk serves many boxes: nothing is allocated for each.
 *
 * @example for (let left = walk.begin(starts, counts, k); left > 0; left--, walk.next()) use(walk.number);
 */
export class ChunkWalk {
  /** Where the walk is: the number of the chunk, and its cell. */
  number = 0;
  readonly cell: Float64Array;
  /** The first and the last cell along each dimension that the box touches. */
  readonly first: Float64Array;
  readonly last: Float64Array;
  readonly #shape: ArrayLike<number>;
  readonly #chunk: ArrayLike<number>;
  /** How much the number grows with the cell, by dimension. */
  readonly #steps: Float64Array;

  /** What lies outside of the shape does not count. */
  constructor(shape: ArrayLike<number>, chunk: ArrayLike<number>) {
    const rank = shape.length;
    this.cell = new Float64Array(rank);
    this.first = new Float64Array(rank);
    this.last = new Float64Array(rank);
    this.#shape = shape;
    this.#chunk = chunk;
    this.#steps = new Float64Array(rank);
    for (let d = rank - 1, step = 1; d >= 0; d--) {
      this.#steps[d] = step;
      step *= Math.ceil((shape[d] as number) / (chunk[d] as number));
    }
  }

  /** Goes to the first chunk that a box of flat lists touches; `k` is the index of its first number. Returns how many chunks it touches. */
  begin(starts: Float64Array, counts: Float64Array, k: number): number {
    let touched = 1;
    this.number = 0;
    for (let d = 0; d < this.cell.length; d++) {
      const low = starts[k + d] as number;
      const high = Math.min(low + (counts[k + d] as number), this.#shape[d] as number);
      if (high <= low) return 0;
      const size = this.#chunk[d] as number;
      const first = Math.floor(low / size);
      const last = Math.floor((high - 1) / size);
      this.first[d] = this.cell[d] = first;
      this.last[d] = last;
      this.number += first * (this.#steps[d] as number);
      touched *= last - first + 1;
    }
    return touched;
  }

  /** Goes to the next chunk; behind the last one, back to the first. */
  next(): void {
    for (let d = this.cell.length - 1; d >= 0; d--) {
      const at = this.cell[d] as number;
      const first = this.first[d] as number;
      if (at < (this.last[d] as number)) {
        this.cell[d] = at + 1;
        this.number += this.#steps[d] as number;
        return;
      }
      this.cell[d] = first;
      this.number -= (at - first) * (this.#steps[d] as number);
    }
  }
}

/** Grids of up to this many chunks have a bit for each; in larger ones the numbers of those that are touched are kept. */
const MOST_BITS = 2 ** 26;

/** The chunks of a grid that boxes touch. */
export class TouchedChunks {
  readonly #walk: ChunkWalk;
  readonly #bits: Uint8Array | null;
  readonly #numbers = new Set<number>();

  constructor(shape: readonly number[], chunk: readonly number[]) {
    this.#walk = new ChunkWalk(shape, chunk);
    const total = sizeOf(gridOf(shape, chunk));
    this.#bits = total <= MOST_BITS ? new Uint8Array(Math.ceil(total / 8)) : null;
  }

  add({ rank, starts, counts, length }: Boxes): void {
    const walk = this.#walk;
    const bits = this.#bits;
    for (let i = 0; i < length; i++) {
      for (let left = walk.begin(starts, counts, i * rank); left > 0; left--, walk.next()) {
        const { number } = walk;
        if (bits) bits[number >> 3] = (bits[number >> 3] as number) | (1 << (number & 7));
        else this.#numbers.add(number);
      }
    }
  }

  /** Their numbers, ascending. */
  numbers(): Float64Array {
    const bits = this.#bits;
    if (!bits) return Float64Array.from(this.#numbers).sort();
    let count = 0;
    for (const byte of bits) for (let rest = byte; rest > 0; rest &= rest - 1) count++;
    const numbers = new Float64Array(count);
    let found = 0;
    bits.forEach((byte, i) => {
      for (let b = 0; byte >> b > 0; b++) if ((byte >> b) & 1) numbers[found++] = i * 8 + b;
    });
    return numbers;
  }
}

interface Box {
  readonly start: number[];
  readonly count: number[];
}

/**
 * Cuts a box into pieces of at most `most` elements, in row-major order. With chunks the cuts lie between them, as far as a chunk is
 * not larger than that itself; as many whole chunks as fit make a piece, from the last dimension on.
 */
export function* piecesOf(
  start: ArrayLike<number>,
  count: ArrayLike<number>,
  chunk: readonly number[] | null,
  most: number,
): Iterable<Box> {
  const rank = start.length;
  // Without chunks the box itself is the grid.
  const unit = Array.from({ length: rank }, (_, d) => (chunk ? Math.min(chunk[d] as number, count[d] as number) : 1));
  if (chunk && sizeOf(unit) > most) {
    for (const part of cutAt(start, count, chunk, chunk)) yield* piecesOf(part.start, part.count, null, most);
    return;
  }
  const step: number[] = new Array(rank);
  let fitting = Math.floor(most / sizeOf(unit));
  for (let d = rank - 1; d >= 0; d--) {
    const [first, size] = [start[d] as number, chunk ? (chunk[d] as number) : 1];
    const origin = chunk ? Math.floor(first / size) * size : first;
    const units = Math.ceil((first + (count[d] as number) - origin) / size);
    const taken = Math.max(1, Math.min(units, fitting));
    step[d] = taken * size;
    fitting = Math.floor(fitting / taken);
  }
  yield* cutAt(start, count, step, chunk);
}

/** Cuts a box every `step` elements, counted from the beginning of its first chunk, or from its own. */
function* cutAt(
  start: ArrayLike<number>,
  count: ArrayLike<number>,
  step: readonly number[],
  chunk: readonly number[] | null,
): Iterable<Box> {
  const rank = start.length;
  const origin = step.map((_, d) => {
    const first = start[d] as number;
    return chunk ? Math.floor(first / (chunk[d] as number)) * (chunk[d] as number) : first;
  });
  const end = step.map((_, d) => (start[d] as number) + (count[d] as number));
  const low = [...origin];
  for (;;) {
    const from = low.map((at, d) => Math.max(at, start[d] as number));
    yield {
      start: from,
      count: from.map((at, d) => Math.min((low[d] as number) + (step[d] as number), end[d] as number) - at),
    };
    let d = rank - 1;
    for (; d >= 0; d--) {
      low[d] = (low[d] as number) + (step[d] as number);
      if ((low[d] as number) < (end[d] as number)) break;
      low[d] = origin[d] as number;
    }
    if (d < 0) return;
  }
}
