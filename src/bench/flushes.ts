import { statSync } from 'node:fs';
import { join } from 'node:path';
import { File } from '../api/file.ts';
import { median, scaledSize, secondsSince, steps, type Workload, wrongValue } from './workload.ts';

const FLUSHES = 100_000;
/** Elements of a row of 1 KiB. */
const COLUMNS = 128;
const ROW_BYTES = COLUMNS * 8;
/** Number of flushes at the beginning and at the end whose median is reported; at most a tenth of all. */
const SAMPLE = 1000;
/** Progress reports per repetition. */
const STEPS = 20;

interface Written {
  readonly total: number;
  /** Milliseconds of each flush including its post. */
  readonly times: Float64Array;
}

/** Very many small commits: do the last ones cost as little as the first? */
export const flushes: Workload = {
  name: 'flushes',
  summary: '100,000 flushes of 1 KiB each, a row by which the dataset grows',
  async *run({ folder, scale, repeat, onProgress }) {
    const count = scaledSize(FLUSHES, scale, 10);
    const path = join(folder, 'flushes.h5');
    const done = steps(repeat * STEPS, onProgress);
    let best: Written | undefined;
    for (let round = 0; round < repeat; round++) {
      const written = await write(path, count, done);
      if (!best || written.total < best.total) best = written;
    }
    check(path, count);
    const { total, times } = best as Written;
    const part = Math.min(SAMPLE, Math.ceil(count / 10));
    const some = part.toLocaleString('en');
    const what = `${count.toLocaleString('en')} flushes of 1 KiB, each with a resize: from create to close`;
    yield { id: 'flushes/total', what, value: total, unit: 's' };
    const [first, last] = [median([...times.subarray(0, part)]), median([...times.subarray(-part)])];
    yield { id: 'flushes/first', what: `  median of the first ${some}`, value: first, unit: 'ms' };
    yield { id: 'flushes/last', what: `  median of the last ${some}`, value: last, unit: 'ms' };
    const growth = statSync(path).size / count - ROW_BYTES;
    yield { id: 'flushes/growth', what: '  growth of the file a flush beyond the data', value: growth, unit: 'bytes' };
  },
};

async function write(path: string, count: number, done: () => Promise<void>): Promise<Written> {
  const times = new Float64Array(count);
  const row = new Float64Array(COLUMNS);
  const step = Math.ceil(count / STEPS);
  const begun = performance.now();
  const file = File.createSync(path, { publish: 'never' });
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [0, COLUMNS], maxShape: [null, COLUMNS] });
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    dataset.resize([i + 1, COLUMNS]);
    dataset.write(row.fill(i), { start: [i, 0], count: [1, COLUMNS] });
    file.flushSync();
    times[i] = performance.now() - start;
    if ((i + 1) % step === 0) await done();
  }
  file.closeSync();
  return { total: secondsSince(begun), times };
}

function check(path: string, count: number): void {
  const file = File.openSync(path);
  const dataset = file.dataset('x', 'float64');
  if (dataset.shape[0] !== count) throw wrongValue(path, [], `a row of ${dataset.shape[0]}`, `one of ${count}`);
  const values = dataset.readSync();
  for (let i = 0; i < values.length; i++) {
    const row = Math.floor(i / COLUMNS);
    if (values[i] !== row) throw wrongValue(path, [row, i % COLUMNS], values[i], row);
  }
  file.closeSync();
}
