// T, with which callers describe element types that have no name of their own.

import { H5LogError } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { checkType } from './check.ts';
import { describeType, describeValue } from './describe.ts';
import {
  type ArrayOf,
  type ArrayType,
  arrayLength,
  type BitfieldType,
  type ByteOrder,
  type Charset,
  type CompoundField,
  type CompoundType,
  type Described,
  type DType,
  type EnumType,
  fullType,
  HEAP_ID_SIZE,
  type InputOf,
  type IntegerType,
  type NumberType,
  numberType,
  type OpaqueType,
  REFERENCE_SIZE,
  REGION_SIZE,
  type ReferenceType,
  type StringPad,
  type StringType,
  storedNumber,
  type TypedArray,
  type ValueOf,
  type VlenType,
} from './model.ts';
import { isText } from './text.ts';

/** The size of a type is a 32-bit field in the file. */
const MAX_SIZE = 2 ** 32 - 1;
/** H5S_MAX_RANK and H5T_OPAQUE_TAG_MAX of libhdf5, whose length byte holds multiples of 8. */
const MAX_RANK = 32;
const MAX_TAG = 248;

const wrong = (message: string): H5LogError => new H5LogError('DTYPE', message);

function checkSize(what: string, size: number): number {
  if (Number.isInteger(size) && size > 0 && size <= MAX_SIZE) return size;
  throw wrong(`${what} must be a whole number from 1 to ${MAX_SIZE}, got ${describeValue(size)}`);
}

function makeNumber(of: NumberType, order: ByteOrder): Described {
  if (typeof of !== 'string' || fullType(of) === undefined) {
    throw wrong(`expected the name of a number type, got ${describeValue(of)}`);
  }
  return Object.freeze(numberType(of, order));
}

/** Plainer names of pads. */
const PADS = { terminated: 'zero', padded: 'null', zero: 'zero', null: 'null', space: 'space' } as const;

function makeString(options: { length?: number; pad?: keyof typeof PADS; charset?: Charset } = {}): StringType {
  checkNames('T.string', options, { length: true, pad: true, charset: true });
  const { length, charset = 'utf8' } = options;
  const variable = length === undefined;
  // Fixed strings are filled with NULs, as h5py writes them: all `length` bytes may be used.
  const named = options.pad ?? (variable ? 'zero' : 'null');
  if (!Object.hasOwn(PADS, named)) throw wrong(`unknown string padding ${describeValue(named)}`);
  const pad: StringPad = PADS[named];
  if (!['utf8', 'ascii'].includes(charset)) throw wrong(`unknown character set ${describeValue(charset)}`);
  const size = variable ? HEAP_ID_SIZE : checkSize('the length of a string', length);
  return Object.freeze({ class: 'string', size, variable, pad, charset } satisfies StringType);
}

function makeEnum(base: DType, members: Readonly<Record<string, number | bigint>>): Described {
  checkType(base);
  const integer = storedNumber(base);
  if (integer?.class !== 'integer' || fullType(base).class === 'enum') {
    throw wrong(`an enum needs an integer type, got ${describeType(base)}`);
  }
  const entries = Object.entries(members).map(([name, value]) => {
    if (name === '' || !isText(name)) throw wrong('an enum member needs a name that is a text');
    return Object.freeze([name, memberValue(name, value, base, integer)] as const);
  });
  if (entries.length === 0) throw wrong('an enum needs at least one member');
  const names = new Map<number | bigint, string>();
  for (const [name, value] of entries) {
    const other = names.get(value);
    if (other !== undefined) throw wrong(`the enum members '${other}' and '${name}' both have the value ${value}`);
    names.set(value, name);
  }
  return Object.freeze({
    class: 'enum',
    size: integer.size,
    base,
    members: Object.freeze({ ...members }),
    entries: Object.freeze(entries),
  } satisfies EnumType);
}

