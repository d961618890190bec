// Writes rows without end, and prints how many are flushed.
import { File } from 'h5log';

const columns = 100;
const file = File.createSync(process.argv[2]);
const rows = file.createDataset('rows', { dtype: 'int32', shape: [0, columns], maxShape: [null, columns] });
for (let row = 0; ; row++) {
  rows.resize([row + 1, columns]);
  rows.write(new Int32Array(columns).fill(row), { start: [row, 0], count: [1, columns] });
  file.flushSync();
  await new Promise((resolve) => process.stdout.write(`${row + 1}\n`, resolve));
}
