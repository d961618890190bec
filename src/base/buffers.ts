/*
 * Small buffers are cut from a pool, as Node does for Buffer.allocUnsafe: an ArrayBuffer for every few bytes costs more than the
 * work on them, and keeps the garbage collector busy.
 */

const POOL_BYTES = 64 * 1024;
/** Larger buffers are allocated alone. */
const MOST_POOLED = POOL_BYTES / 16;

let bytes = new Uint8Array(0);
let bytesUsed = 0;
let numbers = new Float64Array(0);
let numbersUsed = 0;

/** Zeroed bytes; small buffers share an ArrayBuffer with others. */
export function allocate(size: number): Uint8Array<ArrayBuffer> {
  if (import.meta.page || size > MOST_POOLED) return new Uint8Array(size);
  if (bytesUsed + size > bytes.length) {
    bytes = new Uint8Array(POOL_BYTES);
    bytesUsed = 0;
  }
  bytesUsed += size;
  return bytes.subarray(bytesUsed - size, bytesUsed);
}

/** Zeroed numbers; small lists share an ArrayBuffer with others. */
export function allocateNumbers(count: number): Float64Array {
  if (import.meta.page || count * 8 > MOST_POOLED) return new Float64Array(count);
  if (numbersUsed + count > numbers.length) {
    numbers = new Float64Array(POOL_BYTES / 8);
    numbersUsed = 0;
  }
  numbersUsed += count;
  return numbers.subarray(numbersUsed - count, numbersUsed);
}

/** A buffer of at least `needed` bytes that begins with the first `used` of another one: that one, or one of twice its size. */
export function grown(from: Uint8Array, used: number, needed: number): Uint8Array {
  if (needed <= from.length) return from;
  const larger = allocate(Math.max(needed, from.length * 2));
  larger.set(from.subarray(0, used));
  return larger;
}

/** Concatenates byte arrays into a new one. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  // Four bytes at a time where both begin at a multiple of four, as what was just read or encoded does.
  const words = a.byteOffset % 4 === 0 && b.byteOffset % 4 === 0 ? a.length >>> 2 : 0;
  const x = new Int32Array(a.buffer, words && a.byteOffset, words);
  const y = new Int32Array(b.buffer, words && b.byteOffset, words);
  for (let i = 0; i < words; i++) if (x[i] !== y[i]) return false;
  for (let i = words * 4; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
