import { join } from 'node:path';
import { File, type FilterCodec, registerFilter, T } from 'h5log';
import { compact, datasetLines, diff, replay, verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

const ID = 40_002;
const folder = temporaryDirectory();
const path = join(folder, 'flipped.h5');
const flip = (bytes: Uint8Array): Uint8Array => bytes.map((byte) => byte ^ 0x5a);
const later = async (bytes: Uint8Array): Promise<Uint8Array> => {
  await new Promise((resolve) => setTimeout(resolve));
  return flip(bytes);
};

const numbers = Int32Array.from({ length: 120 }, (_, i) => i * 7);
const words = Array.from({ length: 10 }, (_, i) => 'word '.repeat(i));
const filters = ['shuffle', { id: ID }, 'fletcher32'] as const;

/** An ordinary file, written while the codec did not make anybody wait. */
function make(): void {
  registerFilter(ID, { name: 'flip', decode: flip, encode: flip });
  const file = File.createSync(path, { connector: 'native' });
  file.createDataset('n', { dtype: 'int32', shape: [12, 10], chunks: [5, 4], filters }).write(numbers);
  file.createDataset('s', { dtype: T.string(), shape: [10], chunks: [4], filters }).write(words);
  file.closeSync();
}

const asynchronous: FilterCodec = { name: 'flip', decode: later, encode: later };

test.each([
  ['a codec', () => registerFilter(ID, asynchronous)],
  ['a codec that has to be loaded', () => registerFilter(ID, async () => asynchronous)],
])('%s that returns promises: asynchronous reads wait for it, blocking ones say so', async (_what, register) => {
  make();
  register();
  const file = await File.open(path);
  const dataset = file.dataset('n', 'int32');
  expect(() => dataset.readSync()).toThrow(expect.objectContaining({ code: 'UNSUPPORTED', object: '/n' }));
  expect(await dataset.read()).toEqual(numbers);
  expect(await dataset.read({ start: [4, 3], count: [2, 2] })).toEqual(Int32Array.of(301, 308, 371, 378));
  expect(await dataset.readMany(Float64Array.of(0, 0, 11, 8), [1, 2])).toEqual(Int32Array.of(0, 7, 826, 833));
  const together = await Promise.all([0, 3, 6, 9].map((row) => dataset.read({ start: [row, 0], count: [3, 10] })));
  expect(together).toEqual([0, 3, 6, 9].map((row) => numbers.slice(row * 10, row * 10 + 30)));
  expect(await file.dataset('s').read()).toEqual(words);
  await file.close();
});

test('tools wait for a codec that returns promises', async () => {
  make();
  registerFilter(ID, asynchronous);
  expect(await verify(path)).toMatchObject({ sound: true, chunkSums: 12 });
  let lines = '';
  for await (const line of datasetLines(path, { datasets: ['/n'] })) lines += line;
  expect(lines).toContain('833');
  for (const [tool, name] of [
    [replay, 'replayed.h5'],
    [compact, 'compact.h5'],
  ] as const) {
    const output = join(folder, name);
    await tool(path, output);
    expect(await diff(path, output)).toMatchObject({ same: true });
  }
  // Strings were written anew, through the codec.
  registerFilter(ID, { name: 'flip', decode: flip, encode: flip });
  const file = File.openSync(join(folder, 'replayed.h5'));
  expect(file.dataset('s').readSync()).toEqual(words);
  expect(file.dataset('s').filters).toEqual(['shuffle', { id: ID, parameters: [] }, 'fletcher32']);
  file.closeSync();
});
