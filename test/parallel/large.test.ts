import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { full } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./large-rank.ts', import.meta.url);

describe.each([0, 2])('with %i subfiles', (subfiles) => {
  test('tables of which each rank writes its section, and large data, read back right', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const wrong = await runRanks<string[]>(3, program, { work: 'tables', path, subfiles });
    expect(wrong.flat()).toEqual([]);
    // The states in between are there as well.
    for (const sequence of [1, 3, 5]) {
      const past = File.openSync(path, { asOf: sequence });
      const row = past.dataset('/t').readSync({ start: [2, 0], count: [1, 2] }) as Int32Array;
      const k = (sequence + 1) / 2;
      expect({ sequence, last: row[k % 2] }).toEqual({ sequence, last: k * 10 + 2 });
      past.closeSync();
    }
  });

  // Slow, and the same with and without subfiles as far as one can see: both only where everything is run.
  test.runIf(full || subfiles > 0)('files can be opened and closed without end: nothing is kept', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const ranks = await runRanks<{ files: number; communicators: number }>(3, program, {
      work: 'often',
      path,
      subfiles,
    });
    // All threads are one process, and each of them may be in the middle of looking.
    for (const { files, communicators } of ranks) {
      expect(files).toBeLessThan(10);
      expect(communicators).toBe(0);
    }
  });
});
