import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, H5LogError, T } from 'h5log';
import { netcdf } from 'h5log/netcdf';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { ncdump, pythonSync, runSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const directory = temporaryDirectory();
const made = (connector: 'log' | 'native' = 'native'): File => File.createSync(memoryStorage(), { connector });

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof H5LogError) return error.code;
    throw error;
  }
  return '';
}

describe.each(['log', 'native'] as const)('a %s file with netcdf', (connector) => {
  test('has the attributes that netcdf-c expects', () => {
    const file = made(connector);
    const nc = netcdf(file);
    nc.createDimension('time', null);
    nc.createDimension('x', 3);
    nc.createVariable('v', { dtype: 'int16', dimensions: ['time', 'x'], fill: -5, attributes: { units: 'm' } });
    nc.createVariable('x', { dtype: 'float64', dimensions: ['x'] });
    nc.createVariable('time', { dtype: 'int32', dimensions: ['x'] });
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(file.attributes.get('_NCProperties')).toBe(`version=2,h5log=${version}`);
    const [time, x, v] = [file.dataset('time'), file.dataset('x'), file.dataset('v')];
    expect(time.attributes.get('NAME')).toBe('This is a netCDF dimension but not a netCDF variable.         0');
    expect(time.attributes.describe('NAME')?.dtype).toEqual(T.string({ length: 64, pad: 'zero', charset: 'ascii' }));
    expect([time.dtype, time.chunks, time.maxShape]).toEqual([T.bigEndian('float32'), [1], [null]]);
    expect([time.attributes.get('_Netcdf4Dimid'), x.attributes.get('_Netcdf4Dimid')]).toEqual([0, 1]);
    expect(x.attributes.describe('_Netcdf4Dimid')).toEqual({ dtype: 'int32', shape: [] });
    expect(x.attributes.get('NAME')).toBe('x');
    expect(x.attributes.has('DIMENSION_LIST')).toBe(false);
    expect(x.attributes.get('_Netcdf4Coordinates')).toEqual(Int32Array.of(1));
    expect(v.attributes.get('_Netcdf4Coordinates')).toEqual(Int32Array.of(0, 1));
    expect(v.attributes.get('DIMENSION_LIST')).toEqual([['/time'], ['/x']]);
    expect([v.fill, v.attributes.get('_FillValue')]).toEqual([-5, Int16Array.of(-5)]);
    expect(v.attributes.describe('_FillValue')).toEqual({ dtype: 'int16', shape: [1] });
    expect(v.attributes.describe('units')).toEqual({
      dtype: T.string({ length: 2, pad: 'zero', charset: 'ascii' }),
      shape: [],
    });
    expect(x.fill).toBe(9.969209968386869e36);
    expect(file.dataset('_nc4_non_coord_time').attributes.get('DIMENSION_LIST')).toEqual([['/x']]);
    expect([...nc.variables.keys()].sort()).toEqual(['time', 'v', 'x']);
    expect(nc.variables.get('time')?.dimensions).toEqual(['x']);
    file.discard();
  });

  test('finds dimensions in groups above, and follows unlimited ones', async () => {
    const file = made(connector);
    const nc = netcdf(file);
    const time = nc.createDimension('time', null);
    nc.createDimension('x', 2);
    const inner = nc.createGroup('g').createGroup('h');
    inner.createDimension('x', 3);
    const a = nc.createVariable('a', { dtype: 'int8', dimensions: ['time', 'x'], fill: 9 });
    const b = inner.createVariable('b', { dtype: 'float32', dimensions: ['x', 'time'] });
    const s = nc.createVariable('s', { dtype: T.string(), dimensions: ['time', 'x'] });
    expect([a.shape, b.shape]).toEqual([
      [0, 2],
      [3, 0],
    ]);
    a.dataset.append([1, 2]);
    s.dataset.append(['p', 'q']);
    b.dataset.resize([3, 2]);
    expect([time.size, time.unlimited, a.shape, b.shape]).toEqual([2, true, [2, 2], [3, 2]]);
    expect([...(await a.read())]).toEqual([1, 2, 9, 9]);
    expect([...(await a.read({ start: [0, 1], count: [2, 1] }))]).toEqual([2, 9]);
    expect([...(await a.read({ start: [1, 0], count: [1, 2] }))]).toEqual([9, 9]);
    expect(await s.read()).toEqual(['p', 'q', '', '']);
    expect(await s.read({ start: [0, 1], count: [2, 1] })).toEqual(['q', '']);
    await expect(a.read({ start: [0, 0], count: [3, 1] })).rejects.toThrow(/ends at 3 in dimension 0/);
    expect(nc.groups.get('g')?.groups.get('h')).toBe(inner);
    expect([inner.name, nc.name]).toEqual(['h', '/']);
    file.discard();
  });

  test.each([
    ['chunks', { chunks: [0] }],
    ['a fill value', { fill: 'abc' as never }],
    ['a filter', { filters: [{ id: 99_999 }] as never }],
    ['an attribute', { attributes: { good: 1, bad: true } }],
  ])('changes nothing when a variable is refused for %s', async (_, options) => {
    const file = made(connector);
    const nc = netcdf(file);
    nc.createDimension('x', 3);
    nc.createDimension('z', 3);
    const y = nc.createVariable('y', { dtype: 'int32', dimensions: ['x'] });
    y.dataset.write([1, 2, 3]);
    for (const [name, dimension] of [
      ['x', 'x'],
      ['z', 'x'],
      ['v', 'x'],
    ] as const) {
      const create = (more: object) => nc.createVariable(name, { dtype: 'int32', dimensions: [dimension], ...more });
      const before = [...file.keys()].sort();
      expect(codeOf(() => create(options))).not.toBe('');
      expect([...file.keys()].sort()).toEqual(before);
      expect([[...nc.dimensions.keys()], y.dimensions, nc.variables.has(name)]).toEqual([['x', 'z'], ['x'], false]);
      expect(y.dataset.attributes.get('DIMENSION_LIST')).toEqual([['/x']]);
      create({ attributes: { good: 1 } }).dataset.write([4, 5, 6]);
      expect(await nc.variables.get(name)?.read()).toEqual(Int32Array.of(4, 5, 6));
    }
    expect(file.dataset('y').dimensions[0]?.scales[0]?.dtype).toBe('int32');
    file.closeSync();
  });

  test('sees what is moved, deleted and made beside it', async () => {
    const file = made(connector);
    const nc = netcdf(file);
    nc.createDimension('t', null);
    nc.createDimension('n', 2);
    nc.createGroup('g').attributes.set('number', 1);
    const c = nc.createVariable('c', { dtype: 'int32', dimensions: ['t', 'n'] });
    c.dataset.append([1, 2]);
    file.move('c', 'd');
    expect([...nc.variables.keys()]).toEqual(['d']);
    expect(await nc.variables.get('d')?.read()).toEqual(Int32Array.of(1, 2));
    expect(codeOf(() => nc.createVariable('d', { dtype: 'int8', dimensions: ['n'] }))).toBe('EXISTS');
    nc.createVariable('c', { dtype: 'int8', dimensions: ['n'] }).dataset.write([3, 4]);
    expect(await nc.variables.get('c')?.read()).toEqual(Int8Array.of(3, 4));
    expect(codeOf(() => c.dimensions)).toBe('NOT_FOUND');
    file.delete('c');
    file.createDataset('e', { dtype: 'int8', shape: [2] });
    file.move('t', 'time');
    expect([...nc.variables.keys()]).toEqual(['d', 'e']);
    expect([...nc.dimensions.keys()]).toEqual(['time', 'n']);
    expect(nc.variables.get('d')?.dimensions).toEqual(['time', 'n']);
    file.move('g', 'h');
    file.createGroup('g');
    expect([...nc.groups].map(([name, { attributes }]) => [name, attributes.get('number')]).sort()).toEqual([
      ['g', undefined],
      ['h', 1],
    ]);
    file.closeSync();
  });

  test('refuses what netCDF has not', () => {
    const file = made(connector);
    const nc = netcdf(file);
    nc.createDimension('x', 2);
    const create = (dtype: never, dimensions = ['x']) => codeOf(() => nc.createVariable('v', { dtype, dimensions }));
    expect(create('float16' as never)).toBe('DTYPE');
    expect(create(T.bool as never)).toBe('DTYPE');
    expect(create(T.compound({ a: 'int8' }) as never)).toBe('DTYPE');
    expect(create(T.reference as never)).toBe('DTYPE');
    expect(create(T.string({ length: 5 }) as never)).toBe('DTYPE');
    expect(create('int8' as never, ['y'])).toBe('NOT_FOUND');
    expect(codeOf(() => nc.createDimension('x', 3))).toBe('EXISTS');
    expect(codeOf(() => nc.createDimension('y', 0))).toBe('SHAPE');
    for (const name of ['', 'a/b', 'a ', '.x', 'a\0'])
      expect(
        codeOf(() => nc.createDimension(name, 1)),
        name,
      ).toBe('OPTION');
    const v = nc.createVariable('v', { dtype: 'int8', dimensions: ['x'] });
    expect(codeOf(() => nc.createVariable('v', { dtype: 'int8', dimensions: ['x'] }))).toBe('EXISTS');
    for (const { attributes } of [v, nc]) {
      expect(codeOf(() => attributes.set('a', [1, 2, 3, 4], { shape: [2, 2] }))).toBe('SHAPE');
      expect(codeOf(() => attributes.set('a', true))).toBe('DTYPE');
      expect(codeOf(() => attributes.set('a', [true, false]))).toBe('DTYPE');
      expect(codeOf(() => attributes.set('a', '/x', { dtype: T.reference }))).toBe('DTYPE');
      expect(codeOf(() => attributes.set('CLASS', 'x'))).toBe('OPTION');
      expect(codeOf(() => attributes.delete('_NCProperties'))).toBe('OPTION');
      expect(attributes.size).toBe(0);
    }
    expect(codeOf(() => v.attributes.set('_FillValue', 3))).toBe('OPTION');
    v.attributes.set('_FillValue', -127);
    expect([v.attributes.get('_FillValue'), [...v.attributes.keys()]]).toEqual([-127, ['_FillValue']]);
    file.discard();
  });

  test('takes NaN for NaN, and names that begin with any letter', () => {
    const nc = netcdf(made(connector));
    nc.createDimension('🌊', 2);
    const { NaN: none } = Number;
    const options = { dtype: 'float32', dimensions: ['🌊'], fill: none, attributes: { _FillValue: none } } as const;
    expect(nc.createVariable('v', options).read()).toBeInstanceOf(Promise);
    expect([...nc.variables.keys()]).toEqual(['v']);
  });

  test('is made of a file, and has scales that are datasets', () => {
    const dataset = made(connector).createDataset('d', { dtype: 'int8', shape: [1] });
    for (const wrong of [null, {}, dataset]) {
      expect(codeOf(() => netcdf(wrong as never))).toBe('OPTION');
      if (wrong !== dataset) expect(codeOf(() => dataset.attachScale(0, wrong as never))).toBe('OPTION');
    }
  });

  test('of the classic model has no more than that', () => {
    const file = made(connector);
    const nc = netcdf(file, { classic: true });
    expect(file.attributes.describe('_nc3_strict')).toEqual({ dtype: 'int32', shape: [] });
    nc.createDimension('t', null);
    nc.createDimension('x', 2);
    expect(codeOf(() => nc.createDimension('u', null))).toBe('OPTION');
    expect(codeOf(() => nc.createGroup('g'))).toBe('OPTION');
    expect(codeOf(() => nc.createVariable('v', { dtype: 'uint16', dimensions: ['x'] }))).toBe('DTYPE');
    expect(codeOf(() => nc.createVariable('v', { dtype: T.string(), dimensions: ['x'] }))).toBe('DTYPE');
    expect(codeOf(() => nc.createVariable('v', { dtype: 'int16', dimensions: ['x', 't'] }))).toBe('OPTION');
    expect(codeOf(() => nc.attributes.set('a', 5n))).toBe('DTYPE');
    expect(codeOf(() => nc.attributes.set('a', ['x', 'y']))).toBe('DTYPE');
    nc.attributes.set('a', 'text');
    nc.createVariable('v', { dtype: 'int16', dimensions: ['t', 'x'] });
    file.discard();
    const other = made(connector);
    other.createDataset('x', { dtype: 'int8', shape: [1] });
    expect(codeOf(() => netcdf(other, { classic: true }))).toBe('OPTION');
    other.discard();
  });
});

