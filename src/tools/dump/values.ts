import type { Dataset } from '../../api/dataset.ts';
import { H5LogError } from '../../base/errors.ts';
import { containsVlen } from '../../dtype/describe.ts';
import { type DType, fullType, numberName } from '../../dtype/model.ts';
import { type Slab, sizeOf } from '../../space/shape.ts';
import { isNull } from '../inside.ts';
import { type FullSlab, fullSlab, slabCoordinate, slabPieces, slabShape } from '../slab-pieces.ts';
import { valuePrinter } from '../value-text.ts';

/** Bytes that are read at once, and elements where each becomes an object. */
const PIECE_BYTES = 4 * 2 ** 20;
const PIECE_OBJECTS = 2 ** 14;

/** Elements of a dataset that are read together, so that memory stays bounded. */
export function pieceSize(dtype: DType): number {
  const { size } = fullType(dtype);
  const bytes = Math.max(1, Math.floor(PIECE_BYTES / size));
  return numberName(dtype) !== undefined && !containsVlen(dtype) ? bytes : Math.min(PIECE_OBJECTS, bytes);
}

/** The elements of a dataset, or of a slab of it, piece by piece in row-major order. */
export async function* valuesOf(dataset: Dataset, slab: FullSlab): AsyncGenerator<ArrayLike<unknown>, void, undefined> {
  // One element has no place in a slab.
  if (dataset.rank === 0) {
    yield (await dataset.read()) as ArrayLike<unknown>;
    return;
  }
  for (const { where } of slabPieces(slab, pieceSize(dataset.dtype)))
    yield (await dataset.read(where)) as ArrayLike<unknown>;
}

/** The slab that is meant, of a dataset that has elements. */
export function slabOf(dataset: Dataset, slab: Slab): FullSlab {
  if (isNull(dataset))
    throw new H5LogError('SELECTION', `${dataset.path} has no elements: its dataspace is NULL`, {
      object: dataset.path,
    });
  return fullSlab(slab, dataset.shape, dataset.path);
}

const WIDTH = 80;

/** Lines as h5dump prints them: the coordinates of the first element in front; a row of the last dimension begins a line. */
export async function* valueLines(
  dataset: Dataset,
  slab: FullSlab,
  indent: string,
): AsyncGenerator<string, void, undefined> {
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
