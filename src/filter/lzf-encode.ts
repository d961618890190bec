// LZF, for writing: see lzf.ts.

import { MOST_LITERALS } from './lzf.ts';

const MOST_LENGTH = 264;
const MOST_DISTANCE = 8192;
const HASH_BITS = 14;

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
