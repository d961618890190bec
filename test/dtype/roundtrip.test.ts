import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeOne, decodeValues } from '../../src/dtype/decode.ts';
import { containsReference, containsVlen, describeType, sameType } from '../../src/dtype/describe.ts';
import { type Encoded, encodeValues } from '../../src/dtype/encode.ts';
import { heapSlots, visitHeapIds, visitReferences } from '../../src/dtype/heap-ids.ts';
import { type DType, fullType, isBool } from '../../src/dtype/model.ts';
import { runs } from '../seed.ts';
import { anyType, elements, MemoryHeap } from './generate.ts';

const anything = fc
  .tuple(anyType, fc.nat(4))
  .chain(([dtype, count]) => fc.tuple(fc.constant(dtype), fc.constant(count), elements(dtype, count)));

const run = (name: string, property: fc.IRawProperty<unknown>) => fc.assert(property, runs(name, 3000));

/** The same bytes at an odd place of a larger buffer. */
function unaligned(bytes: Uint8Array): Uint8Array {
  const larger = new Uint8Array(bytes.length + 5);
  larger.set(bytes, 3);
  return larger.subarray(3, 3 + bytes.length);
}

const contents = (encoded: Encoded): Encoded[] =>
  encoded.heap.flatMap(({ content }) => [content, ...contents(content)]);

describe('values of any type', () => {
  test('come back as they were', () => {
    run(
      'values of any type',
      fc.property(anything, ([dtype, count, values]) => {
        const heap = new MemoryHeap();
        const bytes = heap.store(encodeValues(dtype, values, count));
        expect(bytes.length).toBe(count * fullType(dtype).size);
        expect(decodeValues(dtype, unaligned(bytes), count, heap)).toEqual(values);
      }),
    );
  });

  test('come back one by one', () => {
    const one = anyType.chain((dtype) => fc.tuple(fc.constant(dtype), elements(dtype, 1)));
    run(
      'scalars of any type',
      fc.property(one, ([dtype, values]) => {
        const heap = new MemoryHeap();
        const value = isBool(dtype) ? values[0] !== 0 : values[0];
        const bytes = heap.store(encodeValues(dtype, values, 1));
        expect(decodeOne(dtype, bytes, heap)).toEqual(value);
        if (fullType(dtype).class === 'vlen' || fullType(dtype).class === 'array') return;
        const alone = new MemoryHeap();
        expect(decodeOne(dtype, alone.store(encodeValues(dtype, value, 1)), alone)).toEqual(value);
      }),
    );
  });

  test('have every heap id that is not empty and every reference visited once', () => {
    run(
      'visits',
      fc.property(anything, ([dtype, count, values]) => {
        const heap = new MemoryHeap();
        const encoded = encodeValues(dtype, values, count);
        const bytes = heap.store(encoded);

        const visited: number[] = [];
        visitHeapIds(dtype, bytes, count, (address, index) => {
          visited.push(index);
          return heap.heap(address, index);
        });
        expect(visited.toSorted((a, b) => a - b)).toEqual(
          heap.objects.flatMap(({ length }, i) => (length > 0 ? [i + 1] : [])),
        );
        if (visited.length > 0) expect(containsVlen(dtype)).toBe(true);

        const slots = [...heapSlots(dtype, bytes, count)].filter(({ length }) => length > 0);
        const item = ({ at, length }: { at: number; length: number }) => `${at}: ${length}`;
        expect(slots.map(item).toSorted()).toEqual(
          encoded.heap
            .filter(({ length }) => length > 0)
            .map(item)
            .toSorted(),
        );

        expect(pathsIn(dtype, bytes, count, heap).toSorted()).toEqual(heap.paths.toSorted());
        const references = [encoded, ...contents(encoded)].flatMap((part) => part.references);
        expect(references.length).toBe(heap.paths.length);
        if (references.length > 0) expect(containsReference(dtype)).toBe(true);
      }),
    );
  });

  test('can be cut anywhere without anything but a FORMAT error', () => {
    run(
      'cut bytes',
      fc.property(anything, fc.nat(), ([dtype, count, values], cut) => {
        const heap = new MemoryHeap();
        const bytes = heap.store(encodeValues(dtype, values, count));
        if (bytes.length === 0) return;
        const short = bytes.subarray(0, cut % bytes.length);
        expect(() => decodeValues(dtype, short, count, heap)).toThrow(expect.objectContaining({ code: 'FORMAT' }));
      }),
    );
  });

  test('of random bytes give values or a FORMAT error', () => {
    const noise = fc.tuple(anyType, fc.nat(3), fc.infiniteStream(fc.nat(255)));
    run(
      'random bytes',
      fc.property(noise, ([dtype, count, stream]) => {
        const heap = new MemoryHeap();
        heap.objects.push(new Uint8Array(16), new Uint8Array(3).fill(0xff));
        const bytes = Uint8Array.from({ length: count * fullType(dtype).size }, () => stream.next().value as number);
        const lenient = { heap: (_: number, index: number) => heap.objects[index % 2], path: String };
        try {
          expect((decodeValues(dtype, bytes, count, lenient) as ArrayLike<unknown>).length).toBe(count);
        } catch (error) {
          expect(error).toMatchObject({ code: 'FORMAT' });
        }
      }),
    );
  });
});

/** The references in bytes and, through the slots, in all that hangs on them. */
function pathsIn(dtype: DType, bytes: Uint8Array, count: number, heap: MemoryHeap): string[] {
  const paths: string[] = [];
  visitReferences(dtype, bytes, count, (at, address) => {
    expect(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(at, true)).toBe(BigInt(address));
    paths.push(heap.path(address));
  });
  for (const { address, index, length, base } of heapSlots(dtype, bytes, count)) {
    const content = heap.heap(address, index);
    if (content) paths.push(...pathsIn(base, content, length, heap));
  }
  return paths;
}

describe('types', () => {
  test('are the same as a copy of themselves, and have a description', () => {
    run(
      'type equality',
      fc.property(anyType, anyType, (a, b) => {
        const copy = typeof a === 'string' ? a : (structuredClone(a) as DType);
        expect(sameType(a, copy)).toBe(true);
        expect(describeType(copy)).toBe(describeType(a));
        expect(sameType(a, b)).toBe(sameType(b, a));
        if (describeType(a) !== describeType(b)) expect(sameType(a, b)).toBe(false);
      }),
    );
  });
});
