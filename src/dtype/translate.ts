// Elements of one file type as elements of another, with HDF5's conversion rules.

import { H5LogError } from '../base/errors.ts';
import { readUnusual } from './bits.ts';
import { numberArray, packNumbers, unpackNumbers } from './convert.ts';
import { describeType, sameType } from './describe.ts';
import { copyStrided } from './kernels.ts';
import {
  arrayLength,
  type DType,
  type EnumType,
  type FullType,
  fullType,
  isBool,
  numberName,
  type StringType,
  storedNumber,
} from './model.ts';

/** Converts `count` elements. */
type Translation = (bytes: Uint8Array, count: number) => Uint8Array;

/** How elements of one type become elements of another; null if they are alike. UNSUPPORTED where HDF5 has no conversion. */
export function translation(from: DType, to: DType): Translation | null {
  if (sameType(from, to)) return null;
  const [source, target] = [fullType(from), fullType(to)];
  const refused = new H5LogError('UNSUPPORTED', `${describeType(from)} cannot be converted to ${describeType(to)}`);
  switch (target.class) {
    case 'integer':
    case 'float':
      if (source.class !== 'integer' && source.class !== 'float' && source.class !== 'enum') throw refused;
      return (bytes, count) => numbers(from, to, bytes, count);
    case 'bitfield':
      if (source.class !== 'bitfield') throw refused;
      return (bytes, count) => numbers(from, to, bytes, count);
    case 'enum':
      if (source.class !== 'enum') throw refused;
      return (bytes, count) => members(source, target, bytes, count);
    case 'string':
      if (source.class !== 'string' || source.variable !== target.variable) throw refused;
      if (target.variable) return null;
      return (bytes, count) => texts(source, target, bytes, count);
    case 'array': {
      if (source.class !== 'array' || arrayLength(source) !== arrayLength(target)) throw refused;
      const each = translation(source.base, target.base);
      return each && ((bytes, count) => each(bytes, count * arrayLength(target)));
    }
    case 'compound':
      if (source.class !== 'compound') throw refused;
      return records(source, target);
    case 'reference':
      if (source.class === 'reference' && source.to === target.to && source.size === target.size) return null;
      throw refused;
    default:
      throw refused;
  }
}

function valuesOf(dtype: DType, bytes: Uint8Array, count: number): ArrayLike<number | bigint> {
  const stored = storedNumber(dtype);
  if (stored && numberName(stored) === undefined) return readUnusual(stored, bytes, 0, count);
  const plain = isBool(dtype) ? 'int8' : dtype;
  const values = numberArray(plain, count);
  unpackNumbers(bytes, 0, count, plain, values, 0);
  return values;
}

function numbers(from: DType, to: DType, bytes: Uint8Array, count: number): Uint8Array {
  const out = new Uint8Array(count * fullType(to).size);
  packNumbers(valuesOf(from, bytes, count), 0, count, to, out, 0);
  return out;
}

/** Members go by their names. What has no name in the target becomes all ones, as in libhdf5. */
function members(from: EnumType, to: EnumType, bytes: Uint8Array, count: number): Uint8Array {
  const named = new Map(to.entries);
  const known = new Map(from.entries.map(([name, value]) => [BigInt(value), named.get(name)]));
  const out = new Uint8Array(count * to.size).fill(0xff);
  const values = valuesOf(from, bytes, count);
  for (let i = 0; i < count; i++) {
    const value = known.get(BigInt(values[i] as number | bigint));
    if (value !== undefined) packNumbers([value], 0, 1, to, out, i * to.size);
  }
  return out;
}

/** Text is cut where it is too long, and padded as the target is. */
function texts(from: StringType, to: StringType, bytes: Uint8Array, count: number): Uint8Array {
  const out = new Uint8Array(count * to.size).fill(to.pad === 'space' ? 0x20 : 0);
  const room = to.pad === 'zero' ? to.size - 1 : to.size;
  for (let i = 0; i < count; i++) {
    const text = bytes.subarray(i * from.size, (i + 1) * from.size);
    let end = text.length;
    if (from.pad === 'zero' && text.includes(0)) end = text.indexOf(0);
    if (from.pad === 'space') while (end > 0 && text[end - 1] === 0x20) end--;
    if (from.pad === 'null') while (end > 0 && text[end - 1] === 0) end--;
    out.set(text.subarray(0, Math.min(end, room)), i * to.size);
  }
  return out;
}

/** Fields go by their names; those that the source does not have are zeros. */
function records(from: FullType & { class: 'compound' }, to: FullType & { class: 'compound' }): Translation {
  const fields = to.fields.flatMap((field) => {
    const source = from.fields.find(({ name }) => name === field.name);
    return source ? [{ source, field, each: translation(source.dtype, field.dtype) }] : [];
  });
  return (bytes, count) => {
    const out = new Uint8Array(count * to.size);
    for (const { source, field, each } of fields) {
      const [width, size] = [fullType(source.dtype).size, fullType(field.dtype).size];
      const column = new Uint8Array(count * width);
      copyStrided(bytes, source.offset, from.size, column, 0, width, width, count);
      copyStrided(each ? each(column, count) : column, 0, size, out, field.offset, to.size, size, count);
    }
    return out;
  };
}
