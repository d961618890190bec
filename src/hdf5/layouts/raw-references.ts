// Object references in the raw data of datasets. The objects they lead to keep their addresses, unless the data can be written anew.

import { containsReference } from '../../dtype/describe.ts';
import { heapSlots, visitReferences } from '../../dtype/heap-ids.ts';
import { PendingBytes, unfilter } from '../../filter/pipeline.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import type { Budget, FileBytes } from '../format/file-bytes.ts';
import type { GlobalHeap, HeapLookup } from '../format/global-heap.ts';
import type { DatasetParts } from '../graph/dataset-header.ts';
import { elementCount } from '../messages/dataspace.ts';
import { readChunkIndex } from './chunks/chunk-index.ts';

/** The most bytes of raw data that are searched for references. */
const MOST_BYTES = 256 * 2 ** 20;

/** The addresses of objects that a dataset's raw data refers to, or why they cannot be found out. */
export function* rawReferences(
  file: FileBytes,
  parts: DatasetParts,
  heap: GlobalHeap,
  budget: Budget,
): Io<Set<number> | string> {
  const found = new Set<number>();
  const { dtype, type, layout } = parts;
  if (!layout) return found;
  const count = elementCount(parts.space);
  if (count * type.size > MOST_BYTES) return `more than ${MOST_BYTES} bytes of references`;
  const search = function* (bytes: Uint8Array): Io<void> {
    const elements = Math.floor(bytes.length / type.size);
    yield* heap.load(dtype, bytes, elements);
    collect(dtype, bytes, elements, heap.contents());
  };
  const regions: [number, number][] = [];
  const collect = (inner: typeof dtype, bytes: Uint8Array, elements: number, contentOf: HeapLookup): void => {
    visitReferences(
      inner,
      bytes,
      elements,
      (_at, address) => found.add(address),
      (_at, address, index) => regions.push([address, index]),
    );
    for (const slot of heapSlots(inner, bytes, elements)) {
      const content = slot.length > 0 ? contentOf(slot.address, slot.index) : undefined;
      if (content && containsReference(slot.base)) collect(slot.base, content, slot.length, contentOf);
    }
  };
  if (hasOtherReferences(dtype)) return 'references of a kind that h5log does not know';
  if (parts.fill.value instanceof Uint8Array) yield* search(parts.fill.value);
  if (layout.kind === 'compact') yield* search(layout.data);
  else if (layout.kind === 'contiguous') {
    if (layout.address === UNDEFINED) return found;
    budget.spend(layout.size, layout.address, 'data');
    yield* search(yield* file.read(layout.address, layout.size, 'data'));
  } else if (layout.kind === 'chunked') {
    if (layout.index.address === UNDEFINED) return found;
    const known = new Set([1, 2, 3, 4, 5, 6, 32_000]);
    const { chunk, elementSize, edgesUnfiltered } = layout;
    const chunkBytes = elementSize * sizeOf(chunk);
    if (chunkBytes > MOST_BYTES) return `chunks of more than ${MOST_BYTES} bytes`;
    const { shape, maxShape } = parts.space.kind === 'simple' ? parts.space : { shape: [], maxShape: [] };
    const grid = { maxShape, chunk, elementSize, filtered: parts.filters.length > 0 };
    for (const { cell, address, size, mask } of yield* readChunkIndex(file, layout.index, grid)) {
      const stored = yield* file.read(address, size, 'chunk');
      budget.spend(size, address, 'chunks');
      if (parts.filters.some(({ id }, i) => !known.has(id) && (mask & (1 << i)) === 0))
        return 'references in chunks with a filter that h5log does not know';
      const isEdge = cell.some((c, d) => (c + 1) * (chunk[d] as number) > (shape[d] as number));
      const whole = { size: chunkBytes, elementSize, shape: chunk };
      const data = edgesUnfiltered && isEdge ? stored : unfilter(stored, parts.filters, mask, whole);
      yield* search(data instanceof PendingBytes ? yield* settle(data) : data);
    }
  }
  for (const [address, index] of regions) {
    const content = heap.get(address, index);
    if (!content) return 'region references';
    if (content.length >= 8) found.add(new Cursor(content, 0).address(8));
  }
  return found;
}

/** Whether a type contains references of a kind that is not known. */
export function hasOtherReferences(dtype: DatasetParts['dtype']): boolean {
  if (typeof dtype === 'string') return false;
  const type = dtype as DatasetParts['type'];
  switch (type.class) {
    case 'reference':
      return type.to === 'other';
    case 'compound':
      return type.fields.some((field) => hasOtherReferences(field.dtype));
    case 'array':
    case 'vlen':
      return hasOtherReferences(type.base);
    default:
      return false;
  }
}
