import { Random } from '../../src/bench/random.ts';

/** In a later turn of the event loop; where there is setImmediate, without the millisecond that a timer costs. */
const soon: (work: () => void) => unknown =
  typeof setImmediate === 'function' ? setImmediate : (work) => setTimeout(work, 0);

/** Lets asynchronous operations take their turn in random order, each in a later turn of the event loop. */
export class Delays {
  readonly #random: Random;
  #waiting: (() => void)[] = [];
  #paused = false;
  #scheduled = false;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** Resolves when it is the caller's turn. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  /** Nobody gets a turn until `resume`. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#paused || this.#waiting.length === 0) return;
    this.#scheduled = true;
    soon(() => {
      this.#scheduled = false;
      if (this.#paused) return;
      const order = this.#random.shuffle(this.#waiting);
      // At least one goes on, or nothing would ever end.
      const count = 1 + this.#random.below(order.length);
      this.#waiting = order.slice(count);
      for (const go of order.slice(0, count)) go();
      this.#schedule();
    });
  }
}
