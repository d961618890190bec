import { sizeOf } from '../space/shape.ts';

/** A box whose elements are neighbours in row-major order. */
export interface RowBox {
  readonly start: number[];
  readonly count: number[];
  /** Row-major number of its first element, and how many there are. */
  readonly from: number;
  readonly size: number;
}

/**
 * Cuts the elements [from, to) of an array, counted in row-major order, into boxes of at most `limit` elements: as few as
 * possible, in order. Rows, planes and so on stay whole as far as they fit.
 */
export function* rowBoxes(
  shape: readonly number[],
  from: number,
  to: number,
  limit = Infinity,
): Generator<RowBox, void, undefined> {
  const rank = shape.length;
  const inner: number[] = new Array(rank).fill(1);
  for (let d = rank - 2; d >= 0; d--) inner[d] = (inner[d + 1] as number) * (shape[d + 1] as number);
  for (let at = from; at < to; ) {
    const left = Math.max(1, Math.min(limit, to - at));
    // The outermost dimension that the box can grow along.
    let along = 0;
    while (along < rank - 1 && (at % (inner[along] as number) !== 0 || (inner[along] as number) > left)) along++;
    const start: number[] = [];
    for (let d = 0, rest = at; d < rank; d++) {
      start.push(Math.floor(rest / (inner[d] as number)));
      rest %= inner[d] as number;
    }
    const count = shape.map((size, d) => (d < along ? 1 : size));
    if (rank > 0) {
      const most = Math.floor(left / (inner[along] as number));
      count[along] = Math.min(most, (shape[along] as number) - (start[along] as number));
    }
    const size = sizeOf(count);
    yield { start, count, from: at, size };
    at += size;
  }
}
