import { describe, expect, test } from 'vitest';
import { T } from '../../../src/dtype/construct.ts';
import { Cursor, UNDEFINED } from '../../../src/hdf5/format/cursor.ts';
import { FileExtent } from '../../../src/hdf5/graph/object-node.ts';
import {
  chunked,
  compact,
  contiguous,
  draftDataset,
  type NewDataset,
  unallocated,
  virtual,
} from '../../../src/hdf5/layouts/new-dataset.ts';
import { NULL_SPACE, SCALAR_SPACE, simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { parseFill } from '../../../src/hdf5/messages/fill-value.ts';
import { type Layout, parseLayout } from '../../../src/hdf5/messages/layout.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { Fixture, hex } from '../fixture.ts';
import { sayLayout } from '../say.ts';

const FANOUT = 64;

function drafted(dataset: NewDataset) {
  const { drafts, extents } = draftDataset(dataset, FANOUT);
  const find = (type: number) => drafts.find((draft) => draft.type === type);
  const bytes = find(MESSAGE.layout)?.bytes as Uint8Array;
  const layout: Layout = parseLayout(new Cursor(bytes, 0), { addressSize: 8, lengthSize: 8 });
  return { drafts, extents, find, layout };
}

const fill = (dataset: NewDataset) =>
  parseFill(new Cursor(drafted(dataset).find(MESSAGE.fill)?.bytes as Uint8Array, 0));

describe('the messages of a new dataset', () => {
  test('are those that libhdf5 writes for the same dataset', () => {
    const latest = new Fixture('latest');
    const dataset: NewDataset = {
      dtype: 'int32',
      space: simpleSpace([10], [null]),
      layout: chunked([4], []),
      filters: [
        { id: 2, name: '', flags: 1, values: [4] },
        { id: 1, name: '', flags: 1, values: [6] },
        { id: 3, name: '', flags: 0, values: [] },
      ],
    };
    const { drafts, find } = drafted(dataset);
    const order = [MESSAGE.dataspace, MESSAGE.datatype, MESSAGE.fill, MESSAGE.layout, MESSAGE.filters];
    expect(drafts.map(({ type }) => type)).toEqual(order);
    for (const type of [MESSAGE.dataspace, MESSAGE.datatype, MESSAGE.fill, MESSAGE.filters])
      expect(hex(find(type)?.bytes as Uint8Array), `type ${type}`).toBe(hex(latest.one('/layouts/filtered', type)));
  });

  test.each<[string, NewDataset, string]>([
    ['unallocated', { dtype: 'int16', space: simpleSpace([3]), layout: unallocated }, 'contiguous 6 at -1'],
    ['at an address', { dtype: 'int16', space: simpleSpace([3]), layout: contiguous(500) }, 'contiguous 6 at 500'],
    [
      'of no elements, whatever address is given',
      { dtype: 'int16', space: simpleSpace([0, 4]), layout: contiguous(500) },
      'contiguous 0 at -1',
    ],
    ['of one byte', { dtype: 'int8', space: SCALAR_SPACE, layout: contiguous(500) }, 'contiguous 1 at 500'],
    ['null', { dtype: 'int16', space: NULL_SPACE, layout: unallocated }, 'contiguous 0 at -1'],
    [
      'in the header',
      { dtype: 'int16', space: simpleSpace([2]), layout: compact(Uint8Array.of(1, 0, 2, 0)) },
      'compact 01000200',
    ],
    [
      'in chunks',
      { dtype: T.compound({ a: 'int8', b: 'int16' }), space: simpleSpace([9], [null]), layout: chunked([4], []) },
      'chunked [4] of 3',
    ],
    ['elsewhere', { dtype: 'int16', space: simpleSpace([2]), layout: virtual([]) }, 'virtual'],
  ])('%s', (_what, dataset, said) => {
    const { layout } = drafted(dataset);
    expect(sayLayout(layout)).toBe(said);
  });

  test('point to the bytes that are written with it, and to the index of its chunks', () => {
    const data = new FileExtent(6, () => [new Uint8Array(6)]);
    const plain = drafted({ dtype: 'int16', space: simpleSpace([3]), layout: contiguous(data) });
    expect(plain.extents).toEqual([data]);
    expect(plain.find(MESSAGE.layout)?.targets).toEqual([{ at: 2, target: data }]);

    const chunk = new FileExtent(4, () => [new Uint8Array(4)]);
    const chunks = [{ cell: [1], address: chunk, size: 4, mask: 0 }];
    const grown = drafted({ dtype: 'int16', space: simpleSpace([4], [null]), layout: chunked([2], chunks) });
    expect(grown.extents).toHaveLength(2);
    expect(grown.extents).toContain(chunk);
    const index = grown.extents.find((extent) => extent !== chunk);
    const [target] = grown.find(MESSAGE.layout)?.targets ?? [];
    expect(target?.target).toBe(index);
    // The address of a version 1 B-tree stands before the chunk sizes, those of other indexes at the end.
    expect(target?.at).toBe(3);
    const fixed = drafted({ dtype: 'int16', space: simpleSpace([4]), layout: chunked([2], chunks) });
    const message = fixed.find(MESSAGE.layout);
    expect(message?.targets?.[0]?.at).toBe((message?.bytes.length as number) - 8);
    expect(fixed.layout).toMatchObject({ index: { kind: 'fixedArray', address: UNDEFINED } });
  });

  test('say when space is allocated, as libhdf5 does for the same layout', () => {
    const space = simpleSpace([2]);
    expect(fill({ dtype: 'int16', space, layout: compact(new Uint8Array(4)) }).allocation).toBe('early');
    expect(fill({ dtype: 'int16', space, layout: unallocated }).allocation).toBe('late');
    expect(fill({ dtype: 'int16', space, layout: chunked([2], []) }).allocation).toBe('incremental');
    expect(fill({ dtype: 'int16', space, layout: unallocated, allocation: 'early' }).allocation).toBe('early');
  });

  test('say what was never written reads as', () => {
    const dataset = { dtype: 'int16', space: simpleSpace([2]), layout: unallocated } as const;
    expect(fill(dataset).value).toBe('default');
    expect(fill({ ...dataset, fill: 'undefined' }).value).toBe('undefined');
    expect(fill({ ...dataset, fill: Uint8Array.of(7, 0) }).value).toEqual(Uint8Array.of(7, 0));
  });

  test('are refused where they cannot be', () => {
    const large = compact(new Uint8Array(0xfff1));
    expect(() => drafted({ dtype: 'int8', space: simpleSpace([0xfff1]), layout: large })).toThrow(
      expect.objectContaining({ code: 'SHAPE' }),
    );
    expect(() => drafted({ dtype: 'int8', space: SCALAR_SPACE, layout: chunked([1], []) })).toThrow(
      expect.objectContaining({ code: 'SHAPE' }),
    );
  });
});
