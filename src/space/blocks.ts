import type { Boxes, BoxList } from './boxes.ts';

/**
 * A selection worked out: disjoint blocks whose row-major data, one after the other, is the row-major order of the
 * selected elements. For a list of points in another order than that, or with repetitions, two maps lead to and fro:
 */
export interface Blocks extends Boxes {
  /** The number of elements in all blocks. */
  readonly size: number;
  /** For writing: element i of the blocks is item `order[i]` of the caller's data (the later of equal points). */
  readonly order: Float64Array | null;
  /** For reading: item i of the caller's data is element `place[i]` of the blocks. Null exactly if `order` is. */
  readonly place: Float64Array | null;
}

/** How many items the caller's data has: one for each element, or for each point of a list. */
export function dataLength(blocks: Blocks): number {
  return blocks.place ? blocks.place.length : blocks.size;
}

export function blocksOf(list: BoxList, order: Float64Array | null = null, place: Float64Array | null = null): Blocks {
  const { rank, length, starts, counts } = list.toBoxes();
  return { rank, length, size: list.volume(), starts, counts, order, place };
}
