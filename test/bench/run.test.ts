import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { runNode } from '../process.ts';
import { temporaryDirectory } from '../temporary.ts';

const program = new URL('../../bench/run.ts', import.meta.url);

describe('npm run bench', () => {
  test.concurrent('prints a table, draws it, and ends with one document', async ({ expect }) => {
    const picture = join(temporaryDirectory(), 'bench.svg');
    const args = ['flushes', '--scale', '0.0001', '--no-peers', '--external', 'echo 2.5', '--chart', picture, '--json'];
    const { code, stdout, stderr } = await runNode(program, args);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /\nflushes\/total: Append 10 rows of 1 KiB, .*\n {2}h5log .* s\n {2}external +2.50 s +[\d,]+x slower\n/,
    );
    const document = JSON.parse(stdout.trimEnd().split('\n').at(-1) as string);
    expect(document).toMatchObject({ scale: 0.0001, full: false, skipped: [] });
    expect(Object.keys(document.machine)).toEqual(['cores', 'processor', 'memoryGiB', 'node', 'platform']);
    const [total] = document.comparisons.filter(({ id }: { id: string }) => id === 'flushes/total');
    const [ours, theirs] = total.results;
    expect(theirs).toEqual({ program: 'external', seconds: 2.5, part: 1, ratio: 2.5 / ours.seconds });
    expect(document.figures.map(({ what }: { what: string }) => what.split(':')[0])).toContain('flushes/growth');
    expect(readFileSync(picture, 'utf8')).toContain('>external<');
  });

  test.concurrent('says in one line what is wrong with what it was told', async ({ expect }) => {
    const { code, stderr } = await runNode(program, ['flushs']);
    expect(stderr).toMatch(/^there is no flushs; there are .*\bflushes\b.*\be3sm\n$/);
    expect(code).toBe(1);
  });
});
