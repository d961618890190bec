// The fill value messages, old and new (HDF5 file format specification, IV.A.2.e and IV.A.2.f).

import { ByteWriter } from '../format/byte-writer.ts';
import type { Cursor } from '../format/cursor.ts';

/** When space is allocated: early means at creation, late at the first write, incremental chunk by chunk. */
export type AllocationTime = 'early' | 'late' | 'incremental';

export interface FillMessage {
  readonly allocation: AllocationTime;
  /** 'default' means zeros; 'undefined' means that a reader's buffer is left alone; else an encoded element. */
  readonly value: Uint8Array | 'default' | 'undefined';
}

const ALLOCATION = { early: 1, late: 2, incremental: 3 } as const;

function allocationOf(code: number): AllocationTime {
  return code === 1 ? 'early' : code === 3 ? 'incremental' : 'late';
}

/** Parses a fill value message of version 1 to 3. */
export function parseFill(cursor: Cursor): FillMessage {
  const version = cursor.u8();
  if (version < 1 || version > 3) cursor.fail(`fill value version ${version} is not known`);
  if (version === 3) {
    const flags = cursor.u8();
    const allocation = allocationOf(flags & 3);
    if (flags & 0x10) return { allocation, value: 'undefined' };
    if (flags & 0x20) return { allocation, value: sized(cursor) };
    return { allocation, value: 'default' };
  }
  const allocation = allocationOf(cursor.u8());
  cursor.skip(1);
  const defined = cursor.u8();
  if (version === 2 && defined === 0) return { allocation, value: 'undefined' };
  if (cursor.left < 4) return { allocation, value: 'default' };
  const value = sized(cursor);
  if (defined === 0) return { allocation, value: 'undefined' };
  return { allocation, value: value.length === 0 ? 'default' : value };
}

/** Parses the fill value message of files older than HDF5 1.6: just the value. */
export function parseOldFill(cursor: Cursor): FillMessage {
  const value = sized(cursor);
  return { allocation: 'late', value: value.length === 0 ? 'default' : value };
}

function sized(cursor: Cursor): Uint8Array {
  return cursor.take(cursor.u32(), 'fill value').slice();
}

export function encodeFill({ allocation, value }: FillMessage): Uint8Array {
  const always = ALLOCATION[allocation] | (2 << 2); // written to the file only if the user set it
  if (value === 'undefined') return Uint8Array.of(3, always | 0x10);
  if (value === 'default') return DEFAULTS[allocation];
  const out = new ByteWriter(8 + value.length).u8(3).u8(always | 0x20);
  return out.u32(value.length).put(value).done();
}

const defaultFill = (allocation: AllocationTime): Uint8Array => Uint8Array.of(3, ALLOCATION[allocation] | (2 << 2));
const DEFAULTS = {
  early: defaultFill('early'),
  late: defaultFill('late'),
  incremental: defaultFill('incremental'),
} as const;
