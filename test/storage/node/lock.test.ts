import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acquireLock, type Holder, lockPathFor, thisProcess } from '../../../src/storage/node/lock.ts';
import { count } from '../../counts.ts';
import { random, repeats, seed } from '../../seed.ts';
import { canDropRights, errorOf, scratchDirectory, withoutRights } from '../scratch.ts';

const directory = fs.realpathSync(scratchDirectory());
fs.chmodSync(directory, 0o755);
const program = join(directory, 'lock-child.mjs');
const children = new Set<ChildProcess>();
let cases = 0;
const fresh = (): string => {
  const own = join(directory, `case-${cases++}`);
  fs.mkdirSync(own);
  return join(own, 'run.h5');
};

beforeAll(() => {
  const entry = new URL('lock-child.ts', import.meta.url).pathname;
  buildSync({
    entryPoints: [entry],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
});
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

function start(task: 'race' | 'storm' | 'hold', path: string): ChildProcess {
  const child = fork(program, [task, path], { execArgv: [] });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** A process that was and is no more. */
function gone(token: string): Holder {
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  return { ...thisProcess(), pid, started: '1', token };
}
const put = (path: string, holder: unknown): void => fs.writeFileSync(`${path}.lock`, JSON.stringify(holder));
const lockOf = (path: string): Holder => JSON.parse(fs.readFileSync(`${path}.lock`, 'utf8')) as Holder;
const beside = (path: string): string[] => fs.readdirSync(join(path, '..'));

describe('a lock', () => {
  test('is a file that says who holds it, alone, and is gone after release', () => {
    const path = fresh();
    const lock = acquireLock(path);
    expect(lock.path).toBe(`${path}.lock`);
    expect(beside(path)).toEqual(['run.h5.lock']);
    const expected = {
      host: hostname(),
      pid: process.pid,
      token: lock.token,
      boot: expect.any(String),
      started: expect.stringMatching(/^\d+$/),
    };
    expect(lockOf(path)).toMatchObject(process.platform === 'linux' ? expected : { token: lock.token });
    lock.release();
    lock.release();
    expect(beside(path)).toEqual([]);
  });

  test('excludes a second writer in the same process, naming path, host and pid', async () => {
    const path = fresh();
    const lock = acquireLock(path);
    const error = await errorOf(() => acquireLock(path));
    expect(error).toMatchObject({ code: 'LOCKED', file: path });
    for (const word of [path, hostname(), String(process.pid)]) expect(String(error)).toContain(word);
    expect(beside(path)).toEqual(['run.h5.lock']);
    lock.release();
    acquireLock(path).release();
  });

  test('that another has got meanwhile is not removed by release', () => {
    const path = fresh();
    const lock = acquireLock(path);
    const other = { ...thisProcess(), token: 'other' };
    put(path, other);
    lock.release();
    expect(lockOf(path)).toEqual(other);
  });

  test('is the same for every spelling of a file', async () => {
    const path = fresh();
    const own = join(path, '..');
    fs.symlinkSync(own, `${own}-alias`);
    fs.symlinkSync('run.h5', join(own, 'link.h5'));
    const spellings = [
      path,
      `${own}/./run.h5`,
      join(`${own}-alias`, 'run.h5'),
      join(own, 'link.h5'),
      pathToFileURL(path),
    ];
    for (const exists of [false, true]) {
      if (exists) fs.writeFileSync(path, '');
      for (const one of spellings) {
        expect(lockPathFor(one)).toBe(`${path}.lock`);
        const lock = acquireLock(one);
        for (const other of spellings)
          expect(await errorOf(() => acquireLock(other))).toMatchObject({ code: 'LOCKED' });
        lock.release();
      }
    }
  });

  test('needs a directory, one that can be written', async () => {
    expect(await errorOf(() => acquireLock(join(directory, 'none', 'run.h5')))).toMatchObject({ code: 'NOT_FOUND' });
  });

  test.skipIf(!canDropRights)('in a directory that is read only gives READ_ONLY', async () => {
    const path = fresh();
    fs.chmodSync(join(path, '..'), 0o555);
    expect(await errorOf(() => withoutRights(() => acquireLock(path)))).toMatchObject({
      code: 'READ_ONLY',
      file: path,
    });
    fs.chmodSync(join(path, '..'), 0o755);
  });
});

describe('the lock of a process', () => {
  test('that lives is kept; that was killed is taken over, and nothing is left lying about', async () => {
    const path = fresh();
    const child = start('hold', path);
    await once(child, 'message');
    const error = await errorOf(() => acquireLock(path));
    expect(error).toMatchObject({ code: 'LOCKED', message: expect.stringContaining(String(child.pid)) });
    await end(child);
    const lock = acquireLock(path);
    expect(lockOf(path).token).toBe(lock.token);
    expect(beside(path)).toEqual(['run.h5.lock']);
    lock.release();
  });

  test('is taken over when its pid now belongs to a younger process', () => {
    const path = fresh();
    put(path, { ...thisProcess(), started: '1', token: 'old' });
    acquireLock(path).release();
  });

  test('written without a pid namespace or a start time is judged by what it says', async () => {
    const path = fresh();
    const { pids: _, ...plain } = gone('plain');
    put(path, plain);
    acquireLock(path).release();
    put(path, { ...plain, started: '' });
    acquireLock(path).release();
    put(path, { ...plain, pid: process.pid, started: '' });
    expect(await errorOf(() => acquireLock(path))).toMatchObject({ code: 'LOCKED' });
  });

  test.each([
    ['another host', { host: 'elsewhere' }],
    ['another start of the machine', { boot: 'before' }],
    ['another container', { pids: 'pid:[1]' }],
  ])('on %s stays, and the message names the file to remove', async (_, differs) => {
    const path = fresh();
    const holder = { ...gone('far'), ...differs };
    put(path, holder);
    const error = await errorOf(() => acquireLock(path));
    expect(error).toMatchObject({ code: 'LOCKED', message: expect.stringContaining(`remove ${path}.lock`) });
    expect(lockOf(path)).toEqual(holder);
    expect(beside(path)).toEqual(['run.h5.lock']);
  });

  test.each(['', 'garbage', '{}', '[]', 'null', '{"host":"a","boot":"","pid":1,"started":"","token":"../../x"}'])(
    'that cannot be told from %j stays',
    async (text) => {
      const path = fresh();
      fs.writeFileSync(`${path}.lock`, text);
      const message = expect.stringContaining(`${path}.lock`);
      expect(await errorOf(() => acquireLock(path))).toMatchObject({ code: 'LOCKED', message });
      expect(fs.readFileSync(`${path}.lock`, 'utf8')).toBe(text);
    },
  );

  test('that is a directory or leads nowhere stays', async () => {
    const path = fresh();
    fs.mkdirSync(`${path}.lock`);
    expect(await errorOf(() => acquireLock(path))).toMatchObject({ code: 'LOCKED' });
    fs.rmdirSync(`${path}.lock`);
    fs.symlinkSync('nowhere', `${path}.lock`);
    expect(await errorOf(() => acquireLock(path))).toMatchObject({ code: 'LOCKED' });
  });

  test('killed while taking over is taken over in turn, also twice', () => {
    const path = fresh();
    put(path, gone('aaaaaaaaaaaaaaaa'));
    fs.writeFileSync(`${path}.lock.aaaaaaaaaaaaaaaa`, JSON.stringify(gone('bbbbbbbbbbbbbbbb')));
    fs.writeFileSync(`${path}.lock.bbbbbbbbbbbbbbbb`, JSON.stringify(gone('cccccccccccccccc')));
    fs.writeFileSync(`${path}.lock.cccccccccccccccc.new`, JSON.stringify(gone('cccccccccccccccc')));
    fs.writeFileSync(`${path}.lock.dddddddddddddddd`, JSON.stringify(gone('eeeeeeeeeeeeeeee')));
    const lock = acquireLock(path);
    expect(lockOf(path).token).toBe(lock.token);
    expect(beside(path)).toEqual(['run.h5.lock']);
  });

  test('that is alive and taking over is waited for, then LOCKED', async () => {
    const path = fresh();
    put(path, gone('aaaaaaaaaaaaaaaa'));
    fs.writeFileSync(`${path}.lock.aaaaaaaaaaaaaaaa`, JSON.stringify({ ...thisProcess(), token: 'bbbbbbbbbbbbbbbb' }));
    const message = expect.stringContaining(`taken over by process ${process.pid}`);
    expect(await errorOf(() => acquireLock(path))).toMatchObject({ code: 'LOCKED', message });
  });
});

describe('eight processes', () => {
  test('racing for a stale lock: exactly one gets it, in every round', async () => {
    const path = fresh();
    const racers = Array.from({ length: 8 }, () => start('race', path));
    const ask = (at: number): Promise<unknown[]> =>
      Promise.all(
        racers.map(async (racer) => {
          const answer = once(racer, 'message');
          racer.send(at);
          return (await answer)[0];
        }),
      );
    await ask(0);
    const stale = gone('x');
    const winners = new Set<number>();
    for (let round = 0; round < repeats(1500); round++) {
      put(path, { ...stale, token: `${round}`.padStart(16, '0') });
      const won = await ask(Date.now() + 3);
      expect(won.filter(Boolean)).toHaveLength(1);
      winners.add(won.indexOf(true));
      expect(beside(path)).toEqual(['run.h5.lock']);
      await ask(0);
      expect(beside(path)).toEqual([]);
    }
    expect(winners.size).toBeGreaterThan(1);
    await Promise.all(racers.map(end));
  });

  test('taking and giving back while being killed at random: never two inside', async () => {
    const path = fresh();
    fs.writeFileSync(`${path}.inside`, '');
    const violations: string[] = [];
    let entered = 0;
    const launch = (): ChildProcess =>
      start('storm', path).on('message', (news: number | string) => {
        if (typeof news === 'string') violations.push(news);
        else entered += news;
      });
    const crowd = Array.from({ length: 8 }, launch);
    const next = random(seed('lock storm'));
    // On a busy machine it takes more kills until enough have been inside.
    let kills = 0;
    for (; kills < repeats(400) || entered <= 100; kills++) {
      await new Promise((resolve) => setTimeout(resolve, 30 + next() * 40));
      const victim = Math.floor(next() * crowd.length);
      await end(crowd[victim] as ChildProcess);
      crowd[victim] = launch();
    }
    await Promise.all(crowd.map(end));
    expect(violations).toEqual([]);
    expect(entered).toBeGreaterThan(100);
    count('lock storm', { kills, entered });
    // Whatever was left by the killed is no obstacle.
    const lock = acquireLock(path);
    lock.release();
  });
});
