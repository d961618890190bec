import { join } from 'node:path';
import { File } from 'h5log';
import { publish } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { python, withOracle } from '../../oracles.ts';
import { type Ended, runNode } from '../../process.ts';
import { temporaryDirectory } from '../../temporary.ts';

const program = new URL('../../../src/cli/main.ts', import.meta.url);
const folder = temporaryDirectory();
const command = (...args: string[]): Promise<Ended> => runNode(program, ['publish', ...args]);

function make(name: string): string {
  const path = join(folder, name);
  const file = File.createSync(path, { publish: 'never' });
  file.createDataset('whole', { dtype: 'int32', shape: [4] }).write([1, 2, 3, 4]);
  file.createDataset('grows', { dtype: 'float64', shape: [0, 2], maxShape: [null, 2] }).append([1, 2, 3, 4]);
  file.closeSync();
  return path;
}

describe('h5log publish', () => {
  test('prints a line a dataset, and what everybody sees', { timeout: 60_000 }, async () => {
    const path = make('table.h5');
    const { code, stdout, stderr } = await command(path);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\/whole +contiguous +0 B$/m);
    expect(stdout).toMatch(/^\/grows +copied +4\.10 kB$/m);
    expect(stdout).toContain('commit 2 is what everybody sees; 2 datasets published');
    const again = await command(path, '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ sequence: 2, datasets: [], without: [] });
  });

  test('a file without a log is one that everybody sees', async () => {
    const path = join(folder, 'ordinary.h5');
    const file = File.createSync(path, { connector: 'native' });
    file.createDataset('x', { dtype: 'int8', shape: [1] });
    file.closeSync();
    expect(await publish(path)).toMatchObject({ datasets: [], without: [] });
  });
});

withOracle('python', 'a file that was published by a tool', () => {
  test('is read by h5py, and stays a log', async () => {
    const path = make('seen.h5');
    await publish(path);
    const seen = await python(
      'import h5py, json, sys; f = h5py.File(sys.argv[1]); print(json.dumps([f["whole"][:].tolist(), f["grows"][:].tolist()]))',
      [path],
    );
    expect(JSON.parse(seen)).toEqual([
      [1, 2, 3, 4],
      [
        [1, 2],
        [3, 4],
      ],
    ]);
    const file = File.openSync(path);
    expect(file.connector).toBe('log');
    expect(file.commits()).toHaveLength(3);
    file.closeSync();
  });
});
