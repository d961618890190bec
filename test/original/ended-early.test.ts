import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { expect, test } from 'vitest';
import { checkLogFile, type SeenFile, seenByH5py } from '../log/format/check-log.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { folder } from './fixtures.ts';

/** Puts other counts into a file, as they were before the original closed it. */
const COUNTS = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    f.attrs.modify('_int_att', np.array([int(x) for x in sys.argv[2].split(',')], '<i4'))
`;

withOracle('python', 'a file that the original did not close', () => {
  const work = temporaryDirectory();

  /** recm_1r: /ra and /rc, one log, one table; with other counts. */
  const endedWith = (name: string, counts: string): string => {
    const path = join(work, name);
    cpSync(join(folder, 'recm_1r.h5'), path);
    pythonSync(COUNTS, [path, counts]);
    return path;
  };

  test('shows nothing of what it flushed, can be appended to, and keeps the bytes under other names', () => {
    const path = endedWith('never-closed.h5', '0,0,0,10,1');
    const before = readFileSync(path);
    const file = File.openSync(path, { mode: 'r+' });
    const a = file.dataset('ra', 'float64');
    expect([...a.readSync()].every((value) => value === 0)).toBe(true);
    a.write([1, 2, 3, 4, 5, 6, 7, 8], { start: [1, 0], count: [1, 8] });
    // The counts know of no dataset, but there are two: the next number is not one of theirs.
    const added = file.createDataset('added', { dtype: 'int8', shape: [1] });
    added.write([7]);
    file.closeSync();
    const reader = File.openSync(path);
    expect([...reader.dataset('ra', 'float64').readSync({ start: [1, 0], count: [1, 8] })]).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8,
    ]);
    expect([...reader.dataset('rc', 'int32').readSync()].every((value) => value === 0)).toBe(true);
    expect([...reader.dataset('added', 'int8').readSync()]).toEqual([7]);
    reader.closeSync();
    const [seen] = seenByH5py([path]) as [SeenFile];
    const { counts, anchors } = checkLogFile(readFileSync(path), seen, before.length);
    expect(counts).toEqual([3, 1, 1, 14, 1]);
    expect([...anchors.keys()].sort()).toEqual([0, 1, 2]);
    expect([...seen.log].sort()).toEqual(['_cr_0', '_ld_0', '_lost_ld_0', '_lost_md_0', '_md_0']);
    const lost = seen.datasets.find((dataset) => dataset.path === '/_LOG/_lost_ld_0');
    expect(lost?.sum).toBe(
      before
        .subarray(lost?.offset ?? 0, (lost?.offset ?? 0) + (lost?.shape[0] ?? 0))
        .reduce((sum, byte) => sum + byte, 0),
    );
  });

  test('that was closed once and opened again gives new datasets numbers of their own', () => {
    const path = endedWith('closed-once.h5', '1,1,1,10,1');
    const file = File.openSync(path, { mode: 'r+' });
    const kept = file.dataset('rc', 'int32').readSync();
    file.createDataset('added', { dtype: 'int8', shape: [2, 4] }).write([1, 2, 3, 4, 5, 6, 7, 8]);
    file.closeSync();
    const reader = File.openSync(path);
    expect(reader.dataset('rc', 'int32').readSync()).toEqual(kept);
    expect([...reader.dataset('added', 'int8').readSync()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    reader.closeSync();
    const [seen] = seenByH5py([path]) as [SeenFile];
    expect(seen.root.find(({ name }) => name === '_int_att')?.value?.[0]).toBe(3);
  });

  test('is not written to by opening it', () => {
    const path = endedWith('untouched.h5', '0,0,0,10,1');
    const before = readFileSync(path);
    File.openSync(path, { mode: 'r+' }).closeSync();
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});
