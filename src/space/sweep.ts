import { BoxList } from './box-list.ts';

/**
 * Which elements a set operation keeps, as a truth table: bit (1 * in A + 2 * in B) says whether an element stays.
 * With lists of boxes as sides A and B, overlaps inside a side do no harm.
 */
export const KEEP = { or: 0b1110, and: 0b1000, xor: 0b0110, minus: 0b0010 } as const;
export type SetOperation = keyof typeof KEEP;

/** A set operation on boxes: those before `border` are side A, the others side B. `ordered` asks for row-major order. */
export interface Problem {
  readonly list: BoxList;
  readonly border: number;
  readonly keep: number;
  readonly ordered: boolean;
}

/** With more active boxes than this, the dimensions below are solved as a problem of their own, with its own choice of method. */
const CROWD = 256;

/**
 * Sweeps along dimension 0: between two neighbouring boundaries the same boxes are active, and what they give in the
 * other dimensions is found the same way. Equal neighbouring segments are joined, so the result has one normal form.
 * Costs the sum of active boxes over all segments; `crowded` solves a segment with very many.
 */
export function sweep(problem: Problem, crowded: (problem: Problem) => BoxList): BoxList {
  const { list } = problem;
  const out = new BoxList(list.rank, Math.max(4, Math.min(list.length, 1024)));
  const all = new Int32Array(list.length);
  for (let i = 0; i < all.length; i++) all[i] = i;
  new Sweep(problem, crowded).level(0, all, all.length, out);
  return out;
}

class Sweep {
  readonly #list: BoxList;
  readonly #problem: Problem;
  readonly #crowded: (problem: Problem) => BoxList;
  /** One per dimension, made at its first use and reused for every segment of the dimension above. */
  readonly #segments: Segments[] = [];

  constructor(problem: Problem, crowded: (problem: Problem) => BoxList) {
    this.#list = problem.list;
    this.#problem = problem;
    this.#crowded = crowded;
  }

  /** Appends to `out` what the first `n` boxes of `which` give in the dimensions from d on; reorders `which`. */
  level(d: number, which: Int32Array, n: number, out: BoxList): void {
    const { border, keep } = this.#problem;
    const { rank, lo, hi } = this.#list;
    let present = 0;
    for (let i = 0; i < n; i++) present |= (which[i] as number) < border ? 1 : 2;
    if (present !== 3 && ((keep >> present) & 1) === 0) return;
    if (n === 1) {
      out.push(lo, hi, (which[0] as number) * rank + d);
      return;
    }
    sortByLow(which, n, lo, rank, d);
    if (d === rank - 1) this.#line(which, n, out);
    else this.#walk(d, which, n, out);
  }

  #walk(d: number, sorted: Int32Array, n: number, out: BoxList): void {
    const { rank, lo, hi } = this.#list;
    this.#segments[d] ??= new Segments(rank - d - 1, this.#problem.ordered);
    const segments = this.#segments[d] as Segments;
    const active = segments.room(n);
    let busy = 0;
    let next = 0;
    let x = 0;
    while (next < n || busy > 0) {
      if (busy === 0) x = lo[(sorted[next] as number) * rank + d] as number;
      while (next < n && lo[(sorted[next] as number) * rank + d] === x) active[busy++] = sorted[next++] as number;
      let end = next < n ? (lo[(sorted[next] as number) * rank + d] as number) : Infinity;
      for (let i = 0; i < busy; i++) end = Math.min(end, hi[(active[i] as number) * rank + d] as number);

      segments.current.length = 0;
      if (busy > CROWD) segments.current.append(this.#crowded(this.#below(d + 1, active, busy)));
      else this.level(d + 1, active, busy, segments.current);
      segments.add(x, end, out);

      x = end;
      let left = 0;
      for (let i = 0; i < busy; i++) {
        const box = active[i] as number;
        if ((hi[box * rank + d] as number) > x) active[left++] = box;
      }
      busy = left;
    }
    segments.release(out);
  }

