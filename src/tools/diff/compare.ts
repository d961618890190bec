import { sameBytes } from '#platform';
import type { Dataset } from '../../api/dataset.ts';
import { H5LogError } from '../../base/errors.ts';
import { decodeValues } from '../../dtype/decode.ts';
import { containsReference, containsVlen, describeType, sameType } from '../../dtype/describe.ts';
import { type CompoundType, type DType, type FullType, fullType, storedNumber } from '../../dtype/model.ts';
import { cellOf } from '../../space/grid.ts';
import { Selected } from '../../space/select.ts';
import { isNull } from '../inside.ts';
import { MOST_ELEMENTS } from '../value-text.ts';
import { fullSlab, pieceSize, slabPieces } from '../values.ts';

/** What counts as different, as in h5diff. */
export interface Tolerance {
  /** |a - b| beyond this. */
  readonly delta?: number;
  /** |(a - b) / a| beyond this; with an a of 0 everything but 0. */
  readonly relative?: number;
}

/** A number, text or the like that differs; `within` is the way to it inside an element: .field, [2]. */
interface Leaf {
  readonly within: string;
  readonly dtype: DType;
  readonly a: unknown;
  readonly b: unknown;
}

/** Compares two elements; every leaf that differs is told. */
type Comparison = (a: unknown, b: unknown, tell: (leaf: Leaf) => void, within?: string) => void;

/** Whether values of two types mean the same kind of thing. Numbers of all sizes do. */
function comparable(a: DType, b: DType): boolean {
  if (sameType(a, b)) return true;
  const [x, y] = [fullType(a), fullType(b)];
  if (isNumber(x) && isNumber(y)) return true;
  if (x.class !== y.class) return false;
  switch (x.class) {
    case 'string':
    case 'reference':
    case 'enum':
    case 'bitfield':
      return true;
    case 'opaque':
      return x.size === y.size;
    case 'compound': {
      const fields = new Map((y as CompoundType).fields.map(({ name, dtype }) => [name, dtype]));
      return (
        fields.size === x.fields.length &&
        x.fields.every(({ name, dtype }) => {
          const other = fields.get(name);
          return other !== undefined && comparable(dtype, other);
        })
      );
    }
    case 'array': {
      const z = y as typeof x;
      return (
        x.shape.length === z.shape.length && x.shape.every((n, d) => n === z.shape[d]) && comparable(x.base, z.base)
      );
    }
    case 'vlen':
      return comparable(x.base, (y as typeof x).base);
    default:
      return false;
  }
}

const isNumber = ({ class: kind }: FullType): boolean => kind === 'integer' || kind === 'float';

/** Values of the first type are compared with those of another that is {@link comparable}. */
function comparisonOf(dtype: DType, tolerance: Tolerance): Comparison {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
    case 'float': {
      const differs = numbersDiffer(tolerance);
      return (a, b, tell, within = '') => {
        if (differs(a as number | bigint, b as number | bigint)) tell({ within, dtype, a, b });
      };
    }
    case 'compound': {
      const fields = type.fields.map(({ name, dtype: inner }) => [name, comparisonOf(inner, tolerance)] as const);
      return (a, b, tell, within = '') => {
        const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
        for (const [name, compare] of fields) compare(x[name], y[name], tell, `${within}.${name}`);
      };
    }
    case 'array':
    case 'vlen': {
      const compare = comparisonOf(type.base, tolerance);
      return (a, b, tell, within = '') => {
        const [x, y] = [a as ArrayLike<unknown>, b as ArrayLike<unknown>];
        if (x.length !== y.length) tell({ within, dtype, a, b });
        else for (let i = 0; i < x.length; i++) compare(x[i], y[i], tell, `${within}[${i}]`);
      };
    }
    case 'opaque':
      return (a, b, tell, within = '') => {
        if (!sameBytes(a as Uint8Array, b as Uint8Array)) tell({ within, dtype, a, b });
      };
    case 'reference':
      return (a, b, tell, within = '') => {
        if (!sameReference(a, b)) tell({ within, dtype, a, b });
      };
    default:
      // Enums and bit fields are what they are: there is nothing between two of them. Of 64 bits or not, equal numbers are equal.
      return (a, b, tell, within = '') => {
        // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number of the same value
        if (a != b) tell({ within, dtype, a, b });
      };
  }
}

/** Paths, or paths with selections or names of attributes. */
function sameReference(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return false;
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  if (x.path !== y.path || x.attribute !== y.attribute || x.file !== y.file) return false;
  const [one, other] = [x.where, y.where];
  if (!(one instanceof Selected) || !(other instanceof Selected)) return one === other;
  if (!(one.size <= MOST_ELEMENTS)) return Object.is(one.size, other.size);
  return one.size === other.size && one.rank === other.rank && one.xor(other).size === 0;
}

/** Whether two numbers differ; NaN is equal to NaN. */
function numbersDiffer({ delta, relative }: Tolerance): (a: number | bigint, b: number | bigint) => boolean {
  return (a, b) => {
    // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number of the same value
    if (a == b || (Number.isNaN(a) && Number.isNaN(b))) return false;
    if (delta === undefined && relative === undefined) return true;
    const distance = Math.abs(distanceOf(a, b));
    // Not `>`: a NaN is never within a tolerance.
    if (delta !== undefined) return !(distance <= delta);
    return Number(a) === 0 || !(distance / Math.abs(Number(a)) <= (relative as number));
  };
}

/** b - a, exact as long as both are integers of the same kind. */
export function distanceOf(a: number | bigint, b: number | bigint): number {
  return typeof a === 'bigint' && typeof b === 'bigint' ? Number(b - a) : Number(b) - Number(a);
}

/** Whether a leaf has a distance at all. */
export function isMeasured(dtype: DType): boolean {
  return storedNumber(dtype) !== undefined && isNumber(fullType(dtype));
}

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

function shapeText(shape: readonly number[] | null): string {
  if (shape === null) return 'NULL';
  return shape.length === 0 ? 'SCALAR' : `[${shape.join('x')}]`;
}

function sameShape(a: readonly number[] | null, b: readonly number[] | null): boolean {
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
    const position = (i: number): number[] => cellOf(i, where.count).map((c, d) => c + (where.start[d] as number));
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
