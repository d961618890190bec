import { join } from 'node:path';
import { File } from 'h5log';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

// Ordinary files of h5py whose changes by h5log are easily got wrong: h5py says what is in them afterwards.

const folder = temporaryDirectory();
let made = 0;

/** A file that Python code makes with `f`. */
function madeBy(code: string, libver = 'earliest'): string {
  const path = join(folder, `${made++}.h5`);
  const body = code.trim().replaceAll('\n', '\n    ');
  pythonSync(`import h5py, numpy as np, sys\nwith h5py.File(sys.argv[1], 'w', libver='${libver}') as f:\n    ${body}`, [
    path,
  ]);
  return path;
}

/** What Python code prints about it. */
function seen(path: string, code: string): unknown {
  const body = code.trim().replaceAll('\n', '\n    ');
  return JSON.parse(pythonSync(`import h5py, json, sys\nwith h5py.File(sys.argv[1]) as f:\n    ${body}`, [path]));
}

withOracle('python', 'changes of odd ordinary files', () => {
  test.each(['earliest', 'latest'])(
    'shuffle, which texts cannot have: left out of every chunk (%s)',
    async (libver) => {
      const path = madeBy(
        `
s = dict(dtype=h5py.string_dtype(), chunks=(4,), compression='gzip', shuffle=True)
f.create_dataset('s', data=['a', 'bb', 'ccc', 'd', 'e'], maxshape=(None,), **s)
v = f.create_dataset('v', (3,), dtype=h5py.vlen_dtype('i4'), chunks=(2,), compression='gzip', shuffle=True)
v[0] = [1, 2]
`,
        libver,
      );
      const file = await File.open(path, { mode: 'r+' });
      file.dataset('s').write(['new'], { start: [1], count: [1] });
      file.dataset('s').append(['f', 'g', 'h', 'i']);
      file.dataset('v').write([Int32Array.of(7, 8, 9)], { start: [2], count: [1] });
      await file.close();
      const texts = ['a', 'new', 'ccc', 'd', 'e', 'f', 'g', 'h', 'i'];
      const read = "print(json.dumps([[t.decode() for t in f['s'][()]], [list(map(int, x)) for x in f['v'][()]]]))";
      expect(seen(path, read)).toEqual([texts, [[1, 2], [], [7, 8, 9]]]);
      const again = await File.open(path);
      expect(await again.dataset('s').read()).toEqual(texts);
      await again.close();
    },
  );

  test('an optional scale-offset filter that cannot work on texts', async () => {
    const path = madeBy(`
from h5py import h5z, h5p, h5d, h5s, h5t
p = h5p.create(h5p.DATASET_CREATE)
p.set_chunk((2,))
p.set_filter(h5z.FILTER_SCALEOFFSET, h5z.FLAG_OPTIONAL, (2, 0))
d = h5py.Dataset(h5d.create(f.id, b's', h5t.py_create(h5py.string_dtype(), logical=True), h5s.create_simple((3,)), p))
d[:] = ['a', 'b', 'c']
`);
    const file = await File.open(path, { mode: 'r+' });
    file.dataset('s').write(['new'], { start: [1], count: [1] });
    await file.close();
    expect(seen(path, "print(json.dumps([t.decode() for t in f['s'][()]]))")).toEqual(['a', 'new', 'c']);
  });

  test.each(['earliest', 'v110'])(
    'the last use of a scale goes: it has no REFERENCE_LIST any more (%s)',
    async (libver) => {
      const path = madeBy(
        `
f['x'] = [1., 2, 3]
f['x'].make_scale('x')
d = f.create_dataset('z', data=[4., 5, 6])
d.dims[0].attach_scale(f['x'])
d.dims[0].label = 'rows'
`,
        libver,
      );
      const file = await File.open(path, { mode: 'r+' });
      const z = file.dataset('z');
      z.detachScale(0, file.dataset('x'));
      z.write([7], { start: [0], count: [1] });
      await file.close();
      const read = "print(json.dumps([sorted(f['x'].attrs), sorted(f['z'].attrs), list(f['z'][()])]))";
      expect(seen(path, read)).toEqual([['CLASS', 'NAME'], ['DIMENSION_LABELS'], [7, 5, 6]]);
    },
  );

  test('a dataset without elements has none in any mode', async () => {
    const path = madeBy("f['n'] = h5py.Empty('i4')\nf['s'] = h5py.Empty(h5py.string_dtype())");
    for (const mode of ['r', 'r+'] as const) {
      const file = await File.open(path, { mode });
      const number = file.dataset('n');
      expect(await number.read(), mode).toEqual(new Int32Array(0));
      expect(number.readSync(undefined, { as: 'float64' }), mode).toEqual(new Float64Array(0));
      expect(await file.dataset('s').read(), mode).toEqual([]);
      expect(await number.readMany([], []), mode).toEqual(new Int32Array(0));
      expect(number.readManySync([], []), mode).toEqual(new Int32Array(0));
      if (mode === 'r+') expect(() => number.write([])).toThrow('/n holds no elements');
      const pieces: unknown[] = [];
      for await (const piece of number.pieces()) pieces.push(piece);
      expect(pieces, mode).toEqual([]);
      await file.close();
    }
  });
});

test('names with half of a surrogate pair, which a file cannot hold, are refused', async () => {
  const file = await File.create(join(folder, `${made++}.h5`), { connector: 'native' });
  const refused = { code: 'OPTION' };
  for (const name of ['\ud800', 'a\udc00', 'g/\ud801x']) {
    expect(() => file.createGroup(name)).toThrow(expect.objectContaining(refused));
    expect(() => file.createDataset(name, { dtype: 'int8', shape: [1] })).toThrow(expect.objectContaining(refused));
    expect(() => file.attributes.set(name, 1)).toThrow(expect.objectContaining(refused));
    expect(() => file.createSoftLink('soft', name)).toThrow(expect.objectContaining(refused));
    expect(() => file.createExternalLink('external', 'x.h5', name)).toThrow(expect.objectContaining(refused));
  }
  file.createGroup('\u{1f600}');
  await file.close();
});
