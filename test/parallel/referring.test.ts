// Several ranks go on with a published file after h5py has written references into it.

import { join } from 'node:path';
import { File, T } from 'h5log';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { Options } from './referring-rank.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./referring-rank.ts', import.meta.url);

const CHANGE = `
import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    f['new'] = 1
    f['other'] = 2
    for i, name in [(2, 'new'), (3, 'g'), (4, 'h')]: f['ends'][i] = f[name].ref
`;
const LOOK = `
import sys, h5py
with h5py.File(sys.argv[1], 'r') as f: print(' '.join(f[r].name for r in f['ends']))
`;

withOracle('python', 'references that h5py wrote before', () => {
  test.each(['never', 'close'] as const)("publish: '%s'", async (publish) => {
    const path = join(temporaryDirectory(), 'a.h5');
    const file = File.createSync(path, { publish: 'close' });
    for (const name of ['g', 'h']) file.createGroup(name);
    file.createDataset('ends', { dtype: T.reference, shape: [5] }).write(['/g', '/g', '/g', '/h', '/h'] as never);
    file.closeSync();
    pythonSync(CHANGE, [path]);
    const data: Options = { path, publish };
    const read = await runRanks<string[][]>(2, program, data, 60_000);
    const before = ['/g', '/g', '/new', '/g', '/h'];
    for (const each of read) expect(each).toEqual([before, before]);
    const after = ['/new', '/other', '/new', '/g', '/h'];
    const again = File.openSync(path, { mode: 'r+' });
    expect([...(again.dataset('ends').readSync() as unknown as string[])]).toEqual(after);
    if (publish === 'never') again.publishSync();
    again.closeSync();
    expect(pythonSync(LOOK, [path]).trim()).toBe(after.join(' '));
  });
});
