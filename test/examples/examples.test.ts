import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { runNode } from '../process.ts';
import { temporaryDirectory } from '../temporary.ts';

const example = (name: string): URL => new URL(`../../examples/${name}.ts`, import.meta.url);

/** What each prints, where that is the same every time. */
const expected: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  'write-and-read': [
    'three days of weather: at 5 it was NaN, at 6 it was 12',
    'after the first day: 1 x 24',
    /^commit 3: 1 request, \d+ bytes$/m,
  ],
  threads: [
    '4 threads wrote rows with the sums 495000, 496000, 497000, 498000',
    'read back 4000 elements from 2 commits',
  ],
  subfiles: ['beside the file: subfiles.h5.0, subfiles.h5.1', '0 0 0 1 1 1 1 2 2 2 2 3 3 3 3 3'],
  'live-reader': [/^commit 6: \d+ new samples, the last is 5$/m],
  minibatches: [/^1984 samples in minibatches of 64, \d+ a second$/m],
  netcdf: ['tas(time, lat, lon) is 5 x 3 x 4', 'on the last day it is 284.1 K at the second point'],
  blob: ['image [480, 640]: 1, 2, 3 ...'],
};

describe('examples', () => {
  test('are all run here', () => {
    const names = readdirSync(fileURLToPath(new URL('../../examples', import.meta.url)));
    const tested = [...Object.keys(expected), 'threads-rank', 'mpi', 'sensors'];
    expect(names.filter((name) => name.endsWith('.ts')).sort()).toEqual(tested.map((name) => `${name}.ts`).sort());
  });

  test.each(Object.entries(expected))('%s', { timeout: 120_000 }, async (name, parts) => {
    const { code, stdout, stderr } = await runNode(example(name), [join(temporaryDirectory(), `${name}.h5`)]);
    expect(stderr).toBe('');
    for (const part of parts) expect(stdout).toMatch(part);
    expect(code).toBe(0);
  });

  test('sensors: what was reported is there after a kill, and the next run goes on', { timeout: 120_000 }, async () => {
    const path = join(temporaryDirectory(), 'sensors.h5');
    const reported = (text: string): number =>
      [...text.matchAll(/^(\d+) samples, \d+ bytes on disk$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
    const killed = await runNode(example('sensors'), [path, '60', '30'], {
      seen: (text, kill) => {
        if ((text.match(/on disk/g) ?? []).length >= 5) kill();
      },
    });
    expect(killed.code).toBe(null);
    expect(killed.stdout).toContain('0 samples so far');
    const again = await runNode(example('sensors'), [path, '0.1', '30']);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    const [, found] = /^(\d+) samples so far$/m.exec(again.stdout) ?? [];
    expect(Number(found)).toBeGreaterThanOrEqual(reported(killed.stdout));
    process.stdout.write(`sensors: ${reported(killed.stdout)} samples reported before the kill, ${found} found\n`);
  });
});

withEachMpi('the example for MPI', (mpi) => {
  test('two ranks', { timeout: 120_000 }, async () => {
    const args = [join(temporaryDirectory(), 'mpi.h5')];
    const { code, stdout } = await runMpi({ mpi, ranks: 2, program: example('mpi'), args, timeout: 90_000 });
    expect(stdout).toContain('2 of 2 ranks read 200, 201');
    expect(stdout).toMatch(/^commit 3: \d+ bytes of 2 ranks\r?$/m);
    expect(code).toBe(0);
  });
});
