// What console.log prints of the objects that users hold; scripts/runtimes.ts compares it.
import { File, select } from 'h5log';

const file = await File.create('print.h5');
const options = { dtype: 'float64', shape: [3, 72, 866], attributes: { units: 'K' } };
const dataset = file.createDataset('atm/T', options);
console.log(dataset);
console.log(file);
console.log(file.group('atm'));
console.log(dataset.attributes);
console.log(select.box([0, 0], [2, 3]));
await file.close();
