import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { type Description, expectSame, h5pyDescribes, Tally } from '../../interop/describe.ts';
import { h5dump, pythonSync, runSync, withOracle } from '../../oracles.ts';
import { full } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const MAKE = fileURLToPath(new URL('../../interop/make.py', import.meta.url));
const folder = temporaryDirectory();

/** Takes out what cannot be copied; prints what it took out of each file. */
const STRIP = `
import sys, json, h5py
def pointing(d):
    t = d.dtype
    return h5py.check_vlen_dtype(t) is not None or h5py.check_ref_dtype(t) is not None or (h5py.check_string_dtype(t) is not None and h5py.check_string_dtype(t).length is None)
taken = []
for path in sys.argv[1:]:
    with h5py.File(path, 'r+') as f:
        gone = []
        def visit(name, obj):
            if not isinstance(obj, h5py.Dataset): return
            if obj.is_virtual or obj.external or (obj.shape is not None and obj.size and pointing(obj)): gone.append(name)
        f.visititems(visit)
        for name in gone: del f[name]
    taken.append(gone)
print(json.dumps(taken))
`;

withOracle(['h5dump', 'h5diff', 'python'], 'an ordinary file', () => {
  test('is copied with everything in it', { timeout: 300_000 }, async () => {
    const made = JSON.parse(runSync('python', [MAKE, folder])) as string[];
    const some = full ? /./ : /^(attributes|datasets|links|v110|shared-e|both-k|block-512)/;
    const inputs = made
      .filter((name) => name !== 'big-attribute.h5' && some.test(name))
      .map((name) => join(folder, name));
    const before = inputs.map((path) => readFileSync(path));
    // Those with data that points into the file are refused by name, and nothing is left of the attempt.
    let refused = 0;
    for (const path of inputs) {
      const outcome = await replay(path, `${path}.out`).then(
        () => null,
        (error: unknown) => error,
      );
      if (outcome === null) continue;
      expect(outcome, path).toMatchObject({ code: 'UNSUPPORTED', object: expect.stringMatching(REFUSED), file: path });
      refused++;
    }
    inputs.forEach((path, i) => {
      expect(readFileSync(path).equals(before[i] as Buffer), path).toBe(true);
    });
    const taken = JSON.parse(pythonSync(STRIP, inputs)) as string[][];
    expect(taken.filter((names) => names.length > 0).length).toBe(refused);
    const outputs = inputs.map((path) => `${path}.copy`);
    for (const [i, path] of inputs.entries()) await replay(path, outputs[i] as string);
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
    process.stdout.write(`ordinary files copied: ${tally}; ${refused} held something that was refused by name\n`);
  });

  test('with an attribute that has no room in a header is refused', async () => {
    const path = join(folder, 'big-attribute.h5');
    await expect(replay(path, `${path}.out`)).rejects.toMatchObject({ code: 'UNSUPPORTED', object: '/' });
  });

  test('that is no HDF5 file at all is refused', async () => {
    await expect(replay(MAKE, join(folder, 'none.h5'))).rejects.toMatchObject({ code: 'FORMAT', file: MAKE });
  });
});

const REFUSED = /^\/(elsewhere|g\/text|g\/virtual)$/;
