import type { Dataset } from '../../api/dataset.ts';
import { H5LogError } from '../../base/errors.ts';
import { decodeValues } from '../../dtype/decode.ts';
import { containsReference, containsVlen, describeType, sameType } from '../../dtype/describe.ts';
import type { DType } from '../../dtype/model.ts';
import { pieceSize } from '../dump/values.ts';
import { isNull } from '../inside.ts';
import { fullSlab, slabPieces } from '../slab-pieces.ts';
import { comparable, comparisonOf, type Leaf, sameBytes, type Tolerance } from './compare-values.ts';

/** A value that differs, and where. */
export interface FoundLeaf extends Leaf {
  readonly position: readonly number[];
}

/** What keeps two arrays from being alike before their values are looked at, in words. */
export function* shapeNotes(a: Described, b: Described): Iterable<string> {
  if (!sameType(a.dtype, b.dtype)) yield `type differs: ${describeType(a.dtype)} and ${describeType(b.dtype)}`;
  if (!sameShape(a.shape, b.shape)) yield `shape differs: ${shapeText(a.shape)} and ${shapeText(b.shape)}`;
}

export interface Described {
  readonly dtype: DType;
  /** null: no elements at all. */
  readonly shape: readonly number[] | null;
}

export function describeDataset(dataset: Dataset): Described {
  return { dtype: dataset.dtype, shape: isNull(dataset) ? null : dataset.shape };
}

export function shapeText(shape: readonly number[] | null): string {
  if (shape === null) return 'NULL';
  return shape.length === 0 ? 'SCALAR' : `[${shape.join('x')}]`;
}

export function sameShape(a: readonly number[] | null, b: readonly number[] | null): boolean {
  if (a === null || b === null) return a === b;
  return a.length === b.length && a.every((size, d) => size === b[d]);
}

/** Whether the values can be compared at all. */
export function canCompare(a: Described, b: Described): boolean {
  return a.shape !== null && sameShape(a.shape, b.shape) && comparable(a.dtype, b.dtype);
}

/** Compares two lists of elements that are in memory. */
export function* compareLists(
  a: ArrayLike<unknown>,
  b: ArrayLike<unknown>,
  dtype: DType,
  tolerance: Tolerance,
  position: (i: number) => readonly number[],
): Iterable<FoundLeaf> {
  const compare = comparisonOf(dtype, tolerance);
  let found: Leaf[] = [];
  const tell = (leaf: Leaf): void => {
    found.push(leaf);
  };
  const isNumbers = ArrayBuffer.isView(a) && ArrayBuffer.isView(b);
  for (let i = 0; i < a.length; i++) {
    // Most elements are equal, and to see that takes no call.
    if (isNumbers && a[i] === b[i]) continue;
    compare(a[i], b[i], tell);
    if (found.length === 0) continue;
    for (const leaf of found) yield { ...leaf, position: position(i) };
    found = [];
  }
}

/** Compares the values of two datasets of one shape, piece by piece. */
export async function* compareData(
  a: Dataset,
  b: Dataset,
  tolerance: Tolerance,
): AsyncGenerator<FoundLeaf, void, undefined> {
  const most = Math.min(pieceSize(a.dtype), pieceSize(b.dtype));
  const { shape } = a;
  if (shape.length === 0) {
    yield* compareLists(...(await readBoth(a, b, undefined, 1)), a.dtype, tolerance, () => []);
    return;
  }
  for (const { where, size } of slabPieces(fullSlab({}, shape, a.path), most)) {
    const lists = await readBoth(a, b, { start: where.start, count: where.count }, size);
    const position = (i: number): number[] => {
      const at = new Array<number>(shape.length);
      for (let d = shape.length - 1, rest = i; d >= 0; d--) {
        const n = where.count[d] as number;
        at[d] = (where.start[d] as number) + (rest % n);
        rest = Math.floor(rest / n);
      }
      return at;
    };
    yield* compareLists(...lists, a.dtype, tolerance, position);
  }
}

type Box = { start: number[]; count: number[] } | undefined;

const NOTHING: ArrayLike<unknown> = [];

/** Elements of both; none where the bytes are the same, which saves decoding them. */
async function readBoth(
  a: Dataset,
  b: Dataset,
  box: Box,
  size: number,
): Promise<[ArrayLike<unknown>, ArrayLike<unknown>]> {
  const { dtype } = a;
  const isBytes = sameType(dtype, b.dtype) && !containsVlen(dtype) && !containsReference(dtype);
  if (!isBytes) return [(await a.read(box)) as ArrayLike<unknown>, (await b.read(box)) as ArrayLike<unknown>];
  const [x, y] = [await a.read(box, { raw: true }), await b.read(box, { raw: true })];
  if (sameBytes(x, y)) return [NOTHING, NOTHING];
  return [decoded(dtype, x, size), decoded(b.dtype, y, size)];
}

function decoded(dtype: DType, bytes: Uint8Array, count: number): ArrayLike<unknown> {
  return decodeValues(dtype, bytes, count, { heap: outside, path: outside }) as ArrayLike<unknown>;
}

function outside(): never {
  throw new H5LogError('DTYPE', 'bytes that are not all of the values');
}
