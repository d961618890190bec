// Small blocks that were posted in another order than that of their elements: before a flush they are joined to as few blocks as cover
// them, with their data in that order. A flush of a million shuffled rows then writes one block in place of a million, whose table would
// have to be compressed now, and decoded, indexed and merged by every reader later.

import { advance, rowBoxes } from '../../space/box.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Arena, ArenaPool } from './arena.ts';
import type { PostedDataset } from './dataset.ts';
import { DatasetStage, type Stage } from './stage.ts';

/** Fewer blocks are written as they are: their table is small. */
const FEW_BLOCKS = 1024;
/** The data is copied only if so many times fewer blocks come of it. */
const FEWER = 8;
/** Up to so many elements between the first and the last one, for each that was posted: what is spread further does not join. */
const MOST_SPREAD = 2;
/** The copy is memory besides that of the posts: at most so much, or so much for each block, about what the table would take. */
const MOST_BYTES = 64 * 2 ** 20;
const MOST_BYTES_A_BLOCK = 64;
/** In any case so few that 32 bits number them: loops over a million blocks are twice as fast without fractions. */
const MOST_NUMBERED = 2 ** 30;
/** The copy is made in chunks of 4 MiB, the last one of a smaller power of two: thousands of datasets may have little each. */
const CHUNK_BITS = 22;
const CHUNK = 2 ** CHUNK_BITS;
const SMALLEST_CHUNK = 512;
/** More bytes or words than this are copied by a call, fewer by a loop. */
const LOOP = 32;

/**
 * Joins the blocks of each dataset if they are many and small, and cover most of one stretch of the dataset in row-major order. Who
 * reads them sees no difference. It is done when a flush is asked for: a flush that is begun again must find the same blocks, because
 * it writes the same bytes to the same places.
 */
export function joinPosts<D extends PostedDataset>(stages: Iterable<Stage<D>>): void {
  for (const stage of stages) for (const part of stage.datasets) if (!part.dataset.deleted) joinSmallBlocks(part);
}

function joinSmallBlocks<D extends PostedDataset>(stage: DatasetStage<D>): void {
  const { dataset, arena } = stage;
  const { elements, posts, shape } = dataset;
  const most = Math.max(MOST_BYTES, stage.length * MOST_BYTES_A_BLOCK);
  if (stage.length < FEW_BLOCKS || shape.length === 0 || elements.points || sizeOf(shape) > Number.MAX_SAFE_INTEGER)
    return;
  if (arena.held < arena.size || arena.size > most || stage.runs.some(({ shared }) => shared)) return;
  const found = reach(stage);
  if (!found) return;
  const { low, high } = found;
  const bytes = (high - low) * elements.size;
  if (bytes > Math.min(most, MOST_NUMBERED, MOST_SPREAD * arena.size) || (posts.hasLimit && !posts.hasRoom(bytes)))
    return;
  const lists = found.divided.length > 0 ? inRuns(stage, found) : stage;
  // A stretch is a block, or several where its ends are not whole rows.
  const ends = stretches(shape, lists, low, high, stage.length / FEWER / (2 * shape.length - 1));
  if (!ends) return;
  const joined = new DatasetStage(dataset, stage.owner, posts.pool);
  for (let i = 0; i < ends.length; i += 2) {
    for (const { start, count, size } of rowBoxes(shape, low + (ends[i] as number), low + (ends[i + 1] as number))) {
      joined.reserve(1);
      joined.starts.set(start, joined.length * shape.length);
      joined.counts.set(count, joined.length * shape.length);
      joined.accept(size * elements.size);
    }
  }
  const chunks = takeChunks(posts.pool, bytes);
  copyInOrder(dataset, arena, lists, low, chunks);
  let left = moveTogether(chunks, ends, elements.size);
  for (const chunk of chunks) {
    if (left > 0) joined.arena.adopt(chunk, Math.min(left, chunk.length));
    else posts.pool.give(chunk, true);
    left -= chunk.length;
  }
  joined.requests = stage.requests;
  joined.extent = stage.extent;
  posts.exchange(arena.held, joined.arena.held);
  stage.owner.set(joined);
  dataset.forgetStage(stage);
  stage.release(true);
}

