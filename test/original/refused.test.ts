import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { folder } from './fixtures.ts';

withOracle('python', 'a file with the aligned data layout of the original', () => {
  const SET_BIT = `
import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    a = f.attrs['_int_att']
    a[3] |= 0x100
    f.attrs.modify('_int_att', a)
`;

  test('shows its structure but no data, and takes none: its offsets do not say where data is', () => {
    const path = join(temporaryDirectory(), 'aligned.h5');
    cpSync(join(folder, 'ndims_1r.h5'), path);
    pythonSync(SET_BIT, [path]);
    const before = readFileSync(path);
    const file = File.openSync(path, { mode: 'r+' });
    const refused = expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringMatching(/aligned/) });
    const datasets = [...file.children()].flatMap(([, child]) => (child?.kind === 'dataset' ? [child] : []));
    expect(datasets.length).toBeGreaterThan(1);
    for (const dataset of datasets) expect(() => dataset.readSync()).toThrow(refused);
    expect(() => datasets[0]?.write(new Uint8Array(datasets[0].size))).toThrow(refused);
    file.closeSync();
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});
