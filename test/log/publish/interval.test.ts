import { setTimeout as wait } from 'node:timers/promises';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';

test('an interval commits nothing that was not flushed', async () => {
  const storage = memoryStorage();
  const file = await File.create(storage, { publish: { interval: 50 } });
  const dataset = file.createDataset('a', { dtype: 'float64', shape: [4] });
  dataset.write(Float64Array.of(1, 1, 1, 1));
  await file.flush();
  dataset.write(Float64Array.of(2, 2, 2, 2));
  await file.flush();
  dataset.write(Float64Array.of(3, 3), { start: [0], count: [2] });
  await wait(200);
  expect(file.pending.requests).toBe(1);
  expect(file.sequence).toBe(2);
  // The next flush is published: its time has come long ago.
  await file.flush();
  expect(file.published).toBe(3);
  dataset.write(Float64Array.of(4), { start: [0], count: [1] });
  await file.flush();
  for (let i = 0; file.published !== 4 && i < 100; i++) await wait(20);
  expect(file.published).toBe(file.sequence);
  expect(file.pending.requests).toBe(0);
  await file.close();
});

test('a long interval is long', async () => {
  const file = await File.create(memoryStorage(), { publish: { interval: 1e10 } });
  file.createDataset('a', { dtype: 'float64', shape: [1] }).write([1]);
  await file.flush();
  const { published } = file;
  file.dataset('a').write([2]);
  await file.flush();
  await wait(100);
  expect(file.published).toBe(published);
  await file.close();
});
