import { H5LogError } from '../base/errors.ts';
import { AMOUNT, ANY, checkOptions, nearest } from '../base/options.ts';
import { numberArray, packNumbers, unpackNumbers } from '../dtype/convert.ts';
import { decodeColumns } from '../dtype/decode.ts';
import { containsReference, containsVlen, describeType, describeValue } from '../dtype/describe.ts';
import { type DType, fullType, type NumberType, numberName, storedNumber, type TypedArray } from '../dtype/model.ts';
import type { ReadRequest } from '../log/read/reading.ts';
import { piecesOf } from '../space/grid.ts';
import type { Blocks } from '../space/select.ts';

/** What a read may be asked for besides what the connectors do themselves. */
export interface Conversion {
  readonly as?: NumberType | undefined;
  readonly columns?: true | readonly string[] | undefined;
}

/** A read as the connectors do it, and what makes the result of it. */
interface Converted {
  readonly request: ReadRequest;
  readonly finish: ((result: unknown) => unknown) | null;
}

const RESULTS = ['as', 'columns', 'into', 'raw'] as const;

/** Works `as` and `columns` out: both are reads of raw bytes, converted afterwards. */
export function convertedRead(path: string, type: () => DType, options: ReadRequest & Conversion): Converted {
  const { as, columns, memory } = options;
  if (as === undefined && columns === undefined) return { request: options, finish: null };
  const dtype = type();
  const given = RESULTS.filter((name) => options[name] !== undefined && options[name] !== false);
  if (given.length > 1)
    throw new H5LogError('OPTION', `${path}: ${given.join(' and ')} exclude each other`, { object: path });
  const raw: ReadRequest = memory ? { memory, raw: true } : { raw: true };
  const { size } = fullType(dtype);
  if (as !== undefined) {
    if (typeof as !== 'string' || numberName(as) === undefined || fullType(as) === undefined || !storedNumber(dtype)) {
      const text = `${path}: ${describeType(dtype)} cannot be read as ${describeValue(as)}`;
      throw new H5LogError('DTYPE', text, { object: path });
    }
    return { request: raw, finish: (bytes) => numbersAs(as, dtype, bytes as Uint8Array, size) };
  }
  const names = fieldsOf(path, dtype, columns);
  if (!containsVlen(dtype) && !containsReference(dtype)) {
    const finish = (bytes: unknown) => {
      const count = (bytes as Uint8Array).length / size;
      return decodeColumns(dtype, names, bytes as Uint8Array, count, { heap: () => undefined, path: () => '' });
    };
    return { request: raw, finish };
  }
  // Such values have no bytes of their own.
  const finish = (rows: unknown) => transposed(dtype, names, rows as Readonly<Record<string, unknown>>[]);
  return { request: memory ? { memory } : {}, finish };
}

function numbersAs(as: NumberType, dtype: DType, bytes: Uint8Array, size: number): TypedArray {
  const count = bytes.length / size;
  if (as !== 'float16') {
    const values = numberArray(as, count);
    unpackNumbers(bytes, 0, count, dtype, values, 0);
    return values;
  }
  // Rounded to half precision, although no typed array holds it.
  const wide = new Float64Array(count);
  unpackNumbers(bytes, 0, count, dtype, wide, 0);
  const halves = new Uint8Array(count * 2);
  packNumbers(wide, 0, count, 'float16', halves, 0);
  const values = numberArray('float16', count);
  unpackNumbers(halves, 0, count, 'float16', values, 0);
  return values;
}

/** The names of the fields that are asked for. */
function fieldsOf(path: string, dtype: DType, columns: unknown): readonly string[] {
  const type = fullType(dtype);
  if (type.class !== 'compound') {
    const text = `${path}: ${describeType(dtype)} has no fields to read as columns`;
    throw new H5LogError('DTYPE', text, { object: path });
  }
  const fields = type.fields.map(({ name }) => name);
  if (columns === true) return fields;
  if (!Array.isArray(columns))
    throw new H5LogError('OPTION', `${path}: columns must be true or a list of names`, { object: path });
  for (const name of columns) {
    if (fields.includes(name)) continue;
    const near = typeof name === 'string' ? nearest(name, fields) : undefined;
    const advice = near === undefined ? '' : `; did you mean ${near}?`;
    throw new H5LogError('OPTION', `${path} has no field ${JSON.stringify(name)}${advice}`, { object: path });
  }
  return columns;
}

function transposed(
  dtype: DType,
  names: readonly string[],
  rows: readonly Readonly<Record<string, unknown>>[],
): Readonly<Record<string, ArrayLike<unknown>>> {
  const type = fullType(dtype);
  const columns: [string, ArrayLike<unknown>][] = [];
  for (const { name, dtype: field } of type.class === 'compound' ? type.fields : []) {
    if (!names.includes(name)) continue;
    const values = rows.map((row) => row[name]);
    const stored = storedNumber(field);
    const isTyped = stored !== undefined && numberName(stored) !== undefined;
    columns.push([name, isTyped ? Object.assign(numberArray(field, values.length), values) : values]);
  }
  return Object.fromEntries(columns);
}

/** Boxes that are read together, with their elements. */
interface Batch {
  readonly starts: number[];
  readonly counts: number[];
  readonly sizes: number[];
}

/** Bytes of a piece unless it is said. */
const PIECE_BYTES = 16 * 2 ** 20;

/** Options of `Dataset.pieces`. */
export function checkPieces(options: { bytes?: number; signal?: AbortSignal }): number {
  const { bytes = PIECE_BYTES } = checkOptions('pieces', options, { bytes: AMOUNT, signal: ANY });
  if (bytes > 0) return bytes;
  throw new H5LogError('OPTION', `bytes must be above 0, got ${bytes}`);
}

/**
 * The blocks of a selection, cut into pieces of at most `most` elements along the chunks. Small pieces come together in a batch of as
 * many elements: one read each would cost more than their data.
 */
export function* batchesOf(blocks: Blocks, chunks: readonly number[] | null, most: number): Iterable<Batch> {
  const { rank, length, starts, counts } = blocks;
  let batch: Batch = { starts: [], counts: [], sizes: [] };
  let size = 0;
  for (let k = 0; k < length; k++) {
    const at = k * rank;
    for (const piece of piecesOf(starts.subarray(at, at + rank), counts.subarray(at, at + rank), chunks, most)) {
      const elements = piece.count.reduce((product, n) => product * n, 1);
      if (size > 0 && size + elements > most) {
        yield batch;
        batch = { starts: [], counts: [], sizes: [] };
        size = 0;
      }
      batch.starts.push(...piece.start);
      batch.counts.push(...piece.count);
      batch.sizes.push(elements);
      size += elements;
    }
  }
  if (size > 0) yield batch;
}
