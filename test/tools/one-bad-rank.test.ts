import { join } from 'node:path';
import { File } from 'h5log';
import { runThreads } from 'h5log/threads';
import { replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import type { Call } from './one-bad-rank.ts';

const program = new URL('./one-bad-rank.ts', import.meta.url);

function make(path: string): void {
  const file = File.createSync(path);
  file.createDataset('t', { dtype: 'float64', shape: [400, 400] }).write(new Float64Array(160_000).fill(1));
  file.closeSync();
}

test.each([
  [2, 1],
  [3, 0],
])(
  'of %i ranks number %i calls a tool wrongly: all ranks get its error, and nothing is left',
  {
    timeout: 60_000,
  },
  async (ranks, odd) => {
    const folder = temporaryDirectory();
    make(join(folder, 'in.h5'));
    const results = await runThreads<Call[]>(ranks, program, { folder, odd }, { timeout: 20_000 });
    for (const calls of results) expect(calls).toEqual(results[0]);
    const told = Object.fromEntries((results[0] ?? []).map(({ name, outcome }) => [name, outcome]));
    const option = (text: string) => ({
      code: 'OPTION',
      rank: odd,
      message: expect.stringMatching(new RegExp(`^rank ${odd}: .*${text}`)) as string,
      file: undefined,
    });
    const mismatch = (text: string) => ({
      code: 'MISMATCH',
      message: expect.stringMatching(text) as string,
      rank: odd === 0 ? 1 : odd,
      file: undefined,
    });
    const foreign = (text: string) => ({
      code: 'foreign Error',
      message: `rank ${odd}: ${text}`,
      rank: undefined,
      file: undefined,
    });
    expect(told).toEqual({
      'replay memory': option('memory must be'),
      'replay force': option('force must be'),
      'replay another force': mismatch('replay: force is'),
      'replay threads': option('threads must be'),
      'replay progress': option('progress must be'),
      'replay a progress that throws': foreign('enough'),
      'replay an aborted signal': foreign('never mind'),
      'replay another memory': mismatch('replay: memory is'),
      'replay its own input': mismatch('replay: input is'),
      'replay its own output': mismatch('replay: output is'),
      'replay the same file': option('is the input itself'),
      'demo size': option('size is a whole number'),
      'demo too much': option('too many'),
      'demo subfiles': mismatch('subfiles is'),
      'demo another size': mismatch('demo: size is'),
      'e3sm repeat': option('repeat is a whole number'),
      'e3sm map': {
        code: 'NOT_FOUND',
        rank: odd,
        message: expect.stringMatching(/none\.h5/),
        file: expect.any(String),
      },
      'replay right': { code: 'fine', message: '' },
    });
    for (const { name, left } of results[0]?.slice(0, -1) ?? [])
      expect({ name, left }).toEqual({ name, left: ['in.h5'] });
    expect(results[0]?.at(-1)?.left).toEqual(['in.h5', 'out.h5']);
  },
);

test('threads of a replay are no ranks of the program: its errors name none', { timeout: 60_000 }, async () => {
  const folder = temporaryDirectory();
  const [input, output] = [join(folder, 'in.h5'), join(folder, 'out.h5')];
  make(input);
  make(output);
  const error = await replay(input, output, { threads: 2 }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'EXISTS', file: output, message: `${output} exists already` });
  expect(error).not.toHaveProperty('rank');
  const none = join(folder, 'none.h5');
  const missing = await replay(none, join(folder, 'x.h5'), { threads: 2 }).catch((thrown: unknown) => thrown);
  expect(missing).toMatchObject({ code: 'NOT_FOUND', message: expect.not.stringContaining('rank') });
});
