// Writes several times the buffer limit, and prints by how many MiB the process has grown at its peak.

import { rmSync } from 'node:fs';
import { File, isH5LogError } from 'h5log';
import { noise } from '../../seed.ts';

const MIB = 2 ** 20;
const [path = '', how, filtered, limit = 0] = [...process.argv.slice(2, 5), Number(process.argv[5]) * MIB] as [
  string,
  'flushSync' | 'flush' | 'onBufferFull' | 'unawaited',
  'plain' | 'filtered',
  number,
];
const columns = MIB / 8;
const rows = (3 * limit) / MIB;
const options = how === 'onBufferFull' ? { onBufferFull: 'flush' as const } : {};
const file = File.createSync(path, { bufferLimit: limit, ...options });
const dataset = file.createDataset('d', {
  dtype: 'float64',
  shape: [rows, columns],
  // Noise: the filters make nothing smaller.
  filters: filtered === 'filtered' ? ['shuffle', { deflate: 1 }, 'fletcher32'] : [],
});
const row = new Float64Array(noise(MIB, 1).buffer);
const peak = (): number => process.resourceUsage().maxRSS / 1024;
const before = peak();
let refused = 0;
for (let i = 0; i < rows; ) {
  try {
    dataset.write(row, { start: [i, 0], count: [1, columns] });
    i++;
    if (how !== 'unawaited' || (i * MIB) % (limit / 4) !== 0) continue;
    void file.flush();
    await new Promise((resolve) => setTimeout(resolve));
  } catch (error) {
    if (!isH5LogError(error, 'BUFFER_FULL')) throw error;
    refused++;
    if (how === 'flushSync') file.flushSync();
    else await file.flush();
  }
}
await file.close();
rmSync(path);
console.log(JSON.stringify({ grown: peak() - before, refused }));
