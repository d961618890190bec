// Bitshuffle (32008) without compression: the lowest bits of all elements of a block, then the next ones, and so on. Blocks are
// about 8 KiB; what is left behind the last multiple of 8 elements stays as it is. Plain JavaScript, so blocking reads work.
import { registerFilter } from 'h5log';

registerFilter(32008, {
  name: 'bitshuffle',
  decode: (bytes, { parameters }) => transposed(bytes, parameters, false),
  encode: (bytes, { parameters }) => transposed(bytes, parameters, true),
});

function transposed(bytes, [, , size, elements, compression = 0], forward) {
  if (compression !== 0) throw new Error('bitshuffle with a compressor inside');
  const out = new Uint8Array(bytes);
  const block = elements || Math.max(128, Math.floor(8192 / size / 8) * 8);
  const count = Math.floor(bytes.length / size);
  for (let first = 0; first + 8 <= count; first += block) {
    const n = Math.floor(Math.min(block, count - first) / 8) * 8;
    const start = first * size;
    out.fill(0, start, start + n * size);
    for (let i = 0; i < n; i++) {
      for (let bit = 0; bit < 8 * size; bit++) {
        // Bit `bit` of element i, and its place in row `bit` of n bits.
        const plain = (start + i * size) * 8 + bit;
        const row = start * 8 + bit * n + i;
        const [from, to] = forward ? [plain, row] : [row, plain];
        if ((bytes[from >> 3] >> (from & 7)) & 1) out[to >> 3] |= 1 << (to & 7);
      }
    }
  }
  return out;
}
