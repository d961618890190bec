// LZ4 (32004). HDF5 puts big-endian numbers around the blocks of LZ4: the size of the chunk (8 bytes), the size of a block (4),
// and before each block its compressed size (4). A block that did not shrink is stored as it is. numcodecs wants the size of a
// block before it, little-endian.
import { registerFilter } from 'h5log';

registerFilter(32004, async () => {
  const { default: LZ4 } = await import('numcodecs/lz4');
  const lz4 = LZ4.fromConfig({ id: 'lz4', acceleration: 1 });

  async function decode(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const size = Number(view.getBigUint64(0));
    const blockSize = view.getUint32(8);
    const out = new Uint8Array(size);
    for (let at = 12, to = 0; to < size; ) {
      const expected = Math.min(blockSize, size - to);
      const stored = view.getUint32(at);
      const block = bytes.subarray(at + 4, at + 4 + stored);
      out.set(stored === expected ? block : await lz4.decode(withSize(block, expected)), to);
      at += 4 + stored;
      to += expected;
    }
    return out;
  }

  async function encode(bytes) {
    const packed = (await lz4.encode(bytes)).subarray(4);
    const block = packed.length < bytes.length ? packed : bytes;
    const out = new Uint8Array(16 + block.length);
    const view = new DataView(out.buffer);
    view.setBigUint64(0, BigInt(bytes.length));
    view.setUint32(8, bytes.length);
    view.setUint32(12, block.length);
    out.set(block, 16);
    return out;
  }

  return { name: 'lz4', decode, encode };
});

function withSize(block, size) {
  const bytes = new Uint8Array(4 + block.length);
  new DataView(bytes.buffer).setUint32(0, size, true);
  bytes.set(block, 4);
  return bytes;
}
