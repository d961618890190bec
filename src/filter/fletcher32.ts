import { formatError } from '../base/errors.ts';

/** Fletcher's checksum over big-endian 16-bit words, as libhdf5 computes it. */
function fletcherSum(bytes: Uint8Array): number {
  let low = 0;
  let high = 0;
  const words = bytes.length >> 1;
  for (let i = 0; i < words; ) {
    // The sums of up to 360 words cannot overflow 32 bits.
    for (const stop = Math.min(i + 360, words); i < stop; i++) {
      low += ((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number);
      high += low;
    }
    low = (low & 0xffff) + (low >>> 16);
    high = (high & 0xffff) + (high >>> 16);
  }
  if (bytes.length & 1) {
    low += (bytes[bytes.length - 1] as number) << 8;
    high += low;
    low = (low & 0xffff) + (low >>> 16);
    high = (high & 0xffff) + (high >>> 16);
  }
  low = (low & 0xffff) + (low >>> 16);
  high = (high & 0xffff) + (high >>> 16);
  return ((high << 16) | low) >>> 0;
}

/** Appends the checksum of the data. */
export function fletcher32(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array(bytes.length + 4);
  out.set(bytes);
  new DataView(out.buffer).setUint32(bytes.length, fletcherSum(bytes), true);
  return out;
}

/** Checks and removes the checksum behind the data; throws FORMAT if it is wrong. */
export function checkFletcher32(bytes: Uint8Array): Uint8Array {
  if (bytes.length < 4) throw formatError(`checksummed data of ${bytes.length} bytes`);
  const data = bytes.subarray(0, bytes.length - 4);
  const stored = new DataView(bytes.buffer, bytes.byteOffset + data.length, 4).getUint32(0, true);
  if (stored !== fletcherSum(data)) throw formatError('fletcher32 checksum of a chunk is wrong');
  return data;
}
