// A process that appends rows at a steady rate and lets others see them; see live.test.ts. It says when each row was committed.
import { writeSync } from 'node:fs';
import { type CreateOptions, File } from '../../src/index.ts';

const [path, publish, rate] = process.argv.slice(2) as [string, string, string];
const file = await File.create(path, { publish: JSON.parse(publish) as NonNullable<CreateOptions['publish']> });
const rows = file.createDataset('rows', { dtype: 'float64', shape: [0, 4], maxShape: [null, 4] });
const packed = file.createDataset('packed', {
  dtype: 'int32',
  shape: [0],
  maxShape: [null],
  chunks: [64],
  filters: ['shuffle', { deflate: 1 }],
});
const began = performance.now();
for (let i = 0; ; i++) {
  rows.append(Float64Array.of(i, 2 * i, -i, Math.sqrt(i)));
  packed.append(Int32Array.of(i));
  await file.flush();
  writeSync(1, `${i} ${Date.now()}\n`);
  const early = began + ((i + 1) / Number(rate)) * 1000 - performance.now();
  if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
}
