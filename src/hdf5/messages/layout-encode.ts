// Encoding layout messages: see layout.ts.

import { ByteWriter, bytesFor } from '../format/byte-writer.ts';
import type { Layout } from './layout.ts';

/** Encodes a contiguous layout; the address is at {@link layoutAddressAt}. */
export function encodeContiguous(address: number, size: number): Uint8Array {
  return new ByteWriter(18).u8(3).u8(1).u64(address).u64(size).done();
}

/**
 * Position of the address in an encoded layout of `length` bytes: that of the data, of the chunk index, or of the heap
 * collection with the mappings of a virtual dataset.
 */
export function layoutAddressAt(layout: Layout, length: number): number {
  if (layout.kind !== 'chunked') return 2;
  return layout.index.kind === 'btree1' ? 3 : length - 8;
}

/** Encodes a layout: version 4 for the chunk indexes of HDF5 1.10 and for virtual datasets, else version 3. */
export function encodeLayout(layout: Layout): Uint8Array {
  const out = new ByteWriter(32);
  switch (layout.kind) {
    case 'compact':
      return out.u8(3).u8(0).u16(layout.data.length).put(layout.data).done();
    case 'contiguous':
      return encodeContiguous(layout.address, layout.size);
    case 'virtual':
      return out.u8(4).u8(3).u64(layout.heap).u32(layout.index).done();
    case 'chunked':
      return encodeChunked(out, layout);
  }
}

function encodeChunked(out: ByteWriter, layout: Layout & { kind: 'chunked' }): Uint8Array {
  const dims = [...layout.chunk, layout.elementSize];
  const { index } = layout;
  if (index.kind === 'btree1') {
    out.u8(3).u8(2).u8(dims.length).u64(index.address);
    for (const size of dims) out.u32(size);
    return out.done();
  }
  // HDF5 1.14 and later insist on the smallest width that holds every size.
  const width = Math.max(...dims.map(bytesFor));
  const filteredSingle = index.kind === 'single' && index.filtered !== null;
  out
    .u8(layout.wideSizes ? 5 : 4)
    .u8(2)
    .u8((filteredSingle ? 2 : 0) | (layout.edgesUnfiltered ? 1 : 0))
    .u8(dims.length)
    .u8(width);
  for (const size of dims) out.uint(size, width);
  switch (index.kind) {
    case 'single':
      out.u8(1);
      if (index.filtered) out.u64(index.filtered.size).u32(index.filtered.mask);
      break;
    case 'implicit':
      out.u8(2);
      break;
    case 'fixedArray':
      out.u8(3).u8(index.pageBits);
      break;
    default:
      out.u8(index.kind === 'extensibleArray' ? 4 : 5).put(index.parameters);
  }
  return out.u64(index.address).done();
}
