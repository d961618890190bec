import { overlaps } from '../../space/box.ts';
import { sortByKeys } from '../../space/sort.ts';

const NODE = 16;

/** Boxes in flat lists: the blocks of a dataset. */
interface BlockList {
  readonly rank: number;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/**
 * A packed R-tree over blocks [from, to) of flat lists: everything in a few typed arrays, nothing per block but its number.
 * Blocks are sorted along a space-filling curve; sixteen neighbours make a node, sixteen nodes one of the next level.
 */
export class PackedTree {
  readonly from: number;
  readonly to: number;
  readonly #list: BlockList;
  /** Block numbers in the order of the curve. */
  readonly #order: Uint32Array;
  /** Bounds of the nodes, level by level from the validExtent: rank lows, then rank highs (exclusive). */
  readonly #bounds: Float64Array;
  /** First node of each level. */
  readonly #levels: number[] = [];

  constructor(list: BlockList, from: number, to: number) {
    this.from = from;
    this.to = to;
    this.#list = list;
    this.#order = curveOrder(list, from, to);
    let nodes = 0;
    for (let width = to - from; ; ) {
      width = Math.ceil(width / NODE);
      this.#levels.push(nodes);
      nodes += width;
      if (width <= 1) break;
    }
    this.#levels.push(nodes);
    this.#bounds = new Float64Array(nodes * 2 * list.rank);
    this.#fill();
  }

  get bytes(): number {
    return this.#order.byteLength + this.#bounds.byteLength;
  }

  #fill(): void {
    const { rank, starts, counts } = this.#list;
    const bounds = this.#bounds;
    const width = 2 * rank;
    const leaves = this.#levels[1] as number;
    for (let n = 0; n < leaves; n++) {
      const at = n * width;
      bounds.fill(Infinity, at, at + rank);
      bounds.fill(-Infinity, at + rank, at + width);
      const end = Math.min((n + 1) * NODE, this.#order.length);
      for (let i = n * NODE; i < end; i++) {
        const k = (this.#order[i] as number) * rank;
        for (let d = 0; d < rank; d++) {
          const low = starts[k + d] as number;
          const high = low + (counts[k + d] as number);
          if (low < (bounds[at + d] as number)) bounds[at + d] = low;
          if (high > (bounds[at + rank + d] as number)) bounds[at + rank + d] = high;
        }
      }
    }
    for (let level = 1; level + 1 < this.#levels.length; level++) {
      const first = this.#levels[level] as number;
      const below = this.#levels[level - 1] as number;
      const end = this.#levels[level + 1] as number;
      for (let n = first; n < end; n++) {
        const at = n * width;
        bounds.fill(Infinity, at, at + rank);
        bounds.fill(-Infinity, at + rank, at + width);
        const childEnd = Math.min(below + (n - first + 1) * NODE, first);
        for (let child = below + (n - first) * NODE; child < childEnd; child++) {
          const k = child * width;
          for (let d = 0; d < rank; d++) {
            if ((bounds[k + d] as number) < (bounds[at + d] as number)) bounds[at + d] = bounds[k + d] as number;
            if ((bounds[k + rank + d] as number) > (bounds[at + rank + d] as number))
              bounds[at + rank + d] = bounds[k + rank + d] as number;
          }
        }
      }
    }
  }

  /** Adds the numbers of all blocks that share an element with the box [low, high) to `found`. */
  query(low: Float64Array, high: Float64Array, found: NumberList): void {
    const top = this.#levels.length - 2;
    this.#search(top, this.#levels[top] as number, low, high, found);
  }

  #search(level: number, node: number, low: Float64Array, high: Float64Array, found: NumberList): void {
    const { rank, starts, counts } = this.#list;
    const width = 2 * rank;
    const at = node * width;
    for (let d = 0; d < rank; d++) {
      if (
        (this.#bounds[at + d] as number) >= (high[d] as number) ||
        (this.#bounds[at + rank + d] as number) <= (low[d] as number)
      )
        return;
    }
    const n = node - (this.#levels[level] as number);
    if (level > 0) {
      const below = this.#levels[level - 1] as number;
      const end = Math.min(below + (n + 1) * NODE, this.#levels[level] as number);
      for (let child = below + n * NODE; child < end; child++) this.#search(level - 1, child, low, high, found);
      return;
    }
    const end = Math.min((n + 1) * NODE, this.#order.length);
    for (let i = n * NODE; i < end; i++) {
      const block = this.#order[i] as number;
      if (overlaps(starts, counts, block * rank, rank, low, high)) found.push(block);
    }
  }
}

/** A growing list of block numbers without an object a number. */
export class NumberList {
  values = new Uint32Array(64);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const grown = new Uint32Array(this.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.length++] = value;
  }

  /** The numbers in ascending order. */
  sorted(): Uint32Array {
    const list = this.values.subarray(0, this.length);
    for (let i = 1; i < list.length; i++) if ((list[i] as number) < (list[i - 1] as number)) return list.sort();
    return list;
  }
}

/** Block numbers sorted by the Morton code of their centres, with 30 bits shared among the dimensions that vary. */
function curveOrder(list: BlockList, from: number, to: number): Uint32Array {
  const { rank, starts, counts } = list;
  const count = to - from;
  const low = new Float64Array(rank).fill(Infinity);
  const high = new Float64Array(rank).fill(-Infinity);
  for (let i = from; i < to; i++) {
    for (let d = 0; d < rank; d++) {
      const centre = (starts[i * rank + d] as number) + (counts[i * rank + d] as number) / 2;
      if (centre < (low[d] as number)) low[d] = centre;
      if (centre > (high[d] as number)) high[d] = centre;
    }
  }
  const varying: number[] = [];
  for (let d = 0; d < rank; d++) if ((high[d] as number) > (low[d] as number)) varying.push(d);
  const keys = new Uint32Array(count);
  if (varying.length > 0) {
    const bits = Math.max(1, Math.floor(30 / varying.length));
    const used = varying.slice(0, 30);
    for (let i = 0; i < count; i++) {
      const k = (from + i) * rank;
      let key = 0;
      for (let v = 0; v < used.length; v++) {
        const d = used[v] as number;
        const centre = (starts[k + d] as number) + (counts[k + d] as number) / 2;
        const cell = Math.floor(
          ((centre - (low[d] as number)) / ((high[d] as number) - (low[d] as number))) * (2 ** bits - 1),
        );
        if (used.length === 1) key = cell;
        else for (let b = 0; b < bits; b++) key |= ((cell >>> b) & 1) << (b * used.length + v);
      }
      keys[i] = key >>> 0;
    }
  }
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  const sorted = sortByKeys(keys, order, 30);
  for (let i = 0; i < count; i++) sorted[i] = (sorted[i] as number) + from;
  return sorted;
}
