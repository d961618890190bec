// The superblock: all versions are read, version 3 is written, and version 2 for readers of HDF5 1.8 (HDF5 file format specification, II.A).

import { lookup3 } from '../../base/checksum.ts';
import { formatError, H5LogError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { ByteWriter } from './byte-writer.ts';
import { Cursor, checkSum, UNDEFINED } from './cursor.ts';

const SIGNATURE = Uint8Array.of(0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a);

/** Length of the superblock that we write (version 3 with addresses of 8 bytes). */
export const SUPERBLOCK_SIZE = 48;

/** Sizes of version 1 B-tree nodes: a node of K has up to 2K children. */
export interface BtreeK {
  readonly groupLeaf: number;
  readonly groupInternal: number;
  readonly chunk: number;
}

export const DEFAULT_K: BtreeK = { groupLeaf: 4, groupInternal: 16, chunk: 32 };

export interface Superblock {
  readonly version: number;
  /** File offset of the superblock; addresses are relative to it. */
  readonly base: number;
  readonly addressSize: number;
  readonly lengthSize: number;
  /** File consistency flags: which kind of writer has the file open, or died while it had. */
  readonly flags: number;
  /** Address behind the file's contents. */
  readonly end: number;
  /** Addresses of the root group, the superblock extension and the driver information block. */
  readonly root: number;
  readonly extension: number;
  readonly driver: number;
  readonly k: BtreeK;
  /** The bytes of the superblock in the file, by which a writer notices that another one changed it. */
  readonly bytes: Uint8Array;
}

/** Reads the superblock of a file that may be written meanwhile. */
export function* readSuperblock(): Io<Superblock> {
  let size = yield { op: 'size' };
  for (;;) {
    try {
      return yield* findSuperblock(size);
    } catch (error) {
      // A writer may have grown the file and flipped its superblock since the size was read.
      const now = yield { op: 'size' };
      if (now === size) throw error;
      size = now;
    }
  }
}

/** Finds the superblock at 0 or behind a user block of 512, 1024, 2048 ... bytes. */
function* findSuperblock(size: number): Io<Superblock> {
  for (let at = 0; at + 16 <= size; at = at === 0 ? 512 : at * 2) {
    const bytes = new Uint8Array(Math.min(size - at, 128));
    const count = yield { op: 'read', into: bytes, offset: at };
    if (count < bytes.length) throw formatError('the file ended while its superblock was read', at + count);
    if (SIGNATURE.every((value, i) => bytes[i] === value)) return parseSuperblock(bytes, at, size);
  }
  throw formatError('not an HDF5 file: no superblock found', 0);
}

/** Parses the superblock whose bytes begin at file offset `at`; the file has `size` bytes. */
export function parseSuperblock(bytes: Uint8Array, at: number, size: number): Superblock {
  const cursor = new Cursor(bytes, at, 8);
  const version = cursor.u8();
  if (version > 3) cursor.fail(`superblock version ${version} is not known`);
  return version < 2 ? parseOld(cursor, version, at, size) : parseNew(cursor, version, at, size);
}

function parseOld(cursor: Cursor, version: number, at: number, size: number): Superblock {
  cursor.expect(0, 'version of the free-space storage');
  cursor.expect(0, 'version of the root group entry');
  cursor.skip(1);
  cursor.expect(0, 'version of the shared header message format');
  const addressSize = fieldSize(cursor, 'addresses');
  const lengthSize = fieldSize(cursor, 'lengths');
  cursor.skip(1);
  const groupLeaf = cursor.u16();
  const groupInternal = cursor.u16();
  const flags = cursor.u32();
  let chunk = DEFAULT_K.chunk;
  if (version === 1) {
    chunk = cursor.u16();
    cursor.skip(2);
  }
  if (groupLeaf === 0 || groupInternal === 0 || chunk === 0) cursor.fail('a B-tree of rank 0');
  const base = cursor.address(addressSize);
  cursor.skip(addressSize); // free-space information, which no release ever wrote
  const end = cursor.address(addressSize);
  const driver = cursor.address(addressSize);
  cursor.skip(lengthSize); // the root entry's name offset
  const root = cursor.address(addressSize);
  const length = cursor.at + 24;
  return {
    version,
    base: at,
    addressSize,
    lengthSize,
    flags: flags & 0xff,
    end: checkedEnd(end, base, at, size),
    root,
    extension: UNDEFINED,
    driver,
    k: { groupLeaf, groupInternal, chunk },
    bytes: cursor.bytes.slice(0, Math.min(length, cursor.bytes.length)),
  };
}

function parseNew(cursor: Cursor, version: number, at: number, size: number): Superblock {
  const addressSize = fieldSize(cursor, 'addresses');
  const lengthSize = fieldSize(cursor, 'lengths');
  const flags = cursor.u8();
  const base = cursor.address(addressSize);
  const extension = cursor.address(addressSize);
  const end = cursor.address(addressSize);
  const root = cursor.address(addressSize);
  const length = cursor.at;
  checkSum(cursor, length, at, ' of the superblock');
  return {
    version,
    base: at,
    addressSize,
    lengthSize,
    flags,
    end: checkedEnd(end, base, at, size),
    root,
    extension,
    driver: UNDEFINED,
    k: DEFAULT_K,
    bytes: cursor.bytes.slice(0, length + 4),
  };
}

function fieldSize(cursor: Cursor, what: string): number {
  const size = cursor.u8();
  if (size !== 2 && size !== 4 && size !== 8) {
    // 16 and 32 are legal, but no file needs them and no library writes them by default.
    if (size === 16 || size === 32)
      throw new H5LogError('FORMAT', `${what} of ${size} bytes are beyond 2^53 - 1`, { offset: cursor.offset - 1 });
    cursor.fail(`${what} of ${size} bytes`);
  }
  return size;
}

/**
 * The stored end of file counts from byte 0 of the file, unlike every other address. Gives it relative to the base, which is where the
 * signature was found: a user block may have been added or taken away since, and the stored base says where it was.
 */
function checkedEnd(end: number, stored: number, at: number, size: number): number {
  if (end === UNDEFINED) throw formatError('the superblock has no end of file', at);
  const relative = end - Math.max(0, stored);
  if (relative <= 0) throw formatError('the end of file lies before the superblock', at);
  if (at + relative > size)
    throw formatError(`truncated file: ${size} bytes where the superblock says ${at + relative}`, size);
  return relative;
}

/** Encodes a superblock of version 3, or of version 2 of HDF5 1.8. Addresses are relative to the base, as in {@link Superblock}. */
export function encodeSuperblock(
  fields: { base: number; end: number; root: number; extension: number },
  version: 2 | 3 = 3,
): Uint8Array {
  const out = new ByteWriter(SUPERBLOCK_SIZE);
  out.put(SIGNATURE).u8(version).u8(8).u8(8).u8(0);
  out
    .u64(fields.base)
    .u64(fields.extension)
    .u64(fields.end + fields.base)
    .u64(fields.root);
  return out.u32(lookup3(out.done())).done();
}
