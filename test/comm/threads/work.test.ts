import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runThreads } from '../../../src/comm/threads/run.ts';
import { runs } from '../../seed.ts';
import type { Step } from './steps.ts';

const cases = new URL('./cases.ts', import.meta.url);
const steps = new URL('./steps.ts', import.meta.url);

test('ranks that wait leave the processor to others', async () => {
  const [spent] = await runThreads<number>(5, cases, { name: 'waits', who: 3, value: 2000 });
  process.stdout.write(`5 threads, 4 of them waiting for 2000 ms: ${Math.round(spent ?? 0)} ms of processor time\n`);
  expect(spent).toBeLessThan(1000);
});

test('a gather of 100 MB a rank arrives whole', async () => {
  const [root] = await runThreads<{ took: number; right?: boolean }>(3, cases, { name: 'gathers', value: 100_000_000 });
  process.stdout.write(`3 threads, 100 MB each, gathered in ${Math.round(root?.took ?? 0)} ms\n`);
  expect(root?.right).toBe(true);
  expect(root?.took).toBeLessThan(20_000);
});

// Any mixture of collectives, on communicators of all ranks and of groups, with any lengths and any numbers.
const length = fc.oneof(
  fc.constantFrom(0, 1, 487, 488, 489, 262_143, 262_144, 262_145),
  fc.nat(600),
  fc.nat(1_500_000),
);
const numbers = fc.array(fc.double(), { minLength: 1, maxLength: 6 });
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('barrier', 'bcast', 'gather', 'allgather', 'sum', 'min', 'max', 'exscan'),
  on: fc.nat(2),
  root: fc.nat(100),
  lengths: fc.array(length, { minLength: 4, maxLength: 4 }),
  numbers: fc.array(numbers, { minLength: 4, maxLength: 4 }),
  copies: fc.oneof(fc.constant(1), fc.constantFrom(61, 62, 40_000)),
});

test('any sequence of collectives gives what a plain model gives', { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { minLength: 10, maxLength: 60 }),
      async (ranks, list) => {
        // The ranks compare with the model themselves and tell the first difference.
        expect(await runThreads(ranks, steps, list, { timeout: 60_000 })).toEqual(Array(ranks).fill('as expected'));
      },
    ),
    { ...runs('collectives of threads', 60), endOnFailure: true },
  );
});
