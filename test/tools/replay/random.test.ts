import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { isH5LogError } from 'h5log';
import { replay } from 'h5log/tools';
import { afterAll, expect, test } from 'vitest';
import { rowBoxes } from '../../../src/space/box.ts';
import { count } from '../../counts.ts';
import { Machine } from '../../log/model/machine.ts';
import { type Setup, type Step, type StepKind, WEIGHTS } from '../../log/model/program.ts';
import { withOracle } from '../../oracles.ts';
import { runs } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { checkReplayed, expectedOf, tally } from './check.ts';

const folder = temporaryDirectory();
const number = fc.noShrink(fc.nat(2 ** 31 - 1));

afterAll(() => count('random programs replayed', tally.figures));

const setups: fc.Arbitrary<Setup> = fc.record({
  storage: fc.constant('memory' as const),
  seed: number,
  create: fc.record({
    table: fc.record({ merge: fc.boolean(), encode: fc.boolean(), share: fc.boolean(), compress: fc.boolean() }),
  }),
});

const { plain } = WEIGHTS;
const kinds = fc.oneof(
  ...Object.entries(plain as Readonly<Record<StepKind, number>>).map(([kind, weight]) => ({
    weight: weight * 10,
    arbitrary: fc.constant(kind as StepKind),
  })),
);
const programs = fc.record({
  setup: setups,
  steps: fc
    .tuple(
      fc.array(fc.record({ kind: fc.constant('create' as const), seed: number }), { minLength: 2, maxLength: 5 }),
      fc.array(fc.record({ kind: kinds, seed: number }), { minLength: 10, maxLength: 40, size: 'max' }),
    )
    .map(([first, rest]): Step[] => [...first, ...rest]),
});

withOracle(['h5dump', 'python'], 'files of random programs', () => {
  test('are the same after a replay, whatever memory it may use', { timeout: 1_800_000 }, async () => {
    const chosen = fc.sample(programs, runs('replay of programs', 1000));
    let batch: { output: string; expected: ReturnType<typeof expectedOf> }[] = [];
    for (const [i, { setup, steps }] of chosen.entries()) {
      const machine = await Machine.start(setup, folder);
      for (const step of steps) await machine.step(step);
      const input = join(folder, `${i}.h5`);
      const output = join(folder, `${i}.out.h5`);
      writeFileSync(input, await machine.end());
      const outcome = await replay(input, output, i % 2 === 0 ? {} : { memory: 2 ** 20 }).catch(
        (error: unknown) => error,
      );
      // Chunks that a program has declared may be larger than HDF5 has room for.
      if (isH5LogError(outcome, 'UNSUPPORTED') && /HDF5 has room for 4294967295$/.test(outcome.message)) continue;
      if (outcome instanceof Error) throw outcome;
      batch.push({ output, expected: expectedOf(input) });
      if (batch.length < 50) continue;
      checkReplayed(batch);
      batch = [];
    }
    if (batch.length > 0) checkReplayed(batch);
  });
});

test('boxes of neighbours cover a range once, in order, and are no larger than allowed', () => {
  const shapes = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 });
  const property = fc.property(shapes, fc.nat(), fc.nat(), fc.integer({ min: 1, max: 60 }), (shape, a, b, limit) => {
    const total = shape.reduce((product, n) => product * n, 1);
    const [from, to] = [a % (total + 1), b % (total + 1)].sort((x, y) => x - y) as [number, number];
    let at = from;
    for (const { start, count, from: first, size } of rowBoxes(shape, from, to, limit)) {
      expect(first).toBe(at);
      expect(size).toBeLessThanOrEqual(limit);
      expect(count.reduce((product, n) => product * n, 1)).toBe(size);
      // The elements of the box, in its own order, are the next ones of the array.
      for (let i = 0; i < size; i++) {
        let rest = i;
        const inside = count.map(() => 0);
        for (let d = count.length - 1; d >= 0; d--) {
          inside[d] = rest % (count[d] as number);
          rest = Math.floor(rest / (count[d] as number));
        }
        const position = inside.reduce((sum, c, d) => sum * (shape[d] as number) + c + (start[d] as number), 0);
        expect(position).toBe(at + i);
        inside.forEach((c, d) => {
          expect(c + (start[d] as number)).toBeLessThan(shape[d] as number);
        });
      }
      at += size;
    }
    expect(at).toBe(to);
  });
  fc.assert(property, runs('row boxes', 5000));
});

test('whole rows stay together: a large array is cut along its first dimension', () => {
  expect([...rowBoxes([100, 10], 0, 1000, 250)].map(({ count }) => count)).toEqual(Array(4).fill([25, 10]));
  expect([...rowBoxes([3, 100], 0, 300, 40)].map(({ count }) => count[1])).toEqual([
    40, 40, 20, 40, 40, 20, 40, 40, 20,
  ]);
  expect([...rowBoxes([], 0, 1)]).toEqual([{ start: [], count: [], from: 0, size: 1 }]);
});
