// Serialized selections (HDF5 file format specification, III.G): which elements a mapping of a virtual dataset or a region reference
// means. All versions are read.

import { formatError, H5LogError } from '../../base/errors.ts';
import type { Boxes } from '../../space/box.ts';
import { BoxList } from '../../space/box-list.ts';
import { boxesExpression } from '../../space/expression.ts';
import type { PointList } from '../../space/points.ts';
import { Selected, type Selection, select } from '../../space/select.ts';
import { MAX_RANK } from '../../space/shape.ts';
import type { RegularSlab } from '../../space/slab.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { type Cursor, UNDEFINED } from '../format/cursor.ts';

/** A selection as a file stores it. A slab may have an infinite count or block in the dimension `unlimited`; -1: it has none. */
export type StoredSelection =
  | { readonly kind: 'none' | 'all' }
  | { readonly kind: 'slab'; readonly slab: RegularSlab; readonly unlimited: number }
  | { readonly kind: 'boxes'; readonly boxes: BoxList }
  | { readonly kind: 'points'; readonly points: PointList };

/** A selection for users. That of a whole dataset depends on its shape, if that is known. */
export function selectionOf(stored: StoredSelection, shape: readonly number[] | null): Selection {
  switch (stored.kind) {
    case 'none':
      return select.none();
    case 'all':
      return shape ? select.box(new Float64Array(shape.length), shape) : select.all();
    case 'slab': {
      const { start, count, step, block } = stored.slab;
      if (stored.unlimited >= 0) throw formatError('a region without an end');
      return select.hyperslab({ start, count, stride: step, block });
    }
    case 'boxes':
      return new Selected(boxesExpression(stored.boxes, false));
    case 'points':
      return select.points(stored.points.at, stored.points.rank);
  }
}

/** Encodes boxes, as a list of blocks: version 1. */
export function encodeSelection({ rank, length, starts, counts }: Boxes): Uint8Array {
  const out = new ByteWriter(24 + length * rank * 8).u32(2).u32(1).u32(0);
  out
    .u32(8 + length * rank * 8)
    .u32(rank)
    .u32(length);
  for (let i = 0; i < length; i++) {
    for (let d = i * rank; d < (i + 1) * rank; d++) out.u32(starts[d] as number);
    for (let d = i * rank; d < (i + 1) * rank; d++) {
      const last = (starts[d] as number) + (counts[d] as number) - 1;
      if (last > 0xffffffff) throw new H5LogError('UNSUPPORTED', `a region that reaches element ${last}`);
      out.u32(last);
    }
  }
  return out.done();
}

const NONE: StoredSelection = { kind: 'none' };

/** Parses a selection; the cursor ends behind it. */
export function parseSelection(cursor: Cursor): StoredSelection {
  const type = cursor.u32();
  const version = cursor.u32();
  switch (type) {
    case 0:
    case 3:
      if (version !== 1) break;
      cursor.skip(8);
      return type === 0 ? NONE : { kind: 'all' };
    case 1:
      if (version === 1) cursor.skip(8);
      else if (version !== 2) break;
      return parsePoints(cursor, version === 1 ? 4 : width(cursor));
    case 2: {
      if (version === 1) {
        cursor.skip(8);
        return parseBlocks(cursor, rankOf(cursor), 4);
      }
      if (version > 3) break;
      const isRegular = (cursor.u8() & 1) !== 0;
      const bytes = version === 3 ? width(cursor) : 8;
      if (version === 2) cursor.skip(4);
      const rank = rankOf(cursor);
      return isRegular ? parseSlab(cursor, rank, bytes) : parseBlocks(cursor, rank, bytes);
    }
  }
  return cursor.fail(`selection of type ${type}, version ${version}, is not known`);
}

/** The bytes of each number. */
function width(cursor: Cursor): number {
  const bytes = cursor.u8();
  if (bytes !== 2 && bytes !== 4 && bytes !== 8) cursor.fail(`selection with numbers of ${bytes} bytes`);
  return bytes;
}

function rankOf(cursor: Cursor): number {
  const rank = cursor.u32();
  if (rank < 1 || rank > MAX_RANK) cursor.fail(`selection of ${rank} dimensions`);
  return rank;
}

/** A count that the bytes which follow bear out. */
function countOf(cursor: Cursor, bytes: number, each: number): number {
  const count = cursor.uint(bytes);
  if (count * each > cursor.left) cursor.fail(`selection of ${count} parts in ${cursor.left} bytes`);
  return count;
}

