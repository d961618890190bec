import { join } from 'node:path';
import { compact, diff, replay, stat, verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { type ExpectedFile, makeCorpus } from './corpus.ts';

const folder = temporaryDirectory();

/** Files whose data is more than bytes to copy: in every run. */
const SPECIAL = /^(type-(strings|sequences|references|committed)|virtual-|external-|edges-|links-|attributes-)/;

/** With addresses of two or four bytes: an element that points into such a file has another size than in the output. */
const SHORT = /^sizes-(2|4)-/;

const DESCRIBE = `
import os, sys
sys.path.insert(0, sys.argv[1])
os.chdir(sys.argv[2])
from library import describe
print('[' + ','.join(describe(name) for name in sys.argv[3:]) + ']')
`;

/** Strings for several batches, fill values in heaps, references in circles, in sequences and in compounds. */
const POINTING = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    words = np.array([f'string {i}' * (i % 7) for i in range(70_000)], dtype=object)
    text = f.create_dataset('text', data=words, dtype=h5py.string_dtype(), chunks=(999,), maxshape=(None,), compression='gzip')
    text[...] = words[::-1]
    f.create_dataset('gone', data=np.arange(200_000))
    f.create_dataset('filled', (3,), dtype=h5py.string_dtype(), fillvalue='nothing')
    a = f.create_dataset('a', (1000,), dtype=h5py.ref_dtype, chunks=(64,), maxshape=(None,), compression='gzip')
    b = f.create_dataset('group/b', (3,), dtype=h5py.ref_dtype)
    a[...] = np.array([b.ref if i % 3 else a.ref for i in range(1000)], dtype=h5py.ref_dtype)
    b[...] = np.array([a.ref, b.ref, f['group'].ref], dtype=h5py.ref_dtype)
    lists = f.create_dataset('lists', (4,), dtype=h5py.vlen_dtype(h5py.ref_dtype), chunks=(3,))
    for i in range(3):
        lists[i] = np.array([a.ref, b.ref, lists.ref][:i + 1], dtype=h5py.ref_dtype)
    pair = np.dtype([('to', h5py.ref_dtype), ('name', h5py.string_dtype()), ('region', h5py.regionref_dtype)])
    pairs = f.create_dataset('pairs', (3,), dtype=pair)
    pairs[0] = (a.ref, 'a', a.regionref[3:7])
    pairs[1] = (b.ref, '', b.regionref[1])
    f.attrs['to'] = a.ref
    del f['gone']
`;

/** Bytes of the datasets in each file, but for those whose data is elsewhere. */
const SIZES = `
import json, os, sys, h5py
os.chdir(sys.argv[1])
found = []
for name in sys.argv[2:]:
    with h5py.File(name, 'r') as f:
        sizes = []
        def visit(path, o):
            if isinstance(o, h5py.Dataset) and not o.external: sizes.append(0 if o.is_virtual else o.id.get_storage_size())
        f.visititems(visit)
        found.append(sizes)
print(json.dumps(found))
`;

function h5pyDescribes(names: readonly string[]): ExpectedFile[] {
  return JSON.parse(pythonSync(DESCRIBE, [import.meta.dirname, folder, ...names])) as ExpectedFile[];
}

withOracle('python', 'ordinary files of h5py', () => {
  const corpus = makeCorpus(folder);
  const special = corpus.filter(({ file }) => SPECIAL.test(file));
  const others = corpus.filter(({ file }) => !SPECIAL.test(file) && !SHORT.test(file));
  const chosen = [...special, ...some(others, 'tools on the ordinary corpus')];

  for (const tool of [replay, compact]) {
    test(`are the same after ${tool.name}`, { timeout: 300_000 }, async () => {
      // Beside the input: virtual datasets name their sources relative to the file.
      const names = chosen.map(({ file }) => `${tool.name}-${file}`);
      for (const [i, { file }] of chosen.entries()) await tool(join(folder, file), join(folder, names[i] as string));
      const made = h5pyDescribes(names);
      chosen.forEach(({ file, objects, links }, i) => {
        expect(made[i]?.objects, file).toEqual(objects);
        expect(made[i]?.links, file).toEqual(links);
      });
      count(`ordinary files, ${tool.name}`, { files: chosen.length });
    });
  }

  test('with much that points into them are the same after replay on threads', { timeout: 120_000 }, async () => {
    pythonSync(POINTING, [join(folder, 'pointing.h5')]);
    const [before] = h5pyDescribes(['pointing.h5']);
    for (const [name, threads] of [
      ['pointing-1.h5', 1],
      ['pointing-2.h5', 2],
    ] as const) {
      const { copied, datasets } = await replay(join(folder, 'pointing.h5'), join(folder, name), { threads });
      expect(copied).toBe(datasets);
      const [after] = h5pyDescribes([name]);
      expect(after?.objects).toEqual(before?.objects);
    }
    // What nobody uses is gone: a deleted dataset of 1.6 MB.
    const { bytesBefore, bytes, copied } = await compact(join(folder, 'pointing.h5'), join(folder, 'pointing-3.h5'));
    expect(bytes).toBeLessThan(bytesBefore - 1_000_000);
    expect(copied).toBe(6);
    expect(h5pyDescribes(['pointing-3.h5'])[0]?.objects).toEqual(before?.objects);
  });

  test('have the sizes that h5py sees, and are sound', { timeout: 120_000 }, async () => {
    const names = chosen.map(({ file }) => file);
    const sizes = JSON.parse(pythonSync(SIZES, [folder, ...names])) as number[][];
    for (const [i, name] of names.entries()) {
      const { ordinary, data, structure, size } = await stat(join(folder, name));
      // Not by path: an object with several names has one of them here and another one there.
      const seen = ordinary.filter(({ layout }) => layout !== 'external').map(({ bytes }) => bytes);
      expect(seen.sort(), name).toEqual(sizes[i]?.sort());
      expect(data.bytes + structure, name).toBe(size);
      expect(await verify(join(folder, name)), name).toMatchObject({ sound: true, problems: [] });
      expect(await diff(join(folder, name), join(folder, `compact-${name}`)), name).toMatchObject({ same: true });
    }
  });

  test('with short addresses are copied, unless something in them points into the file', async () => {
    const short = corpus.filter(({ file }) => SHORT.test(file));
    expect(short.length).toBeGreaterThan(0);
    for (const { file } of short)
      await expect(replay(join(folder, file), join(folder, `short-${file}`)), file).rejects.toMatchObject({
        code: 'UNSUPPORTED',
        object: '/strings',
      });
  });
});
