// Fixed arrays, the chunk index of datasets whose maximum size is fixed: read and built (HDF5 file format specification,
// VII.C). Elements lie in one data block, or in pages of a data block that notes which of its pages were ever written.

import { lookup3 } from '../../../base/checksum.ts';
import { formatError } from '../../../base/errors.ts';
import type { Io } from '../../../storage/io.ts';
import { ByteWriter, putU64 } from '../../format/byte-writer.ts';
import { type Cursor, checkSum, UNDEFINED } from '../../format/cursor.ts';
import type { FileBytes } from '../../format/file-bytes.ts';
import { type Addressable, FileExtent } from '../../graph/object-node.ts';
import type { VisitElement } from './extensible-array.ts';

/** 2^10 elements to a page, as libhdf5 chooses. */
export const PAGE_BITS = 10;

/** Visits every element of a fixed array of `total` elements whose page was ever written. */
export function* readFixedArray(
  file: FileBytes,
  address: number,
  filtered: boolean,
  total: number,
  visit: VisitElement,
): Io<void> {
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
  if (block === UNDEFINED) return;
  const prefix = 6 + file.addressSize;
  if (total <= perPage) {
    const body = yield* file.cursor(block, prefix + total * entry + 4, 'fixed array');
    body.signature('FADB');
    checkSum(body, prefix + total * entry, file.base + block);
    body.at = prefix;
    visitAll(body, 0, total);
    return;
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
    visitAll(body, page * perPage, page * perPage + length);
  }

  function visitAll(body: Cursor, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const next = body.at + entry;
      visit(i, body, entry);
      body.at = next;
    }
  }
}

/** What an element says of its chunk. */
interface ArrayElement {
  readonly address: number | Addressable;
  readonly size: number;
  readonly mask: number;
}

/** The array to be built; chunks have `chunkBytes` before any filter. */
interface FixedArray {
  readonly total: number;
  readonly filtered: boolean;
  readonly chunkBytes: number;
}

/** A fixed array in which element `numbers[i]` is `elements[i]` and all others are undefined. */
export function buildFixedArray(
  { total, filtered, chunkBytes }: FixedArray,
  numbers: readonly number[],
  elements: readonly ArrayElement[],
): FileExtent {
  // libhdf5 uses one byte more than the unfiltered size needs, because filters may make a chunk larger.
  const sizeBytes = Math.min(8, 1 + Math.floor((Math.floor(Math.log2(chunkBytes)) + 8) / 8));
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
      for (let b = 0, rest = size; b < sizeBytes; b++, rest = Math.floor(rest / 256))
        view.setUint8(where + 8 + b, rest % 256);
      view.setUint32(where + 8 + sizeBytes, mask, true);
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
