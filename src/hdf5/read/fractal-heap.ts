// Fractal heaps, read only: where dense links, dense attributes and shared messages are stored (HDF5 file format specification,
// III.G).

import { lookup3 } from '../../base/checksum.ts';
import { formatError, H5LogError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { bytesFor } from '../format/byte-writer.ts';
import { Cursor, checkSum, UNDEFINED } from '../format/cursor.ts';
import { Budget, type FileBytes } from '../format/file-bytes.ts';
import { readBtree2 } from './btree.ts';

interface DirectBlock {
  /** Heap offset of its first byte. */
  readonly offset: number;
  readonly address: number;
  /** Its bytes, with its own header. */
  readonly size: number;
}

/** A fractal heap. Its direct blocks are found when it is opened; objects are then read by heap id. */
export class FractalHeap {
  readonly #file: FileBytes;
  readonly #address: number;
  readonly idSize: number;
  readonly #offsetBytes: number;
  readonly #lengthBytes: number;
  readonly #checksummed: boolean;
  readonly #hugeTree: number;
  readonly #blocks: DirectBlock[] = [];
  readonly #verified = new Set<number>();
  /** Bounds on the bytes of blocks, and of objects, that are read. */
  readonly #blockBytes: Budget;
  readonly #objectBytes: Budget;
  #hugeObjects: Map<number, { address: number; length: number }> | undefined;

  private constructor(
    file: FileBytes,
    budget: Budget,
    fields: {
      address: number;
      idSize: number;
      offsetBytes: number;
      lengthBytes: number;
      checksummed: boolean;
      hugeTree: number;
    },
  ) {
    this.#file = file;
    this.#blockBytes = budget;
    this.#objectBytes = new Budget(file);
    this.#address = fields.address;
    this.idSize = fields.idSize;
    this.#offsetBytes = fields.offsetBytes;
    this.#lengthBytes = fields.lengthBytes;
    this.#checksummed = fields.checksummed;
    this.#hugeTree = fields.hugeTree;
  }

  static *open(file: FileBytes, address: number, budget = new Budget(file)): Io<FractalHeap> {
    const O = file.addressSize;
    const L = file.lengthSize;
    const start = yield* file.cursor(address, 9, 'fractal heap');
    start.skip(7);
    const filters = start.u16();
    // A filtered heap has three more fields: the size of the root block, a filter mask, and the filters.
    const tail = filters > 0 ? L + 4 + filters : 0;
    const header = yield* file.cursor(
      address,
      5 + 2 + 2 + 1 + 4 + 12 * L + 3 * O + 2 + 2 + 2 + 2 + tail + 4,
      'fractal heap',
    );
    header.signature('FRHP');
    header.expect(0, 'version of the fractal heap');
    const idSize = header.u16();
    header.skip(2);
    const flags = header.u8();
    const maxManaged = header.u32();
    header.skip(L);
    const hugeTree = header.address(O);
    header.skip(L + O + 8 * L);
    const width = header.u16();
    const startSize = header.uint(L);
    const maxDirect = header.uint(L);
    const maxBits = header.u16();
    header.skip(2);
    const root = header.address(O);
    const rows = header.u16();
    header.skip(tail);
    checkSum(header, header.at, file.base + address);
    if (filters > 0)
      throw new H5LogError('UNSUPPORTED', 'filtered fractal heaps are not supported', { offset: header.offset });
    if (idSize === 0 || width === 0 || startSize === 0 || maxDirect < startSize || maxBits === 0 || maxBits > 64) {
      header.fail('fractal heap with impossible sizes');
    }
    const offsetBytes = Math.ceil(maxBits / 8);
    const heap = new FractalHeap(file, budget, {
      address,
      idSize,
      offsetBytes,
      lengthBytes: Math.min(bytesFor(maxDirect), bytesFor(maxManaged)),
      checksummed: (flags & 2) !== 0,
      hugeTree,
    });
    if (root !== UNDEFINED) {
      const table = { width, startSize, maxDirect, offsetBytes, headerAddress: address };
      if (rows === 0) heap.#blocks.push({ offset: 0, address: root, size: startSize });
      else yield* heap.#walk(table, root, 0, rows);
    }
    heap.#blocks.sort((a, b) => a.offset - b.offset);
    return heap;
  }

  /**
   * Lists the direct blocks below an indirect block. In its doubling table, blocks of rows 0 and 1 have the starting size; those
   * of every further row are twice as large.
   */
  *#walk(
    table: { width: number; startSize: number; maxDirect: number; offsetBytes: number; headerAddress: number },
    address: number,
    from: number,
    rows: number,
  ): Io<void> {
    const file = this.#file;
    const head = 5 + file.addressSize + table.offsetBytes;
    const bytes = head + rows * table.width * file.addressSize + 4;
    const block = yield* file.cursor(address, bytes, 'fractal heap block');
    this.#blockBytes.spend(bytes, address, 'fractal heap blocks');
    block.signature('FHIB');
    block.expect(0, 'version of the fractal heap block');
    checkSum(block, block.bytes.length - 4, file.base + address);
    block.at = head;
    const rowSize = (row: number): number => table.startSize * 2 ** Math.max(0, row - 1);
    let offset = from;
    for (let row = 0; row < rows; row++) {
      const size = rowSize(row);
      for (let column = 0; column < table.width; column++, offset += size) {
        const child = block.address(file.addressSize);
        if (child === UNDEFINED) continue;
        if (size <= table.maxDirect) this.#blocks.push({ offset, address: child, size });
        else {
          // Blocks too large to be direct are indirect ones, whose own table covers exactly `size` bytes.
          const childRows = Math.round(Math.log2(size) - Math.log2(table.startSize * table.width)) + 1;
          if (!(childRows > 0 && childRows < rows))
            throw formatError('fractal heap with impossible sizes', file.base + address);
          yield* this.#walk(table, child, offset, childRows);
        }
      }
    }
  }

  /** All blocks will be needed. */
  ahead(): Io<void> {
    return this.#file.ahead(this.#blocks.map(({ address, size }) => ({ address, length: size })));
  }

  /** Reads the object with a heap id; the cursor ends behind the id. */
  *object(id: Cursor): Io<Cursor> {
    const start = id.at;
    const first = id.u8();
    if (first >> 6 !== 0) id.fail(`heap id version ${first >> 6} is not known`);
    const kind = (first >> 4) & 3;
    let result: Cursor;
    if (kind === 0) {
      const offset = id.uint(this.#offsetBytes);
      const length = id.uint(this.#lengthBytes);
      result = yield* this.#managed(offset, length);
    } else if (kind === 1) {
      result = yield* this.#huge(id);
    } else if (kind === 2) {
      result = this.#tiny(id, first);
    } else return id.fail(`heap id of type ${kind}`);
    id.at = start + this.idSize;
    return result;
  }

  *#managed(offset: number, length: number): Io<Cursor> {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle] as DirectBlock).offset <= offset) low = middle + 1;
      else high = middle;
    }
    const block = this.#blocks[low - 1];
    if (!block || offset + length > block.offset + block.size)
      throw formatError(`heap object at ${offset} of ${length} bytes is in no block`, this.#file.base + this.#address);
    this.#objectBytes.spend(length, block.address, 'heap objects');
    if (this.#checksummed && !this.#verified.has(block.address)) {
      yield* this.#verify(block);
      this.#verified.add(block.address);
    }
    return yield* this.#file.cursor(block.address + offset - block.offset, length, 'heap object');
  }

  /** The checksum of a direct block is computed with its own four bytes zero. */
  *#verify(block: DirectBlock): Io<void> {
    this.#blockBytes.spend(block.size, block.address, 'heap blocks');
    const bytes = (yield* this.#file.read(block.address, block.size, 'heap block')).slice();
    const at = 5 + this.#file.addressSize + this.#offsetBytes;
    const view = new DataView(bytes.buffer);
    const stored = view.getUint32(at, true);
    view.setUint32(at, 0, true);
    if (stored !== lookup3(bytes))
      throw formatError('checksum of a heap block is wrong', this.#file.base + block.address);
  }

  #tiny(id: Cursor, first: number): Cursor {
    const extended = this.idSize - 1 > 16;
    const length = extended ? ((first & 15) << 8) + id.u8() + 1 : (first & 15) + 1;
    const at = id.at;
    id.skip(length);
    return new Cursor(id.bytes, id.base, at, at + length);
  }

  *#huge(id: Cursor): Io<Cursor> {
    const file = this.#file;
    const direct = this.idSize - 1 >= file.addressSize + file.lengthSize;
    if (direct) {
      const address = id.address(file.addressSize);
      const length = id.uint(file.lengthSize);
      this.#objectBytes.spend(length, address, 'heap objects');
      return yield* file.cursor(address, length, 'huge heap object');
    }
    const key = id.uint(Math.min(this.idSize - 1, file.lengthSize));
    if (!this.#hugeObjects) {
      this.#hugeObjects = new Map();
      for (const record of yield* readBtree2(file, this.#hugeTree, [1], this.#blockBytes)) {
        const address = record.address(file.addressSize);
        const length = record.uint(file.lengthSize);
        this.#hugeObjects.set(record.uint(file.lengthSize), { address, length });
      }
    }
    const object = this.#hugeObjects.get(key);
    if (!object) throw formatError(`huge heap object ${key} is missing`, id.offset);
    this.#objectBytes.spend(object.length, object.address, 'heap objects');
    return yield* file.cursor(object.address, object.length, 'huge heap object');
  }
}
