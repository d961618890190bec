import type { NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import type { Io } from '../../storage/io.ts';
import { TwoBuffers } from '../output.ts';

/** Reserves space in the output. */
export interface Space {
  take(size: number): number;
}

/** A part of a dataset's raw data. What `from` and `to` count (elements or bytes) is up to the {@link RawData}. */
export interface Piece {
  readonly from: number;
  readonly to: number;
  /** Bytes of the dataset that it stands for. */
  readonly bytes: number;
}

/** Bytes to write: at a file offset, or, for a filtered chunk, whose size was not known before, wherever there is space. */
export interface Made {
  readonly bytes: Uint8Array;
  readonly at: number | null;
  /** The number of the chunk, if `at` is null. */
  readonly chunk: number;
}

/**
 * The raw data of one dataset of the output. Its pieces are independent: ranks make them in any order, each once.
 */
export interface RawData {
  /** Bytes of all pieces. */
  readonly total: number;
  pieces(): Iterable<Piece>;
  /** The bytes of a piece; none if it need not be written. They are valid until the buffers are reused. */
  make(piece: Piece, buffers: Buffers): Io<readonly Made[]>;
  /** Tells where a filtered chunk is written. */
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
