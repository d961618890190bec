// Chunk indexes: which chunks a dataset has and where (HDF5 file format specification, VII). Reads all six kinds of libhdf5 and
// builds those that a log needs once it is published; arrays are in files of their own, B-trees of version 1 and 2 are here.

import { formatError, H5LogError } from '../../../base/errors.ts';
import { positionIn } from '../../../space/box.ts';
import { cellOf, gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import type { Io } from '../../../storage/io.ts';
import { putU64 } from '../../format/byte-writer.ts';
import { UNDEFINED } from '../../format/cursor.ts';
import { Budget, type FileBytes } from '../../format/file-bytes.ts';
import { type Addressable, FileExtent } from '../../graph/object-node.ts';
import type { ChunkIndex } from '../../messages/layout.ts';
import { readBtree2, walkBtree1 } from '../../read/btree.ts';
import { readExtensibleArray } from './extensible-array.ts';
import { buildFixedArray, PAGE_BITS, readFixedArray, type VisitElement } from './fixed-array.ts';

/** A chunk in a file: its cell (coordinates in chunks), its address, its bytes there, and the filters that were left out. */
export interface StoredChunk {
  readonly cell: readonly number[];
  readonly address: number;
  readonly size: number;
  readonly mask: number;
}

/** A chunk for a new index; its address may still be assigned by the commit that writes the index. */
export type ChunkEntry = Omit<StoredChunk, 'address'> & { readonly address: number | Addressable };

/** What an index has to know of its dataset. */
export interface ChunkGrid {
  readonly maxShape: readonly (number | null)[];
  readonly chunk: readonly number[];
  readonly elementSize: number;
  readonly filtered: boolean;
}

/** What a new index has to know of its dataset and of the file. */
export interface NewChunkGrid extends ChunkGrid {
  readonly shape: readonly number[];
  /** Chunks to a node of a version 1 B-tree: twice the K of the file. */
  readonly fanout: number;
  /** For readers of HDF5 1.8, which know version 1 B-trees only. */
  readonly earliest?: boolean;
}

// ------------------------------------------------------------------ reading

/** Every chunk that an index leads to. */
export function* readChunkIndex(file: FileBytes, index: ChunkIndex, grid: ChunkGrid): Io<StoredChunk[]> {
  if (index.address === UNDEFINED) return [];
  switch (index.kind) {
    case 'single': {
      const { size, mask } = index.filtered ?? { size: chunkBytes(grid), mask: 0 };
      return [{ cell: grid.chunk.map(() => 0), address: index.address, size, mask }];
    }
    case 'implicit':
      return readImplicit(file, index.address, grid);
    case 'btree1':
      return yield* readChunkBtree1(file, index.address, grid);
    case 'fixedArray': {
      const chunks: StoredChunk[] = [];
      const counts = fixedCounts(grid);
      const visit = elementVisitor(file, grid, chunks, (i) => cellOf(i, counts));
      yield* readFixedArray(file, index.address, grid.filtered, sizeOf(counts), visit);
      return chunks;
    }
    case 'extensibleArray': {
      const chunks: StoredChunk[] = [];
      const visit = elementVisitor(file, grid, chunks, extensibleCells(grid));
      yield* readExtensibleArray(file, index.address, grid.filtered, visit);
      return chunks;
    }
    case 'btree2':
      return yield* readChunkBtree2(file, index.address, grid);
  }
}

/** The bytes of a chunk before any filter. */
export function chunkBytes({ chunk, elementSize }: ChunkGrid): number {
  return elementSize * sizeOf(chunk);
}

/** How many chunks there can be along each dimension. */
export function fixedCounts({ maxShape, chunk }: Pick<ChunkGrid, 'maxShape' | 'chunk'>): number[] {
  const sizes = maxShape.map((size) => {
    if (size === null) throw formatError('an index for a fixed number of chunks, although a dimension is unlimited');
    return size;
  });
  return gridOf(sizes, chunk);
}

/** All chunks of the maximum shape, one after the other in row-major order. */
function readImplicit(file: FileBytes, address: number, grid: ChunkGrid): StoredChunk[] {
  const counts = fixedCounts(grid);
  const size = chunkBytes(grid);
  const total = sizeOf(counts);
  if (address + total * size > file.end)
    throw formatError(`${total} chunks of ${size} bytes reach beyond the end of the file`, file.base + address);
  return Array.from({ length: total }, (_, i) => ({
    cell: cellOf(i, counts),
    address: address + i * size,
    size,
    mask: 0,
  }));
}

/** Adds the chunk that an array element describes to `chunks`; elements of chunks that were never written are skipped. */
function elementVisitor(
  file: FileBytes,
  grid: ChunkGrid,
  chunks: StoredChunk[],
  cellAt: (i: number) => number[],
): VisitElement {
  const whole = chunkBytes(grid);
  return (i, element, entrySize) => {
    const address = element.address(file.addressSize);
    if (address === UNDEFINED) return;
    const size = grid.filtered ? element.uint(entrySize - file.addressSize - 4) : whole;
    const mask = grid.filtered ? element.u32() : 0;
    chunks.push({ cell: cellAt(i), address, size, mask });
  };
}

/** Extensible arrays number chunks as if the unlimited dimension came first. */
function extensibleCells(grid: ChunkGrid): (i: number) => number[] {
  const unlimited = grid.maxShape.indexOf(null);
  if (unlimited < 0) throw formatError('an extensible array of chunks, although no dimension is unlimited');
  const maxShape = grid.maxShape.filter((_, d) => d !== unlimited);
  const chunk = grid.chunk.filter((_, d) => d !== unlimited);
  const counts = fixedCounts({ maxShape, chunk });
  const perRow = sizeOf(counts);
  return (i) => {
    const cell = cellOf(i % perRow, counts);
    cell.splice(unlimited, 0, Math.floor(i / perRow));
    return cell;
  };
}

function* readChunkBtree1(file: FileBytes, address: number, { chunk }: ChunkGrid): Io<StoredChunk[]> {
  const chunks: StoredChunk[] = [];
  const keySize = 8 + 8 * (chunk.length + 1);
  yield* walkBtree1(file, address, 1, keySize, new Budget(file), function* (key, child) {
    const size = key.u32();
    const mask = key.u32();
    const cell = chunk.map((n) => key.u64() / n);
    if (cell.some((c) => !Number.isInteger(c))) key.fail('a chunk that is not on the grid');
    chunks.push({ cell, address: child, size, mask });
    yield* [];
  });
  return chunks;
}

function* readChunkBtree2(file: FileBytes, address: number, grid: ChunkGrid): Io<StoredChunk[]> {
  const whole = chunkBytes(grid);
  const records = yield* readBtree2(file, address, [grid.filtered ? 11 : 10], new Budget(file));
  return records.map((record) => {
    const sizeBytes = record.left - file.addressSize - 4 - 8 * grid.chunk.length;
    const chunkAddress = record.address(file.addressSize);
    const size = grid.filtered ? record.uint(sizeBytes) : whole;
    const mask = grid.filtered ? record.u32() : 0;
    return { cell: grid.chunk.map(() => record.u64()), address: chunkAddress, size, mask };
  });
}

// ------------------------------------------------------------------ building

/** An index for a layout message. Its address is assigned with that of `extent`; without an extent it is complete. */
interface BuiltIndex {
  readonly index: ChunkIndex;
  readonly extent: FileExtent | null;
}

/**
 * A fixed array has an element for every chunk there may be. Beyond this many elements, and this many for each chunk that
 * exists, a B-tree is smaller.
 */
const LARGE_ARRAY = 2 ** 16;
const ELEMENTS_PER_CHUNK = 4;

/**
 * Builds the index of all chunks at once, of the kind libhdf5 would choose: one chunk alone, chunks one after the other in the
 * file, an array when the maximum size is fixed, else a version 1 B-tree; that also where an array would be nearly empty.
 */
export function buildChunkIndex(grid: NewChunkGrid, chunks: readonly ChunkEntry[]): BuiltIndex {
  if (grid.earliest || grid.maxShape.includes(null)) return buildBtree1(grid, chunks);
  const counts = fixedCounts(grid);
  const total = sizeOf(counts);
  if (total === 1 && grid.shape.every((size, d) => size === grid.maxShape[d])) return singleChunk(grid, chunks[0]);
  const first = firstInSequence(grid, chunks, counts);
  if (first !== null) return { index: { kind: 'implicit', address: first }, extent: null };
  if (total > LARGE_ARRAY && total > ELEMENTS_PER_CHUNK * chunks.length) return buildBtree1(grid, chunks);
  const numbers = chunks.map(({ cell }) => positionIn(counts, cell));
  const array = { total, filtered: grid.filtered, chunkBytes: chunkBytes(grid) };
  const extent = buildFixedArray(array, numbers, chunks);
  return { index: { kind: 'fixedArray', address: UNDEFINED, pageBits: PAGE_BITS }, extent };
}

function singleChunk({ filtered }: NewChunkGrid, chunk: ChunkEntry | undefined): BuiltIndex {
  const { address, size, mask } = chunk ?? { address: UNDEFINED, size: 0, mask: 0 };
  return {
    index: { kind: 'single', address: addressOf(address), filtered: filtered ? { size, mask } : null },
    extent: address instanceof FileExtent ? address : null,
  };
}

/** The address of the first chunk if all chunks exist, are unfiltered and lie in the file in row-major order; else null. */
function firstInSequence(grid: NewChunkGrid, chunks: readonly ChunkEntry[], counts: readonly number[]): number | null {
  const [first] = chunks;
  if (grid.filtered || !first || chunks.length !== sizeOf(counts)) return null;
  const { cell, address } = first;
  if (typeof address !== 'number' || cell.some((c) => c !== 0)) return null;
  const size = chunkBytes(grid);
  const inSequence = chunks.every((chunk) => chunk.address === address + positionIn(counts, chunk.cell) * size);
  return inSequence ? address : null;
}

function addressOf(address: number | Addressable): number {
  return typeof address === 'number' ? address : address.address;
}

// ------------------------------------------------------------------ version 1 B-tree

function compareChunks(a: ChunkEntry, b: ChunkEntry): number {
  for (let d = 0; d < a.cell.length; d++) {
    const difference = (a.cell[d] as number) - (b.cell[d] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

function buildBtree1(grid: NewChunkGrid, chunks: readonly ChunkEntry[]): BuiltIndex {
  if (chunks.length === 0) return { index: { kind: 'btree1', address: UNDEFINED }, extent: null };
  const { fanout } = grid;
  for (const chunk of chunks) {
    if (chunk.size > 0xffffffff)
      throw new H5LogError('UNSUPPORTED', `a chunk of ${chunk.size} bytes; at most 4 GiB are possible`);
  }
  const sorted = [...chunks].sort(compareChunks);
  const keySize = 8 + 8 * (grid.chunk.length + 1);
  const nodeSize = 24 + fanout * 8 + (fanout + 1) * keySize;
  const levels: number[] = [Math.ceil(sorted.length / fanout)];
  while ((levels[levels.length - 1] as number) > 1)
    levels.push(Math.ceil((levels[levels.length - 1] as number) / fanout));
  const nodes = levels.reduce((sum, n) => sum + n, 0);
  const extent: FileExtent = new FileExtent(nodes * nodeSize, () => [encode()]);

  function encode(): Uint8Array {
    const bytes = new Uint8Array(nodes * nodeSize);
    const view = new DataView(bytes.buffer);
    // The root comes first, so that the extent's address is the tree's; below it level by level.
    let nodeAt = 0;
    const firstOf: number[] = new Array(levels.length).fill(0);
    for (let level = levels.length - 1; level >= 0; level--) {
      firstOf[level] = nodeAt;
      nodeAt += levels[level] as number;
    }
    const addressOfNode = (level: number, i: number): number =>
      extent.address + ((firstOf[level] as number) + i) * nodeSize;
    for (let level = 0; level < levels.length; level++) {
      const perChild = fanout ** level;
      const count = levels[level] as number;
      for (let i = 0; i < count; i++) {
        const at = ((firstOf[level] as number) + i) * nodeSize;
        bytes.set([0x54, 0x52, 0x45, 0x45, 1, level], at);
        const from = i * fanout * perChild;
        const children = Math.min(fanout, Math.ceil((sorted.length - from) / perChild));
        view.setUint16(at + 6, children, true);
        putU64(view, at + 8, i > 0 ? addressOfNode(level, i - 1) : UNDEFINED);
        putU64(view, at + 16, i + 1 < count ? addressOfNode(level, i + 1) : UNDEFINED);
        let where = at + 24;
        for (let c = 0; c < children; c++) {
          const chunk = sorted[from + c * perChild] as ChunkEntry;
          where = putKey(view, where, chunk, grid, 0);
          putU64(view, where, level === 0 ? addressOf(chunk.address) : addressOfNode(level - 1, i * fanout + c));
          where += 8;
        }
        // The last key of a node is greater than that of every chunk in it.
        const next = sorted[from + children * perChild];
        if (next) putKey(view, where, next, grid, 0);
        else putKey(view, where, { ...(sorted[sorted.length - 1] as ChunkEntry), size: 0, mask: 0 }, grid, 1);
      }
    }
    return bytes;
  }
  return { index: { kind: 'btree1', address: UNDEFINED }, extent };
}

/** Writes the key of a chunk, or with `beyond` 1 a key behind it. Gives the position behind the key. */
function putKey(view: DataView, at: number, chunk: ChunkEntry, grid: ChunkGrid, beyond: 0 | 1): number {
  view.setUint32(at, chunk.size, true);
  view.setUint32(at + 4, chunk.mask, true);
  let where = at + 8;
  grid.chunk.forEach((size, d) => {
    putU64(view, where, ((chunk.cell[d] as number) + beyond) * size);
    where += 8;
  });
  putU64(view, where, beyond * grid.elementSize);
  return where + 8;
}
