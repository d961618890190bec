import { type Blocks, blocksOf } from './blocks.ts';
import { BoxList } from './boxes.ts';
import { outside, type Slab } from './coordinates.ts';
import { Selected, type Where } from './select.ts';
import { checkSlab, gridBounds, gridBoxes, gridOf } from './slab.ts';

export { type Blocks, dataLength } from './blocks.ts';

/**
 * The blocks that `where` means in a dataset of this shape; undefined is everything.
 * A Selection gives the same object again as long as the shape is the same, so callers may key what they derive by it.
 */
export function resolve(where: Where | undefined, shape: readonly number[]): Blocks {
  if (where instanceof Selected) return where.resolve(shape);
  const grid = gridOf(checkSlab(where === undefined ? {} : (where as Slab)), shape);
  if (!grid) return blocksOf(new BoxList(shape.length, 0));
  const { lo, hi } = gridBounds(grid);
  for (let d = 0; d < shape.length; d++) {
    if ((hi[d] as number) > (shape[d] as number)) throw outside(d, lo[d] as number, hi[d] as number, shape);
  }
  return blocksOf(gridBoxes(grid, true));
}
