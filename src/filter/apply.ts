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
  withoutEncoder,
} from './pipeline.ts';
import { encodeScaleOffset } from './scale-offset-encode.ts';
import { type Room, shuffle } from './shuffle.ts';

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
