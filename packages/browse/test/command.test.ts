import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { File } from 'h5log';
import { beforeAll, describe, expect, test } from 'vitest';
import { builtCommand, execute, root } from '../../../scripts/root.ts';
import { temporaryDirectory } from '../../../test/temporary.ts';

const folder = temporaryDirectory();
const path = join(folder, 'run.h5');

/** h5log and h5log-browse as a user has them installed, without anything else. */
const installed = join(folder, 'installed', 'node_modules');

beforeAll(async () => {
  const file = await File.create(path);
  file.createDataset('x', { dtype: 'int32', shape: [3] }).write([1, 2, 3]);
  await file.close();
  execute('npm', ['run', '--silent', 'browse:build'], { cwd: root });
  mkdirSync(installed, { recursive: true });
  for (const [from, name] of [
    [root, 'h5log'],
    [join(root, 'packages', 'browse'), 'h5log-browse'],
  ] as const) {
    cpSync(join(from, 'dist'), join(installed, name, 'dist'), { recursive: true });
    cpSync(join(from, 'package.json'), join(installed, name, 'package.json'));
  }
}, 120_000);

interface Started {
  readonly child: ChildProcess;
  /** Waits for a line of its output. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<{ code: number | null; output: string }>;
}

function start(program: string, args: readonly string[], cwd = folder, env: NodeJS.ProcessEnv = {}): Started {
  const child = spawn(process.execPath, [program, 'browse', ...args], { cwd, env: { ...process.env, ...env } });
  let output = '';
  const looking = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      for (const look of looking) look();
    });
  const ended = new Promise<{ code: number | null; output: string }>((resolve) =>
    child.on('close', (code) => resolve({ code, output })),
  );
  const line = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(output);
        if (found) resolve(found);
      };
      looking.add(look);
      look();
      void ended.then(() => reject(new Error(`ended: ${output}`)));
    });
  return { child, line, ended };
}

const installedCommand = join(installed, 'h5log', 'dist', 'node', 'cli.js');
const URL_LINE = /run\.h5: (http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{32})/;

describe('h5log browse', () => {
  test.each([
    ['SIGINT', 'SIGINT'],
    ['the end of the terminal', 'SIGHUP'],
  ] as const)('prints an address that shows the page, and ends with %s', async (_name, signal) => {
    const { child, line, ended } = start(installedCommand, ['--no-open', path]);
    const [, url = ''] = await line(URL_LINE);
    const entered = await fetch(url, { redirect: 'manual' });
    const headers = { cookie: String(entered.headers.get('set-cookie')).split(';')[0] as string };
    const page = await fetch(new URL(String(entered.headers.get('location')), url), { headers });
    expect(await page.text()).toContain('data-file="file" data-name="run.h5"');
    child.kill(signal);
    expect((await ended).code).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
  });

  test('opens the browser with the address unless --no-open', async () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const seen = join(folder, 'seen.txt');
    writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\nprintf %s "$1" > ${seen}.part && mv ${seen}.part ${seen}\n`, {
      mode: 0o755,
    });
    const { child, line, ended } = start(installedCommand, [path], folder, { PATH: `${bin}:${process.env.PATH}` });
    const [, url] = await line(URL_LINE);
    await expect.poll(() => readFileSync(seen, 'utf8'), { timeout: 10_000 }).toBe(url);
    child.kill('SIGINT');
    await ended;
  });

  test('takes a port, and warns of a host that others reach', async () => {
    const { child, line, ended } = start(installedCommand, ['--no-open', '--port', '0', '--host', '0.0.0.0', path]);
    await line(/warning: whoever reaches 0\.0\.0\.0 and sees this address first can read the file/);
    child.kill('SIGINT');
    await ended;
    const taken = start(installedCommand, ['--no-open', path]);
    const [, url = ''] = await taken.line(URL_LINE);
    const second = await start(installedCommand, ['--no-open', '--port', new URL(url).port, path]).ended;
    expect(second.code).toBe(2);
    expect(second.output).toContain('EADDRINUSE');
    taken.child.kill('SIGINT');
  });

  test('says how to install the package where it is missing, and finds it in the working directory', async () => {
    const alone = join(temporaryDirectory(), 'node_modules', 'h5log');
    mkdirSync(alone, { recursive: true });
    cpSync(join(root, 'dist'), join(alone, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(alone, 'package.json'));
    const program = join(alone, 'dist', 'node', 'cli.js');
    const missing = await start(program, ['--no-open', path]).ended;
    expect(missing.code).toBe(2);
    expect(missing.output).toContain('npm install h5log-browse');
    const found = start(program, ['--no-open', path], dirname(installed));
    await found.line(URL_LINE);
    found.child.kill('SIGINT');
    expect((await found.ended).code).toBe(0);
  });

  test('names a file that is not there, or is none', async () => {
    expect((await start(builtCommand, ['missing.h5']).ended).output).toContain('missing.h5 does not exist');
    expect((await start(builtCommand, [folder]).ended).output).toContain('is not a file');
  });
});
