// A field in time with coordinates, as climate people keep it: ncdump, netCDF4-python and xarray read the file.
//   node netcdf.js [file]
import { File } from 'h5log';
import { netcdf } from 'h5log/netcdf';

const file = await File.create(process.argv[2] ?? 'field.nc', { connector: 'native' });
const nc = netcdf(file);
nc.attributes.set('Conventions', 'CF-1.10');

nc.createDimension('time', null); // unlimited
nc.createDimension('lat', 3);
nc.createDimension('lon', 4);

// A variable named like its dimension holds the coordinates.
const time = nc.createVariable('time', {
  dtype: 'float64',
  dimensions: ['time'],
  attributes: { standard_name: 'time', units: 'days since 2000-01-01', calendar: 'noleap' },
});
const lat = nc.createVariable('lat', {
  dtype: 'float64',
  dimensions: ['lat'],
  attributes: { standard_name: 'latitude', units: 'degrees_north' },
});
const lon = nc.createVariable('lon', {
  dtype: 'float64',
  dimensions: ['lon'],
  attributes: { standard_name: 'longitude', units: 'degrees_east' },
});
lat.dataset.write([-60, 0, 60]);
lon.dataset.write([0, 90, 180, 270]);

const tas = nc.createVariable('tas', {
  dtype: 'float32',
  dimensions: ['time', 'lat', 'lon'],
  fill: 1e20,
  chunks: [1, 3, 4],
  filters: ['shuffle', { deflate: 4 }],
  attributes: { standard_name: 'air_temperature', units: 'K', cell_methods: 'time: mean' },
});

// A step of the model: posting is done in memory, a flush makes it last.
for (let step = 0; step < 5; step++) {
  time.dataset.append([step]);
  tas.dataset.append(Float32Array.from({ length: 12 }, (_, i) => 280 + step + i / 10));
  await file.flush();
}

console.log(`tas(${tas.dimensions.join(', ')}) is ${tas.shape.join(' x ')}`);
const [, first = 0] = await tas.read({ start: [4, 0, 0], count: [1, 1, 2] });
console.log(`on the last day it is ${first.toFixed(1)} K at the second point`);
await file.close();
