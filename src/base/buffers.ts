/*
 * A buffer of its own for every handful of bytes costs more than what is done with them, and keeps the garbage collector
 * busy. Small ones are cut from slabs, as Node does for its own.
 */

const SLAB = 64 * 1024;
/** What is larger gets a buffer of its own. */
const SMALL = SLAB / 16;

let bytes = new Uint8Array(0);
let bytesUsed = 0;
let numbers = new Float64Array(0);
let numbersUsed = 0;

/** Some bytes, all zero. */
export function allocate(size: number): Uint8Array<ArrayBuffer> {
  if (size > SMALL) return new Uint8Array(size);
  if (bytesUsed + size > bytes.length) {
    bytes = new Uint8Array(SLAB);
    bytesUsed = 0;
  }
  bytesUsed += size;
  return bytes.subarray(bytesUsed - size, bytesUsed);
}

/** Some numbers, all zero. */
export function allocateNumbers(count: number): Float64Array {
  if (count * 8 > SMALL) return new Float64Array(count);
  if (numbersUsed + count > numbers.length) {
    numbers = new Float64Array(SLAB / 8);
    numbersUsed = 0;
  }
  numbersUsed += count;
  return numbers.subarray(numbersUsed - count, numbersUsed);
}

/** The parts one after the other, in a buffer of their own. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
