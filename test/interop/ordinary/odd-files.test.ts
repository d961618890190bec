import { openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File } from 'h5log';
import { beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../../src/tools.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();

/** Files that old versions of HDF5, h5jam or damage leave behind, and what h5py reads of each dataset in them. */
const MAKE = `
import h5py, json, numpy as np, sys
from h5py import h5p, h5d, h5s, h5t, h5o
folder = sys.argv[1]
path = lambda name: '%s/%s.h5' % (folder, name)
seen = {}

def make(name, libver='earliest', **options):
    return h5py.File(path(name), 'w', libver=libver, **options)

def edit(name, change):
    b = bytearray(open(path(name), 'rb').read())
    b = change(b) or b
    open(path(name), 'wb').write(b)

def text(v):
    return v.decode('latin1') if isinstance(v, bytes) else v.item() if hasattr(v, 'item') else v

def look(name):
    found = {}
    with h5py.File(path(name), 'r') as f:
        for key in f:
            try: d = f[key]
            except Exception: continue
            v = d[()]
            found[key] = None if isinstance(v, h5py.Empty) else [text(x) for x in np.asarray(v).ravel()]
    seen[name] = found

for libver in ('earliest', 'latest'):
    for size, block in ((0, 1024), (512, 0), (512, 2048)):
        name = 'moved-%s-%d-%d' % (libver, size, block)
        with make(name, libver, userblock_size=size) as f: f['a'] = np.arange(20); f['b'] = np.arange(3000.)
        edit(name, lambda b: b'hello'.ljust(block, b'\\0') + b[size:] if block else b[size:])
        look(name)

with make('count') as f:
    f['bad'] = np.arange(6); f['bad'].attrs['x'] = 1; f['good'] = np.arange(3); address = h5o.get_info(f['bad'].id).addr
def fewer(b): b[address + 2] -= 1
edit('count', fewer); look('count')

for name, at, value in (('attribute-version', -8, 7), ('attribute-length', -6, 255), ('attribute-space', 24, 9)):
    with make(name) as f:
        f['good'] = np.arange(5); d = f.create_dataset('bad', data=np.arange(6)); d.attrs.create('bbbMARK', np.arange(7, dtype='>i2'))
    def damage(b): i = b.index(b'bbbMARK\\0'); b[i + at] = value
    edit(name, damage); look(name)

with make('header') as f: f['good'] = np.arange(5); f['bad'] = np.arange(6); address = h5o.get_info(f['bad'].id).addr
def broken(b): b[address] = 7
edit('header', broken); look('header')

with make('null') as f:
    p = h5p.create(h5p.DATASET_CREATE); p.set_layout(h5d.COMPACT)
    h5d.create(f.id, b'n', h5t.STD_I32LE, h5s.create(h5s.NULL), p)
look('null')

with make('blanks') as f:
    s = h5t.C_S1.copy(); s.set_size(8); s.set_strpad(h5t.STR_SPACEPAD)
    d = h5d.create(f.id, b's', s, h5s.create_simple((5,)))
    n = h5t.C_S1.copy(); n.set_size(8); n.set_strpad(h5t.STR_NULLPAD)
    d.write(h5s.ALL, h5s.ALL, np.frombuffer(b'   '.ljust(8, b'\\0') + b'a\\0      ' + b'ab      ' + b'abcdefgh' + b'\\0' * 8, 'S8'), s)
    h5d.create(f.id, b'empty', s, h5s.create_simple((2,)))
look('blanks')

for version in (1, 2):
    for defined in (0, 1):
        name = 'fill-%d-%d' % (version, defined)
        with make(name) as f: f.create_dataset('d', (6,), 'i4', chunks=(3,), fillvalue=7)[:] = np.arange(6)
        def none(b):
            i = b.index(bytes([1, 4, 0, 0, 0, 7, 0, 0, 0])) - 3; b[i:i + 8] = bytes([version, 3, 2, defined, 255, 255, 255, 255])
        edit(name, none); look(name)

with make('large-limit') as f: f.create_dataset('m', (5,), 'i4', chunks=(2,), maxshape=(2**62,))[:] = np.arange(5)
look('large-limit')

with make('old-sum') as f:
    d = f.create_dataset('d', data=np.arange(100.), chunks=(100,), fletcher32=True); chunk = d.id.get_chunk_info(0)
def swap(b): i = chunk.byte_offset + chunk.size - 4; b[i:i + 4] = bytes([b[i + 1], b[i], b[i + 3], b[i + 2]])
edit('old-sum', swap); look('old-sum')

for libver in ('earliest', 'latest'):
    with make('never-' + libver, libver) as f:
        for kind in (h5d.CONTIGUOUS, h5d.CHUNKED):
            p = h5p.create(h5p.DATASET_CREATE); p.set_layout(kind)
            if kind == h5d.CHUNKED: p.set_chunk((3,))
            p.set_fill_time(h5d.FILL_TIME_NEVER); p.set_fill_value(np.array(7, 'i4'))
            p.set_alloc_time(h5d.ALLOC_TIME_LATE if kind == h5d.CONTIGUOUS else h5d.ALLOC_TIME_INCR)
            h5d.create(f.id, b'd%d' % kind, h5t.STD_I32LE, h5s.create_simple((6,)), p)
    look('never-' + libver)

with h5py.File(folder + '/part%d.h5', 'w', driver='family', memb_size=2**20, libver='earliest') as f: f['a'] = np.arange(3)
json.dump(seen, open(folder + '/seen.json', 'w'))
`;

/** Every dataset of a file by its name, with its values; those that cannot be read are left out. */
function valuesIn(file: File): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, object] of file.children()) {
    if (object?.kind !== 'dataset') continue;
    const { space } = object as Dataset;
    found[name] = space === 'null' ? null : Array.from((object as Dataset).readSync() as ArrayLike<unknown>, plain);
  }
  return found;
}

