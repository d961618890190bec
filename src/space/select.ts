import type { Boxes } from './box.ts';
import { BoxList } from './box-list.ts';
import { ALL, boxesForm, boxesOf, type Form, noneForm, pointsForm, setForm, slabForm } from './expression.ts';
import { checkPoints, flatten, sortPoints } from './points.ts';
import { type Coordinates, checkCoordinates, isList, outside, type Slab, selectionError, wrongRank } from './shape.ts';
import { checkSlab, gridBounds, gridBoxes, gridOf, gridSize } from './slab.ts';
import type { SetOperation } from './sweep.ts';

/** A set of elements of a dataset; only `select.points` alone is a list. It never changes and fits many datasets. */
export interface Selection {
  /** The number of dimensions, -1 as long as only a dataset can tell (`select.all()`). */
  readonly rank: number;
  /** The number of elements, points of a list as often as they occur; NaN as long as only a dataset can tell. */
  readonly size: number;
  or(other: Where): Selection;
  and(other: Where): Selection;
  xor(other: Where): Selection;
  minus(other: Where): Selection;
}

export type Where = Slab | Selection;

/**
 * The elements of a selection in a dataset of a certain shape: disjoint blocks whose row-major data, one after the other, is in the
 * row-major order of the dataset. A list of points in another order, or with repetitions, has two maps between the caller's items
 * and the elements of the blocks; both are null otherwise.
 */
export interface Blocks extends Boxes {
  /** The number of elements in all blocks. */
  readonly size: number;
  /** For writing: element i of the blocks is item `itemOf[i]` of the caller's data, the last one of equal points. */
  readonly itemOf: Float64Array | null;
  /** For reading: item i of the caller's data is element `elementOf[i]` of the blocks. */
  readonly elementOf: Float64Array | null;
}

/** How many items the caller's data has: one for each element, or for each point of a list. */
export function dataLength(blocks: Blocks): number {
  return blocks.elementOf ? blocks.elementOf.length : blocks.size;
}

function blocksOf(list: BoxList, itemOf: Float64Array | null = null, elementOf: Float64Array | null = null): Blocks {
  const { rank, length, starts, counts } = list.toBoxes();
  return { rank, length, size: list.volume(), starts, counts, itemOf, elementOf };
}

/** The one class behind {@link Selection}: a form, and what was worked out from it. */
export class Selected implements Selection {
  readonly #form: Form;
  #size: number | undefined;
  /** The same blocks serve every shape if the form is fixed; else the shape they are for is kept beside them. */
  #blocks: Blocks | undefined;
  #shape: readonly number[] = [];
  /** The blocks as a form, so that further set operations start from what is known. */
  #known: Form | undefined;

  constructor(form: Form) {
    this.#form = form;
  }

  get rank(): number {
    return this.#form.rank;
  }

  get size(): number {
    this.#size ??= this.#count();
    return this.#size;
  }

  or(other: Where): Selection {
    return this.#with('or', other);
  }

  and(other: Where): Selection {
    return this.#with('and', other);
  }

  xor(other: Where): Selection {
    return this.#with('xor', other);
  }

  minus(other: Where): Selection {
    return this.#with('minus', other);
  }

  /** The blocks in a dataset of this shape; the same object again for the same shape. */
  resolve(shape: readonly number[]): Blocks {
    const form = this.#form;
    if (form.rank !== -1 && form.rank !== shape.length) throw wrongRank('the selection', form.rank, shape);
    if (form.fixed && form.rank !== -1) {
      // The bounds of a leaf are exact: a wrong one is refused before it is taken apart.
      if (form.bounds && form.kind !== 'set') checkBounds(form.bounds.lo, form.bounds.hi, shape);
      this.#blocks ??= work(form, shape);
      if (form.kind === 'set') this.#checkResult(this.#blocks, shape);
      return this.#blocks;
    }
    if (!this.#blocks || !sameShape(this.#shape, shape)) {
      const blocks = work(form, shape);
      if (blocks.length > 0) checkBlocks(blocks, shape);
      this.#blocks = blocks;
      this.#shape = [...shape];
    }
    return this.#blocks;
  }

  #checkResult(blocks: Blocks, shape: readonly number[]): void {
    const { bounds } = this.#operand();
    if (blocks.length > 0 && bounds) checkBounds(bounds.lo, bounds.hi, shape);
  }

  #count(): number {
    const form = this.#form;
    if (form.kind === 'points') return form.points.length;
    if (form.kind === 'grid') return gridSize(form.grid);
    if (!form.fixed) return NaN;
    if (this.#blocks) return this.#blocks.size;
    return form.rank === -1 ? 0 : setSize(form);
  }

  #operand(): Form {
    if (this.#blocks && this.#form.fixed && this.#form.kind !== 'grid') {
      this.#known ??= boxesForm(BoxList.from(this.#blocks), true);
    }
    return this.#known ?? this.#form;
  }

  #with(operation: SetOperation, other: Where): Selection {
    const right = toSelected(other);
    return new Selected(setForm(operation, this.#operand(), right.#operand()));
  }
}

