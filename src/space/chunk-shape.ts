import { H5LogError } from '../base/errors.ts';
import { describe, mayGrow, sizeOf } from './shape.ts';

/** Default chunks have at most this many bytes ... */
const MOST_BYTES = 2 ** 20;
/** ... and along unlimited dimensions at least this many, also in a dataset that is shorter. */
const LEAST_BYTES = 2 ** 12;
/** HDF5 stores the size of a chunk in 32 bits. */
export const MOST_CHUNK_BYTES = 2 ** 32 - 1;

/** What the chunk shape of a dataset depends on. */
export interface ChunkedExtent {
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  /** Declared chunks. */
  readonly chunks: readonly number[] | null;
  readonly elementSize: number;
}

/**
 * The chunk shape of a dataset in ordinary HDF5, or null: contiguous. A dataset is chunked if it has declared chunks or filters, or
 * may grow. Declared chunks stay, but HDF5 allows none larger than a dimension of fixed size.
 */
export function ordinaryChunks(extent: ChunkedExtent, filtered: boolean): number[] | null {
  const { shape, maxShape, chunks } = extent;
  const grows = mayGrow(shape, maxShape);
  if (shape.length === 0 || (!grows && !filtered && !chunks)) return null;
  // It can never hold anything, and HDF5 has no chunk of no size.
  if (!grows && shape.includes(0)) return null;
  return chunks ? fittingChunks(chunks, maxShape) : defaultChunks(extent);
}

/** Chunks cut to what a dataset can become. */
export function fittingChunks(chunk: readonly number[], maxShape: readonly (number | null)[]): number[] {
  return chunk.map((size, d) => Math.max(1, Math.min(size, maxShape[d] ?? size)));
}

/**
 * The chunk shape of a dataset that declares none, wherever one is needed: for replay, seal and filtered blocks (docs/format.md,
 * "Chunk shape"). A chunk begins as one record: 1 along unlimited dimensions, everything along the others. One of more than 1 MiB is
 * cut: whole rows, planes and so on from the last dimension on as long as they fit, equal parts of the next dimension, 1 along those
 * before it. One of less is doubled along the unlimited dimensions in turn, the last one first, while it has at most 1 MiB and is
 * shorter than the dataset or than 4 KiB. Powers of two: the chunks of a dataset that grows nest in those that it had before.
 */
export function defaultChunks({ shape, maxShape, elementSize }: Omit<ChunkedExtent, 'chunks'>): number[] {
  const chunk = maxShape.map((size) => Math.max(1, size ?? 1));
  for (let d = chunk.length - 1, fitting = Math.max(1, Math.floor(MOST_BYTES / elementSize)); d >= 0; d--) {
    const size = chunk[d] as number;
    chunk[d] = Math.ceil(size / Math.ceil(size / fitting));
    fitting = Math.max(1, Math.floor(fitting / (chunk[d] as number)));
  }
  const bytes = (): number => elementSize * sizeOf(chunk);
  const unlimited = maxShape.flatMap((size, d) => (size === null ? [d] : [])).reverse();
  const isShort = (d: number): boolean => bytes() < LEAST_BYTES || (chunk[d] as number) < (shape[d] as number);
  for (let i = 0; 2 * bytes() <= MOST_BYTES && unlimited.some(isShort); i++) {
    const d = unlimited[i % unlimited.length] as number;
    if (isShort(d)) chunk[d] = (chunk[d] as number) * 2;
  }
  return chunk;
}

/** Refuses chunks that HDF5 has no room for. */
export function checkChunkBytes(chunk: readonly number[], elementSize: number): void {
  const bytes = elementSize * sizeOf(chunk);
  if (bytes > MOST_CHUNK_BYTES)
    throw new H5LogError(
      'UNSUPPORTED',
      `chunks ${describe(chunk)} of ${bytes} bytes; HDF5 has room for ${MOST_CHUNK_BYTES}`,
    );
}
