// A published file says whether its objects are a tree: then a writer need not look at all of them to find out who links to whom.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { File, T } from 'h5log';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();
let made = 0;

/** 2,000 datasets in 20 groups; `change` does something else before the file is closed. */
function make(change: (file: File) => void = () => {}): string {
  const path = join(folder, `${made++}.h5`);
  const file = File.createSync(path);
  for (let g = 0; g < 20; g++)
    for (let d = 0; d < 100; d++) file.createDataset(`g${g}/d${d}`, { dtype: 'int32', shape: [2] });
  change(file);
  file.closeSync();
  return path;
}

/** Opens the file for writing, writes to one dataset, and gives the bytes that were read by then. */
function bytesToChange(path: string, dataset = 'g7/d7'): number {
  const file = File.openSync(path, { mode: 'r+' });
  file.dataset(dataset, 'int32').write(Int32Array.of(7, 8));
  file.flushSync();
  const { bytes } = file.storageStatistics();
  file.closeSync();
  return bytes;
}

const valuesOf = (path: string, dataset: string): number[] => {
  const file = File.openSync(path);
  const values = [...(file.dataset(dataset, 'int32').readSync() as Int32Array)];
  file.closeSync();
  return values;
};

test('a change of one dataset reads a part of the file, time and again', () => {
  const path = make();
  for (let i = 0; i < 3; i++) expect(bytesToChange(path)).toBeLessThan(200_000);
  expect(valuesOf(path, 'g7/d7')).toEqual([7, 8]);
  expect(valuesOf(path, 'g7/d8')).toEqual([0, 0]);
});

const shared: readonly [string, (file: File) => void][] = [
  ['a second link', (file) => file.createHardLink('g0/again', 'g7/d7')],
  ['a reference in an attribute', (file) => file.group('g0').attributes.set('to', '/g7/d7', { dtype: T.reference })],
  ['references in data', (file) => file.createDataset('g0/refs', { dtype: T.reference, shape: [1] }).write(['/g7/d7'])],
];

test.each(shared)(
  '%s, from the beginning: everything that holds the address of an object moves with it',
  (_, change) => {
    const path = make(change);
    expect(bytesToChange(path)).toBeGreaterThan(400_000);
    check(path);
  },
);

test.each(shared)('%s, added to a tree later on: the same', (_, change) => {
  const path = make();
  const file = File.openSync(path, { mode: 'r+' });
  change(file);
  file.closeSync();
  for (let i = 0; i < 2; i++) expect(bytesToChange(path)).toBeGreaterThan(400_000);
  check(path);
});

/** Whatever leads to the dataset still does. */
function check(path: string): void {
  const file = File.openSync(path);
  expect([...(file.dataset('g7/d7', 'int32').readSync() as Int32Array)]).toEqual([7, 8]);
  if (file.has('g0/again')) expect(valuesOf(path, 'g0/again')).toEqual([7, 8]);
  const reference = file.group('g0').attributes.get('to');
  if (reference !== undefined) expect(reference).toBe('/g7/d7');
  if (file.has('g0/refs')) expect(file.dataset('g0/refs').readSync()).toEqual(['/g7/d7']);
  file.closeSync();
}

test('a dataset that is moved to where another link leads to it: both lead to its newest state', () => {
  const path = make((file) => file.createHardLink('g0/link', 'g7/d7'));
  const file = File.openSync(path, { mode: 'r+' });
  file.move('g7/d7', 'g0/moved');
  file.dataset('g0/moved', 'int32').write(Int32Array.of(7, 8));
  file.closeSync();
  const native = File.openSync(path, { connector: 'native' });
  for (const name of ['g0/link', 'g0/moved'])
    expect([...native.dataset(name, 'int32').readSync()], name).toEqual([7, 8]);
  native.closeSync();
});

test('an object that is deleted, and a table that is written anew because of it', () => {
  const path = make((file) => {
    for (const d of [1, 2, 3]) file.dataset(`g1/d${d}`, 'int32').write(Int32Array.of(d, d));
  });
  const file = File.openSync(path, { mode: 'r+' });
  file.delete('g1/d2');
  file.dataset('g1/d3', 'int32').write(Int32Array.of(9), { start: [0], count: [1] });
  file.closeSync();
  expect(valuesOf(path, 'g1/d1')).toEqual([1, 1]);
  expect(valuesOf(path, 'g1/d3')).toEqual([9, 3]);
  expect(valuesOf(path, 'g19/d99')).toEqual([0, 0]);
});

withOracle('python', 'a tree to which h5py has added a link', () => {
  test('is looked at as a whole', () => {
    const path = make();
    pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as f: f['g0/again'] = f['g7/d7']`, [path]);
    expect(bytesToChange(path)).toBeGreaterThan(400_000);
    expect(valuesOf(path, 'g0/again')).toEqual([7, 8]);
    expect(pythonSync(`import h5py, sys\nprint(h5py.File(sys.argv[1])['g0/again'][()])`, [path]).trim()).toBe('[7 8]');
  });

  test('also where it took the place of something else, so that the file is as long as before', () => {
    const path = make();
    const { size } = statSync(path);
    const change = "f = h5py.File(sys.argv[1], 'r+'); del f['g1']; f['g1'] = f['g7/d7']; f.close()";
    pythonSync(`import h5py, sys\n${change}`, [path]);
    expect(statSync(path).size).toBe(size);
    for (let i = 0; i < 2; i++) {
      const file = File.openSync(path, { mode: 'r+' });
      file.dataset('g7/d7', 'int32').write(Int32Array.of(i, 8));
      file.dataset('g7/d7').attributes.set('step', i);
      file.closeSync();
      for (const each of ['g1', 'g7/d7']) expect(valuesOf(path, each)).toEqual([i, 8]);
      const seen = `import h5py, sys\nd = h5py.File(sys.argv[1])['g1']\nprint(d[()], d.attrs['step'])`;
      expect(pythonSync(seen, [path]).trim()).toBe(`[${i} 8] ${i}.0`);
    }
    const file = File.openSync(path, { mode: 'r+' });
    file.delete('g7/d7');
    file.dataset('g1').attributes.set('step', 2);
    file.closeSync();
    expect(valuesOf(path, 'g1')).toEqual([1, 8]);
  });
});
