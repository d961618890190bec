// The chunk index that is changed by appending: a version 2 B-tree of chunks (record types 10 and 11). libhdf5 uses it for
// datasets with several unlimited dimensions, and reads it whatever the dimensions are.

import { formatError, H5LogError } from '../../../base/errors.ts';
import { sizeOf } from '../../../space/shape.ts';
import type { Io } from '../../../storage/io.ts';
import { ByteWriter, putU64, putUint } from '../../format/byte-writer.ts';
import { Cursor } from '../../format/cursor.ts';
import type { FileBytes } from '../../format/file-bytes.ts';
import type { Addressable, FileExtent } from '../../graph/object-node.ts';
import type { Layout } from '../../messages/layout.ts';
import { CHUNK_TREE, type CompareRecords, Records, RecordTree } from '../record-tree.ts';
import type { ChunkEntry, ChunkGrid, StoredChunk } from './chunk-index.ts';
import { sizeWidth } from './fixed-array.ts';

/** Chunks to be put, in place of those of the same cells, and cells whose chunks are removed. */
interface ChunkChanges {
  readonly put?: readonly ChunkEntry[];
  readonly remove?: readonly (readonly number[])[];
}

/** How the records of a tree look: address, with filters the size and the mask, then the cell. */
interface RecordFields {
  readonly rank: number;
  /** Width of the size of a filtered chunk; 0 if the chunks are not filtered. */
  readonly sizeBytes: number;
  /** Bytes of a chunk without filters. */
  readonly whole: number;
  readonly cellAt: number;
}

/**
 * A version 2 B-tree of chunks as it is in a file, or will be. Immutable: an edit gives another tree that shares the nodes that
 * did not change.
 *
 * @example
 * const next = yield* tree.edit({ put: [{ cell: [0, 3], address: extent, size: 4096, mask: 0 }] });
 * structure.extents.add(next.extent); // then the commit; once it is in the file:
 * next.committed(file);
 */
export class ChunkTree {
  readonly #tree: RecordTree;
  readonly #fields: RecordFields;
  readonly #compare: CompareRecords;

  private constructor(tree: RecordTree, fields: RecordFields, compare: CompareRecords) {
    this.#tree = tree;
    this.#fields = fields;
    this.#compare = compare;
  }

  /** A tree without chunks, as libhdf5 makes it. */
  static empty(grid: ChunkGrid, nodeSize: number = CHUNK_TREE.nodeSize): ChunkTree {
    const rank = grid.chunk.length;
    const whole = grid.elementSize * sizeOf(grid.chunk);
    const sizeBytes = grid.filtered ? sizeWidth(whole) : 0;
    const cellAt = 8 + (grid.filtered ? sizeBytes + 4 : 0);
    const compare = cellOrder(rank, cellAt);
    const format = { ...CHUNK_TREE, type: grid.filtered ? 11 : 10, nodeSize, recordSize: cellAt + 8 * rank };
    return new ChunkTree(RecordTree.empty(format, compare), { rank, sizeBytes, whole, cellAt }, compare);
  }

  /** Reads the header of a tree; nodes are read when they are needed. The widths are those of the file. */
  static *open(file: FileBytes, address: number, grid: ChunkGrid): Io<ChunkTree> {
    const rank = grid.chunk.length;
    const whole = grid.elementSize * sizeOf(grid.chunk);
    // The compare function needs the size of a record, which is only known once the header is read.
    let cellAt = 0;
    let order: CompareRecords = () => 0;
    const compare: CompareRecords = (a, i, b, j) => order(a, i, b, j);
    const tree = yield* RecordTree.open(file, address, [grid.filtered ? 11 : 10], compare);
    cellAt = tree.format.recordSize - 8 * rank;
    order = cellOrder(rank, cellAt);
    const sizeBytes = grid.filtered ? cellAt - file.addressSize - 4 : 0;
    if (grid.filtered ? sizeBytes < 1 || sizeBytes > 8 : cellAt !== file.addressSize)
      throw formatError(`a B-tree of chunks with records of ${tree.format.recordSize} bytes`, file.base + address);
    return new ChunkTree(tree, { rank, sizeBytes, whole, cellAt }, order);
  }

