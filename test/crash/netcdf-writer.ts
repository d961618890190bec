// A process that writes a netCDF file until it is killed; see test/netcdf/published.test.ts.
import { writeSync } from 'node:fs';
import { type CreateOptions, File } from '../../src/index.ts';
import { netcdf } from '../../src/netcdf.ts';

const [path, publish, perOpening] = process.argv.slice(2) as [string, string, string];
const say = (line: string): void => void writeSync(1, `${line}\n`);

let file = await File.create(path, { publish: JSON.parse(publish) as NonNullable<CreateOptions['publish']> });
for (let n = 0; ; n++) {
  const nc = netcdf(file);
  if (n === 0) {
    nc.createDimension('time', null);
    nc.createDimension('x', 5);
    nc.createVariable('time', { dtype: 'float64', dimensions: ['time'] });
    nc.createVariable('t', { dtype: 'float32', dimensions: ['time', 'x'], fill: -1 });
  }
  // Variables, dimensions and groups come while the file is read by others.
  if (n % 7 === 3) {
    const group = nc.createGroup(`g${n}`);
    group.createDimension(`y${n}`, n % 2 === 0 ? null : 3);
    group.createVariable('v', { dtype: 'int16', dimensions: ['time', `y${n}`] });
  }
  nc.variables.get('time')?.dataset.append(Float64Array.of(n));
  if (n % 2 === 0) nc.variables.get('t')?.dataset.append(Float32Array.of(n, n, n, n, n));
  say(`begin ${n}`);
  await file.flush();
  say(`commit ${n}`);
  if (n % Number(perOpening) !== Number(perOpening) - 1) continue;
  say('closing');
  await file.close();
  say('closed');
  file = await File.open(path, { mode: 'r+' });
}
