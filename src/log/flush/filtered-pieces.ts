import { applyFilters, type Codecs, type FilterStep, withoutWaiting } from '../../filter/pipeline.ts';
import { type ChunkedExtent, defaultChunks } from '../../space/chunk-shape.ts';
import { gather } from '../../space/copy.ts';
import { ChunkWalk } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';

/** Default chunks are not used where they would cut a block into pieces that have less than this on average. */
const LEAST_PIECE = 64 * 1024;

/** A box of a dataset with its data as the filters left it. */
interface FilteredPiece {
  readonly start: Float64Array;
  readonly count: Float64Array;
  readonly bytes: Uint8Array;
}

/**
 * Cuts blocks of a dataset at the chunk grid and filters each piece: a small read has little to inflate, and a whole chunk can become
 * one of ordinary HDF5 as it is. Without declared chunks a block that the grid of default chunks would cut into small pieces is cut
 * as if it were a dataset of its own.
 */
export class BlockFilter {
  readonly #extent: ChunkedExtent;
  readonly #chunk: readonly number[];
  readonly #filters: readonly FilterStep[];
  readonly #codecs: Codecs | undefined;

  constructor(extent: ChunkedExtent, filters: readonly FilterStep[], codecs: Codecs | undefined) {
    this.#extent = extent;
    this.#chunk = extent.chunks ?? defaultChunks(extent);
    this.#filters = filters;
    this.#codecs = codecs;
  }

  *pieces(start: Float64Array, count: Float64Array, data: Uint8Array): Generator<FilteredPiece, void, undefined> {
    const { elementSize, chunks } = this.#extent;
    let chunk = this.#chunk;
    let walk = new ChunkWalk(
      start.map((from, d) => from + (count[d] as number)),
      chunk,
    );
    let left = walk.begin(start, count, 0);
    // Where the grid begins.
    let origin = new Float64Array(start.length);
    if (!chunks && left > 1 && left * LEAST_PIECE > data.length) {
      const shape = [...count];
      chunk = defaultChunks({ shape, maxShape: shape, elementSize });
      walk = new ChunkWalk(count, chunk);
      left = walk.begin(origin, count, 0);
      origin = start.slice();
    }
    for (; left > 0; left--, walk.next()) {
      const low = start.map((from, d) =>
        Math.max(from, (origin[d] as number) + (walk.cell[d] as number) * (chunk[d] as number)),
      );
      const size = low.map((from, d) => {
        const end = (origin[d] as number) + ((walk.cell[d] as number) + 1) * (chunk[d] as number);
        return Math.min(end, (start[d] as number) + (count[d] as number)) - from;
      });
      const packed = new Uint8Array(elementSize * sizeOf(size));
      const inBlock = low.map((from, d) => from - (start[d] as number));
      gather(data, 0, count, inBlock, size, elementSize, packed, 0);
      const whole = { size: packed.length, elementSize, shape: size };
      // A flush lays its data out in one go, also the asynchronous one: it cannot wait for codecs.
      const bytes = withoutWaiting(applyFilters(packed, this.#filters, whole, this.#codecs));
      yield { start: low, count: size, bytes };
    }
  }
}
