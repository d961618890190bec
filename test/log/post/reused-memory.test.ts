import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';

// The memory of posts is used again, by the same file and by others: nobody may see what somebody else put there.

const ROWS = 3000;

test('files that take turns do not see the posts of one another', async () => {
  const files = [1, 2, 3].map((number) => {
    const file = File.createSync(memoryStorage(), { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: [ROWS, number] });
    return { file, dataset, model: new Float64Array(ROWS * number), number };
  });
  const all = { start: [0, 0] };
  for (let turn = 1; turn <= 6; turn++) {
    const begun: Promise<unknown>[] = [];
    for (const { file, dataset, model, number } of files) {
      // Every other row, from the last to the first: no two posts become one, and lists grow several times.
      for (let row = ROWS - (turn % 2) - 1; row >= 0; row -= 2) {
        const values = new Float64Array(number).fill(1000 * turn + row + number / 10);
        dataset.write(values, { start: [row, 0], count: [1, number] });
        model.set(values, row * number);
      }
      const expected = model.slice();
      // A read of what is pending ends when the posts of the next file are in the same memory.
      const pending = dataset.read({ ...all, count: [ROWS, number] });
      const flushed = turn < 4 ? file.flush() : Promise.resolve(file.flushSync());
      begun.push(
        flushed,
        pending.then((values) => expect(values).toEqual(expected)),
      );
      if (turn >= 4) expect(dataset.readSync()).toEqual(expected);
    }
    await Promise.all(begun);
  }
  for (const { file, dataset, model } of files) {
    expect(await dataset.read()).toEqual(model);
    file.closeSync();
  }
});

test('the memory of a closed file is used by the next', () => {
  for (let turn = 1; turn <= 3; turn++) {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'int32', shape: [2 * ROWS] });
    // The first file is the largest: its lists have more in them than the next ones write.
    for (let row = 2 * (ROWS - turn * 700); row >= 0; row -= 2)
      dataset.write(Int32Array.of(turn * row + 1), { start: [row], count: [1] });
    file.closeSync();
    const expected = new Int32Array(2 * ROWS);
    for (let row = 2 * (ROWS - turn * 700); row >= 0; row -= 2) expected[row] = turn * row + 1;
    const reader = File.openSync(storage);
    expect(reader.dataset('x').readSync()).toEqual(expected);
    reader.closeSync();
  }
});
