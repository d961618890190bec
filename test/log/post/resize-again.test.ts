import { expect, test } from 'vitest';
import { File } from '../../../src/index.ts';
import { memoryStorage } from '../../../src/storage/memory.ts';

test('shrinking and growing again and again costs no more the twentieth time than the first', () => {
  const file = File.createSync(memoryStorage());
  const series = file.createDataset('/series', { dtype: 'int32', shape: [0], maxShape: [null], fill: -1 });
  let most = 0;
  for (let n = 0; n < 200; n++) {
    const size = 4 * (1 + (n % 10));
    series.resize([size]);
    series.write([n, n + 1, n + 2], { start: [size - 3], count: [3] });
    most = Math.max(most, file.pending.requests);
    file.flushSync();
    expect([...series.readSync({ start: [size - 4], count: [4] })]).toEqual([-1, n, n + 1, n + 2]);
  }
  expect(most).toBeLessThanOrEqual(3);
});
