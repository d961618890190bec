// Fixed arrays, the chunk index of datasets whose maximum size is fixed: read and built (HDF5 file format specification,
// VII.C). Elements lie in one data block, or in pages of a data block that notes which of its pages were ever written.

import { lookup3 } from '../../../base/checksum.ts';
import { formatError } from '../../../base/errors.ts';
import type { Io } from '../../../storage/io.ts';
import { ByteWriter, putU64, putUint } from '../../format/byte-writer.ts';
import { type Cursor, checkSum, UNDEFINED } from '../../format/cursor.ts';
import type { Budget, FileBytes } from '../../format/file-bytes.ts';
import { type Addressable, FileExtent } from '../../graph/object-node.ts';

/** 2^10 elements to a page, as libhdf5 chooses. */
export const PAGE_BITS = 10;

/** Gets the number of an element, the cursor before it, and its size in bytes. */
export type VisitElement = (index: number, element: Cursor, size: number) => void;

/** Elements of an array that lie together in the file, behind `prefix` bytes and before `tail` bytes and a checksum of all. */
export interface ElementRun {
  readonly first: number;
  readonly count: number;
  readonly address: number;
  readonly prefix: number;
  readonly tail: number;
  /** What it begins with; null for pages. */
  readonly signature: string | null;
}

/** Reads a run of elements of `entry` bytes and checks it; the cursor is at the first one. */
export function* readRun(file: FileBytes, run: ElementRun, entry: number, budget?: Budget): Io<Cursor> {
  const { address, prefix, count, tail, signature } = run;
  const length = prefix + count * entry + tail;
  const cursor = yield* file.cursor(address, length + 4, 'array of chunks');
  budget?.spend(length + 4, address, 'parts of an array of chunks');
  if (signature) cursor.signature(signature);
  checkSum(cursor, length, file.base + address);
  cursor.at = prefix;
  return cursor;
}

export function visitRun(cursor: Cursor, { first, count }: ElementRun, entry: number, visit: VisitElement): void {
  for (let i = first; i < first + count; i++) {
    const next = cursor.at + entry;
    visit(i, cursor, entry);
    cursor.at = next;
  }
}

/** A fixed array that is there: its header and, if it has pages, which of them were ever written. */
export class FixedArray {
  /** Bytes of an element. */
  readonly entry: number;
  readonly #total: number;
  readonly #perPage: number;
  /** The run of the first page, or the only one; null if there is none. */
  readonly #first: ElementRun | null;
  readonly #written: Uint8Array | null;

  private constructor(
    entry: number,
    total: number,
    perPage: number,
    first: ElementRun | null,
    written: Uint8Array | null,
  ) {
    this.entry = entry;
    this.#total = total;
    this.#perPage = perPage;
    this.#first = first;
    this.#written = written;
  }

  /** Opens an array that must have `total` elements. */
  static *open(file: FileBytes, address: number, filtered: boolean, total: number): Io<FixedArray> {
    const head = yield* file.cursor(address, 8 + file.lengthSize + file.addressSize + 4, 'fixed array');
    head.signature('FAHD');
    head.expect(0, 'version of the fixed array');
    head.expect(filtered ? 1 : 0, 'kind of the fixed array');
    const entry = head.u8();
    const perPage = 2 ** head.u8();
    const stored = head.uint(file.lengthSize);
    const block = head.address(file.addressSize);
    checkSum(head, head.at, file.base + address);
    if (stored !== total)
      throw formatError(`a fixed array of ${stored} chunks does not fit the dataset`, file.base + address);
    const least = file.addressSize + (filtered ? 5 : 0);
    if (entry < least || entry > least + 7)
      throw formatError(`a fixed array with entries of ${entry} bytes`, file.base + address);
    if (block === UNDEFINED) return new FixedArray(entry, total, perPage, null, null);
    const prefix = 6 + file.addressSize;
    if (total <= perPage) {
      const run = { first: 0, count: total, address: block, prefix, tail: 0, signature: 'FADB' };
      return new FixedArray(entry, total, perPage, run, null);
    }
    const bitmap = Math.ceil(Math.ceil(total / perPage) / 8);
    const start = yield* file.cursor(block, prefix + bitmap + 4, 'fixed array');
    start.signature('FADB');
    checkSum(start, prefix + bitmap, file.base + block);
    const pages = block + prefix + bitmap + 4;
    const run = { first: 0, count: perPage, address: pages, prefix: 0, tail: 0, signature: null };
    return new FixedArray(entry, total, perPage, run, start.bytes.slice(prefix, prefix + bitmap));
  }

