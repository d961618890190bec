import { spawnSync } from 'node:child_process';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CreateOptions, File } from 'h5log';
import { netcdf } from 'h5log/netcdf';
import { expect, test } from 'vitest';
import { count } from '../counts.ts';
import { compile, startProgram } from '../crash/program.ts';
import { ncdump, oracle, runSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';

const directory = temporaryDirectory();
type Publish = NonNullable<CreateOptions['publish']>;

const MASKED = `
import json, sys, netCDF4, numpy as np, xarray
path = sys.argv[1]
found = {}
for engine in ('netcdf4', 'h5netcdf'):
    with xarray.open_dataset(path, engine=engine) as d:
        t = d['t']
        found[engine] = {
            'coords': sorted(str(name) for name in t.coords),
            'dims': dict(d.sizes),
            'lat': d['lat'].values.tolist(),
            'day': [str(v)[:10] for v in d['time'].values],
            'units': t.attrs['units'],
            'isnan': np.isnan(t.values).ravel().tolist(),
            'near': t.sel(lat=20).isel(time=0, lon=0).item(),
        }
with netCDF4.Dataset(path) as d:
    t = d['t'][:]
    found['masked'] = np.ma.getmaskarray(t).ravel().tolist()
    found['fill'] = float(d['t']._FillValue)
print(json.dumps(found))
`;

withOracle(['ncdump', 'xarray'], 'a published file with coordinates', () => {
  test.each(['close', 'flush'] as const)(
    'publish %s: xarray, netCDF4-python and ncdump see them, and mask fill',
    (publish) => {
      const path = join(directory, `masked-${publish}.nc`);
      const file = File.createSync(path, { publish });
      const nc = netcdf(file);
      nc.createDimension('time', null);
      nc.createDimension('lat', 2);
      nc.createDimension('lon', 2);
      const units = { units: 'days since 2000-01-01', calendar: 'standard' };
      const time = nc.createVariable('time', { dtype: 'float64', dimensions: ['time'], attributes: units });
      nc.createVariable('lat', {
        dtype: 'float32',
        dimensions: ['lat'],
        attributes: { units: 'degrees_north' },
      }).dataset.write(Float32Array.of(10, 20));
      nc.createVariable('lon', { dtype: 'float32', dimensions: ['lon'] }).dataset.write(Float32Array.of(0, 90));
      const t = nc.createVariable('t', {
        dtype: 'float32',
        dimensions: ['time', 'lat', 'lon'],
        fill: -999,
        attributes: { units: 'K' },
      });
      t.dataset.append(Float32Array.of(1, 2, 3, -999));
      time.dataset.append(Float64Array.of(31));
      file.flushSync();
      time.dataset.append(Float64Array.of(32));
      t.dataset.resize([2, 2, 2]);
      t.dataset.write(Float32Array.of(5), { start: [1, 0, 1], count: [1, 1, 1] });
      if (publish === 'flush') file.flushSync();
      else file.closeSync();
      const found = JSON.parse(runSync('xarray', ['-c', MASKED, path])) as Record<string, unknown>;
      const hidden = [false, false, false, true, true, false, true, true];
      const one = {
        coords: ['lat', 'lon', 'time'],
        dims: { time: 2, lat: 2, lon: 2 },
        lat: [10, 20],
        day: ['2000-02-01', '2000-02-02'],
        units: 'K',
        isnan: hidden,
        near: 3,
      };
      expect(found).toEqual({ netcdf4: one, h5netcdf: one, masked: hidden, fill: -999 });
      const text = ncdump('-v', 't', path);
      expect(text).toContain('float t(time, lat, lon) ;');
      expect(text).toContain('t:_FillValue = -999.f ;');
      expect(text.replace(/\s/g, '')).toContain('t=1,2,3,_,_,5,_,_;');
      file.closeSync();
    },
  );
});

withOracle(['ncdump', 'xarray'], 'a coordinate variable of several dimensions', () => {
  test.each(['log', 'native'] as const)('is as long as its dimensions, and they as it (%s)', async (connector) => {
    const path = join(directory, `several-${connector}.nc`);
    const file = File.createSync(path, { connector, ...(connector === 'log' && { publish: 'close' }) });
    const nc = netcdf(file);
    file.flushSync();
    if (connector === 'log') file.publishSync();
    for (const [name, size] of Object.entries({ x: 2, t: null, y: 2, u: null })) nc.createDimension(name, size);
    const x = nc.createVariable('x', { dtype: 'int16', dimensions: ['x', 't'], fill: -1 });
    x.dataset.resize([2, 2]);
    x.dataset.write([1, 2, 3, 4]);
    const y = nc.createVariable('y', { dtype: 'int16', dimensions: ['y', 'u'] });
    y.dataset.resize([2, 2]);
    y.dataset.write([5, 6, 7, 8]);
    file.flushSync();
    if (connector === 'log') {
      file.publishSync();
      expect([file.dataset('u').shape, file.dataset('t').shape]).toEqual([[2], [2]]);
    }
    nc.createVariable('v', { dtype: 'int8', dimensions: ['t'] }).dataset.append([1, 2, 3]);
    expect(await x.read()).toEqual(Int16Array.of(1, 2, -1, 3, 4, -1));
    file.closeSync();
    const read =
      'import netCDF4, sys; d = netCDF4.Dataset(sys.argv[1]); print(d["x"][:].tolist(), d["y"][:].tolist(), len(d.dimensions["u"]))';
    expect(runSync('xarray', ['-c', read, path]).trim()).toBe('[[1, 2, None], [3, 4, None]] [[5, 6], [7, 8]] 2');
    expect(ncdump(path)).toContain('u = UNLIMITED ; // (2 currently)');
  });
});

test('400 variables on one unlimited dimension, publish close: a flush costs what it appends to', () => {
  const path = join(directory, 'many.nc');
  const [variables, row] = [400, 16];
  const file = File.createSync(path, { publish: 'close' });
  const nc = netcdf(file);
  nc.createDimension('time', null);
  nc.createDimension('x', 2);
  for (let i = 0; i < variables; i++)
    nc.createVariable(`v${i}`, { dtype: 'float64', dimensions: ['time', 'x'] }).dataset.append(Float64Array.of(i, i));
  file.closeSync();
  const again = File.openSync(path, { mode: 'r+' });
  const flushed = (): number => again.flushSync().bytes;
  again.dataset('v7', 'float64').append(Float64Array.of(1, 2));
  flushed();
  again.dataset('v7', 'float64').append(Float64Array.of(1, 2));
  const one = flushed();
  const all = [0, 1, 2].map(() => {
    for (let i = 0; i < variables; i++) again.dataset(`v${i}`, 'float64').append(Float64Array.of(3, 4));
    return flushed() / variables - row;
  });
  console.log(
    `400 variables: a flush of one adds ${one} bytes, of all beside the data ${all.map(Math.round).join(', ')} each`,
  );
  expect(one).toBeLessThanOrEqual(6000);
  expect(Math.max(...all)).toBeLessThanOrEqual(700);
  again.closeSync();
  const closed = File.openSync(path);
  expect(netcdf(closed).dimensions.get('time')?.size).toBe(6);
  expect(closed.published).toBe(closed.sequence);
  closed.closeSync();
});

test.each([true, false])(
  'what a flush without a publish has made has its length after the next publish (dimensions before: %s)',
  (before) => {
    const file = File.createSync(join(directory, `flushed-${before}.nc`), { publish: 'close' });
    const nc = netcdf(file);
    if (before) {
      nc.createDimension('x', 3);
      nc.createVariable('w', { dtype: 'int8', dimensions: ['x'] });
    }
    file.publishSync();
    nc.createDimension('t', null);
    const v = nc.createVariable('v', { dtype: 'int16', dimensions: ['t'] });
    v.dataset.append([1, 2, 3]);
    file.flushSync();
    file.publishSync();
    expect(file.dataset('t').shape).toEqual([3]);
    // The variable of the dimension takes the place of a scale that is known already.
    nc.createVariable('t', { dtype: 'uint32', dimensions: ['t'] }).dataset.append([1]);
    file.flushSync();
    v.dataset.append([4]);
    file.publishSync();
    expect(file.dataset('t').shape).toEqual([4]);
    file.closeSync();
  },
);

const kinds: readonly Publish[] = ['never', 'close', 'flush', { interval: 5 }, 'auto'];

withOracle(['ncdump', 'xarray'], 'a writer of netCDF that is killed', () => {
  const trials = repeats(100);
  test(`at ${trials} moments: ncdump does not crash, and reads what was published`, { timeout: 600_000 }, async () => {
    const chance = random(seed('netcdf, killed'));
    const writer = compile('netcdf-writer.ts');
    let shown = 0;
    for (let k = 0; k < trials; k++) {
      const path = join(directory, `killed-${k}.nc`);
      const publish = kinds[k % kinds.length] as Publish;
      const child = startProgram(writer, [path, JSON.stringify(publish), String(3 + Math.floor(chance() * 9))]);
      const [word, after] =
        chance() < 0.8 ? ['begin', 1 + Math.floor(chance() * 60)] : ['clos', 1 + Math.floor(chance() * 8)];
      const delay = chance() * 3;
      let seen = 0;
      child.onLine = (line) => {
        if (!line.startsWith(word) || ++seen !== after) return;
        for (const end = performance.now() + delay; performance.now() < end; );
        child.kill();
      };
      await child.end();
      expect(child.errors).toBe('');
      const file = File.openSync(path);
      const { published } = file;
      const times = published === file.sequence ? [...file.dataset('time', 'float64').readSync()] : null;
      file.closeSync();
      for (const args of [['-h', path], [path]]) {
        const { status, signal, stderr } = spawnSync(oracle('ncdump') as string, args, {
          encoding: 'utf8',
          maxBuffer: 2 ** 28,
        });
        expect(signal, `trial ${k}, ${JSON.stringify(publish)}`).toBe(null);
        if (published !== null) expect(stderr, `trial ${k}, ${JSON.stringify(publish)}`).toBe('');
        if (published !== null) expect(status).toBe(0);
      }
      if (published === null) continue;
      shown++;
      if (times) expect(ncdump('-v', 'time', path).replace(/\s/g, '')).toContain(`data:time=${times.join(',')};`);
    }
    if (trials >= kinds.length) expect(shown).toBeGreaterThan(0);
    count('netcdf, killed', { trials, 'files that had been published': shown });
  });

  test('between publishings, with new groups, dimensions and variables: ncdump and xarray read the file', () => {
    const path = join(directory, 'between.nc');
    const file = File.createSync(path, { publish: 'close' });
    const nc = netcdf(file);
    nc.createDimension('time', null);
    nc.createVariable('v', { dtype: 'int32', dimensions: ['time'] }).dataset.append(Int32Array.of(1, 2));
    file.flushSync();
    // Not published yet: it has no data for libnetcdf.
    ncdump('-h', path);
    file.closeSync();
    const again = File.openSync(path, { mode: 'r+' });
    const more = netcdf(again);
    const copies: string[] = [];
    const look = (): void => {
      again.flushSync();
      ncdump(path);
      copies.push(join(directory, `between-${copies.length}.nc`));
      copyFileSync(path, copies.at(-1) as string);
    };
    again.dataset('v', 'int32').append(Int32Array.of(3));
    look();
    more.createDimension('y', 3);
    look();
    more.createVariable('y', { dtype: 'float32', dimensions: ['y'] }).dataset.write(Float32Array.of(1, 2, 3));
    look();
    more.createVariable('w', { dtype: 'int16', dimensions: ['time', 'y'] }).dataset.append(Int16Array.of(1, 2, 3));
    look();
    const group = more.createGroup('g');
    group.createDimension('z', null);
    group.createVariable('z', { dtype: 'int8', dimensions: ['z'] }).dataset.append(Int8Array.of(1));
    look();
    for (const copy of copies) {
      const read = `import xarray, sys
for engine in ('netcdf4', 'h5netcdf'):
    with xarray.open_dataset(sys.argv[1], engine=engine, decode_times=False) as d: print(d['v'].values.tolist())`;
      expect(runSync('xarray', ['-c', read, copy])).toBe('[1, 2]\n[1, 2]\n');
    }
    again.closeSync();
    expect(ncdump('-v', 'w', path).replace(/\s/g, '')).toContain('w=1,2,3,_,_,_,_,_,_;');
    expect(statSync(path).size).toBeGreaterThan(0);
  });
});
