import { H5LogError } from '../base/errors.ts';
import { T } from '../dtype/construct.ts';
import { numberArray } from '../dtype/convert.ts';
import type { DType, NumberType, TypedArray } from '../dtype/model.ts';
import type { CdlAttribute, CdlHeader, CdlVariable } from './cdl.ts';
import { NUMBERS } from './cdl-tokens.ts';
import type { Decomposition, Runs } from './decomposition.ts';

/** A variable as it is written: a dataset, and who writes it. */
export interface PlannedVariable {
  readonly path: string;
  /** A number of its own among the variables of all files: its values are made from it. */
  readonly number: number;
  /** null: text. */
  readonly type: NumberType | null;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  /** Whether the first dimension is unlimited. It is written record by record then. */
  readonly isRecord: boolean;
  /** Number of its decomposition; -1: the first rank writes it whole. */
  readonly decomposition: number;
  readonly attributes: readonly CdlAttribute[];
  /** Of elements that nobody writes. */
  readonly fill: number | undefined;
}

export interface PlannedFile {
  readonly name: string;
  readonly records: number;
  readonly variables: readonly PlannedVariable[];
  readonly attributes: readonly CdlAttribute[];
  readonly groups: CdlHeader['groups'];
}

export interface PlanOptions {
  /** How many records of each file; the last number is that of all files behind it. Without: what the headers say. */
  readonly records: readonly number[];
  /** Sizes for dimensions instead of those of the headers. */
  readonly sizes: Readonly<Record<string, number>>;
  /** float variables as float64. */
  readonly double: boolean;
}

/** What the files of some headers consist of. */
export function planFiles(
  headers: readonly CdlHeader[],
  map: readonly Decomposition[],
  { records, sizes, double }: PlanOptions,
): PlannedFile[] {
  for (const name of Object.keys(sizes)) {
    if (!headers.some(({ dimensions }) => dimensions.some((dimension) => dimension.name === name)))
      throw new H5LogError('OPTION', `no header has a dimension ${name}`);
  }
  let number = 0;
  return headers.map((header, i) => {
    const asked = records[Math.min(i, records.length - 1)];
    const dimensions = header.dimensions.map(({ name, size, unlimited }) => ({
      unlimited,
      size: sizes[name] ?? (unlimited ? (asked ?? size) : size),
    }));
    const variables = header.variables.map((variable): PlannedVariable => {
      const dims = variable.dimensions.map((place) => dimensions[place] as (typeof dimensions)[0]);
      const isRecord = dims[0]?.unlimited ?? false;
      const shape = dims.map(({ size }) => size);
      const type = numberType(variable, double);
      return {
        path: variable.name,
        number: number++,
        type,
        shape,
        maxShape: dims.map(({ size, unlimited }) => (unlimited ? null : size)),
        isRecord,
        decomposition: decompositionOf(isRecord ? shape.slice(1) : shape, isRecord, map),
        attributes: type === null ? variable.attributes : variable.attributes.map((one) => fitted(one, type)),
        fill: type === null ? undefined : fillOf(variable.attributes),
      };
    });
    const [counted] = dimensions.filter(({ unlimited }) => unlimited);
    const { name, attributes, groups } = header;
    return { name, records: counted?.size ?? 0, variables, attributes, groups };
  });
}

/** Where two fit, a fixed-size variable takes the first and a record variable the last. */
function decompositionOf(shape: readonly number[], isRecord: boolean, map: readonly Decomposition[]): number {
  const fits = ({ dims }: Decomposition): boolean =>
    dims.length === shape.length && dims.every((size, d) => size === shape[d]);
  return isRecord ? map.findLastIndex(fits) : map.findIndex(fits);
}

function numberType({ type }: CdlVariable, double: boolean): NumberType | null {
  if (type === 'string') return null;
  // A letter, as C has it.
  if (type === 'char') return 'int8';
  return double && NUMBERS[type] === 'float32' ? 'float64' : NUMBERS[type];
}

const FILL = '_FillValue';

function fillOf(attributes: readonly CdlAttribute[]): number | undefined {
  const value = attributes.find(({ name }) => name === FILL)?.value;
  return typeof value === 'object' && value.length === 1 ? Number(value[0]) : undefined;
}

/** The fill value is of the variable's own type, whatever that is. */
function fitted(attribute: CdlAttribute, type: NumberType): CdlAttribute {
  const { name, value } = attribute;
  if (name !== FILL || type !== 'float64' || !(value instanceof Float32Array)) return attribute;
  return { name, value: Float64Array.from(value) as TypedArray };
}

