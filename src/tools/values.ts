import type { Dataset } from '../api/dataset.ts';
import { H5LogError } from '../base/errors.ts';
import { containsVlen } from '../dtype/describe.ts';
import { type DType, fullType, numberName } from '../dtype/model.ts';
import { type Slab, sizeOf } from '../space/shape.ts';
import { isNull } from './inside.ts';

/** A slab in which every number is known. */
export interface FullSlab {
  readonly start: readonly number[];
  readonly stride: readonly number[];
  readonly count: readonly number[];
  readonly block: readonly number[];
}

/** A part of a slab, of which the elements follow one another in row-major order. */
interface SlabPiece {
  readonly where: { start: number[]; stride: number[]; count: number[]; block: number[] };
  /** Elements. */
  readonly size: number;
}

/** Puts in what is missing, as h5dump does: from the beginning, every element, up to the end. */
export function fullSlab(slab: Slab, shape: readonly number[], path: string): FullSlab {
  const numbers = (name: keyof Slab, otherwise: (d: number) => number): number[] => {
    const given = slab[name];
    if (given === undefined) return shape.map((_, d) => otherwise(d));
    if (given.length !== shape.length)
      throw new H5LogError(
        'SELECTION',
        `${path} has ${shape.length} dimensions, ${name} ${Array.from(given).join(',')} has ${given.length}`,
        { object: path },
      );
    return Array.from(given);
  };
  const start = numbers('start', () => 0);
  const stride = numbers('stride', (d) => Math.max(1, slab.block?.[d] ?? 1));
  const block = numbers('block', () => 1);
  const count = numbers('count', (d) => {
    const [from, step, length] = [start[d] as number, stride[d] as number, block[d] as number];
    const fitting = Math.max(0, Math.floor(((shape[d] as number) - from - length) / step) + 1);
    // Nobody who gives a start means nothing at all.
    if (fitting === 0 && (shape[d] as number) > 0)
      throw new H5LogError(
        'SELECTION',
        `nothing of ${path} is selected: ${length} from ${from} on in dimension ${d}, which has ${shape[d]}`,
        { object: path },
      );
    return fitting;
  });
  const sum = (d: number): number =>
    (start[d] as number) + ((count[d] as number) - 1) * (stride[d] as number) + (block[d] as number);
  for (let d = 0; d < shape.length; d++) {
    for (const [name, list, least] of [
      ['start', start, 0],
      ['stride', stride, 1],
      ['count', count, 0],
      ['block', block, 1],
    ] as const) {
      const value = list[d] as number;
      if (!Number.isSafeInteger(value) || value < least)
        throw new H5LogError('SELECTION', `${name} is a whole number from ${least} up, not ${value}`, { object: path });
    }
    if ((stride[d] as number) < (block[d] as number) && (count[d] as number) > 1)
      throw new H5LogError(
        'SELECTION',
        `blocks of ${block[d]} overlap with a stride of ${stride[d]} in dimension ${d} of ${path}`,
        { object: path },
      );
    if ((count[d] as number) > 0 && sum(d) > (shape[d] as number))
      throw new H5LogError(
        'SELECTION',
        `the selection reaches ${sum(d)} in dimension ${d} of ${path}, which has ${shape[d]}`,
        { object: path },
      );
  }
  return { start, stride, count, block };
}

/** How many elements a slab has in each dimension. */
export function slabShape({ count, block }: FullSlab): number[] {
  return count.map((n, d) => n * (block[d] as number));
}

/** The coordinate in the dataset of the i-th element of a slab in a dimension. */
export function slabCoordinate({ start, stride, block }: FullSlab, d: number, i: number): number {
  const length = block[d] as number;
  return (start[d] as number) + Math.floor(i / length) * (stride[d] as number) + (i % length);
}

/** Cuts a slab into pieces of at most `most` elements, in row-major order; each is a slab itself. */
export function* slabPieces(slab: FullSlab, most: number): Iterable<SlabPiece> {
  const shape = slabShape(slab);
  const total = sizeOf(shape);
  if (total === 0) return;
  const rank = shape.length;
  // Dimensions behind `cut` are taken whole, those before it one element at a time.
  let cut = rank;
  let inner = 1;
  while (cut > 0 && inner * (shape[cut - 1] as number) <= most) inner *= shape[--cut] as number;
  const where = (): SlabPiece['where'] => ({
    start: [...slab.start],
    stride: [...slab.stride],
    count: [...slab.count],
    block: [...slab.block],
  });
  if (cut === 0) {
    yield { where: where(), size: total };
    return;
  }
  const d = cut - 1;
  const outer = sizeOf(shape.slice(0, d));
  const ranges = [...rangesOf(slab, d, Math.max(1, Math.floor(most / inner)))];
  for (let n = 0; n < outer; n++) {
    for (const range of ranges) {
      const piece = where();
      for (let k = d - 1, rest = n; k >= 0; k--) {
        piece.start[k] = slabCoordinate(slab, k, rest % (shape[k] as number));
        rest = Math.floor(rest / (shape[k] as number));
        [piece.count[k], piece.block[k]] = [1, 1];
      }
      [piece.start[d], piece.count[d], piece.block[d]] = range;
      yield { where: piece, size: range[1] * range[2] * inner };
    }
  }
}

/** Start, count and block of the parts of one dimension, each of at most `most` elements. */
function* rangesOf(slab: FullSlab, d: number, most: number): Iterable<[number, number, number]> {
  const [start, stride, count, block] = [slab.start[d], slab.stride[d], slab.count[d], slab.block[d]] as number[] as [
    number,
    number,
    number,
    number,
  ];
  if (block <= most) {
    const several = Math.floor(most / block);
    for (let i = 0; i < count; i += several) yield [start + i * stride, Math.min(several, count - i), block];
    return;
  }
  for (let i = 0; i < count; i++) {
    for (let at = 0; at < block; at += most) yield [start + i * stride + at, 1, Math.min(most, block - at)];
  }
}

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
