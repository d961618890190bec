import { H5LogError } from '../../base/errors.ts';
import { isContiguous, positionIn } from '../../space/box.ts';
import { sizeOf } from '../../space/shape.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { BlockIndex } from '../read/index.ts';
import { ChunkSurvey, commonGrid, type Extent, meetsShape, newestGrid } from './chunk-survey.ts';
import { type MappedPiece, mappedPieces } from './mapped-pieces.ts';

/** The way that a dataset becomes ordinary. */
export type LayoutPlan =
  | { readonly kind: 'empty'; readonly chunk: readonly number[] | null }
  | { readonly kind: 'contiguous'; readonly offset: number }
  | { readonly kind: 'chunks'; readonly survey: ChunkSurvey }
  | { readonly kind: 'virtual'; readonly pieces: readonly MappedPiece[] }
  | { readonly kind: 'copy' };

/** A chunk that we choose ourselves has about this many bytes. */
const CHUNK = 2 ** 20;
/** A found grid should not take blocks apart into smaller chunks than this: each is a lookup and a read. */
const LEAST_PART = 4096;
/** If the blocks are as small as that themselves, there must not be many. */
const LEAST_CHUNK = 512;
const FEW_CHUNKS = 4096;
const MOST_CHUNKS = 2 ** 21;
/** Steps that looking at a grid may take: one that the user chose, and one that was only found. */
const CHOSEN_VISITS = 2 ** 30;
const FOUND_VISITS = 2 ** 24;
/** libhdf5 keeps sizes of chunks in 32 bits. */
const MOST_CHUNK = 2 ** 32 - 1;

/** Chooses the way. `isLocal`: the data is in the file that is sealed, so that it can be pointed to. */
export function planLayout(dataset: LogDataset, index: BlockIndex, isLocal: boolean): LayoutPlan {
  const { shape, maxShape, filters, elements } = dataset;
  const rank = shape.length;
  const mayGrow = maxShape.some((size, d) => size !== shape[d]);
  const declared = dataset.chunks && rank > 0 ? fitting(dataset.chunks, maxShape) : null;
  const needsChunks = rank > 0 && (mayGrow || filters.length > 0);
  const chosen = declared ?? (needsChunks ? chunkShape(dataset) : null);
  const newest = newestBlock(index, shape);
  if (newest < 0) return { kind: 'empty', chunk: needsChunks || declared ? chosen : null };
  if (isLocal && !mayGrow) {
    const offset = wholeBlock(index, newest, shape, elements.size);
    if (offset !== null) return { kind: 'contiguous', offset };
  }
  if (rank === 0) return { kind: 'copy' };
  const extent: Extent = { shape, elementSize: elements.size, filtered: filters.length > 0, isLocal };
  const survey = isLocal ? bestGrid(index, extent, dataset, declared) : null;
  if (survey) return { kind: 'chunks', survey };
  const pieces = isLocal ? mappedPieces(index, shape, elements.size) : null;
  if (pieces) return { kind: 'virtual', pieces };
  if (!chosen) return { kind: 'copy' };
  const copied =
    ChunkSurvey.of(index, extent, chosen, CHOSEN_VISITS) ??
    ChunkSurvey.of(index, extent, chunkShape(dataset), CHOSEN_VISITS);
  if (copied) return { kind: 'chunks', survey: copied };
  if (!needsChunks) return { kind: 'copy' };
  throw new H5LogError('UNSUPPORTED', `[${shape.join(', ')}] has more chunks than can be listed`);
}

/** The newest block that lies in the dataset at all, or -1. */
function newestBlock(index: BlockIndex, shape: readonly number[]): number {
  for (let block = index.length - 1; block >= 0; block--) if (meetsShape(index, block, shape)) return block;
  return -1;
}

/** Where the whole dataset lies in one stretch of the newest block. */
function wholeBlock(index: BlockIndex, block: number, shape: readonly number[], size: number): number | null {
  const { rank, starts, counts, offsets, stored } = index;
  if (stored && (stored[block] as number) > 0) return null;
  const low = starts.subarray(block * rank, (block + 1) * rank);
  const own = counts.subarray(block * rank, (block + 1) * rank);
  if (!shape.every((n, d) => low[d] === 0 && (own[d] as number) >= n) || !isContiguous(own, shape)) return null;
  return (offsets[block] as number) + positionIn(own, low) * size;
}

