import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DType, fullType } from '../../../src/dtype/model.ts';
import { oracle } from '../../oracles.ts';

/** A dataset or attribute of a description; library.py tells the forms of values. */
export interface ExpectedData {
  readonly type: { readonly class: string };
  /** null: NULL dataspace. */
  readonly shape: readonly number[] | null;
  readonly values: readonly unknown[];
}

export interface ExpectedObject extends Partial<ExpectedData> {
  readonly path: string;
  readonly kind: 'group' | 'dataset' | 'datatype';
  readonly attributes: readonly (ExpectedData & { readonly name: string })[];
  /** -1: unlimited. */
  readonly maxShape?: readonly number[] | null;
  readonly layout?: 'compact' | 'contiguous' | 'chunked' | 'external' | 'virtual';
  readonly chunks?: readonly number[] | null;
  readonly filters?: readonly { id: number; name: string; optional: boolean; parameters: readonly number[] }[];
  /** base64 of the elements in the file's type, for types without parts in heaps. */
  readonly raw?: string;
}

export interface ExpectedFile {
  readonly file: string;
  readonly userblock: number;
  readonly objects: readonly ExpectedObject[];
  readonly links: readonly {
    readonly path: string;
    readonly kind: 'soft' | 'external';
    readonly target: string;
    readonly file?: string;
    readonly dangling: boolean;
    /** The values behind the link, if it leads to a dataset. */
    readonly dataset?: readonly unknown[] | null;
  }[];
}

/** Makes the files of corpus.py whose names contain one of the patterns; all without one. */
export function makeCorpus(folder: string, ...patterns: string[]): ExpectedFile[] {
  const script = join(import.meta.dirname, 'corpus.py');
  const made = spawnSync(oracle('python') as string, [script, folder, ...patterns], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`corpus.py ended with ${made.status}: ${made.stderr}`);
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as ExpectedFile);
}

/** What h5log read, as a flat list of values in the forms of library.py. */
export function valuesOf(dtype: DType, read: ArrayLike<unknown>): unknown[] {
  return Array.from(read, (value) => oneValue(dtype, value));
}

function oneValue(dtype: DType, value: unknown): unknown {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
    case 'enum':
    case 'bitfield':
      return String(typeof value === 'boolean' ? Number(value) : value);
    case 'float':
      return floatText(value as number);
    case 'string':
      return { s: value };
    case 'opaque':
      return { b: Buffer.from(value as Uint8Array).toString('base64') };
    case 'compound':
      return {
        c: type.fields.map((field) => oneValue(field.dtype, (value as Readonly<Record<string, unknown>>)[field.name])),
      };
    case 'array':
    case 'vlen':
      return { a: valuesOf(type.base, value as ArrayLike<unknown>) };
    case 'reference':
      return type.to === 'region' ? regionOf(value as Region | null) : { r: value === '' ? null : value };
  }
}

interface Region {
  readonly path: string;
  readonly where: { boxes(): Iterable<{ readonly start: readonly number[]; readonly count: readonly number[] }> };
}

/** A region as the list of its elements: h5py has blocks of other sizes, or points. */
function regionOf(region: Region | null): unknown {
  if (region === null) return { g: null };
  const boxes = Array.from(region.where.boxes(), ({ start, count }) => [start, count] as const);
  return { g: region.path, elements: elementsOf(boxes) };
}

function elementsOf(boxes: readonly (readonly [readonly number[], readonly number[]])[]): string[] {
  const elements = boxes.flatMap(([start, count]) =>
    count.reduce<number[][]>(
      (list, n, d) => list.flatMap((at) => Array.from({ length: n }, (_, i) => [...at, (start[d] as number) + i])),
      [[]],
    ),
  );
  return elements.map(String).sort();
}

/** Values of a description with regions in the same form. */
export function expectedValues(values: readonly unknown[]): unknown[] {
  return values.map((value) => {
    if (typeof value !== 'object' || value === null) return value;
    const { g, boxes, points, c, a } = value as Record<string, never>;
    if (c || a) return c ? { c: expectedValues(c) } : { a: expectedValues(a as never) };
    if (g === undefined || g === null) return value;
    const all: [number[], number[]][] = boxes ?? (points as unknown as number[][]).map((at) => [at, at.map(() => 1)]);
    return { g, elements: elementsOf(all) };
  });
}

function floatText(value: number): string {
  if (Number.isNaN(value)) return 'fnan';
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return `f${view.getBigUint64(0).toString(16).padStart(16, '0')}`;
}
