import { deflate } from '#platform';
import { applyFilters, type FilterStep } from '../../filter/pipeline.ts';
import { gather } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';

/** Without chunks, filtered data is cut into pieces of about this many bytes. */
const PIECE_BYTES = 2 ** 20;

/** A box of a dataset with its data as the filters left it. */
interface FilteredPiece {
  readonly start: Float64Array;
  readonly count: Float64Array;
  readonly bytes: Uint8Array;
}

/** Cuts a block at the chunk grid and filters each piece, so that a small read has little to inflate. */
export function* filteredPieces(
  start: Float64Array,
  count: Float64Array,
  data: Uint8Array,
  elementSize: number,
  chunks: readonly number[] | null,
  filters: readonly FilterStep[],
): Generator<FilteredPiece, void, undefined> {
  const rank = start.length;
  const grid = chunks ?? pieceShape(count, elementSize);
  // Without chunks the grid begins at the block, with them at the dataset's origin.
  const origin = chunks ? new Float64Array(rank) : start;
  const cell = new Float64Array(rank);
  const pieceStart = new Float64Array(rank);
  const pieceCount = new Float64Array(rank);
  const inBlock = new Float64Array(rank);
  const first = cellOf(start, origin, grid);
  cell.set(first);
  for (;;) {
    for (let d = 0; d < rank; d++) {
      const size = grid[d] as number;
      const low = (origin[d] as number) + (cell[d] as number) * size;
      const from = Math.max(low, start[d] as number);
      const to = Math.min(low + size, (start[d] as number) + (count[d] as number));
      pieceStart[d] = from;
      pieceCount[d] = to - from;
      inBlock[d] = from - (start[d] as number);
    }
    const size = elementSize * sizeOf(pieceCount);
    const packed = new Uint8Array(size);
    gather(data, 0, count, inBlock, pieceCount, elementSize, packed, 0);
    yield { start: pieceStart.slice(), count: pieceCount.slice(), bytes: applyFilters(packed, filters, deflate) };
    let d = rank - 1;
    for (; d >= 0; d--) {
      cell[d] = (cell[d] as number) + 1;
      const next = (origin[d] as number) + (cell[d] as number) * (grid[d] as number);
      if (next < (start[d] as number) + (count[d] as number)) break;
      cell[d] = first[d] as number;
    }
    if (d < 0) return;
  }
}

function cellOf(start: Float64Array, origin: Float64Array, grid: ArrayLike<number>): Float64Array {
  return start.map((s, d) => Math.floor((s - (origin[d] as number)) / (grid[d] as number)));
}

/** Whole rows, planes ... as long as they fit. */
function pieceShape(count: Float64Array, elementSize: number): number[] {
  const shape: number[] = new Array(count.length).fill(1);
  let left = Math.max(1, Math.floor(PIECE_BYTES / elementSize));
  for (let d = count.length - 1; d >= 0; d--) {
    shape[d] = Math.max(1, Math.min(count[d] as number, left));
    if ((shape[d] as number) < (count[d] as number)) break;
    left = Math.max(1, Math.floor(left / (shape[d] as number)));
  }
  return shape;
}
