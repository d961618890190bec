import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { type NcVariable, netcdf } from 'h5log/netcdf';
import { expect, test } from 'vitest';
import { pythonSync, runSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { Expected } from './random-file.ts';
import { ours, said } from './seen.ts';

const directory = temporaryDirectory();

/**
 * Every feature of CDL but types of users, which Python shows in another way, infinite numbers, which JSON has not, and a dimension that
 * another one of its name hides, which netCDF4-python mixes up.
 */
const features = readFileSync(new URL('every-feature.cdl', import.meta.url), 'utf8')
  .replaceAll(/types:[\s\S]*?(?=dimensions:)/g, '')
  .replaceAll(/^.*\b(cloud_t|raw_t|row_t|obs_t) .*;\n/gm, (line) =>
    line.includes('int z(') ? line.replace('loc v ; cloud_t q(n) ; ', '') : '',
  )
  .replaceAll(/NaNf?, |-Infinityf, /g, '')
  .replace('int z(/n) ; ', '')
  .replace('z = 1, 2 ; ', '');

const MADE = `
import netCDF4, numpy as np, sys
d = netCDF4.Dataset(sys.argv[1], 'w')
d.createDimension('time'); d.createDimension('x', 3); d.createDimension('len', 5)
g = d.createGroup('inner'); g.createDimension('x', 2); g.createDimension('more')
t = d.createVariable('time', 'f8', ('time',)); t.units = 'days since 2000-01-01'
v = d.createVariable('v', 'f4', ('time', 'x'), zlib=True, fill_value=-9.0); v.setncattr('n', np.int16(4)); v.setncattr('list', [1, 2, 3])
c = d.createVariable('c', 'S1', ('x', 'len')); s = d.createVariable('s', str, ('x',))
w = g.createVariable('w', 'i8', ('more', 'x')); e = g.createVariable('e', 'u2', ('time',), endian='big')
d.createVariable('scalar', 'i4')[...] = 5
v[0:2] = np.arange(6).reshape(2, 3); t[0:3] = [1, 2, 3]; s[:] = np.array(['a', 'bc', ''], dtype=object); w[0:1] = [[1, 2]]; e[0:1] = 7
c[0] = list('hello'); d.title = 'by netCDF4'; d.setncattr_string('words', ['p', 'q'])
d.close()
`;

withOracle(['ncgen', 'xarray'], 'files by ncgen and netCDF4-python', () => {
  test.each([
    ['ncgen', (path: string) => runSync('ncgen', ['-4', '-o', path, '-'], features)],
    ['netCDF4-python', (path: string) => pythonSync(MADE, [path])],
  ])('of %s are read as netCDF4-python reads them, appended to, and read again', async (name, make) => {
    const path = join(directory, `${name}.nc`);
    make(path);
    let file = await File.open(path, { mode: 'r+' });
    const before = await ours(netcdf(file));
    expect(Object.keys(before.variables).length).toBeGreaterThan(4);
    expect(before).toEqual((said([path])[path] as { netCDF4: Expected }).netCDF4);

    const nc = netcdf(file);
    const time = nc.variables.get('time') as NcVariable<'float64'>;
    time.dataset.append(Float64Array.of(10, 11));
    const length = time.shape[0] as number;
    expect(nc.dimensions.get('time')?.size).toBe(length);
    time.attributes.set('added', 'by h5log');
    nc.createDimension('new', 2);
    const added = nc.createVariable('added', { dtype: 'int16', dimensions: ['time', 'new'], fill: -3 });
    added.dataset.append([1, 2]);
    nc.createGroup('late')
      .createVariable('u', { dtype: 'uint64', dimensions: ['new'] })
      .dataset.write([1n, 2n]);
    await file.close();

    file = await File.open(path);
    const after = await ours(netcdf(file));
    await file.close();
    const { netCDF4, netcdf4, h5py } = said([path])[path] as ReturnType<typeof said>[string];
    expect(after).toEqual(netCDF4);
    expect(h5py).toEqual([]);
    expect(netcdf4.variables).toEqual(after.variables);
    expect(after.dimensions).toMatchObject({ ...before.dimensions, time: [length, true], new: [2, false] });
    expect(after.variables['added']?.values).toEqual([1, 2, ...new Array<number>(2 * length - 2).fill(-3)]);
    for (const [key, { attributes }] of Object.entries(before.variables))
      expect(after.variables[key]?.attributes).toMatchObject(attributes);
    // netCDF4-python appends in its turn.
    pythonSync(
      `import netCDF4, sys\nd = netCDF4.Dataset(sys.argv[1], 'a')\nd['added'][5] = [7, 8]\nd.createVariable('last', 'f4', ('new',))[:] = 4\nd.close()`,
      [path],
    );
    file = await File.open(path);
    const last = netcdf(file);
    expect(await last.variables.get('added')?.read({ start: [5, 0], count: [1, 2] })).toEqual(Int16Array.of(7, 8));
    expect(await last.variables.get('last')?.read()).toEqual(Float32Array.of(4, 4));
    await file.close();
  });
});
