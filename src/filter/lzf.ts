// LZF, the fast compression of h5py (filter 32000). A stream is a list of runs. A control byte below 32 begins that many literal
// bytes and one more. Any other has the length of a match, less 2, in its upper three bits (7: the next byte adds to it), and with
// the byte behind it the distance, less 1, in 13 bits.

import { formatError } from '../base/errors.ts';
import { newRoom, type Room } from './shuffle.ts';

export const MOST_LITERALS = 32;
/** From this length on, copying by a call is faster than byte by byte. */
const LONG = 48;

/** Bytes behind the data that may be touched. */
const SLACK = 4;

/** Decompresses into at most `limit` bytes. */
export function decodeLzf(bytes: Uint8Array, limit: number, room: Room = newRoom): Uint8Array {
  // Short runs are copied four bytes at a time, up to three more than they have.
  const out = room(limit + SLACK);
  const target = new DataView(out.buffer, out.byteOffset, out.length);
  const source = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = bytes.length;
  let at = 0;
  let to = 0;
  while (at < end) {
    const control = bytes[at++] as number;
    if (control < MOST_LITERALS) {
      const stop = to + control + 1;
      if (at + control >= end) throw formatError('LZF data ends within literal bytes');
      if (stop > limit) throw tooLong(limit);
      if (!import.meta.page && at + control + SLACK <= end) {
        for (let i = 0; i <= control; i += 4) target.setInt32(to + i, source.getInt32(at + i));
        at += control + 1;
        to = stop;
      } else while (to < stop) out[to++] = bytes[at++] as number;
      continue;
    }
    let length = (control >> 5) + 2;
    if (length === 9) {
      if (at >= end) throw formatError('LZF data ends within a match');
      length += bytes[at++] as number;
    }
    if (at >= end) throw formatError('LZF data ends within a match');
    const distance = (((control & 31) << 8) | (bytes[at++] as number)) + 1;
    const stop = to + length;
    if (distance > to) throw formatError('LZF data refers to before its start');
    if (stop > limit) throw tooLong(limit);
    if (!import.meta.page && length < LONG && distance >= 4) {
      for (let i = 0; i < length; i += 4) target.setInt32(to + i, target.getInt32(to + i - distance));
    } else if (!import.meta.page && length >= LONG && distance >= length) {
      out.copyWithin(to, to - distance, stop - distance);
    } else if (!import.meta.page && length >= LONG && distance === 1) {
      out.fill(out[to - 1] as number, to, stop);
    } else {
      for (let i = to; i < stop; i++) out[i] = out[i - distance] as number;
    }
    to = stop;
  }
  return out.subarray(0, to);
}

function tooLong(limit: number): Error {
  return formatError(`LZF data holds more than the ${limit} bytes expected`);
}
