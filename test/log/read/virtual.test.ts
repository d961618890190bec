import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File } from 'h5log';
import { blobStorage, memoryStorage } from 'h5log/storage';
import { beforeEach, expect, test } from 'vitest';
import { handleOf } from '../../../src/api/handle.ts';
import { virtual } from '../../../src/hdf5/layouts/new-dataset.ts';
import type { Mapping } from '../../../src/hdf5/layouts/virtual.ts';
import { simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

let folder: string;
const at = (name: string): string => join(folder, name);
const code = (expected: string) => expect.objectContaining({ name: 'H5LogError', code: expected });
const numbers = (dataset: Dataset): number[] => [...(dataset.readSync() as Int32Array)];

beforeEach(() => {
  folder = temporaryDirectory();
});

/** Adds a virtual dataset to a file that is open for writing. */
function addVirtual(file: File, name: string, shape: readonly number[], mappings: readonly Mapping[]): void {
  const { structure } = handleOf(file).session;
  const layout = virtual(mappings);
  structure.createDataset(structure.root, name, { dtype: 'int32', space: simpleSpace(shape), layout });
}

const whole = (n: number) => ({ start: [0], count: [n] });

test('shows logs, in this file and in others, with what is pending', () => {
  const log = File.createSync(at('log.h5'));
  const data = log.createDataset('group/data', { dtype: 'int32', shape: [4], maxShape: [null] });
  data.write([1, 2, 3, 4]);
  log.closeSync();
  const file = File.createSync(at('file.h5'));
  const own = file.createDataset('own', { dtype: 'float64', shape: [2] });
  own.write([7.9, -8.9]);
  addVirtual(
    file,
    'both',
    [6],
    [
      { file: 'log.h5', dataset: '/group/data', source: whole(4), target: whole(4) },
      { file: '.', dataset: 'own', source: whole(2), target: { start: [4], count: [2] } },
    ],
  );
  expect(numbers(file.dataset('both'))).toEqual([1, 2, 3, 4, 7, -8]);
  own.write([5, 6]);
  expect(numbers(file.dataset('both'))).toEqual([1, 2, 3, 4, 5, 6]);
  file.closeSync();
  const again = File.openSync(at('file.h5'));
  expect(numbers(again.dataset('both'))).toEqual([1, 2, 3, 4, 5, 6]);
  expect(again.dataset('both').readSync(undefined, { as: 'float64' })).toEqual(Float64Array.of(1, 2, 3, 4, 5, 6));
  expect(again.dataset('both').chunks).toBeNull();
  expect(again.dataset('both').pipeline).toEqual([]);
  expect(again.dataset('both').filters).toEqual([]);
  again.closeSync();
});

test('sources that are missing are fill; damaged ones, and those that must not be opened, are errors', async () => {
  const source = File.createSync(at('source.h5'));
  source.createDataset('data', { dtype: 'int32', shape: [3] }).write([1, 2, 3]);
  source.createGroup('group');
  source.closeSync();
  const file = File.createSync(at('file.h5'));
  const part = (i: number) => ({ start: [3 * i], count: [3] });
  addVirtual(
    file,
    'data',
    [12],
    [
      { file: 'source.h5', dataset: 'data', source: whole(3), target: part(0) },
      { file: 'source.h5', dataset: 'nothing', source: whole(3), target: part(1) },
      { file: 'source.h5', dataset: 'group', source: whole(3), target: part(2) },
      { file: 'missing.h5', dataset: 'data', source: whole(3), target: part(3) },
    ],
  );
  addVirtual(file, 'only own', [2], [{ file: '.', dataset: 'none', source: whole(2), target: whole(2) }]);
  file.closeSync();
  const expected = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const opened = File.openSync(at('file.h5'));
  expect(numbers(opened.dataset('data'))).toEqual(expected);
  opened.closeSync();
  const bytes = readFileSync(at('file.h5'));
  for (const closed of [
    File.openSync(at('file.h5'), { external: false }),
    File.openSync(memoryStorage(bytes)),
    await File.open(blobStorage(new Blob([bytes]))),
  ]) {
    await expect(closed.dataset('data').read()).rejects.toThrow(code('UNSUPPORTED'));
    expect(closed.dataset('data').shape).toEqual([12]);
    // What does not touch other files is read.
    expect(await closed.dataset('only own').read()).toEqual(Int32Array.of(0, 0));
    await closed.close();
  }
  writeFileSync(at('source.h5'), readFileSync(at('source.h5')).subarray(0, 500));
  const damaged = File.openSync(at('file.h5'));
  expect(() => damaged.dataset('data').readSync()).toThrow(code('FORMAT'));
  damaged.closeSync();
  rmSync(at('source.h5'));
  const gone = File.openSync(at('file.h5'));
  expect(numbers(gone.dataset('data'))).toEqual(expected.map(() => 0));
  gone.closeSync();
});

test('virtual datasets that show themselves, or one another many times over, are refused', () => {
  const file = File.createSync(at('file.h5'));
  const show = (dataset: string, by = '.') => ({ file: by, dataset, source: whole(2), target: whole(2) });
  addVirtual(file, 'self', [2], [show('self')]);
  addVirtual(file, 'one', [2], [show('two', 'file.h5')]);
  addVirtual(file, 'two', [2], [show('one')]);
  for (let i = 0; i < 15; i++) addVirtual(file, `bomb ${i}`, [2], new Array(12).fill(show(`bomb ${i + 1}`)));
  for (let i = 0; i < 15; i++) addVirtual(file, `deep ${i}`, [2], [show(i === 14 ? 'data' : `deep ${i + 1}`)]);
  file.createDataset('data', { dtype: 'int32', shape: [2] }).write([4, 5]);
  file.createDataset('bomb 15', { dtype: 'int32', shape: [2] }).write([4, 5]);
  file.closeSync();
  const opened = File.openSync(at('file.h5'));
  for (const name of ['self', 'one', 'bomb 0'])
    expect(() => opened.dataset(name).readSync(), name).toThrow(code('FORMAT'));
  expect(numbers(opened.dataset('deep 0'))).toEqual([4, 5]);
  opened.closeSync();
});

test('mappings that do not fit are refused', () => {
  const file = File.createSync(at('file.h5'));
  file.createDataset('data', { dtype: 'int32', shape: [2, 3] });
  file.createDataset('text', { dtype: { class: 'opaque', size: 4, tag: '' } as never, shape: [2] });
  const two = { start: [0, 0], count: [2, 3] };
  addVirtual(file, 'size', [4], [{ file: '.', dataset: 'data', source: two, target: whole(4) }]);
  addVirtual(file, 'rank', [6], [{ file: '.', dataset: 'data', source: whole(6), target: whole(6) }]);
  addVirtual(file, 'own rank', [6], [{ file: '.', dataset: 'data', source: two, target: two }]);
  addVirtual(file, 'type', [2], [{ file: '.', dataset: 'text', source: whole(2), target: whole(2) }]);
  addVirtual(file, 'name', [2], [{ file: '%x', dataset: 'text', source: whole(2), target: whole(2) }]);
  file.closeSync();
  const opened = File.openSync(at('file.h5'));
  for (const [name, expected] of [
    ['size', 'FORMAT'],
    ['rank', 'FORMAT'],
    ['own rank', 'FORMAT'],
    ['type', 'UNSUPPORTED'],
    ['name', 'FORMAT'],
  ] as const)
    expect(() => opened.dataset(name).readSync(), name).toThrow(code(expected));
  opened.closeSync();
});

withOracle('python', 'unlimited virtual datasets', () => {
  test('grow with their sources', () => {
    const log = File.createSync(at('log.h5'));
    const data = log.createDataset('data', { dtype: 'int32', shape: [2, 3], maxShape: [null, 3] });
    data.write([1, 2, 3, 4, 5, 6]);
    log.flushSync();
    pythonSync(
      `import h5py, sys
from h5py import h5s, h5p, h5d, h5t
U = h5s.UNLIMITED
def rows():
  space = h5s.create_simple((2, 3), (U, 3))
  space.select_hyperslab((0, 0), (U, 3))
  return space
with h5py.File(sys.argv[1], 'w', libver='latest') as f:
  plist = h5p.create(h5p.DATASET_CREATE)
  plist.set_virtual(rows(), b'log.h5', b'data', rows())
  h5d.create(f.id, b'view', h5t.STD_I32LE, h5s.create_simple((2, 3), (U, 3)), plist)`,
      [at('view.h5')],
    );
    const file = File.openSync(at('view.h5'));
    const view = file.dataset('view');
    expect(view.shape).toEqual([2, 3]);
    expect(view.maxShape).toEqual([null, 3]);
    data.append([7, 8, 9]);
    log.flushSync();
    expect(file.refreshSync()).toBe(true);
    expect(view.shape).toEqual([3, 3]);
    expect(numbers(view)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    file.closeSync();
    log.closeSync();
    // Where the source cannot be opened the shape is what the file says.
    const closed = File.openSync(at('view.h5'), { external: false });
    expect(closed.dataset('view').shape).toEqual([2, 3]);
    expect(() => closed.dataset('view').readSync()).toThrow(code('UNSUPPORTED'));
    closed.closeSync();
  });
});
