import { type Boxes, BoxList } from './box-list.ts';
import { combine } from './sets.ts';

/** Boxes cut out of other boxes; `from[i]` is the box that piece i is a part of. */
export interface Pieces extends Boxes {
  readonly size: number;
  readonly from: Uint32Array;
}

/** The parts of boxes that a smaller shape leaves. Every piece starts where its box does. */
export function clip(boxes: Boxes, shape: ArrayLike<number>): Pieces {
  const { rank } = boxes;
  const starts = new Float64Array(boxes.length * rank);
  const counts = new Float64Array(boxes.length * rank);
  const from = new Uint32Array(boxes.length);
  let length = 0;
  let total = 0;
  for (let i = 0; i < boxes.length; i++) {
    const to = length * rank;
    let size = 1;
    for (let d = 0; d < rank; d++) {
      const start = boxes.starts[i * rank + d] as number;
      const count = Math.max(0, Math.min(boxes.counts[i * rank + d] as number, (shape[d] as number) - start));
      starts[to + d] = start;
      counts[to + d] = count;
      size *= count;
    }
    if (size === 0) continue;
    from[length++] = i;
    total += size;
  }
  const end = length * rank;
  return {
    rank,
    length,
    size: total,
    starts: starts.slice(0, end),
    counts: counts.slice(0, end),
    from: from.slice(0, length),
  };
}

/** Up to this many boxes cutting one after the other is faster than preparing a sweep. */
const FEW = 16;

/** Lists for one call, by rank: reads call this for every query, and making the lists would cost more than cutting. */
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
  if (touching.length > FEW) {
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

/** Two boxes one behind the other in row-major order: (start, first) and (later, second). The box has more than one element. */
export function halves(
  start: Float64Array,
  count: Float64Array,
): { first: Float64Array; later: Float64Array; second: Float64Array } {
  const d = count.findIndex((n) => n > 1);
  const half = Math.ceil((count[d] as number) / 2);
  const [first, later, second] = [count.slice(), start.slice(), count.slice()];
  first[d] = half;
  later[d] = (start[d] as number) + half;
  second[d] = (count[d] as number) - half;
  return { first, later, second };
}
