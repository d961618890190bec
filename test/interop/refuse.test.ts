import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { T } from '../../src/dtype/construct.ts';
import { unallocated } from '../../src/hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { h5pyDescribe } from './describe.ts';
import { Draft } from './driver.ts';

/** Files whose data refers to /target/group, in every layout; /free is referred to by nothing. */
const MAKE = `
import sys, h5py, numpy as np
from h5py import h5p, h5d, h5s, h5t
folder, libver = sys.argv[1:3]
def new(name):
    f = h5py.File('%s/%s-%s.h5' % (folder, name, libver), 'w', libver=libver)
    f.create_group('target/group/below')
    f['target/data'] = np.arange(4.0)
    f['target/type'] = np.dtype([('a', 'i4')])
    f.create_dataset('free', data=np.arange(3))
    f.create_group('also free')
    return f
refs = lambda f, n: np.array([f['target/group'].ref] * n, h5py.ref_dtype)
with new('contiguous') as f: f.create_dataset('refs', data=refs(f, 5), dtype=h5py.ref_dtype)
with new('scalar') as f: f.create_dataset('refs', data=f['target/group'].ref, dtype=h5py.ref_dtype)
with new('chunked') as f:
    d = f.create_dataset('refs', (40,), h5py.ref_dtype, chunks=(1,), maxshape=(None,))
    d[37] = f['target/group'].ref
with new('gzip') as f: f.create_dataset('refs', data=refs(f, 40), dtype=h5py.ref_dtype, chunks=(7,), compression='gzip', shuffle=True, fletcher32=True)
with new('compound') as f:
    t = np.dtype([('n', 'i4'), ('to', h5py.ref_dtype)])
    v = np.zeros(3, t); v['to'] = refs(f, 3)
    f.create_dataset('refs', data=v)
with new('array') as f:
    v = np.zeros(2, np.dtype([('a', h5py.ref_dtype, (2,))])); v['a'][:] = f['target/group'].ref
    f.create_dataset('refs', data=v)
with new('vlen') as f:
    d = f.create_dataset('refs', (3,), h5py.vlen_dtype(h5py.ref_dtype))
    d[1] = refs(f, 2)
with new('compact') as f:
    p = h5p.create(h5p.DATASET_CREATE); p.set_layout(h5d.COMPACT)
    d = h5d.create(f.id, b'refs', h5t.STD_REF_OBJ, h5s.create_simple((3,)), p)
    d.write(h5s.ALL, h5s.ALL, refs(f, 3))
with new('region') as f: f.create_dataset('refs', data=np.array([f['target/data'].regionref[1:3]], h5py.regionref_dtype), dtype=h5py.regionref_dtype)
with new('type') as f: f.create_dataset('refs', data=np.array([f['target/type'].ref], h5py.ref_dtype), dtype=h5py.ref_dtype)
with new('root') as f: f.create_dataset('refs', data=np.array([f.ref], h5py.ref_dtype), dtype=h5py.ref_dtype)
with new('null') as f: f.create_dataset('refs', (4,), h5py.ref_dtype)[0] = h5py.Reference()
with new('large') as f:
    g = f['target'].create_group('large')
    if libver == 'latest': g.attrs['large'] = np.arange(20000.0)
    g.attrs['to'] = f['target/group'].ref
    g.attrs.create('typed', np.zeros(2, f['target/type'].dtype), dtype=f['target/type'])
`;

/** What each file's data refers to; everything that moves it must be refused. */
const CASES: Record<string, string[]> = {
  contiguous: ['/target/group', '/target/group/below'],
  scalar: ['/target/group', '/target/group/below'],
  chunked: ['/target/group', '/target/group/below'],
  gzip: ['/target/group', '/target/group/below'],
  compound: ['/target/group', '/target/group/below'],
  array: ['/target/group', '/target/group/below'],
  vlen: ['/target/group', '/target/group/below'],
  compact: ['/target/group', '/target/group/below'],
  region: ['/target/data'],
  type: ['/target/type'],
  root: ['/', '/target', '/target/data', '/free'],
  null: [],
};

