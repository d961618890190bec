import { overlaps } from '../../space/box.ts';

/** Children of a node. */
const FANOUT = 16;
const FANOUT_BITS = 4;
/** Leaves of more blocks are split by the first query that looks into them. */
const SPLIT_AT_ONCE = 2048;
/** Smaller ones are scanned a few times first: one query should not pay for a tree. */
const SCANS = 8;
/** Leaves of so few blocks are never split. */
const SMALL_LEAF = 32;
/** Levels of nodes that one split adds at most. */
const MOST_LEVELS = 4;
/** Up to so many cells long, the largest block tells well enough how far blocks reach beyond their cells. */
const FEW_CELLS = 4;

/** Boxes in flat lists: the blocks of a dataset. */
interface BlockList {
  readonly rank: number;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/**
 * An R-tree over blocks [from, to) of flat lists that is built as far as queries need it: everything in a few typed arrays, nothing per
 * block but its number. A leaf that queries look into is split by a grid over the centres of its blocks. The cells are in the order
 * of a space-filling curve: sixteen neighbours make a node, sixteen nodes one of the next level.
 */
export class PackedTree {
  readonly from: number;
  readonly to: number;
  readonly #list: BlockList;
  /** Block numbers, those of a node one after the other; null before the first split: as they are in the lists. */
  #order: Uint32Array | null = null;
  // Nodes: the places of their blocks in the order, the first of their sixteen children (0: none), how often a leaf was scanned.
  #first = new Uint32Array(FANOUT);
  #end = new Uint32Array(FANOUT);
  #children = new Uint32Array(FANOUT);
  #scans = new Uint8Array(FANOUT);
  /** Bounds of each node: rank lows, then rank highs (exclusive). */
  #bounds: Float64Array;
  #nodes = 1;

  constructor(list: BlockList, from: number, to: number) {
    this.from = from;
    this.to = to;
    this.#list = list;
    this.#bounds = new Float64Array(FANOUT * 2 * list.rank);
    this.#end[0] = to - from;
  }

  get bytes(): number {
    return 4 * (this.to - this.from) + this.#bounds.byteLength + 13 * this.#first.length;
  }

  /** Adds the numbers of all blocks that share an element with the box [low, high) to `found`. */
  query(low: Float64Array, high: Float64Array, found: NumberList): void {
    this.#search(0, low, high, found);
  }