  /** The number of chunks. */
  get count(): number {
    return this.#tree.count;
  }

  /** The chunks of cells, which are given one after the other; null where there is none. */
  *find(cells: Float64Array): Io<(StoredChunk | null)[]> {
    const { rank, cellAt } = this.#fields;
    const key = new Uint8Array(cellAt + 8 * rank);
    const view = new DataView(key.buffer);
    const found: (StoredChunk | null)[] = [];
    for (let k = 0; k < cells.length; k += rank) {
      for (let d = 0; d < rank; d++) putU64(view, cellAt + 8 * d, cells[k + d] as number);
      const record = yield* this.#tree.find(key, 0);
      found.push(record && this.#decode(record, 0));
    }
    return found;
  }

  /** All chunks, in row-major order. */
  *all(): Io<StoredChunk[]> {
    const chunks: StoredChunk[] = [];
    yield* this.#tree.visit((records, i) => chunks.push(this.#decode(records, i)));
    return chunks;
  }

  #decode(records: Records, i: number): StoredChunk {
    const { rank, sizeBytes, whole, cellAt } = this.#fields;
    const at = i * records.size;
    const cursor = new Cursor(records.bytes, 0, at, at + records.size);
    const stored = cursor.address(cellAt - (sizeBytes > 0 ? sizeBytes + 4 : 0));
    const size = sizeBytes > 0 ? cursor.uint(sizeBytes) : whole;
    const mask = sizeBytes > 0 ? cursor.u32() : 0;
    const cell: number[] = [];
    for (let d = 0; d < rank; d++) cell.push(cursor.u64());
    return { cell, address: records.target(i)?.address ?? stored, size, mask };
  }

  /**
   * The tree with these changes; the same one if they change nothing. Of several chunks for one cell the last is put, also if the
   * cell is removed.
   */
  *edit({ put = [], remove = [] }: ChunkChanges): Io<ChunkTree> {
    const total = remove.length + put.length;
    if (total === 0) return this;
    const { rank, sizeBytes, cellAt } = this.#fields;
    const size = this.#tree.format.recordSize;
    const bytes = new Uint8Array(total * size);
    const view = new DataView(bytes.buffer);
    let targets: (Addressable | undefined)[] | null = null;
    let isSorted = true;
    for (let i = 0; i < total; i++) {
      const at = i * size;
      const chunk = put[i - remove.length];
      const cell = chunk?.cell ?? (remove[i] as readonly number[]);
      if (cell.length !== rank)
        throw new H5LogError('SHAPE', `a chunk of ${cell.length} dimensions instead of ${rank}`);
      for (let d = 0; d < rank; d++) putU64(view, at + cellAt + 8 * d, cell[d] as number);
      if (chunk) {
        if (typeof chunk.address === 'number') putU64(view, at, chunk.address);
        else {
          targets ??= new Array(total);
          targets[i] = chunk.address;
        }
        if (sizeBytes > 0) {
          if (chunk.size >= 256 ** sizeBytes)
            throw new H5LogError('UNSUPPORTED', `a chunk of ${chunk.size} bytes, for which its index has no room`);
          putUint(bytes, at + 8, chunk.size, sizeBytes);
          view.setUint32(at + 8 + sizeBytes, chunk.mask, true);
        }
      }
      isSorted &&= i === 0 || this.#compare(bytes, at - size, bytes, at) < 0;
    }
    const changes = { records: new Records(bytes, size, targets), removed: new Uint8Array(total) };
    changes.removed.fill(1, 0, remove.length);
    const tree = yield* this.#tree.edit(isSorted ? changes : this.#sorted(changes));
    return tree === this.#tree ? this : new ChunkTree(tree, this.#fields, this.#compare);
  }

