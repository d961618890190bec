import { type DType, File, T } from 'h5log';
import { expect, test } from 'vitest';
import { memoryStorage } from '../../../src/storage/memory.ts';
import { count } from '../../counts.ts';
import { random, repeats, seed } from '../../seed.ts';

const next = random(seed('runs'));
const below = (n: number): number => Math.floor(next() * n);

const opaque = (size: number) => ({
  dtype: T.opaque(size),
  size,
  values: (bytes: Uint8Array) =>
    Array.from({ length: bytes.length / size }, (_, i) => bytes.slice(i * size, (i + 1) * size)),
});

/** Elements of many sizes, so that words and single bytes are copied. */
const TYPES: readonly { dtype: DType; size: number; values(bytes: Uint8Array<ArrayBuffer>): unknown }[] = [
  { dtype: 'int8', size: 1, values: ({ buffer }) => new Int8Array(buffer) },
  { dtype: 'int16', size: 2, values: ({ buffer }) => new Int16Array(buffer) },
  { dtype: 'float32', size: 4, values: ({ buffer }) => new Float32Array(buffer) },
  { dtype: 'float64', size: 8, values: ({ buffer }) => new Float64Array(buffer) },
  opaque(12),
  opaque(5),
];

/** Visits the elements of a box: their numbers in the array and in the box. */
function visit(
  shape: readonly number[],
  start: readonly number[],
  count: readonly number[],
  work: (inArray: number, inBox: number) => void,
): void {
  const elements = count.reduce((product, n) => product * n, 1);
  for (let i = 0; i < elements; i++) {
    let rest = i;
    let at = 0;
    let step = 1;
    for (let d = shape.length - 1; d >= 0; d--) {
      at += ((start[d] as number) + (rest % (count[d] as number))) * step;
      rest = Math.floor(rest / (count[d] as number));
      step *= shape[d] as number;
    }
    work(at, i);
  }
}

// Many small blocks, each a part of a row, are read in a way of their own.
test('boxes out of many parts of rows are what was written last', () => {
  let reads = 0;
  for (let round = 0; round < repeats(300); round++) {
    const { dtype, size, values } = TYPES[below(TYPES.length)] as (typeof TYPES)[number];
    const shape = Array.from({ length: 1 + below(3) }, () => 1 + below(12));
    const last = shape.length - 1;
    const total = shape.reduce((product, n) => product * n, 1);
    const model = new Uint8Array(total * size);
    const file = File.createSync(memoryStorage(), { table: { merge: next() < 0.5 } });
    // Something before it and between, so that elements do not begin at multiples of their size.
    const odd = file.createDataset('odd', { dtype: 'int8', shape: [100] });
    const dataset = file.createDataset('x', { dtype, shape });
    const boxes = next() < 0.1 ? 1 : 0;
    for (let post = 0; post < 17 + below(120); post++) {
      if (next() < 0.2) odd.write(Int8Array.of(1), { start: [below(100)], count: [1] });
      const start = shape.map((n) => below(n));
      const count = shape.map((n, d) => (d === last || boxes ? 1 + below(Math.min(5, n - (start[d] as number))) : 1));
      const elements = count.reduce((product, n) => product * n, 1);
      const bytes = Uint8Array.from({ length: elements * size }, () => below(256));
      dataset.write(values(bytes) as never, { start, count });
      visit(shape, start, count, (to, from) => model.set(bytes.subarray(from * size, (from + 1) * size), to * size));
      if (next() < 0.03) file.flushSync();
    }
    file.flushSync();
    for (let k = 0; k < 5; k++) {
      const start = shape.map((n) => (next() < 0.5 ? 0 : below(n)));
      const count = shape.map((n, d) => (k === 0 ? n - (start[d] as number) : 1 + below(n - (start[d] as number))));
      const expected = new Uint8Array(count.reduce((product, n) => product * n, size));
      visit(shape, start, count, (from, to) => expected.set(model.subarray(from * size, (from + 1) * size), to * size));
      expect(dataset.readSync({ start, count }, { raw: true })).toEqual(expected);
      reads++;
    }
    file.discard();
  }
  expect(reads).toBe(5 * repeats(300));
  count('runs', { reads });
});