  /** The runs that hold elements, given in ascending order; null for those of pages that were never written. */
  // biome-ignore lint/correctness/useYield: an extensible array reads from the file
  *runsOf(_file: FileBytes, elements: Float64Array): Io<(ElementRun | null)[]> {
    const runs: (ElementRun | null)[] = [];
    let page = -1;
    let run: ElementRun | null = null;
    for (const element of elements) {
      const at = Math.floor(element / this.#perPage);
      if (at !== page) run = this.#run(at);
      page = at;
      runs.push(run);
    }
    return runs;
  }

  *runs(): Iterable<ElementRun> {
    for (let page = 0; page * this.#perPage < this.#total; page++) {
      const run = this.#run(page);
      if (run) yield run;
    }
  }

  #run(page: number): ElementRun | null {
    const first = this.#first;
    const written = this.#written;
    if (!first || !written) return first;
    if (((written[page >> 3] ?? 0) & (0x80 >> (page & 7))) === 0) return null;
    const before = page * this.#perPage;
    const address = first.address + page * (this.#perPage * this.entry + 4);
    return { ...first, first: before, count: Math.min(this.#perPage, this.#total - before), address };
  }
}

/** Visits every element of a fixed array of `total` elements whose page was ever written. */
export function* readFixedArray(
  file: FileBytes,
  address: number,
  filtered: boolean,
  total: number,
  visit: VisitElement,
): Io<void> {
  const array = yield* FixedArray.open(file, address, filtered, total);
  for (const run of array.runs()) visitRun(yield* readRun(file, run, array.entry), run, array.entry, visit);
}

/**
 * Width of the field for the size of a filtered chunk of `bytes` bytes. libhdf5 uses one byte more than the size needs, because
 * filters may make a chunk larger.
 */
export function sizeWidth(bytes: number): number {
  return Math.min(8, 1 + Math.floor((Math.floor(Math.log2(bytes)) + 8) / 8));
}

/** What an element says of its chunk. */
interface ArrayElement {
  readonly address: number | Addressable;
  readonly size: number;
  readonly mask: number;
}

/** The array to be built; chunks have `chunkBytes` before any filter. */
interface NewFixedArray {
  readonly total: number;
  readonly filtered: boolean;
  readonly chunkBytes: number;
}

/** A fixed array in which element `numbers[i]` is `elements[i]` and all others are undefined. */
export function buildFixedArray(
  { total, filtered, chunkBytes }: NewFixedArray,
  numbers: readonly number[],
  elements: readonly ArrayElement[],
): FileExtent {
  const sizeBytes = sizeWidth(chunkBytes);
  const entry = filtered ? 8 + sizeBytes + 4 : 8;
  const perPage = 2 ** PAGE_BITS;
  const pages = total > perPage ? Math.ceil(total / perPage) : 0;
  const header = 4 + 1 + 1 + 1 + 1 + 8 + 8 + 4;
  const prefix = 4 + 1 + 1 + 8 + (pages > 0 ? Math.ceil(pages / 8) : 0);
  const body = pages > 0 ? prefix + 4 + total * entry + pages * 4 : prefix + total * entry + 4;
  const extent: FileExtent = new FileExtent(header + body, () => [encode()]);
  return extent;

  function encode(): Uint8Array {
    const at = extent.address;
    const head = new ByteWriter(header)
      .text('FAHD')
      .u8(0)
      .u8(filtered ? 1 : 0)
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
      .u8(filtered ? 1 : 0)
      .u64(at);
    block.set(start.done());
    const view = new DataView(bytes.buffer, header);
    for (let i = 0; i < total; i++) putU64(view, elementAt(i), UNDEFINED);
    elements.forEach(({ address, size, mask }, i) => {
      const where = elementAt(numbers[i] as number);
      putU64(view, where, typeof address === 'number' ? address : address.address);
      if (!filtered) return;
      view.setUint32(putUint(block, where + 8, size, sizeBytes), mask, true);
    });
    if (pages === 0) view.setUint32(body - 4, lookup3(block, 0, body - 4), true);
    else sealPages(block, view);
    return bytes;
  }

  /** Position of an element in the data block. Pages come after the checksum of the block, each with a checksum of its own. */
  function elementAt(i: number): number {
    return pages === 0 ? prefix + i * entry : prefix + 4 + i * entry + Math.floor(i / perPage) * 4;
  }

  /** Marks every page as written, most significant bit first, and sets the checksums of the block and its pages. */
  function sealPages(block: Uint8Array, view: DataView): void {
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
}
