import type { Boxes } from './box.ts';
import { selectionError } from './shape.ts';

/** 1 GiB in each of the two lists. A selection with more blocks would not fit into a table of the log either. */
const MAX_NUMBERS = 2 ** 27;

/** A growing list of boxes [lo, hi), the representation that all set operations work on. */
export class BoxList {
  readonly rank: number;
  length = 0;
  /** What {@link volume} gives, where it is known; of a list that does not change any more. */
  size?: number;
  lo: Float64Array;
  hi: Float64Array;

  constructor(rank: number, capacity = 4) {
    this.rank = rank;
    if (capacity * rank > MAX_NUMBERS) throw tooMany(rank);
    this.lo = new Float64Array(capacity * rank);
    this.hi = new Float64Array(capacity * rank);
  }

  static from(boxes: Boxes): BoxList {
    const list = new BoxList(boxes.rank, boxes.length);
    list.length = boxes.length;
    const n = boxes.length * boxes.rank;
    for (let i = 0; i < n; i++) {
      const start = boxes.starts[i] as number;
      list.lo[i] = start;
      list.hi[i] = start + (boxes.counts[i] as number);
    }
    return list;
  }

  /** A list whose boxes are the first ones of these two lists, which it keeps. */
  static of(rank: number, length: number, lo: Float64Array, hi: Float64Array): BoxList {
    if (lo.length > MAX_NUMBERS) throw tooMany(rank);
    const list = new BoxList(rank, 0);
    list.lo = lo;
    list.hi = hi;
    list.length = length;
    return list;
  }

  /** Makes room for `more` boxes. */
  reserve(more: number): void {
    const needed = (this.length + more) * this.rank;
    if (needed <= this.lo.length) return;
    if (needed > MAX_NUMBERS) throw tooMany(this.rank);
    const capacity = Math.min(Math.max(needed, this.lo.length * 2), MAX_NUMBERS);
    this.lo = grown(this.lo, capacity);
    this.hi = grown(this.hi, capacity);
  }

  /** Appends the box whose numbers begin at `at`. */
  push(lo: ArrayLike<number>, hi: ArrayLike<number>, at = 0): void {
    this.reserve(1);
    const to = this.length * this.rank;
    for (let d = 0; d < this.rank; d++) {
      this.lo[to + d] = lo[at + d] as number;
      this.hi[to + d] = hi[at + d] as number;
    }
    this.length++;
  }

  append(other: BoxList): void {
    this.reserve(other.length);
    const n = other.length * this.rank;
    this.lo.set(other.lo.subarray(0, n), this.length * this.rank);
    this.hi.set(other.hi.subarray(0, n), this.length * this.rank);
    this.length += other.length;
  }

  /** Appends the box [from, end) x (box i of `inner`, which has one dimension less). */
  pushBelow(from: number, end: number, inner: BoxList, i: number): void {
    this.reserve(1);
    let to = this.length * this.rank;
    this.lo[to] = from;
    this.hi[to] = end;
    const width = inner.rank;
    for (let d = i * width; d < (i + 1) * width; d++) {
      to++;
      this.lo[to] = inner.lo[d] as number;
      this.hi[to] = inner.hi[d] as number;
    }
    this.length++;
  }

  equals(other: BoxList): boolean {
    if (this.length !== other.length) return false;
    const n = this.length * this.rank;
    for (let i = 0; i < n; i++) if (this.lo[i] !== other.lo[i] || this.hi[i] !== other.hi[i]) return false;
    return true;
  }

  /** The number of elements of all boxes; one that is in several counts for each. */
  volume(): number {
    const { rank, length, lo, hi } = this;
    if (rank === 0) return length;
    let total = 0;
    for (let k = 0, size = 1, left = rank; k < length * rank; k++) {
      size *= (hi[k] as number) - (lo[k] as number);
      if (--left > 0) continue;
      total += size;
      size = 1;
      left = rank;
    }
    return total;
  }

