/**
 * The checksum of HDF5 metadata: Bob Jenkins' lookup3 (hashlittle), initial value 0. Words are assembled from bytes because
 * structures are not aligned.
 */
export function lookup3(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let length = to - from;
  let a = (0xdeadbeef + length) | 0;
  let b = a;
  let c = a;
  let p = from;
  while (length > 12) {
    a = (a + word(bytes, p)) | 0;
    b = (b + word(bytes, p + 4)) | 0;
    c = (c + word(bytes, p + 8)) | 0;
    a = ((a - c) ^ ((c << 4) | (c >>> 28))) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ ((a << 6) | (a >>> 26))) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ ((b << 8) | (b >>> 24))) | 0;
    b = (b + a) | 0;
    a = ((a - c) ^ ((c << 16) | (c >>> 16))) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ ((a << 19) | (a >>> 13))) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ ((b << 4) | (b >>> 28))) | 0;
    b = (b + a) | 0;
    p += 12;
    length -= 12;
  }
  if (length === 0) return c >>> 0;
  a = (a + tail(bytes, p, Math.min(4, length))) | 0;
  if (length > 4) b = (b + tail(bytes, p + 4, Math.min(4, length - 4))) | 0;
  if (length > 8) c = (c + tail(bytes, p + 8, length - 8)) | 0;
  c = ((c ^ b) - ((b << 14) | (b >>> 18))) | 0;
  a = ((a ^ c) - ((c << 11) | (c >>> 21))) | 0;
  b = ((b ^ a) - ((a << 25) | (a >>> 7))) | 0;
  c = ((c ^ b) - ((b << 16) | (b >>> 16))) | 0;
  a = ((a ^ c) - ((c << 4) | (c >>> 28))) | 0;
  b = ((b ^ a) - ((a << 14) | (a >>> 18))) | 0;
  c = ((c ^ b) - ((b << 24) | (b >>> 8))) | 0;
  return c >>> 0;
}

function word(bytes: Uint8Array, at: number): number {
  // The caller keeps `at + 3` inside; the assertions only satisfy the index checks of the compiler.
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function tail(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) value |= (bytes[at + i] as number) << (8 * i);
  return value;
}

/**
 * Checksum of kind 2 in commit records (docs/format.md): 64 bits, where the platform has no AES-GMAC that can be called
 * synchronously. Two independent multiplicative sums, every byte in both.
 */
export function mixedSum(): { readonly kind: 2; update(bytes: Uint8Array): void; digest(): Uint8Array } {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  return {
    kind: 2,
    update(bytes) {
      for (let i = 0; i < bytes.length; i++) {
        const byte = bytes[i] as number;
        a = Math.imul(a ^ byte, 0x01000193);
        b = (Math.imul(b, 0x85ebca6b) + byte + (b >>> 15)) | 0;
      }
    },
    digest() {
      const out = new Uint8Array(8);
      new DataView(out.buffer).setUint32(0, a >>> 0, true);
      new DataView(out.buffer).setUint32(4, b >>> 0, true);
      return out;
    },
  };
}

// Kind 1 of checksums (docs/format.md), for pages, which have no blocking AES: AES-GMAC with a key of zeros, whose two encrypted blocks are
// constants. What is left is GHASH, a product in GF(2^128) for every 16 bytes (NIST SP 800-38D, 6.4).

/** The encrypted block of zeros, which every product is with, and the one that the sum is masked with. */
const HASH_KEY = [0x66e94bd4, 0xef8a2c3b, 0x884cfa59, 0xca342b2e] as const;
const MASK = [0x58e2fcce, 0xfa7e3061] as const;
/** x^128 modulo the polynomial of the field. */
const REDUCTION = 0xe1000000;

let products: Int32Array | undefined;

/** For each of 16 places and each value of the byte there, its product with the key: 4 words. */
function productTable(): Int32Array {
  if (products) return products;
  const table = new Int32Array(16 * 256 * 4);
  let [a, b, c, d]: number[] = [...HASH_KEY];
  for (let bit = 0; bit < 128; bit++) {
    const at = (bit >> 3) * 256;
    const value = 0x80 >> (bit & 7);
    for (let byte = value; byte < 256; byte++) {
      if (!(byte & value)) continue;
      const to = (at + byte) * 4;
      table[to] = (table[to] as number) ^ (a as number);
      table[to + 1] = (table[to + 1] as number) ^ (b as number);
      table[to + 2] = (table[to + 2] as number) ^ (c as number);
      table[to + 3] = (table[to + 3] as number) ^ (d as number);
    }
    const carry: number = (d as number) & 1 ? REDUCTION : 0;
    d = ((d as number) >>> 1) | ((c as number) << 31);
    c = ((c as number) >>> 1) | ((b as number) << 31);
    b = ((b as number) >>> 1) | ((a as number) << 31);
    a = ((a as number) >>> 1) ^ carry;
  }
  products = table;
  return table;
}

/** Replaces 16 bytes by their product with the key. */
function multiplied(table: Int32Array, state: Uint8Array, words: DataView): void {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let place = 0; place < 16; place++) {
    const at = ((place << 8) | (state[place] as number)) << 2;
    a ^= table[at] as number;
    b ^= table[at + 1] as number;
    c ^= table[at + 2] as number;
    d ^= table[at + 3] as number;
  }
  words.setInt32(0, a);
  words.setInt32(4, b);
  words.setInt32(8, c);
  words.setInt32(12, d);
}

/** The first 8 bytes of the AES-GMAC of some bytes, as `checksummer` of Node makes it. */
export function gmac(): { readonly kind: 1; update(bytes: Uint8Array): void; digest(): Uint8Array } {
  const table = productTable();
  const state = new Uint8Array(16);
  const words = new DataView(state.buffer);
  let [length, filled] = [0, 0];
  const multiply = (): void => multiplied(table, state, words);
  return {
    kind: 1,
    update(bytes) {
      length += bytes.length;
      for (let i = 0; i < bytes.length; ) {
        if (filled === 0 && bytes.length - i >= 16) {
          for (let place = 0; place < 16; place++) state[place] = (state[place] as number) ^ (bytes[i++] as number);
          multiply();
          continue;
        }
        state[filled] = (state[filled] as number) ^ (bytes[i++] as number);
        if (++filled < 16) continue;
        multiply();
        filled = 0;
      }
    },
    digest() {
      if (filled > 0) multiply();
      filled = 0;
      // The last block: the number of bits, and that nothing was encrypted.
      words.setUint32(0, words.getUint32(0) ^ Math.floor(length / 2 ** 29));
      words.setUint32(4, words.getUint32(4) ^ (length * 8));
      multiply();
      words.setUint32(0, words.getUint32(0) ^ MASK[0]);
      words.setUint32(4, words.getUint32(4) ^ MASK[1]);
      return state.slice(0, 8);
    },
  };
}
