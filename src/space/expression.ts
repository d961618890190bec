import { BoxList } from './box-list.ts';
import { type PointList, sortPoints } from './points.ts';
import { combine, union } from './sets.ts';
import { selectionError } from './shape.ts';
import { type CheckedSlab, type RegularSlab, regularSlab, slabBounds, slabBoxes, slabWithin } from './slab.ts';
import type { SetOperation } from './sweep.ts';

interface Bounds {
  readonly lo: Float64Array;
  readonly hi: Float64Array;
}

interface Common {
  /** The number of dimensions; -1 if it depends on the dataset. */
  readonly rank: number;
  /** True if the set of elements does not depend on the shape of the dataset. */
  readonly fixed: boolean;
  /** A box around all elements; null if it depends on the shape of the dataset. */
  readonly bounds: Bounds | null;
}

/** A selection before a dataset is known: a tree of slabs, boxes and points under set operations. An 'open' slab has no count. */
export type Expression =
  | (Common & { readonly kind: 'all' })
  | (Common & { readonly kind: 'none' })
  | (Common & { readonly kind: 'slab'; readonly slab: RegularSlab })
  | (Common & { readonly kind: 'open'; readonly slab: CheckedSlab })
  | (Common & { readonly kind: 'boxes'; readonly boxes: BoxList; readonly rowMajor: boolean })
  | (Common & { readonly kind: 'points'; readonly points: PointList })
  | SetExpression;

interface SetExpression extends Common {
  readonly kind: 'set';
  readonly operation: SetOperation;
  readonly left: Expression;
  readonly right: Expression;
  readonly depth: number;
  readonly leaves: number;
}

/** Deeper trees are evaluated as they grow, if they are fixed: evaluation is recursive and must not overflow the stack. */
const MAX_DEPTH = 64;
/** Operands that both have more leaves are evaluated too: a.or(a), repeated, would double the tree each time. */
const MAX_LEAVES = 1024;

export const ALL: Expression = { kind: 'all', rank: -1, fixed: false, bounds: null };

export function noneExpression(rank = -1): Expression {
  return { kind: 'none', rank, fixed: true, bounds: null };
}

export function slabExpression(slab: CheckedSlab): Expression {
  if (slab.count === null) return { kind: 'open', slab, rank: slab.rank, fixed: false, bounds: null };
  const regular = regularSlab(slab, null);
  if (!regular) return noneExpression(slab.rank);
  return { kind: 'slab', slab: regular, rank: regular.rank, fixed: true, bounds: slabBounds(regular) };
}

export function boxesExpression(boxes: BoxList, rowMajor: boolean, bounds?: Bounds): Expression {
  if (boxes.length === 0) return noneExpression(boxes.rank);
  return { kind: 'boxes', boxes, rowMajor, rank: boxes.rank, fixed: true, bounds: bounds ?? boxes.bounds() };
}

export function pointsExpression(points: PointList): Expression {
  if (points.length === 0) return noneExpression(points.rank);
  const { rank, at } = points;
  const lo = at.slice(0, rank);
  const hi = lo.map((x) => x + 1);
  for (let i = 0, k = 0; i < points.length; i++) {
    for (let d = 0; d < rank; d++, k++) {
      const x = at[k] as number;
      if (x < (lo[d] as number)) lo[d] = x;
      if (x >= (hi[d] as number)) hi[d] = x + 1;
    }
  }
  return { kind: 'points', points, rank, fixed: true, bounds: { lo, hi } };
}

export function setExpression(operation: SetOperation, left: Expression, right: Expression): Expression {
  if (left.rank !== -1 && right.rank !== -1 && left.rank !== right.rank) {
    throw selectionError(`a selection of ${left.rank} dimensions and one of ${right.rank} have no '${operation}'`);
  }
  const rank = left.rank === -1 ? right.rank : left.rank;
  const fixed = left.fixed && right.fixed;
  // Only the empty set is fixed without a rank.
  if (fixed && rank === -1) return noneExpression();
  const expression: SetExpression = {
    kind: 'set',
    operation,
    left,
    right,
    rank,
    fixed,
    bounds: boundsOf(operation, left, right),
    depth: Math.max(
      depthUnder(operation, left),
      operation === 'minus' ? depthOf(right) + 1 : depthUnder(operation, right),
    ),
    leaves: leavesOf(left) + leavesOf(right),
  };
  const large = expression.depth > MAX_DEPTH || Math.min(leavesOf(left), leavesOf(right)) > MAX_LEAVES;
  return large && fixed ? boxesExpression(evaluate(expression, [], false), false) : expression;
}

/**
 * The elements of an expression as boxes: disjoint and in row-major order if `ordered`, else they may overlap.
 * Only the part inside `window` is exact: the caller drops what is outside.
 */
