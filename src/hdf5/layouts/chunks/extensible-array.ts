// Extensible arrays, the chunk index of datasets with one unlimited dimension (HDF5 file format specification, VII.D). The first
// few elements are in the index block, the others in data blocks of growing size: the index block points to the first data
// blocks, super blocks point to the others.

import { formatError } from '../../../base/errors.ts';
import type { Io } from '../../../storage/io.ts';
import { type Cursor, checkSum, UNDEFINED } from '../../format/cursor.ts';
import { Budget, type FileBytes } from '../../format/file-bytes.ts';
import { type ElementRun, readRun, type VisitElement, visitRun } from './fixed-array.ts';

/** The data blocks of one super block: how many, of how many elements each, and the number of the first element. */
interface Level {
  readonly blocks: number;
  readonly elements: number;
  readonly first: number;
}

/** Where the data blocks of a level are, and which of their pages were ever written; null: they have no pages. */
interface Blocks {
  readonly addresses: readonly number[];
  readonly written: Uint8Array | null;
}

/** What the header of an array says. */
interface ArrayHeader {
  /** Client: 0 for chunks without filters, 1 for filtered ones. */
  readonly kind: number;
  readonly entry: number;
  /** Width of a block's offset in the array. */
  readonly offsetBytes: number;
  readonly perPage: number;
  readonly levels: readonly Level[];
  /** Levels whose data blocks the index block points to. */
  readonly direct: number;
}

/** An extensible array that is there: header and index block. Super blocks are read when they are needed. */
export class ExtensibleArray {
  readonly #head: ArrayHeader;
  /** Elements in the index block; null if there is none. */
  readonly #inIndex: ElementRun | null;
  /** By level; undefined for one without blocks, a number for the address of a super block that was not read yet. */
  readonly #blocks: (Blocks | number | undefined)[];

  private constructor(head: ArrayHeader, inIndex: ElementRun | null, blocks: (Blocks | number | undefined)[]) {
    this.#head = head;
    this.#inIndex = inIndex;
    this.#blocks = blocks;
  }

  /** Bytes of an element. */
  get entry(): number {
    return this.#head.entry;
  }

