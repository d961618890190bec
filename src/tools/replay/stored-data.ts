import { formatError } from '../../base/errors.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { FileBytes } from '../../hdf5/format/file-bytes.ts';
import { readCollection } from '../../hdf5/format/global-heap.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { HeaderMessage } from '../../hdf5/graph/object-node.ts';
import { readChunkIndex, type StoredChunk } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { readSlots } from '../../hdf5/layouts/external.ts';
import {
  chunked,
  compact,
  contiguous,
  external as inOtherFiles,
  type NewLayout,
  unallocated,
  virtual,
} from '../../hdf5/layouts/new-dataset.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import type { Io } from '../../storage/io.ts';
import type { Buffers, Made, Piece, RawData, Space } from './raw-data.ts';

/** A piece may take this fraction of the memory, within the limits below. */
const FRACTION = 8;
const SMALLEST_LIMIT = 256 * 1024;
const LARGEST_LIMIT = 16 * 2 ** 20;

/** The data of an ordinary dataset: its bytes as they are stored, chunk by chunk. Pieces count these bytes. */
export class StoredData implements RawData {
  readonly total: number;
  readonly #file: FileBytes;
  readonly #pieceLimit: number;
  readonly #address: number;
  /** The stored chunks in the input, and the sum of the sizes before each. */
  readonly #spans: readonly { readonly address: number; readonly size: number }[];
  readonly #begins: Float64Array;
  readonly #layout: (address: number, begins: Float64Array) => NewLayout;

  private constructor(
    file: FileBytes,
    spans: readonly { readonly address: number; readonly size: number }[],
    layout: (address: number, begins: Float64Array) => NewLayout,
    memory: number,
    space: Space,
  ) {
    this.#file = file;
    this.#spans = spans;
    this.#layout = layout;
    this.#begins = new Float64Array(spans.length);
    let total = 0;
    spans.forEach(({ size }, i) => {
      this.#begins[i] = total;
      total += size;
    });
    this.total = total;
    this.#pieceLimit = Math.max(SMALLEST_LIMIT, Math.min(LARGEST_LIMIT, Math.floor(memory / FRACTION)));
    this.#address = total === 0 ? -1 : space.take(total);
  }

  /** `external` is the message of a dataset whose data is in other files, where it stays. */
  static *plan(
    file: FileBytes,
    path: string,
    parts: DatasetParts,
    external: HeaderMessage | undefined,
    memory: number,
    space: Space,
  ): Io<StoredData> {
    const { layout, type } = parts;
    const size = elementCount(parts.space) * type.size;
    const made = (
      spans: readonly { readonly address: number; readonly size: number }[],
      layoutOf: (address: number, begins: Float64Array) => NewLayout,
    ): StoredData => new StoredData(file, spans, layoutOf, memory, space);
    if (external) {
      const slots = yield* readSlots(file, external);
      return made([], () => inOtherFiles(slots));
    }
    if (layout?.kind === 'virtual') {
      const { objects } = yield* readCollection(file, layout.heap);
      const mappings = objects.get(layout.index)?.slice();
      if (!mappings) throw formatError(`${path}: its mappings are not in the heap`, file.base + layout.heap);
      return made([], () => virtual(mappings));
    }
    if (!layout || size === 0 || (layout.kind === 'contiguous' && layout.address === UNDEFINED)) {
      // An empty dataset keeps its chunk shape.
      if (layout?.kind === 'chunked') return made([], () => chunked(layout.chunk, []));
      return made([], () => unallocated);
    }
    switch (layout.kind) {
      case 'compact':
        return made([], () => compact(layout.data.slice()));
      case 'contiguous':
        if (layout.size < size)
          throw formatError(`${path}: ${layout.size} bytes of data where its shape asks for ${size}`);
        return made([{ address: layout.address, size }], (address) => contiguous(address));
      case 'chunked': {
        if (parts.space.kind !== 'simple') throw formatError(`${path} has chunks, but no dimensions`);
        const { shape, maxShape } = parts.space;
        const { chunk, elementSize, index, edgesUnfiltered } = layout;
        const grid = { maxShape, chunk, elementSize, filtered: parts.filters.length > 0 };
        const found = yield* readChunkIndex(file, index, grid);
        // Not every index can say that chunks at the edge have no filters; each of these chunks can.
        const isEdge = ({ cell }: StoredChunk): boolean =>
          cell.some((k, d) => (k + 1) * (chunk[d] as number) > (shape[d] as number));
        const mask = 2 ** parts.filters.length - 1;
        const chunks = edgesUnfiltered ? found.map((each) => (isEdge(each) ? { ...each, mask } : each)) : found;
        return made(chunks, (address, begins) =>
          chunked(
            chunk,
            chunks.map((each: StoredChunk, i) => ({ ...each, address: address + (begins[i] as number) })),
          ),
        );
      }
    }
  }

  *pieces(): Iterable<Piece> {
    for (let from = 0; from < this.total; from += this.#pieceLimit) {
      const to = Math.min(this.total, from + this.#pieceLimit);
      yield { from, to, bytes: to - from };
    }
  }

  *make({ from, to }: Piece, buffers: Buffers): Io<readonly Made[]> {
    const bytes = buffers.next(to - from);
    for (let i = this.#spanAt(from); i < this.#spans.length; i++) {
      const { address, size } = this.#spans[i] as { address: number; size: number };
      const begin = this.#begins[i] as number;
      if (begin >= to) break;
      const low = Math.max(from, begin);
      const high = Math.min(to, begin + size);
      yield* this.#file.readInto(bytes.subarray(low - from, high - from), address + low - begin, 'stored data');
    }
    return [{ bytes, at: this.#address + from, chunk: -1 }];
  }

  /** Index of the span that holds a byte. */
  #spanAt(byte: number): number {
    let low = 0;
    let high = this.#begins.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#begins[middle] as number) <= byte) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  placed(): void {}

  layout(): NewLayout {
    return this.#layout(this.#address, this.#begins);
  }

  release(): void {}
}
