import { readFileSync } from 'node:fs';
import { type Dataset, File, isH5LogError } from 'h5log';
import { beforeAll, expect, test } from 'vitest';
import { sessionOf } from '../../src/api/handle.ts';
import { count } from '../counts.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { full, random, repeats, seed } from '../seed.ts';
import { position, product, range } from '../space/model.ts';
import { temporaryDirectory } from '../temporary.ts';
import { hex } from './fixtures.ts';

interface Made {
  readonly path: string;
  readonly seed: number;
  /** Written in merge mode. */
  readonly merged: boolean;
  readonly datasets: Readonly<Record<string, { shape: number[]; max: (number | null)[]; hex: string }>>;
}

const SCRIPT = readFileSync(new URL('make-files.py', import.meta.url), 'utf8');

/** The bytes of a box, picked from those of the whole dataset. */
function boxOf(whole: Buffer, shape: readonly number[], start: number[], count: number[], size: number): string {
  const points = product(start.map((from, d) => range(from, count[d] as number)));
  return Buffer.concat(
    points.map((point) => whole.subarray(position(point, shape) * size, (position(point, shape) + 1) * size)),
  ).toString('hex');
}

/** Reads a dataset as a whole; undefined if it was written in merge mode and cannot be told for certain. */
function wholeOf(dataset: Dataset, merged: boolean): string | undefined {
  try {
    return hex(dataset.readSync(undefined, { raw: true }));
  } catch (error) {
    if (merged && isH5LogError(error, 'FORMAT') && /written in merge mode/.test(error.message)) return undefined;
    throw error;
  }
}

withOracle('python', 'files in the layout of the original, made by other code', () => {
  const first = seed('files in the layout of the original');
  let files: readonly Made[] = [];
  let flags: Readonly<Record<string, number>> = {};

  beforeAll(() => {
    const lines = pythonSync(SCRIPT, [temporaryDirectory(), String(first), String(repeats(600))])
      .trim()
      .split('\n');
    flags = (JSON.parse(lines.pop() as string) as { flags: Record<string, number> }).flags;
    files = lines.map((line) => JSON.parse(line) as Made);
  });

  test('read as an independent model says, whole and in part, with and without an index', () => {
    const draw = random(first);
    let [datasets, bytes, boxes] = [0, 0, 0];
    const refused = new Set<string>();
    for (const { path, seed: own, merged, datasets: expected } of files) {
      for (const indexLimit of [undefined, 0]) {
        const file = File.openSync(path, indexLimit === undefined ? {} : { indexLimit });
        for (const [name, { shape, max, hex: contents }] of Object.entries(expected)) {
          const what = `seed ${own}: ${name}`;
          const dataset: Dataset = file.dataset(name);
          expect([dataset.shape, dataset.maxShape], what).toEqual([shape, max]);
          const found = wholeOf(dataset, merged);
          if (found === undefined) {
            refused.add(path);
            continue;
          }
          expect(found, what).toBe(contents);
          datasets++;
          bytes += contents.length / 2;
          if (contents === '' || shape.length === 0) continue;
          const whole = Buffer.from(contents, 'hex');
          const start = shape.map((n) => Math.floor(draw() * n));
          const count = shape.map((n, d) => 1 + Math.floor(draw() * (n - (start[d] as number))));
          const size = whole.length / shape.reduce((a, b) => a * b, 1);
          const part = hex(dataset.readSync({ start, count }, { raw: true }));
          expect(part, `${what} ${start} ${count}`).toBe(boxOf(whole, shape, start, count, size));
          boxes++;
        }
        file.closeSync();
      }
    }
    const kinds = Object.keys(flags);
    // The rarer kinds are sure to come only among many files.
    const rare = full ? ['0x11', '0x15', '0x25', '0x30', '0x31', '0x35'] : [];
    expect(kinds).toEqual(expect.arrayContaining(['0x0', '0x1', '0x5', '0x10', '0x20', '0x21', ...rare]));
    // A file in merge mode is refused as a whole when one of its entries cannot be told; many can be read.
    const inMergeMode = files.filter(({ merged }) => merged).length;
    expect(refused.size).toBeLessThan(inMergeMode);
    count('files in the layout of the original', {
      files: files.length,
      datasets,
      boxes,
      bytes,
      entries: Object.values(flags).reduce((a, b) => a + b, 0),
      'files in merge mode': inMergeMode,
      'files refused': refused.size,
    });
  });

  test('hold the same after appends that merge their tables with ours, and after a deletion', () => {
    let [merged, deleted] = [0, 0];
    const some = files.filter((_, i) => i % 3 === 0);
    for (const { path, seed: own, merged: mode, datasets: expected } of some) {
      const file = File.openSync(path, { mode: 'r+' });
      const before = sessionOf(file).log?.main.state.tables.length ?? 0;
      const added = file.createDataset('added', { dtype: 'int32', shape: [30] });
      for (let i = 0; i < 17; i++) {
        added.write([i], { start: [i], count: [1] });
        file.flushSync();
      }
      if ((sessionOf(file).log?.main.state.tables.length ?? 0) < before + 17) merged++;
      file.closeSync();
      const again = File.openSync(path, { mode: 'r+' });
      const names = Object.keys(expected);
      const gone = names[0];
      if (gone !== undefined) {
        again.delete(gone);
        again.flushSync();
        deleted++;
      }
      again.closeSync();
      const reader = File.openSync(path);
      for (const name of names) {
        if (name === gone) expect(reader.has(name), `seed ${own}: ${name}`).toBe(false);
        else {
          const found = wholeOf(reader.dataset(name), mode);
          if (found !== undefined) expect(found, `seed ${own}: ${name}`).toBe(expected[name]?.hex);
        }
      }
      expect([...reader.dataset('added', 'int32').readSync()].slice(0, 18)).toEqual([...Array(17).keys(), 0]);
      reader.closeSync();
    }
    expect([merged > some.length / 2, deleted > some.length / 2]).toEqual([true, true]);
    process.stdout.write(
      `appended to them: ${some.length} files, ${merged} with merged tables, ${deleted} deletions\n`,
    );
  });
});
