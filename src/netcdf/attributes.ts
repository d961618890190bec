import type { AttributeValue } from '../api/attribute-values.ts';
import type { Attributes } from '../api/attributes.ts';
import { H5LogError } from '../base/errors.ts';
import { T } from '../dtype/construct.ts';
import { describeType } from '../dtype/describe.ts';
import type { DType } from '../dtype/model.ts';
import { CLASSIC, ncType, RESERVED } from './conventions.ts';

type SetOptions = { dtype?: DType; shape?: readonly number[] };

/** What holds for the attributes of one object. */
interface Rules {
  readonly path: string;
  readonly classic: () => boolean;
  /** Refuses values that the object cannot have. */
  readonly check?: (name: string, value: AttributeValue) => SetOptions | undefined;
}

/** Attributes as netCDF has them: of at most one dimension; text has a fixed length. Those that netCDF itself makes are hidden. */
export class NcAttributes implements Attributes {
  readonly #attributes: Attributes;
  readonly #rules: Rules;

  constructor(attributes: Attributes, rules: Rules) {
    this.#attributes = attributes;
    this.#rules = rules;
  }

  get size(): number {
    return [...this.keys()].length;
  }

  *keys(): IterableIterator<string> {
    for (const name of this.#attributes.keys()) if (!RESERVED.has(name)) yield name;
  }

  *[Symbol.iterator](): IterableIterator<[string, AttributeValue]> {
    for (const name of this.keys()) yield [name, this.get(name) as AttributeValue];
  }

  has(name: string): boolean {
    return !RESERVED.has(name) && this.#attributes.has(name);
  }

  /** A list of one value is that value. */
  get(name: string): AttributeValue | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#attributes.get(name);
    const { shape } = this.#attributes.describe(name) ?? {};
    return shape?.length === 1 && shape[0] === 1 ? (value as ArrayLike<AttributeValue>)[0] : value;
  }

  describe(name: string): { dtype: DType; shape: readonly number[] | null } | undefined {
    return this.has(name) ? this.#attributes.describe(name) : undefined;
  }

  set(name: string, value: AttributeValue, options: SetOptions = {}): void {
    if (RESERVED.has(name)) throw this.#error('OPTION', name, 'the name belongs to netCDF');
    const own = this.#rules.check?.(name, value);
    this.#attributes.set(name, value, own ?? this.#stored(name, value, options));
  }

  delete(name: string): void {
    if (RESERVED.has(name)) throw this.#error('OPTION', name, 'the name belongs to netCDF');
    this.#attributes.delete(name);
  }

  /** How a value is stored. */
  #stored(name: string, value: AttributeValue, { dtype, shape }: SetOptions): SetOptions {
    if (shape && shape.length > 1)
      throw this.#error('SHAPE', name, `netCDF has no attributes of ${shape.length} dimensions`);
    if (typeof value === 'string' && dtype === undefined) return { dtype: textType(value) };
    if (typeof value === 'boolean' || (Array.isArray(value) && typeof value[0] === 'boolean'))
      throw this.#error('DTYPE', name, 'netCDF has no booleans; give a number');
    const type = dtype === undefined ? undefined : ncType(dtype);
    if (dtype !== undefined && type === undefined)
      throw this.#error('DTYPE', name, `netCDF has no attributes of ${describeType(dtype)}`);
    if (this.#rules.classic()) this.#checkClassic(name, value, type);
    const isOne = typeof value === 'number' || typeof value === 'bigint';
    return { ...(dtype !== undefined && { dtype }), ...(isOne ? { shape: [1] } : shape && { shape }) };
  }

  #checkClassic(name: string, value: AttributeValue, type: ReturnType<typeof ncType>): void {
    const isText = Array.isArray(value) && typeof value[0] === 'string';
    const isLarge =
      typeof value === 'bigint' ||
      (Array.isArray(value) && typeof value[0] === 'bigint') ||
      value instanceof BigInt64Array;
    const isUnsigned = /^(Uint|BigUint)/.test(value?.constructor.name ?? '');
    if (type === undefined ? isText || isLarge || isUnsigned : !CLASSIC.has(type))
      throw this.#error('DTYPE', name, 'the classic model has text, int8, int16, int32, float32 and float64 only');
  }

  #error(code: 'OPTION' | 'SHAPE' | 'DTYPE', name: string, why: string): H5LogError {
    const { path } = this.#rules;
    return new H5LogError(code, `attribute ${name} of ${path}: ${why}`, { object: path });
  }
}

/** Fixed length with a final NUL. Of two bytes at least: one byte is a character to h5netcdf, and not a text. */
export function textType(text: string): DType {
  const { length } = new TextEncoder().encode(text);
  return T.string({
    length: Math.max(2, length + 1),
    pad: 'terminated',
    charset: length === text.length ? 'ascii' : 'utf8',
  });
}