function takeChunks(pool: ArenaPool, bytes: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let left = bytes; left > 0; left -= CHUNK) {
    let size = SMALLEST_CHUNK;
    while (size < CHUNK && size < left) size *= 2;
    chunks.push(pool.take(size));
  }
  return chunks;
}

/** Blocks in flat lists. */
type Lists = Pick<DatasetStage<PostedDataset>, 'starts' | 'counts' | 'length'>;

/** Where the blocks of a stage lie: positions are in row-major order. */
interface Reach {
  /** Of the first element of all blocks, and behind the last one. */
  readonly low: number;
  readonly high: number;
  /** Numbers of the blocks that are several runs of elements in that order, and how many runs these are. */
  readonly divided: readonly number[];
  readonly runs: number;
}

/**
 * null if a block lies outside of the shape, or if more than a few are divided: those are tiles or columns. A few come of neighbours
 * in another dimension that happen to be posted one after the other, and are one block since.
 */
function reach({ dataset: { shape }, starts, counts, length }: DatasetStage<PostedDataset>): Reach | null {
  const rank = shape.length;
  const divided: number[] = [];
  let runs = 0;
  let [low, high] = [Infinity, 0];
  for (let k = 0; k < length * rank; k += rank) {
    let position = 0;
    let size = 1;
    let isRun = true;
    for (let d = 0; d < rank; d++) {
      const whole = shape[d] as number;
      const count = counts[k + d] as number;
      const start = starts[k + d] as number;
      if (start + count > whole) return null;
      // Behind a dimension with several, all others are whole.
      if (size > 1 && count !== whole) isRun = false;
      size *= count;
      position = position * whole + start;
    }
    let end = position + size;
    if (!isRun) {
      divided.push(k / rank);
      runs += size / runSize(shape, counts, k);
      if (runs > length / FEWER) return null;
      end = 1;
      for (let d = 0, last = 0; d < rank; d++) {
        last = last * (shape[d] as number) + (starts[k + d] as number) + (counts[k + d] as number) - 1;
        end = last + 1;
      }
    }
    if (position < low) low = position;
    if (end > high) high = end;
  }
  return { low, high, divided, runs };
}

/** How many elements of a block lie one behind the other in the dataset. */
function runSize(shape: readonly number[], counts: Float64Array, k: number): number {
  let size = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    size *= counts[k + d] as number;
    if (counts[k + d] !== shape[d]) break;
  }
  return size;
}

/** The blocks, with their runs in place of those that are divided: the data has the same order. */
function inRuns(
  { dataset: { shape }, starts, counts, length }: DatasetStage<PostedDataset>,
  { divided, runs }: Reach,
): Lists {
  const rank = shape.length;
  const total = length - divided.length + runs;
  const lists = { starts: new Float64Array(total * rank), counts: new Float64Array(total * rank), length: total };
  let from = 0;
  let to = 0;
  for (const block of [...divided, length]) {
    lists.starts.set(starts.subarray(from * rank, block * rank), to);
    lists.counts.set(counts.subarray(from * rank, block * rank), to);
    to += (block - from) * rank;
    from = block + 1;
    if (block === length) break;
    const k = block * rank;
    const low = starts.slice(k, k + rank);
    const high = low.map((start, d) => start + (counts[k + d] as number));
    let outer = rank - 1;
    while (counts[k + outer] === shape[outer]) outer--;
    const at = low.slice();
    do {
      lists.starts.set(at, to);
      lists.counts.fill(1, to, to + outer);
      lists.counts.set(counts.subarray(k + outer, k + rank), to + outer);
      to += rank;
    } while (advance(at, low, high, outer));
  }
  return lists;
}

