// Machine learning: samples arrive from anywhere and in any order; training reads random minibatches of them.
//   node minibatches.js [file]
import { File } from 'h5log';

const path = process.argv[2] ?? 'images.h5';
const [count, height, width, batch] = [2000, 28, 28, 64];

// Some images with their labels; each is one request, in whatever order they become ready.
const file = await File.create(path);
const images = file.createDataset('/images', { dtype: 'uint8', shape: [count, height, width] });
const labels = file.createDataset('/labels', { dtype: 'uint8', shape: [count] });
const order = shuffled(count);
for (const index of order) {
  const label = index % 10;
  images.write(new Uint8Array(height * width).fill(label + 1), { start: [index, 0, 0], count: [1, height, width] });
  labels.write([label], { start: [index], count: [1] });
}
await file.close();

// A minibatch is one call: readMany takes the first corner of every block, and one shape if all are alike.
const data = await File.open(path);
const [pixels, classes] = [data.dataset('/images', 'uint8'), data.dataset('/labels', 'uint8')];
const epoch = shuffled(count);
const begun = performance.now();
let right = 0;
for (let at = 0; at + batch <= count; at += batch) {
  const chosen = epoch.subarray(at, at + batch);
  const corners = new Float64Array(batch * 3);
  chosen.forEach((index, i) => {
    corners[3 * i] = index;
  });
  // [64, 28, 28] and [64], in the order of the call.
  const [x, y] = await Promise.all([
    pixels.readMany(corners, [1, height, width]),
    classes.readMany(Float64Array.from(chosen), [1]),
  ]);
  for (let i = 0; i < batch; i++) if (x[i * height * width] === (y[i] ?? 0) + 1) right++;
}
const seconds = (performance.now() - begun) / 1000;
console.log(`${right} samples in minibatches of ${batch}, ${Math.round(right / seconds)} a second`);
await data.close();

function shuffled(length: number): Uint32Array {
  const list = Uint32Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [list[i], list[j]] = [list[j] as number, list[i] as number];
  }
  return list;
}