export function evaluate(
  expression: Expression,
  shape: ArrayLike<number>,
  ordered: boolean,
  window: Bounds | null = null,
): BoxList {
  switch (expression.kind) {
    case 'none':
      return new BoxList(expression.rank === -1 ? shape.length : expression.rank, 0);
    case 'all':
      return boxesInside(
        regularSlab({ rank: -1, start: null, count: null, stride: null, block: null }, shape),
        shape,
        ordered,
        null,
      );
    case 'open':
      return boxesInside(regularSlab(expression.slab, shape), shape, ordered, window);
    case 'slab':
      return boxesInside(expression.slab, shape, ordered, window);
    case 'boxes':
      return ordered && !expression.rowMajor ? union(expression.boxes, true) : expression.boxes;
    case 'points':
      return sortPoints(expression.points).boxes;
    case 'set':
      return setBoxes(expression, shape, ordered, window);
  }
}

function boxesInside(
  slab: RegularSlab | null,
  shape: ArrayLike<number>,
  ordered: boolean,
  window: Bounds | null,
): BoxList {
  const seen = slab && window ? slabWithin(slab, window.lo, window.hi) : slab;
  return seen ? slabBoxes(seen, ordered) : new BoxList(slab?.rank ?? shape.length, 0);
}

function setBoxes(
  expression: SetExpression,
  shape: ArrayLike<number>,
  ordered: boolean,
  window: Bounds | null,
): BoxList {
  const { operation } = expression;
  const rank = expression.rank === -1 ? shape.length : expression.rank;
  const operands = operandsOf(expression);
  const lists = (expressions: readonly Expression[], inside: Bounds | null): BoxList[] =>
    expressions.map((operand) => evaluate(operand, shape, false, inside));
  if (operation === 'or') return union(concatenated(lists(operands, window), rank), ordered);
  if (operation === 'minus') {
    const [whole, ...removed] = operands as [Expression, ...Expression[]];
    const inside = narrowed(window, whole.bounds);
    return combine(evaluate(whole, shape, false, window), concatenated(lists(removed, inside), rank), 'minus', ordered);
  }
  const inside = operation === 'and' ? operands.reduce((w, operand) => narrowed(w, operand.bounds), window) : window;
  let left = lists(operands, inside);
  // In pairs, then pairs of results: one after the other would be quadratic in the number of operands.
  while (left.length > 1) {
    const last = left.length === 2;
    const pairs: BoxList[] = [];
    for (let i = 0; i + 1 < left.length; i += 2) {
      pairs.push(combine(left[i] as BoxList, left[i + 1] as BoxList, operation, last && ordered));
    }
    if (left.length % 2 === 1) pairs.push(left[left.length - 1] as BoxList);
    left = pairs;
  }
  return left[0] as BoxList;
}

/** a.or(b).or(c) has three operands; a.minus(b).minus(c) is a without b and c. Not recursive: chains may be long. */
function operandsOf(expression: SetExpression): Expression[] {
  const { operation } = expression;
  const operands: Expression[] = [];
  const waiting: Expression[] = [expression];
  while (waiting.length > 0) {
    const next = waiting.pop() as Expression;
    if (next.kind !== 'set' || next.operation !== operation) operands.push(next);
    else if (operation === 'minus') {
      operands.push(next.right);
      waiting.push(next.left);
    } else waiting.push(next.left, next.right);
  }
  return operands.reverse();
}

function concatenated(lists: readonly BoxList[], rank: number): BoxList {
  if (lists.length === 1) return lists[0] as BoxList;
  const all = new BoxList(
    rank,
    lists.reduce((n, list) => n + list.length, 0),
  );
  for (const list of lists) all.append(list);
  return all;
}

function depthOf(expression: Expression): number {
  return expression.kind === 'set' ? expression.depth : 0;
}

function leavesOf(expression: Expression): number {
  return expression.kind === 'set' ? expression.leaves : 1;
}

/** The depth of a tree whose operand this is. Operands of the same operation are on one level, see operandsOf. */
function depthUnder(operation: SetOperation, expression: Expression): number {
  return expression.kind === 'set' && expression.operation === operation ? expression.depth : depthOf(expression) + 1;
}

function boundsOf(operation: SetOperation, left: Expression, right: Expression): Bounds | null {
  if (operation === 'minus' || right.kind === 'none') return operation === 'and' ? null : left.bounds;
  if (operation === 'and') return narrowed(left.bounds, right.bounds);
  if (left.kind === 'none') return right.bounds;
  if (!left.bounds || !right.bounds) return null;
  const a = left.bounds;
  const b = right.bounds;
  return {
    lo: a.lo.map((x, d) => Math.min(x, b.lo[d] as number)),
    hi: a.hi.map((x, d) => Math.max(x, b.hi[d] as number)),
  };
}

/** The intersection of two bounds; if it is empty, a range of it ends before it begins. */
function narrowed(a: Bounds | null, b: Bounds | null): Bounds | null {
  if (!a || !b) return a ?? b;
  return {
    lo: a.lo.map((x, d) => Math.max(x, b.lo[d] as number)),
    hi: a.hi.map((x, d) => Math.min(x, b.hi[d] as number)),
  };
}