/** Texts are of a fixed length: those of variable length are not logged. */
export const TEXT_LENGTH = 24;

export function dtypeOf({ type }: PlannedVariable): DType {
  return type ?? T.string({ length: TEXT_LENGTH });
}

export type NumberArray = Exclude<TypedArray, BigInt64Array | BigUint64Array>;

/** In which every value of the workload is exact. 64-bit integers are converted from and to float64: their values stay below 2^53. */
export function arrayFor(type: NumberType, length: number): NumberArray {
  if (type === 'int64' || type === 'uint64') return new Float64Array(length);
  return numberArray(type, length) as NumberArray;
}

/** The bits of a number that every type can hold; -1: all there are below 2^53. */
const MASKS: Readonly<Record<NumberType, number>> = {
  int8: 0x7f,
  uint8: 0x7f,
  int16: 0x7fff,
  uint16: 0x7fff,
  int32: 0x7fffffff,
  uint32: 0x7fffffff,
  int64: -1,
  uint64: -1,
  float16: 0x7ff,
  float32: 0xffffff,
  float64: -1,
};

/** The value of the first element of a record, and the bits that remain of the others: apart from one another, even where few bits are left. */
export function seedOf({ number, type }: PlannedVariable, record: number): { seed: number; mask: number } {
  const mask = type === null ? -1 : MASKS[type];
  const code = number * 1009 + record + 1;
  return { mask, seed: mask < 0 ? (code % 2 ** 20) * 2 ** 32 : Math.imul(code, 0x9e3779b1) & mask };
}

/** The value of one element, by its position among the elements of a record (or of the whole variable). */
export function valueAt(variable: PlannedVariable, record: number, position: number): number {
  const { seed, mask } = seedOf(variable, record);
  return mask < 0 ? seed + position : (seed + position) & mask;
}

/** The values of some runs, one run after the other. */
export function valuesOf(variable: PlannedVariable & { type: NumberType }, record: number, runs: Runs): NumberArray {
  const { seed, mask } = seedOf(variable, record);
  const out = arrayFor(variable.type, runs.elements);
  let at = 0;
  for (let i = 0; i < runs.length; i++) {
    const first = seed + (runs.offsets[i] as number);
    const length = runs.lengths[i] as number;
    if (mask < 0) for (let k = 0; k < length; k++, at++) out[at] = first + k;
    else for (let k = 0; k < length; k++, at++) out[at] = (first + k) & mask;
  }
  return out;
}

/** An element with another value than it should have. */
export interface WrongValue {
  readonly file: string;
  readonly variable: string;
  readonly record: number;
  readonly position: number;
  readonly expected: number | string;
  readonly found: number | string;
}

interface Difference {
  readonly count: number;
  readonly position: number;
}

/**
 * Compares all elements of a record with what they should be. `gaps` are the elements that nobody writes, in ascending order; they
 * must have the fill value.
 */
export function compare(found: TypedArray, variable: PlannedVariable, record: number, gaps: Float64Array): Difference {
  const { seed, mask } = seedOf(variable, record);
  const { fill = 0 } = variable;
  let count = 0;
  let position = -1;
  const differs = (at: number): void => {
    if (count === 0) position = at;
    count++;
  };
  for (let at = 0, gap = 0; at < found.length; gap++) {
    const end = gap < gaps.length ? (gaps[gap] as number) : found.length;
    if (mask < 0) for (; at < end; at++) if (found[at] !== seed + at) differs(at);
    if (mask >= 0) for (; at < end; at++) if (found[at] !== ((seed + at) & mask)) differs(at);
    if (at < found.length) {
      if (!sameNumber(Number(found[at]), fill, found)) differs(at);
      at++;
    }
  }
  return { count, position };
}

function sameNumber(found: number, fill: number, like: TypedArray): boolean {
  const rounded = like instanceof Float32Array ? Math.fround(fill) : fill;
  return found === rounded || (Number.isNaN(found) && Number.isNaN(rounded));
}

/** The elements of an array that are in no run. */
export function gapsIn(runs: Runs, size: number): Float64Array {
  const gaps: number[] = [];
  let at = 0;
  for (let i = 0; i < runs.length; i++) {
    for (; at < (runs.offsets[i] as number); at++) gaps.push(at);
    at = (runs.offsets[i] as number) + (runs.lengths[i] as number);
  }
  for (; at < size; at++) gaps.push(at);
  return Float64Array.from(gaps);
}
