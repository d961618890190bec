// One process: make a file, write parts of a dataset, read it back.
//   node write-and-read.js [file]
import { File } from 'h5log';

const path = process.argv[2] ?? 'weather.h5';

// A new file. What is at that path stays until the new one is whole.
const file = await File.create(path);
file.attributes.set('title', 'three days of weather');

// Groups on the way are made as well. The first dimension may grow; what nobody writes is NaN.
const temperature = file.createDataset('/station/temperature', {
  dtype: 'float32',
  shape: [0, 24],
  maxShape: [null, 24],
  fill: Number.NaN,
});
temperature.attributes.set('units', 'degC');

for (let day = 0; day < 3; day++) {
  temperature.resize([day + 1, 24]);
  // Writing only takes note: the data is in memory, and the array may be used again at once.
  const hours = new Float32Array(12);
  for (let hour = 0; hour < 12; hour++) hours[hour] = 10 + day + hour / 2;
  temperature.write(hours, { start: [day, 6], count: [1, 12] });
  // Now everything since the last flush gets into the file: all of it, or, if the machine stops here, nothing.
  const { sequence, requests, bytes } = await file.flush();
  console.log(`commit ${sequence}: ${requests} request, ${bytes} bytes`);
}
await file.close();

// Any HDF5 tool can look at the structure of the file; h5log puts the data together.
const again = await File.open(path);
const [start, end] = await again.dataset('/station/temperature', 'float32').read({ start: [2, 5], count: [1, 2] });
console.log(`${again.attributes.get('title')}: at 5 it was ${start}, at 6 it was ${end}`);
// Every commit can be opened again.
const first = await File.open(path, { asOf: 1 });
console.log(`after the first day: ${first.dataset('/station/temperature').shape.join(' x ')}`);
await first.close();
await again.close();
