// Follow a file while it is being written. Both sides are in one program here; they may as well be two, on one machine or
// on several with a common file system. Readers need no lock, and there may be any number of them.
//   node live-reader.js [file]
import { File } from 'h5log';

const path = process.argv[2] ?? 'live.h5';

const writing = await File.create(path);
const samples = writing.createDataset('/samples', { dtype: 'float64', shape: [0], maxShape: [null] });
await writing.flush();

// The reader sees the state of the last commit, and moves on when it is told to.
const reading = await File.open(path);
const seen = reading.dataset('/samples', 'float64');

const writer = (async () => {
  for (let step = 1; step <= 5; step++) {
    samples.resize([step * 100]);
    samples.write(new Float64Array(100).fill(step), { start: [(step - 1) * 100], count: [100] });
    await writing.flush();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await writing.close();
})();

// watch() looks at the file every `interval` milliseconds, and gives every commit that has come since.
let known = 0;
for await (const commit of reading.watch({ interval: 5 })) {
  const [length = 0] = seen.shape;
  if (length === known) continue;
  // Only what is new is read.
  const news = await seen.read({ start: [known], count: [length - known] });
  console.log(`commit ${commit.sequence}: ${news.length} new samples, the last is ${news.at(-1)}`);
  known = length;
  if (known === 500) break;
}
await writer;
await reading.close();
