import type { Dataset } from 'h5log';
import { type FullType, fullType } from '../../../../src/dtype/model.ts';
import { parseSelection } from './selection.ts';
import { shownValue } from './values.ts';

export type Format = 'csv' | 'npy' | 'json';

/** A part of a dataset as a file of another format. */
export async function exported(dataset: Dataset, selection: string | undefined, format: Format): Promise<Blob> {
  const { start, count, dims } = parseSelection(selection, dataset.shape);
  const where = dataset.rank === 0 ? undefined : { start, count };
  if (format === 'npy') {
    const kind = npyType(fullType(dataset.dtype));
    if (kind === undefined) throw new Error(`${dataset.path}: npy holds numbers and booleans only`);
    const bytes = await dataset.read(where, { raw: true });
    return new Blob([npyHeader(kind, dims), bytes], { type: 'application/octet-stream' });
  }
  const values = Array.from((await dataset.read(where)) as ArrayLike<unknown>, (value) =>
    shownValue(dataset.dtype, value),
  );
  if (format === 'json') return new Blob([json(dims, values)], { type: 'application/json' });
  return new Blob([csv(dataset, dims, values)], { type: 'text/csv' });
}

/** numpy's name of a type; the bytes are those of the file. */
function npyType(type: FullType): string | undefined {
  if (type.class === 'enum') return npyType(fullType(type.base));
  const isWhole = 'precision' in type && type.precision === type.size * 8 && [1, 2, 4, 8].includes(type.size);
  if (!isWhole || (type.class !== 'integer' && type.class !== 'float')) return undefined;
  const order = type.size === 1 ? '|' : type.order === 'big' ? '>' : '<';
  return `${order}${type.class === 'float' ? 'f' : type.signed ? 'i' : 'u'}${type.size}`;
}

function npyHeader(kind: string, dims: readonly number[]): Uint8Array<ArrayBuffer> {
  const shape = dims.length === 1 ? `${dims[0]},` : dims.join(', ');
  const text = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${shape}), }`;
  // Magic, version 1.0 and the length of the text come first; all of it is padded to a multiple of 64.
  const padded = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const header = new Uint8Array(10 + padded.length);
  header.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length & 255, padded.length >> 8]);
  header.set(new TextEncoder().encode(padded), 10);
  return header;
}

/** Nested as the dimensions are. */
function json(dims: readonly number[], values: readonly unknown[]): string {
  let nested: unknown = dims.length === 0 ? values[0] : values;
  for (let d = dims.length - 1; d > 0; d--) {
    const [rows, size] = [nested as unknown[], dims[d] as number];
    nested = Array.from({ length: size === 0 ? 0 : rows.length / size }, (_, i) =>
      rows.slice(i * size, (i + 1) * size),
    );
  }
  return JSON.stringify(nested, (_, value: unknown) => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
    return ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<unknown>) : value;
  });
}

/** The last dimension across; of compounds the fields, with their names in the first line. */
function csv({ dtype }: Dataset, dims: readonly number[], values: readonly unknown[]): string {
  const type = fullType(dtype);
  const isRecord = type.class === 'compound';
  const width = isRecord ? 1 : Math.max(1, dims.at(-1) ?? 1);
  const lines = isRecord ? [type.fields.map(({ name }) => cell(name)).join(',')] : [];
  const isColumn = dims.length < 2;
  for (let i = 0; i < values.length; i += isColumn ? 1 : width) {
    const row = isRecord ? (values[i] as unknown[]) : values.slice(i, i + (isColumn ? 1 : width));
    lines.push(row.map(cell).join(','));
  }
  return `${lines.join('\n')}\n`;
}

function cell(value: unknown): string {
  const text = Array.isArray(value) ? value.join(' ') : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
