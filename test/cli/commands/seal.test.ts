import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import type { SealResult } from '../../../src/tools.ts';
import { runMpi, withEachMpi } from '../../comm/mpi/job.ts';
import { type Ended, runNode } from '../../process.ts';
import { temporaryDirectory } from '../../temporary.ts';

const program = new URL('../../../src/cli/main.ts', import.meta.url);
const slow = { timeout: 60_000 };
const folder = temporaryDirectory();
const seal = (...args: string[]): Promise<Ended> => runNode(program, ['seal', ...args]);

async function make(name: string): Promise<string> {
  const path = join(folder, name);
  const file = await File.create(path, { publish: 'never' });
  const tiles = file.createDataset('field/tiles', { dtype: 'float64', shape: [30, 20] });
  for (const start of [0, 10, 20]) {
    tiles.write(new Float64Array(200).fill(start), { start: [start, 0], count: [10, 20] });
    await file.flush();
  }
  file.createDataset('edges', { dtype: 'int32', shape: [25], chunks: [10] });
  for (const start of [0, 10, 20])
    file
      .dataset('edges')
      .write(new Int32Array(Math.min(10, 25 - start)), { start: [start], count: [Math.min(10, 25 - start)] });
  file.dataset('edges').write([1, 2], { start: [9], count: [2] });
  await file.close();
  return path;
}

describe('h5log seal', () => {
  test('prints a line a dataset, and what it came to', slow, async () => {
    const path = await make('table.h5');
    const { code, stdout, stderr } = await seal(path);
    expect(stderr).toBe('');
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      'dataset       way      pieces  moved',
      '/edges        virtual       3    0 B',
      '/field/tiles  chunked       3    0 B',
      expect.stringMatching(/table\.h5: 2 datasets sealed, 0 B moved, [\d.]+ s$/),
      '',
    ]);
    expect(code).toBe(0);
    const again = await seal(path);
    expect(again).toMatchObject({ code: 2, stdout: '' });
    expect(again.stderr).toMatch(/^h5log: UNSUPPORTED: .*table\.h5 has no log: it is ordinary HDF5 already.*\n$/);
  });

  test('--to and --json', slow, async () => {
    const path = await make('source.h5');
    const to = join(folder, 'sealed.h5');
    const { code, stdout, stderr } = await seal('--json', path, '--to', to);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const result = JSON.parse(stdout) as SealResult & { seconds: number };
    expect(result).toMatchObject({ path: to, moved: 0 });
    expect(result.datasets).toContainEqual({ path: '/field/tiles', way: 'chunked', moved: 0, pieces: 3 });
    expect(result.seconds).toBeGreaterThan(0);
    const connectors = await Promise.all(
      [path, to].map(async (name) => {
        await using file = await File.open(name);
        return file.connector;
      }),
    );
    expect(connectors).toEqual(['log', 'native']);
  });

  test('--to refuses a file that exists without --force', slow, async () => {
    const path = await make('again.h5');
    const to = join(folder, 'exists.h5');
    writeFileSync(to, 'precious');
    const refused = await seal(path, '--to', to);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/^h5log: EXISTS: .*exists\.h5 exists already.*\n$/);
    expect(readFileSync(to, 'utf8')).toBe('precious');
    expect(await seal(path, '-f', '--to', to)).toMatchObject({ code: 0, stderr: '' });
  });

  test.each([
    [[], /^h5log: OPTION: .*FILE.*\n$/],
    [['missing.h5'], /^h5log: NOT_FOUND: .*missing\.h5.*\n$/],
  ])('%j cannot be done', slow, async (args, line) => {
    const { code, stderr } = await seal(...args);
    expect(stderr).toMatch(line);
    expect(code).toBe(2);
  });
});

withEachMpi('h5log seal under a launcher', (mpi) => {
  test('is for one process', slow, async () => {
    const path = await make(`mpi-${mpi}.h5`);
    const { code, stderr } = await runMpi({ mpi, ranks: 2, program, args: ['seal', path] });
    expect(stderr).toContain('seal runs in one process');
    expect(code).toBe(2);
  });
});
