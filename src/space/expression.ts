import { BoxList } from './box-list.ts';
import { type PointList, sortPoints } from './points.ts';
import { combine, union } from './sets.ts';
import { selectionError } from './shape.ts';
import { type CheckedSlab, type Grid, gridBounds, gridBoxes, gridOf, gridWithin } from './slab.ts';
import type { SetOperation } from './sweep.ts';

interface Bounds {
  readonly lo: Float64Array;
  readonly hi: Float64Array;
}

interface Common {
  /** -1 as long as only a dataset's shape can tell. */
  readonly rank: number;
  /** Whether it is the same set of elements whatever the shape of the dataset is. */
  readonly fixed: boolean;
  /** A box around it, null if only a shape can tell. */
  readonly bounds: Bounds | null;
}

/** What a selection means: a leaf, or two forms and an operation. */
export type Form =
  | (Common & { readonly kind: 'all' })
  | (Common & { readonly kind: 'none' })
  | (Common & { readonly kind: 'grid'; readonly grid: Grid })
  | (Common & { readonly kind: 'open'; readonly slab: CheckedSlab })
  | (Common & { readonly kind: 'boxes'; readonly boxes: BoxList; readonly rowMajor: boolean })
  | (Common & { readonly kind: 'points'; readonly points: PointList })
  | SetForm;

interface SetForm extends Common {
  readonly kind: 'set';
  readonly operation: SetOperation;
  readonly left: Form;
  readonly right: Form;
  readonly depth: number;
  readonly leaves: number;
}

/** Deeper trees of known sets are worked out as they grow, so that no tree overflows the stack. */
const MAX_DEPTH = 64;
/** So are two that are both large: a.or(a), again and again, would double forever. Long chains have one large side. */
const LARGE = 1024;

export const ALL: Form = { kind: 'all', rank: -1, fixed: false, bounds: null };

export function noneForm(rank = -1): Form {
  return { kind: 'none', rank, fixed: true, bounds: null };
}

export function slabForm(slab: CheckedSlab): Form {
  if (slab.count === null) return { kind: 'open', slab, rank: slab.rank, fixed: false, bounds: null };
  const grid = gridOf(slab, null);
  if (!grid) return noneForm(slab.rank);
  return { kind: 'grid', grid, rank: grid.rank, fixed: true, bounds: gridBounds(grid) };
}

export function boxesForm(boxes: BoxList, rowMajor: boolean): Form {
  if (boxes.length === 0) return noneForm(boxes.rank);
  return { kind: 'boxes', boxes, rowMajor, rank: boxes.rank, fixed: true, bounds: boxes.bounds() };
}

export function pointsForm(points: PointList): Form {
  if (points.length === 0) return noneForm(points.rank);
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

export function setForm(operation: SetOperation, left: Form, right: Form): Form {
  if (left.rank !== -1 && right.rank !== -1 && left.rank !== right.rank) {
    throw selectionError(`a selection of ${left.rank} dimensions and one of ${right.rank} have no '${operation}'`);
  }
  const rank = left.rank === -1 ? right.rank : left.rank;
  const fixed = left.fixed && right.fixed;
  // Known without a rank is only the empty set.
  if (fixed && rank === -1) return noneForm();
  const form: SetForm = {
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
  const large = form.depth > MAX_DEPTH || Math.min(leavesOf(left), leavesOf(right)) > LARGE;
  return large && fixed ? boxesForm(boxesOf(form, [], false), false) : form;
}

/**
 * The elements of a form as boxes: disjoint and in row-major order if `ordered`, else they may overlap.
 * Inside `window` the result is right, outside it may be anything (nobody will look there).
 */
export function boxesOf(form: Form, shape: ArrayLike<number>, ordered: boolean, window: Bounds | null = null): BoxList {
  switch (form.kind) {
    case 'none':
      return new BoxList(form.rank === -1 ? shape.length : form.rank, 0);
    case 'all':
      return gridList(
        gridOf({ rank: -1, start: null, count: null, stride: null, block: null }, shape),
        shape,
        ordered,
        null,
      );
    case 'open':
      return gridList(gridOf(form.slab, shape), shape, ordered, window);
    case 'grid':
      return gridList(form.grid, shape, ordered, window);
    case 'boxes':
      return ordered && !form.rowMajor ? union(form.boxes, true) : form.boxes;
    case 'points':
      return sortPoints(form.points).boxes;
    case 'set':
      return setBoxes(form, shape, ordered, window);
  }
}

function gridList(grid: Grid | null, shape: ArrayLike<number>, ordered: boolean, window: Bounds | null): BoxList {
  const seen = grid && window ? gridWithin(grid, window.lo, window.hi) : grid;
  return seen ? gridBoxes(seen, ordered) : new BoxList(grid?.rank ?? shape.length, 0);
}

function setBoxes(form: SetForm, shape: ArrayLike<number>, ordered: boolean, window: Bounds | null): BoxList {
  const { operation } = form;
  const rank = form.rank === -1 ? shape.length : form.rank;
  const operands = operandsOf(form);
  const lists = (forms: readonly Form[], inside: Bounds | null): BoxList[] =>
    forms.map((operand) => boxesOf(operand, shape, false, inside));
  if (operation === 'or') return union(concatenated(lists(operands, window), rank), ordered);
  if (operation === 'minus') {
    const [whole, ...removed] = operands as [Form, ...Form[]];
    const inside = narrowed(window, whole.bounds);
    return combine(boxesOf(whole, shape, false, window), concatenated(lists(removed, inside), rank), 'minus', ordered);
  }
  const inside = operation === 'and' ? operands.reduce((w, operand) => narrowed(w, operand.bounds), window) : window;
  let left = lists(operands, inside);
  // In pairs and pairs of pairs: one after the other would be quadratic in the number of operands.
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
function operandsOf(form: SetForm): Form[] {
  const { operation } = form;
  const operands: Form[] = [];
  const waiting: Form[] = [form];
  while (waiting.length > 0) {
    const next = waiting.pop() as Form;
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

function depthOf(form: Form): number {
  return form.kind === 'set' ? form.depth : 0;
}

function leavesOf(form: Form): number {
  return form.kind === 'set' ? form.leaves : 1;
}

/** Operands of the same operation are one level, see operandsOf. */
function depthUnder(operation: SetOperation, form: Form): number {
  return form.kind === 'set' && form.operation === operation ? form.depth : depthOf(form) + 1;
}

function boundsOf(operation: SetOperation, left: Form, right: Form): Bounds | null {
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

/** What two bounds share; nothing at all is a range that ends before it begins. */
function narrowed(a: Bounds | null, b: Bounds | null): Bounds | null {
  if (!a || !b) return a ?? b;
  return {
    lo: a.lo.map((x, d) => Math.max(x, b.lo[d] as number)),
    hi: a.hi.map((x, d) => Math.min(x, b.hi[d] as number)),
  };
}
