import { join } from 'node:path';
import { File } from 'h5log';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./described-rank.ts', import.meta.url);

// Only the first rank writes what datasets are and which attributes they have; the others make it when somebody asks.
test('every rank sees what datasets are, before and after they are written, as the file has it', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  const ranks = await runRanks<unknown[][]>(3, program, path);
  const [first] = ranks as [unknown[][]];
  const inFile = first.at(-1) as unknown[][];
  for (const states of ranks) for (const state of states) expect(state).toEqual(inFile);
  const [a, b] = inFile as [unknown[], unknown[]];
  expect(a).toEqual([
    '/a',
    'float32',
    [4, 4],
    7,
    [
      ['units', 'K'],
      ['__proto__', 'own'],
      ['_own', '1.5'],
      ['numbers', ['Float32Array', '1', '2', '3']],
      ['bytes', ['Uint8Array', '1', '2', '3']],
      ['long', 'x'.repeat(99)],
      ['empty', ''],
    ],
  ]);
  expect(b[2]).toEqual([9, 4]);
});

test.each([false, true])(
  'dimension scales are finished when ranks close a file, checkCalls: %s',
  async (checkCalls) => {
    const path = join(temporaryDirectory(), 'a.h5');
    const module = new URL('./scales-rank.ts', import.meta.url);
    expect(await runRanks(3, module, { path, checkCalls })).toEqual([2, 2, 2]);
    const file = File.openSync(path);
    expect(file.dataset('x').shape).toEqual([6]);
    expect(file.dataset('x').attributes.get('REFERENCE_LIST')).toEqual([{ dataset: '/data', dimension: 0 }]);
    expect([...(file.dataset('data').readSync() as Int32Array)]).toEqual([0, 0, 1, 1, 2, 2]);
    file.closeSync();
  },
);