  /** Changes in key order; of several with one key the last. */
  #sorted({ records, removed }: { records: Records; removed: Uint8Array }): { records: Records; removed: Uint8Array } {
    const { bytes, size, count } = records;
    const order = Uint32Array.from({ length: count }, (_, i) => i);
    order.sort((a, b) => this.#compare(bytes, a * size, bytes, b * size) || a - b);
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const next = i + 1 < count ? (order[i + 1] as number) : -1;
      const current = order[i] as number;
      if (next < 0 || this.#compare(bytes, current * size, bytes, next * size) !== 0) order[kept++] = current;
    }
    const sorted = new Uint8Array(kept * size);
    const flags = new Uint8Array(kept);
    const targets: (Addressable | undefined)[] = [];
    for (let i = 0; i < kept; i++) {
      const from = order[i] as number;
      sorted.set(bytes.subarray(from * size, (from + 1) * size), i * size);
      flags[i] = removed[from] as number;
      targets.push(records.target(from));
    }
    return { records: new Records(sorted, size, targets.some((target) => target) ? targets : null), removed: flags };
  }

  /** The tree without the chunks that lie outside of a grid of `counts` chunks. Reads all nodes. */
  *shrink(counts: readonly number[]): Io<ChunkTree> {
    const { rank, cellAt } = this.#fields;
    const remove: number[][] = [];
    yield* this.#tree.visit((records, i) => {
      const at = i * records.size + cellAt;
      for (let d = 0; d < rank; d++) {
        if (cellPart(records.bytes, at + 8 * d) < (counts[d] as number)) continue;
        remove.push(Array.from({ length: rank }, (_, e) => cellPart(records.bytes, at + 8 * e)));
        return;
      }
    });
    return yield* this.edit({ remove });
  }

  /**
   * What must be appended so that the file holds this tree: its header and the nodes that no commit wrote. The header comes
   * first: the address of the extent is the tree's. Chunks whose addresses are not assigned yet must be in the same commit.
   */
  get extent(): FileExtent {
    return this.#tree.extent;
  }

  /**
   * To be called once the commit that appended the extent is in the file. Without that everything stays right, but trees made of
   * this one append its nodes again.
   */
  committed(file: FileBytes): void {
    this.#tree.committed(file);
  }

  /** The layout of a dataset whose chunks the tree finds; the address of the index is that of the extent. */
  layout(chunk: readonly number[], elementSize: number, edgesUnfiltered = false): Layout & { kind: 'chunked' } {
    const { nodeSize, splitPercent, mergePercent } = this.#tree.format;
    const parameters = new ByteWriter(6).u32(nodeSize).u8(splitPercent).u8(mergePercent).done();
    const { sizeBytes, whole } = this.#fields;
    return {
      kind: 'chunked',
      chunk,
      elementSize,
      index: { kind: 'btree2', address: this.extent.address, parameters },
      ...(edgesUnfiltered ? { edgesUnfiltered } : {}),
      ...(sizeBytes > 0 && sizeBytes !== sizeWidth(whole) ? { wideSizes: true } : {}),
    };
  }
}

/** Compares cells in row-major order, as libhdf5 does. */
function cellOrder(rank: number, cellAt: number): CompareRecords {
  return (a, i, b, j) => {
    for (let d = 0, at = cellAt; d < rank; d++, at += 8) {
      const difference = cellPart(a, i + at) - cellPart(b, j + at);
      if (difference !== 0) return difference;
    }
    return 0;
  };
}

/** A coordinate of a cell. One beyond 2^53, which no dataset has, is rounded. */
function cellPart(bytes: Uint8Array, at: number): number {
  return word(bytes, at) + word(bytes, at + 4) * 2 ** 32;
}

function word(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16);
  return (low | ((bytes[at + 3] as number) << 24)) >>> 0;
}
