// Applying filters to chunks that are written.

import { deflate } from '#platform';
import { H5LogError } from '../base/errors.ts';
import { fletcher32 } from './fletcher32.ts';
import { encodeLzf } from './lzf-encode.ts';
import { encodeNbit } from './nbit-encode.ts';
import {
  type Codecs,
  type FilteredChunk,
  type FilterStep,
  findCodec,
  LZF,
  PendingBytes,
  runCodec,
  unusable,
  withoutEncoder,
} from './pipeline.ts';
import { encodeScaleOffset } from './scale-offset-encode.ts';
import { type Room, shuffle } from './shuffle.ts';
import { storedSize, storeZlib } from './zlib.ts';

/**
 * Applies filters to a chunk, in their order. With `skipped`, an optional filter that would not make the data shorter is left out, and
 * its bit is set there, as libhdf5 does it; without, all filters are applied. The result may lie in a buffer of `room`.
 */
export function applyFilters(
  bytes: Uint8Array,
  filters: readonly FilterStep[],
  chunk: FilteredChunk,
  codecs?: Codecs,
  skipped?: { mask: number },
  room?: Room,
): Uint8Array | PendingBytes {
  return apply(bytes, filters, 0, chunk, codecs, skipped, room);
}

function apply(
  bytes: Uint8Array,
  filters: readonly FilterStep[],
  first: number,
  chunk: FilteredChunk,
  codecs: Codecs | undefined,
  skipped: { mask: number } | undefined,
  room?: Room,
): Uint8Array | PendingBytes {
  let data = bytes;
  for (let i = first; i < filters.length; i++) {
    const filter = filters[i] as FilterStep;
    const codec = findCodec(filter.id, codecs);
    const encoded = codec ? runCodec('encode', filter, codec, data, chunk) : encode(data, filter, room);
    const before = data;
    const kept = (result: Uint8Array): Uint8Array => {
      if (!skipped || !(filter.flags & 1) || filter.id === 2 || filter.id === 3 || result.length < before.length)
        return result;
      skipped.mask |= 1 << i;
      return before;
    };
    if (encoded instanceof PendingBytes) {
      const rest = encoded.promise.then((result) => {
        const next = apply(kept(result), filters, i + 1, chunk, codecs, skipped);
        return next instanceof PendingBytes ? next.promise : next;
      });
      return new PendingBytes(rest, encoded.blocked().message);
    }
    data = kept(encoded);
  }
  return data;
}

function encode(bytes: Uint8Array, filter: FilterStep, room: Room | undefined): Uint8Array {
  switch (filter.id) {
    case 1:
      return deflate(bytes, filter.values[0] ?? 6);
    case 2:
      return shuffle(bytes, filter.values[0] ?? 1, room);
    case 3:
      return fletcher32(bytes, room);
    case 5:
      return encodeNbit(bytes, filter.values);
    case 6:
      return encodeScaleOffset(bytes, filter.values);
    case LZF:
      return encodeLzf(bytes);
    default:
      throw new H5LogError('UNSUPPORTED', withoutEncoder(filter));
  }
}

/**
 * For chunks whose bytes are known after their place in the file: the length of `size` bytes after filters that make a length which does
 * not depend on them (deflate then stores its data), and the bits of filters that have to be left out after all. To leave out all of them
 * is no way: libhdf5 does not note that it has applied them when a chunk gets other values and has the same length as before.
 */
export function lateLength(
  filters: readonly FilterStep[],
  size: number,
): { readonly length: number; readonly mask: number } {
  let length = size;
  let mask = unusable(filters);
  filters.forEach(({ id }, i) => {
    if (id === 1) length = storedSize(length);
    else if (id === 3) length += 4;
    else if (id !== 2) mask |= 1 << i;
  });
  return { length, mask };
}

/** Applies those filters. The bytes stay as they are. */
export function applyLate(bytes: Uint8Array, filters: readonly FilterStep[]): Uint8Array {
  return filters.reduce((data, { id, values }) => {
    if (id === 1) return storeZlib(data);
    if (id === 2 && values[0]) return shuffle(data, values[0]);
    return id === 3 ? fletcher32(data) : data;
  }, bytes);
}
