// Extensible arrays, the chunk index of datasets with one unlimited dimension (HDF5 file format specification, VII.D). The first
// few elements are in the index block, the others in data blocks of growing size: the index block points to the first data
// blocks, super blocks point to the others.

import { formatError } from '../../../base/errors.ts';
import type { Io } from '../../../storage/io.ts';
import { type Cursor, checkSum, UNDEFINED } from '../../format/cursor.ts';
import { Budget, type FileBytes } from '../../format/file-bytes.ts';

interface ArrayHeader {
  /** Client: 0 for chunks without filters, 1 for filtered ones. */
  readonly kind: number;
  /** Bytes of an element. */
  readonly entry: number;
  /** Width of a block's offset in the array. */
  readonly offsetBytes: number;
  readonly perPage: number;
}

/** The data blocks of one super block: how many, of how many elements each, and the number of the first element. */
interface Level {
  readonly blocks: number;
  readonly elements: number;
  readonly first: number;
}

/** Gets the number of an element, the cursor before it, and its size in bytes. */
export type VisitElement = (index: number, element: Cursor, size: number) => void;

/** Visits every element of an extensible array. */
export function* readExtensibleArray(
  file: FileBytes,
  address: number,
  filtered: boolean,
  visit: VisitElement,
): Io<void> {
  const kind = filtered ? 1 : 0;
  const head = yield* file.cursor(address, 12 + 6 * file.lengthSize + file.addressSize + 4, 'extensible array');
  head.signature('EAHD');
  head.expect(0, 'version of the extensible array');
  head.expect(kind, 'kind of the extensible array');
  const entry = head.u8();
  const bits = head.u8();
  const inIndex = head.u8();
  const least = head.u8();
  const leastPointers = head.u8();
  const pageBits = head.u8();
  head.skip(6 * file.lengthSize);
  const index = head.address(file.addressSize);
  checkSum(head, head.at, file.base + address);
  const isPower = (n: number): boolean => n > 0 && Number.isInteger(Math.log2(n));
  if (
    bits > 64 ||
    !isPower(least) ||
    !isPower(leastPointers) ||
    pageBits > 32 ||
    entry < file.addressSize ||
    entry > 20
  )
    throw formatError('an extensible array with impossible sizes', file.base + address);
  if (index === UNDEFINED) return;
  const array: ArrayHeader = { kind, entry, offsetBytes: Math.ceil(bits / 8), perPage: 2 ** pageBits };
  const levels = levelsOf(bits, least, inIndex);
  const direct = 2 * Math.log2(leastPointers);
  const pointers = 2 * (leastPointers - 1);
  const above = Math.max(0, levels.length - direct);
  const budget = new Budget(file);

  const body = inIndex * entry + (pointers + above) * file.addressSize;
  const block = yield* readBlock(file, array, 'EAIB', index, 0, body, budget);
  for (let i = 0; i < inIndex; i++) element(block, i, entry, visit);
  for (const level of levels.slice(0, direct)) {
    for (let b = 0; b < level.blocks; b++) {
      const at = block.address(file.addressSize);
      if (at !== UNDEFINED) yield* dataBlock(file, array, at, level, b, null, budget, visit);
    }
  }
  for (const level of levels.slice(direct)) {
    const at = block.address(file.addressSize);
    if (at !== UNDEFINED) yield* superBlock(file, array, at, level, budget, visit);
  }
}

/** Level u has 2^(u/2) blocks of 2^((u+1)/2) times the least number of elements, rounded down. */
function levelsOf(bits: number, least: number, inIndex: number): Level[] {
  const levels: Level[] = [];
  let first = inIndex;
  for (let u = 0; u <= bits - Math.log2(least); u++) {
    const level = { blocks: 2 ** Math.floor(u / 2), elements: 2 ** Math.floor((u + 1) / 2) * least, first };
    levels.push(level);
    first += level.blocks * level.elements;
  }
  return levels;
}

/** Reads a block of the array and checks its signature and checksum; the cursor is at its contents. */
function* readBlock(
  file: FileBytes,
  array: ArrayHeader,
  signature: string,
  at: number,
  offsetBytes: number,
  length: number,
  budget: Budget,
): Io<Cursor> {
  const prefix = 6 + file.addressSize + offsetBytes;
  const block = yield* file.cursor(at, prefix + length + 4, 'block of an extensible array');
  budget.spend(prefix + length + 4, at, 'blocks of an extensible array');
  block.signature(signature);
  block.expect(0, 'version of the block');
  block.expect(array.kind, 'kind of the block');
  checkSum(block, prefix + length, file.base + at);
  block.at = prefix;
  return block;
}

function* superBlock(
  file: FileBytes,
  array: ArrayHeader,
  at: number,
  level: Level,
  budget: Budget,
  visit: VisitElement,
): Io<void> {
  const paged = level.elements > array.perPage;
  // Which pages were ever written. Room is for whole bytes of each data block, but the bits of all blocks follow each other.
  const bitmap = paged ? Math.ceil(level.elements / array.perPage / 8) : 0;
  const length = level.blocks * (bitmap + file.addressSize);
  const block = yield* readBlock(file, array, 'EASB', at, array.offsetBytes, length, budget);
  const written = block.take(level.blocks * bitmap, 'pages of an extensible array');
  for (let b = 0; b < level.blocks; b++) {
    const address = block.address(file.addressSize);
    if (address !== UNDEFINED) yield* dataBlock(file, array, address, level, b, paged ? written : null, budget, visit);
  }
}

function* dataBlock(
  file: FileBytes,
  array: ArrayHeader,
  at: number,
  level: Level,
  number: number,
  written: Uint8Array | null,
  budget: Budget,
  visit: VisitElement,
): Io<void> {
  const first = level.first + number * level.elements;
  const { entry, perPage } = array;
  if (!written) {
    const block = yield* readBlock(file, array, 'EADB', at, array.offsetBytes, level.elements * entry, budget);
    for (let i = 0; i < level.elements; i++) element(block, first + i, entry, visit);
    return;
  }
  yield* readBlock(file, array, 'EADB', at, array.offsetBytes, 0, budget);
  const begin = at + 6 + file.addressSize + array.offsetBytes + 4;
  const pages = level.elements / perPage;
  for (let page = 0; page < pages; page++) {
    const bit = number * pages + page;
    if (((written[bit >> 3] as number) & (0x80 >> (bit & 7))) === 0) continue;
    const address = begin + page * (perPage * entry + 4);
    const body = yield* file.cursor(address, perPage * entry + 4, 'page of an extensible array');
    budget.spend(perPage * entry + 4, address, 'pages of an extensible array');
    checkSum(body, perPage * entry, file.base + address);
    body.at = 0;
    for (let i = 0; i < perPage; i++) element(body, first + page * perPage + i, entry, visit);
  }
}

function element(block: Cursor, index: number, entry: number, visit: VisitElement): void {
  const end = block.at + entry;
  visit(index, block, entry);
  block.at = end;
}
