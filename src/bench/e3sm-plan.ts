import { H5LogError } from '../base/errors.ts';
import { T } from '../dtype/construct.ts';
import type { DType, NumberType, TypedArray } from '../dtype/model.ts';
import type { CdlAttribute, CdlHeader, CdlVariable } from './cdl.ts';
import { NUMBERS } from './cdl-constant.ts';
import type { Decomposition } from './decomposition.ts';

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
