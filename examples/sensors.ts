// A logger that may be killed, or lose power, at any moment: what it has flushed is there afterwards.
//   node sensors.js [file] [seconds] [milliseconds between flushes]
import { existsSync } from 'node:fs';
import { File, T } from 'h5log';

const path = process.argv[2] ?? 'sensors.h5';
const seconds = Number(process.argv[3] ?? 10);
const interval = Number(process.argv[4] ?? 1000);

// One sample of the stream.
const sample = T.compound({ time: 'float64', sensor: 'uint8', value: 'float32' });

// A logger that starts again goes on where the last one stopped, even if that was killed in the middle of a write.
// 'power': a flush returns when the disk has it. Without it, it survives the end of the process but not of the machine.
const file = existsSync(path)
  ? await File.open(path, { mode: 'r+', durability: 'power' })
  : await File.create(path, { durability: 'power' });
const stream = file.has('/stream')
  ? file.dataset('/stream', sample)
  : file.createDataset('/stream', { dtype: sample, shape: [0], maxShape: [null] });
let [length = 0] = stream.shape;
console.log(`${length} samples so far`);

const end = Date.now() + seconds * 1000;
let flushed = Date.now();
while (Date.now() < end) {
  // Posting is done in memory, as samples arrive.
  stream.resize([length + 1]);
  stream.write([{ time: Date.now() / 1000, sensor: length % 3, value: Math.sin(length) }], {
    start: [length],
    count: [1],
  });
  length++;
  if (Date.now() - flushed >= interval) {
    const { requests, bytes } = await file.flush();
    console.log(`${requests} samples, ${bytes} bytes on disk`);
    flushed = Date.now();
  }
  await new Promise((resolve) => setTimeout(resolve, 1));
}
// A normal end commits the rest.
await file.close();
console.log(`${length} samples`);
