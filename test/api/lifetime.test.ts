import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { commandOf, startNode } from '../child.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();
let count = 0;

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly errors: string;
  readonly values: number[];
  readonly commits: { readonly last: number; readonly published: number | null };
  readonly locked: boolean;
}

/** Runs the program, sends it a signal once it is ready if one is named, and reads what it left. */
async function ending(how: string, signal?: NodeJS.Signals): Promise<End> {
  const path = join(folder, `${count++}.h5`);
  const program = new URL('./ending.ts', import.meta.url);
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  // A limit of 4 MiB on the size of files, in units of 512 bytes, makes larger writes fail as a full disk does.
  const limited = ['-c', 'ulimit -f 8192; exec "$0" "$@"', process.execPath, ...commandOf(program), path, how];
  const child = how === 'full disk' ? spawn('sh', limited, { stdio }) : startNode(program, [path, how], { stdio });
  let errors = '';
  child.stderr?.on('data', (text) => {
    errors += String(text);
  });
  if (signal) {
    child.stdout?.once('data', () => child.kill(signal));
  }
  const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  const locked = existsSync(`${path}.lock`);
  const file = await File.open(path);
  const values = [...((await file.dataset('x').read()) as Int32Array)];
  const commits = { last: file.sequence, published: file.published };
  await file.close();
  return { code, signal: by, errors, values, commits, locked };
}

describe('the end of the process', () => {
  test.each(['the end of the program', 'process.exit', 'exit during a flush'])(
    '%s commits what was posted',
    async (how) => {
      const { code, values, locked } = await ending(how);
      expect({ code, values, locked }).toEqual({ code: 0, values: [1, 2, 3, 4], locked: false });
    },
  );

  test.each(['the end of the program', 'process.exit'])('%s publishes nothing', async (how) => {
    expect((await ending(how)).commits).toEqual({ last: 2, published: 1 });
  });

  test.each(['exception', 'rejection', 'exception during a flush'])(
    'an uncaught %s leaves the last flush, and a line says what was lost',
    async (how) => {
      const { code, values, errors, locked } = await ending(how);
      expect({ code, values, locked }).toEqual({ code: 1, values: [1, 2, -1, -1], locked: false });
      expect(errors.split('\n').filter((line) => line.startsWith('h5log:'))).toEqual([
        expect.stringMatching(/1 requests \(8 bytes\) posted after commit 1 were not committed/),
      ]);
    },
  );

  test('a handled exception leaves files open, and the normal end commits', async () => {
    const { code, values, errors, locked } = await ending('handled exception');
    expect({ code, values, errors, locked }).toEqual({ code: 0, values: [1, 2, 3, 5], errors: '', locked: false });
  });

  test('a full disk at the end is an error, and a line says how much was lost', async () => {
    const { code, values, errors, locked } = await ending('full disk');
    expect({ code, values, locked }).toEqual({ code: 1, values: [1, 2, -1, -1], locked: false });
    expect(errors.split('\n').filter((line) => line.startsWith('h5log:'))).toEqual([
      expect.stringMatching(/2 requests \(8388616 bytes\) posted after commit 1 were lost at exit: .*EFBIG/),
    ]);
  });

  test('a signal commits nothing', async () => {
    const { signal, values } = await ending('signal', 'SIGTERM');
    expect({ signal, values }).toEqual({ signal: 'SIGTERM', values: [1, 2, -1, -1] });
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s commits with commitOnSignal, and then takes effect',
    async (name) => {
      const { signal, values, commits, locked } = await ending('signal with commit', name);
      expect({ signal, values, locked }).toEqual({ signal: name, values: [1, 2, 3, 4], locked: false });
      // Nobody waits for what that would cost.
      expect(commits).toEqual({ last: 2, published: 1 });
    },
  );
});

describe('a live reader', () => {
  test('refreshes, and watches commits as they come', async () => {
    const path = join(folder, 'live.h5');
    const writer = await File.create(path);
    const series = writer.createDataset('x', { dtype: 'int32', shape: [0], maxShape: [null] });
    await writer.flush();
    const reader = await File.open(path);
    const seen = reader.dataset('x', 'int32');
    expect(await reader.refresh()).toBe(false);
    const sequences: number[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const commit of reader.watch({ interval: 5, signal: stop.signal })) {
        sequences.push(commit.sequence);
        if (sequences.length === 3) stop.abort();
      }
    })();
    for (let i = 0; i < 3; i++) {
      series.resize([i + 1]);
      series.write([i], { start: [i], count: [1] });
      await writer.flush();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await watching;
    expect(sequences).toEqual([2, 3, 4]);
    expect(seen.shape).toEqual([3]);
    expect([...(await seen.read())]).toEqual([0, 1, 2]);
    await writer.close();
    await reader.close();
    expect([...(await seen.read())]).toEqual([0, 1, 2]);
  });
});

test('a dataset of a closed file never gives the values of another file that has its name', async () => {
  const path = join(folder, 'replaced.h5');
  const write = async (value: number): Promise<void> => {
    const file = await File.create(path);
    // More than what opening a file reads along.
    file.createDataset('x', { dtype: 'int32', shape: [100_000] }).write(new Int32Array(100_000).fill(value));
    await file.close();
  };
  await write(1);
  const reader = await File.open(path);
  const kept = reader.dataset('x', 'int32');
  await write(2);
  await reader.close();
  await expect(kept.read()).rejects.toMatchObject({ code: 'CLOSED' });
  expect(() => kept.readSync()).toThrow(expect.objectContaining({ code: 'CLOSED' }));
});
