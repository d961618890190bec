import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { document, withOutput } from '../../scripts/cli-docs.ts';

test('docs/cli.md shows what the commands print today', { timeout: 180_000 }, async () => {
  const text = readFileSync(document, 'utf8');
  expect(text.match(/^\$ h5log/gm)?.length).toBeGreaterThan(15);
  // If not: npm run cli-docs.
  expect(await withOutput(text)).toBe(text);
});
