// A worker that reads slices of a dataset on a server, so that the page stays responsive while chunks are inflated. The structure of the
// file is loaded on demand: see canvas.js for the page.
import { File } from 'h5log';

const files = new Map();

self.onmessage = async ({ data: { url, dataset, start, count } }) => {
  try {
    if (!files.has(url)) files.set(url, File.open(url, { lazy: true }));
    const file = await files.get(url);
    await file.load(dataset);
    const values = await file.dataset(dataset).read({ start, count }, { as: 'float32' });
    const [height, width] = count;
    self.postMessage({ values, height, width, ...file.storageStatistics() }, [values.buffer]);
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