  static *open(file: FileBytes, address: number, filtered: boolean, budget?: Budget): Io<ExtensibleArray> {
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
      entry < file.addressSize + (filtered ? 5 : 0) ||
      entry > 20
    )
      throw formatError('an extensible array with impossible sizes', file.base + address);
    const levels = levelsOf(bits, least, inIndex);
    const direct = 2 * Math.log2(leastPointers);
    const offsetBytes = Math.ceil(bits / 8);
    const array: ArrayHeader = { kind, entry, offsetBytes, perPage: 2 ** pageBits, levels, direct };
    if (index === UNDEFINED) return new ExtensibleArray(array, null, []);
    const pointers = 2 * (leastPointers - 1) + Math.max(0, levels.length - direct);
    const prefix = 6 + file.addressSize;
    const tail = pointers * file.addressSize;
    const run = { first: 0, count: inIndex, address: index, prefix, tail, signature: 'EAIB' };
    const block = yield* readRun(file, run, entry, budget);
    checkKind(block, array);
    block.at = prefix + inIndex * entry;
    const take = (): number => block.address(file.addressSize);
    const blocks = levels.map((level, u) => {
      if (u < direct) return { addresses: Array.from({ length: level.blocks }, take), written: null };
      const at = take();
      return at === UNDEFINED ? undefined : at;
    });
    return new ExtensibleArray(array, run, blocks);
  }

  /** The runs that hold elements, given in ascending order; null for those that were never written. */
  *runsOf(file: FileBytes, elements: Float64Array): Io<(ElementRun | null)[]> {
    const { levels } = this.#head;
    const runs: (ElementRun | null)[] = [];
    let run: ElementRun | null = null;
    for (const element of elements) {
      if (!run || element < run.first || element >= run.first + run.count) {
        const inIndex = this.#inIndex;
        const u = levels.findIndex(({ first, blocks, elements: each }) => element < first + blocks * each);
        if (inIndex && element < inIndex.count) run = inIndex;
        else run = u < 0 ? null : yield* this.#runOf(file, u, element);
      }
      runs.push(run);
    }
    return runs;
  }

  *#runOf(file: FileBytes, u: number, element: number): Io<ElementRun | null> {
    const level = this.#head.levels[u] as Level;
    const blocks = yield* this.#level(file, u);
    const b = Math.floor((element - level.first) / level.elements);
    const page = Math.floor((element - level.first - b * level.elements) / this.#head.perPage);
    return blocks ? this.#run(file, level, blocks, b, page) : null;
  }

  /** The run of a data block, or of a page of it; null if that was never written. */
  #run(file: FileBytes, level: Level, { addresses, written }: Blocks, b: number, page: number): ElementRun | null {
    const { entry, perPage, offsetBytes } = this.#head;
    const address = addresses[b] as number;
    if (address === UNDEFINED) return null;
    const prefix = 6 + file.addressSize + offsetBytes;
    const first = level.first + b * level.elements;
    if (!written) return { first, count: level.elements, address, prefix, tail: 0, signature: 'EADB' };
    const bit = (b * level.elements) / perPage + page;
    if (((written[bit >> 3] as number) & (0x80 >> (bit & 7))) === 0) return null;
    const at = address + prefix + 4 + page * (perPage * entry + 4);
    return { first: first + page * perPage, count: perPage, address: at, prefix: 0, tail: 0, signature: null };
  }

  /** The data blocks of a level; undefined if there are none. */
  *#level(file: FileBytes, u: number, budget?: Budget): Io<Blocks | undefined> {
    const known = this.#blocks[u];
    if (typeof known !== 'number') return known;
    const { offsetBytes, perPage, levels } = this.#head;
    const level = levels[u] as Level;
    const paged = level.elements > perPage;
    // Which pages were ever written. Room is for whole bytes of each data block, but the bits of all blocks follow each other.
    const bitmap = paged ? Math.ceil(level.elements / perPage / 8) : 0;
    const prefix = 6 + file.addressSize + offsetBytes;
    const tail = level.blocks * (bitmap + file.addressSize);
    const run = { first: 0, count: 0, address: known, prefix, tail, signature: 'EASB' };
    const block = yield* readRun(file, run, 0, budget);
    checkKind(block, this.#head);
    block.at = prefix;
    const written = block.take(level.blocks * bitmap, 'pages of an extensible array').slice();
    const addresses = Array.from({ length: level.blocks }, () => block.address(file.addressSize));
    const blocks = { addresses, written: paged ? written : null };
    this.#blocks[u] = blocks;
    return blocks;
  }

  /** Visits every element. */
  *visit(file: FileBytes, visit: VisitElement, budget: Budget): Io<void> {
    const { entry, perPage, levels, offsetBytes } = this.#head;
    const inIndex = this.#inIndex;
    if (inIndex) visitRun(yield* readRun(file, inIndex, entry), inIndex, entry, visit);
    const prefix = 6 + file.addressSize + offsetBytes;
    for (const [u, level] of levels.entries()) {
      const blocks = yield* this.#level(file, u, budget);
      if (!blocks) continue;
      const { addresses, written } = blocks;
      for (const [b, address] of addresses.entries()) {
        if (address === UNDEFINED) continue;
        const count = written ? 0 : level.elements;
        const first = level.first + b * level.elements;
        const whole = { first, count, address, prefix, tail: 0, signature: 'EADB' };
        const block = yield* readRun(file, whole, entry, budget);
        checkKind(block, this.#head);
        block.at = prefix;
        visitRun(block, whole, entry, visit);
        for (let page = 0; written && page < level.elements / perPage; page++) {
          const run = this.#run(file, level, blocks, b, page);
          if (run) visitRun(yield* readRun(file, run, entry, budget), run, entry, visit);
        }
      }
    }
  }
}

/** Checks the version and the client of a block, behind its signature. */
function checkKind(block: Cursor, { kind }: ArrayHeader): void {
  block.at = 4;
  block.expect(0, 'version of the block');
  block.expect(kind, 'kind of the block');
}

/** Visits every element of an extensible array. */
export function* readExtensibleArray(
  file: FileBytes,
  address: number,
  filtered: boolean,
  visit: VisitElement,
): Io<void> {
  const budget = new Budget(file);
  const array = yield* ExtensibleArray.open(file, address, filtered, budget);
  yield* array.visit(file, visit, budget);
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
