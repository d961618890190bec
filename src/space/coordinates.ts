import { H5LogError } from '../base/errors.ts';
import { describe, MAX_RANK } from './shape.ts';

export type Coordinates = ArrayLike<number>;

/** Missing start is 0, stride and block 1, missing count is up to the end. */
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

/** Copies a list of any length into `target` from `at` on; every item must be a coordinate. */
export function copyCoordinates(list: ArrayLike<unknown>, target: Float64Array, at: number, name: string): void {
  for (let i = 0; i < list.length; i++) {
    const value = list[i];
    if (!isCoordinate(value)) throw notACoordinate(list, i, name);
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
