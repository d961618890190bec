import { type Box, boxAt, boxesAt, countOf, positionIn } from '../../space/box.ts';
import { subtractMany } from '../../space/sets.ts';
import type { BlockIndex } from '../read/index.ts';
import { meetsShape } from './chunk-survey.ts';

/** More pieces than this make a virtual dataset slow to open. */
const MOST_PIECES = 4096;
/** A block under more newer ones than this is not worth to be clipped. */
const MOST_COVERS = 4096;
/** So many blocks are looked at, and so many that lie over them. */
const MOST_BLOCKS = 2 ** 18;
const MOST_WORK = 2 ** 22;

/** A part of a dataset that is seen of one block: stretches of elements from a byte of the file on. */
export interface MappedPiece {
  readonly start: readonly number[];
  readonly count: readonly number[];
  readonly offset: number;
  readonly runs: Runs;
}

/**
 * What is seen of each block, clipped where newer ones lie over it, so that no two pieces overlap. null if there are too many
 * pieces, or blocks whose bytes are not the elements themselves.
 */
export function mappedPieces(index: BlockIndex, shape: readonly number[], elementSize: number): MappedPiece[] | null {
  if (index.stored || index.length > MOST_BLOCKS) return null;
  const { rank, starts, counts } = index;
  const pieces: MappedPiece[] = [];
  let work = 0;
  for (let block = index.length - 1; block >= 0; block--) {
    if (!meetsShape(index, block, shape)) continue;
    const low = starts.slice(block * rank, (block + 1) * rank);
    const high = low.map((start, d) => Math.min(start + (counts[block * rank + d] as number), shape[d] as number));
    const over = index.query(low, high).filter((other) => other > block);
    work += over.length;
    if (over.length > MOST_COVERS || work > MOST_WORK) return null;
    const seen = subtractMany(low, countOf(low, high), boxesAt(index, over));
    for (let i = 0; i < seen.length; i++) if (!add(pieces, index, block, boxAt(seen, i), elementSize)) return null;
  }
  return pieces;
}

/** Adds a box of a block; one whose elements are not evenly spread in the block is taken apart. */
function add(pieces: MappedPiece[], index: BlockIndex, block: number, box: Box, elementSize: number): boolean {
  const { rank, starts, counts, offsets } = index;
  const shape = counts.subarray(block * rank, (block + 1) * rank);
  const runs = runsOf(shape, box.count);
  if (!runs) {
    const d = box.count.findIndex((n) => n > 1);
    const n = box.count[d] as number;
    for (let i = 0; i < n; i++) {
      const [start, count] = [box.start.slice(), box.count.slice()];
      start[d] = (start[d] as number) + i;
      count[d] = 1;
      if (!add(pieces, index, block, { start, count }, elementSize)) return false;
    }
    return true;
  }
  if (pieces.length === MOST_PIECES) return false;
  const inBlock = box.start.map((start, d) => start - (starts[block * rank + d] as number));
  const offset = (offsets[block] as number) + positionIn(shape, inBlock) * elementSize;
  pieces.push({ start: [...box.start], count: [...box.count], offset, runs });
  return true;
}

/*
 * A box inside a larger one, both in row-major order: as few stretches of elements as there are.
 */

type Numbers = ArrayLike<number>;

/** Stretches of `run` elements, `times` of them, one every `stride` elements. */
interface Runs {
  readonly run: number;
  readonly times: number;
  readonly stride: number;
}

/** The stretches of a box, or null if they do not follow one another at equal distances. */
function runsOf(shape: Numbers, count: Numbers): Runs | null {
  let run = 1;
  let [times, stride] = [1, 1];
  let step = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    const n = count[d] as number;
    if (n > 1) {
      if (times === 1 && step === run) run *= n;
      else if (times === 1) [times, stride] = [n, step];
      else if (times * stride === step) times *= n;
      else return null;
    }
    step *= shape[d] as number;
  }
  return { run, times, stride: times === 1 ? run : stride };
}