  /** The active boxes without the dimensions before d. */
  #below(d: number, active: Int32Array, n: number): Problem {
    const { rank, lo, hi } = this.#list;
    const list = new BoxList(rank - d, n);
    let border = 0;
    for (let i = 0; i < n; i++) if ((active[i] as number) < this.#problem.border) border++;
    for (let side = 0; side < 2; side++) {
      for (let i = 0; i < n; i++) {
        const box = active[i] as number;
        if (box < this.#problem.border === (side === 0)) list.push(lo, hi, box * rank + d);
      }
    }
    return { ...this.#problem, list, border };
  }

  /** The last dimension: it is enough to know how far each side is covered. */
  #line(sorted: Int32Array, n: number, out: BoxList): void {
    const { border, keep } = this.#problem;
    const { rank, lo, hi } = this.#list;
    const d = rank - 1;
    const first = out.length;
    let coveredA = 0;
    let coveredB = 0;
    let next = 0;
    let x = 0;
    for (;;) {
      while (next < n && (lo[(sorted[next] as number) * rank + d] as number) <= x) {
        const box = sorted[next++] as number;
        const end = hi[box * rank + d] as number;
        if (box < border) coveredA = Math.max(coveredA, end);
        else coveredB = Math.max(coveredB, end);
      }
      let end = next < n ? (lo[(sorted[next] as number) * rank + d] as number) : Infinity;
      const sides = (coveredA > x ? 1 : 0) + (coveredB > x ? 2 : 0);
      if (sides === 0) {
        if (next === n) return;
        x = end;
        continue;
      }
      if (coveredA > x) end = Math.min(end, coveredA);
      if (coveredB > x) end = Math.min(end, coveredB);
      if ((keep >> sides) & 1) {
        const last = out.length - 1;
        if (last >= first && out.hi[last] === x) out.hi[last] = end;
        else {
          out.reserve(1);
          out.lo[out.length] = x;
          out.hi[out.length] = end;
          out.length++;
        }
      }
      x = end;
    }
  }
}

/** Joins equal neighbouring segments: the last one is held back until it is known whether the next one continues it. */
class Segments {
  current: BoxList;
  #held: BoxList;
  #from = 0;
  #end = 0;
  #active = new Int32Array(16);
  readonly #ordered: boolean;

  constructor(innerRank: number, ordered: boolean) {
    this.current = new BoxList(innerRank);
    this.#held = new BoxList(innerRank);
    this.#ordered = ordered;
  }

  room(n: number): Int32Array {
    if (this.#active.length < n) this.#active = new Int32Array(n * 2);
    return this.#active;
  }

  add(from: number, end: number, out: BoxList): void {
    if (this.#held.length > 0 && this.#end === from && this.#held.equals(this.current)) {
      this.#end = end;
      return;
    }
    this.release(out);
    const free = this.#held;
    this.#held = this.current;
    this.current = free;
    this.#from = from;
    this.#end = end;
  }

  release(out: BoxList): void {
    const inner = this.#held;
    const n = inner.length;
    if (n > 1 && this.#ordered) {
      // Several blocks in each of several rows interleave: only single rows keep the row-major order.
      out.reserve((this.#end - this.#from) * n);
      for (let row = this.#from; row < this.#end; row++) {
        for (let i = 0; i < n; i++) out.pushBelow(row, row + 1, inner, i);
      }
    } else {
      for (let i = 0; i < n; i++) out.pushBelow(this.#from, this.#end, inner, i);
    }
    inner.length = 0;
  }
}

function sortByLow(which: Int32Array, n: number, lo: Float64Array, rank: number, d: number): void {
  let moves = 0;
  for (let i = 1; i < n; i++) {
    const box = which[i] as number;
    const low = lo[box * rank + d] as number;
    let to = i;
    // Insertion: the lists are short or nearly sorted, because what they come from is in row-major order.
    while (to > 0 && (lo[(which[to - 1] as number) * rank + d] as number) > low) {
      which[to] = which[to - 1] as number;
      to--;
    }
    which[to] = box;
    moves += i - to;
    if (moves > 8 * n + 64) {
      which.subarray(0, n).sort((a, b) => (lo[a * rank + d] as number) - (lo[b * rank + d] as number));
      return;
    }
  }
}
