import type { BlockIndex } from '../../log/read/index.ts';
import { gridOf } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';

/** Grids of up to so many chunks are ticked off on a list; beyond, those that are there are remembered one by one. */
const LISTED = 2 ** 26;

/** Which chunks of a grid hold anything at all. */
export class TouchedChunks {
  readonly #shape: readonly number[];
  readonly #chunk: readonly number[];
  readonly #grid: readonly number[];
  readonly #bits: Uint8Array | null;
  readonly #numbers = new Set<number>();

  constructor(shape: readonly number[], chunk: readonly number[]) {
    this.#shape = shape;
    this.#chunk = chunk;
    this.#grid = gridOf(shape, chunk);
    const total = sizeOf(this.#grid);
    this.#bits = total <= LISTED ? new Uint8Array(Math.ceil(total / 8)) : null;
  }

  /** Ticks every chunk that one of the blocks reaches into; what lies outside the dataset does not count. */
  add({ rank, starts, counts, length }: BlockIndex): void {
    const first = new Float64Array(rank);
    const last = new Float64Array(rank);
    const cell = new Float64Array(rank);
    for (let i = 0; i < length; i++) {
      let inside = true;
      for (let d = 0, k = i * rank; d < rank; d++, k++) {
        const low = starts[k] as number;
        const high = Math.min(low + (counts[k] as number), this.#shape[d] as number);
        if (high <= low) inside = false;
        first[d] = Math.floor(low / (this.#chunk[d] as number));
        last[d] = Math.floor((high - 1) / (this.#chunk[d] as number));
      }
      if (inside) this.#tick(first, last, cell);
    }
  }

  #tick(first: Float64Array, last: Float64Array, cell: Float64Array): void {
    const rank = first.length;
    cell.set(first);
    for (;;) {
      let number = 0;
      for (let d = 0; d < rank; d++) number = number * (this.#grid[d] as number) + (cell[d] as number);
      if (this.#bits) this.#bits[number >> 3] = (this.#bits[number >> 3] as number) | (1 << (number & 7));
      else this.#numbers.add(number);
      let d = rank - 1;
      for (; d >= 0; d--) {
        cell[d] = (cell[d] as number) + 1;
        if ((cell[d] as number) <= (last[d] as number)) break;
        cell[d] = first[d] as number;
      }
      if (d < 0) return;
    }
  }

  /** Their row-major numbers in the grid, ascending. */
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
