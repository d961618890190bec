import type { Boxes } from './box.ts';
import { BoxList, isRowMajor, joinNeighbours } from './box-list.ts';
import { KEEP, type Problem, type SetOperation, sweep } from './sweep.ts';

/** Up to this many boxes a sweep is always cheap. */
const ALWAYS_SWEPT = 64;
/** A sweep may visit each box this many times on average; beyond, it is cheaper to halve space first. */
const VISITS_PER_BOX = 24;

/** The boxes of A and B (both may overlap in themselves) combined to disjoint boxes. */
export function combine(a: BoxList, b: BoxList, operation: SetOperation, ordered: boolean): BoxList {
  const list = new BoxList(a.rank, a.length + b.length);
  list.append(a);
  list.append(b);
  return finish({ list, border: a.length, keep: KEEP[operation], ordered });
}

/** The union of boxes that may overlap, as disjoint boxes. */
export function union(list: BoxList, ordered: boolean): BoxList {
  if (isRowMajor(list)) {
    const copy = new BoxList(list.rank, list.length);
    copy.append(list);
    joinNeighbours(copy);
    return copy;
  }
  return finish({ list, border: list.length, keep: KEEP.or, ordered });
}

function finish(problem: Problem): BoxList {
  const result = solve(problem);
  if (problem.ordered) joinNeighbours(result);
  return result;
}

/**
 * A sweep, unless so many boxes lie side by side and over one another that it would be quadratic: then space is halved
 * until the parts are uniform or cheap, and a last sweep puts the pieces in order.
 */
function solve(problem: Problem): BoxList {
  const { list, border, keep } = problem;
  if (list.length === 0) return list;
  if (list.rank === 0) {
    // A scalar is in A, in B, or in both.
    const sides = (border > 0 ? 1 : 0) + (border < list.length ? 2 : 0);
    const out = new BoxList(0);
    out.length = (keep >> sides) & 1;
    return out;
  }
  if (isCheap(list)) return sweep(problem, solve);
  const pieces = new BoxList(list.rank);
  const { lo, hi } = list.bounds();
  halve({ ...problem, ordered: false }, lo, hi, pieces);
  return sweep({ list: pieces, border: pieces.length, keep: KEEP.or, ordered: problem.ordered }, solve);
}

/** Whether the active boxes, summed over the segments of dimension 0, are few. */
function isCheap(list: BoxList): boolean {
  const { rank, length } = list;
  if (length <= ALWAYS_SWEPT) return true;
  const lows = new Float64Array(length);
  const highs = new Float64Array(length);
  for (let i = 0; i < length; i++) {
    lows[i] = list.lo[i * rank] as number;
    highs[i] = list.hi[i * rank] as number;
  }
  lows.sort();
  highs.sort();
  let visits = 0;
  let begun = 0;
  let ended = 0;
  while (begun < length) {
    const x = Math.min(lows[begun] as number, highs[ended] as number);
    while (begun < length && lows[begun] === x) begun++;
    while (highs[ended] === x) ended++;
    visits += begun - ended;
    if (visits > VISITS_PER_BOX * length) return false;
  }
  // No box begins any more: the sum over the segments until the last one ends.
  while (ended < length) {
    const x = highs[ended];
    while (ended < length && highs[ended] === x) ended++;
    visits += length - ended;
  }
  return visits <= VISITS_PER_BOX * length;
}

/** Solves the problem inside the cell [lo, hi) and appends disjoint pieces to `out`, in no order. */
function halve(problem: Problem, lo: Float64Array, hi: Float64Array, out: BoxList): void {
  const { list, border, keep } = problem;
  const { rank } = list;
  if (list.length === 0) return;
  let present = 0;
  let covering = 0;
  for (let i = 0; i < list.length; i++) {
    const side = i < border ? 1 : 2;
    present |= side;
    if ((covering & side) === 0 && covers(list, i, lo, hi)) covering |= side;
  }
  // An element of the cell is in every side that covers the cell, and perhaps in the other sides present.
  let some = false;
  let every = true;
  for (let sides = 0; sides < 4; sides++) {
    if ((sides & covering) !== covering || (sides | present) !== present) continue;
    if ((keep >> sides) & 1) some = true;
    else every = false;
  }
  if (!some) return;
  if (every) {
    out.push(lo, hi);
    return;
  }
  const open = dropCovered(problem, covering, lo, hi);
  if (isCheap(open.list)) {
    out.append(sweep(open, solve));
    return;
  }
  const { d, at } = chooseCut(open.list, lo, hi);
  const middle = hi.slice();
  middle[d] = at;
  halve(part(open, d, lo[d] as number, at, rank), lo, middle, out);
  const from = lo.slice();
  from[d] = at;
  halve(part(open, d, at, hi[d] as number, rank), from, hi, out);
}

