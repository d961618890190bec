import { H5LogError } from '../base/errors.ts';
import { sizeOf } from '../space/shape.ts';

/** Chunks that nobody chose are at most this large ... */
const LARGEST = 2 ** 20;
/** ... and grow along unlimited dimensions until they are this large, or hold all there is and are at least this large. */
const ENOUGH = 2 ** 16;
const SMALLEST = 2 ** 12;
/** HDF5 stores the size of a chunk in 32 bits. */
const MOST_BYTES = 2 ** 32 - 1;

interface Extent {
  readonly path: string;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly chunks: readonly number[] | null;
  readonly filtered: boolean;
  readonly elementSize: number;
}

/**
 * The chunk shape of a dataset in ordinary HDF5, or null: contiguous. A dataset is chunked when chunks or filters were declared
 * or when it may grow. Declared chunks are kept, except that HDF5 wants none larger than a dimension of fixed size.
 */
export function chunksFor(extent: Extent): readonly number[] | null {
  const { path, shape, maxShape, chunks, filtered, elementSize } = extent;
  const mayGrow = shape.some((size, d) => size !== maxShape[d]);
  if (shape.length === 0 || (!mayGrow && !filtered && !chunks)) return null;
  // It can never hold anything, and HDF5 has no chunk of no size.
  if (!mayGrow && shape.includes(0)) return null;
  const wanted = chunks ?? guessChunks(shape, maxShape, elementSize);
  const chunk = wanted.map((size, d) => Math.max(1, Math.min(size, maxShape[d] ?? size)));
  const bytes = elementSize * sizeOf(chunk);
  if (bytes > MOST_BYTES)
    throw new H5LogError('UNSUPPORTED', `${path}: chunks of ${bytes} bytes; HDF5 has room for ${MOST_BYTES}`, {
      object: path,
    });
  return chunk;
}

/**
 * Chunks for a dataset that must have some although none were declared: one record, that is 1 along unlimited and everything
 * along other dimensions; halved along the first dimension that is longer than 1 until it has at most 1 MiB; then doubled along
 * the unlimited dimensions in turn, the last one first, until it has 64 KiB, or 4 KiB if the dataset is not longer than that.
 */
export function guessChunks(
  shape: readonly number[],
  maxShape: readonly (number | null)[],
  elementSize: number,
): number[] {
  const chunk = maxShape.map((size) => Math.max(1, size ?? 1));
  const bytes = (): number => elementSize * sizeOf(chunk);
  for (let d = 0; d < chunk.length && bytes() > LARGEST; ) {
    if (chunk[d] === 1) d++;
    else chunk[d] = Math.ceil((chunk[d] as number) / 2);
  }
  const growing = maxShape.flatMap((size, d) => (size === null ? [d] : [])).reverse();
  const isShort = (d: number): boolean => bytes() < SMALLEST || (chunk[d] as number) < (shape[d] as number);
  for (let i = 0; bytes() < ENOUGH && growing.some(isShort); i++) {
    const d = growing[i % growing.length] as number;
    if (isShort(d)) chunk[d] = (chunk[d] as number) * 2;
  }
  return chunk;
}
