import { printAs } from '../base/errors.ts';
import type { Boxes } from './box.ts';
import { BoxList, joinNeighbours, orderOf } from './box-list.ts';
import {
  ALL,
  boxesExpression,
  type Expression,
  evaluate,
  noneExpression,
  pointsExpression,
  setExpression,
  slabExpression,
} from './expression.ts';
import { checkPoints, checkWhole, flatten, sortPoints } from './points.ts';
import {
  type Coordinates,
  checkCoordinates,
  copyCoordinates,
  isList,
  outside,
  type Slab,
  selectionError,
  wrongRank,
} from './shape.ts';
import { checkSlab, regularSlab, slabBounds, slabBoxes, slabSize } from './slab.ts';
import type { SetOperation } from './sweep.ts';

/** A set of elements of a dataset; only `select.points` alone is a list. It never changes and fits many datasets. */
export interface Selection {
  /** The number of dimensions; -1 if it depends on the dataset (`select.all()`). */
  readonly rank: number;
  /** The number of elements, repeated points of a list included; NaN if it depends on the dataset. */
  readonly size: number;
  /** Its elements as disjoint boxes, in row-major order. */
  boxes(): IterableIterator<{ start: readonly number[]; count: readonly number[] }>;
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
  /** It is a list of points, whatever blocks they make up. */
  readonly points?: boolean;
}

/** How many items the caller's data has: one for each element, or for each point of a list. */
export function dataLength(blocks: Blocks): number {
  return blocks.elementOf ? blocks.elementOf.length : blocks.size;
}

function blocksOf(list: BoxList, itemOf: Float64Array | null = null, elementOf: Float64Array | null = null): Blocks {
  const { rank, length, starts, counts } = list.toBoxes(true);
  return { rank, length, size: list.size ?? list.volume(), starts, counts, itemOf, elementOf };
}

/** The class behind {@link Selection}: an expression, and a cache of the blocks it was resolved to. */
export class Selected implements Selection {
  readonly #expression: Expression;
  #size: number | undefined;
  /** The blocks of the last shape; those of a fixed expression serve every shape. */
  #blocks: Blocks | undefined;
  #shape: readonly number[] = [];
  /** The resolved blocks as an expression: set operations on it need not evaluate the first one again. */
  #resolved: Expression | undefined;

  constructor(expression: Expression) {
    this.#expression = expression;
  }

  get rank(): number {
    return this.#expression.rank;
  }

  get size(): number {
    this.#size ??= this.#count();
    return this.#size;
  }

