import { formatError } from '../base/errors.ts';
import { newRoom, type Room } from './shuffle.ts';

/** So many words cannot make a sum of more than 31 bits. */
const BLOCK = 240;

/**
 * Fletcher's checksum over big-endian 16-bit words, as libhdf5 computes it. Modulo 65535 a word with its bytes swapped is 256 times
 * the word, so that words can be added as this machine has them, and the bytes of the sums swapped in the end.
 */
function fletcherSum(bytes: Uint8Array): number {
  if (bytes.byteOffset % 2 === 1) return fletcherSum(new Uint8Array(bytes));
  const words = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);
  let low = 0;
  let high = 0;
  for (let i = 0; i < words.length; ) {
    for (const stop = Math.min(i + BLOCK, words.length); i < stop; i++) {
      low = (low + (words[i] as number)) | 0;
      high = (high + low) | 0;
    }
    low = folded(low);
    high = folded(high);
  }
  if (bytes.length & 1) {
    low += bytes[bytes.length - 1] as number;
    high += low;
  }
  low = swapped(folded(folded(low)));
  high = swapped(folded(folded(high)));
  return ((high << 16) | low) >>> 0;
}

function folded(sum: number): number {
  return (sum & 0xffff) + (sum >>> 16);
}

function swapped(word: number): number {
  return ((word & 0xff) << 8) | (word >>> 8);
}

/** Appends the checksum of the data. */
export function fletcher32(bytes: Uint8Array, room: Room = newRoom): Uint8Array {
  const out = room(bytes.length + 4);
  out.set(bytes);
  new DataView(out.buffer, out.byteOffset).setUint32(bytes.length, fletcherSum(bytes), true);
  return out;
}

/** Checks and removes the checksum behind the data; throws FORMAT if it is wrong. */
export function checkFletcher32(bytes: Uint8Array): Uint8Array {
  if (bytes.length < 4) throw formatError(`checksummed data of ${bytes.length} bytes`);
  const data = bytes.subarray(0, bytes.length - 4);
  const stored = new DataView(bytes.buffer, bytes.byteOffset + data.length, 4).getUint32(0, true);
  const sum = fletcherSum(data);
  // HDF5 up to 1.6.2 swapped the bytes of each half on little-endian machines.
  const old = ((swapped(sum >>> 16) << 16) | swapped(sum & 0xffff)) >>> 0;
  if (stored !== sum && stored !== old) throw formatError('fletcher32 checksum of a chunk is wrong');
  return data;
}
