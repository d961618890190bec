import { join } from 'node:path';
import { File, select, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import {
  attribute,
  Craft,
  collection,
  GROUP,
  hard,
  header,
  INT32,
  message,
  pack,
  simple,
} from '../../hostile/craft.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

interface Referred {
  readonly path: string;
  readonly where: { readonly size: number; boxes(): Iterable<unknown> };
}

const boxes = (value: unknown): unknown[] => [...(value as Referred).where.boxes()];
const code = (expected: string) => expect.objectContaining({ name: 'H5LogError', code: expected });

describe('references of HDF5 1.12', () => {
  /** H5T_STD_REF: class 7, version 4; the type of references, and the version of their encoding. */
  const STANDARD = pack([4, 0x47 | (0x12 << 8)], [4, 18]);
  const blob = (kind: number, flags: number, heap: number, index: number): Uint8Array =>
    pack([1, kind], [1, flags], [4, 40], [8, heap], [4, index]);

  /** A file with a dataset `data` of 10 elements; references lead to it. */
  function crafted(): File {
    const craft = new Craft();
    const layout = pack([1, 3], [1, 1], [8, -1], [8, 40]);
    const data = craft.put(
      header(
        message(3, INT32),
        message(1, simple(10)),
        message(8, layout),
        attribute('unit', INT32, simple(1), pack([4, 7])),
      ),
    );
    const token = pack([1, 8], [8, data]);
    const slab = pack([4, 2], [4, 3], [1, 1], [1, 2], [4, 1], ...[1, 3, 2, 2].map((n) => [2, n] as const));
    const file = pack([2, 7], 'else.h5');
    const heap = craft.put(
      collection([
        pack(token, [4, slab.length], [4, 1], slab),
        pack(token, [4, 16], [4, 1], [4, 3], [4, 1], [4, 0], [4, 0]),
        pack(token, [2, 4], 'unit'),
        pack(token, file),
        pack(token, file, [4, slab.length], [4, 1], slab),
        pack(token, file, [2, 4], 'unit'),
      ]),
    );
    const object = pack([1, 2], [1, 0], token, new Uint8Array(7));
    const references = [
      object,
      blob(3, 0, heap, 1),
      blob(3, 0, heap, 2),
      blob(4, 0, heap, 3),
      blob(2, 1, heap, 4),
      blob(3, 1, heap, 5),
      blob(4, 1, heap, 6),
      new Uint8Array(18),
    ];
    const all = attribute('all', STANDARD, simple(references.length), pack(...references));
    return File.openSync(craft.done(craft.put(header(GROUP, hard('data', data), all))));
  }

  test('lead to objects, regions and attributes, also of other files', () => {
    const file = crafted();
    const values = file.attributes.get('all') as unknown[];
    expect(values[0]).toBe('/data');
    expect(values[1]).toEqual({ path: '/data', where: expect.objectContaining({ rank: 1, size: 4 }) });
    expect(boxes(values[1])).toEqual([
      { start: [1], count: [2] },
      { start: [4], count: [2] },
    ]);
    // The whole dataset, with the shape that it has.
    expect(boxes(values[2])).toEqual([{ start: [0], count: [10] }]);
    expect(values[3]).toEqual({ path: '/data', attribute: 'unit' });
    expect(values[4]).toEqual({ path: '', file: 'else.h5' });
    expect(values[5]).toEqual({ path: '', file: 'else.h5', where: expect.objectContaining({ size: 4 }) });
    expect(values[6]).toEqual({ path: '', file: 'else.h5', attribute: 'unit' });
    expect(values[7]).toBeNull();
    file.closeSync();
  });
});

describe('region references', () => {
  test('are written as attributes and read again, before and after the commit', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    file.createDataset('group/data', { dtype: 'int32', shape: [10, 6] });
    const where = select.box([2, 1], [3, 2]);
    const striped = select.hyperslab({ start: [0, 0], count: [5, 2], stride: [2, 4], block: [1, 2] });
    file.attributes.set('region', { path: '/group/data', where }, { dtype: T.region });
    file.attributes.set('regions', [{ path: '/group/data', where: striped }, null], { dtype: T.region });
    const check = (opened: File): void => {
      expect(opened.attributes.get('region')).toEqual({ path: '/group/data', where: expect.objectContaining({}) });
      expect(boxes(opened.attributes.get('region'))).toEqual([{ start: [2, 1], count: [3, 2] }]);
      const [first, second] = opened.attributes.get('regions') as [Referred, null];
      expect(first.where.size).toBe(20);
      expect(boxes(first)).toEqual([...striped.boxes()]);
      expect(second).toBeNull();
      expect(opened.attributes.describe('region')?.dtype).toEqual(T.region);
    };
    check(file);
    file.flushSync();
    // The dataset moves, and the references with it.
    file.dataset('group/data').attributes.set('x', 1);
    check(file);
    file.closeSync();
    const again = File.openSync(storage);
    check(again);
    again.closeSync();
  });

  test('are refused where they lead nowhere or are none', () => {
    const file = File.createSync(memoryStorage());
    file.createGroup('group');
    file.createDataset('data', { dtype: 'int8', shape: [4] });
    const set = (value: object | string) => () => file.attributes.set('r', value, { dtype: T.region });
    expect(set({ path: '/none', where: select.box([0], [1]) })).toThrow(code('NOT_FOUND'));
    expect(set({ path: '/group', where: select.box([0], [1]) })).toThrow(code('DTYPE'));
    expect(set({ path: '/data' })).toThrow(code('DTYPE'));
    expect(set('/data')).toThrow(code('DTYPE'));
    // A dataset of a log has its shape elsewhere.
    expect(set({ path: '/data', where: select.all() })).toThrow(code('SELECTION'));
    expect(file.attributes.size).toBe(0);
    file.discard();
  });

  withOracle('python', 'as h5py sees them', () => {
    test('are those that were set', () => {
      const path = join(temporaryDirectory(), 'regions.h5');
      pythonSync(
        `import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f: f['data'] = np.arange(60).reshape(10, 6)`,
        [path],
      );
      const file = File.openSync(path, { mode: 'r+' });
      const where = select.box([1, 2], [2, 3]).or(select.box([7, 0], [1, 6]));
      file.attributes.set('region', { path: '/data', where }, { dtype: T.region });
      file.attributes.set('all', { path: '/data', where: select.all() }, { dtype: T.region });
      const both = T.compound({ n: 'int32', region: T.region, text: T.string() });
      file.attributes.set(
        'both',
        { n: 5, region: { path: '/data', where: { start: [9, 5] } }, text: 'x' },
        { dtype: both },
      );
      file.closeSync();
      const seen = pythonSync(
        `import h5py, json, sys
with h5py.File(sys.argv[1]) as f:
  value = lambda r: [f[r].name, f[r][r].ravel().tolist()]
  both = f.attrs['both']
  print(json.dumps([value(f.attrs['region']), len(value(f.attrs['all'])[1]), value(both['region']), int(both['n'])]))`,
        [path],
      );
      expect(JSON.parse(seen)).toEqual([
        ['/data', [8, 9, 10, 14, 15, 16, 42, 43, 44, 45, 46, 47]],
        60,
        ['/data', [59]],
        5,
      ]);
      const again = File.openSync(path);
      expect(boxes(again.attributes.get('all'))).toEqual([{ start: [0, 0], count: [10, 6] }]);
      expect(again.attributes.get('both')).toEqual({
        n: 5,
        region: { path: '/data', where: expect.objectContaining({}) },
        text: 'x',
      });
      again.closeSync();
    });
  });
});
