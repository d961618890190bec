import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { beforeAll, describe, expect, test } from 'vitest';
import { sessionOf } from '../../../src/api/handle.ts';
import { type Ended, runNode } from '../../process.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { factsOf } from '../../tools/facts.ts';

const program = new URL('../../../src/cli/main.ts', import.meta.url);
const slow = { timeout: 60_000 };
const h5log = (...args: string[]): Promise<Ended> => runNode(program, args);
const folder = temporaryDirectory();
const [run, damaged, lost] = ['run', 'damaged', 'lost'].map((name) => join(folder, `${name}.h5`)) as [
  string,
  string,
  string,
];

beforeAll(() => {
  const file = File.createSync(run, { publish: 'never' });
  const t = file.createDataset('/atm/T', { dtype: 'float64', shape: [72, 100] });
  for (let i = 0; i < 20; i++) {
    t.write(new Float64Array(7200).fill(i));
    file.flushSync();
  }
  const { start } = sessionOf(file).log?.main.history().at(-1) ?? { start: 0 };
  file.closeSync();
  const bytes = readFileSync(run);
  writeFileSync(lost, Buffer.from(bytes).fill(0, 0, 48));
  bytes[start + 5000] = (bytes[start + 5000] as number) ^ 4;
  writeFileSync(damaged, bytes);
});

describe('h5log verify', () => {
  test('a sound file: exit code 0', slow, async () => {
    const { code, stdout, stderr } = await h5log('verify', run);
    expect(stdout).toMatch(/run\.h5: sound \(1\.\d+ MB in .*\)\n {2}21 commits, with checksums\n$/);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const listed = await h5log('verify', '--all', run);
    expect(listed.stdout.match(/^ {2}commit \d+ of .*: good$/gm)).toHaveLength(21);
  });

  test('a damaged one: what, where, and which commits are good; exit code 1', slow, async () => {
    const out = join(folder, 'repaired.h5');
    const { code, stdout } = await h5log('verify', damaged, '--repair-to', out);
    expect(code).toBe(1);
    expect(stdout).toMatch(/damaged\.h5: DAMAGED, 2 problems/);
    expect(stdout).toMatch(/20 of them good, the newest is 19\n {2}commit 20 of .*: damaged\n/);
    expect(stdout).toMatch(/at byte \d+: data of rank 0 in commit 20, bytes \d+ to \d+: the checksum is wrong/);
    expect(stdout).toContain(`commit 19 was written to ${out}`);
    expect(factsOf(out)).toEqual(factsOf(run, { asOf: 19 }));
    const again = await h5log('verify', damaged, '--repair-to', out);
    expect(again).toMatchObject({ code: 2, stdout: '' });
    expect(again.stderr).toMatch(/^h5log: EXISTS: .*repaired\.h5 exists already\n$/);
  });

  test('a lost superblock; facts as JSON', slow, async () => {
    const out = join(folder, 'found.h5');
    const { code, stdout } = await h5log('verify', '--json', '--repair-to', out, lost);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ sound: false, newestSound: 20, repaired: { sequence: 20 } });
    expect(factsOf(out)).toEqual(factsOf(run));
  });

  test('a missing file: exit code 2', slow, async () => {
    const { code, stdout, stderr } = await h5log('verify', join(folder, 'none.h5'));
    expect(stderr).toMatch(/^h5log: NOT_FOUND: .*none\.h5/);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});

describe('h5log compact', () => {
  test('says what it did', slow, async () => {
    const out = join(folder, 'small.h5');
    const { code, stdout, stderr } = await h5log('compact', run, out, '--memory', '16M');
    expect(stdout).toMatch(
      /small\.h5: [\d,]+ bytes \(\d\.\d %\) in .*\n {2}1 dataset of the log, 20 blocks before, 1 now, 0 copied as stored\n$/,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(factsOf(out)).toEqual(factsOf(run));
    const again = await h5log('compact', '--json', '--force', run, out);
    expect(JSON.parse(again.stdout)).toMatchObject({ input: run, output: out, datasets: 1, blocks: 1 });
  });

  test('fails with a line, and leaves nothing', slow, async () => {
    const out = join(folder, 'never.h5');
    const { code, stdout, stderr } = await h5log('compact', lost, out);
    expect(stderr).toMatch(/^h5log: FORMAT: .*lost\.h5/);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(existsSync(out)).toBe(false);
    expect((await h5log('compact', run)).stderr).toMatch(/OPTION: OUT is missing/);
  });
});
