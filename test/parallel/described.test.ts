import { join } from 'node:path';
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
