import type { HandleCell } from './binding.ts';

/**
 * A pool of closed duplicates of a communicator. Creating a duplicate is a collective that takes MPICH up to 100 ms where there are
 * more ranks than cores. Each rank closes at its own time, so before a duplicate is reused the ranks compare whether all of them
 * have it back.
 */
export class Spares {
  readonly #free = new Map<number, HandleCell>();
  #created = 0;

  /** The number of a new duplicate; the same on all ranks, because creating one is collective. */
  number(): number {
    return this.#created++;
  }

  /** The lowest number that is free, or -1. */
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

  /** Takes all that are free, in the order of their creation. */
  *empty(): Iterable<HandleCell> {
    for (let first = this.first; first >= 0; first = this.first) yield this.take(first);
  }
}
