import type { Attribute, Shape, DType as ShownType } from '@h5web/app';
import type { DType } from 'h5log';
import { type CompoundField, type FullType, fullType } from '../../../../src/dtype/model.ts';

/** What h5web knows of a type: the members of its unions, by the names that its enums have at run time. */
export function shownType(dtype: DType): ShownType {
  return describe(fullType(dtype)) as ShownType;
}

function describe(type: FullType): object {
  switch (type.class) {
    case 'integer':
      return {
        class: 'Integer',
        signed: type.signed,
        size: numberBits(type.precision),
        endianness: ORDERS[type.order],
      };
    case 'float':
      return { class: 'Float', size: type.precision, endianness: ORDERS[type.order] };
    case 'string':
      return {
        class: 'String',
        charSet: type.charset === 'utf8' ? 'UTF-8' : 'ASCII',
        strPad: PADS[type.pad],
        ...(!type.variable && { length: type.size }),
      };
    case 'compound':
      return isComplex(type.fields)
        ? { class: 'Complex', realType: part(type.fields[0]), imagType: part(type.fields[1]) }
        : { class: 'Compound', fields: new Map(type.fields.map(({ name, dtype }) => [name, shownType(dtype)])) };
    case 'enum': {
      const base = shownType(type.base);
      if (isBoolean(type)) return { class: 'Boolean', base };
      const mapping = Object.fromEntries(type.entries.map(([name, value]) => [Number(value), name]));
      return { class: 'Enumeration', base, mapping };
    }
    case 'array':
      return { class: 'Array', base: shownType(type.base), dims: [...type.shape] };
    case 'vlen':
      return { class: 'Array (variable length)', base: shownType(type.base) };
    case 'bitfield':
      return { class: 'Bitfield', endianness: ORDERS[type.order] };
    case 'opaque':
      return { class: 'Opaque', tag: type.tag };
    case 'reference':
      return { class: 'Reference' };
  }
}

const ORDERS = { little: 'little-endian', big: 'big-endian' } as const;
const PADS = { zero: 'null-terminated', null: 'null-padded', space: 'space-padded' } as const;

/** Integers of more than 32 bits are read as bigints, which h5web expects of 64 bits alone. */
const numberBits = (precision: number): number => (precision > 32 ? 64 : precision);

const part = (field: CompoundField | undefined): object => describe(fullType(field?.dtype ?? 'float64'));

/** As h5py stores complex numbers: two floats, `r` and `i`. Those of HDF5 2.0 are read as the same. */
export function isComplex(fields: readonly CompoundField[]): boolean {
  const [real, imaginary] = fields;
  return (
    fields.length === 2 &&
    /^(r|re|real)$/i.test(real?.name ?? '') &&
    /^(i|im|imag|imaginary)$/i.test(imaginary?.name ?? '') &&
    fields.every(({ dtype }) => fullType(dtype).class === 'float')
  );
}

/** As h5py stores booleans: FALSE 0, TRUE 1. */
export function isBoolean({ entries }: Extract<FullType, { class: 'enum' }>): boolean {
  const names = new Map(entries);
  return entries.length === 2 && Number(names.get('FALSE')) === 0 && Number(names.get('TRUE')) === 1;
}

/** null: a NULL dataspace; no dimensions: a scalar. */
export function shownShape(shape: readonly number[] | null): Shape {
  const [name, dims] = shape === null ? ['Null', undefined] : [shape.length === 0 ? 'Scalar' : 'Array', [...shape]];
  return { class: name, ...(dims && { dims }) } as Shape;
}

export function shownAttribute(name: string, dtype: DType, shape: readonly number[] | null): Attribute {
  return { name, shape: shownShape(shape), type: shownType(dtype) };
}
