import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { handleOf } from '../../../src/api/handle.ts';

/** How many datasets of each series the log group holds. */
function seriesOf(file: File): Record<string, number> {
  const count: Record<string, number> = {};
  for (const name of handleOf(file).node.links.get('_LOG')?.node?.links.keys() ?? []) {
    const series = name.slice(0, 4);
    count[series] = (count[series] ?? 0) + 1;
  }
  return count;
}

function expectFew(file: File): void {
  for (const [series, count] of Object.entries(seriesOf(file))) expect(count, series).toBeLessThan(50);
}

test('two thousand flushes leave few logs, tables and commit records, and every commit can be opened', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  const d = file.createDataset('d', { dtype: 'int32', shape: [100] });
  for (let i = 1; i <= 2000; i++) {
    d.write([i], { start: [i % 100], count: [1] });
    file.flushSync();
  }
  expectFew(file);
  expect(file.commits()).toHaveLength(2001);
  file.closeSync();
  for (const asOf of [1, 15, 16, 17, 255, 256, 257, 1000, 1999, 2000]) {
    const reader = File.openSync(storage, { asOf });
    const expected = Int32Array.from({ length: 100 }, (_, k) => {
      const last = asOf - ((((asOf - k) % 100) + 100) % 100);
      return Math.max(0, last);
    });
    expect(reader.dataset('d', 'int32').readSync(), `commit ${asOf}`).toEqual(expected);
    expect(reader.commits()).toHaveLength(asOf + 1);
  }
});

test('datasets that only tables asked for still know their names', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  for (let i = 0; i < 500; i++) file.createDataset(`g/d${i}`, { dtype: 'int8', shape: [1] }).write([1]);
  const gone = file.createDataset('gone', { dtype: 'int8', shape: [1] });
  for (let i = 0; i < 15; i++) {
    gone.write([i]);
    file.flushSync();
  }
  file.delete('gone');
  file.closeSync();
  const again = File.openSync(storage, { mode: 'r+' });
  for (let i = 0; i < 40; i++) {
    again.dataset('g/d7').write([i]);
    again.flushSync();
  }
  const error = (() => {
    try {
      again.dataset('g/d3').write([1, 2, 3]);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toMatchObject({ code: 'SHAPE', object: '/g/d3' });
  again.closeSync();
});

test('so do hundreds of sessions of one flush each', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  file.createDataset('d', { dtype: 'int32', shape: [10] });
  file.closeSync();
  for (let i = 1; i <= 300; i++) {
    const session = File.openSync(storage, { mode: 'r+' });
    session.dataset('d', 'int32').write([i], { start: [i % 10], count: [1] });
    session.closeSync();
  }
  const reader = File.openSync(storage);
  expectFew(reader);
  expect(Array.from(reader.dataset('d', 'int32').readSync())).toEqual([
    300, 291, 292, 293, 294, 295, 296, 297, 298, 299,
  ]);
});