  /** The smallest box around all; the list must not be empty. */
  bounds(): { lo: Float64Array; hi: Float64Array } {
    const { rank } = this;
    const end = this.length * rank;
    const [lo, hi] = [new Float64Array(rank), new Float64Array(rank)];
    for (let d = 0; d < rank; d++) {
      let [least, most] = [Infinity, -Infinity];
      for (let k = d; k < end; k += rank) {
        if ((this.lo[k] as number) < least) least = this.lo[k] as number;
        if ((this.hi[k] as number) > most) most = this.hi[k] as number;
      }
      lo[d] = least;
      hi[d] = most;
    }
    return { lo, hi };
  }

  /** The list as starts and counts, cut to its length. `shares`: neither changes any more, so that the starts may be the same. */
  toBoxes(shares = false): Boxes {
    const { rank, length, lo, hi } = this;
    const n = length * rank;
    const starts = shares && lo.length === n ? lo : lo.slice(0, n);
    const counts = new Float64Array(n);
    for (let i = 0; i < n; i++) counts[i] = (hi[i] as number) - (starts[i] as number);
    return { rank, length, starts, counts };
  }
}

function grown(array: Float64Array, length: number): Float64Array {
  const larger = new Float64Array(length);
  larger.set(array);
  return larger;
}

export function tooMany(rank: number) {
  const most = Math.floor(MAX_NUMBERS / Math.max(rank, 1));
  return selectionError(`the selection falls apart into more than ${most} blocks; select it in parts`);
}

/**
 * True if the data of the boxes, one after the other, is in row-major order and no element comes twice:
 * each box ends before the next begins, whole coordinates compared (format-original.md section 4, step 4).
 */
export function isRowMajor(list: BoxList): boolean {
  return orderOf(list) !== 'none';
}

/** Whether a list is in row-major order, and then whether one of its boxes may go on where the one before it ends. */
export function orderOf(list: BoxList): 'none' | 'apart' | 'touching' {
  const { rank, lo, hi } = list;
  let isTouching = false;
  for (let after = rank, last = 2 * rank - 1; after < list.length * rank; after += rank, last += rank) {
    const before = after - rank;
    let d = 0;
    while (d < rank && (hi[before + d] as number) - 1 === lo[after + d]) d++;
    if (d === rank || (hi[before + d] as number) - 1 > (lo[after + d] as number)) return 'none';
    // They join only if they are alike in all dimensions behind.
    if (hi[before + d] === lo[after + d] && (d === rank - 1 || lo[last] === lo[last - rank])) isTouching = true;
  }
  return list.length > 1 && rank === 0 ? 'none' : isTouching ? 'touching' : 'apart';
}

/**
 * Joins neighbours in a row-major list, in place: rows along the last dimension first, then planes of equal rows, and
 * so on. Dimensions before the joined one must have a single coordinate, or the joined data would change its order.
 */
export function joinNeighbours(list: BoxList): void {
  if (list.length < 2) return;
  const { rank, lo, hi } = list;
  for (let d = rank - 1; d >= 0; d--) {
    let last = 0;
    for (let i = 1; i < list.length; i++) {
      const from = i * rank;
      if (hi[last * rank + d] === lo[from + d] && continues(lo, hi, last * rank, from, d, rank)) {
        hi[last * rank + d] = hi[from + d] as number;
        continue;
      }
      last++;
      if (last === i) continue;
      const to = last * rank;
      for (let k = 0; k < rank; k++) {
        lo[to + k] = lo[from + k] as number;
        hi[to + k] = hi[from + k] as number;
      }
    }
    list.length = last + 1;
  }
}

/** Whether box b goes on in dimension d, where box a ends. */
function continues(lo: Float64Array, hi: Float64Array, a: number, b: number, d: number, rank: number): boolean {
  for (let k = d + 1; k < rank; k++) if (lo[a + k] !== lo[b + k] || hi[a + k] !== hi[b + k]) return false;
  for (let k = 0; k < d; k++) {
    const only = lo[a + k] as number;
    // Box a has only this coordinate here too: it ends before b begins.
    if (only !== lo[b + k] || hi[b + k] !== only + 1) return false;
  }
  return true;
}