function parsePoints(cursor: Cursor, bytes: number): StoredSelection {
  const rank = rankOf(cursor);
  const length = countOf(cursor, bytes, rank * bytes);
  const at = new Float64Array(length * rank);
  for (let i = 0; i < at.length; i++) at[i] = cursor.uint(bytes);
  return length === 0 ? NONE : { kind: 'points', points: { rank, length, at } };
}

/** The corners of blocks; the second corner belongs to the block. */
function parseBlocks(cursor: Cursor, rank: number, bytes: number): StoredSelection {
  const length = countOf(cursor, bytes, 2 * rank * bytes);
  const boxes = new BoxList(rank, length);
  for (let i = 0; i < length; i++) {
    for (let d = 0; d < rank; d++) boxes.lo[i * rank + d] = cursor.uint(bytes);
    for (let d = 0; d < rank; d++) {
      const last = cursor.uint(bytes);
      if (last < (boxes.lo[i * rank + d] as number)) cursor.fail('block that ends before it begins');
      boxes.hi[i * rank + d] = last + 1;
    }
  }
  boxes.length = length;
  if (length === 0) return NONE;
  const slab = slabOf(boxes);
  return slab ? { kind: 'slab', slab, unlimited: -1 } : { kind: 'boxes', boxes };
}

function parseSlab(cursor: Cursor, rank: number, bytes: number): StoredSelection {
  const [start, step, count, block] = Array.from({ length: 4 }, () => new Float64Array(rank)) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  let unlimited = -1;
  let isEmpty = false;
  for (let d = 0; d < rank; d++) {
    start[d] = cursor.uint(bytes);
    step[d] = cursor.uint(bytes);
    for (const part of [count, block]) {
      const number = cursor.address(bytes);
      part[d] = number === UNDEFINED ? Infinity : number;
      if (number === 0) isEmpty = true;
      if (number !== UNDEFINED) continue;
      if (unlimited >= 0) cursor.fail('selection with two unlimited dimensions');
      unlimited = d;
    }
    const once = count[d] === 1;
    if (!once && (step[d] as number) < Math.max(1, block[d] as number)) cursor.fail('selection whose blocks overlap');
    if (d === unlimited) continue;
    // A single range, where blocks touch.
    const span = ((count[d] as number) - 1) * (step[d] as number) + (block[d] as number);
    if (!Number.isSafeInteger((start[d] as number) + span)) cursor.fail('selection that ends beyond 2^53 - 1');
    if (once || step[d] === block[d]) {
      count[d] = 1;
      step[d] = block[d] = span;
    }
  }
  return isEmpty ? NONE : { kind: 'slab', slab: { rank, start, count, step, block }, unlimited };
}

/**
 * Blocks as a regular slab, null if they are none. Up to version 1.10 libhdf5 stores every slab as a list of blocks, in row-major
 * order.
 */
function slabOf({ rank, length, lo, hi }: BoxList): RegularSlab | null {
  const start = lo.slice(0, rank);
  const block = hi.slice(0, rank).map((end, d) => end - (start[d] as number));
  const count = new Float64Array(rank).fill(1);
  const step = block.slice();
  // The last dimension changes fastest: `period` blocks pass until the next one does.
  let period = 1;
  for (let d = rank - 1; d >= 0; d--) {
    const at = (i: number): number => lo[i * period * rank + d] as number;
    if (period >= length || at(1) <= at(0)) continue;
    step[d] = at(1) - at(0);
    let times = 2;
    while (times * period < length && at(times) === at(0) + times * (step[d] as number)) times++;
    count[d] = times;
    period *= times;
  }
  if (period !== length) return null;
  const cell = new Float64Array(rank);
  for (let i = 0; i < length; i++) {
    for (let d = 0; d < rank; d++) {
      const low = (start[d] as number) + (cell[d] as number) * (step[d] as number);
      if (lo[i * rank + d] !== low || hi[i * rank + d] !== low + (block[d] as number)) return null;
    }
    for (let d = rank - 1; d >= 0; d--) {
      cell[d] = (cell[d] as number) + 1;
      if ((cell[d] as number) < (count[d] as number)) break;
      cell[d] = 0;
    }
  }
  for (let d = 0; d < rank; d++) {
    if (step[d] !== block[d] || count[d] === 1) continue;
    block[d] = step[d] = (block[d] as number) * (count[d] as number);
    count[d] = 1;
  }
  for (let d = 0; d < rank; d++) if ((step[d] as number) < (block[d] as number)) return null;
  return { rank, start, count, step, block };
}
