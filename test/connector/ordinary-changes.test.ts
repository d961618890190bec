import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { faultyStorage } from '../storage/faulty.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();
const refused = (code: string) => expect.objectContaining({ name: 'H5LogError', code });

/** A new ordinary file in memory with /x, 4 rows of 3, and its bytes. */
async function ordinary(): Promise<Uint8Array<ArrayBuffer>> {
  const storage = memoryStorage();
  const file = await File.create(storage, { connector: 'native' });
  const x = file.createDataset('x', { dtype: 'int32', shape: [4, 3], maxShape: [null, 3], chunks: [2, 3], fill: -1 });
  x.write(Int32Array.from({ length: 12 }, (_, i) => i));
  await file.close();
  return storage.bytes();
}

describe('an ordinary file that is changed', () => {
  test('shows posts before the flush, and has one commit, the last', async () => {
    const storage = memoryStorage(await ordinary());
    const file = await File.open(storage, { mode: 'r+' });
    const x = file.dataset('x', 'int32');
    x.write([50], { start: [1, 1], count: [1, 1] });
    x.resize([6, 3]);
    expect(file.pending).toEqual({ requests: 1, bytes: 4 });
    expect([...x.readSync({ start: [1, 0], count: [1, 3] })]).toEqual([3, 50, 5]);
    expect([...(await x.readMany([5, 0, 0, 1], [1, 2]))]).toEqual([-1, -1, 1, 2]);
    const commit = await file.flush();
    expect(commit.requests).toBe(1);
    expect(file.commits()).toEqual([commit]);
    expect(file.pending).toEqual({ requests: 0, bytes: 0 });
    expect([...x.readSync({ start: [1, 0], count: [1, 3] })]).toEqual([3, 50, 5]);
    await file.close();
  });

  test('what was cut off is fill when the dataset grows again, before and after a flush', async () => {
    const storage = memoryStorage(await ordinary());
    const file = await File.open(storage, { mode: 'r+' });
    const x = file.dataset('x', 'int32');
    x.write([90, 91, 92], { start: [3, 0], count: [1, 3] });
    x.resize([1, 3]);
    x.resize([4, 3]);
    x.write([70], { start: [2, 2], count: [1, 1] });
    const expected = [0, 1, 2, -1, -1, -1, -1, -1, 70, -1, -1, -1];
    expect([...x.readSync()]).toEqual(expected);
    await file.close();
    const again = await File.open(storage);
    expect([...(await again.dataset('x', 'int32').read())]).toEqual(expected);
  });

  test('while a flush is being written, reads see it, a resize waits for nothing, and changes of the structure for it', async () => {
    const storage = memoryStorage(await ordinary());
    const file = await File.open(storage, { mode: 'r+' });
    const x = file.dataset('x', 'int32');
    x.write([90, 91, 92], { start: [3, 0], count: [1, 3] });
    const first = file.flush();
    x.resize([2, 3]);
    x.resize([4, 3]);
    expect([...x.readSync({ start: [2, 0], count: [2, 3] })]).toEqual([-1, -1, -1, -1, -1, -1]);
    x.write([5], { start: [3, 0], count: [1, 1] });
    const second = file.flush();
    file.createGroup('later');
    expect([(await first).sequence, (await second).sequence]).toEqual([1, 2]);
    expect([...x.readSync({ start: [2, 0], count: [2, 3] })]).toEqual([-1, -1, -1, 5, -1, -1]);
    const reader = await File.open(storage);
    expect([...reader.keys()]).toEqual(['x']);
    expect([...(await reader.dataset('x', 'int32').read({ start: [3, 0], count: [1, 3] }))]).toEqual([5, -1, -1]);
    await file.close();
    expect([...(await File.open(storage)).keys()]).toEqual(['x', 'later']);
  });

  test('several flushes wait in line', async () => {
    for (const delays of [false, true]) {
      const disk = faultyStorage({ bytes: await ordinary(), delays });
      const file = await File.open(disk, { mode: 'r+' });
      const x = file.dataset('x', 'int32');
      const flushes = [0, 1, 2, 3].map((i) => {
        x.append([i, i, i]);
        x.write([50 + i], { start: [0, i % 3], count: [1, 1] });
        return file.flush();
      });
      expect((await Promise.all(flushes)).map(({ sequence, requests }) => [sequence, requests])).toEqual([
        [1, 2],
        [2, 2],
        [3, 2],
        [4, 2],
      ]);
      const expected = [53, 51, 52, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3];
      expect([...x.readSync()]).toEqual(expected);
      await file.close();
      const again = await File.open(memoryStorage(disk.processImageAfter(disk.log.length)));
      expect([...(await again.dataset('x', 'int32').read())]).toEqual(expected);
    }
  });

  test('on a storage that can only be used asynchronously', async () => {
    const disk = faultyStorage({ bytes: await ordinary(), asyncOnly: true, delays: true });
    const file = await File.open(disk, { mode: 'r+' });
    const x = file.dataset('x', 'int32');
    x.append([20, 21, 22]);
    x.write([9], { start: [0, 0], count: [1, 1] });
    file.createDataset('words', { dtype: T.string(), shape: [2] }).write(['one', 'two']);
    await file.close();
    const again = await File.open(memoryStorage(disk.processImageAfter(disk.log.length)));
    expect([...(await again.dataset('x', 'int32').read())]).toEqual([9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20, 21, 22]);
    expect(await again.dataset('words').read()).toEqual(['one', 'two']);
  });

  test('a flush that fails leaves everything pending; the next one writes it', async () => {
    const bytes = await ordinary();
    for (let at = 0, injected = 1; injected > 0; at++) {
      const disk = faultyStorage({ bytes, faults: [{ op: 'any', at: at + 30, code: 'ENOSPC' }] });
      const file = await File.open(disk, { mode: 'r+', durability: 'power' }).catch(() => null);
      if (!file) continue;
      const x = file.dataset('x', 'int32');
      x.append([20, 21, 22]);
      x.write([9], { start: [0, 0], count: [1, 1] });
      file.attributes.set('a', 1);
      const expected = [9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20, 21, 22];
      await file.flush().catch((error) => expect(error).toEqual(refused('STORAGE')));
      expect([...x.readSync()]).toEqual(expected);
      await file.close();
      const again = await File.open(memoryStorage(disk.processImageAfter(disk.log.length)));
      expect([...(await again.dataset('x', 'int32').read())]).toEqual(expected);
      expect(again.attributes.get('a')).toBe(1);
      injected = disk.injected;
    }
  });

  test('keeps to the buffer limit', async () => {
    const storage = memoryStorage(await ordinary());
    const file = await File.open(storage, { mode: 'r+', bufferLimit: 40, onBufferFull: 'flush' });
    const x = file.dataset('x', 'int32');
    for (let i = 0; i < 10; i++) x.append(Int32Array.of(i, i, i));
    expect(file.pending.bytes).toBeLessThanOrEqual(40);
    expect([...x.readSync({ start: [4, 0], count: [10, 1] })]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await file.close();
    const strict = await File.open(storage, { mode: 'r+', bufferLimit: 40 });
    expect(() => strict.dataset('x').append(new Int32Array(30))).toThrow(refused('BUFFER_FULL'));
    expect(strict.dataset('x').shape).toEqual([14, 3]);
    strict.discard();
  });

  test('can be a dataset beside a log: both are in the same commit', async () => {
    const path = join(folder, 'beside.h5');
    await (await File.create(path)).close();
    const other = await File.open(path, { mode: 'r+' });
    const logged = other.createDataset('logged', { dtype: 'int8', shape: [2] });
    logged.write([1, 2]);
    await other.close();
    pythonSync(`import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f: f['plain'] = [1.5, 2.5]`, [path]);
    const file = await File.open(path, { mode: 'r+' });
    file.dataset('plain').write([9], { start: [1], count: [1] });
    file.dataset('logged').write([7], { start: [0], count: [1] });
    const { sequence, requests } = await file.flush();
    expect(requests).toBe(2);
    await file.close();
    const reader = await File.open(path, { asOf: sequence });
    expect([
      [...(await reader.dataset('plain', 'float64').read())],
      [...(await reader.dataset('logged', 'int8').read())],
    ]).toEqual([
      [1.5, 9],
      [7, 2],
    ]);
    expect(
      pythonSync(`import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print(f['plain'][:].tolist())`, [path]),
    ).toBe('[1.5, 9.0]\n');
  });
});

withOracle('python', 'references in data', () => {
  const look = (path: string, what: string): string =>
    pythonSync(`import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print(${what})`, [path]).trim();

  test('are written, read before the flush, and lead to objects that did not exist when it began', async () => {
    const path = join(folder, 'references.h5');
    const file = await File.create(path, { connector: 'native' });
    const refs = file.createDataset('refs', {
      dtype: T.reference,
      shape: [4],
      maxShape: [null],
      chunks: [3],
      filters: [{ deflate: 6 }],
    });
    file.createGroup('g/inner');
    refs.write(['/g/inner', '/refs', '/', ''].slice(0, 3), { start: [0], count: [3] });
    expect(refs.readSync()).toEqual(['/g/inner', '/refs', '/', '']);
    expect(() => refs.write(['/none'], { start: [0], count: [1] })).toThrow(refused('NOT_FOUND'));
    await file.flush();
    expect(refs.readSync()).toEqual(['/g/inner', '/refs', '/', '']);
    file.group('g/inner').attributes.set('moved', 1);
    await file.flush();
    refs.append(['/g']);
    await file.close();
    expect(look(path, `[f[r].name if r else None for r in f['refs'][:]], dict(f[f['refs'][0]].attrs)`)).toBe(
      "['/g/inner', '/refs', '/', None, '/g'] {'moved': 1.0}",
    );
  });

  test.each(['earliest', 'latest'])('of h5py (%s) follow objects that move, in every layout', async (libver) => {
    const path = join(folder, `follow-${libver}.h5`);
    pythonSync(
      `import sys, h5py, numpy as np
from h5py import h5d, h5p, h5s, h5t
with h5py.File(sys.argv[1], 'w', libver=sys.argv[2]) as f:
    f['a/data'] = [1, 2]
    f.create_group('b')
    refs = np.array([f['a/data'].ref, f['b'].ref, f.ref], h5py.ref_dtype)
    f.create_dataset('contiguous', data=refs, dtype=h5py.ref_dtype)
    f.create_dataset('chunked', data=refs, dtype=h5py.ref_dtype, chunks=(2,), maxshape=(None,), compression='gzip', shuffle=True)
    p = h5p.create(h5p.DATASET_CREATE); p.set_layout(h5d.COMPACT)
    h5d.create(f.id, b'compact', h5t.STD_REF_OBJ, h5s.create_simple((3,)), p).write(h5s.ALL, h5s.ALL, refs)
    t = np.dtype([('n', 'i4'), ('to', h5py.ref_dtype), ('s', h5py.string_dtype())])
    f.create_dataset('compound', data=np.array([(i, r, 's%d' % i) for i, r in enumerate(refs)], t))`,
      [path, libver],
    );
    const names = ['contiguous', 'chunked', 'compact', 'compound'];
    const file = await File.open(path, { mode: 'r+' });
    file.dataset('a/data').write([7], { start: [0], count: [1] });
    file.group('b').attributes.set('x', 1);
    await file.flush();
    file.move('b', 'c');
    file.dataset('compound').write([{ n: 9, to: '/a', s: 'new' }], { start: [1], count: [1] });
    await file.close();
    const target = `lambda r: f[r].name`;
    expect(look(path, `[[(${target})(r) for r in f[n][:]] for n in ['contiguous', 'chunked', 'compact']]`)).toBe(
      "[['/a/data', '/c', '/'], ['/a/data', '/c', '/'], ['/a/data', '/c', '/']]",
    );
    expect(
      look(path, `[(int(n), f[r].name, s.decode()) for n, r, s in f['compound'][:]], f[f['chunked'][0]][:].tolist()`),
    ).toBe("[(0, '/a/data', 's0'), (9, '/a', 'new'), (2, '/', 's2')] [7, 2]");
    const again = await File.open(path);
    for (const name of names.slice(0, 3)) expect(await again.dataset(name).read()).toEqual(['/a/data', '/c', '/']);
  });
});

withOracle('python', 'references in compact data', () => {
  test('lead to objects that the commit moves, makes, or leaves where they are', async () => {
    const path = join(folder, 'compact-references.h5');
    pythonSync(
      `import sys, h5py
from h5py import h5d, h5p, h5s, h5t
with h5py.File(sys.argv[1], 'w') as f:
    f.create_group('still')
    f.create_group('moving')
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_layout(h5d.COMPACT)
    h5d.create(f.id, b'refs', h5t.STD_REF_OBJ, h5s.create_simple((4,)), p)`,
      [path],
    );
    const stored = (): unknown => {
      const reader = File.openSync(path);
      const paths = reader.dataset('refs').readSync();
      reader.closeSync();
      return paths;
    };
    const file = await File.open(path, { mode: 'r+' });
    const refs = file.dataset('refs');
    refs.write(['/still'], { start: [0], count: [1] });
    await file.flush();
    expect(stored()).toEqual(['/still', '', '', '']);
    file.createGroup('gone');
    refs.write(['/gone'], { start: [1], count: [1] });
    file.delete('gone');
    await file.flush();
    expect(stored()).toEqual(['/still', '', '', '']);
    file.group('moving').attributes.set('x', 1);
    file.createGroup('new');
    refs.write(['/moving', '/new'], { start: [2], count: [2] });
    await file.close();
    const found = pythonSync(
      `import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print([f[r].name if r else None for r in f['refs'][:]])`,
      [path],
    );
    expect(found.trim()).toBe("['/still', None, '/moving', '/new']");
  });
});

withOracle('python', 'texts that are fill values', () => {
  test('are each on their own in the heap: h5py removes those that it overwrites', async () => {
    const path = join(folder, 'fill-texts.h5');
    pythonSync(
      `import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    for name, more in {'contiguous': {}, 'chunked': {'chunks': (5,)}, 'deflated': {'chunks': (5,), 'compression': 'gzip'}}.items():
        f.create_dataset(name, (5,), dtype=h5py.string_dtype(), fillvalue='fill', **more)`,
      [path],
    );
    const file = await File.open(path, { mode: 'r+' });
    for (const name of ['contiguous', 'chunked', 'deflated'])
      file.dataset(name).write(['new'], { start: [1], count: [1] });
    await file.close();
    const found = pythonSync(
      `import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    for d in f.values(): d[2:4] = ['other', 'others']
with h5py.File(sys.argv[1]) as f: print(*(b' '.join(d[:]).decode() for d in f.values()), sep='; ')`,
      [path],
    );
    expect(found.trim()).toBe(Array.from({ length: 3 }, () => 'fill new other others fill').join('; '));
  });
});

withOracle('python', 'references in fill values', () => {
  test('keep what they lead to where it is', async () => {
    const path = join(folder, 'fill-reference.h5');
    pythonSync(
      `import sys, ctypes, struct, h5py, numpy as np
from h5py import h5d, h5o, h5p, h5s, h5t
# h5py has no call for a fill value that refers to something.
hdf5 = ctypes.CDLL(next(word for word in open('/proc/self/maps').read().split() if 'libhdf5' in word and '_hl' not in word))
hdf5.H5Pset_fill_value.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
with h5py.File(sys.argv[1], 'w') as f:
    to = [h5o.get_info(f.create_group(name).id).addr for name in ('g', 'other')]
    dtype = np.dtype([('to', h5py.ref_dtype), ('n', 'i4')])
    t, p = h5t.py_create(dtype, logical=True), h5p.create(h5p.DATASET_CREATE)
    p.set_chunk((2,))
    fill = struct.pack('<Qi', to[0], 7)
    assert t.get_size() == len(fill) and hdf5.H5Pset_fill_value(p.id, t.id, fill) == 0
    d = h5py.Dataset(h5d.create(f.id, b'refs', t, h5s.create_simple((4,)), p))
    d[0] = np.array((f['other'].ref, 1), dtype)`,
      [path],
    );
    const file = await File.open(path, { mode: 'r+' });
    expect(() => file.group('g').attributes.set('x', 1)).toThrow(refused('UNSUPPORTED'));
    expect(() => file.group('other').attributes.set('x', 1)).toThrow(refused('UNSUPPORTED'));
    file.dataset('refs').write([{ to: '/g', n: 2 }], { start: [0], count: [1] });
    await file.close();
    expect(
      pythonSync(`import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print([f[r].name for r, n in f['refs'][:]])`, [
        path,
      ]).trim(),
    ).toBe("['/g', '/g', '/g', '/g']");
  });
});

withOracle('python', 'what cannot be changed, or is copied first', () => {
  test('external data comes into the file up to 64 MiB, virtual data not at all', async () => {
    const path = join(folder, 'elsewhere.h5');
    writeFileSync(join(folder, 'raw.bin'), new Uint8Array(Int32Array.of(1, 2, 3, 4).buffer));
    pythonSync(
      `import sys, h5py, os
os.chdir(sys.argv[1])
with h5py.File('elsewhere.h5', 'w') as f:
    f.create_dataset('outside', (4,), 'i4', external=[('raw.bin', 0, 16)])
    f.create_dataset('huge', (20_000_000,), 'i4', external=[('huge.bin', 0, h5py.h5f.UNLIMITED)])
    v = h5py.VirtualLayout((4,), 'i4'); v[:] = h5py.VirtualSource('.', 'outside', (4,))
    f.create_virtual_dataset('virtual', v)`,
      [folder],
    );
    const file = await File.open(path, { mode: 'r+' });
    file.dataset('outside').write([30], { start: [2], count: [1] });
    expect(() => file.dataset('huge').write([1], { start: [0], count: [1] })).toThrow(refused('UNSUPPORTED'));
    expect(() => file.dataset('virtual').write([1], { start: [0], count: [1] })).toThrow(refused('UNSUPPORTED'));
    expect([...(await file.dataset('outside', 'int32').read())]).toEqual([1, 2, 30, 4]);
    await file.close();
    writeFileSync(join(folder, 'raw.bin'), new Uint8Array(16));
    const look = `import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print(f['outside'][:].tolist(), f['outside'].external, f['virtual'][:].tolist())`;
    expect(pythonSync(look, [path])).toBe('[1, 2, 30, 4] None [1, 2, 30, 4]\n');
  });

  test('references in other files: what they lead to stays where it is', async () => {
    const path = join(folder, 'external-references.h5');
    pythonSync(
      `import sys, h5py, os
os.chdir(sys.argv[1])
with h5py.File('external-references.h5', 'w') as f:
    f.create_group('g')
    f.create_dataset('refs', (2,), h5py.ref_dtype, external=[('references.bin', 0, 16)])[0] = f['g'].ref`,
      [folder],
    );
    const file = await File.open(path, { mode: 'r+' });
    expect(() => file.group('g').attributes.set('x', 1)).toThrow(refused('UNSUPPORTED'));
    await file.close();
    expect(File.openSync(path).dataset('refs').readSync()).toEqual(['/g', '']);
  });

  test('a filter without an encoder: refused before anything is written', async () => {
    const path = join(folder, 'codec.h5');
    const codec = { name: 'plus one', decode: (bytes: Uint8Array) => bytes.map((byte) => byte - 1) };
    const both = { ...codec, encode: (bytes: Uint8Array) => bytes.map((byte) => byte + 1) };
    const made = await File.create(path, { connector: 'native', codecs: { 300: both } });
    made.createDataset('x', { dtype: 'uint8', shape: [3], filters: [{ id: 300 }] }).write([1, 2, 3]);
    await made.close();
    const file = await File.open(path, { mode: 'r+', codecs: { 300: codec } });
    expect([...(await file.dataset('x', 'uint8').read())]).toEqual([1, 2, 3]);
    expect(() => file.dataset('x').write([9], { start: [0], count: [1] })).toThrow(refused('UNSUPPORTED'));
    expect(() => file.createDataset('y', { dtype: 'uint8', shape: [3], filters: [{ id: 300 }] })).toThrow(
      refused('UNSUPPORTED'),
    );
    await file.close();
  });
});