/**
 * The blocks that `where` means in a dataset of this shape; undefined is everything.
 * A Selection gives the same object again as long as the shape is the same, so callers may key what they derive by it.
 */
export function resolve(where: Where | undefined, shape: readonly number[]): Blocks {
  if (where instanceof Selected) return where.resolve(shape);
  const grid = gridOf(checkSlab(where === undefined ? {} : (where as Slab)), shape);
  if (!grid) return blocksOf(new BoxList(shape.length, 0));
  const { lo, hi } = gridBounds(grid);
  checkBounds(lo, hi, shape);
  return blocksOf(gridBoxes(grid, true));
}

/** A plain slab is copied: the caller may change it later. */
export function toSelected(where: Where): Selected {
  return where instanceof Selected ? where : new Selected(slabForm(checkSlab(where as Slab)));
}

export const select = {
  /** Every element, whatever the shape. */
  all(): Selection {
    return new Selected(ALL);
  },

  none(): Selection {
    return new Selected(noneForm());
  },

  box(start: Coordinates, count: Coordinates): Selection {
    return select.hyperslab({ start: checkCoordinates(start, 'start'), count: checkCoordinates(count, 'count') });
  },

  /** `count` blocks in each dimension, `stride` from start to start. A missing count is as many whole blocks as fit. */
  hyperslab(slab: Slab): Selection {
    return new Selected(slabForm(checkSlab(slab)));
  },

  points,

  /** The union of boxes, which may overlap. */
  blocks(starts: readonly Coordinates[], counts: readonly Coordinates[]): Selection {
    if (!isList(starts) || !isList(counts) || starts.length !== counts.length) {
      const found = `${isList(starts) ? starts.length : String(starts)} starts and ${isList(counts) ? counts.length : String(counts)} counts`;
      throw selectionError(`blocks need as many starts as counts, not ${found}`);
    }
    const from = flatten(starts, 'start');
    const size = flatten(counts, 'count');
    if (from.rank !== size.rank)
      throw selectionError(`the starts have ${from.rank} dimensions, the counts ${size.rank}`);
    if (from.rank === -1) return select.none();
    return new Selected(boxesForm(boxesFrom(from.at, size.at, starts.length, from.rank), false));
  },
};

/** A list of points: data goes in list order, a repeated point is written by its last item and read by each. */
function points(points: readonly Coordinates[]): Selection;
function points(flat: Coordinates, rank: number): Selection;
function points(list: readonly Coordinates[] | Coordinates, rank?: number): Selection {
  return new Selected(pointsForm(checkPoints(list, rank)));
}

function boxesFrom(starts: Float64Array, counts: Float64Array, length: number, rank: number): BoxList {
  const list = new BoxList(rank, length);
  const ends = starts.map((start, i) => start + (counts[i] as number));
  for (let i = 0; i < length; i++) {
    const at = i * rank;
    if (counts.subarray(at, at + rank).includes(0)) continue;
    for (let d = 0; d < rank; d++) {
      if ((ends[at + d] as number) > Number.MAX_SAFE_INTEGER)
        throw selectionError(`block ${i} ends beyond 2^53-1 in dimension ${d}`);
    }
    list.push(starts, ends, at);
  }
  return list;
}

function work(form: Form, shape: readonly number[]): Blocks {
  if (form.kind === 'points') {
    const { boxes, itemOf, elementOf } = sortPoints(form.points);
    return blocksOf(boxes, itemOf, elementOf);
  }
  return blocksOf(boxesOf(form, shape, true));
}

function setSize(form: Form): number {
  // Not in row-major order: counting needs no cutting into rows.
  const boxes = boxesOf(form.kind === 'set' ? form : setForm('or', form, noneForm()), [], false);
  return boxes.volume();
}

function checkBounds(lo: Float64Array, hi: Float64Array, shape: readonly number[]): void {
  for (let d = 0; d < shape.length; d++) {
    if ((hi[d] as number) > (shape[d] as number)) throw outside(d, lo[d] as number, hi[d] as number, shape);
  }
}

function checkBlocks(blocks: Blocks, shape: readonly number[]): void {
  const { lo, hi } = BoxList.from(blocks).bounds();
  checkBounds(lo, hi, shape);
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let d = 0; d < a.length; d++) if (a[d] !== b[d]) return false;
  return true;
}
