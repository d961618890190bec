// LZF, the fast compression of h5py (filter 32000). A stream is a list of runs. A control byte below 32 begins that many literal
// bytes and one more. Any other has the length of a match, less 2, in its upper three bits (7: the next byte adds to it), and with
// the byte behind it the distance, less 1, in 13 bits.

import { formatError } from '../base/errors.ts';
import { newRoom, type Room } from './shuffle.ts';

const MOST_LITERALS = 32;
const MOST_LENGTH = 264;
const MOST_DISTANCE = 8192;
/** From this length on, copying by a call is faster than byte by byte. */
const LONG = 48;
const HASH_BITS = 14;
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

/** Compresses. What cannot be compressed grows by a byte in every 32. */
export function encodeLzf(bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  const out = new Uint8Array(length + Math.ceil(length / MOST_LITERALS));
  // One more than the place where a hash of three bytes was seen last; 0: never.
  const seen = new Uint32Array(1 << HASH_BITS);
  let to = 0;
  let literals = 0;
  let at = 0;
  while (at + 2 < length) {
    const key = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
    const hash = Math.imul(key, 0x9e3779b1) >>> (32 - HASH_BITS);
    const from = (seen[hash] as number) - 1;
    seen[hash] = at + 1;
    const same =
      from >= 0 &&
      at - from <= MOST_DISTANCE &&
      bytes[from] === bytes[at] &&
      bytes[from + 1] === bytes[at + 1] &&
      bytes[from + 2] === bytes[at + 2];
    if (!same) {
      at++;
      continue;
    }
    to = putLiterals(bytes, literals, at, out, to);
    const most = Math.min(MOST_LENGTH, length - at);
    let count = 3;
    while (count < most && bytes[from + count] === bytes[at + count]) count++;
    const distance = at - from - 1;
    const code = count - 2;
    if (code < 7) {
      out[to++] = (code << 5) | (distance >> 8);
    } else {
      out[to++] = (7 << 5) | (distance >> 8);
      out[to++] = code - 7;
    }
    out[to++] = distance & 0xff;
    at += count;
    literals = at;
  }
  to = putLiterals(bytes, literals, length, out, to);
  return out.subarray(0, to);
}

function putLiterals(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  let to = at;
  for (let from = start; from < end; ) {
    const stop = Math.min(end, from + MOST_LITERALS);
    out[to++] = stop - from - 1;
    while (from < stop) out[to++] = bytes[from++] as number;
  }
  return to;
}
