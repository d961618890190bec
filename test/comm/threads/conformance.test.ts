import { expect, test } from 'vitest';
import { runThreads } from '../../../src/comm/threads/run.ts';

const program = new URL('./conformance-rank.ts', import.meta.url);

test.each([1, 2, 5])('%i threads conform', { timeout: 180_000 }, async (ranks) => {
  const start = performance.now();
  const checks = await runThreads<string[]>(ranks, program, undefined, { timeout: 60_000 });
  process.stdout.write(
    `${ranks} threads: ${checks[0]?.length} checks in ${Math.round(performance.now() - start)} ms\n`,
  );
  expect(checks).toHaveLength(ranks);
  for (const list of checks) expect(list.length).toBeGreaterThan(15);
});
