import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Dataset } from 'h5log';
import { expect } from 'vitest';
import { python, run } from '../oracles.ts';

export type Value = number | string;

/** What a dataset should hold. */
export interface Expected {
  shape: number[];
  readonly maxShape: readonly (number | null)[];
  values: Value[];
  readonly fill: Value;
  readonly attributes: Map<string, number>;
  /** Its values are paths of objects, '' for none. */
  readonly refers?: boolean;
}

/** A change that libhdf5 makes: another shape, or data in a box. */
export type Change =
  | { readonly path: string; readonly shape: readonly number[] }
  | {
      readonly path: string;
      readonly start: readonly number[];
      readonly count: readonly number[];
      readonly data: readonly number[];
    };

const BY_H5PY = `
import json, sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    for c in json.load(sys.stdin):
        d = f[c['path']]
        if 'shape' in c: d.resize(c['shape'])
        else: d[tuple(slice(a, a + n) for a, n in zip(c['start'], c['count']))] = np.reshape(c['data'], c['count'])
`;

/** Through libhdf5 1.10. */
export async function byH5py(path: string, changes: readonly Change[]): Promise<void> {
  await python(BY_H5PY, [path], JSON.stringify(changes));
}

export function valuesOf(dataset: Dataset): Value[] {
  const read = dataset.readSync() as ArrayLike<unknown>;
  return Array.from(read, (value) => (typeof value === 'string' ? value : Number(value)));
}

/** Calls `visit` with the row-major number of each element of a box. */
function eachOf(
  shape: readonly number[],
  start: readonly number[],
  size: readonly number[],
  visit: (at: number) => void,
): void {
  const walk = (d: number, at: number): void => {
    if (d === shape.length) visit(at);
    else
      for (let i = 0; i < (size[d] as number); i++) walk(d + 1, at * (shape[d] as number) + (start[d] as number) + i);
  };
  walk(0, 0);
}

export function put(model: Expected, start: readonly number[], size: readonly number[], data: readonly Value[]): void {
  let k = 0;
  eachOf(model.shape, start, size, (at) => {
    model.values[at] = data[k++] as Value;
  });
}

export function resized(model: Expected, shape: readonly number[]): void {
  const values = new Array<Value>(shape.reduce((a, b) => a * b, 1)).fill(model.fill);
  const common = shape.map((n, d) => Math.min(n, model.shape[d] as number));
  const origin = shape.map(() => 0);
  const old: Value[] = [];
  eachOf(model.shape, origin, common, (at) => old.push(model.values[at] as Value));
  let k = 0;
  eachOf(shape, origin, common, (at) => {
    values[at] = old[k++] as Value;
  });
  model.shape = [...shape];
  model.values = values;
}

/** Adds a file to a list, with what h5py should see in it. */
export function addToList(to: string, file: string, model: ReadonlyMap<string, Expected>): void {
  const objects = Object.fromEntries(
    [...model].map(([path, { shape, values, attributes }]) => [
      path,
      { shape, values, attributes: Object.fromEntries(attributes) },
    ]),
  );
  appendFileSync(to, `${JSON.stringify({ file, objects })}\n`);
}

const COMPARE = join(import.meta.dirname, 'ordinary', 'compare.py');

/** Lets h5py look at every file of a list. */
export async function expectSeen(from: string): Promise<void> {
  const wrong = await run('python', [COMPARE, from]).catch((error: Error) => error.message);
  expect(wrong).toBe('');
}
