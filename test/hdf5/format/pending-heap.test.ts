import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { T } from '../../../src/dtype/construct.ts';
import { decodeValues } from '../../../src/dtype/decode.ts';
import { containsReference, containsVlen } from '../../../src/dtype/describe.ts';
import { encodeValues } from '../../../src/dtype/encode.ts';
import { PENDING } from '../../../src/dtype/heap-ids.ts';
import type { DType } from '../../../src/dtype/model.ts';
import { FileBytes } from '../../../src/hdf5/format/file-bytes.ts';
import { GlobalHeap } from '../../../src/hdf5/format/global-heap.ts';
import { PendingHeap, PlacedHeap } from '../../../src/hdf5/format/pending-heap.ts';
import { anyType, elements } from '../../dtype/generate.ts';
import { runs } from '../../seed.ts';
import { runOn } from '../fixture.ts';

/** A heap, and the paths of the objects that its numbers stand for. */
function newHeap(first = 0): { heap: PendingHeap; paths: string[] } {
  const paths: string[] = [];
  return { heap: new PendingHeap(first, (path) => PENDING + paths.push(path)), paths };
}

/** A file of the collections alone, and the values that the elements have there. */
function placed(heap: PendingHeap, paths: string[], dtype: DType, bytes: Uint8Array, count: number): unknown {
  const at = 48;
  const place = new PlacedHeap([heap], at, { reference: (number) => (number - PENDING) * 8 });
  const data = bytes.slice();
  place.patch(dtype, data, count);
  const file = new Uint8Array(at + place.size);
  let end = at;
  for (const image of place.images) {
    file.set(image, end);
    end += image.length;
  }
  const reader = new GlobalHeap(new FileBytes(0, file.length));
  const lookup = runOn(file, reader.lookup(dtype, data, count));
  return decodeValues(dtype, data, count, { heap: lookup, path: (address) => paths[address / 8 - 1] ?? '' });
}

const pointing = anyType
  .filter((dtype) => containsVlen(dtype) || containsReference(dtype))
  .chain((dtype) =>
    fc.nat(5).chain((count) => fc.tuple(fc.constant(dtype), fc.constant(count), elements(dtype, count))),
  );

describe('values that wait for a commit', () => {
  test('can be read before it, and are the same after it', () => {
    fc.assert(
      fc.property(pointing, ([dtype, count, values]) => {
        const { heap, paths } = newHeap(7);
        const { bytes } = encodeValues(dtype, values, count, heap);
        const path = (address: number): string => paths[address - PENDING - 1] ?? '';
        const resolver = { heap: (address: number, index: number) => heap.get(address, index), path };
        expect(decodeValues(dtype, bytes, count, resolver)).toEqual(values);
        expect(placed(heap, paths, dtype, bytes, count)).toEqual(values);
        // Placing leaves what is pending as it was: the commit may fail.
        expect(decodeValues(dtype, bytes, count, resolver)).toEqual(values);
      }),
      runs('values that wait for a commit', 2000),
    );
  });

  test('are packed into collections of 64 KiB, whatever their number; a large one has its own', () => {
    const { heap, paths } = newHeap();
    const values = Array.from({ length: 20_000 }, (_, i) => (i === 5000 ? 'x'.repeat(300_000) : `value ${i} ä`));
    const { bytes } = encodeValues(T.string(), values, values.length, heap);
    const sizes = heap.images().map(({ length }) => length);
    expect(Math.max(...sizes)).toBe(300_000 + 32);
    expect(sizes.filter((size) => size > 65_536)).toHaveLength(1);
    expect(sizes.filter((size) => size < 60_000).length).toBeLessThan(3);
    expect(heap.size).toBe(sizes.reduce((sum, size) => sum + size, 0));
    expect(placed(heap, paths, T.string(), bytes, values.length)).toEqual(values);
  });

  test('can be taken back', () => {
    const { heap, paths } = newHeap();
    const first = encodeValues(T.string(), ['a', 'b'], 2, heap).bytes;
    const mark = heap.mark();
    const { size } = heap;
    encodeValues(T.vlen('uint8'), [new Uint8Array(100_000).fill(255), [255, 254]], 2, heap);
    heap.rollback(mark);
    expect(heap.size).toBe(size);
    const second = encodeValues(T.string(), ['c', ''], 2, heap).bytes;
    const bytes = Uint8Array.of(...first, ...second);
    expect(placed(heap, paths, T.string(), bytes, 4)).toEqual(['a', 'b', 'c', '']);
    const [image] = heap.images();
    expect(image?.includes(255)).toBe(false);
  });
});
