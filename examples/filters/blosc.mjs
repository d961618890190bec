// Blosc (32001): a chunk is what Blosc makes, whatever compressor it uses inside. WebAssembly, so reads must be asynchronous.
import { registerFilter } from 'h5log';

registerFilter(32001, async () => {
  const { default: Blosc } = await import('numcodecs/blosc');
  const blosc = Blosc.fromConfig({ id: 'blosc', cname: 'lz4', clevel: 5, shuffle: 1, blocksize: 0 });
  return { name: 'blosc', decode: (bytes) => blosc.decode(bytes), encode: (bytes) => blosc.encode(bytes) };
});
