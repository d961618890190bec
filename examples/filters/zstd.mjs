// Zstandard (32015): a chunk is one frame. Node 22.15 and later have it built in.
import * as zlib from 'node:zlib';
import { registerFilter } from 'h5log';

if (zlib.zstdDecompressSync) {
  registerFilter(32015, {
    name: 'zstd',
    decode: (bytes) => zlib.zstdDecompressSync(bytes),
    encode: (bytes) => zlib.zstdCompressSync(bytes),
  });
} else {
  registerFilter(32015, async () => {
    const { default: Zstd } = await import('numcodecs/zstd');
    const zstd = Zstd.fromConfig({ id: 'zstd', level: 3 });
    return { name: 'zstd', decode: (bytes) => zstd.decode(bytes), encode: (bytes) => zstd.encode(bytes) };
  });
}
