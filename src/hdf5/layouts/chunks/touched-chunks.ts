// Which chunks boxes touch, as flat lists in the order of the chunks.

import type { Boxes } from '../../../space/box.ts';
import type { ChunkWalk } from '../../../space/grid.ts';

/** Parts of boxes that one round handles: a grid of tiny chunks may have more than there is memory for. */
const ROUND = 2 ** 20;
// V8 takes longer to make a list than a small read takes to look into one.
const NO_NUMBERS = new Float64Array(0);
const NO_OWNERS = new Uint32Array(0);

/** The chunks that boxes touch, in rounds of at most {@link ROUND}. */
export class TouchedChunks {
  /** The numbers of the chunks, ascending, and for each the number of the box. */
  numbers = NO_NUMBERS;
  owners = NO_OWNERS;
  isLast = false;
  readonly #boxes: Boxes;
  readonly #walk: ChunkWalk;
  /** How many chunks the dataset has. */
  readonly #chunks: number;
  #box = 0;
  /** Chunks of this box that are still to come. */
  #left: number;

  constructor(boxes: Boxes, walk: ChunkWalk, chunks: number) {
    this.#boxes = boxes;
    this.#walk = walk;
    this.#chunks = chunks;
    this.#left = boxes.length > 0 ? walk.begin(boxes.starts, boxes.counts, 0) : 0;
  }

  /** Goes to the next round; false if there is none. */
  next(): boolean {
    if (this.isLast) return false;
    const { starts, counts, rank, length } = this.#boxes;
    const walk = this.#walk;
    // A read of one box knows how many chunks there are.
    let numbers = new Float64Array(Math.min(ROUND, length === 1 ? this.#left : Math.max(16, length)));
    let owners = new Uint32Array(numbers.length);
    let found = 0;
    let sorted = true;
    while (this.#box < length && found < ROUND) {
      for (; this.#left > 0 && found < ROUND; this.#left--, walk.next()) {
        if (found === numbers.length) {
          numbers = grown(numbers, Float64Array);
          owners = grown(owners, Uint32Array);
        }
        if (found > 0 && walk.number < (numbers[found - 1] as number)) sorted = false;
        numbers[found] = walk.number;
        owners[found++] = this.#box;
      }
      if (this.#left === 0 && ++this.#box < length) this.#left = walk.begin(starts, counts, this.#box * rank);
    }
    this.isLast = this.#box >= length;
    const isFull = found === numbers.length;
    this.numbers = isFull ? numbers : numbers.subarray(0, found);
    this.owners = isFull ? owners : owners.subarray(0, found);
    if (!sorted) sortParts(this.numbers, this.owners, this.#chunks, length);
    return true;
  }
}

function grown<A extends Float64Array | Uint32Array>(list: A, kind: new (length: number) => A): A {
  const larger = new kind(list.length * 2);
  larger.set(list);
  return larger;
}

/** Sorts pairs of chunk and box. Where a number has room for both, the pair is sorted as one: that is several times faster. */
function sortParts(numbers: Float64Array, owners: Uint32Array, chunks: number, boxes: number): void {
  const { length } = numbers;
  if (!import.meta.page && chunks * boxes <= Number.MAX_SAFE_INTEGER) {
    const keys = numbers.map((number, i) => number * boxes + (owners[i] as number)).sort();
    for (let i = 0; i < length; i++) {
      const key = keys[i] as number;
      const number = Math.floor(key / boxes);
      numbers[i] = number;
      owners[i] = key - number * boxes;
    }
    return;
  }
  const [oldNumbers, oldOwners] = [numbers.slice(), owners.slice()];
  const order = Uint32Array.from({ length }, (_, i) => i);
  order.sort((a, b) => (oldNumbers[a] as number) - (oldNumbers[b] as number) || a - b);
  order.forEach((from, i) => {
    numbers[i] = oldNumbers[from] as number;
    owners[i] = oldOwners[from] as number;
  });
}
