import type { HandleCell } from './binding.ts';

/**
 * Communicators of all ranks of another one that were closed, for the next who needs one: to make one is a collective of its own, which
 * takes MPICH up to 100 ms where there are more ranks than cores. Each rank closes in its own time, so before one is used
 * again the ranks compare whether all of them have it back.
 */
export class Spares {
  readonly #free = new Map<number, HandleCell>();
  #made = 0;

  /** The number of a new one; the same on all ranks, which make them together. */
  number(): number {
    return this.#made++;
  }

  /** The number of the first that is free, or -1. */
  get first(): number {
    return this.#free.size === 0 ? -1 : Math.min(...this.#free.keys());
  }

  take(number: number): HandleCell {
    const cell = this.#free.get(number) as HandleCell;
    this.#free.delete(number);
    return cell;
  }

  give(number: number, cell: HandleCell): void {
    this.#free.set(number, cell);
  }

  /** All that are free, in the order in which they were made. */
  *empty(): Iterable<HandleCell> {
    for (let first = this.first; first >= 0; first = this.first) yield this.take(first);
  }
}
