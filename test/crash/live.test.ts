import { join } from 'node:path';
import { expect, test } from 'vitest';
import { File } from '../../src/index.ts';
import { oracle, run, withOracle } from '../oracles.ts';
import { full } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { compile, Program, startProgram } from './program.ts';
import { commitOf } from './states.ts';

const directory = temporaryDirectory();
const seconds = full ? 10 : 3;

/** Opens, lists and reads in a loop; every state seen must be that of one commit. Says how many, or dies with a traceback. */
const reader = `
import h5py, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
end, opens, states = time.time() + seconds, 0, set()
while time.time() < end:
    with h5py.File(path, 'r') as f:
        n = int(f.attrs['commit'])
        assert f.attrs['label'].startswith(f'commit {n} '), (n, f.attrs['label'])
        assert f'g{n}' in f and f'g{n + 1}' not in f, (n, list(f))
        seen = []
        f.visititems(lambda name, item: seen.append((name, dict(item.attrs))))
        found = dict(seen)
        assert found[f'g{n}']['n'] == n and list(found[f'g{n}/d']['scale']) == [n, n / 2, -n], n
        assert found['deep/a/b/c']['n'] == n, n
        opens += 1
        states.add(n)
print(opens, len(states), flush=True)
`;

interface Writing {
  readonly path: string;
  readonly writer: Program;
  commits(): number;
}

let files = 0;
let program: string | undefined;
/** A writer that has committed at least once; it closes and opens again after every `perOpening` steps. */
async function write(perOpening: number, rate: number): Promise<Writing> {
  program ??= compile('writer.ts');
  const path = join(directory, `live-${files++}.h5`);
  const writer = startProgram(program, [path, 'create', 'process', '1', String(perOpening), String(rate)]);
  let commits = 0;
  writer.onLine = (line) => {
    if (line.startsWith('commit')) commits++;
  };
  await writer.line('commit');
  commits = 0;
  return { path, writer, commits: () => commits };
}

async function stop({ writer }: Writing): Promise<void> {
  expect(writer.errors).toBe('');
  expect(writer.child.exitCode).toBe(null);
  writer.kill();
  await writer.end();
}

