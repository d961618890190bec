// Object headers of version 1 and 2, read with all their continuations (HDF5 file format specification, IV.A.1).

import { formatError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { type Cursor, checkSum } from '../format/cursor.ts';
import type { Budget, FileBytes } from '../format/file-bytes.ts';
import * as MESSAGE from '../messages/message-types.ts';

/** A message of an object header, as it is in the file. */
export interface RawMessage {
  readonly type: number;
  readonly flags: number;
  /** Creation order, if the header tracks it; else 0. */
  readonly order: number;
  readonly body: Uint8Array;
  /** File offset of the body. */
  readonly offset: number;
  /** Index of its chunk in `chunks`. */
  readonly chunk: number;
}

/** A chunk of an object header: the first, or one that a continuation message in the chunk with index `parent` points to. */
interface HeaderChunk {
  readonly address: number;
  readonly size: number;
  readonly parent: number;
}

export interface RawHeader {
  readonly address: number;
  readonly version: 1 | 2;
  /** Version 2 flags: bit 2 attribute creation order tracked, 3 indexed, 4 phase change values, 5 times. */
  readonly flags: number;
  /** Times (16 bytes) and phase change values (4 bytes) as stored in a version 2 header. */
  readonly extras: Uint8Array;
  /** Number of hard links. Headers of version 2 have it in a message; 1 stands for those without. */
  readonly referenceCount: number;
  readonly messages: readonly RawMessage[];
  readonly chunks: readonly HeaderChunk[];
  /** Something was taken out of it in place. */
  readonly hasGaps?: boolean;
}

/** Bytes that are read to find out the version and the size of a header. */
const PREFIX_BYTES = 512;

/** Reads an object header with all its continuations. Its bytes count against the budget. */
export function* readHeader(file: FileBytes, address: number, budget: Budget): Io<RawHeader> {
  const cursor = yield* file.peek(address, PREFIX_BYTES, 'object header');
  if (cursor.left >= 4 && cursor.bytes[0] === 0x4f && cursor.bytes[1] === 0x48)
    return yield* readVersion2(file, address, cursor, budget);
  return yield* readVersion1(file, address, cursor, budget);
}

/** Collects the messages of a header; `chunks` also has those that are still to be read. */
class HeaderParts {
  readonly messages: RawMessage[] = [];
  readonly chunks: HeaderChunk[];
  readonly #file: FileBytes;
  readonly #budget: Budget;
  readonly #seen = new Set<number>();
  declare hasGaps?: boolean;

  constructor(file: FileBytes, budget: Budget, address: number, size: number) {
    this.#file = file;
    this.#budget = budget;
    this.chunks = [{ address, size, parent: 0 }];
  }

  /** Reads all chunks, also those that `parse` adds; `parse` gets each with its index. */
  *read(parse: (cursor: Cursor, chunk: number) => void): Io<void> {
    for (const [i, { address, size }] of this.chunks.entries()) {
      const cursor = yield* this.#file.cursor(address, size, i === 0 ? 'object header' : 'header continuation');
      this.#budget.spend(size, address, 'object headers');
      parse(cursor, i);
    }
  }

  /** Adds the message whose head was just read, or the chunk that it points to. */
  add(cursor: Cursor, type: number, size: number, flags: number, order: number, chunk: number): void {
    const { offset } = cursor;
    if (type === MESSAGE.continuation) {
      const stop = cursor.at + size;
      if (size > cursor.left) cursor.fail(`continuation message of ${size} bytes where only ${cursor.left} are left`);
      this.#addChunk(cursor, chunk);
      cursor.at = stop;
      return;
    }
    const body = cursor.take(size, 'header message');
    if (type !== MESSAGE.nil) this.messages.push({ type, flags, order, body, offset, chunk });
    else if (!import.meta.page) this.hasGaps = true;
  }

  /** Adds a chunk; one that was seen already is a cycle. */
  #addChunk(body: Cursor, parent: number): void {
    const address = body.address(this.#file.addressSize);
    const size = body.uint(this.#file.lengthSize);
    if (this.#seen.has(address)) body.fail('a header continuation that points back');
    this.#seen.add(address);
    this.chunks.push({ address, size, parent });
  }
}

function* readVersion2(file: FileBytes, address: number, cursor: Cursor, budget: Budget): Io<RawHeader> {
  cursor.signature('OHDR');
  cursor.expect(2, 'version of the object header');
  const flags = cursor.u8();
  if (flags & 0xc0) cursor.fail(`object header flags ${flags} are not known`);
  const extras = cursor.take((flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0), 'times').slice();
  const size = cursor.uint(1 << (flags & 3));
  const prefix = cursor.at;
  const parts = new HeaderParts(file, budget, address, prefix + size + 4);
  const orders = (flags & 4) !== 0;
  yield* parts.read((chunk, number) => {
    const from = chunk.base;
    const end = chunk.bytes.length - 4;
    if (number > 0) {
      if (end < 4) throw formatError(`header continuation of ${end + 4} bytes`, from);
      chunk.signature('OCHK');
    }
    checkSum(chunk, end, from, ' of an object header');
    chunk.at = number === 0 ? prefix : 4;
    chunk.end = end;
    while (chunk.left >= (orders ? 6 : 4)) {
      const type = chunk.u8();
      const length = chunk.u16();
      const how = chunk.u8();
      parts.add(chunk, type, length, how, orders ? chunk.u16() : 0, number);
    }
    if (!import.meta.page && chunk.left > 0) parts.hasGaps = true;
  });
  const { messages, chunks } = parts;
  const header: RawHeader = { address, version: 2, flags, extras, referenceCount: 1, messages, chunks };
  return !import.meta.page && parts.hasGaps ? { ...header, hasGaps: true } : header;
}

function* readVersion1(file: FileBytes, address: number, cursor: Cursor, budget: Budget): Io<RawHeader> {
  cursor.expect(1, 'version of the object header');
  // The number of messages is not looked at: old versions of HDF5 counted wrong, and all find the messages without it.
  cursor.skip(3);
  const referenceCount = cursor.u32();
  const parts = new HeaderParts(file, budget, address, 16 + cursor.u32());
  yield* parts.read((chunk, number) => {
    if (number === 0) chunk.at = 16;
    while (chunk.left >= 8) {
      const type = chunk.u16();
      const length = chunk.u16();
      const flags = chunk.u8();
      chunk.skip(3);
      parts.add(chunk, type, length, flags, 0, number);
    }
  });
  const { messages, chunks } = parts;
  return { address, version: 1, flags: 0, extras: new Uint8Array(0), referenceCount, messages, chunks };
}
