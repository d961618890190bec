import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { runMpi, withEachMpi } from '../../comm/mpi/job.ts';
import { runSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();
const input = join(folder, 'log.h5');
const alone = join(folder, 'alone.h5');
const program = new URL('./mpi-rank.ts', import.meta.url);

/** Datasets of every layout, each with many pieces at the memory that is used here. */
function make(): void {
  const file = File.createSync(input);
  const add = (name: string, options: object): void => {
    const d = file.createDataset(name, { dtype: 'float64', shape: [600, 400], ...options });
    d.write(Float64Array.from({ length: 240_000 }, (_, i) => Math.floor(i / 7)));
    for (let i = 0; i < 50; i++)
      d.write(new Float64Array(900).fill(-i), { start: [(i * 53) % 570, (i * 29) % 370], count: [30, 30] });
  };
  add('contiguous', {});
  add('g/chunked', { chunks: [64, 64] });
  add('g/packed', { chunks: [50, 50], filters: ['shuffle', { deflate: 3 }] });
  add('grows', { maxShape: [null, 400] });
  file.createDataset('scalar', { dtype: 'int32', shape: [] }).write([5]);
  file.attributes.set('title', 'ranks');
  file.closeSync();
}

withOracle('h5diff', 'replay on several ranks', () => {
  make();
  const memory = 2 ** 20;
  const same = (path: string): void => {
    expect(runSync('h5diff', [alone, path])).toBe('');
    // Only where filtered chunks were put may differ.
    expect(readFileSync(path).length).toBe(readFileSync(alone).length);
  };

  test('threads give what one gives, and leave nothing else behind', { timeout: 120_000 }, async () => {
    const one = await replay(input, alone, { memory });
    for (const threads of [2, 3]) {
      const path = join(folder, `threads-${threads}.h5`);
      const seen: number[] = [];
      const result = await replay(input, path, { memory, threads, progress: ({ bytes }) => seen.push(bytes) });
      expect({ ...result, seconds: 0 }).toEqual({ ...one, seconds: 0 });
      same(path);
    }
    await expect(replay(input, alone, { threads: 2 })).rejects.toMatchObject({ code: 'EXISTS' });
    await expect(replay(join(folder, 'none.h5'), join(folder, 'x.h5'), { threads: 2 })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect(readdirSync(folder).filter((name) => /new|lock|^x/.test(name))).toEqual([]);
  });

  withEachMpi('replay on MPI', (mpi) => {
    test(`four ranks of ${mpi} give what one gives`, { timeout: 120_000 }, async () => {
      const path = join(folder, `${mpi}.h5`);
      const { code, stderr } = await runMpi({ mpi, ranks: 4, program, args: [input, path, String(memory)] });
      expect(stderr).toBe('');
      expect(code).toBe(0);
      same(path);
    });
  });
});
