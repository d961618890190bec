// The dataspace message: the shape of a dataset or attribute (HDF5 file format specification, IV.A.2.b).

import { sizeOf } from '../../space/shape.ts';
import type { Cursor } from '../format/cursor.ts';

/** The shape of a dataset or attribute: nothing, one element, or dimensions; null in maxShape is unlimited. */
export type Dataspace =
  | { readonly kind: 'null' | 'scalar' }
  | { readonly kind: 'simple'; readonly shape: readonly number[]; readonly maxShape: readonly (number | null)[] };

export const NULL_SPACE: Dataspace = { kind: 'null' };
export const SCALAR_SPACE: Dataspace = { kind: 'scalar' };

/** A dataspace with dimensions; without maxShape they are fixed. */
export function simpleSpace(shape: readonly number[], maxShape: readonly (number | null)[] = shape): Dataspace {
  return { kind: 'simple', shape, maxShape };
}

/** How many elements a dataspace holds. */
export function elementCount(space: Dataspace): number {
  if (space.kind !== 'simple') return space.kind === 'null' ? 0 : 1;
  return sizeOf(space.shape);
}

export function parseDataspace(cursor: Cursor, lengthSize: number): Dataspace {
  const version = cursor.u8();
  if (version !== 1 && version !== 2) cursor.fail(`dataspace version ${version} is not known`);
  const rank = cursor.u8();
  if (rank > 32) cursor.fail(`dataspace of ${rank} dimensions`);
  const flags = cursor.u8();
  let kind: 'null' | 'scalar' | 'simple' = rank === 0 ? 'scalar' : 'simple';
  if (version === 1) cursor.skip(5);
  else {
    const type = cursor.u8();
    if (type > 2) cursor.fail(`dataspace type ${type} is not known`);
    kind = (['scalar', 'simple', 'null'] as const)[type as 0 | 1 | 2];
    if (kind !== 'simple' && rank > 0) cursor.fail(`a ${kind} dataspace of ${rank} dimensions`);
  }
  if (kind !== 'simple') return { kind };
  const shape: number[] = [];
  for (let d = 0; d < rank; d++) shape.push(cursor.uint(lengthSize));
  const maxShape: (number | null)[] = [];
  for (let d = 0; d < rank; d++) {
    if ((flags & 1) === 0) maxShape.push(shape[d] as number);
    else {
      const size = cursor.limit(lengthSize);
      maxShape.push(size < 0 ? null : size);
      if (size >= 0 && size < (shape[d] as number))
        cursor.fail(`dimension ${d} is ${shape[d]}, more than its maximum ${size}`);
    }
  }
  const space: Dataspace = { kind, shape, maxShape };
  if (!Number.isSafeInteger(elementCount(space))) cursor.fail('dataspace with more than 2^53 - 1 elements');
  return space;
}
