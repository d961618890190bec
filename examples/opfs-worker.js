// A page that records: this worker appends numbers to a log in the browser's origin private file system (OPFS). What it has
// reported is there after a crash of the tab, and the next start goes on. The page starts the worker and sends numbers:
//   const recorder = new Worker('opfs-worker.js', { type: 'module' });
//   recorder.onmessage = ({ data }) => console.log(`${data.samples} samples are safe`);
//   recorder.postMessage([1.5, 2.5]);
// It may read the log meanwhile:
//   const handle = await (await navigator.storage.getDirectory()).getFileHandle('samples.h5');
//   const file = await File.open(opfsStorage(handle, 'r'));
import { File } from 'h5log';
import { opfsStorage } from 'h5log/storage';

async function start() {
  const folder = await navigator.storage.getDirectory();
  const handle = await folder.getFileHandle('samples.h5', { create: true });
  const isNew = (await handle.getFile()).size === 0;
  const storage = opfsStorage(handle);
  if (!isNew) return File.open(storage, { mode: 'r+' });
  const file = await File.create(storage);
  file.createDataset('samples', { dtype: 'float64', shape: [0], maxShape: [null] });
  return file;
}

// Messages that come before the file is open wait for it.
const opening = start();

self.onmessage = async ({ data }) => {
  const file = await opening;
  const samples = file.dataset('samples');
  const [count] = samples.shape;
  samples.resize([count + data.length]);
  samples.write(data, { start: [count], count: [data.length] });
  await file.flush();
  self.postMessage({ samples: count + data.length });
};
