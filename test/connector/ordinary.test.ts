import { join } from 'node:path';
import { File, Group, T } from 'h5log';
import { describe, expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();

const MAKE = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    f['plain'] = np.arange(12, dtype='f8').reshape(3, 4)
    f.create_dataset('grow', data=np.arange(6, dtype='i4').reshape(2, 3), maxshape=(None, 3), chunks=(2, 3), compression='gzip', shuffle=True)
    f['g/text'] = 'words'
    f['g/text'].attrs['lang'] = 'en'
    f['ref'] = f['g'].ref
    f['soft'] = h5py.SoftLink('/plain')
    f['other'] = h5py.ExternalLink(sys.argv[2], '/there')
    f.create_dataset('lzf', data=np.arange(100), chunks=(10,), compression='lzf')
with h5py.File(sys.argv[2], 'w') as f:
    f['there'] = np.array([7, 8, 9], dtype='u2')
    f['there'].attrs['n'] = 3
`;

withOracle('python', 'ordinary files through the public classes', () => {
  const make = (name: string): string => {
    const path = join(folder, `${name}.h5`);
    pythonSync(MAKE, [path, join(folder, `${name}-other.h5`)]);
    return path;
  };
  const look = (path: string, what: string): string =>
    pythonSync(`import sys, h5py\nwith h5py.File(sys.argv[1]) as f: print(${what})`, [path]).trim();

  describe.each([undefined, 'native'] as const)('connector: %s', (connector) => {
    const options = connector ? { connector } : {};

    test('reads data of every kind', async () => {
      const path = make(`read-${connector}`);
      const file = await File.open(path, options);
      expect(file.connector).toBe('native');
      expect([...file.keys()]).toEqual(['g', 'grow', 'lzf', 'other', 'plain', 'ref', 'soft']);
      expect([...(await file.dataset('plain', 'float64').read())]).toEqual(Array.from({ length: 12 }, (_, i) => i));
      expect([...file.dataset('plain', 'float64').readSync({ start: [1, 1], count: [2, 2] })]).toEqual([5, 6, 9, 10]);
      expect([...(await file.dataset('grow', 'int32').readMany([0, 0, 1, 1], [1, 2]))]).toEqual([0, 1, 4, 5]);
      expect(file.dataset('grow').filters).toEqual(['shuffle', { deflate: 4 }]);
      expect(await file.dataset('g/text').read()).toEqual(['words']);
      expect(file.dataset('g/text').attributes.get('lang')).toBe('en');
      expect(await file.dataset('ref').read()).toEqual(['/g']);
      expect([...(await file.dataset('soft', 'float64').read())]).toHaveLength(12);
      const lzf = file.dataset('lzf', 'int64');
      expect([...(await lzf.read())]).toEqual(Array.from({ length: 100 }, (_, i) => BigInt(i)));
      await expect(file.dataset('plain').read(undefined, { signal: AbortSignal.abort() })).rejects.toThrow();
      await file.close();
      expect([...(await file.dataset('plain', 'float64').read({ start: [0, 0], count: [1, 1] }))]).toEqual([0]);
    });

    test('writes slices, grows, sets attributes and makes links', async () => {
      const path = make(`write-${connector}`);
      const file = await File.open(path, { ...options, mode: 'r+' });
      file.attributes.set('title', 'changed');
      file.dataset('plain').write(Float64Array.of(-1, -2), { start: [0, 1], count: [1, 2] });
      file.dataset('grow').resize([4, 3]);
      expect(file.dataset('grow').shape).toEqual([4, 3]);
      file.dataset('grow').write(Int32Array.of(60, 61, 62), { start: [3, 0], count: [1, 3] });
      file.dataset('grow').attributes.set('count', 5);
      file.createGroup('new/inner');
      file.createSoftLink('new/again', '/plain');
      await file.flush();
      expect([...(await file.dataset('plain', 'float64').read({ start: [0, 0], count: [1, 4] }))]).toEqual([
        0, -1, -2, 3,
      ]);
      await file.close();
      expect(
        look(path, `f['plain'][0].tolist(), f['grow'][:].tolist(), f.attrs['title'], f['grow'].attrs['count']`),
      ).toBe('[0.0, -1.0, -2.0, 3.0] [[0, 1, 2], [3, 4, 5], [0, 0, 0], [60, 61, 62]] changed 5.0');
      expect(look(path, `sorted(f['new']), f['new/again'].shape, f['other'][:].tolist()`)).toBe(
        "['again', 'inner'] (3, 4) [7, 8, 9]",
      );
    });
  });

  test('a new ordinary file', async () => {
    const path = join(folder, 'new.h5');
    const file = await File.create(path, { connector: 'native' });
    expect(file.connector).toBe('native');
    const d = file.createDataset('a/b', {
      dtype: 'int16',
      shape: [2, 3],
      maxShape: [null, 3],
      filters: [{ deflate: 5 }],
    });
    d.write([1, 2, 3, 4, 5, 6]);
    d.resize([3, 3]);
    d.attributes.set('units', 'm');
    expect(file.pending).toEqual({ requests: 1, bytes: 12 });
    const words = file.createDataset('words', { dtype: T.string(), shape: [2] });
    words.write(['one', 'zwei']);
    const filled = file.createDataset('fill', { dtype: 'int8', shape: [2], fill: 3 });
    filled.write([1], { start: [0], count: [1] });
    file.attributes.set('nothing', null);
    file.createDataset('gone', { dtype: 'int8', shape: [1] }).write([1]);
    file.delete('gone');
    expect(file.group('a')).toBeInstanceOf(Group);
    await file.close();
    expect(() => d.write([1])).toThrow(expect.objectContaining({ code: 'CLOSED' }));
    expect(
      look(
        path,
        `f['a/b'][:].tolist(), f['a/b'].compression_opts, [w.decode() for w in f['words'][:]], f['a/b'].attrs['units'], f['fill'][:].tolist(), sorted(f)`,
      ),
    ).toBe("[[1, 2, 3], [4, 5, 6], [0, 0, 0]] 5 ['one', 'zwei'] m [1, 3] ['a', 'fill', 'words']");
    await expect(File.create(path, { connector: 'native', exclusive: true })).rejects.toMatchObject({ code: 'EXISTS' });
  });

  test('blocking calls', () => {
    const path = join(folder, 'blocking.h5');
    const file = File.createSync(path, { connector: 'native' });
    file.createDataset('x', { dtype: 'float32', shape: [2] }).write([1, 2]);
    file.closeSync();
    const again = File.openSync(path, { connector: 'native' });
    expect([...again.dataset('x', 'float32').readSync()]).toEqual([1, 2]);
    again.closeSync();
  });

  test('what it cannot do is said', async () => {
    const path = make('refused');
    await expect(File.open(path, { asOf: 4 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const file = await File.open(path, { connector: 'native' });
    expect(() => file.attributes.set('a', 1)).toThrow(expect.objectContaining({ code: 'READ_ONLY' }));
    await file.close();
  });

  test('data of ordinary datasets beside a log', async () => {
    const path = join(folder, 'beside.h5');
    await (await File.create(path)).close();
    pythonSync(
      "import sys, h5py, numpy as np\nwith h5py.File(sys.argv[1], 'r+') as f:\n  f['plain'] = np.arange(12, dtype='f8').reshape(3, 4)\n  f['g/text'] = 'words'",
      [path],
    );
    const file = await File.open(path, { mode: 'r+' });
    const logged = file.createDataset('logged', { dtype: 'int32', shape: [3] });
    logged.write(Int32Array.of(1, 2, 3));
    file.move('/g', '/moved');
    // Nothing is committed yet.
    expect([...file.dataset('plain', 'float64').readSync({ start: [0, 0], count: [1, 2] })]).toEqual([0, 1]);
    expect(file.dataset('moved/text').readSync()).toEqual(['words']);
    await file.flush();
    expect(file.connector).toBe('log');
    expect(await file.dataset('moved/text').read()).toEqual(['words']);
    file.dataset('plain').write(Float64Array.of(50), { start: [2, 3], count: [1, 1] });
    expect([...file.dataset('plain', 'float64').readSync({ start: [2, 2], count: [1, 2] })]).toEqual([10, 50]);
    expect([...file.dataset('logged', 'int32').readSync()]).toEqual([1, 2, 3]);
    logged.write(Int32Array.of(9), { start: [0], count: [1] });
    await file.close();
    const again = await File.open(path);
    expect([...(await again.dataset('logged', 'int32').read())]).toEqual([9, 2, 3]);
    expect([...(await again.dataset('plain', 'float64').read({ start: [2, 3], count: [1, 1] }))]).toEqual([50]);
    await again.close();
  });
});
