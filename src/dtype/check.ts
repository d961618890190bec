// Type descriptions come from callers (plain JavaScript may pass anything) and from files (which may be damaged).

import { formatError, H5LogError } from '../base/errors.ts';
import { describeType, describeValue } from './describe.ts';
import {
  arrayLength,
  type Described,
  type DType,
  type FloatType,
  type FullType,
  fullType,
  HEAP_ID_SIZE,
  type NumberType,
  REFERENCE_SIZE,
  REGION_SIZE,
} from './model.ts';

const CLASSES: readonly unknown[] = [
  'integer',
  'float',
  'string',
  'bitfield',
  'opaque',
  'compound',
  'reference',
  'enum',
  'vlen',
  'array',
] satisfies Described['class'][];

/** Checks that a value that a caller passed is an element type; throws DTYPE if not. */
export function checkType(dtype: unknown): DType {
  if (typeof dtype === 'string' && fullType(dtype as NumberType) !== undefined) return dtype as NumberType;
  if (typeof dtype === 'object' && dtype !== null && 'class' in dtype && CLASSES.includes(dtype.class)) {
    return dtype as Described;
  }
  throw new H5LogError(
    'DTYPE',
    `expected an element type such as 'float64', T.bool or T.string({ length: 8 }), got ${describeValue(dtype)}`,
  );
}

/** No format has longer numbers, and to convert them bit by bit would take too long. */
const MAX_NUMBER_SIZE = 64;
/** A reference of HDF5 1.12 where addresses have two bytes. */
const STANDARD_SIZE = 12;

const sound = new WeakSet<FullType>();

/** Checks that the parts of a type lie inside it, and resolves it; throws FORMAT otherwise. */
export function checkSound(dtype: DType): FullType {
  const type = fullType(dtype);
  if (sound.has(type)) return type;
  const problem = problemOf(type);
  if (problem) throw formatError(`bad datatype ${describeType(type)}: ${problem}`);
  sound.add(type);
  return type;
}

function problemOf(type: FullType): string | undefined {
  if (!Number.isSafeInteger(type.size) || type.size < 1) return `size ${type.size}`;
  switch (type.class) {
    case 'integer':
    case 'bitfield':
    case 'float':
      if (type.size > MAX_NUMBER_SIZE) return `a number of ${type.size} bytes`;
      if (!inside(type.bitOffset, type.precision, type.size * 8))
        return `${type.precision} bits at bit ${type.bitOffset}`;
      return type.class === 'float' ? floatProblem(type) : undefined;
    case 'string':
      return type.variable && !isHeapIdSize(type.size) ? `a heap id of ${type.size} bytes` : undefined;
    case 'vlen':
      checkSound(type.base);
      return !isHeapIdSize(type.size) ? `a heap id of ${type.size} bytes` : undefined;
    case 'reference': {
      const needed = type.to === 'object' ? REFERENCE_SIZE : type.to === 'region' ? REGION_SIZE : STANDARD_SIZE;
      return type.size < needed ? `a reference of ${type.size} bytes` : undefined;
    }
    case 'enum':
      return checkSound(type.base).size === type.size ? undefined : `its base has ${fullType(type.base).size} bytes`;
    case 'array': {
      const bytes = checkSound(type.base).size * arrayLength(type);
      return bytes === type.size ? undefined : `its elements take ${bytes} of ${type.size} bytes`;
    }
    case 'compound':
      for (const { name, offset, dtype } of type.fields) {
        if (!inside(offset, checkSound(dtype).size, type.size)) return `the field '${name}' lies outside`;
      }
      return undefined;
    case 'opaque':
      return undefined;
  }
}

const inside = (from: number, length: number, size: number): boolean =>
  from >= 0 && length >= 1 && from + length <= size;

function floatProblem(type: FloatType): string | undefined {
  const bits = type.size * 8;
  if (!inside(type.signBit, 1, bits)) return `the sign is bit ${type.signBit}`;
  if (!inside(type.exponentAt, type.exponentBits, bits)) return `exponent of ${type.exponentBits} bits`;
  if (!inside(type.mantissaAt, type.mantissaBits, bits)) return `mantissa of ${type.mantissaBits} bits`;
  return undefined;
}

/** A length, an address and an index: in files with short addresses fewer bytes than in others. */
function isHeapIdSize(size: number): boolean {
  return size === HEAP_ID_SIZE || size === HEAP_ID_SIZE - 4 || size === HEAP_ID_SIZE - 6;
}
