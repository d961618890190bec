import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { netcdfHeader, replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { count } from '../counts.ts';
import { ncdump, pythonSync, runSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { RandomFile } from './random-file.ts';

const directory = temporaryDirectory();
const features = readFileSync(new URL('every-feature.cdl', import.meta.url), 'utf8');

/** Lines without the name of the file. */
const lines = (text: string): string[] => text.trimEnd().split('\n').slice(1);

async function expectSame(path: string): Promise<void> {
  expect(lines((await netcdfHeader(path)).join('\n')), path).toEqual(lines(ncdump('-h', path)));
}

withOracle(['ncdump', 'ncgen', 'xarray'], 'netcdfHeader prints what ncdump -h prints', () => {
  test('of a file with every feature of CDL, also of the classic model', async () => {
    const path = join(directory, 'every-feature.nc');
    runSync('ncgen', ['-4', '-o', path, '-'], features);
    await expectSame(path);
    const classic = join(directory, 'classic.nc');
    const text =
      'netcdf c { dimensions: x = 2 ; t = UNLIMITED ; variables: int v(t, x) ; v:t = "a\\nb" ; :g = "" ; :h = "c\\n" ; }';
    runSync('ncgen', ['-k', 'nc7', '-o', classic, '-'], text);
    await expectSame(classic);
    expect((await netcdfHeader(path))[0]).toBe('netcdf every-feature {');
  });

  test('of files by h5py without dimensions, with bits that netCDF has not', async () => {
    const path = join(directory, 'h5py.h5');
    pythonSync(
      `
import h5py, sys, numpy as np
f = h5py.File(sys.argv[1], 'w')
f['a'] = np.zeros((3, 4)); f['b'] = np.zeros((4, 3)); f['c'] = np.zeros((5,)); f['g/d'] = np.zeros((3,))
f.create_dataset('e', (3, 4), maxshape=(None, 4))
f['half'] = np.zeros(3, dtype='f2'); f['flag'] = np.zeros(3, dtype=bool); f['text'] = np.array([b'abc', b'd'])
f['a'].attrs['list'] = np.array([b'x', b'yz']); f['a'].attrs['number'] = 5.5; f['a'].attrs['word'] = 'variable'
f['b'].attrs['doubles'] = np.array([123456789012.3125, 123456789012.4375, -0.5, 1e-300, 123456789012345.5])
f['b'].attrs['halves'] = np.array([463696.25, 463696.75, -463696.25, 0.5, 2.5, 8388607.5], 'f4')
f['b'].attrs['none'] = np.zeros(0, 'i4'); f['b'].attrs['nowhere'] = h5py.Empty('f4')
`,
      [path],
    );
    await expectSame(path);
  });

  const many = repeats(50);
  test(`of ${many} random files, and of the logs that became them`, async () => {
    const next = random(seed('netcdf headers'));
    count('netcdf headers', { files: many });
    for (let i = 0; i < many; i++) {
      const path = join(directory, `log-${i}.h5`);
      const file = await File.create(path);
      const made = new RandomFile(file, random(Math.floor(next() * 2 ** 31)));
      made.write();
      await file.close();
      const replayed = join(directory, `file-${i}.nc`);
      await replay(path, replayed);
      await expectSame(replayed);
      expect((await netcdfHeader(path)).slice(1)).toEqual((await netcdfHeader(replayed)).slice(1));
    }
  });
});