function memberValue(name: string, value: unknown, base: DType, integer: IntegerType): number | bigint {
  const whole = typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value));
  if (!whole) throw wrong(`the enum member '${name}' needs a whole number, got ${describeValue(value)}`);
  const exact = BigInt(value as number | bigint);
  const fits = (integer.signed ? BigInt.asIntN : BigInt.asUintN)(integer.precision, exact) === exact;
  if (!fits) throw wrong(`the enum member '${name}' is ${exact}, which does not fit ${describeType(base)}`);
  return integer.precision > 53 ? exact : Number(exact);
}

function makeCompound(
  fields: Readonly<Record<string, DType>>,
  layout?: { offsets: Readonly<Record<string, number>>; size: number },
): Described {
  if (layout !== undefined) checkNames('the layout of T.compound', layout, { offsets: true, size: true });
  const list: CompoundField[] = [];
  let end = 0;
  for (const [name, dtype] of Object.entries(fields)) {
    if (name === '' || !isText(name)) throw wrong('a compound field needs a name that is a text');
    const { size } = fullType(checkType(dtype));
    const offset = layout ? layout.offsets[name] : end;
    if (offset === undefined) throw wrong(`the layout has no offset for the field '${name}'`);
    if (!Number.isInteger(offset) || offset < 0) {
      throw wrong(`the field '${name}' needs an offset from 0 on, got ${describeValue(offset)}`);
    }
    end = Math.max(end, offset + size);
    list.push(Object.freeze({ name, offset, dtype }));
  }
  if (list.length === 0) throw wrong('a compound needs at least one field');
  for (const name of Object.keys(layout?.offsets ?? {})) {
    if (!Object.hasOwn(fields, name)) throw wrong(`the layout has an offset for '${name}', which is not a field`);
  }
  const size = checkSize('the size of a compound', layout ? layout.size : end);
  checkOffsets(list, size);
  return Object.freeze({ class: 'compound', size, fields: Object.freeze(list) } satisfies CompoundType);
}

function checkOffsets(fields: readonly CompoundField[], size: number): void {
  let before: { name: string; end: number } | undefined;
  for (const { name, offset, dtype } of fields.toSorted((a, b) => a.offset - b.offset)) {
    const end = offset + fullType(dtype).size;
    if (before && offset < before.end) {
      throw wrong(`the field '${name}' at ${offset} overlaps '${before.name}', which ends at ${before.end}`);
    }
    if (end > size) throw wrong(`the field '${name}' ends at ${end}, outside the compound of ${size} bytes`);
    before = { name, end };
  }
}

function makeArray(base: DType, shape: readonly number[]): Described {
  const { size } = fullType(checkType(base));
  if (!Array.isArray(shape) || shape.length === 0 || shape.length > MAX_RANK) {
    throw wrong(`an array type needs a shape of 1 to ${MAX_RANK} dimensions, got ${describeValue(shape)}`);
  }
  for (const extent of shape) checkSize('each dimension of an array type', extent);
  const bytes = checkSize('the size of an array type in bytes', size * arrayLength({ shape }));
  return Object.freeze({ class: 'array', size: bytes, base, shape: Object.freeze([...shape]) } satisfies ArrayType);
}

function makeVlen(base: DType): Described {
  return Object.freeze({ class: 'vlen', size: HEAP_ID_SIZE, base: checkType(base) } satisfies VlenType);
}

function makeOpaque(size: number, tag = ''): OpaqueType {
  checkSize('the size of an opaque type', size);
  const bytes = new TextEncoder().encode(tag).length;
  if (bytes > MAX_TAG) throw wrong(`an opaque tag may have ${MAX_TAG} bytes, this one has ${bytes}`);
  if (!isText(tag)) throw wrong('an opaque tag is a text without NUL characters');
  return Object.freeze({ class: 'opaque', size, tag } satisfies OpaqueType);
}

