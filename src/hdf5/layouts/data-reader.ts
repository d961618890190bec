// The data of ordinary datasets, whatever their layout: boxes of elements, as they are in the file.

import { formatError, H5LogError } from '../../base/errors.ts';
import type { Codecs } from '../../filter/pipeline.ts';
import { type Boxes, boxAt, totalSize } from '../../space/box.ts';
import { fillWith, gather } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { UNDEFINED } from '../format/cursor.ts';
import type { ChunkCache, FileBytes } from '../format/file-bytes.ts';
import type { DatasetParts } from '../graph/dataset-header.ts';
import { ChunkReader } from './chunks/chunk-reader.ts';
import type { JoinedFiles } from './external.ts';
import { RowMajorReader } from './row-major.ts';

/** Reads boxes of a dataset. */
export interface DataReader {
  /** Reads boxes one after the other into `out`, each row-major, in the file's type. `isZero`: `out` is known to hold zeros. */
  read(boxes: Boxes, out: Uint8Array, isZero?: boolean): Io<void>;
}

/** What reading needs besides the file. */
interface DataOptions {
  readonly cache: ChunkCache;
  readonly codecs?: Codecs | undefined;
}

/** A reader for the data that a header describes. */
export function dataReader(file: FileBytes, parts: DatasetParts, options: DataOptions): DataReader {
  const { layout, space, type, filters } = parts;
  const shape = space.kind === 'simple' ? space.shape : [];
  // Whoever never writes fill values leaves what was never written as it is: zeros.
  const fill = parts.fill.isNeverWritten ? null : fillOf(parts);
  if (!layout || space.kind === 'null') return new FillReader(type.size, fill);
  switch (layout.kind) {
    case 'compact':
      if (layout.data.length < sizeOf(shape) * type.size)
        throw formatError(`compact data of ${layout.data.length} bytes for ${sizeOf(shape)} elements`);
      return new CompactReader(layout.data, shape, type.size);
    case 'contiguous':
      if (layout.address === UNDEFINED) return new FillReader(type.size, fill);
      file.mustHold(layout.address, sizeOf(shape) * type.size, 'data');
      return new ContiguousReader(file, layout.address, shape, type.size);
    case 'chunked': {
      const maxShape = space.kind === 'simple' ? space.maxShape : [];
      const data = { layout, shape, maxShape, filters, fill, size: type.size };
      return new ChunkReader(file, data, options.cache, options.codecs);
    }
    case 'virtual':
      throw new H5LogError('UNSUPPORTED', 'a virtual dataset has no data of its own');
  }
}

/** The fill value; null: zeros. One that does not fit its type is as good as none. */
export function fillOf({ fill, type }: DatasetParts): Uint8Array | null {
  return fill.value instanceof Uint8Array && fill.value.length === type.size ? fill.value : null;
}

/** Nothing is stored: everything is fill. */
class FillReader implements DataReader {
  readonly #size: number;
  readonly #fill: Uint8Array | null;

  constructor(size: number, fill: Uint8Array | null) {
    this.#size = size;
    this.#fill = fill;
  }

  // biome-ignore lint/correctness/useYield: other layouts read from the file
  *read(boxes: Boxes, out: Uint8Array, isZero = false): Io<void> {
    const total = totalSize(boxes);
    if (total > 0 && (this.#fill || !isZero)) fillWith(out, 0, total, this.#size, this.#fill);
  }
}

/** The data is in the header. */
class CompactReader implements DataReader {
  readonly #data: Uint8Array;
  readonly #shape: Float64Array;
  readonly #size: number;

  constructor(data: Uint8Array, shape: readonly number[], size: number) {
    this.#data = data;
    this.#shape = Float64Array.from(shape);
    this.#size = size;
  }

  // biome-ignore lint/correctness/useYield: other layouts read from the file
  *read(boxes: Boxes, out: Uint8Array): Io<void> {
    const { starts, counts, rank, length } = boxes;
    for (let i = 0, at = 0; i < length; i++)
      at = gather(this.#data, 0, this.#shape, starts, counts, this.#size, out, at, i * rank);
  }
}

/** One array, in the file or in others. */
export class ContiguousReader implements DataReader {
  readonly #file: FileBytes | JoinedFiles;
  readonly #address: number;
  readonly #shape: Float64Array;
  readonly #size: number;

  constructor(file: FileBytes | JoinedFiles, address: number, shape: readonly number[], size: number) {
    this.#file = file;
    this.#address = address;
    this.#shape = Float64Array.from(shape);
    this.#size = size;
  }

  *read(boxes: Boxes, out: Uint8Array): Io<void> {
    const plain = new RowMajorReader('data');
    const origin = new Float64Array(boxes.rank);
    for (let i = 0, at = 0; i < boxes.length; i++) {
      const { start, count } = boxAt(boxes, i);
      const elements = sizeOf(count);
      if (elements === 0) continue;
      const from = { shape: this.#shape, start };
      const to = { shape: count, start: origin };
      yield* plain.read(this.#file, this.#address, from, count, this.#size, out, at, to);
      at += elements * this.#size;
    }
  }
}