function covers(list: BoxList, i: number, lo: Float64Array, hi: Float64Array): boolean {
  const at = i * list.rank;
  for (let d = 0; d < list.rank; d++) {
    if ((list.lo[at + d] as number) > (lo[d] as number) || (list.hi[at + d] as number) < (hi[d] as number))
      return false;
  }
  return true;
}

/** Replaces the boxes of a side that covers the cell by one box, the cell. */
function dropCovered(problem: Problem, covering: number, lo: Float64Array, hi: Float64Array): Problem {
  if (covering === 0) return problem;
  const { list, border } = problem;
  const kept = new BoxList(list.rank);
  if (covering & 1) kept.push(lo, hi);
  else for (let i = 0; i < border; i++) kept.push(list.lo, list.hi, i * list.rank);
  const newBorder = kept.length;
  if (covering & 2) kept.push(lo, hi);
  else for (let i = border; i < list.length; i++) kept.push(list.lo, list.hi, i * list.rank);
  return { ...problem, list: kept, border: newBorder };
}

/** The median boundary of the dimension in which most boxes begin or end inside the cell. */
function chooseCut(list: BoxList, lo: Float64Array, hi: Float64Array): { d: number; at: number } {
  const { rank, length } = list;
  const inside = new Float64Array(rank);
  for (let i = 0, k = 0; i < length; i++) {
    for (let d = 0; d < rank; d++, k++) {
      if ((list.lo[k] as number) > (lo[d] as number)) inside[d] = (inside[d] as number) + 1;
      if ((list.hi[k] as number) < (hi[d] as number)) inside[d] = (inside[d] as number) + 1;
    }
  }
  let d = 0;
  for (let k = 1; k < rank; k++) if ((inside[k] as number) > (inside[d] as number)) d = k;
  const step = Math.max(1, Math.floor((inside[d] as number) / 512));
  const sample: number[] = [];
  let seen = 0;
  for (let i = 0; i < length; i++) {
    const low = list.lo[i * rank + d] as number;
    const high = list.hi[i * rank + d] as number;
    if (low > (lo[d] as number) && seen++ % step === 0) sample.push(low);
    if (high < (hi[d] as number) && seen++ % step === 0) sample.push(high);
  }
  sample.sort((a, b) => a - b);
  return { d, at: sample[sample.length >> 1] as number };
}

/** The boxes of the problem cut to [from, end) in dimension d. */
function part(problem: Problem, d: number, from: number, end: number, rank: number): Problem {
  const { list, border } = problem;
  const cut = new BoxList(rank, Math.max(4, list.length >> 1));
  let newBorder = 0;
  for (let i = 0; i < list.length; i++) {
    const at = i * rank;
    const low = Math.max(list.lo[at + d] as number, from);
    const high = Math.min(list.hi[at + d] as number, end);
    if (low >= high) continue;
    cut.push(list.lo, list.hi, at);
    const to = (cut.length - 1) * rank + d;
    cut.lo[to] = low;
    cut.hi[to] = high;
    if (i < border) newBorder++;
  }
  return { ...problem, list: cut, border: newBorder };
}

/** Up to this many boxes cutting one after the other is faster than preparing a sweep. */
const CUT_ONE_BY_ONE = 16;

/** Scratch lists for one call of `subtractMany`, by rank: reads call it for every query, and new lists would cost more than the cuts. */
class Scratch {
  static readonly #byRank: Scratch[] = [];
  readonly touching: BoxList;
  pieces: BoxList;
  spare: BoxList;