withOracle(['python', 'h5dump'], 'readers beside a writer', () => {
  test.each([
    ['with libhdf5 locking as it comes', {}, 1_000_000, 330],
    ['without libhdf5 locking', { HDF5_USE_FILE_LOCKING: 'FALSE' }, 1_000_000, 330],
    ['and a writer that never rests', {}, 1_000_000, 0],
    // Not one that keeps closing and opening: a reader that is stopped between its look at the size, just then cut to fit, and
    // its look at the superblock finds commits made meanwhile. libhdf5 gives that up ("truncated file"); h5log looks again.
  ] as const)('h5py %s: not one failure', { timeout: 120_000 }, async (name, env, perOpening, perSecond) => {
    const writing = await write(perOpening, perSecond);
    const began = performance.now();
    const h5py = new Program(oracle('python') as string, ['-c', reader, writing.path, String(seconds)], env);
    await h5py.end();
    expect(h5py.errors).toBe('');
    const [opens, states] = (h5py.lines[0] ?? '').split(' ').map(Number) as [number, number];
    const rate = Math.round((writing.commits() / (performance.now() - began)) * 1000);
    console.log(
      `h5py ${name}: ${opens} opens, 0 failures, ${states} different states; ${writing.commits()} commits, ${rate} a second`,
    );
    await stop(writing);
    expect(opens).toBeGreaterThan(10 * seconds);
    expect(states).toBeGreaterThan(5 * seconds);
    // 330 a second, or as many as the machine has time for.
    expect(rate).toBeGreaterThan(20);
  });

  test('h5dump: not one failure', { timeout: 120_000 }, async () => {
    const writing = await write(1_000_000, 330);
    const end = performance.now() + (seconds * 1000) / 2;
    let dumps = 0;
    for (; performance.now() < end; dumps++) await run('h5dump', ['-H', writing.path]);
    console.log(`h5dump -H beside a writer: ${dumps} runs, 0 failures; ${writing.commits()} commits`);
    await stop(writing);
    expect(dumps).toBeGreaterThan(5);
  });

  test('h5log, also when the writer keeps closing and opening: not one failure', { timeout: 120_000 }, async () => {
    const writing = await write(5, 0);
    const end = performance.now() + (seconds * 1000) / 2;
    let opens = 0;
    let last = 0;
    for (; performance.now() < end; opens++) {
      const file = opens % 2 === 0 ? File.openSync(writing.path) : await File.open(writing.path);
      const n = commitOf(file);
      expect(n).toBeGreaterThanOrEqual(last);
      last = n;
      file.closeSync();
      await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(`h5log beside a writer: ${opens} opens, 0 failures; ${writing.commits()} commits`);
    await stop(writing);
    expect(opens).toBeGreaterThan(5);
  });
});

/** Opens in a loop and reads the last rows; says when it opened the file, and which row was the last. */
const follower = `
import h5py, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
end = time.time() + seconds
while time.time() < end:
    opened = time.time() * 1000
    with h5py.File(path, 'r') as f:
        rows, packed = f['rows'], f['packed']
        n = rows.shape[0]
        assert packed.shape[0] == n, (n, packed.shape)
        first = max(0, n - 100)
        for i, row in enumerate(rows[first:n].tolist(), first):
            assert row == [i, 2 * i, -i, i ** 0.5], (n, i, row)
        assert packed[first:n].tolist() == list(range(first, n)), (n, packed[first:n])
    print(n - 1, opened, flush=True)
`;

/** Milliseconds that a timer and a commit may be late by on a busy machine. */
const LATE = 250;

withOracle('python', 'h5py beside a log that publishes', () => {
  const kinds = [
    { publish: { interval: 200 }, rate: 100, promise: 200 + LATE },
    // Who has been told of a commit finds it. Its time is a whole millisecond.
    { publish: 'flush', rate: 20, promise: 1 },
  ] as const;
  test.each(kinds)('$rate flushes a second, publish $publish', { timeout: 120_000 }, async (kind) => {
    const { publish, rate, promise } = kind;
    const path = join(directory, `published-${rate}.h5`);
    const writer = startProgram(compile('publisher.ts'), [path, JSON.stringify(publish), String(rate)]);
    // A first state, seen by others, before h5py opens the file.
    await writer.line('40 ');
    const h5py = new Program(oracle('python') as string, ['-c', follower, path, String(full ? 20 : seconds)]);
    await h5py.end();
    expect(h5py.errors).toBe('');
    expect(writer.errors).toBe('');
    expect(writer.child.exitCode).toBe(null);
    writer.kill();
    await writer.end();

    const committed = writer.lines.map((line) => Number(line.split(' ')[1]));
    let [k, oldest] = [0, 0];
    for (const line of h5py.lines) {
      const [last, opened] = line.split(' ').map(Number) as [number, number];
      while (k < committed.length && (committed[k] as number) <= opened - promise) k++;
      // Rows before k were committed early enough to be promised.
      expect(last, `opened at ${opened}`).toBeGreaterThanOrEqual(k - 1);
      const missed = committed[last + 1];
      if (missed !== undefined) oldest = Math.max(oldest, opened - missed);
    }
    const states = new Set(h5py.lines.map((line) => line.split(' ')[0])).size;
    console.log(
      `h5py beside publish ${JSON.stringify(publish)}, ${rate} flushes a second: ${h5py.lines.length} opens, 0 failures, ` +
        `${states} states; ${committed.length} commits; what it did not see yet was at most ${Math.round(oldest)} ms old`,
    );
    expect(h5py.lines.length).toBeGreaterThan(10 * seconds);
    expect(states).toBeGreaterThan(2 * seconds);
  });
});
