// Shared messages: records that point to a committed datatype or into the file's shared message heap, and the table of that
// heap (HDF5 file format specification, III.I and IV.A.2).

import { formatError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { Cursor, checkSum } from '../format/cursor.ts';
import type { FileBytes } from '../format/file-bytes.ts';
import { FractalHeap } from './fractal-heap.ts';

/** Where the content of a shared message is: in the header of an object, or in the file's shared message heap. */
type SharedRecord =
  | { readonly kind: 'object'; readonly address: number }
  | { readonly kind: 'heap'; readonly id: Cursor };

export function parseShared(cursor: Cursor, file: FileBytes): SharedRecord {
  const version = cursor.u8();
  const type = cursor.u8();
  if (version === 1) {
    cursor.skip(6 + file.lengthSize);
    return { kind: 'object', address: cursor.address(file.addressSize) };
  }
  if (version !== 2 && version !== 3) cursor.fail(`shared message version ${version} is not known`);
  if (version === 3 && type === 1) {
    const at = cursor.need(8, 'heap id');
    return { kind: 'heap', id: new Cursor(cursor.bytes, cursor.base, at, at + 8) };
  }
  return { kind: 'object', address: cursor.address(file.addressSize) };
}

/** Encodes a record that points to a committed datatype. */
export function encodeSharedObject(address: number): Uint8Array {
  return new ByteWriter(10).u8(3).u8(2).u64(address).done();
}

/** Position of the address in an encoded record. */
export const SHARED_ADDRESS_AT = 2;

/** The file's shared message table, which the superblock extension points to. */
export class SharedTable {
  readonly #file: FileBytes;
  readonly #indexes: readonly { types: number; heap: number }[];
  readonly #heaps = new Map<number, FractalHeap>();
  /** Contents by heap and id: a message that many objects share is in memory once. */
  readonly #contents = new Map<string, Uint8Array>();

  private constructor(file: FileBytes, indexes: readonly { types: number; heap: number }[]) {
    this.#file = file;
    this.#indexes = indexes;
  }

  static *open(file: FileBytes, message: Cursor): Io<SharedTable> {
    message.expect(0, 'version of the shared message table');
    const address = message.address(file.addressSize);
    const count = message.u8();
    const table = yield* file.cursor(address, 4 + count * (14 + 2 * file.addressSize) + 4, 'shared message table');
    table.signature('SMTB');
    const indexes: { types: number; heap: number }[] = [];
    for (let i = 0; i < count; i++) {
      table.expect(0, 'version of the shared message index');
      table.skip(1);
      const types = table.u16();
      table.skip(10 + file.addressSize);
      indexes.push({ types, heap: table.address(file.addressSize) });
    }
    checkSum(table, table.at, file.base + address);
    return new SharedTable(file, indexes);
  }

  /** The content of a shared message of a type. */
  *content(type: number, id: Cursor): Io<Uint8Array> {
    const index = this.#indexes.find(({ types }) => (types & (1 << type)) !== 0);
    if (!index) throw formatError(`no shared message index holds messages of type ${type}`, id.offset);
    const key = `${index.heap} ${id.bytes.subarray(id.at, id.end).join(' ')}`;
    const known = this.#contents.get(key);
    if (known) return known;
    let heap = this.#heaps.get(index.heap);
    if (!heap) {
      heap = yield* FractalHeap.open(this.#file, index.heap);
      this.#heaps.set(index.heap, heap);
    }
    const object = yield* heap.object(id);
    const content = object.bytes.subarray(object.at, object.end);
    this.#contents.set(key, content);
    return content;
  }
}