  *boxes(): IterableIterator<{ start: readonly number[]; count: readonly number[] }> {
    const expression = this.#expression;
    if (!expression.fixed)
      throw selectionError('the boxes of this selection depend on a shape: give it a count, or combine it with a box');
    if (expression.rank === -1) return;
    this.#blocks ??= blocksIn(expression, []);
    const { rank, length, starts, counts } = this.#blocks;
    for (let k = 0; k < length * rank; k += rank)
      yield { start: [...starts.subarray(k, k + rank)], count: [...counts.subarray(k, k + rank)] };
    // A scalar has one element, without coordinates.
    if (rank === 0) for (let i = 0; i < length; i++) yield { start: [], count: [] };
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
    const expression = this.#expression;
    if (expression.rank !== -1 && expression.rank !== shape.length)
      throw wrongRank('the selection', expression.rank, shape);
    if (expression.fixed && expression.rank !== -1) {
      // The bounds of a leaf are exact: a leaf outside the shape is refused before it is divided into blocks.
      if (expression.bounds && expression.kind !== 'set')
        checkBounds(expression.bounds.lo, expression.bounds.hi, shape);
      this.#blocks ??= blocksIn(expression, shape);
      if (expression.kind === 'set') this.#checkResult(this.#blocks, shape);
      return this.#blocks;
    }
    if (!this.#blocks || !sameShape(this.#shape, shape)) {
      const blocks = blocksIn(expression, shape);
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
    const expression = this.#expression;
    if (expression.kind === 'points') return expression.points.length;
    if (expression.kind === 'slab') return slabSize(expression.slab);
    if (!expression.fixed) return NaN;
    if (this.#blocks) return this.#blocks.size;
    return expression.rank === -1 ? 0 : setSize(expression);
  }

  #operand(): Expression {
    if (this.#blocks && this.#expression.fixed && this.#expression.kind !== 'slab') {
      this.#resolved ??= boxesExpression(BoxList.from(this.#blocks), true);
    }
    return this.#resolved ?? this.#expression;
  }

  #with(operation: SetOperation, other: Where): Selection {
    const right = toSelected(other);
    return new Selected(setExpression(operation, this.#operand(), right.#operand()));
  }
}

printAs(Selected.prototype, 'Selection', ({ size, rank }) => {
  if (Number.isNaN(size)) return 'Selection that depends on the dataset';
  const many = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
  return `Selection of ${many(size, 'element')}${rank < 0 ? '' : ` in ${many(rank, 'dimension')}`}`;
});

/**
 * The blocks of `where` in a dataset of this shape; undefined selects everything.
 * A Selection gives the same object again as long as the shape is the same, so callers may key what they derive by it.
 */
export function resolve(where: Where | undefined, shape: readonly number[]): Blocks {
  if (where instanceof Selected) return where.resolve(shape);
  const slab = regularSlab(checkSlab(where === undefined ? {} : (where as Slab)), shape);
  if (!slab) return blocksOf(new BoxList(shape.length, 0));
  const { lo, hi } = slabBounds(slab);
  checkBounds(lo, hi, shape);
  return blocksOf(slabBoxes(slab, true));
}

/** A selection as it is, or a plain slab copied: the caller may change it later. */
function toSelected(where: Where): Selected {
  return where instanceof Selected ? where : new Selected(slabExpression(checkSlab(where as Slab)));
}

export const select = {
  /** Every element, whatever the shape. */
  all(): Selection {
    return new Selected(ALL);
  },

  none(): Selection {
    return new Selected(noneExpression());
  },

  box(start: Coordinates, count: Coordinates): Selection {
    return select.hyperslab({ start: checkCoordinates(start, 'start'), count: checkCoordinates(count, 'count') });
  },

  /** `count` blocks in each dimension, `stride` from start to start. A missing count is as many whole blocks as fit. */
  hyperslab(slab: Slab): Selection {
    return new Selected(slabExpression(checkSlab(slab)));
  },

  points,

  blocks,
};

/** A list of points: data goes in list order, a repeated point is written by its last item and read by each. */
function points(points: readonly Coordinates[]): Selection;
function points(flat: Coordinates, rank: number): Selection;
function points(list: readonly Coordinates[] | Coordinates, rank?: number): Selection {
  return new Selected(pointsExpression(checkPoints(list, rank)));
}

/** The union of boxes, which may overlap. In flat lists each has `rank` numbers; the counts of one box are those of all. */
function blocks(starts: readonly Coordinates[], counts: readonly Coordinates[]): Selection;
function blocks(starts: Coordinates, counts: Coordinates, rank: number): Selection;
function blocks(
  starts: readonly Coordinates[] | Coordinates,
  counts: readonly Coordinates[] | Coordinates,
  rank?: number,
): Selection {
  if (isList(starts) && isList(counts) && rank !== undefined) {
    checkWhole(starts, rank, 'starts');
    checkWhole(counts, rank, 'counts');
    const isOneCount = counts.length === rank;
    if (isOneCount || counts.length === starts.length) {
      const given = [starts as Coordinates, counts as Coordinates] as const;
      const [from, size] = [numbersIn(given[0], 'starts'), numbersIn(given[1], 'counts')];
      const all = isOneCount ? repeated(size, from.length) : size;
      return boxesOf(from, all, from.length / rank, rank, given);
    }
  } else if (isList(starts) && isList(counts) && starts.length === counts.length) {
    const from = flatten(starts, 'start');
    const size = flatten(counts, 'count');
    if (from.rank !== size.rank)
      throw selectionError(`the starts have ${from.rank} dimensions, the counts ${size.rank}`);
    return from.rank === -1 ? select.none() : boxesOf(from.at, size.at, starts.length, from.rank);
  }
  const found = `${isList(starts) ? starts.length : String(starts)} starts and ${isList(counts) ? counts.length : String(counts)} counts`;
  throw selectionError(`blocks need as many starts as counts, not ${found}`);
}

/** A copy of a flat list. Numbers in typed arrays are looked at later, with all others of the same box. */
function numbersIn(list: Coordinates, name: string): Float64Array {
  if (list instanceof Float64Array) return list.slice();
  const copy = new Float64Array(list.length);
  copyCoordinates(list, copy, 0, name);
  return copy;
}

function mustBeCoordinates(lists: readonly Coordinates[]): void {
  const names = ['starts', 'counts'];
  for (const [i, list] of lists.entries()) copyCoordinates(list, new Float64Array(list.length), 0, names[i] as string);
}

function repeated(counts: Float64Array, length: number): Float64Array {
  const all = new Float64Array(length);
  all.set(counts.subarray(0, length));
  for (let done = counts.length; done < length; done *= 2) all.copyWithin(done, 0, done);
  return all;
}

/** Both lists are used up: starts and ends take their place. `given` are those of the caller. */
function boxesOf(
  starts: Float64Array,
  counts: Float64Array,
  length: number,
  rank: number,
  given: readonly Coordinates[] = [],
): Selection {
  const [lo, hi] = [new Float64Array(rank).fill(Infinity), new Float64Array(rank)];
  let [volume, product] = [rank === 0 ? length : 0, 1];
  // One flat loop for all that must be known: there may be a hundred thousand boxes, and no loop is fast before V8 has compiled it.
  for (let i = 0, d = 0; i < starts.length; i++) {
    const start = starts[i] as number;
    const count = counts[i] as number;
    const end = start + count;
    const isPlain = start >= 0 && count > 0 && end <= Number.MAX_SAFE_INTEGER;
    if (!isPlain || Math.floor(start) !== start || Math.floor(count) !== count) {
      mustBeCoordinates(given);
      return new Selected(boxesExpression(withElements(starts, counts, length, rank, i), false));
    }
    starts[i] = start + 0;
    counts[i] = end;
    lo[d] = Math.min(lo[d] as number, start);
    hi[d] = Math.max(hi[d] as number, end);
    product *= count;
    if (++d < rank) continue;
    volume += product;
    product = 1;
    d = 0;
  }
  const list = BoxList.of(rank, length, starts, counts);
  // In place: a union would copy them first.
  const order = orderOf(list);
  if (order === 'touching') joinNeighbours(list);
  list.size = volume;
  return new Selected(boxesExpression(list, order !== 'none', { lo, hi }));
}

/** The boxes that have elements. The first `ended` counts are ends already. */
function withElements(
  starts: Float64Array,
  counts: Float64Array,
  length: number,
  rank: number,
  ended: number,
): BoxList {
  let kept = 0;
  for (let i = 0; i < length; i++) {
    let isEmpty = false;
    let beyond = -1;
    for (let d = 0, from = i * rank, to = kept * rank; d < rank; d++, from++, to++) {
      const start = starts[from] as number;
      const count = (counts[from] as number) - (from < ended ? start : 0);
      if (count === 0) isEmpty = true;
      if (beyond < 0 && start + count > Number.MAX_SAFE_INTEGER) beyond = d;
      starts[to] = start + 0;
      counts[to] = start + count;
    }
    if (isEmpty) continue;
    if (beyond >= 0) throw selectionError(`block ${i} ends beyond 2^53-1 in dimension ${beyond}`);
    kept++;
  }
  return BoxList.of(rank, kept, starts, counts);
}

function blocksIn(expression: Expression, shape: readonly number[]): Blocks {
  if (expression.kind === 'points') {
    const { boxes, itemOf, elementOf } = sortPoints(expression.points);
    return { ...blocksOf(boxes, itemOf, elementOf), points: true };
  }
  return blocksOf(evaluate(expression, shape, true));
}

function setSize(expression: Expression): number {
  // Not in row-major order: counting needs no cutting into rows.
  const boxes = evaluate(
    expression.kind === 'set' ? expression : setExpression('or', expression, noneExpression()),
    [],
    false,
  );
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