/** The stretches of posted elements, from and to by turns, counted from `low`; null if there are more than `most` of them. */
function stretches(
  shape: readonly number[],
  { starts, counts, length }: Lists,
  low: number,
  high: number,
  most: number,
): number[] | null {
  const rank = shape.length;
  // A bit for each element, and one that is never set at the end.
  const marks = new Int32Array(((high - low) >> 5) + 1);
  for (let k = 0; k < length * rank; k += rank) {
    let position = 0;
    let size = 1;
    for (let d = 0; d < rank; d++) {
      position = position * (shape[d] as number) + (starts[k + d] as number);
      size *= counts[k + d] as number;
    }
    const from = (position - low) | 0;
    let word = from >> 5;
    let first = from & 31;
    for (let end = first + size; end > 0; end -= 32, first = 0, word++)
      marks[word] = (marks[word] as number) | ((-1 << first) & (end >= 32 ? -1 : (1 << end) - 1));
  }
  const found: number[] = [];
  for (let word = 0, isInside = false; word < marks.length; word++) {
    let bits = isInside ? ~(marks[word] as number) : (marks[word] as number);
    while (bits !== 0) {
      // The lowest bit at which a stretch ends or begins.
      const bit = 31 - Math.clz32(bits & -bits);
      found.push(32 * word + bit);
      if (found.length > 2 * most) return null;
      isInside = !isInside;
      bits = ~bits & (-1 << bit);
    }
  }
  return found;
}

/** Copies what was posted into chunks, each element to its position from `low` on: in the order of posting, so that the last one counts. */
function copyInOrder(
  { shape, elements }: PostedDataset,
  arena: Arena,
  { starts, counts }: Lists,
  low: number,
  chunks: readonly Uint8Array[],
): void {
  const rank = shape.length;
  // Words where elements are made of them: not float64, which need not keep the bits of a NaN.
  const bits = elements.size % 4 === 0 ? 2 : 0;
  const wordsOf = ({ buffer, byteOffset, length }: Uint8Array): Int32Array | Uint8Array =>
    bits > 0 ? new Int32Array(buffer, byteOffset, length >> bits) : new Uint8Array(buffer, byteOffset, length);
  const targets = chunks.map(wordsOf);
  const chunkBits = CHUNK_BITS - bits;
  const inChunk = 1 << chunkBits;
  const wordsEach = elements.size >> bits;
  let block = 0;
  let done = 0;
  for (const { bytes } of arena.contents()) {
    const words = wordsOf(bytes);
    for (let at = 0; at < words.length; ) {
      let position = 0;
      let size = wordsEach;
      for (let d = 0, k = block * rank; d < rank; d++, k++) {
        position = position * (shape[d] as number) + (starts[k] as number);
        size *= counts[k] as number;
      }
      const to = (((position - low) | 0) * wordsEach + done) | 0;
      const inside = to & (inChunk - 1);
      const target = targets[to >> chunkBits] as Int32Array;
      // A block may lie in two parts of the arena, and reach into another chunk.
      const count = Math.min(size - done, words.length - at, inChunk - inside);
      if (count > LOOP) target.set(words.subarray(at, at + count), inside);
      else for (let i = 0; i < count; i++) target[inside + i] = words[at + i] as number;
      at += count;
      done += count;
      if (done < size) continue;
      block++;
      done = 0;
    }
  }
}

/**
 * Moves the stretches to the front of the chunks, one behind the other, and returns their bytes: who reads or writes a stage does so
 * part by part, and may look for a block from the first part on.
 */
function moveTogether(chunks: readonly Uint8Array[], ends: readonly number[], elementSize: number): number {
  let at = 0;
  for (let i = 0; i < ends.length; i += 2) {
    let from = (ends[i] as number) * elementSize;
    const to = (ends[i + 1] as number) * elementSize;
    if (from === at) from = at = to;
    while (from < to) {
      const source = chunks[from >> CHUNK_BITS] as Uint8Array;
      const target = chunks[at >> CHUNK_BITS] as Uint8Array;
      const [inSource, inTarget] = [from & (CHUNK - 1), at & (CHUNK - 1)];
      const count = Math.min(to - from, CHUNK - inSource, CHUNK - inTarget);
      if (source === target) target.copyWithin(inTarget, inSource, inSource + count);
      else target.set(source.subarray(inSource, inSource + count), inTarget);
      from += count;
      at += count;
    }
  }
  return at;
}
