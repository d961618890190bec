import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { randomSuites } from '../../scripts/soak/suites.ts';
import { Totals } from '../../scripts/soak/totals.ts';
import { runTurn } from '../../scripts/soak/turn.ts';
import { temporaryDirectory } from '../temporary.ts';

const counts = new URL('../counts.ts', import.meta.url).href;
const failures = new URL('../failures.ts', import.meta.url).href;

/** Whether there is such a process, and not only its exit code that nobody has asked for. */
function isRunning(pid: string): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !readFileSync(file, 'utf8').includes(') Z ');
}

/** A suite that is a piece of JavaScript, which runs with the loader of this process. */
const suite = (code: string): { name: string; command: string[] } => ({
  name: 'a/b',
  command: [process.execPath, '--import', 'tsx', '--input-type=module', '-e', code],
});

describe('a turn of npm run soak', () => {
  test('gives a suite its seed and scale, and adds up what it counts', async () => {
    const folder = temporaryDirectory();
    const code = `
      import { count } from '${counts}';
      const { H5LOG_SEED: seed, H5LOG_SCALE: scale } = process.env;
      count('programs of ' + seed, { programs: 7, steps: 10 * scale });
      count('programs of ' + seed, { programs: 1 });`;
    const turn = await runTurn(suite(code), { seed: 12, scale: 0.5, failures: folder });
    expect(turn).toMatchObject({ suite: 'a/b', seed: 12, outcome: 'passed' });
    expect([...turn.counts]).toEqual([['programs of 12', { programs: 8, steps: 5 }]]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that fails counts nothing, and keeps the seed, the output, the input and temporary files', async () => {
    const folder = temporaryDirectory();
    const code = `
      import { mkdirSync, writeFileSync } from 'node:fs';
      import { tmpdir } from 'node:os';
      import { count } from '${counts}';
      import { keepInput } from '${failures}';
      count('a', { programs: 7 });
      keepInput('case 1: byte 7.h5', Uint8Array.of(1, 2, 3));
      mkdirSync(tmpdir() + '/inner');
      writeFileSync(tmpdir() + '/inner/left.h5', 'left');
      console.log('a line');
      throw new Error('a mistake');`;
    const turn = await runTurn(suite(code), { seed: 12, scale: 0.1, failures: folder });
    const kept = join(folder, 'a-b-12');
    expect(turn).toMatchObject({ outcome: 'failed', kept, counts: new Map() });
    expect(JSON.parse(readFileSync(join(kept, 'failure.json'), 'utf8'))).toMatchObject({
      suite: 'a/b',
      seed: 12,
      ending: 'exit code 1',
      repeat: 'H5LOG_SEED=12 H5LOG_SCALE=0.1 npx vitest run test/a/b.test.ts',
    });
    expect(readFileSync(join(kept, 'output.txt'), 'utf8')).toMatch(/^a line\n(?:.*\n)*.*a mistake/);
    expect([...readFileSync(join(kept, 'inputs', 'case-1-byte-7.h5'))]).toEqual([1, 2, 3]);
    expect(readFileSync(join(kept, 'temporary', 'inner', 'left.h5'), 'utf8')).toBe('left');
  });

  test('that hangs is ended, and so are the processes it started', async () => {
    const folder = temporaryDirectory();
    const pid = join(folder, 'pid');
    const code = `
      import { spawn } from 'node:child_process';
      import { writeFileSync } from 'node:fs';
      const child = spawn('sleep', ['600'], { stdio: 'inherit' });
      writeFileSync('${pid}', String(child.pid));
      for (;;);`;
    const turn = await runTurn(suite(code), { seed: 1, scale: 0.1, failures: folder, patience: 5000 });
    expect(turn).toMatchObject({ outcome: 'failed' });
    expect(readFileSync(join(folder, 'a-b-1', 'failure.json'), 'utf8')).toContain('killed after 5 s');
    await expect.poll(() => isRunning(readFileSync(pid, 'utf8'))).toBe(false);
  });

  test('that is interrupted is neither passed nor failed', async () => {
    const stop = new AbortController();
    const folder = temporaryDirectory();
    const turn = runTurn(suite('for (;;);'), { seed: 1, scale: 0.1, failures: folder, signal: stop.signal });
    stop.abort();
    expect(await turn).toMatchObject({ outcome: 'interrupted' });
    expect(readdirSync(folder)).toEqual([]);
  });
});

test('totals add up over runs, failures included', () => {
  const file = join(temporaryDirectory(), 'totals.json');
  const turn = { suite: 'a/b', seed: 1, outcome: 'passed', seconds: 2 } as const;
  new Totals(file).add({ ...turn, counts: new Map([['a', { files: 600_000 }]]) });
  const later = new Totals(file);
  later.add({ ...turn, counts: new Map([['a', { files: 500_000 }]]) });
  later.add({ ...turn, suite: 'c', outcome: 'failed', counts: new Map() });
  const last = new Totals(file);
  expect(last.lines()).toEqual(['a/b: 2 turns; a: 1,100,000 files', 'c: 1 turn, 1 failed']);
  expect(last.sum()).toBe('all suites: 3 turns, 1 failed; 1,100,000 files');
});

test('random suites are the test files that draw from a seed, also through other files', () => {
  const names = randomSuites().map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['log/model/model', 'hostile/fuzz', 'storage/memory']));
  expect(names).not.toContain('space/shape');
  expect(names.filter((name) => name.startsWith('project/'))).toEqual([]);
});
