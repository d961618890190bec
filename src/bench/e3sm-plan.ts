import { H5LogError } from '../base/errors.ts';
import { T } from '../dtype/construct.ts';
import { numberArray } from '../dtype/convert.ts';
import type { DType, NumberType, TypedArray } from '../dtype/model.ts';
import type { CdlAttribute, CdlHeader, CdlVariable } from './cdl.ts';
import { CDL_NUMBERS } from './cdl-tokens.ts';
import type { Decomposition, Runs } from './decomposition.ts';

/** A variable to write: its dataset, and its decomposition. */
export interface PlannedVariable {
  readonly path: string;
  /** Unique among the variables of all files; its values are derived from it. */
  readonly number: number;
  /** null for text. */
  readonly type: NumberType | null;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  /** Names of its dimensions. */
  readonly dimensions: readonly string[];
  /** Whether the first dimension is unlimited; the variable is then written record by record. */
  readonly isRecord: boolean;
  /** Index of its decomposition in the map; -1 if the first rank writes the whole variable. */
  readonly decomposition: number;
  readonly attributes: readonly CdlAttribute[];
  /** Value of elements that no process writes. */
  readonly fill: number | undefined;
}

export interface PlannedFile {
  readonly name: string;
  readonly records: number;
  /** null: unlimited. */
  readonly dimensions: readonly { readonly name: string; readonly size: number | null }[];
  readonly variables: readonly PlannedVariable[];
  readonly attributes: readonly CdlAttribute[];
  readonly groups: CdlHeader['groups'];
}

export interface PlanOptions {
  /** Number of records of each file; the last number applies to all further files. If empty, as in the headers. */
  readonly records: readonly number[];
  /** Sizes of dimensions that override those of the headers. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Write float variables as float64. */
  readonly double: boolean;
}

/** Plans the files: one for each header. */
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
      name,
      unlimited,
      size: sizes[name] ?? (unlimited ? (asked ?? size) : size),
    }));
    const variables = header.variables.map((variable): PlannedVariable => {
      const dims = variable.dimensions.map((index) => dimensions[index] as (typeof dimensions)[0]);
      const isRecord = dims[0]?.unlimited ?? false;
      const shape = dims.map(({ size }) => size);
      const type = numberType(variable, double);
      return {
        path: variable.name,
        number: number++,
        type,
        shape,
        maxShape: dims.map(({ size, unlimited }) => (unlimited ? null : size)),
        dimensions: dims.map((dimension) => dimension.name),
        isRecord,
        decomposition: decompositionOf(isRecord ? shape.slice(1) : shape, isRecord, map),
        attributes: type === null ? variable.attributes : variable.attributes.map((one) => fitted(one, type)),
        fill: type === null ? undefined : fillOf(variable.attributes),
      };
    });
    const [counted] = dimensions.filter(({ unlimited }) => unlimited);
    const { name, attributes, groups } = header;
    return {
      name,
      records: counted?.size ?? 0,
      dimensions: dimensions.map((each) => ({ name: each.name, size: each.unlimited ? null : each.size })),
      variables,
      attributes,
      groups,
    };
  });
}

/** The decomposition that fits a shape. If several fit, a fixed-size variable takes the first and a record variable the last. */
function decompositionOf(shape: readonly number[], isRecord: boolean, map: readonly Decomposition[]): number {
  const fits = ({ dims }: Decomposition): boolean =>
    dims.length === shape.length && dims.every((size, d) => size === shape[d]);
  return isRecord ? map.findLastIndex(fits) : map.findIndex(fits);
}

function numberType({ type }: CdlVariable, double: boolean): NumberType | null {
  if (type === 'string') return null;
  // A char of C.
  if (type === 'char') return 'int8';
  return double && CDL_NUMBERS[type] === 'float32' ? 'float64' : CDL_NUMBERS[type];
}

const FILL = '_FillValue';

function fillOf(attributes: readonly CdlAttribute[]): number | undefined {
  const value = attributes.find(({ name }) => name === FILL)?.value;
  return typeof value === 'object' && value.length === 1 ? Number(value[0]) : undefined;
}

/** Converts the fill value of a variable that is written as float64: it must have the variable's type. */
function fitted(attribute: CdlAttribute, type: NumberType): CdlAttribute {
  const { name, value } = attribute;
  if (name !== FILL || type !== 'float64' || !(value instanceof Float32Array)) return attribute;
  return { name, value: Float64Array.from(value) as TypedArray };
}

/** Texts are written with a fixed length: variable-length data is not logged. */
export const TEXT_LENGTH = 24;

export function dtypeOf({ type }: PlannedVariable): DType {
  return type ?? T.string({ length: TEXT_LENGTH });
}

export type NumberArray = Exclude<TypedArray, BigInt64Array | BigUint64Array>;

/** An array that holds every value of the workload exactly. 64-bit integers are converted from and to float64: their values are below 2^53. */
export function arrayFor(type: NumberType, length: number): NumberArray {
  if (type === 'int64' || type === 'uint64') return new Float64Array(length);
  return numberArray(type, length) as NumberArray;
}

/** Masks that make values fit into each type; -1: no mask, values are below 2^53. */
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

/** The value of the first element of a record, and the mask of all its values. Seeds differ between variables and records, even under a narrow mask. */
export function seedOf({ number, type }: PlannedVariable, record: number): { seed: number; mask: number } {
  const mask = type === null ? -1 : MASKS[type];
  const code = number * 1009 + record + 1;
  return { mask, seed: mask < 0 ? (code % 2 ** 20) * 2 ** 32 : Math.imul(code, 0x9e3779b1) & mask };
}

/** The value of one element, by its position in the record (or in the whole variable). */
export function valueAt(variable: PlannedVariable, record: number, position: number): number {
  const { seed, mask } = seedOf(variable, record);
  return mask < 0 ? seed + position : (seed + position) & mask;
}

/** The values of the elements of these runs, run after run. */
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

/** An element whose value is not the expected one. */
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
 * Compares all elements of a record with the expected values. `gaps` are the elements that no process writes, in ascending order;
 * they must have the fill value.
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

/** The positions of the elements that are in no run. */
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
