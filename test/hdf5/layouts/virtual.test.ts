import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../../src/base/checksum.ts';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { readCollection } from '../../../src/hdf5/format/global-heap.ts';
import { encodeMappings, type Mapping } from '../../../src/hdf5/layouts/virtual.ts';
import { parseLayout } from '../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { Fixture, hex } from '../fixture.ts';

/** The block of mappings that libhdf5 keeps in the global heap for a virtual dataset. */
function stored(fixture: Fixture, path: string): Uint8Array {
  const layout = parseLayout(new Cursor(fixture.one(path, MESSAGE.layout), 0), fixture.superblock);
  if (layout.kind !== 'virtual') throw new Error('not virtual');
  const { objects } = fixture.run(readCollection(fixture.file, layout.heap));
  return objects.get(layout.index) as Uint8Array;
}

const BOXES: readonly Mapping[] = [
  { file: '.', dataset: 'source', source: { start: [1, 0], count: [1, 4] }, target: { start: [0, 0], count: [1, 4] } },
  {
    file: 'elsewhere.h5',
    dataset: '/größe',
    source: { start: [2, 1], count: [1, 2] },
    target: { start: [1, 2], count: [1, 2] },
  },
];
const STRIDED: readonly Mapping[] = [
  {
    file: 'elsewhere.h5',
    dataset: '/line',
    source: { start: [1], count: [1], repeated: { times: [4], stride: [4] } },
    target: { start: [0], count: [4] },
  },
];

/** A selection of the block, whichever of the two versions it is written in, as h5py describes it. */
function saySelection(cursor: Cursor): string {
  const show = (values: readonly number[]): string => `[${values.join(',')}]`;
  expect(cursor.u32()).toBe(2); // a hyperslab
  const version = cursor.u32();
  if (version === 1) {
    cursor.skip(8);
    const rank = cursor.u32();
    expect(cursor.u32()).toBe(1); // one block
    const start = Array.from({ length: rank }, () => cursor.u32());
    const count = start.map((s) => cursor.u32() - s + 1);
    const ones = start.map(() => 1);
    return `${show(start)} ${show(ones)} times every ${show(ones)}, blocks of ${show(count)}`;
  }
  expect(version).toBe(2);
  expect(cursor.u8()).toBe(1); // regular
  cursor.skip(4);
  const rank = cursor.u32();
  const parts = Array.from({ length: rank }, () => [cursor.u64(), cursor.u64(), cursor.u64(), cursor.u64()]);
  const [start, stride, times, block] = [0, 1, 2, 3].map((i) => parts.map((part) => part[i] as number)) as [
    number[],
    number[],
    number[],
    number[],
  ];
  return `${show(start)} ${show(times)} times every ${show(stride)}, blocks of ${show(block)}`;
}

function sayMappings(bytes: Uint8Array): string[] {
  const cursor = new Cursor(bytes, 0);
  expect(cursor.u8()).toBe(0);
  const lines = Array.from({ length: cursor.u64() }, () => {
    const file = cursor.cstring();
    const dataset = cursor.cstring();
    const source = saySelection(cursor);
    return `${source} of ${dataset} in ${file} -> ${saySelection(cursor)}`;
  });
  expect(cursor.u32()).toBe(lookup3(bytes, 0, cursor.at - 4));
  expect(cursor.left).toBe(0);
  return lines;
}

describe('the mappings of a virtual dataset', () => {
  test.each([
    ['/boxes', BOXES],
    ['/strided', STRIDED],
  ])('%s: say what h5py shows, as those of libhdf5 do', (path, mappings) => {
    const fixture = new Fixture('virtual');
    const { mappings: lines } = fixture.object(path);
    // An empty stride of one block is the length of the block in libhdf5 1.10, and 1 in h5py.
    expect(sayMappings(stored(fixture, path)).map(withoutStride)).toEqual(lines?.map(withoutStride));
    expect(sayMappings(encodeMappings(mappings)).map(withoutStride)).toEqual(lines?.map(withoutStride));
  });

  test('are the bytes of libhdf5, where that writes the same version of selections', () => {
    const theirs = stored(new Fixture('virtual'), '/boxes');
    expect(hex(encodeMappings(BOXES))).toBe(hex(theirs));
  });

  test('use 64-bit selections where 32 bits do not do', () => {
    const far = 2 ** 33;
    const mapping = {
      file: '.',
      dataset: '/d',
      source: { start: [far], count: [5] },
      target: { start: [0], count: [5] },
    };
    expect(sayMappings(encodeMappings([mapping]))).toEqual([
      `[${far}] [1] times every [1], blocks of [5] of /d in . -> [0] [1] times every [1], blocks of [5]`,
    ]);
  });

  test('may be none', () => {
    expect(sayMappings(encodeMappings([]))).toEqual([]);
  });
});

/** With one block in a dimension, the stride means nothing. */
const withoutStride = (line: string): string => line.replace(/times every \[[\d,]+\]/g, 'times');
