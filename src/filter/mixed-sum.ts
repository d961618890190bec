/** A 64-bit checksum in plain JavaScript: two independent multiplicative sums, every byte in both. */
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
