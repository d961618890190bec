import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { File } from 'h5log';
import { afterAll, test } from 'vitest';
import { count } from '../../counts.ts';
import { keepInput } from '../../failures.ts';
import { h5dump, withOracle } from '../../oracles.ts';
import { runs } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { checkLogFile, readAsOriginal, seenByH5py } from '../format/check-log.ts';
import { figures } from './compare.ts';
import { Machine } from './machine.ts';
import { type Setup, type Step, type StepKind, WEIGHTS } from './program.ts';

// Random programs run on a file and on plain arrays in memory; every read, and every commit afterwards, must agree.

const number = fc.noShrink(fc.nat(2 ** 31 - 1));

/** Where logs are and how tables are written: half of the files have neither option. */
const layouts = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  {
    weight: 5,
    arbitrary: fc.record({
      logs: fc.constantFrom('shared' as const, 'group' as const, 'dataset' as const),
      classic: fc.constantFrom('no' as const, 'little' as const, 'big' as const),
    }),
  },
);

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
    layout: layouts as fc.Arbitrary<{ logs?: 'shared' | 'group' | 'dataset'; classic?: 'no' | 'little' | 'big' }>,
    checksum: fc.boolean(),
    durability: fc.constantFrom('process' as const, 'power' as const),
    bufferLimit: fc.option(fc.integer({ min: 20, max: 2000 }), { freq: 3, nil: undefined }),
    flushes: fc.boolean(),
    indexLimit: fc.option(fc.nat(300), { freq: 2, nil: undefined }),
  })
  .map(
    ({
      storage,
      seed,
      table,
      layout: { logs, classic = 'no' },
      checksum,
      durability,
      bufferLimit,
      flushes,
      indexLimit,
    }) => ({
      storage,
      seed,
      create: {
        table: classic === 'no' ? table : { format: 'classic' as const, bigEndian: classic === 'big' },
        ...(logs && { logs }),
        checksum,
        durability,
        ...(bufferLimit !== undefined && { bufferLimit }),
        ...(bufferLimit !== undefined && flushes && storage !== 'async' && { onBufferFull: 'flush' as const }),
        ...(indexLimit !== undefined && { indexLimit }),
      },
    }),
  );

const kinds = (weights: Readonly<Record<StepKind, number>>): fc.Arbitrary<StepKind> =>
  fc.oneof(
    ...Object.entries(weights).map(([kind, weight]) => ({
      weight: weight * 10,
      arbitrary: fc.constant(kind as StepKind),
    })),
  );
const begin: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('create' as const), seed: number });

/** A number of datasets to begin with, then steps of a program of some character. */
const programs = fc.oneof(
  ...Object.values(WEIGHTS).map((weights, i) =>
    fc
      .tuple(
        setups,
        fc.array(begin, { minLength: 1, maxLength: 4 }),
        fc.array(fc.record({ kind: kinds(weights), seed: number }), {
          minLength: 1,
          maxLength: i === 2 ? 20 : 45,
          size: 'max',
        }),
      )
      .map(([setup, first, rest]) => ({ setup, steps: [...first, ...rest] })),
  ),
);

/** Every so many programs the file is kept, to be looked at by others. */
const KEPT = 15;
const kept: string[] = [];
const folder = temporaryDirectory();

/** Runs a program to its end; gives the bytes of the file. */
async function run(setup: Setup, steps: readonly Step[]): Promise<Uint8Array> {
  try {
    const machine = await Machine.start(setup, folder);
    for (const step of steps) await machine.step(step);
    return await machine.end();
  } catch (error) {
    keepInput('program.json', JSON.stringify({ setup, steps }, null, 1));
    throw error;
  }
}

test('random programs do to a file what they do to arrays in memory', { timeout: 3_600_000 }, async () => {
  const property = fc.asyncProperty(programs, async ({ setup, steps }) => {
    const bytes = await run(setup, steps);
    const { logs, table } = setup.create;
    const isNumbered = (logs ?? 'shared') !== 'shared' || table?.format === 'classic';
    figures.numbered += isNumbered ? 1 : 0;
    // Others look for a log in one place only.
    if (isNumbered || figures.programs % KEPT > 0) return;
    kept.push(join(folder, `kept-${kept.length}.h5`));
    writeFileSync(kept.at(-1) as string, bytes);
  });
  await fc.assert(property, runs('log model', 10_000));
});

const others = { files: 0, entries: 0, references: 0, bytes: 0 };

withOracle(['h5dump', 'python'], 'files of random programs', () => {
  test('keep the rules of the format and are read by others', { timeout: 600_000 }, () => {
    for (let i = 0; i < kept.length; i += 50) {
      const paths = kept.slice(i, i + 50);
      h5dump('-A', ...paths);
      seenByH5py(paths).forEach((seen, k) => {
        const bytes = readFileSync(paths[k] as string);
        const checked = checkLogFile(bytes, seen);
        others.files++;
        others.entries += checked.entries.length;
        others.references += checked.entries.filter(({ flags }) => flags & 0x10).length;
        const file = File.openSync(paths[k] as string);
        for (const { id, path } of checked.anchors.values()) {
          const raw = readAsOriginal(bytes, checked, id);
          if (!raw) continue;
          const ours = file.dataset(path.replaceAll('/__', '/_')).readSync(undefined, { raw: true });
          if (!raw.equals(ours)) throw new Error(`${paths[k]} ${path}: others read something else`);
          others.bytes += raw.length;
        }
        file.closeSync();
      });
    }
  });
});

afterAll(() => {
  const { compared, failures, refused, numbered, ...done } = figures;
  count('log model', {
    ...done,
    'values compared': compared,
    'faults met': failures,
    'posts refused': refused,
    'with numbered logs': numbered,
  });
  count('log model, read by others', others);
});
