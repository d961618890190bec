import { isContiguous, positionIn } from '../../space/box.ts';
import { fittingChunks, MOST_CHUNK_BYTES } from '../../space/chunk-shape.ts';
import { sizeOf } from '../../space/shape.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { BlockIndex } from '../read/index.ts';
import { ChunkSurvey, commonGrid, meetsShape, newestGrid, type SurveyedExtent } from './chunk-survey.ts';

/** Chunks are cut to about this many bytes. */
const CHUNK = 2 ** 20;
/** A found grid should not take blocks apart into smaller chunks than this: each is a lookup and a read. */
const LEAST_PART = 4096;
/** If the blocks are as small as that themselves, there must not be many. */
const LEAST_CHUNK = 512;
const FEW_CHUNKS = 4096;
const MOST_CHUNKS = 2 ** 21;
/** Steps that looking at a grid may take: one that the user chose, and one that was only found. */
export const CHOSEN_VISITS = 2 ** 30;
const FOUND_VISITS = 2 ** 24;

/** The newest block that lies in the dataset at all, or -1. */
export function newestBlock(index: BlockIndex, shape: readonly number[]): number {
  for (let block = index.length - 1; block >= 0; block--) if (meetsShape(index, block, shape)) return block;
  return -1;
}

/** Where the whole dataset lies in one stretch of the newest block. */
export function wholeBlock(index: BlockIndex, block: number, shape: readonly number[], size: number): number | null {
  const { rank, starts, counts, offsets, stored } = index;
  if (stored && (stored[block] as number) > 0) return null;
  const low = starts.subarray(block * rank, (block + 1) * rank);
  const own = counts.subarray(block * rank, (block + 1) * rank);
  if (!shape.every((n, d) => low[d] === 0 && (own[d] as number) >= n) || !isContiguous(own, shape)) return null;
  return (offsets[block] as number) + positionIn(own, low) * size;
}

/**
 * A survey in which most chunks are in the file as they are, or null. `chosen` is the chunk shape without a look at the blocks; chunks of
 * a grid that was only found have at least so many bytes, unless there is one alone.
 */
export function bestGrid(
  index: BlockIndex,
  extent: SurveyedExtent,
  { chunks, maxShape }: LogDataset,
  chosen: readonly number[] | null,
  least = 0,
): ChunkSurvey | null {
  // Filtered blocks are cut at the default chunks.
  const wanted = chunks || extent.filtered ? chosen : null;
  const tried = new Set<string>();
  let best: ChunkSurvey | null = null;
  for (const candidate of candidates(index, extent, wanted)) {
    const chunk = fittingChunks(candidate, maxShape);
    const name = chunk.join();
    if (tried.has(name)) continue;
    tried.add(name);
    const survey = ChunkSurvey.of(index, extent, chunk, visitsFor(chunk, extent, index, candidate === wanted));
    if (
      !survey ||
      (candidate !== wanted && (isFine(survey) || survey.chunkBytes < least)) ||
      survey.chunkBytes > MOST_CHUNK_BYTES
    )
      continue;
    // At most a quarter is copied: of the other ways, virtual datasets copy nothing, and the last one everything.
    if (survey.inPlace > 0 && survey.mixed * 4 <= survey.chunks * survey.chunkBytes) return survey;
    if (extent.filtered && (!best || survey.moving < best.moving)) best = survey;
  }
  // Filtered blocks can only be used as chunks: the grid that saves most is taken.
  return best && (best.inPlace > 0 || chunks) ? best : null;
}

/** Steps that a survey may take: few for a grid that would cut blocks into parts that are too small. */
function visitsFor(
  chunk: readonly number[],
  { elementSize }: SurveyedExtent,
  { length }: BlockIndex,
  isChosen: boolean,
): number {
  if (isChosen) return CHOSEN_VISITS;
  const bytes = elementSize * sizeOf(chunk);
  return bytes < LEAST_PART ? Math.min(FOUND_VISITS, 4 * length + FEW_CHUNKS) : FOUND_VISITS;
}

/** Whether the chunks of a grid that was found are too small or too many. */
function isFine({ chunkBytes, chunks, blocks }: ChunkSurvey): boolean {
  if (chunkBytes < LEAST_PART && chunks > 2 * blocks) return true;
  return (chunkBytes < LEAST_CHUNK && chunks > FEW_CHUNKS) || chunks > MOST_CHUNKS;
}

function* candidates(
  index: BlockIndex,
  extent: SurveyedExtent,
  wanted: readonly number[] | null,
): Generator<readonly number[], void, undefined> {
  if (wanted) yield wanted;
  const common = commonGrid(index, extent.shape);
  if (common) yield extent.filtered ? common : inSmallerChunks(common, extent.elementSize);
  const newest = newestGrid(index, extent.shape);
  if (newest) yield extent.filtered ? newest : inSmallerChunks(newest, extent.elementSize);
}

/** Cuts chunks of more than 4 MiB into equal parts along their first dimension: these are still contiguous in a block. */
function inSmallerChunks(chunk: readonly number[], elementSize: number): readonly number[] {
  const bytes = elementSize * sizeOf(chunk);
  if (bytes <= 4 * CHUNK) return chunk;
  const d = chunk.findIndex((n) => n > 1);
  const n = chunk[d] as number;
  const row = bytes / n;
  let parts = Math.ceil(bytes / CHUNK);
  while (parts < n && n % parts !== 0) parts++;
  if (parts >= n && row < LEAST_CHUNK && bytes <= MOST_CHUNK_BYTES) return chunk;
  const cut = chunk.slice();
  cut[d] = parts >= n ? 1 : n / parts;
  return row > MOST_CHUNK_BYTES ? inSmallerChunks(cut, elementSize) : cut;
}
