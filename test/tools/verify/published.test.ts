import { join } from 'node:path';
import { File } from 'h5log';
import { verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const EDIT = `
import h5py, sys
with h5py.File(sys.argv[1], 'r+') as f: f['shared'][2] = 99
`;

withOracle('python', 'verify, of bytes that a log shares with what others see', () => {
  test('a change by another program is no reason to go back to an older commit', async () => {
    const folder = temporaryDirectory();
    const path = join(folder, 'a.h5');
    const file = File.createSync(path, { publish: 'never' });
    const shared = file.createDataset('shared', { dtype: 'int32', shape: [5] });
    shared.write([1, 2, 3, 4, 5]);
    file.flushSync();
    file.createDataset('other', { dtype: 'int32', shape: [1] }).write([7]);
    file.publishSync();
    expect(shared.published).toMatchObject({ way: 'contiguous' });
    const { sequence } = file;
    file.closeSync();
    expect((await verify(path)).problems).toEqual([]);
    pythonSync(EDIT, [path]);

    const to = join(folder, 'repaired.h5');
    const { problems, commits, newestSound, repaired } = await verify(path, { repairTo: to });
    expect(problems.map(({ what }) => what)).toContain('the data of /shared was changed or damaged since commit 1');
    expect(commits.at(-1)?.problems).toEqual(['the data of /shared was changed or damaged since commit 1']);
    // The log has these bytes too, and older commits read them there.
    expect(commits[1]?.problems.join()).toMatch(/shared uses data/);
    expect(newestSound).toBe(0);
    expect(repaired?.sequence).toBe(sequence);
    const after = File.openSync(to);
    expect([...(after.dataset('shared').readSync() as Int32Array)]).toEqual([1, 2, 99, 4, 5]);
    expect([...(after.dataset('other').readSync() as Int32Array)]).toEqual([7]);
    after.closeSync();

    const strict = join(folder, 'strict.h5');
    expect((await verify(path, { repairTo: strict, strict: true })).repaired?.sequence).toBe(0);
  });

  test('damage in blocks that are newer than the layout still is', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const file = File.createSync(path, { publish: 'never' });
    const shared = file.createDataset('shared', { dtype: 'int32', shape: [5] });
    shared.write([1, 2, 3, 4, 5]);
    file.publishSync();
    shared.write([11, 12], { start: [1], count: [2] });
    const { sequence } = file.flushSync();
    file.closeSync();
    const bytes = Int32Array.of(11, 12);
    const changed = `
import sys
at = open(sys.argv[1], 'rb').read().index(bytes.fromhex(sys.argv[2]))
with open(sys.argv[1], 'r+b') as f:
    f.seek(at)
    f.write(b'x')
`;
    pythonSync(changed, [path, Buffer.from(bytes.buffer).toString('hex')]);
    const to = join(temporaryDirectory(), 'b.h5');
    const { commits, repaired } = await verify(path, { repairTo: to });
    expect(commits.at(-1)?.problems.join()).toMatch(/shared uses data/);
    expect(repaired?.sequence).toBe(sequence - 1);
  });
});