const plain = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value);

withOracle('python', 'files that old versions, other tools and damage leave behind', () => {
  let seen: Record<string, Record<string, unknown>> = {};

  beforeAll(async () => {
    pythonSync(MAKE, [folder]);
    const { default: found } = await import(join(folder, 'seen.json'), { with: { type: 'json' } });
    seen = found as typeof seen;
  });

  test('are read as h5py reads them, from a path and from a Blob', async () => {
    expect(Object.keys(seen).length).toBeGreaterThan(15);
    for (const [name, expected] of Object.entries(seen)) {
      const path = join(folder, `${name}.h5`);
      const file = File.openSync(path);
      expect(valuesIn(file), name).toEqual(expected);
      file.closeSync();
      const remote = await File.open(await openAsBlob(path));
      const names = [...remote.children()].flatMap(([key, object]) => (object ? [key] : []));
      expect(names.sort(), name).toEqual(Object.keys(expected).sort());
      for (const key of names) {
        if (expected[key] === null) continue;
        const values = (await remote.dataset(key).read()) as ArrayLike<unknown>;
        expect(Array.from(values, plain), `${name} ${key}`).toEqual(expected[key]);
      }
      await remote.close();
    }
  });

  describe('what is damaged in them', () => {
    test('is an error for those who ask for it, also where everything was loaded before', async () => {
      const path = join(folder, 'header.h5');
      const damaged = expect.objectContaining({ code: 'FORMAT' });
      expect(() => File.openSync(path).dataset('bad')).toThrow(damaged);
      const remote = await File.open(await openAsBlob(path));
      expect(() => remote.dataset('bad')).toThrow(damaged);
      expect([...remote.links()].map(({ name, object }) => [name, object])).toEqual([
        ['bad', undefined],
        ['good', 'dataset'],
      ]);
    });

    test('is found by verify', async () => {
      for (const name of ['header', 'attribute-version', 'attribute-length', 'attribute-space']) {
        const { sound, problems } = await verify(join(folder, `${name}.h5`));
        expect(sound, name).toBe(false);
        expect(problems[0]?.object, name).toBe('/bad');
      }
    });
  });

  test('a file that is one part of several is refused by name', () => {
    expect(() => File.openSync(join(folder, 'part0.h5'))).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});
