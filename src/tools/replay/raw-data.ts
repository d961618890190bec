import type { NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import type { Io } from '../../storage/io.ts';
import { TwoBuffers } from '../output.ts';

/** Gives out places in the output. */
export interface Space {
  take(size: number): number;
}

/** A part of a dataset's raw data; what `from` and `to` count is the dataset's business. */
export interface Piece {
  readonly from: number;
  readonly to: number;
  /** Bytes of the dataset that it stands for. */
  readonly bytes: number;
}

/** Bytes to be written: at a place that was known before, or, for a chunk whose size was not, wherever there is room. */
export interface Made {
  readonly bytes: Uint8Array;
  readonly at: number | null;
  /** Which chunk it is, if the place is not known yet. */
  readonly chunk: number;
}

/**
 * The raw data of one dataset of the output. Its pieces do not depend on one another: any of them can be made by anybody, in any
 * order, as long as each is made once.
 */
export interface RawData {
  /** Bytes of all pieces. */
  readonly total: number;
  pieces(): Iterable<Piece>;
  /** What is in a piece; nothing for one that need not be written. The bytes are good until the buffers come round again. */
  make(piece: Piece, buffers: Buffers): Io<readonly Made[]>;
  /** Where a chunk without a place of its own was put. */
  placed(chunk: number, at: number, size: number): void;
  /** How the dataset finds its data, once every piece has its place. */
  layout(): NewLayout;
  /** Gives back what was only needed to make pieces. */
  release(): void;
}

/** Buffers that pieces are made in: two in turn for what is written, and two for what goes no further. */
export class Buffers extends TwoBuffers {
  readonly #own = { box: new Uint8Array(0), chunks: new Uint8Array(0) };

  /** For a box before it is cut into chunks, and for chunks before they are filtered. */
  scratch(use: 'box' | 'chunks', size: number): Uint8Array {
    if (this.#own[use].length < size) this.#own[use] = new Uint8Array(size);
    return this.#own[use].subarray(0, size);
  }
}
