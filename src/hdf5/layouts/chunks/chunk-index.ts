import { lookup3 } from '../../../base/checksum.ts';
import { formatError, H5LogError } from '../../../base/errors.ts';
import { cellOf, gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import type { Io } from '../../../storage/io.ts';
import { ByteWriter, putU64 } from '../../format/byte-writer.ts';
import { type Cursor, checkSum, UNDEFINED } from '../../format/cursor.ts';
import { Budget, type FileBytes } from '../../format/file-bytes.ts';
import { type Placed, Region } from '../../graph/object-node.ts';
import type { ChunkIndex } from '../../messages/layout.ts';
import { readBtree2, walkBtree1 } from '../../read/btree.ts';
import { readExtensibleArray } from './extensible-array.ts';

/** One stored chunk: which (coordinates in chunks, not elements), where, how many bytes, which filters were left out. */
export interface ChunkPlace {
  readonly at: readonly number[];
  readonly address: number | Placed;
  readonly size: number;
  readonly mask: number;
}

export interface ChunkGrid {
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly chunk: readonly number[];
  readonly elementSize: number;
  readonly filtered: boolean;
  /** Chunks to a node of a version 1 B-tree: twice the K of the file. */
  readonly fanout: number;
}

/** An index to be placed with the next commit; without a region, `index` is complete. */
export interface BuiltIndex {
  readonly index: ChunkIndex;
  readonly region: Region | null;
}

/** 2^10 elements to a page of a fixed array, as libhdf5 chooses. */
const PAGE_BITS = 10;

const addressOf = (address: number | Placed): number => (typeof address === 'number' ? address : address.address);

/** An array has a place for every chunk there may be. Beyond so many, and so many for each that is there, a tree is smaller. */
const MOST_PLACES = 2 ** 16;
const PLACES_PER_CHUNK = 4;

/**
 * Builds the index of all chunks at once, of the kind libhdf5 would choose: one chunk alone, chunks one after the other in the
 * file, an array when the maximum size is fixed, else a version 1 B-tree; that also where an array would be nearly empty.
 */
export function buildChunkIndex(grid: ChunkGrid, chunks: readonly ChunkPlace[]): BuiltIndex {
  const unlimited = grid.maxShape.some((size) => size === null);
  if (unlimited) return btree1(grid, chunks);
  const counts = grid.maxShape.map((size, d) => Math.ceil((size as number) / (grid.chunk[d] as number)));
  const total = sizeOf(counts);
  const first = chunks[0];
  if (total === 1 && grid.shape.every((size, d) => size === grid.maxShape[d])) {
    if (!first)
      return {
        index: { kind: 'single', address: UNDEFINED, filtered: grid.filtered ? { size: 0, mask: 0 } : null },
        region: null,
      };
    const filtered = grid.filtered ? { size: first.size, mask: first.mask } : null;
    return { index: { kind: 'single', address: addressOf(first.address), filtered }, region: regionOf(first.address) };
  }
  if (inSequence(grid, chunks, counts, total))
    return { index: { kind: 'implicit', address: addressOf((first as ChunkPlace).address) }, region: null };
  if (total > MOST_PLACES && total > PLACES_PER_CHUNK * chunks.length) return btree1(grid, chunks);
  return fixedArray(grid, chunks, counts, total);
}

const regionOf = (address: number | Placed): Region | null => (address instanceof Region ? address : null);

/** Unfiltered chunks, all there, at known addresses, lying in the file in the order of the grid. */
function inSequence(grid: ChunkGrid, chunks: readonly ChunkPlace[], counts: readonly number[], total: number): boolean {
  if (grid.filtered || chunks.length !== total || total === 0) return false;
  const bytes = grid.elementSize * sizeOf(grid.chunk);
  const first = chunks.find(({ at }) => at.every((c) => c === 0));
  if (!first || typeof first.address !== 'number' || first !== chunks[0]) return false;
  const base = first.address;
  return chunks.every((chunk) => chunk.address === base + position(chunk.at, counts) * bytes);
}

/** Row-major number of a chunk in its grid. */
function position(at: readonly number[], counts: readonly number[]): number {
  return at.reduce((sum, c, d) => sum * (counts[d] as number) + c, 0);
}

// ------------------------------------------------------------------ fixed array

function fixedArray(
  grid: ChunkGrid,
  chunks: readonly ChunkPlace[],
  counts: readonly number[],
  total: number,
): BuiltIndex {
  const chunkBytes = grid.elementSize * sizeOf(grid.chunk);
  // libhdf5 keeps one byte more than the unfiltered size needs, because filters may make a chunk larger.
  const sizeBytes = Math.min(8, 1 + Math.floor((Math.floor(Math.log2(chunkBytes)) + 8) / 8));
  const entry = grid.filtered ? 8 + sizeBytes + 4 : 8;
  const perPage = 2 ** PAGE_BITS;
  const pages = total > perPage ? Math.ceil(total / perPage) : 0;
  const header = 4 + 1 + 1 + 1 + 1 + 8 + 8 + 4;
  const prefix = 4 + 1 + 1 + 8 + (pages > 0 ? Math.ceil(pages / 8) : 0);
  const body = pages > 0 ? prefix + 4 + total * entry + pages * 4 : prefix + total * entry + 4;
  const region: Region = new Region(header + body, () => [encode()]);

  function encode(): Uint8Array {
    const at = region.address;
    const head = new ByteWriter(header)
      .text('FAHD')
      .u8(0)
      .u8(grid.filtered ? 1 : 0)
      .u8(entry)
      .u8(PAGE_BITS)
      .u64(total)
      .u64(at + header);
    head.u32(lookup3(head.done()));
    const bytes = new Uint8Array(header + body);
    bytes.set(head.done());
    const block = bytes.subarray(header);
    const start = new ByteWriter(prefix)
      .text('FADB')
      .u8(0)
      .u8(grid.filtered ? 1 : 0)
      .u64(at);
    block.set(start.done());
    const entryAt = entryPositions(prefix, entry, pages, perPage);
    const view = new DataView(bytes.buffer, header);
    for (let i = 0; i < total; i++) putU64(view, entryAt(i), UNDEFINED);
    for (const chunk of chunks) {
      const where = entryAt(position(chunk.at, counts));
      putU64(view, where, addressOf(chunk.address));
      if (!grid.filtered) continue;
      for (let b = 0, rest = chunk.size; b < sizeBytes; b++, rest = Math.floor(rest / 256))
        view.setUint8(where + 8 + b, rest % 256);
      view.setUint32(where + 8 + sizeBytes, chunk.mask, true);
    }
    if (pages === 0) view.setUint32(body - 4, lookup3(block, 0, body - 4), true);
    else sealPages(block, view, prefix, entry, total, perPage, pages);
    return bytes;
  }
  return { index: { kind: 'fixedArray', address: -1, pageBits: PAGE_BITS }, region };
}

/** Elements of a paged array lie in pages, each followed by its checksum; the block's own checksum comes before them. */
function entryPositions(prefix: number, entry: number, pages: number, perPage: number): (i: number) => number {
  if (pages === 0) return (i) => prefix + i * entry;
  return (i) => prefix + 4 + i * entry + Math.floor(i / perPage) * 4;
}

function sealPages(
  block: Uint8Array,
  view: DataView,
  prefix: number,
  entry: number,
  total: number,
  perPage: number,
  pages: number,
): void {
  // Which pages were ever written, most significant bit first.
  for (let page = 0; page < pages; page++) {
    const byte = 14 + (page >> 3);
    block[byte] = (block[byte] as number) | (0x80 >> (page & 7));
  }
  view.setUint32(prefix, lookup3(block, 0, prefix), true);
  let at = prefix + 4;
  for (let page = 0; page < pages; page++) {
    const size = Math.min(perPage, total - page * perPage) * entry;
    view.setUint32(at + size, lookup3(block, at, at + size), true);
    at += size + 4;
  }
}

// ------------------------------------------------------------------ version 1 B-tree

function compareChunks(a: ChunkPlace, b: ChunkPlace): number {
  for (let d = 0; d < a.at.length; d++) {
    const difference = (a.at[d] as number) - (b.at[d] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

function btree1(grid: ChunkGrid, chunks: readonly ChunkPlace[]): BuiltIndex {
  if (chunks.length === 0) return { index: { kind: 'btree1', address: UNDEFINED }, region: null };
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
  const region: Region = new Region(nodes * nodeSize, () => [encode()]);

  function encode(): Uint8Array {
    const bytes = new Uint8Array(nodes * nodeSize);
    const view = new DataView(bytes.buffer);
    // The root comes first, so that the region's address is the tree's; below it level by level.
    let nodeAt = 0;
    const firstOf: number[] = new Array(levels.length).fill(0);
    for (let level = levels.length - 1; level >= 0; level--) {
      firstOf[level] = nodeAt;
      nodeAt += levels[level] as number;
    }
    const addressOfNode = (level: number, i: number): number =>
      region.address + ((firstOf[level] as number) + i) * nodeSize;
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
          const chunk = sorted[from + c * perChild] as ChunkPlace;
          where = putKey(view, where, chunk, grid, 0);
          putU64(view, where, level === 0 ? addressOf(chunk.address) : addressOfNode(level - 1, i * fanout + c));
          where += 8;
        }
        // The last key lies behind every chunk of the node.
        const next = sorted[from + children * perChild];
        if (next) putKey(view, where, next, grid, 0);
        else putKey(view, where, { ...(sorted[sorted.length - 1] as ChunkPlace), size: 0, mask: 0 }, grid, 1);
      }
    }
    return bytes;
  }
  return { index: { kind: 'btree1', address: -1 }, region };
}

function putKey(view: DataView, at: number, chunk: ChunkPlace, grid: ChunkGrid, beyond: number): number {
  view.setUint32(at, chunk.size, true);
  view.setUint32(at + 4, chunk.mask, true);
  let where = at + 8;
  grid.chunk.forEach((size, d) => {
    putU64(view, where, ((chunk.at[d] as number) + beyond) * size);
    where += 8;
  });
  putU64(view, where, beyond * grid.elementSize);
  return where + 8;
}

/** A chunk as it lies in a file: where in the grid, where in the file, how many bytes, which filters were left out. */
export interface StoredChunk {
  readonly at: readonly number[];
  readonly address: number;
  readonly size: number;
  readonly mask: number;
}

export interface StoredGrid {
  readonly maxShape: readonly (number | null)[];
  readonly chunk: readonly number[];
  readonly elementSize: number;
  readonly filtered: boolean;
}

/** Every chunk that an index of libhdf5's leads to. */
export function* storedChunks(file: FileBytes, index: ChunkIndex, grid: StoredGrid): Io<StoredChunk[]> {
  if (index.address === UNDEFINED) return [];
  const size = grid.elementSize * sizeOf(grid.chunk);
  switch (index.kind) {
    case 'single': {
      const { size: stored, mask } = index.filtered ?? { size, mask: 0 };
      return [{ at: grid.chunk.map(() => 0), address: index.address, size: stored, mask }];
    }
    case 'implicit':
      return implicit(file, index.address, size, fixedGrid(grid));
    case 'btree1':
      return yield* fromBtree1(file, index.address, grid);
    case 'fixedArray':
      return yield* fromFixedArray(file, index.address, size, grid);
    case 'btree2':
      return yield* fromBtree2(file, index.address, size, grid);
    case 'extensibleArray':
      return yield* fromExtensibleArray(file, index.address, size, grid);
  }
}

/** How many chunks there can be along each dimension. */
function fixedGrid({ maxShape, chunk }: StoredGrid): number[] {
  const sizes = maxShape.map((size) => {
    if (size === null) throw formatError('an index for a fixed number of chunks, although a dimension is unlimited');
    return size;
  });
  return gridOf(sizes, chunk);
}

function implicit(file: FileBytes, address: number, size: number, counts: readonly number[]): StoredChunk[] {
  const total = sizeOf(counts);
  if (address + total * size > file.end)
    throw formatError(`${total} chunks of ${size} bytes reach beyond the end of the file`, file.base + address);
  return Array.from({ length: total }, (_, i) => ({
    at: cellOf(i, counts),
    address: address + i * size,
    size,
    mask: 0,
  }));
}

function* fromBtree1(file: FileBytes, address: number, { chunk }: StoredGrid): Io<StoredChunk[]> {
  const chunks: StoredChunk[] = [];
  const keySize = 8 + 8 * (chunk.length + 1);
  yield* walkBtree1(file, address, 1, keySize, new Budget(file), function* (key, child) {
    const size = key.u32();
    const mask = key.u32();
    const at = chunk.map((n) => key.u64() / n);
    if (at.some((c) => !Number.isInteger(c))) key.fail('a chunk that is not on the grid');
    chunks.push({ at, address: child, size, mask });
    yield* [];
  });
  return chunks;
}

function* fromBtree2(file: FileBytes, address: number, whole: number, grid: StoredGrid): Io<StoredChunk[]> {
  const records = yield* readBtree2(file, address, [grid.filtered ? 11 : 10], new Budget(file));
  return records.map((record) => {
    const sizeBytes = record.left - file.addressSize - 4 - 8 * grid.chunk.length;
    const place = record.address(file.addressSize);
    const size = grid.filtered ? record.uint(sizeBytes) : whole;
    const mask = grid.filtered ? record.u32() : 0;
    return { at: grid.chunk.map(() => record.u64()), address: place, size, mask };
  });
}

/** Chunks are numbered as if the unlimited dimension were the first. */
function* fromExtensibleArray(file: FileBytes, address: number, whole: number, grid: StoredGrid): Io<StoredChunk[]> {
  const unlimited = grid.maxShape.indexOf(null);
  const others = grid.maxShape.filter((_, d) => d !== unlimited);
  const chunk = grid.chunk.filter((_, d) => d !== unlimited);
  const counts = fixedGrid({ ...grid, maxShape: others, chunk });
  const perSlab = sizeOf(counts);
  const chunks: StoredChunk[] = [];
  yield* readExtensibleArray(file, address, grid.filtered ? 1 : 0, (i, element, entry) => {
    const place = element.address(file.addressSize);
    if (place === UNDEFINED) return;
    const size = grid.filtered ? element.uint(entry - file.addressSize - 4) : whole;
    const mask = grid.filtered ? element.u32() : 0;
    const at = cellOf(i % perSlab, counts);
    at.splice(unlimited, 0, Math.floor(i / perSlab));
    chunks.push({ at, address: place, size, mask });
  });
  return chunks;
}

/** A header, then all entries in one block, or in pages of which the first part says which were ever written. */
function* fromFixedArray(file: FileBytes, address: number, whole: number, grid: StoredGrid): Io<StoredChunk[]> {
  const counts = fixedGrid(grid);
  const head = yield* file.cursor(address, 8 + file.lengthSize + file.addressSize + 4, 'fixed array');
  head.signature('FAHD');
  head.expect(0, 'version of the fixed array');
  head.expect(grid.filtered ? 1 : 0, 'kind of the fixed array');
  const entry = head.u8();
  const perPage = 2 ** head.u8();
  const total = head.uint(file.lengthSize);
  const block = head.address(file.addressSize);
  checkSum(head, head.at, file.base + address);
  if (total !== sizeOf(counts))
    throw formatError(`a fixed array of ${total} chunks does not fit the dataset`, file.base + address);
  const least = file.addressSize + (grid.filtered ? 5 : 0);
  if (entry < least || entry > least + 7)
    throw formatError(`a fixed array with entries of ${entry} bytes`, file.base + address);
  const chunks: StoredChunk[] = [];
  if (block === UNDEFINED) return chunks;
  const take = (cursor: Cursor, from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      const place = cursor.address(file.addressSize);
      const size = grid.filtered ? cursor.uint(entry - file.addressSize - 4) : whole;
      const mask = grid.filtered ? cursor.u32() : 0;
      if (place !== UNDEFINED) chunks.push({ at: cellOf(i, counts), address: place, size, mask });
    }
  };
  const prefix = 6 + file.addressSize;
  if (total <= perPage) {
    const body = yield* file.cursor(block, prefix + total * entry + 4, 'fixed array');
    body.signature('FADB');
    checkSum(body, prefix + total * entry, file.base + block);
    body.at = prefix;
    take(body, 0, total);
    return chunks;
  }
  const pages = Math.ceil(total / perPage);
  const bitmap = Math.ceil(pages / 8);
  const start = yield* file.cursor(block, prefix + bitmap + 4, 'fixed array');
  start.signature('FADB');
  checkSum(start, prefix + bitmap, file.base + block);
  for (let page = 0; page < pages; page++) {
    if (((start.bytes[prefix + (page >> 3)] as number) & (0x80 >> (page & 7))) === 0) continue;
    const at = block + prefix + bitmap + 4 + page * (perPage * entry + 4);
    const length = Math.min(perPage, total - page * perPage);
    const body = yield* file.cursor(at, length * entry + 4, 'page of a fixed array');
    checkSum(body, length * entry, file.base + at);
    body.at = 0;
    take(body, page * perPage, page * perPage + length);
  }
  return chunks;
}