withOracle(['ncdump', 'xarray'], 'the fill value of characters', () => {
  test.each([true, false])('is one character to others (classic model: %s)', (classic) => {
    const path = join(directory, `characters-${classic}.nc`);
    const file = File.createSync(path, { connector: 'native' });
    const nc = netcdf(file, { classic });
    nc.createDimension('n', 3);
    const c = nc.createVariable('c', { dtype: T.string({ length: 1 }), dimensions: ['n'], fill: '*' });
    c.dataset.write(['a'], { start: [1], count: [1] });
    expect([c.attributes.get('_FillValue'), c.attributes.describe('_FillValue')?.shape]).toEqual(['*', []]);
    file.closeSync();
    expect(ncdump('-h', path)).toContain('c:_FillValue = "*" ;');
    const read =
      'import netCDF4, sys; c = netCDF4.Dataset(sys.argv[1])["c"]; print(c._FillValue, c[:].mask.tolist(), c[1:2].tobytes())';
    expect(runSync('xarray', ['-c', read, path]).trim()).toBe("b'*' [True, False, True] b'a'");
  });
});

withOracle(['ncdump', 'xarray'], 'files by others', () => {
  test('of h5netcdf and xarray are read and appended to', async () => {
    const path = join(directory, 'xarray.nc');
    pythonSync(
      `
import numpy as np, xarray, sys
d = xarray.Dataset(
    {'t': (('time', 'x'), np.arange(6, dtype='f4').reshape(3, 2), {'units': 'K'}), 'n': ('x', [b'one', b'two'])},
    coords={'time': ('time', [0., 1., 2.], {'units': 'days since 2000-01-01', 'calendar': 'noleap'}), 'x': [10, 20]},
    attrs={'title': 'by xarray'},
)
d.to_netcdf(sys.argv[1], engine='h5netcdf', unlimited_dims=['time'])
`,
      [path],
    );
    let file = await File.open(path, { mode: 'r+' });
    let nc = netcdf(file);
    expect(Array.from(nc.dimensions.values(), ({ name, size, unlimited }) => [name, size, unlimited])).toEqual(
      expect.arrayContaining([
        ['time', 3, true],
        ['x', 2, false],
      ]) as unknown,
    );
    const t = nc.variables.get('t');
    expect([t?.dimensions, t?.shape, t?.attributes.get('units')]).toEqual([['time', 'x'], [3, 2], 'K']);
    expect(await t?.read()).toEqual(Float32Array.of(0, 1, 2, 3, 4, 5));
    t?.dataset.append(Float32Array.of(6, 7));
    nc.variables.get('time')?.dataset.append([3]);
    nc.createDimension('z', 2);
    nc.createVariable('w', { dtype: 'int16', dimensions: ['time', 'z'] }).dataset.append([1, 2, 3, 4]);
    await file.close();
    const seen = pythonSync(
      `
import xarray, sys
for engine in ('netcdf4', 'h5netcdf'):
    d = xarray.open_dataset(sys.argv[1], engine=engine, decode_cf=False)
    print(dict(d.sizes), d.t.values.ravel().tolist(), d.time.values.tolist(), d.w.values.ravel().tolist())
`,
      [path],
    );
    const line = `{'time': 4, 'x': 2, 'string3': 3, 'z': 2} [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0] [0.0, 1.0, 2.0, 3.0] [1, 2, 3, 4, -32767, -32767, -32767, -32767]`;
    const sorted = (text: string): string => [...text].sort().join('');
    for (const found of seen.trim().split('\n')) expect(sorted(found), found).toBe(sorted(line));
    file = await File.open(path);
    nc = netcdf(file);
    expect([nc.dimensions.get('time')?.size, nc.variables.get('w')?.shape]).toEqual([4, [4, 2]]);
    await file.close();
  });

  test('of h5py have made-up dimensions, as in ncdump', async () => {
    const path = join(directory, 'plain.h5');
    pythonSync(
      `
import h5py, sys, numpy as np
f = h5py.File(sys.argv[1], 'w')
f['a'] = np.zeros((3, 4)); f['b'] = np.zeros((4, 3)); f['c'] = np.zeros((5,)); f['g/d'] = np.zeros((3,))
f.create_dataset('e', (3, 4), maxshape=(None, 4))
`,
      [path],
    );
    const file = await File.open(path);
    const nc = netcdf(file);
    const said = ncdump('-h', path);
    const inside = [...nc.variables.values(), ...(nc.groups.get('g')?.variables.values() ?? [])];
    expect(inside).toHaveLength(5);
    for (const { name, dimensions } of inside)
      expect(said).toContain(`double ${name}(${dimensions.join(', ')}) ;`.replace('double e', 'float e'));
    await file.close();
  });
});
