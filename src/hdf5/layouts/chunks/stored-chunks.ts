import { formatError } from '../../../base/errors.ts';
import { cellOf, gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import type { Io } from '../../../storage/io.ts';
import { type Cursor, checkSum, UNDEFINED } from '../../format/cursor.ts';
import type { FileBytes } from '../../format/file-bytes.ts';
import type { ChunkIndex } from '../../messages/layout.ts';
import { readBtree2 } from '../../read/btree.ts';
import { Budget } from '../../read/budget.ts';
import { walkBtree1 } from '../../read/symbol-table.ts';
import { readExtensibleArray } from './extensible-array.ts';

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
