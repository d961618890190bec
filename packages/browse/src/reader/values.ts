import type { DType } from 'h5log';
import { type FullType, fullType } from '../../../../src/dtype/model.ts';

/** Whether a read gives a typed array, which h5web takes as it is. */
export function isNumeric(dtype: DType): boolean {
  const { class: name } = fullType(dtype);
  return name === 'integer' || name === 'float';
}

/** The elements of a read, or of an attribute, as h5web expects them. */
export function shownValues(dtype: DType, values: ArrayLike<unknown>): unknown {
  const type = fullType(dtype);
  if (type.class === 'integer' || type.class === 'float' || type.class === 'string') return values;
  // h5web looks enumerations up by number.
  if (type.class === 'enum' || type.class === 'bitfield')
    return typeof values[0] === 'bigint' ? Float64Array.from(values as ArrayLike<bigint>, Number) : values;
  const show = elementOf(type);
  return Array.from(values, show);
}

/** One element of a read, or the value of a scalar attribute. */
export function shownValue(dtype: DType, value: unknown): unknown {
  const type = fullType(dtype);
  return elementOf(type)(value);
}

function elementOf(type: FullType): (value: unknown) => unknown {
  switch (type.class) {
    case 'compound': {
      const fields = type.fields.map(({ name, dtype }) => ({ name, show: elementOf(fullType(dtype)) }));
      // Of a complex number that is a pair, as h5web expects.
      return (value) => fields.map(({ name, show }) => show((value as Readonly<Record<string, unknown>>)[name]));
    }
    case 'array':
    case 'vlen': {
      const show = elementOf(fullType(type.base));
      // Plain arrays: h5web prints such values as JSON, which has no typed arrays.
      return (value) => Array.from(value as ArrayLike<unknown>, show);
    }
    case 'enum':
      return (value) => (typeof value === 'bigint' ? Number(value) : value);
    case 'reference':
      return referenceText;
    default:
      return (value) => value;
  }
}

interface Region {
  readonly path: string;
  readonly where: { readonly size: number; boxes(): Iterable<{ start: readonly number[]; count: readonly number[] }> };
}

/** How many boxes of a region are spelled out. */
const BOXES = 4;

/** A path; of a region also which elements. */
function referenceText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  const { path, where } = value as Region;
  const boxes: string[] = [];
  for (const { start, count } of where.boxes()) {
    if (boxes.length === BOXES) {
      boxes.push('...');
      break;
    }
    boxes.push(`[${start.map((from, d) => `${from}:${from + (count[d] as number)}`).join(', ')}]`);
  }
  return `${path} ${boxes.join(' ')}`.trim();
}
