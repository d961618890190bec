import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { type Description, expectSame, h5pyDescribes, Tally } from '../../interop/describe.ts';
import { h5dump, runSync, withOracle } from '../../oracles.ts';
import { full } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const MAKE = fileURLToPath(new URL('../../interop/make.py', import.meta.url));
const folder = temporaryDirectory();

withOracle(['h5dump', 'h5diff', 'python'], 'an ordinary file', () => {
  test('is copied with everything in it', { timeout: 300_000 }, async () => {
    const made = JSON.parse(runSync('python', [MAKE, folder])) as string[];
    const some = full ? /./ : /^(attributes|big-attribute|datasets|links|v110|shared-e|both-k|block-512)/;
    const inputs = made.filter((name) => some.test(name)).map((name) => join(folder, name));
    const before = inputs.map((path) => readFileSync(path));
    const outputs = inputs.map((path) => `${path}.copy`);
    for (const [i, path] of inputs.entries()) await replay(path, outputs[i] as string);
    inputs.forEach((path, i) => {
      expect(readFileSync(path).equals(before[i] as Buffer), path).toBe(true);
    });
    const tally = new Tally();
    // Not all of h5dump: it does not know h5py's lzf.
    h5dump('-H', ...outputs);
    const [meant, seen] = [h5pyDescribes(inputs), h5pyDescribes(outputs)];
    inputs.forEach((path, i) => {
      const { '/type': type } = meant[i] as Description;
      // Attributes in the table of shared messages use a committed datatype once for all of them; those in headers once each.
      if (type && path.includes('shared-')) type.count = seen[i]?.['/type']?.count ?? 0;
      expectSame(seen[i], meant[i], path);
      tally.add(seen[i] as (typeof seen)[number]);
      const lzf = Object.values(seen[i] ?? {}).some(({ dataset }) => dataset?.filters.includes(32000));
      if (!lzf) runSync('h5diff', ['-r', path, outputs[i] as string]);
    });
    process.stdout.write(`ordinary files copied: ${tally}\n`);
  });

  test('that is no HDF5 file at all is refused', async () => {
    await expect(replay(MAKE, join(folder, 'none.h5'))).rejects.toMatchObject({ code: 'FORMAT', file: MAKE });
  });
});