withOracle('python', 'changes that are refused', () => {
  const folder = temporaryDirectory();
  for (const libver of ['earliest', 'latest']) pythonSync(MAKE, [folder, libver]);
  const files = Object.keys(CASES)
    .flatMap((name) => [`${name}-earliest`, `${name}-latest`])
    .filter((name) => existsSync(join(folder, `${name}.h5`)));
  afterAll(() =>
    process.stdout.write(`interop: ${files.length} files with references inside data, changed where allowed\n`),
  );
  const copyOf = (name: string): string => {
    const copy = join(folder, `${name}-copy.h5`);
    copyFileSync(join(folder, `${name}.h5`), copy);
    return copy;
  };

  test.each(files)('references inside data: %s', (name) => {
    const path = copyOf(name);
    const old = readFileSync(path);
    const draft = Draft.open(path);
    const targets = CASES[name.replace(/-.*/, '')] as string[];
    const refused = (change: () => void): void =>
      expect(change).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    for (const target of targets) {
      refused(() => draft.attribute(target, 'new', 'int32', SCALAR_SPACE, 1));
      if (target === '/') continue;
      refused(() => draft.link('/another', draft.at(target)));
      refused(() => draft.remove(target));
      if (draft.at(target).kind === 'group') refused(() => draft.group(`${target}/new`));
      if (draft.at(target).kind === 'datatype') {
        refused(() =>
          draft.dataset('/more', { dtype: draft.at(target), space: simpleSpace([1]), layout: unallocated }, 'int8', []),
        );
      }
    }
    draft.close();
    expect(readFileSync(path).equals(old), 'nothing was written').toBe(true);
  });

  test.each(files.filter((name) => !name.startsWith('root')))('what moves nothing of that is allowed: %s', (name) => {
    const path = copyOf(name);
    const before = h5pyDescribe(path);
    const draft = Draft.open(path);
    draft.attribute('/', 'new', 'int32', SCALAR_SPACE, 1);
    draft.attribute('/free', 'new', 'int32', SCALAR_SPACE, 1);
    draft.attribute('/refs', 'new', 'int32', SCALAR_SPACE, 1);
    draft.attribute('/target', 'new', 'int32', SCALAR_SPACE, 1);
    draft.group('/target/new');
    draft.remove('/also free');
    draft.close();
    const after = h5pyDescribe(path);
    expect(after['/refs']?.dataset).toEqual(before['/refs']?.dataset);
    for (const where of ['/target/group', '/target/group/below', '/target/data'])
      expect(after[where]).toEqual(before[where]);
    expect(after['/target/new']).toBeDefined();
    expect(after['/also free']).toBeUndefined();
  });

  test('references in attributes follow, those in dense storage as well', () => {
    for (const libver of ['earliest', 'latest']) {
      const path = copyOf(`large-${libver}`);
      const draft = Draft.open(path);
      for (const target of ['/target/group', '/target/group/below', '/target/type'])
        draft.attribute(target, 'new', 'int32', SCALAR_SPACE, 1);
      draft.close();
      const found = `import sys, h5py
with h5py.File(sys.argv[1]) as f:
    g = f['target/large']
    print(f[g.attrs['to']].name, dict(f[g.attrs['to']].attrs), g.attrs['typed'].tolist(), g.attrs.get('large', [0, 1])[1])`;
      expect(pythonSync(found, [path])).toBe(
        "/target/group {'new': 1} [(0,), (0,)] 1\n".replace(' 1\n', libver === 'latest' ? ' 1.0\n' : ' 1\n'),
      );
    }
  });

  test('a reference as fill value', () => {
    const path = join(folder, 'fill.h5');
    const draft = Draft.create(path);
    const target = draft.group('/target');
    draft.commit();
    const fill = new Uint8Array(BigUint64Array.of(BigInt(target.address)).buffer);
    draft.dataset('/refs', { dtype: T.reference, space: simpleSpace([2]), layout: unallocated, fill }, T.reference, [
      '/target',
      '/target',
    ]);
    draft.close();
    expect(h5pyDescribe(path)['/refs']?.dataset?.values).toEqual(['/target', '/target']);
    const again = Draft.open(path);
    expect(() => again.attribute('/target', 'new', 'int32', SCALAR_SPACE, 1)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
    again.attribute('/', 'new', 'int32', SCALAR_SPACE, 1);
    again.close();
    expect(h5pyDescribe(path)['/refs']?.dataset?.values).toEqual(['/target', '/target']);
  });

  test('through File: refused, and nothing is written', async () => {
    // In sequences; others are written anew.
    const path = copyOf('vlen-earliest');
    const old = readFileSync(path);
    await using file = await File.open(path, { mode: 'r+' });
    expect(() => file.group('target/group').attributes.set('a', 1)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
    expect(() => file.createGroup('target/group/deep/er')).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    await file.close();
    expect(readFileSync(path).equals(old)).toBe(true);
  });

  test('deleting what uses a committed type lowers its count, down to its end', () => {
    const path = join(folder, 'counts.h5');
    const script = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    f['type'] = np.dtype([('a', 'i4'), ('b', 'f8')])
    for i in range(3): f.create_dataset('d%d' % i, (2,), f['type'])
    f.create_group('g').attrs.create('x', np.zeros(2, f['type'].dtype), dtype=f['type'])
    f['g'].attrs.create('y', np.zeros(2, f['type'].dtype), dtype=f['type'])
    f.create_group('h').attrs.create('x', np.zeros(2, f['type'].dtype), dtype=f['type'])`;
    pythonSync(script, [path]);
    const count = (): number | undefined => h5pyDescribe(path)['/type']?.count;
    const change = (work: (draft: Draft) => void): void => {
      const draft = Draft.open(path);
      work(draft);
      draft.close();
    };
    expect(count()).toBe(7);
    change((draft) => draft.remove('/d0'));
    expect(count()).toBe(6);
    change((draft) => draft.deleteAttribute('/g', 'x'));
    expect(count()).toBe(5);
    change((draft) => draft.attribute('/g', 'y', 'int32', SCALAR_SPACE, 1));
    expect(count()).toBe(4);
    change((draft) => draft.remove('/h'));
    expect(count()).toBe(3);
    const rest = `
import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    del f['type']; del f['d1']
    print(f['d2'].dtype, len(f['g'].attrs))`;
    expect(pythonSync(rest, [path])).toContain("[('a', '<i4'), ('b', '<f8')] 1");
  });

  test('a file of several parts', async () => {
    const script = `
import sys, h5py, numpy as np
for libver in ('earliest', 'latest'):
    with h5py.File(sys.argv[1] + '/family-' + libver + '-%d.h5', 'w', driver='family', memb_size=2**20, libver=libver) as f:
        f['data'] = np.arange(1000.0)`;
    pythonSync(script, [folder]);
    for (const libver of ['earliest', 'latest']) {
      const path = join(folder, `family-${libver}-0.h5`);
      const old = readFileSync(path);
      await expect(File.open(path, { mode: 'r+' })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
      expect(readFileSync(path).equals(old)).toBe(true);
    }
  });

  test('a file that another program has open for writing', async () => {
    const path = join(folder, 'swmr.h5');
    pythonSync(
      'import sys, os, h5py\nf = h5py.File(sys.argv[1], "w", libver="latest"); f.swmr_mode = True; f.flush(); os._exit(0)',
      [path],
    );
    await expect(File.open(path, { mode: 'r+' })).rejects.toMatchObject({ code: 'LOCKED' });
  });

  test('an object that is referred to is renamed: it does not move', () => {
    const path = copyOf('contiguous-latest');
    const draft = Draft.open(path);
    draft.move('/target/group', '/target/renamed');
    draft.attribute('/free', 'note', T.string(), SCALAR_SPACE, 'moved');
    draft.close();
    const after = h5pyDescribe(path);
    expect(after['/refs']?.dataset?.values?.[0]).toBe('/target/renamed');
    expect(after['/target/renamed']?.count).toBe(1);
  });
});