/** A grid in which most cells are chunks as they are, or null. */
function bestGrid(
  index: BlockIndex,
  extent: Extent,
  { maxShape }: LogDataset,
  declared: readonly number[] | null,
): ChunkSurvey | null {
  const tried = new Set<string>();
  let best: ChunkSurvey | null = null;
  for (const candidate of candidates(index, extent, declared)) {
    const chunk = fitting(candidate, maxShape);
    const name = chunk.join();
    if (tried.has(name)) continue;
    tried.add(name);
    const survey = ChunkSurvey.of(index, extent, chunk, visitsFor(chunk, extent, index, candidate === declared));
    if (!survey || (candidate !== declared && isFine(survey)) || survey.chunkBytes > MOST_CHUNK) continue;
    // What does not fit into the grid is at most a quarter: the rest of the order of ways moves nothing, or everything.
    if (survey.inPlace > 0 && survey.mixed * 4 <= survey.cells * survey.chunkBytes) return survey;
    if (extent.filtered && (!best || survey.moving < best.moving)) best = survey;
  }
  // Streams can only be used as chunks; whatever grid saves most is taken.
  return best && (best.inPlace > 0 || declared) ? best : null;
}

/** Parts of blocks that are too small are not even looked at. */
function visitsFor(chunk: readonly number[], { elementSize }: Extent, { length }: BlockIndex, chosen: boolean): number {
  if (chosen) return CHOSEN_VISITS;
  const bytes = elementSize * sizeOf(chunk);
  return bytes < LEAST_PART ? Math.min(FOUND_VISITS, 4 * length + FEW_CHUNKS) : FOUND_VISITS;
}

/** A grid that was found, and whose chunks are too small or too many. */
function isFine({ chunkBytes, cells, blocks }: ChunkSurvey): boolean {
  if (chunkBytes < LEAST_PART && cells > 2 * blocks) return true;
  return (chunkBytes < LEAST_CHUNK && cells > FEW_CHUNKS) || cells > MOST_CHUNKS;
}

function* candidates(
  index: BlockIndex,
  extent: Extent,
  declared: readonly number[] | null,
): Generator<readonly number[], void, undefined> {
  if (declared) yield declared;
  const common = commonGrid(index, extent.shape);
  if (common) yield extent.filtered ? common : tamed(common, extent.elementSize);
  const newest = newestGrid(index, extent.shape);
  if (newest) yield extent.filtered ? newest : tamed(newest, extent.elementSize);
}

/** A large chunk in smaller ones of equal size: a part of its first dimension is still one stretch of it. */
function tamed(chunk: readonly number[], elementSize: number): readonly number[] {
  const bytes = elementSize * sizeOf(chunk);
  if (bytes <= 4 * CHUNK) return chunk;
  const d = chunk.findIndex((n) => n > 1);
  const n = chunk[d] as number;
  const row = bytes / n;
  let parts = Math.ceil(bytes / CHUNK);
  while (parts < n && n % parts !== 0) parts++;
  if (parts >= n && row < LEAST_CHUNK && bytes <= MOST_CHUNK) return chunk;
  const cut = chunk.slice();
  cut[d] = parts >= n ? 1 : n / parts;
  return row > MOST_CHUNK ? tamed(cut, elementSize) : cut;
}

/** No dimension of a chunk is larger than the dataset can become. */
function fitting(chunk: readonly number[], maxShape: readonly (number | null)[]): number[] {
  return chunk.map((size, d) => Math.max(1, Math.min(size, maxShape[d] ?? size)));
}

/** Whole rows, planes ... as long as they fit. */
function chunkShape({ shape, maxShape, elements }: LogDataset): number[] {
  const chunk: number[] = new Array(shape.length).fill(1);
  let left = Math.max(1, Math.floor(CHUNK / elements.size));
  for (let d = shape.length - 1; d >= 0; d--) {
    // A dimension that is still empty will grow.
    const size = (shape[d] as number) || Math.min(maxShape[d] ?? 1024, 1024) || 1;
    chunk[d] = Math.min(size, left);
    left = Math.max(1, Math.floor(left / (chunk[d] as number)));
  }
  return chunk;
}
