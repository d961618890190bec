// The 16 bytes that stand for a variable-length value, and the 8 of an address.

import { formatError } from '../base/errors.ts';

/** A u64 address. Null (0) and the undefined address (all ones) both give 0; beyond 2^53-1 no file reaches. */
export function readAddress(bytes: Uint8Array, at: number): number {
  const low = readUint32(bytes, at);
  const high = readUint32(bytes, at + 4);
  if (low === 0xffffffff && high === 0xffffffff) return 0;
  const address = high * 2 ** 32 + low;
  if (!Number.isSafeInteger(address))
    throw formatError(`address 0x${high.toString(16)}${low.toString(16).padStart(8, '0')} is beyond 2^53-1`);
  return address;
}

export function readUint32(bytes: Uint8Array, at: number): number {
  const a = bytes[at];
  const b = bytes[at + 1];
  const c = bytes[at + 2];
  const d = bytes[at + 3];
  if (a === undefined || b === undefined || c === undefined || d === undefined) {
    throw formatError(`4 bytes are needed, ${Math.max(0, bytes.length - at)} are left`);
  }
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
}

export interface HeapId {
  /** Elements of a sequence, bytes of a string. */
  readonly length: number;
  /** Of a heap collection; 0 is null. */
  readonly address: number;
  readonly index: number;
}

export function readHeapId(bytes: Uint8Array, at: number): HeapId {
  return { length: readUint32(bytes, at), address: readAddress(bytes, at + 4), index: readUint32(bytes, at + 12) };
}