function makeBitfield(bytes: 1 | 2 | 4 | 8): Described<number | bigint, TypedArray> {
  if (![1, 2, 4, 8].includes(bytes)) throw wrong(`a bitfield has 1, 2, 4 or 8 bytes, got ${describeValue(bytes)}`);
  const precision = bytes * 8;
  const type: BitfieldType = { class: 'bitfield', size: bytes, order: 'little', bitOffset: 0, precision };
  return Object.freeze(type as Described) as Described<number | bigint, TypedArray>;
}

function reference<V>(to: 'object' | 'region', size: number): Described<V, V[]> {
  const type: ReferenceType = { class: 'reference', size, to };
  return Object.freeze(type as Described) as Described<V, V[]>;
}

/** Elements of a dataset. The entry point says that `where` is a selection. */
interface Region {
  path: string;
  where: object;
}

type CompoundValue<F> = { [K in keyof F]: ValueOf<F[K]> };
type CompoundInput<F> = { [K in keyof F]: InputOf<F[K]> };

/**
 * Element types beyond the named numbers.
 * @example T.compound({ name: T.string(), position: T.array('float64', [3]), valid: T.bool })
 */
export const T: {
  littleEndian<D extends NumberType>(of: D): Described<ValueOf<D>, ArrayOf<D>>;
  bigEndian<D extends NumberType>(of: D): Described<ValueOf<D>, ArrayOf<D>>;
  /**
   * Without length: variable length. Fixed strings are NUL-padded UTF-8 unless told otherwise. 'terminated' is HDF5's NULLTERM, 'padded'
   * its NULLPAD; 'zero' and 'null' are their older names here.
   */
  string(options?: {
    length?: number;
    pad?: 'zero' | 'null' | 'space' | 'terminated' | 'padded';
    charset?: Charset;
  }): Described<string, string[]>;
  /** h5py's FALSE/TRUE enum. */
  readonly bool: Described<boolean, Uint8Array<ArrayBuffer>>;
  /** Values may be written by name; reads give integers. */
  enum<D extends NumberType, const M extends Readonly<Record<string, number | bigint>>>(
    base: D,
    members: M,
  ): Described<ValueOf<D>, ArrayOf<D>, ValueOf<D> | (keyof M & string)> & { readonly members: M };
  /** Without layout the fields follow one another without gaps. */
  compound<const F extends Readonly<Record<string, DType>>>(
    fields: F,
    layout?: { offsets: Readonly<Record<keyof F, number>>; size: number },
  ): Described<CompoundValue<F>, CompoundValue<F>[], CompoundInput<F>>;
  array<D extends DType>(base: D, shape: readonly number[]): Described<ArrayOf<D>, ArrayOf<D>[]>;
  vlen<D extends DType>(base: D): Described<ArrayOf<D>, ArrayOf<D>[]>;
  opaque(size: number, tag?: string): Described<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>[]>;
  bitfield(bytes: 1 | 2 | 4 | 8): Described<number | bigint, TypedArray>;
  /** Object reference; in JavaScript the path it points to. */
  readonly reference: Described<string, string[]>;
  /** Region reference: the path of a dataset and elements of it; null if it was never set. */
  readonly region: Described<Region | null, (Region | null)[]>;
} = Object.freeze({
  littleEndian: <D extends NumberType>(of: D) => makeNumber(of, 'little') as Described<ValueOf<D>, ArrayOf<D>>,
  bigEndian: <D extends NumberType>(of: D) => makeNumber(of, 'big') as Described<ValueOf<D>, ArrayOf<D>>,
  string: makeString,
  bool: makeEnum('int8', { FALSE: 0, TRUE: 1 }) as Described<boolean, Uint8Array<ArrayBuffer>>,
  enum: makeEnum as (typeof T)['enum'],
  compound: makeCompound as (typeof T)['compound'],
  array: makeArray as (typeof T)['array'],
  vlen: makeVlen as (typeof T)['vlen'],
  opaque: makeOpaque,
  bitfield: makeBitfield,
  reference: reference<string>('object', REFERENCE_SIZE),
  region: reference<Region | null>('region', REGION_SIZE),
});
