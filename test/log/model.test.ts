import fc from 'fast-check';
import { afterAll, test } from 'vitest';
import { repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { figures, Machine, type Setup, type Step, type StepKind, WEIGHTS } from './model.ts';

// Random programs run on a file and on plain arrays in memory; every read, and every commit afterwards, must agree.

const number = fc.noShrink(fc.nat(2 ** 31 - 1));

const setups: fc.Arbitrary<Setup> = fc
  .record({
    storage: fc.oneof(
      { weight: 6, arbitrary: fc.constant('memory' as const) },
      { weight: 5, arbitrary: fc.constant('faulty' as const) },
      { weight: 5, arbitrary: fc.constant('delayed' as const) },
      { weight: 2, arbitrary: fc.constant('async' as const) },
      { weight: 1, arbitrary: fc.constant('node' as const) },
    ),
    seed: number,
    table: fc.record(
      {
        merge: fc.boolean(),
        encode: fc.boolean(),
        share: fc.boolean(),
        compress: fc.oneof(fc.boolean(), fc.integer({ min: 0, max: 8 })),
      },
      { requiredKeys: [] },
    ),
    checksum: fc.boolean(),
    durability: fc.constantFrom('process' as const, 'power' as const),
    bufferLimit: fc.option(fc.integer({ min: 20, max: 2000 }), { freq: 3, nil: undefined }),
    flushes: fc.boolean(),
    indexLimit: fc.option(fc.nat(300), { freq: 2, nil: undefined }),
  })
  .map(({ storage, seed, table, checksum, durability, bufferLimit, flushes, indexLimit }) => ({
    storage,
    seed,
    create: {
      table,
      checksum,
      durability,
      ...(bufferLimit !== undefined && { bufferLimit }),
      ...(bufferLimit !== undefined && flushes && storage !== 'async' && { onBufferFull: 'flush' as const }),
      ...(indexLimit !== undefined && { indexLimit }),
    },
  }));

const kinds = (weights: Readonly<Record<StepKind, number>>): fc.Arbitrary<StepKind> =>
  fc.oneof(
    ...Object.entries(weights).map(([kind, weight]) => ({ weight: weight * 10, arbitrary: fc.constant(kind as StepKind) })),
  );
const begin: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('create' as const), seed: number });

/** A number of datasets to begin with, then steps of a program of some character. */
const programs = fc.oneof(
  ...Object.values(WEIGHTS).map((weights, i) =>
    fc
      .tuple(
        setups,
        fc.array(begin, { minLength: 1, maxLength: 4 }),
        fc.array(fc.record({ kind: kinds(weights), seed: number }), { minLength: 1, maxLength: i === 2 ? 20 : 45, size: 'max' }),
      )
      .map(([setup, first, rest]) => ({ setup, steps: [...first, ...rest] })),
  ),
);

test('random programs do to a file what they do to arrays in memory', { timeout: 3_600_000 }, async () => {
  const folder = temporaryDirectory();
  const property = fc.asyncProperty(programs, async ({ setup, steps }) => {
    const machine = await Machine.start(setup, folder);
    for (const step of steps) await machine.step(step);
    await machine.end();
  });
  await fc.assert(property, { seed: seed('log model'), numRuns: repeats(10_000), endOnFailure: false });
});

afterAll(() => {
  process.stdout.write(`log model: ${Object.entries(figures).map(([name, n]) => `${n} ${name}`).join(', ')}\n`);
});
