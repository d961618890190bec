// Types and values in words, for error messages and listings; whether types are equal, and what they contain.

import {
  type BitfieldType,
  type CompoundField,
  type DType,
  type FloatType,
  type FullType,
  fullType,
  type IntegerType,
  isBool,
  numberName,
} from './model.ts';

/** Members or fields listed before the rest is left out. */
const LISTED = 12;

/** A type in a few words: 'float64', 'big-endian int16', 'string(10)', 'compound {x: float64, y: int32}'. */
export function describeType(dtype: DType): string {
  const type = fullType(dtype);
  if (type === undefined || typeof type !== 'object') return `unknown type ${describeValue(dtype)}`;
  switch (type.class) {
    case 'integer':
    case 'float':
      return describeNumber(type);
    case 'string': {
      const ascii = type.charset === 'ascii' ? 'ascii ' : '';
      if (type.variable) return `${ascii}string`;
      return `${ascii}string(${type.size}${type.pad === 'null' ? '' : `, ${type.pad}`})`;
    }
    case 'bitfield':
      return `${type.order === 'big' && type.size > 1 ? 'big-endian ' : ''}bitfield(${type.precision})`;
    case 'opaque':
      return type.tag === '' ? `opaque(${type.size})` : `opaque(${type.size}, '${type.tag}')`;
    case 'compound':
      return `compound {${listed(type.fields.map((f) => `${f.name}: ${describeType(f.dtype)}`))}}`;
    case 'reference':
      return type.to === 'other' ? 'reference' : `${type.to} reference`;
    case 'enum':
      if (isBool(type)) return 'bool';
      return `enum ${describeType(type.base)} {${listed(type.entries.map(([name, value]) => `${name}: ${value}`))}}`;
    case 'vlen':
      return `vlen of ${describeType(type.base)}`;
    case 'array':
      return `array [${type.shape.join(', ')}] of ${describeType(type.base)}`;
  }
}

function listed(parts: string[]): string {
  return parts.length <= LISTED ? parts.join(', ') : `${parts.slice(0, LISTED).join(', ')}, ...`;
}

function describeNumber(type: IntegerType | FloatType): string {
  const order = type.order === 'big' && type.size > 1 ? 'big-endian ' : '';
  const name = numberName(type);
  if (name) return order + name;
  const kind = type.class === 'float' ? 'float' : type.signed ? 'int' : 'uint';
  return `${order}${type.precision}-bit ${kind} in ${type.size} bytes`;
}

/** A value that a caller passed, for messages: 'expected ..., got ...'. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return `string '${value.length > 40 ? `${value.slice(0, 40)}...` : value}'`;
  if (typeof value === 'bigint') return `bigint ${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean') return `${typeof value} ${value}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (ArrayBuffer.isView(value) && 'length' in value) {
    return `${(value as Uint8Array)[Symbol.toStringTag]} of ${value.length}`;
  }
  if (typeof value === 'object') return `object {${listed(Object.keys(value))}}`;
  return typeof value;
}

/**
 * Whether two types are the same in the file. As in H5Tequal the order in which fields or members are listed does not
 * matter; neither does what has no meaning: the byte order of a single byte, the padding of a variable-length string.
 */
export function sameType(a: DType, b: DType): boolean {
  if (a === b) return true;
  const x = fullType(a);
  const y = fullType(b);
  return x !== undefined && y !== undefined && x.class === y.class && x.size === y.size && sameFull(x, y);
}

function sameFull(x: FullType, y: FullType): boolean {
  switch (x.class) {
    case 'integer': {
      const z = y as IntegerType;
      return x.signed === z.signed && sameBits(x, z);
    }
    case 'bitfield':
      return sameBits(x, y as BitfieldType);
    case 'float': {
      const z = y as FloatType;
      const keys = [
        'signBit',
        'exponentAt',
        'exponentBits',
        'mantissaAt',
        'mantissaBits',
        'exponentBias',
        'normalization',
      ];
      return sameBits(x, z) && (keys as (keyof FloatType)[]).every((key) => x[key] === z[key]);
    }
    case 'string': {
      const z = y as typeof x;
      return x.variable === z.variable && x.charset === z.charset && (x.variable || x.pad === z.pad);
    }
    case 'opaque':
      return x.tag === (y as typeof x).tag;
    case 'reference':
      return x.to === (y as typeof x).to;
    case 'compound':
      return sameFields(x.fields, (y as typeof x).fields);
    case 'enum': {
      const z = y as typeof x;
      if (!sameType(x.base, z.base) || x.entries.length !== z.entries.length) return false;
      const values = new Map(z.entries);
      return x.entries.every(([name, value]) => values.get(name) === value);
    }
    case 'vlen':
      return sameType(x.base, (y as typeof x).base);
    case 'array': {
      const z = y as typeof x;
      if (x.shape.length !== z.shape.length || !sameType(x.base, z.base)) return false;
      return x.shape.every((extent, i) => extent === z.shape[i]);
    }
  }
}

type Bits = IntegerType | FloatType | BitfieldType;

function sameBits(x: Bits, y: Bits): boolean {
  return (x.order === y.order || x.size === 1) && x.bitOffset === y.bitOffset && x.precision === y.precision;
}

function sameFields(x: readonly CompoundField[], y: readonly CompoundField[]): boolean {
  if (x.length !== y.length) return false;
  const others = new Map(y.map((field) => [field.name, field]));
  return x.every((field) => {
    const other = others.get(field.name);
    return other !== undefined && field.offset === other.offset && sameType(field.dtype, other.dtype);
  });
}

// Cached: these are called for every element, and types may be deeply nested.
const withVlen = new WeakMap<FullType, boolean>();
const withReference = new WeakMap<FullType, boolean>();

/** Whether elements keep part of their value in a heap: variable-length strings and sequences. */
export function containsVlen(dtype: DType): boolean {
  return contains(dtype, withVlen, (type) => type.class === 'vlen' || (type.class === 'string' && type.variable));
}

/** Whether elements hold references of any kind, also inside variable-length sequences. */
export function containsReference(dtype: DType): boolean {
  return contains(dtype, withReference, (type) => type.class === 'reference');
}

function contains(dtype: DType, known: WeakMap<FullType, boolean>, test: (type: FullType) => boolean): boolean {
  const type = fullType(dtype);
  const answer = known.get(type);
  if (answer !== undefined) return answer;
  let found = test(type);
  if (type.class === 'compound') found = type.fields.some((field) => contains(field.dtype, known, test));
  else if (!found && (type.class === 'array' || type.class === 'vlen')) found = contains(type.base, known, test);
  known.set(type, found);
  return found;
}
