import { readFileSync } from 'node:fs';
import { type Dataset, File } from 'h5log';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { position, product, range } from '../space/model.ts';
import { temporaryDirectory } from '../temporary.ts';
import { hex } from './fixtures.ts';

interface Made {
  readonly path: string;
  readonly seed: number;
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

withOracle('python', 'files in the layout of the original, made by other code', () => {
  test('read as an independent model says, whole and in part, with and without an index', () => {
    const first = seed('files in the layout of the original');
    const lines = pythonSync(SCRIPT, [temporaryDirectory(), String(first), String(repeats(600))])
      .trim()
      .split('\n');
    const { flags } = JSON.parse(lines.pop() as string) as { flags: Record<string, number> };
    const files = lines.map((line) => JSON.parse(line) as Made);
    const draw = random(first);
    let [datasets, bytes, boxes] = [0, 0, 0];
    for (const { path, seed: own, datasets: expected } of files) {
      for (const indexLimit of [undefined, 0]) {
        const file = File.openSync(path, indexLimit === undefined ? {} : { indexLimit });
        for (const [name, { shape, max, hex: contents }] of Object.entries(expected)) {
          const what = `seed ${own}: ${name}`;
          const dataset: Dataset = file.dataset(name);
          expect([dataset.shape, dataset.maxShape], what).toEqual([shape, max]);
          expect(hex(dataset.readSync(undefined, { raw: true })), what).toBe(contents);
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
    expect(kinds).toEqual(
      expect.arrayContaining(['0x0', '0x1', '0x5', '0x10', '0x11', '0x15', '0x20', '0x21', '0x25', '0x30', '0x31']),
    );
    process.stdout.write(
      `files in the layout of the original: ${files.length} files, ${datasets} datasets, ${boxes} boxes, ${bytes} bytes, ` +
        `${Object.values(flags).reduce((a, b) => a + b, 0)} entries of ${kinds.length} kinds\n`,
    );
  });
});
