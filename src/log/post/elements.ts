import { H5LogError } from '../../base/errors.ts';
import { arrayKind, numberArray, packNumbers, unpackNumbers } from '../../dtype/convert.ts';
import { decodeValues, type Resolver } from '../../dtype/decode.ts';
import { describeType, describeValue } from '../../dtype/describe.ts';
import { ColumnRows, elementsIn, encodeRows, encodeValues, type ValueSink } from '../../dtype/encode.ts';
import { pointersOf } from '../../dtype/heap-ids.ts';
import {
  type DType,
  type FullType,
  fullType,
  isPlainNumber,
  type NumberType,
  numberName,
  storedNumber,
  type TypedArray,
} from '../../dtype/model.ts';

/** For types that hold all of their value. */
const NOTHING: Resolver = { heap: () => undefined, path: () => '' };

type ArrayClass = new (buffer: ArrayBuffer, at: number, length: number) => TypedArray;

/** Elements of a dataset's type between JavaScript and the file. */
export class Elements {
  readonly dtype: DType;
  readonly size: number;
  /** The typed array whose bytes are those in the file, if there is one. */
  readonly native: NumberType | undefined;
  /** Whether elements point elsewhere: into a heap, or to objects. */
  readonly points: boolean;
  /** The class of that array. */
  readonly #Native: ArrayClass | undefined;
  readonly #isNumber: boolean;

  constructor(dtype: DType) {
    this.dtype = dtype;
    const type: FullType = fullType(dtype);
    this.size = type.size;
    this.points = pointersOf(dtype).length > 0;
    this.#isNumber = storedNumber(dtype) !== undefined || type.class === 'bitfield';
    const number = storedNumber(dtype);
    this.native = number && isPlainNumber(dtype) ? numberName(number) : undefined;
    if (this.native) this.#Native = numberArray(dtype, 0).constructor as ArrayClass;
  }

  /** Whether elements are stored as numbers, enums and bit fields included. */
  get isNumber(): boolean {
    return this.#isNumber;
  }

  /** A typed array whose bytes can be taken as they are. */
  isNative(data: unknown): data is TypedArray {
    return this.native !== undefined && arrayKind(data) === this.native;
  }

  /** A typed array that is sure to be convertible later; other data is looked at when it is posted, so that it can be refused. */
  canWait(data: unknown): data is TypedArray {
    return this.#isNumber && arrayKind(data) !== undefined;
  }

  /** Encodes `data`, which is `count` elements, into `out`. What they point to goes to `sink`. */
  encode(data: unknown, count: number, out: Uint8Array, at: number, sink?: ValueSink): void {
    if (this.#isNumber && isNumbers(data)) {
      packNumbers(data, 0, count, this.dtype, out, at);
      return;
    }
    const isRows = data instanceof ColumnRows;
    // Bytes between fields may be left from earlier posts.
    if (isRows) out.fill(0, at, at + count * this.size);
    if (isRows) encodeRows(this.dtype, data, out, at, sink);
    else out.set(encodeValues(this.dtype, data, count, sink).bytes, at);
  }

  /** How many elements a caller's data holds; a single value counts as one. */
  count(data: unknown): number {
    // Not one element, even where an element is a list itself.
    if (Array.isArray(data) && data.length === 0) return 0;
    return elementsIn(this.dtype, data) ?? 1;
  }

  /** The array a read gives, over bytes that are its own. */
  decode(bytes: Uint8Array<ArrayBuffer>, count: number, resolver: Resolver = NOTHING): unknown {
    // The bytes are aligned, because they were allocated for it.
    if (this.#Native) return new this.#Native(bytes.buffer, bytes.byteOffset, count);
    return decodeValues(this.dtype, bytes, count, resolver);
  }

  /** The least that {@link decode} takes besides typed arrays; Infinity for more values than a plain array can have. */
  heapBytes(count: number): number {
    if (this.native !== undefined) return 0;
    const number = storedNumber(this.dtype);
    if (number && numberName(number)) return 0;
    return count > MOST_VALUES ? Infinity : count * valueBytes(fullType(this.dtype));
  }

  /** Converts into a caller's array. */
  decodeInto(bytes: Uint8Array, count: number, into: TypedArray): void {
    if (!this.#isNumber) {
      throw new H5LogError('DTYPE', `${describeType(this.dtype)} cannot be read into a typed array; leave 'into' out`);
    }
    unpackNumbers(bytes, 0, count, this.dtype, into, 0);
  }
}

/** V8 ends the process where a plain array grows beyond 2^27 values; it grows by half at a time. */
const MOST_VALUES = 2 ** 26;

/** The least that a value in a plain array takes: the element, the string or object, and what that holds. */
function valueBytes(type: FullType): number {
  if (type.class === 'compound') return type.fields.reduce((sum, field) => sum + valueBytes(fullType(field.dtype)), 24);
  return type.class === 'opaque' || type.class === 'array' ? 100 : 8;
}

function isNumbers(data: unknown): data is TypedArray | ArrayLike<number | bigint> {
  if (ArrayBuffer.isView(data)) return arrayKind(data) !== undefined;
  return Array.isArray(data) && data.every((item) => typeof item === 'number' || typeof item === 'bigint');
}

export function wrongLength(path: string, got: number, expected: number, data?: unknown): H5LogError {
  const isNested = Array.isArray(data) && Array.isArray(data[0]);
  const what = `${got} ${isNested ? 'lists' : 'values'} for a selection of ${expected} elements`;
  return new H5LogError('SHAPE', `${path}: ${what}${isNested ? '; data is flat: use .flat()' : ''}`, { object: path });
}

export function notData(path: string, data: unknown): H5LogError {
  return new H5LogError('DTYPE', `${path}: expected data, got ${describeValue(data)}`, { object: path });
}
