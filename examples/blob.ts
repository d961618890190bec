// Reading in a browser: a file that somebody drops on the page is a Blob. `show` is what the page would call, for example with
// event.dataTransfer.files[0]; the rest of this program only makes such a Blob, so that it also runs in Node.
//   node blob.js
import { Dataset, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';

/** Lists the datasets of a file with their first elements. Only the bytes that are needed are read. */
async function show(blob: Blob): Promise<string[]> {
  const file = await File.open(blob);
  const lines: string[] = [];
  for (const [name, child] of file.children()) {
    if (!(child instanceof Dataset)) continue;
    // In a browser nothing can block: read(), not readSync().
    const first = await child.read({ start: [0, 0], count: [1, 3] });
    lines.push(`${name} [${child.shape.join(', ')}]: ${Array.from(first).join(', ')} ...`);
  }
  await file.close();
  return lines;
}

// A file in memory, in place of one that comes from the user.
const memory = memoryStorage();
const file = await File.create(memory);
const image = file.createDataset('image', { dtype: 'float32', shape: [480, 640] });
image.write(Float32Array.of(1, 2, 3), { start: [0, 0], count: [1, 3] });
await file.close();

const bytes = new Uint8Array(await memory.size());
await memory.read(bytes, 0);
for (const line of await show(new Blob([bytes]))) console.log(line);
