import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isH5LogError } from '../../src/base/errors.ts';
import { applyFilters } from '../../src/filter/apply.ts';
import { type FilterStep, problemOfEncoding, unfilter } from '../../src/filter/pipeline.ts';
import { count } from '../counts.ts';
import { keepInput } from '../failures.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';

/** A line of chunks.py. */
interface Line {
  readonly dataset: string;
  readonly name: string;
  readonly filters: readonly FilterStep[];
  readonly mask: number;
  readonly elementSize: number;
  readonly shape: readonly number[];
  readonly chunk: string;
  readonly data: string;
}

withOracle('python', 'chunks that libhdf5 filtered', () => {
  const script = readFileSync(join(import.meta.dirname, 'chunks.py'), 'utf8');
  const file = join(temporaryDirectory(), 'chunks.h5');
  const made = pythonSync(script, [String(seed('filtered chunks')), String(repeats(30)), file]);
  const chunks = linesOf<Line>(made).map((line) => {
    const data = Buffer.from(line.data, 'base64');
    const { elementSize, shape } = line;
    return { ...line, chunk: fromText(line.chunk), data, whole: { size: data.length, elementSize, shape } };
  });

  test('are decoded to the bytes that libhdf5 reads', () => {
    const wrong: string[] = [];
    for (const { name, filters, mask, chunk, data, whole } of chunks) {
      try {
        const decoded = unfilter(chunk, filters, mask, whole) as Uint8Array;
        if (Buffer.compare(decoded, data) !== 0) wrong.push(`${name}: other bytes`);
      } catch (error) {
        wrong.push(`${name}: ${error}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(new Set(chunks.flatMap(({ filters }) => filters.map(({ id }) => id))).size).toBe(7);
    count('filtered chunks', { decoded: chunks.length });
  });

  test('made by our encoders are read by libhdf5', () => {
    const ours = chunks
      .filter(({ filters }) => problemOfEncoding(filters) === null)
      .map((line) => {
        const skipped = { mask: 0 };
        const chunk = applyFilters(line.data, line.filters, line.whole, undefined, skipped) as Uint8Array;
        return { ...line, chunk, mask: skipped.mask };
      });
    const input = ours.map(({ dataset, mask, chunk }) =>
      JSON.stringify({ dataset, mask, chunk: Buffer.from(chunk).toString('base64') }),
    );
    const read = linesOf<{ data?: string; error?: string }>(
      pythonSync(script, ['--read', file], `${input.join('\n')}\n`),
    );
    const wrong: string[] = [];
    ours.forEach(({ name, filters, mask, chunk, data, whole }, i) => {
      const theirs = fromText(read[i]?.data ?? '');
      if (read[i]?.error) wrong.push(`${name}: ${read[i].error}`);
      else if (Buffer.compare(theirs, unfilter(chunk, filters, mask, whole) as Uint8Array) !== 0)
        wrong.push(`${name}: libhdf5 reads other bytes than we do`);
      else if (!sameValues(filters, theirs, data)) wrong.push(`${name}: other values`);
    });
    expect(wrong).toEqual([]);
    expect(ours.length).toBeGreaterThan(chunks.length / 2);
    count('filtered chunks', { encoded: ours.length });
  });

  test('and then damaged end in an error of ours, or in data', () => {
    const next = random(seed('damaged chunks'));
    const small = chunks.filter(({ chunk, data }) => chunk.length > 0 && chunk.length < 1500 && data.length < 6000);
    const tries = repeats(1_000_000);
    let refused = 0;
    for (let i = 0; i < tries; i++) {
      const { name, filters, mask, chunk, whole } = small[Math.floor(next() * small.length)] as (typeof small)[number];
      const damaged = damage(chunk, next);
      // Sometimes the parameters are wrong instead.
      const steps =
        next() < 0.2 ? filters.map((step) => ({ ...step, values: damageNumbers(step.values, next) })) : filters;
      try {
        unfilter(damaged, steps, mask, whole);
      } catch (error) {
        refused++;
        if (isH5LogError(error, 'FORMAT') || isH5LogError(error, 'UNSUPPORTED')) continue;
        keepInput('chunk.json', JSON.stringify({ name, steps, mask, damaged: [...damaged] }));
        throw error;
      }
    }
    expect(refused).toBeGreaterThan(tries / 10);
    count('damaged chunks', { chunks: tries, refused });
  });
});

function linesOf<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

function fromText(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'));
}

/** Equal, or for floats through scale-offset as near as the digits that it keeps. */
function sameValues(filters: readonly FilterStep[], a: Uint8Array, b: Uint8Array): boolean {
  const lossy = filters.find(({ id, values }) => id === 6 && (values[3] === 1 || (values[1] as number) > 0));
  if (!lossy) return Buffer.compare(a, b) === 0;
  // Integers whose width the user chose: what did not fit is lost at the first writing.
  const [, digits = 0, , kind, size = 4, , order] = lossy.values;
  if (kind !== 1) return Buffer.compare(a, b) === 0;
  const [x, y] = [a, b].map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)) as [
    DataView,
    DataView,
  ];
  const value = (view: DataView, at: number) =>
    size === 4 ? view.getFloat32(at, order === 0) : view.getFloat64(at, order === 0);
  let most = 0;
  for (let at = 0; at < a.length; at += size) most = Math.max(most, Math.abs(value(y, at)));
  for (let at = 0; at < a.length; at += size) {
    const [p, q] = [value(x, at), value(y, at)];
    if (!(Math.abs(p - q) <= 10 ** -digits + most * (size === 4 ? 1e-6 : 1e-14))) return false;
  }
  return true;
}

/** Bytes replaced, inserted, cut off or zeroed. */
function damage(bytes: Uint8Array, next: () => number): Uint8Array {
  const at = Math.floor(next() * bytes.length);
  const kind = next();
  if (kind < 0.2) return bytes.slice(0, at);
  const damaged = bytes.slice();
  if (kind < 0.3) return damaged.fill(kind < 0.25 ? 0 : 255, at);
  for (let left = 1 + Math.floor(next() * 4); left > 0; left--) {
    const where = kind < 0.6 ? Math.floor(next() * Math.min(32, damaged.length)) : Math.floor(next() * damaged.length);
    damaged[where] = next() * 256;
  }
  return damaged;
}

function damageNumbers(values: readonly number[], next: () => number): number[] {
  if (next() < 0.2) return values.slice(0, Math.floor(next() * values.length));
  return values.map((value) => {
    if (next() < 0.6) return value;
    return next() < 0.5 ? Math.floor(next() * 70) : Math.floor(next() ** 4 * 2 ** 32);
  });
}
