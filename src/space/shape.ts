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

/** Whether a dimension may become larger than it is. */
export function mayGrow(shape: readonly number[], maxShape: readonly (number | null)[]): boolean {
  return maxShape.some((most, d) => most !== shape[d]);
}

/** The number of elements of a shape; 1 for a scalar. */
export function sizeOf(shape: ArrayLike<number>): number {
  let size = 1;
  // First, because the product of the other sizes may be too large for a number.
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

export type Coordinates = ArrayLike<number>;

/** A hyperslab. A missing start is 0, stride and block are 1; a missing count reaches to the end. */
export interface Slab {
  start?: Coordinates;
  count?: Coordinates;
  stride?: Coordinates;
  block?: Coordinates;
}

export function selectionError(message: string): H5LogError {
  return new H5LogError('SELECTION', message);
}

/** True for whole numbers from 0 to 2^53-1. */
export function isCoordinate(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isList(value: unknown): value is ArrayLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as ArrayLike<unknown>).length === 'number';
}

/** One coordinate or count per dimension, checked and copied. */
export function checkCoordinates(list: unknown, name: string): Float64Array {
  if (!isList(list)) throw selectionError(`${name} is a list of numbers, not ${String(list)}`);
  if (list.length > MAX_RANK) {
    throw selectionError(`${name} has ${list.length} numbers, more than the ${MAX_RANK} dimensions there can be`);
  }
  const values = new Float64Array(list.length);
  copyCoordinates(list, values, 0, name);
  return values;
}

/**
 * Copies a list of any length into `target` from `at` on; every item must be a coordinate. Of several lists `number` tells which one it is:
 * the text that names it is only made for an error.
 */
export function copyCoordinates(
  list: ArrayLike<unknown>,
  target: Float64Array,
  at: number,
  name: string,
  number?: number,
): void {
  for (let i = 0; i < list.length; i++) {
    const value = list[i];
    if (!isCoordinate(value)) throw notACoordinate(list, i, number === undefined ? name : `${name} ${number}`);
    // Adding 0 turns -0 into 0.
    target[at + i] = value + 0;
  }
}

export function notACoordinate(list: ArrayLike<unknown>, i: number, name: string): H5LogError {
  const value = list[i];
  const shown = typeof value === 'number' ? String(value) : `${typeof value} ${String(value)}`;
  const where = list.length <= MAX_RANK ? `dimension ${i} of ${name} ${describe(list)}` : `number ${i} of ${name}`;
  return selectionError(`${where} is ${shown}, not a whole number from 0 to 2^53-1`);
}

export function wrongRank(what: string, found: number, shape: ArrayLike<number>): H5LogError {
  return selectionError(`${what} has ${found} dimensions, the shape ${describe(shape)} has ${shape.length}`);
}

/** `from` is the first coordinate selected in dimension d, `end` the one after the last. */
export function outside(d: number, from: number, end: number, shape: ArrayLike<number>, block = -1): H5LogError {
  const what = block < 0 ? 'the selection' : `block ${block}`;
  const size = shape[d] as number;
  const room = size === 0 ? 'but it has no elements' : `outside its 0 to ${size - 1}`;
  return selectionError(
    `dimension ${d}: ${what} covers ${from} to ${end - 1}, ${room}; the shape is ${describe(shape)}`,
  );
}
