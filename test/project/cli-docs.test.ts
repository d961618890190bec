import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { document, withOutput } from '../../scripts/cli-docs.ts';
import { manPage, page } from '../../scripts/man.ts';
import { root } from '../../scripts/root.ts';
import { commands } from '../../src/cli/commands.ts';
import { withOracle } from '../oracles.ts';

test('docs/cli.md shows what the commands print today', { timeout: 180_000 }, async () => {
  const text = readFileSync(document, 'utf8');
  expect(text.match(/^\$ h5log/gm)?.length).toBeGreaterThan(15);
  // If not: npm run cli-docs.
  expect(await withOutput(text)).toBe(text);
});

test('man/h5log.1 comes from the tables of the commands', async () => {
  // If not: npm run cli-docs.
  expect(readFileSync(page, 'utf8')).toBe(await manPage());
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { man: string; files: string[] };
  expect(manifest.man).toBe('./man/h5log.1');
  expect(manifest.files).toContain('man');
});

withOracle('groff', 'the manual page', () => {
  test('is read by groff without a warning, and shows every command and option', async () => {
    // groff writes warnings to standard error and still succeeds.
    const { stdout, stderr } = spawnSync('groff', ['-man', '-ww', '-Tascii', '-P-cbou', '-rLL=200n', page], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    for (const load of Object.values(commands)) {
      const { name, options } = (await load()).default;
      expect(stdout).toMatch(new RegExp(`^ +h5log ${name} \\[options\\]`, 'm'));
      for (const option of Object.keys(options)) expect(stdout).toMatch(new RegExp(`^ +(-.*, )?--${option}\\b`, 'm'));
    }
  });
});
