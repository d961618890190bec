// The fill value messages, old and new (HDF5 file format specification, IV.A.2.e and IV.A.2.f).

import type { Cursor } from '../format/cursor.ts';

/** When space is allocated: early means at creation, late at the first write, incremental chunk by chunk. */
export type AllocationTime = 'early' | 'late' | 'incremental';

export interface FillMessage {
  readonly allocation: AllocationTime;
  /** 'default' means zeros; 'undefined' means that a reader's buffer is left alone; else an encoded element. */
  readonly value: Uint8Array | 'default' | 'undefined';
  /** Space that is allocated is not filled, and space that is not is not read as the value. */
  readonly isNeverWritten?: boolean;
}

function allocationOf(code: number): AllocationTime {
  return code === 1 ? 'early' : code === 3 ? 'incremental' : 'late';
}

/** Parses a fill value message of version 1 to 3. */
export function parseFill(cursor: Cursor): FillMessage {
  const version = cursor.u8();
  if (version < 1 || version > 3) cursor.fail(`fill value version ${version} is not known`);
  if (version === 3) {
    const flags = cursor.u8();
    const when = timesOf(flags & 3, (flags >> 2) & 3);
    if (flags & 0x10) return { ...when, value: 'undefined' };
    return { ...when, value: flags & 0x20 ? cursor.take(cursor.u32(), 'fill value').slice() : 'default' };
  }
  const when = timesOf(cursor.u8(), cursor.u8());
  const defined = cursor.u8();
  if (version === 2 && defined === 0) return { ...when, value: 'undefined' };
  if (cursor.left < 4) return { ...when, value: 'default' };
  const value = sized(cursor);
  return { ...when, value: defined === 0 ? 'undefined' : value };
}

/** When fill values are written: the code of "never". */
const NEVER = 1;

function timesOf(allocation: number, fill: number): Omit<FillMessage, 'value'> {
  return { allocation: allocationOf(allocation), ...(fill === NEVER && { isNeverWritten: true }) };
}

/** Parses the fill value message of files older than HDF5 1.6: just the value. */
export function parseOldFill(cursor: Cursor): FillMessage {
  return { allocation: 'late', value: sized(cursor) };
}

/** A value behind its size, which is signed: below 0 there is none. */
function sized(cursor: Cursor): FillMessage['value'] {
  const size = cursor.i32();
  return size < 0 ? 'undefined' : size === 0 ? 'default' : cursor.take(size, 'fill value').slice();
}
