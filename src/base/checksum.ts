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
