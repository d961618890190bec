import type { BlockIndex } from '../../log/read/index.ts';
import { clipInto, covers, endOf, halves, totalSize } from '../../space/box.ts';
import { subtractMany } from '../../space/sets.ts';
import { sizeOf } from '../../space/shape.ts';

/** Up to so many blocks in a box are cut out of one another; beyond, and in small boxes, elements are ticked off. */
const COMPARED = 16;
const SMALL = 2 ** 16;

/**
 * How many elements of each block can be seen inside a shape: those that no newer block covers. The box of the whole shape is halved until
 * few blocks meet in it, so that neither many blocks nor many versions of the same elements are compared each with each.
 */
export function visibleElements(index: BlockIndex, shape: readonly number[]): Float64Array {
  const seen = new Float64Array(index.length);
  if (index.length === 0) return seen;
  if (shape.length === 0) {
    seen[index.length - 1] = 1;
    return seen;
  }
  if (shape.some((size) => size === 0)) return seen;
  const open: { start: Float64Array; count: Float64Array }[] = [
    { start: new Float64Array(shape.length), count: Float64Array.from(shape) },
  ];
  for (let box = open.pop(); box; box = open.pop()) {
    const { start, count } = box;
    const high = endOf(start, count);
    const blocks = index.query(start, high);
    if (blocks.length === 0) continue;
    const size = sizeOf(count);
    const newest = blocks[blocks.length - 1] as number;
    if (covers(index.starts, index.counts, newest * index.rank, index.rank, start, high))
      seen[newest] = (seen[newest] as number) + size;
    else if (blocks.length <= COMPARED) cut(index, blocks, start, high, seen);
    else if (size <= SMALL) tick(index, blocks, start, count, size, seen);
    else {
      const { first, later, second } = halves(start, count);
      open.push({ start, count: first }, { start: later, count: second });
    }
  }
  return seen;
}

/** Newest first: what is left of a block when all newer ones are taken away. */
function cut(index: BlockIndex, blocks: Uint32Array, low: Float64Array, high: Float64Array, seen: Float64Array): void {
  const { rank } = index;
  const n = blocks.length;
  const starts = new Float64Array(n * rank);
  const counts = new Float64Array(n * rank);
  for (let i = 0; i < n; i++) {
    const block = blocks[n - 1 - i] as number;
    clipInto(index.starts, index.counts, block * rank, rank, low, high, starts, counts, i * rank);
    const left = subtractMany(starts, counts, { rank, length: i, starts, counts }, i * rank);
    seen[block] = (seen[block] as number) + totalSize(left);
  }
}

/** Ticks elements off from the newest block on, until none is left. */
function tick(
  index: BlockIndex,
  blocks: Uint32Array,
  start: Float64Array,
  count: Float64Array,
  size: number,
  seen: Float64Array,
): void {
  const { rank } = index;
  const ticks = new Uint8Array(size);
  const high = endOf(start, count);
  const [starts, counts, at] = [new Float64Array(rank), new Float64Array(rank), new Float64Array(rank)];
  let left = size;
  for (let i = blocks.length - 1; i >= 0 && left > 0; i--) {
    const block = blocks[i] as number;
    clipInto(index.starts, index.counts, block * rank, rank, start, high, starts, counts, 0);
    const row = counts[rank - 1] as number;
    let rows = 1;
    for (let d = 0; d < rank - 1; d++) rows *= counts[d] as number;
    at.fill(0);
    let fresh = 0;
    for (let r = 0; r < rows; r++) {
      let from = 0;
      for (let d = 0; d < rank; d++)
        from = from * (count[d] as number) + (starts[d] as number) - (start[d] as number) + (at[d] as number);
      for (let k = from; k < from + row; k++) {
        if (ticks[k] === 0) fresh++;
        ticks[k] = 1;
      }
      for (let d = rank - 2; d >= 0; d--) {
        at[d] = (at[d] as number) + 1;
        if ((at[d] as number) < (counts[d] as number)) break;
        at[d] = 0;
      }
    }
    left -= fresh;
    seen[block] = (seen[block] as number) + fresh;
  }
}
