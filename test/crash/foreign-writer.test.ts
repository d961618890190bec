import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { File } from '../../src/index.ts';
import { h5dump, pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { applyCommit, commitOf, FOREIGN, THEIRS } from './states.ts';

const directory = temporaryDirectory();
let count = 0;

/** A file of ours that is open for writing, at commit 3. */
function writing(): { path: string; file: File } {
  const path = join(directory, `shared-${count++}.h5`);
  const file = File.createSync(path);
  file.attributes.set(THEIRS, 0);
  for (let n = 1; n <= 3; n++) {
    applyCommit(file, n);
    file.flushSync();
  }
  return { path, file };
}

const h5py = (path: string, mode: string, statement: string): string =>
  pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], '${mode}') as f:\n    ${statement}`, [path]);
const storage = expect.objectContaining({ code: 'STORAGE', file: expect.any(String) as string });

const changes = [
  ['nothing', 'pass', 'pass'],
  ['an attribute in place', `f.attrs.modify('${THEIRS}', 7.0)`, `assert f.attrs['${THEIRS}'] == 7`],
  ['a new attribute', `f['deep'].attrs['${THEIRS}'] = 'kept'`, `assert f['deep'].attrs['${THEIRS}'] == 'kept'`],
  ['a group', `f.create_group('${FOREIGN}/x')`, `assert '${FOREIGN}/x' in f`],
  ['data', `f.create_dataset('${FOREIGN}/d', data=range(100000))`, `assert f['${FOREIGN}/d'][99999] == 99999`],
] as const;

withOracle(['python', 'h5dump'], 'h5py opens for writing while h5log has the file open', () => {
  test.each(changes)('and changes %s: the flush throws STORAGE, both keep what they have', async (_, change, check) => {
    const { path, file } = writing();
    applyCommit(file, 4);
    h5py(path, 'r+', change);
    const theirs = readFileSync(path);
    expect(() => file.flushSync()).toThrow(storage);
    await expect(file.flush()).rejects.toEqual(storage);
    expect(() => file.flushSync()).toThrow(storage);
    await expect(file.close()).rejects.toEqual(storage);
    expect(() => file.closeSync()).toThrow(storage);
    // Nothing was lost in memory, nothing written over in the file.
    expect(commitOf(file)).toBe(4);
    expect(readFileSync(path).equals(theirs)).toBe(true);
    h5dump('-H', path);
    h5py(path, 'r', check);
    expect(commitOf(File.openSync(path))).toBe(3);
  });

  test.each(changes)(
    'and changes %s: a close with nothing pending leaves the file to h5py',
    async (_, change, check) => {
      const { path, file } = writing();
      h5py(path, 'r+', change);
      const theirs = readFileSync(path);
      await file.close();
      expect(file.closed).toBe(true);
      expect(readFileSync(path).equals(theirs)).toBe(true);
      h5dump('-H', path);
      h5py(path, 'r', check);
      // And the next writer goes on from there.
      const next = File.openSync(path, { mode: 'r+' });
      applyCommit(next, 4);
      next.closeSync();
      h5py(path, 'r', check);
      expect(commitOf(File.openSync(path))).toBe(4);
    },
  );

  test('while a flush is on its way: its flip is refused', async () => {
    const { path, file } = writing();
    applyCommit(file, 4);
    const flush = file.flush();
    const refused = expect(flush).rejects.toEqual(storage);
    // Blocks this process while the write of the flush is on its way, or done and not yet noticed.
    h5py(path, 'r+', "f.attrs['theirs'] = 'kept'");
    await refused;
    h5dump('-H', path);
    h5py(path, 'r', "assert f.attrs['theirs'] == 'kept'");
    expect(commitOf(file)).toBe(4);
  });

  test.each(changes)('before the first flush, and changes %s: STORAGE as well', async (_, change, check) => {
    const { path, file: before } = writing();
    before.closeSync();
    const file = await File.open(path, { mode: 'r+' });
    h5py(path, 'r+', change);
    applyCommit(file, 4);
    await expect(file.flush()).rejects.toEqual(storage);
    h5py(path, 'r', check);
    expect(commitOf(File.openSync(path))).toBe(3);
  });

  test('readers of h5py change nothing', () => {
    const { path, file } = writing();
    const size = statSync(path).size;
    h5py(path, 'r', 'list(f)');
    expect(statSync(path).size).toBe(size);
    applyCommit(file, 4);
    file.closeSync();
    expect(commitOf(File.openSync(path))).toBe(4);
  });
});
