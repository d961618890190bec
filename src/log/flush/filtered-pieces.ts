import { applyFilters } from '../../filter/apply.ts';
import { type Codecs, type FilterStep, withoutWaiting } from '../../filter/pipeline.ts';
import { type ChunkedExtent, defaultChunks } from '../../space/chunk-shape.ts';
import { gather } from '../../space/copy.ts';
import { ChunkWalk } from '../../space/grid.ts';
import { sizeOf } from '../../space/shape.ts';

/** Default chunks are not used where they would cut a block into pieces that have less than this on average. */
const LEAST_PIECE = 64 * 1024;

/** Unfiltered chunks of fewer bytes are not worth an entry each. */
const LEAST_CHUNK = 4096;

/** Whether unfiltered blocks should be cut at these chunks where a file publishes. */
export function isWorthCutting(chunks: readonly number[], elementSize: number): boolean {
  return elementSize * sizeOf(chunks) >= LEAST_CHUNK;
}

/** A box of a dataset with its data as the filters left it. The next piece may be filtered into the same bytes. */
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
  /** Two buffers in turn: one holds what a filter takes, the other what it makes. New ones for each piece would be megabytes of garbage. */
  readonly #buffers: [Uint8Array, Uint8Array] = [new Uint8Array(0), new Uint8Array(0)];
  #turn: 0 | 1 = 0;

  constructor(extent: ChunkedExtent, filters: readonly FilterStep[], codecs: Codecs | undefined) {
    this.#extent = extent;
    this.#chunk = extent.chunks ?? defaultChunks(extent);
    this.#filters = filters;
    this.#codecs = codecs;
  }

  readonly #room = (length: number): Uint8Array => {
    this.#turn = this.#turn === 0 ? 1 : 0;
    let buffer = this.#buffers[this.#turn];
    if (buffer.length < length) {
      buffer = new Uint8Array(length);
      this.#buffers[this.#turn] = buffer;
    }
    return buffer.subarray(0, length);
  };

  /** The pieces of a block. `next` gives so many of its bytes, which lie behind those that it gave before. */
  *pieces(
    start: Float64Array,
    count: Float64Array,
    next: (bytes: number) => Uint8Array,
  ): Generator<FilteredPiece, void, undefined> {
    const { elementSize, chunks } = this.#extent;
    let chunk = this.#chunk;
    let walk = new ChunkWalk(
      start.map((from, d) => from + (count[d] as number)),
      chunk,
    );
    let left = walk.begin(start, count, 0);
    // Where the grid begins.
    let origin = new Float64Array(start.length);
    if (!chunks && left > 1 && left * LEAST_PIECE > elementSize * sizeOf(count)) {
      const shape = [...count];
      chunk = defaultChunks({ shape, maxShape: shape, elementSize });
      walk = new ChunkWalk(count, chunk);
      left = walk.begin(origin, count, 0);
      origin = start.slice();
    }
    // The block is gone through in slabs along its slowest dimension: a large one need not lie in one buffer.
    const slow = count.findIndex((size) => size > 1);
    const slab = count.slice();
    let slabFrom = -1;
    let data: Uint8Array = new Uint8Array(0);
    for (; left > 0; left--, walk.next()) {
      const low = start.map((from, d) =>
        Math.max(from, (origin[d] as number) + (walk.cell[d] as number) * (chunk[d] as number)),
      );
      const size = low.map((from, d) => {
        const end = (origin[d] as number) + ((walk.cell[d] as number) + 1) * (chunk[d] as number);
        return Math.min(end, (start[d] as number) + (count[d] as number)) - from;
      });
      const inSlab = low.map((from, d) => from - (start[d] as number));
      const from = slow < 0 ? 0 : (low[slow] as number);
      if (slow >= 0) {
        slab[slow] = size[slow] as number;
        inSlab[slow] = 0;
      }
      if (from !== slabFrom) data = next(elementSize * sizeOf(slab));
      slabFrom = from;
      const packed = this.#room(elementSize * sizeOf(size));
      gather(data, 0, slab, inSlab, size, elementSize, packed, 0);
      const whole = { size: packed.length, elementSize, shape: size };
      // A flush lays its data out in one go, also the asynchronous one: it cannot wait for codecs.
      const filtered = applyFilters(packed, this.#filters, whole, this.#codecs, undefined, this.#room);
      yield { start: low, count: size, bytes: withoutWaiting(filtered) };
    }
  }
}
