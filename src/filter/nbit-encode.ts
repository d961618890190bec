// The nbit filter, for writing: see nbit.ts.

import { formatError } from '../base/errors.ts';
import { type Atomic, BLOCK, isWord, type NumberBlock, numberBlock, parse, swapBytes, visitBits } from './nbit.ts';

/** Applies the filter. */
export function encodeNbit(bytes: Uint8Array, values: readonly number[]): Uint8Array {
  const parameters = parse(values);
  if (!parameters) return bytes;
  const { count, type } = parameters;
  if (count * type.size !== bytes.length)
    throw formatError(`nbit filter of ${count * type.size} bytes for ${bytes.length} bytes`);
  // libhdf5 stores a byte more than the bits need where they end with a byte.
  const out = new Uint8Array(Math.floor((count * type.bits) / 8) + 1);
  if (isWord(type)) {
    const native = new Uint8Array(bytes);
    if (type.big) swapBytes(native, type.size);
    const block = numberBlock();
    for (let i = 0; i < count; i += BLOCK) {
      const n = Math.min(BLOCK, count - i);
      loadWords(native, i, n, type, block);
      packBits(block, n, type.bits, out, (i / 8) * type.bits);
    }
  } else {
    const writer = new BitWriter(out, 0);
    const put = (at: number, shift: number, bits: number): void => writer.put((bytes[at] as number) >>> shift, bits);
    for (let i = 0; i < count; i++) visitBits(type, i * type.size, put);
    writer.flush();
  }
  return out;
}

function loadWords(native: Uint8Array, first: number, count: number, type: Atomic, { low, high }: NumberBlock): void {
  const { size, offset } = type;
  if (size === 8) {
    const words = new Uint32Array(native.buffer);
    for (let i = 0, from = 2 * first; i < count; i++, from += 2) {
      const a = words[from] as number;
      const b = words[from + 1] as number;
      low[i] = offset === 0 ? a : offset < 32 ? (a >>> offset) | (b << (32 - offset)) : b >>> (offset - 32);
      high[i] = offset < 32 ? b >>> offset : 0;
    }
    return;
  }
  const numbers = size === 1 ? native : size === 2 ? new Uint16Array(native.buffer) : new Uint32Array(native.buffer);
  for (let i = 0; i < count; i++) low[i] = (numbers[first + i] as number) >>> offset;
}

/** Packs `count` numbers into `bits` bits each, from byte `at` on; `into` has room for them and is zero there. */
export function packBits(block: NumberBlock, count: number, bits: number, into: Uint8Array, at: number): void {
  const { low, high } = block;
  const writer = new BitWriter(into, at);
  for (let i = 0; i < count; i++) {
    if (bits > 32) writer.put(high[i] as number, bits - 32);
    writer.put(low[i] as number, Math.min(bits, 32));
  }
  writer.flush();
}

/** Writes numbers of up to 32 bits, most significant bit first. */
class BitWriter {
  readonly #bytes: Uint8Array;
  #at: number;
  #held = 0;
  #window = 0;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  put(value: number, bits: number): void {
    if (bits > 16) {
      this.put(value >>> 16, bits - 16);
      this.put(value & 0xffff, 16);
      return;
    }
    this.#window = (this.#window << bits) | (value & ((1 << bits) - 1));
    this.#held += bits;
    for (; this.#held >= 8; this.#held -= 8) this.#bytes[this.#at++] = this.#window >>> (this.#held - 8);
  }

  /** Writes the bits of a byte that has begun. */
  flush(): void {
    if (this.#held > 0) this.#bytes[this.#at] = this.#window << (8 - this.#held);
  }
}