  /** Of a node that may hold some of them. */
  #search(node: number, low: Float64Array, high: Float64Array, found: NumberList): void {
    const { rank, starts, counts } = this.#list;
    let child = this.#children[node] as number;
    if (child === 0 && this.#isDue(node)) child = this.#split(node);
    if (child > 0) {
      // Most children do not: that is found out here, without a call for each. A split below gives the tree other lists.
      for (let end = child + FANOUT; child < end; child++)
        if (meets(this.#bounds, child * 2 * rank, rank, low, high)) this.#search(child, low, high, found);
      return;
    }
    const { from } = this;
    const order = this.#order;
    const end = this.#end[node] as number;
    for (let i = this.#first[node] as number; i < end; i++) {
      const block = order ? (order[i] as number) : from + i;
      if (overlaps(starts, counts, block * rank, rank, low, high)) found.push(block);
    }
  }

  #isDue(node: number): boolean {
    const length = (this.#end[node] as number) - (this.#first[node] as number);
    if (length <= SMALL_LEAF) return false;
    if (length > SPLIT_AT_ONCE) return true;
    const scans = (this.#scans[node] as number) + 1;
    this.#scans[node] = scans;
    return scans > SCANS;
  }

  /** Splits a leaf and gives its first child; 0 if all blocks have the same centre. */
  #split(node: number): number {
    const first = this.#first[node] as number;
    const end = this.#end[node] as number;
    const levels = Math.min(MOST_LEVELS, Math.ceil(Math.log2((end - first) / SMALL_LEAF) / FANOUT_BITS));
    const cells = FANOUT ** levels;
    const blocks = { list: this.#list, order: this.#order, from: this.from, first, end };
    const grid = Grid.over(blocks, levels * FANOUT_BITS);
    this.#scans[node] = 0;
    if (!grid) return 0;
    const keys = grid.keys(blocks);
    const ends = new Uint32Array(cells);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as number;
      ends[key] = (ends[key] as number) + 1;
    }
    for (let i = 0, sum = first; i < cells; i++) {
      sum += ends[i] as number;
      ends[i] = sum;
    }
    const child = this.#add(node, levels, first, ends);
    const leaf = this.#nodes - cells;
    if (!import.meta.page && hasSmallBlocks(grid)) boundByCells(this.#bounds, leaf, cells, grid);
    else this.#boundByBlocks(leaf, keys, first);
    this.#boundByChildren(child, leaf);
    // From the last to the first, so that blocks keep their order in a cell.
    const order = this.#order;
    const { from } = this;
    const sorted = new Uint32Array(end - first);
    for (let i = keys.length - 1; i >= 0; i--) {
      const key = keys[i] as number;
      const place = (ends[key] as number) - 1;
      ends[key] = place;
      sorted[place - first] = order ? (order[first + i] as number) : from + i;
    }
    if (order) order.set(sorted, first);
    else this.#order = sorted;
    return child;
  }

  /** Adds the nodes of so many levels below a node, level by level; the children of a node are neighbours. Gives the first. */
  #add(node: number, levels: number, first: number, ends: Uint32Array): number {
    const top = this.#nodes;
    let count = 0;
    for (let level = 1; level <= levels; level++) count += FANOUT ** level;
    this.#reserve(count);
    this.#children[node] = top;
    let next = top;
    for (let level = 1; level <= levels; level++) {
      const width = FANOUT ** level;
      const cells = ends.length / width;
      const below = next + width;
      for (let i = 0; i < width; i++, next++) {
        this.#first[next] = i === 0 ? first : (ends[i * cells - 1] as number);
        this.#end[next] = ends[(i + 1) * cells - 1] as number;
        this.#children[next] = level === levels ? 0 : below + i * FANOUT;
        this.#scans[next] = 0;
      }
    }
    this.#nodes = next;
    return top;
  }

  #reserve(count: number): void {
    const needed = this.#nodes + count;
    if (needed <= this.#first.length) return;
    const size = Math.max(needed, Math.ceil(this.#first.length * 1.5));
    const grown = <L extends Uint32Array | Uint8Array | Float64Array>(list: L, larger: L): L => {
      larger.set(list);
      return larger;
    };
    this.#first = grown(this.#first, new Uint32Array(size));
    this.#end = grown(this.#end, new Uint32Array(size));
    this.#children = grown(this.#children, new Uint32Array(size));
    this.#scans = grown(this.#scans, new Uint8Array(size));
    this.#bounds = grown(this.#bounds, new Float64Array(size * 2 * this.#list.rank));
  }

  /** Works out the bounds of new leaves, which are the last nodes, from their blocks. */
  #boundByBlocks(leaf: number, keys: Uint16Array, first: number): void {
    const { rank, starts, counts } = this.#list;
    const bounds = this.#bounds;
    const order = this.#order;
    const width = 2 * rank;
    for (let at = leaf * width; at < this.#nodes * width; at += width) {
      bounds.fill(Infinity, at, at + rank);
      bounds.fill(-Infinity, at + rank, at + width);
    }
    const { from } = this;
    for (let i = 0; i < keys.length; i++) {
      const at = (leaf + (keys[i] as number)) * width;
      const k = (order ? (order[first + i] as number) : from + i) * rank;
      for (let d = 0; d < rank; d++) {
        const low = starts[k + d] as number;
        const high = low + (counts[k + d] as number);
        if (low < (bounds[at + d] as number)) bounds[at + d] = low;
        if (high > (bounds[at + rank + d] as number)) bounds[at + rank + d] = high;
      }
    }
  }

  /** Works out the bounds of new nodes that are no leaves. */
  #boundByChildren(top: number, leaf: number): void {
    const { rank } = this.#list;
    const bounds = this.#bounds;
    const width = 2 * rank;
    for (let node = leaf - 1; node >= top; node--) {
      const at = node * width;
      const child = (this.#children[node] as number) * width;
      bounds.copyWithin(at, child, child + width);
      for (let k = child + width; k < child + FANOUT * width; k += width) {
        for (let d = 0; d < rank; d++) {
          if ((bounds[k + d] as number) < (bounds[at + d] as number)) bounds[at + d] = bounds[k + d] as number;
          if ((bounds[k + rank + d] as number) > (bounds[at + rank + d] as number))
            bounds[at + rank + d] = bounds[k + rank + d] as number;
        }
      }
    }
  }
}

/** Whether the bounds at a place share an element with the box [low, high). */
function meets(bounds: Float64Array, at: number, rank: number, low: Float64Array, high: Float64Array): boolean {
  for (let d = 0; d < rank; d++)
    if ((bounds[at + d] as number) >= (high[d] as number) || (bounds[at + rank + d] as number) <= (low[d] as number))
      return false;
  return true;
}

/** Blocks at places [first, end) of an order; without one they are the blocks from `from` on. */
interface Blocks {
  readonly list: BlockList;
  readonly order: Uint32Array | null;
  readonly from: number;
  readonly first: number;
  readonly end: number;
}

/** A dimension in which the centres of blocks differ. */
interface GridDimension {
  readonly d: number;
  /** The smallest centre. */
  readonly low: number;
  /** Cells per element. */
  readonly scale: number;
  /** What each cell adds to the number, and where its bits are there, the lowest first. */
  readonly parts: Uint16Array;
  readonly places: readonly number[];
}

/** A grid over the centres of blocks, whose cells are numbered along a space-filling curve (Morton order). */
class Grid {
  readonly dimensions: readonly GridDimension[];
  /** In every dimension the smallest and the largest centre, and the half of the largest block. */
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly half: Float64Array;

  private constructor(
    dimensions: readonly number[],
    [low, high, half]: readonly [Float64Array, Float64Array, Float64Array],
    bits: number,
  ) {
    this.low = low;
    this.high = high;
    this.half = half;
    this.dimensions = dimensions.map((d, v) => {
      // Bits are dealt out in turn, the first dimension has the highest.
      const places: number[] = [];
      for (let bit = bits - 1 - v; bit >= 0; bit -= dimensions.length) places.unshift(bit);
      const cells = 1 << places.length;
      const parts = new Uint16Array(cells);
      // A cell has one bit more than an earlier one.
      for (let b = 0, half = 1; half < cells; b++, half *= 2) {
        const added = 1 << (places[b] as number);
        for (let cell = 0; cell < half; cell++) parts[half + cell] = (parts[cell] as number) | added;
      }
      const least = low[d] as number;
      return { d, low: least, scale: cells / ((high[d] as number) - least), parts, places };
    });
  }

  /** Over some blocks; null if their centres are all the same. */
  static over({ list, order, from, first, end }: Blocks, bits: number): Grid | null {
    const { rank, starts, counts } = list;
    const low = new Float64Array(rank);
    const high = new Float64Array(rank);
    const half = new Float64Array(rank);
    // One dimension after the other: what is found stays in registers.
    for (let d = 0; d < rank; d++) {
      let [least, most, largest] = [Infinity, -Infinity, 0];
      for (let i = first; i < end; i++) {
        const k = (order ? (order[i] as number) : from + i) * rank + d;
        const extent = (counts[k] as number) / 2;
        const centre = (starts[k] as number) + extent;
        if (centre < least) least = centre;
        if (centre > most) most = centre;
        if (extent > largest) largest = extent;
      }
      low[d] = least;
      high[d] = most;
      half[d] = largest;
    }
    const dimensions: number[] = [];
    for (let d = 0; d < rank && dimensions.length < bits; d++)
      if ((high[d] as number) > (low[d] as number)) dimensions.push(d);
    return dimensions.length > 0 ? new Grid(dimensions, [low, high, half], bits) : null;
  }

  /** The cells of the blocks. */
  keys({ list, order, from, first, end }: Blocks): Uint16Array {
    const { rank, starts, counts } = list;
    const keys = new Uint16Array(end - first);
    for (const { d, low, scale, parts } of this.dimensions) {
      const last = parts.length - 1;
      if (!import.meta.page && this.dimensions.length === 1) {
        // Along one dimension cells have their places for numbers.
        for (let i = first; i < end; i++) {
          const k = (order ? (order[i] as number) : from + i) * rank + d;
          const cell = ((starts[k] as number) + (counts[k] as number) / 2 - low) * scale;
          keys[i - first] = cell > last ? last : cell;
        }
        break;
      }
      for (let i = first; i < end; i++) {
        const k = (order ? (order[i] as number) : from + i) * rank + d;
        const cell = ((starts[k] as number) + (counts[k] as number) / 2 - low) * scale;
        const key = parts[cell > last ? last : cell | 0] as number;
        keys[i - first] = (keys[i - first] as number) | key;
      }
    }
    return keys;
  }
}

function hasSmallBlocks({ dimensions, half }: Grid): boolean {
  return dimensions.every(({ d, scale }) => 2 * (half[d] as number) * scale <= FEW_CELLS);
}

/**
 * Gives new leaves, one for each cell, the bounds of their cells and what the largest block reaches beyond: without a look at the
 * blocks.
 */
function boundByCells(bounds: Float64Array, leaf: number, leaves: number, { dimensions, low, high, half }: Grid): void {
  const rank = low.length;
  const width = 2 * rank;
  const end = (leaf + leaves) * width;
  for (let d = 0; d < rank; d++) {
    const least = (low[d] as number) - (half[d] as number);
    const most = (high[d] as number) + (half[d] as number);
    for (let at = leaf * width + d; at < end; at += width) {
      bounds[at] = least;
      bounds[at + rank] = most;
    }
  }
  for (const { d, low: least, scale, parts, places } of dimensions) {
    const cells = cellsAlong(places, leaves);
    const last = parts.length - 1;
    // Sizes are whole numbers, and less than one is lost by rounding.
    const beyond = (half[d] as number) + 1;
    for (let i = 0, at = leaf * width + d; i < leaves; i++, at += width) {
      const cell = cells[i] as number;
      if (cell > 0) bounds[at] = least + cell / scale - beyond;
      if (cell < last) bounds[at + rank] = least + (cell + 1) / scale + beyond;
    }
  }
}

/** By number of a cell on the curve its place in the dimension whose bits are at these places of the number. */
function cellsAlong(places: readonly number[], cells: number): Uint16Array {
  const along = new Uint16Array(cells);
  for (let bit = 0, half = 1; half < cells; bit++, half *= 2) {
    const b = places.indexOf(bit);
    const added = b < 0 ? 0 : 1 << b;
    for (let i = 0; i < half; i++) along[half + i] = (along[i] as number) | added;
  }
  return along;
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
