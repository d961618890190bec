import { formatError } from '../errors.ts';
import type { Io } from '../storage/drive.ts';
import type { Budget } from './budget.ts';
import { lookup3 } from './checksum.ts';
import type { Cursor } from './cursor.ts';
import type { FileBytes } from './file-bytes.ts';
import * as MESSAGE from './message-numbers.ts';

/** One message of an object header, as it lies in the file. */
export interface RawMessage {
  readonly type: number;
  readonly flags: number;
  /** Creation order, when the header keeps it; else 0. */
  readonly order: number;
  readonly body: Uint8Array;
  /** File offset of the body. */
  readonly offset: number;
  /** The chunk it lies in: 0 is the first, others are positions in `chunks`. */
  readonly chunk: number;
}

/** Part of an object header: the first, or one that a continuation message in chunk `parent` points to. */
export interface HeaderChunk {
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
  /** Version 1 headers store the number of hard links here; version 2 in a message. */
  readonly referenceCount: number;
  readonly messages: readonly RawMessage[];
  readonly chunks: readonly HeaderChunk[];
}

/** The most bytes of header that are read before anything is known about its size. */
const FIRST_LOOK = 512;

/** Reads an object header of either version with all its continuations, whose bytes count against the budget. */
export function* readHeader(file: FileBytes, address: number, budget: Budget): Io<RawHeader> {
  const cursor = yield* file.peek(address, FIRST_LOOK, 'object header');
  if (cursor.left >= 4 && cursor.bytes[0] === 0x4f && cursor.bytes[1] === 0x48)
    return yield* readVersion2(file, address, cursor, budget);
  return yield* readVersion1(file, address, cursor, budget);
}

interface Pending {
  readonly address: number;
  readonly size: number;
  readonly parent: number;
}

/** Keeps the continuations still to be read and refuses one that was seen already: a cycle. */
class Continuations {
  readonly chunks: Pending[] = [];
  readonly #seen = new Set<number>();

  add(body: Cursor, file: FileBytes, parent: number): void {
    const address = body.address(file.addressSize);
    const size = body.uint(file.lengthSize);
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
  const total = prefix + size + 4;
  const first = yield* file.cursor(address, total, 'object header');
  budget.spend(total, address, 'object headers');
  const continuations = new Continuations();
  const messages: RawMessage[] = [];
  verify(first, address + file.base);
  first.at = prefix;
  first.end = total - 4;
  const orders = (flags & 4) !== 0;
  parseChunk2(first, orders, 0, file, messages, continuations);
  const chunks: HeaderChunk[] = [{ address, size: total, parent: 0 }];
  for (const next of continuations.chunks) {
    if (next.size < 8) throw formatError(`header continuation of ${next.size} bytes`, file.base + next.address);
    const chunk = yield* file.cursor(next.address, next.size, 'header continuation');
    budget.spend(next.size, next.address, 'object headers');
    chunk.signature('OCHK');
    verify(chunk, next.address + file.base);
    chunk.at = 4;
    chunk.end = next.size - 4;
    chunks.push(next);
    parseChunk2(chunk, orders, chunks.length - 1, file, messages, continuations);
  }
  return { address, version: 2, flags, extras, referenceCount: 1, messages, chunks };
}

function verify(cursor: Cursor, offset: number): void {
  const end = cursor.bytes.length - 4;
  const bytes = cursor.bytes;
  const stored =
    ((bytes[end] as number) |
      ((bytes[end + 1] as number) << 8) |
      ((bytes[end + 2] as number) << 16) |
      ((bytes[end + 3] as number) << 24)) >>>
    0;
  if (stored !== lookup3(bytes, 0, end)) throw formatError('checksum of an object header is wrong', offset);
}

function parseChunk2(
  cursor: Cursor,
  orders: boolean,
  chunk: number,
  file: FileBytes,
  messages: RawMessage[],
  continuations: Continuations,
): void {
  const head = orders ? 6 : 4;
  while (cursor.left >= head) {
    const type = cursor.u8();
    const size = cursor.u16();
    const flags = cursor.u8();
    const order = orders ? cursor.u16() : 0;
    addMessage(cursor, type, size, flags, order, chunk, file, messages, continuations);
  }
}

function addMessage(
  cursor: Cursor,
  type: number,
  size: number,
  flags: number,
  order: number,
  chunk: number,
  file: FileBytes,
  messages: RawMessage[],
  continuations: Continuations,
): void {
  const offset = cursor.offset;
  if (type === MESSAGE.continuation) {
    const stop = cursor.at + size;
    if (size > cursor.left) cursor.fail(`continuation message of ${size} bytes where only ${cursor.left} are left`);
    continuations.add(cursor, file, chunk);
    cursor.at = stop;
    return;
  }
  const body = cursor.take(size, 'header message');
  if (type !== MESSAGE.nil) messages.push({ type, flags, order, body, offset, chunk });
}

function* readVersion1(file: FileBytes, address: number, cursor: Cursor, budget: Budget): Io<RawHeader> {
  cursor.expect(1, 'version of the object header');
  cursor.skip(1);
  const count = cursor.u16();
  const referenceCount = cursor.u32();
  const size = cursor.u32();
  const first = yield* file.cursor(address, 16 + size, 'object header');
  budget.spend(16 + size, address, 'object headers');
  first.at = 16;
  const continuations = new Continuations();
  const messages: RawMessage[] = [];
  const chunks: HeaderChunk[] = [{ address, size: 16 + size, parent: 0 }];
  parseChunk1(first, 0, file, messages, continuations);
  for (const next of continuations.chunks) {
    const chunk = yield* file.cursor(next.address, next.size, 'header continuation');
    budget.spend(next.size, next.address, 'object headers');
    chunks.push(next);
    parseChunk1(chunk, chunks.length - 1, file, messages, continuations);
  }
  if (messages.length + continuations.chunks.length > count) {
    throw formatError(
      `object header with ${messages.length + continuations.chunks.length} messages where ${count} are announced`,
      file.base + address,
    );
  }
  return { address, version: 1, flags: 0, extras: new Uint8Array(0), referenceCount, messages, chunks };
}

function parseChunk1(
  cursor: Cursor,
  chunk: number,
  file: FileBytes,
  messages: RawMessage[],
  continuations: Continuations,
): void {
  while (cursor.left >= 8) {
    const type = cursor.u16();
    const size = cursor.u16();
    const flags = cursor.u8();
    cursor.skip(3);
    addMessage(cursor, type, size, flags, 0, chunk, file, messages, continuations);
  }
}
