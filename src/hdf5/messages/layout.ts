// The data layout message: where the raw data of a dataset is (HDF5 file format specification, IV.A.2.i). Versions 1 to 5 are
// read, version 3 is written, and version 4 where only that can say it.

import { sizeOf } from '../../space/shape.ts';
import { type Cursor, UNDEFINED } from '../format/cursor.ts';

/** Kind, address and parameters of a chunk index. */
export type ChunkIndex =
  | { readonly kind: 'btree1'; readonly address: number }
  | { readonly kind: 'single'; readonly address: number; readonly filtered: { size: number; mask: number } | null }
  | { readonly kind: 'implicit'; readonly address: number }
  | { readonly kind: 'fixedArray'; readonly address: number; readonly pageBits: number }
  | { readonly kind: 'extensibleArray' | 'btree2'; readonly address: number; readonly parameters: Uint8Array };

/** Where the raw data of a dataset is. An address is UNDEFINED if nothing was allocated yet. */
export type Layout =
  | { readonly kind: 'compact'; readonly data: Uint8Array }
  | { readonly kind: 'contiguous'; readonly address: number; readonly size: number }
  | {
      readonly kind: 'chunked';
      readonly chunk: readonly number[];
      readonly elementSize: number;
      readonly index: ChunkIndex;
      /** Chunks that reach beyond the shape are stored without filters. */
      readonly edgesUnfiltered?: true;
      /** Encoded as version 5, of HDF5 2.0, where sizes in chunk indexes always have 8 bytes. */
      readonly wideSizes?: true;
    }
  | { readonly kind: 'virtual'; readonly heap: number; readonly index: number };

/** Sizes of addresses and lengths in the file. */
export interface LayoutSizes {
  readonly addressSize: number;
  readonly lengthSize: number;
}

/** Parses versions 1 to 5. Version 5, of HDF5 2.0, differs only in the width of sizes in chunk indexes, which the indexes hold. */
export function parseLayout(cursor: Cursor, sizes: LayoutSizes): Layout {
  const version = cursor.u8();
  if (version < 1 || version > 5) cursor.fail(`layout version ${version} is not known`);
  if (version < 3) return parseOldLayout(cursor, sizes);
  const kind = cursor.u8();
  switch (kind) {
    case 0:
      return { kind: 'compact', data: cursor.take(cursor.u16(), 'compact data') };
    case 1:
      return { kind: 'contiguous', address: cursor.address(sizes.addressSize), size: cursor.uint(sizes.lengthSize) };
    case 2:
      return version === 3 ? parseChunked3(cursor, sizes) : parseChunked4(cursor, sizes);
    case 3:
      if (version > 3) return { kind: 'virtual', heap: cursor.address(sizes.addressSize), index: cursor.u32() };
      break;
  }
  return cursor.fail(`layout class ${kind} is not known`);
}

/** The number of dimensions of a chunk, one more than the dataset has: the last one is the element size. */
function chunkRank(cursor: Cursor): number {
  const rank = cursor.u8();
  if (rank < 2 || rank > 33) cursor.fail(`chunks of ${rank - 1} dimensions`);
  return rank;
}

function checkedChunk(cursor: Cursor, dims: number[]): number[] {
  if (dims.some((size) => size === 0)) cursor.fail('chunk with a dimension of 0');
  return dims;
}

function parseChunked3(cursor: Cursor, sizes: LayoutSizes): Layout {
  const rank = chunkRank(cursor);
  const address = cursor.address(sizes.addressSize);
  const dims: number[] = [];
  for (let d = 0; d < rank; d++) dims.push(cursor.u32());
  checkedChunk(cursor, dims);
  return {
    kind: 'chunked',
    chunk: dims.slice(0, -1),
    elementSize: dims[rank - 1] as number,
    index: { kind: 'btree1', address },
  };
}

function parseChunked4(cursor: Cursor, sizes: LayoutSizes): Layout {
  const flags = cursor.u8();
  const rank = chunkRank(cursor);
  const width = cursor.u8();
  if (width < 1 || width > 8) cursor.fail(`chunk sizes of ${width} bytes`);
  const dims: number[] = [];
  for (let d = 0; d < rank; d++) dims.push(cursor.uint(width));
  checkedChunk(cursor, dims);
  const kind = cursor.u8();
  const index = parseIndex(cursor, kind, flags, sizes);
  const chunked = { chunk: dims.slice(0, -1), elementSize: dims[rank - 1] as number, index };
  return { kind: 'chunked', ...chunked, ...(flags & 1 ? { edgesUnfiltered: true } : {}) };
}

function parseIndex(cursor: Cursor, kind: number, flags: number, sizes: LayoutSizes): ChunkIndex {
  switch (kind) {
    case 1: {
      const filtered = flags & 2 ? { size: cursor.uint(sizes.lengthSize), mask: cursor.u32() } : null;
      return { kind: 'single', filtered, address: cursor.address(sizes.addressSize) };
    }
    case 2:
      return { kind: 'implicit', address: cursor.address(sizes.addressSize) };
    case 3: {
      const pageBits = cursor.u8();
      return { kind: 'fixedArray', pageBits, address: cursor.address(sizes.addressSize) };
    }
    case 4:
    case 5: {
      const parameters = cursor.take(kind === 4 ? 5 : 6, 'chunk index parameters').slice();
      return {
        kind: kind === 4 ? 'extensibleArray' : 'btree2',
        parameters,
        address: cursor.address(sizes.addressSize),
      };
    }
    default:
      return cursor.fail(`chunk index ${kind} is not known`);
  }
}

/** Parses versions 1 and 2, of HDF5 before 1.6.3. */
function parseOldLayout(cursor: Cursor, sizes: LayoutSizes): Layout {
  const rank = cursor.u8();
  if (rank > 33) cursor.fail(`layout of ${rank} dimensions`);
  const kind = cursor.u8();
  cursor.skip(5);
  const address = kind === 0 ? UNDEFINED : cursor.address(sizes.addressSize);
  const dims: number[] = [];
  for (let d = 0; d < rank; d++) dims.push(cursor.u32());
  if (kind === 0) return { kind: 'compact', data: cursor.take(cursor.u32(), 'compact data') };
  if (kind === 1) {
    const size = sizeOf(dims);
    if (!Number.isSafeInteger(size)) cursor.fail(`data of ${size} bytes`);
    return { kind: 'contiguous', address, size };
  }
  if (kind !== 2 || rank < 2) return cursor.fail(`layout class ${kind} is not known`);
  checkedChunk(cursor, dims);
  return {
    kind: 'chunked',
    chunk: dims.slice(0, -1),
    elementSize: dims[rank - 1] as number,
    index: { kind: 'btree1', address },
  };
}