  private constructor(rank: number) {
    this.touching = new BoxList(rank);
    this.pieces = new BoxList(rank);
    this.spare = new BoxList(rank);
  }

  static of(rank: number): Scratch {
    Scratch.#byRank[rank] ??= new Scratch(rank);
    return Scratch.#byRank[rank];
  }

  static drop(rank: number): void {
    delete Scratch.#byRank[rank];
  }
}

/**
 * The pieces of box (start, count) that none of `covers` covers: disjoint, in no promised order.
 * `at` is the index of the first number in start and count.
 */
export function subtractMany(start: ArrayLike<number>, count: ArrayLike<number>, covers: Boxes, at = 0): Boxes {
  const { rank } = covers;
  const scratch = Scratch.of(rank);
  const { touching } = scratch;
  let pieces = scratch.pieces;
  let spare = scratch.spare;
  pieces.length = 0;
  for (let d = 0; d < rank; d++) {
    if (!((count[at + d] as number) > 0)) return pieces.toBoxes();
    pieces.lo[d] = start[at + d] as number;
    pieces.hi[d] = (start[at + d] as number) + (count[at + d] as number);
  }
  pieces.length = 1;
  findTouching(pieces, covers, touching);
  if (touching.length > CUT_ONE_BY_ONE) {
    Scratch.drop(rank);
    return combine(pieces, touching, 'minus', false).toBoxes();
  }
  for (let i = 0; i < touching.length; i++) {
    spare.length = 0;
    for (let k = 0; k < pieces.length; k++) cutOut(pieces, k * rank, touching, i * rank, spare);
    [pieces, spare] = [spare, pieces];
  }
  return pieces.toBoxes();
}

/** Fills `touching` with the covers that share an element with the only box of `whole`. */
function findTouching(whole: BoxList, covers: Boxes, touching: BoxList): void {
  const { rank, starts, counts } = covers;
  const { lo, hi } = whole;
  touching.length = 0;
  for (let i = 0; i < covers.length; i++) {
    const at = i * rank;
    let d = 0;
    while (
      d < rank &&
      (counts[at + d] as number) > 0 &&
      (starts[at + d] as number) < (hi[d] as number) &&
      (starts[at + d] as number) + (counts[at + d] as number) > (lo[d] as number)
    ) {
      d++;
    }
    if (d < rank) continue;
    touching.reserve(1);
    const to = touching.length * rank;
    for (d = 0; d < rank; d++) {
      touching.lo[to + d] = starts[at + d] as number;
      touching.hi[to + d] = (starts[at + d] as number) + (counts[at + d] as number);
    }
    touching.length++;
  }
}

/** Appends to `out` the piece of `boxes` at a without the hole at h: what is before and behind it in each dimension. */
function cutOut(boxes: BoxList, a: number, holes: BoxList, h: number, out: BoxList): void {
  const { rank } = boxes;
  for (let d = 0; d < rank; d++) {
    const apart =
      (holes.hi[h + d] as number) <= (boxes.lo[a + d] as number) ||
      (holes.lo[h + d] as number) >= (boxes.hi[a + d] as number);
    if (apart) {
      out.push(boxes.lo, boxes.hi, a);
      return;
    }
  }
  for (let d = 0; d < rank; d++) {
    const low = boxes.lo[a + d] as number;
    const high = boxes.hi[a + d] as number;
    const from = Math.max(low, holes.lo[h + d] as number);
    const end = Math.min(high, holes.hi[h + d] as number);
    if (low < from) pushRange(boxes, a, d, low, from, out);
    if (end < high) pushRange(boxes, a, d, end, high, out);
    // `boxes` is thrown away after this: narrow it in place to what is left.
    boxes.lo[a + d] = from;
    boxes.hi[a + d] = end;
  }
}

function pushRange(boxes: BoxList, a: number, d: number, from: number, end: number, out: BoxList): void {
  out.push(boxes.lo, boxes.hi, a);
  const to = (out.length - 1) * out.rank + d;
  out.lo[to] = from;
  out.hi[to] = end;
}
