import { H5LogError } from '../../base/errors.ts';
import type { FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';
import { copyBox, gather, scatter } from '../../space/copy.ts';
import type { Blocks } from '../../space/select.ts';
import { type BoxPlace, type Cost, cutBox, groupBoxes, type Piece } from './box-groups.ts';
import { listFilters, unavailable } from './data-source.ts';
import type { Form } from './memory-form.ts';
import type { NativeFile } from './native-file.ts';
import { type Packed, Placed, unpack } from './packed.ts';

/** One dataset, as the moving of its data sees it. */
export interface Transfer {
  readonly file: NativeFile;
  readonly path: string;
  readonly scalar: boolean;
  readonly form: Form;
  readonly vlen: boolean;
  readonly filters: readonly FilterEntry[];
  readonly cost: Cost;
}

/** libhdf5 cannot change the order of an enumeration, says so, and leaves it as it is: which is what we reckon with. */
const KEPT_ORDER = /H5T__set_order\(\): operation not allowed after enum members are defined/;

/** What libhdf5 says when it lacks a filter (also of a virtual dataset's source), or does not trust a type of few bits. */
const CANNOT = /not registered|not available|plugin|unused bits/i;
const DAMAGED = /filter returned failure|checksum/i;

/** Fills `packed` with the elements of the blocks, one block after the other. */
export function readBlocks(transfer: Transfer, blocks: Blocks, packed: Packed): void {
  const { size } = transfer.cost;
  for (const group of groupBoxes(blocks, transfer.cost, false)) {
    const { boxes, start, count } = group;
    if (boxes.length === 1) {
      const at = (boxes[0] as BoxPlace).at * size;
      for (const piece of cutBox(start, count, transfer.cost)) readPiece(transfer, piece, packed, at, start, count);
    } else {
      const around: Packed = { bytes: new Uint8Array(volume(count) * size), contents: packed.contents };
      readPiece(transfer, group, around, 0, start, count);
      for (const { i, at } of boxes) {
        const counts = blocks.counts.subarray(i * blocks.rank);
        gather(around.bytes, 0, count, within(blocks, i, start), counts, size, packed.bytes, at * size);
      }
    }
  }
}

/** Reads a piece of the box (start, count), whose elements begin at byte `at` of `packed`. */
function readPiece(
  transfer: Transfer,
  piece: Piece,
  packed: Packed,
  at: number,
  start: readonly number[],
  count: readonly number[],
): void {
  const { file, path, form, vlen, cost } = transfer;
  const { library } = file;
  const elements = volume(piece.count);
  const sizes = sizesOf(transfer, piece);
  const inside = piece.start.map((x, d) => x - (start[d] as number));
  const failure = (reason: string): H5LogError => failed(transfer, 'read', reason);
  const pointer = library.allocate(elements * form.size);
  const read = (id: bigint): void => {
    // What libhdf5 has no value for (an undefined fill value) it leaves as it was.
    library.bytes.fill(0, pointer, pointer + elements * form.size);
    const to = BigInt(pointer);
    library.call(
      (calls) => calls.get_dataset_data(id, path, sizes.count, sizes.start, sizes.stride, to),
      failure,
      KEPT_ORDER,
    );
    let source = library.bytes;
    let from = pointer;
    if (form.kind !== 'plain') {
      source = new Uint8Array(elements * cost.size);
      from = 0;
      unpack(library, form, pointer, elements, source, 0, packed.contents);
    }
    copyBox(source, from, piece.count, zeros(inside), packed.bytes, at, count, inside, piece.count, cost.size);
    if (vlen) library.call((calls) => calls.reclaim_vlen_memory_count(id, path, '', to, sizes.all), failure);
  };
  try {
    file.reading(read);
  } finally {
    library.free(pointer);
  }
}

/**
 * Writes the elements of the blocks. Those that lie close to one another are read with what is between them and written as one,
 * so that a chunk is not packed again for each. `alone` if they may overlap, for then their order counts; variable-length data is
 * written alone, too, because whatever is written of it is stored anew.
 */
export function writeBlocks(transfer: Transfer, blocks: Blocks, packed: Packed, alone: boolean): void {
  const { size } = transfer.cost;
  for (const group of groupBoxes(blocks, transfer.cost, alone || transfer.vlen)) {
    const { boxes, start, count } = group;
    if (boxes.length === 1) {
      const at = (boxes[0] as BoxPlace).at * size;
      for (const piece of cutBox(start, count, transfer.cost)) {
        const inside = piece.start.map((x, d) => x - (start[d] as number));
        const bytes = new Uint8Array(volume(piece.count) * size);
        gather(packed.bytes, at, count, inside, piece.count, size, bytes, 0);
        writePiece(transfer, piece, { bytes, contents: packed.contents });
      }
    } else {
      const around: Packed = { bytes: new Uint8Array(volume(count) * size), contents: [] };
      readPiece(transfer, group, around, 0, start, count);
      for (const { i, at } of boxes) {
        const counts = blocks.counts.subarray(i * blocks.rank);
        scatter(packed.bytes, at * size, around.bytes, 0, count, within(blocks, i, start), counts, size);
      }
      writePiece(transfer, group, around);
    }
  }
}

function writePiece(transfer: Transfer, piece: Piece, packed: Packed): void {
  const { file, path, form } = transfer;
  const placed = new Placed(file.library, form, packed, 0, volume(piece.count), path);
  try {
    const { count, start, stride } = sizesOf(transfer, piece);
    file.library.call(
      (calls) => calls.set_dataset_data(file.id, path, count, start, stride, BigInt(placed.pointer)),
      (reason) => failed(transfer, 'written', reason),
      KEPT_ORDER,
    );
    file.dataChanged(transfer.vlen);
  } finally {
    placed.free();
  }
}

/** A scalar has no sizes to select by. */
function sizesOf({ scalar }: Transfer, { start, count }: Piece) {
  const all = count.map(BigInt);
  if (scalar) return { count: null, start: null, stride: null, all };
  return { count: all, start: start.map(BigInt), stride: count.map(() => 1n), all };
}

function failed(transfer: Transfer, done: 'read' | 'written', reason: string): H5LogError {
  const { file, path, filters } = transfer;
  const lacking = filters.filter(unavailable);
  const why = lacking.length > 0 ? `h5wasm does not have the filter ${listFilters(lacking)}` : reason;
  const code = lacking.length > 0 || CANNOT.test(reason) ? 'UNSUPPORTED' : DAMAGED.test(reason) ? 'FORMAT' : 'STORAGE';
  return new H5LogError(code, `${file.name}: the data of ${path} could not be ${done}: ${why}`, {
    file: file.name,
    object: path,
    cause: new Error(reason),
  });
}

const volume = (count: readonly number[]): number => count.reduce((product, n) => product * n, 1);
const zeros = (like: readonly number[]): number[] => like.map(() => 0);

/** Where a block begins in the box around its group. */
function within({ rank, starts }: Blocks, i: number, around: readonly number[]): number[] {
  return around.map((x, d) => (starts[i * rank + d] as number) - x);
}
