import type { Dataset } from '../../api/dataset.ts';
import { File } from '../../api/file.ts';
import { ANY, checkOptions, FLAG } from '../../base/options.ts';
import { describeType } from '../../dtype/describe.ts';
import type { DType } from '../../dtype/model.ts';
import { type Slab, sizeOf } from '../../space/shape.ts';
import { isNull, nameOf, type Source, sayingKind } from '../inside.ts';
import { attributesOf } from '../list/list.ts';
import { plainValue, quotedText, typeLines, valuePrinter } from '../value-text.ts';
import { type FullSlab, slabCoordinate, slabOf, slabShape, valuesOf } from '../values.ts';

export interface DatasetDumpOptions {
  datasets: readonly string[];
  /** Only these elements. */
  slab?: Slab;
  /** No values. */
  header?: boolean;
}

/** Type, shape, values and attributes of datasets as h5dump prints them, line by line. */
export function datasetLines(source: Source, options: DatasetDumpOptions): AsyncGenerator<string, void, undefined> {
  return opened(source, 'datasetLines', options, async function* (file, datasets) {
    yield `HDF5 ${quotedText(nameOf(file))} {`;
    for (const { dataset, slab } of datasets) {
      yield `DATASET ${quotedText(dataset.path)} {`;
      yield* typeText(dataset.dtype, '   ');
      yield `   DATASPACE  ${spaceText(isNull(dataset) ? null : dataset.shape, dataset.maxShape)}`;
      if (!options.header && slab) {
        const isPart = options.slab !== undefined && Object.keys(options.slab).length > 0;
        if (isPart) yield* subsetLines(slab);
        const indent = isPart ? '      ' : '   ';
        yield `${indent}DATA {`;
        yield* valueLines(dataset, slab, indent);
        yield `${indent}}`;
        if (isPart) yield '   }';
      }
      yield* attributeLines(dataset);
      yield '}';
    }
    yield '}';
  });
}

/** The same facts as JSON, in parts of a text that is whole when they are put together. */
export function datasetJson(source: Source, options: DatasetDumpOptions): AsyncGenerator<string, void, undefined> {
  return opened(source, 'datasetJson', options, async function* (file, datasets) {
    yield `{"file": ${JSON.stringify(nameOf(file))}, "datasets": [`;
    for (const [i, { dataset, slab }] of datasets.entries()) {
      const { path, dtype, maxShape } = dataset;
      const shape = slab ? dataset.shape : null;
      const facts = { path, dtype: describeType(dtype), shape, maxShape, attributes: attributesOf(dataset) };
      const values = slab && !options.header;
      const end = i + 1 < datasets.length ? ',' : '';
      yield `${JSON.stringify({ ...facts, ...(values && { slab, selected: slabShape(slab) }) }).slice(0, -1)}${values ? ', "values": [' : `}${end}`}`;
      if (!values) continue;
      let isFirst = true;
      for await (const piece of valuesOf(dataset, slab)) {
        for (let at = 0; at < piece.length; at += MANY) {
          const part = Array.prototype.slice.call(piece, at, at + MANY).map(plainValue);
          yield `${isFirst ? '' : ','}${JSON.stringify(part).slice(1, -1)}`;
          isFirst = false;
        }
      }
      yield `]}${end}`;
    }
    yield ']}';
  });
}

/** Values on a line of JSON. */
const MANY = 1024;

interface Chosen {
  readonly dataset: Dataset;
  /** null: it has no elements at all. */
  readonly slab: FullSlab | null;
}

/** Finds all datasets, and what is wrong with the selection, before anything is printed. */
async function* opened(
  source: Source,
  call: string,
  options: DatasetDumpOptions,
  print: (file: File, datasets: readonly Chosen[]) => AsyncGenerator<string, void, undefined>,
): AsyncGenerator<string, void, undefined> {
  const { datasets, slab = {} } = checkOptions(call, options, { datasets: ANY, slab: ANY, header: FLAG });
  const file = await sayingKind(source, () => File.open(source));
  try {
    const chosen = datasets.map((path) => {
      const dataset = file.dataset(path);
      const isWhole = Object.keys(slab).length === 0;
      return { dataset, slab: isWhole && isNull(dataset) ? null : slabOf(dataset, slab) };
    });
    yield* print(file, chosen);
  } finally {
    await file.close();
  }
}

function* typeText(dtype: DType, indent: string): Iterable<string> {
  const [first, ...rest] = typeLines(dtype);
  yield `${indent}DATATYPE  ${first}`;
  for (const line of rest) yield `${indent}${line}`;
}

function spaceText(shape: readonly number[] | null, maxShape: readonly (number | null)[]): string {
  if (shape === null) return 'NULL';
  if (shape.length === 0) return 'SCALAR';
  return `SIMPLE { ( ${shape.join(', ')} ) / ( ${maxShape.map((size) => size ?? 'H5S_UNLIMITED').join(', ')} ) }`;
}

function* subsetLines({ start, stride, count, block }: FullSlab): Iterable<string> {
  yield '   SUBSET {';
  for (const [name, list] of Object.entries({ START: start, STRIDE: stride, COUNT: count, BLOCK: block }))
    yield `      ${name} ( ${list.join(', ')} );`;
}

function* attributeLines({ attributes }: Dataset): Iterable<string> {
  for (const name of attributes.keys()) {
    const described = attributes.describe(name);
    if (!described) continue;
    const { dtype, shape } = described;
    yield `   ATTRIBUTE ${quotedText(name)} {`;
    yield* typeText(dtype, '      ');
    yield `      DATASPACE  ${spaceText(shape, shape ?? [])}`;
    if (shape !== null) {
      const print = valuePrinter(dtype);
      const value = attributes.get(name);
      const texts = shape.length === 0 ? [print(value)] : Array.from(value as ArrayLike<unknown>, print);
      yield '      DATA {';
      yield `      (${shape.length === 0 ? 0 : shape.map(() => 0).join(',')}): ${texts.join(', ')}`;
      yield '      }';
    }
    yield '   }';
  }
}

const WIDTH = 80;

/** Lines as h5dump prints them: the coordinates of the first element in front; a row of the last dimension begins a line. */
async function* valueLines(dataset: Dataset, slab: FullSlab, indent: string): AsyncGenerator<string, void, undefined> {
  const print = valuePrinter(dataset.dtype);
  const shape = slabShape(slab);
  const rank = shape.length;
  const last = rank - 1;
  const row = rank === 0 ? 1 : (shape[last] as number);
  const total = sizeOf(shape);
  const at = new Array<number>(Math.max(1, rank)).fill(0);
  let line = '';
  let done = 0;
  for await (const values of valuesOf(dataset, slab)) {
    for (let i = 0; i < values.length; i++) {
      const text = `${print(values[i])}${++done < total ? ',' : ''}`;
      if (line !== '' && line.length + 1 + text.length > WIDTH) {
        yield line;
        line = '';
      }
      line = line === '' ? `${indent}${coordinates(slab, at, rank)} ${text}` : `${line} ${text}`;
      if (rank === 0 || ++(at[last] as number) === row) {
        yield line;
        line = '';
        for (let d = last; d > 0 && at[d] === shape[d]; d--) {
          at[d] = 0;
          (at[d - 1] as number)++;
        }
      }
    }
  }
}

function coordinates(slab: FullSlab, at: readonly number[], rank: number): string {
  if (rank === 0) return '(0):';
  return `(${slab.start.map((_, d) => slabCoordinate(slab, d, at[d] as number)).join(',')}):`;
}
