import { H5LogError } from '../base/errors.ts';

/** HDF5's limit (H5S_MAX_RANK). */
export const MAX_RANK = 32;

/**
 * Checks the sizes of a dataset and returns a copy of them.
 * The number of elements must be exact in a number, because positions in the row-major order are computed from it.
 */
export function checkShape(shape: ArrayLike<number>): number[] {
  const sizes = listOf(shape, 'a shape');
  for (let d = 0; d < sizes.length; d++) {
    if (!isSize(sizes[d]))
      throw shapeError(`dimension ${d} of the shape ${describe(sizes)} is no whole number from 0 up`);
  }
  const size = sizeOf(sizes as number[]);
  if (size > Number.MAX_SAFE_INTEGER) {
    throw shapeError(
      `the shape ${describe(sizes)} has about ${size.toExponential(2)} elements; at most 2^53-1 are possible`,
    );
  }
  return sizes as number[];
}

/** Checks the sizes a dataset may grow to, null for no limit, and returns a copy. Without them it cannot grow. */
export function checkMaxShape(
  maxShape: ArrayLike<number | null> | undefined,
  shape: readonly number[],
): (number | null)[] {
  if (maxShape === undefined) return [...shape];
  const limits = listOf(maxShape, 'a maxShape');
  if (limits.length !== shape.length) {
    throw shapeError(
      `maxShape ${describe(limits)} has ${limits.length} dimensions, the shape ${describe(shape)} ${shape.length}`,
    );
  }
  for (let d = 0; d < limits.length; d++) {
    const limit = limits[d];
    if (limit === null) continue;
    if (!isSize(limit))
      throw shapeError(`dimension ${d} of maxShape ${describe(limits)} is neither null nor a whole number`);
    if (limit < (shape[d] as number)) {
      throw shapeError(
        `dimension ${d} is ${shape[d]}, more than the ${limit} that maxShape ${describe(limits)} allows`,
      );
    }
  }
  return limits as (number | null)[];
}

/** The number of elements; 1 for a scalar. */
export function sizeOf(shape: ArrayLike<number>): number {
  let size = 1;
  // A zero anywhere makes it 0, also when the other sizes alone would be too large for a number.
  for (let d = 0; d < shape.length; d++) if (shape[d] === 0) return 0;
  for (let d = 0; d < shape.length; d++) size *= shape[d] as number;
  return size;
}

/** How many elements a step of one along each dimension moves in the row-major order. */
export function stridesOf(shape: ArrayLike<number>): Float64Array {
  const strides = new Float64Array(shape.length);
  let stride = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d] as number;
  }
  return strides;
}

/** A list of numbers for a message, cut short when it is long. */
export function describe(list: ArrayLike<unknown>): string {
  const shown = Array.from({ length: Math.min(list.length, MAX_RANK) }, (_, i) => String(list[i]));
  return `[${shown.join(', ')}${list.length > MAX_RANK ? ', ...' : ''}]`;
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function listOf(list: unknown, what: string): unknown[] {
  if (typeof list !== 'object' || list === null || typeof (list as ArrayLike<unknown>).length !== 'number') {
    throw shapeError(`${what} is a list of sizes, not ${String(list)}`);
  }
  const values = Array.from(list as ArrayLike<unknown>);
  if (values.length > MAX_RANK) throw shapeError(`${what} has at most ${MAX_RANK} dimensions, not ${values.length}`);
  return values;
}

function shapeError(message: string): H5LogError {
  return new H5LogError('SHAPE', message);
}
