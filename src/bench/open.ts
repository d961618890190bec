import { join } from 'node:path';
import { File } from '../api/file.ts';
import { logOf } from '../tools/inside.ts';
import { shuffled } from './random.ts';
import { readRow, writeRows } from './small-rows.ts';
import { Best, scaledSize, secondsSince, steps, type Workload, wrongValue } from './workload.ts';

const ROWS = 4_000_000;

/** Opens a file with a large metadata table: how long until the first read? */
export const open: Workload = {
  name: 'open',
  summary: 'a file of 4,000,000 shuffled blocks of 1x3 float64: opened, listed, one block read',
  async *run({ folder, scale, repeat, onProgress }) {
    const path = join(folder, 'open.h5');
    const done = steps(repeat + 1, onProgress);
    const order = shuffled(scaledSize(ROWS, scale));
    writeRows(path, order);
    await done();
    const best = new Best();
    for (let round = 0; round < repeat; round++) {
      best.add('list', listDatasets(path));
      best.add('first', readRow(path, order[round % order.length] as number));
      await done();
    }
    const many = `${order.length.toLocaleString('en')} shuffled blocks of 1x3 float64`;
    yield { id: 'open/list', what: `${many}: opened, datasets listed`, value: best.of('list'), unit: 's' };
    yield { id: 'open/first', what: '  opened, one block read', value: best.of('first'), unit: 's' };
    yield { id: 'open/table', what: '  size of the metadata tables', value: tableBytes(path), unit: 'bytes' };
  },
};

function listDatasets(path: string): number {
  const begun = performance.now();
  const file = File.openSync(path);
  const names = [...file.keys()].filter((name) => file.get(name)?.kind === 'dataset');
  const seconds = secondsSince(begun);
  file.closeSync();
  if (names.join() !== 'x') throw wrongValue(path, [], `datasets ${names.join()}`, 'x');
  return seconds;
}

function tableBytes(path: string): number {
  const file = File.openSync(path);
  const bytes = logOf(file)?.tables.committed.items.reduce((sum, { size }) => sum + size, 0) ?? 0;
  file.closeSync();
  return bytes;
}
