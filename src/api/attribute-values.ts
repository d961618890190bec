// What attributes can be set to, and the types and shapes that these values get.

import { addContext, H5LogError } from '../base/errors.ts';
import { areBrief } from '../connector/deferred.ts';
import { T } from '../dtype/construct.ts';
import { arrayKind } from '../dtype/convert.ts';
import { describeValue } from '../dtype/describe.ts';
import { elementsIn } from '../dtype/encode.ts';
import type { DType, TypedArray } from '../dtype/model.ts';
import { type Dataspace, NULL_SPACE, SCALAR_SPACE, simpleSpace } from '../hdf5/messages/dataspace.ts';
import { attributeHead } from '../hdf5/messages/encode.ts';
import { encodeValue } from '../hdf5/write/attributes.ts';
import type { Names } from '../log/format/names.ts';
import type { DraftedAttribute } from '../log/format/new-anchor.ts';
import { checkShape, sizeOf } from '../space/shape.ts';

export type AttributeValue =
  | null
  | number
  | bigint
  | boolean
  | string
  | TypedArray
  | readonly number[]
  | readonly bigint[]
  | readonly string[]
  | object;

/**
 * Attributes of a new dataset of a log, encoded; null if one of them needs the dataset to be there: any but short plain texts, numbers
 * and short typed arrays.
 */
export function draftAttributes(
  attributes: Readonly<Record<string, AttributeValue>>,
  names: Names,
  path: string,
  file: string,
): DraftedAttribute[] | null {
  if (!areBrief(attributes)) return null;
  return Object.entries(attributes).map(([name, value]) => {
    try {
      const dtype = typeOf(name, value);
      const space = spaceOf(name, value, dtype, undefined);
      return { head: attributeHead(names.stored(name), dtype, space), ...encodeValue(dtype, space, value) };
    } catch (error) {
      throw addContext(error, `attribute ${name} of ${path}: `, { file, object: path }, 'object');
    }
  });
}

/** One object for all: encoded types are found by it. */
const TEXT = T.string();

export function typeOf(name: string, value: unknown): DType {
  if (value === null) return 'float64';
  switch (typeof value) {
    case 'number':
      return 'float64';
    case 'bigint':
      return wholeType(name, [value]);
    case 'boolean':
      return T.bool;
    case 'string':
      return TEXT;
  }
  const kind = ArrayBuffer.isView(value) ? arrayKind(value) : undefined;
  if (kind) return kind;
  if (Array.isArray(value)) {
    if (value.length === 0) return 'float64';
    const types = new Set(value.map((item) => typeof item));
    if (types.size === 1) {
      const [only] = types;
      if (only === 'number') return 'float64';
      if (only === 'string') return TEXT;
      if (only === 'boolean') return T.bool;
      if (only === 'bigint') return wholeType(name, value);
    }
  }
  throw new H5LogError(
    'DTYPE',
    `attribute ${name}: expected a number, bigint, boolean, string, typed array or list of one kind, ` +
      `or a { dtype } for it; got ${describeValue(value)}`,
  );
}

function wholeType(name: string, values: readonly bigint[]): DType {
  if (values.every((value) => BigInt.asIntN(64, value) === value)) return 'int64';
  if (values.every((value) => BigInt.asUintN(64, value) === value)) return 'uint64';
  throw new H5LogError('DTYPE', `attribute ${name}: neither int64 nor uint64 holds its values`);
}

export function spaceOf(name: string, value: unknown, dtype: DType, shape: readonly number[] | undefined): Dataspace {
  if (value === null) return NULL_SPACE;
  const length = elementsIn(dtype, value);
  if (shape === undefined) return length === undefined ? SCALAR_SPACE : simpleSpace([length]);
  const sizes = checkShape(shape);
  if (sizeOf(sizes) !== (length ?? 1)) {
    throw new H5LogError(
      'SHAPE',
      `attribute ${name}: ${length ?? 1} values do not fit the shape [${sizes.join(', ')}]`,
    );
  }
  return sizes.length === 0 ? SCALAR_SPACE : simpleSpace(sizes);
}
