import { type Dataset, type DType, File, T } from 'h5log';
import { type MemoryStorage, memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

const RECORD = T.compound({ n: 'int32', s: T.string(), rows: T.vlen('float64'), to: T.reference });

/** Types whose elements point elsewhere, with some values of each. */
const CASES: readonly [string, DType, unknown[]][] = [
  ['texts', T.string(), ['a', '', 'größer', 'x'.repeat(70_000), 'last', '\u{1f600}']],
  ['ASCII', T.string({ charset: 'ascii' }), ['a', 'bc', '', 'd', 'e', 'f']],
  ['sequences', T.vlen('int16'), [[1, 2], [], [3], [-1], [5, 6, 7], [8]].map((list) => Int16Array.from(list))],
  ['nested', T.vlen(T.vlen(T.string())), [[['a', 'b'], []], [], [['c']], [[], []], [['', 'd']], [['e']]]],
  ['arrays', T.array(T.string(), [2]), Array.from({ length: 6 }, (_, i) => [`${i}`, `also ${i}`])],
  ['references', T.reference, ['/', '/g', '', '/g/inner', '/texts', '/g']],
  [
    'records',
    RECORD,
    Array.from({ length: 6 }, (_, i) => ({
      n: i,
      s: `text ${i}`,
      rows: Float64Array.from({ length: i }, (_, k) => k / 2),
      to: i % 2 ? '/g' : '',
    })),
  ],
  [
    'sequences of records',
    T.vlen(RECORD),
    [[{ n: 1, s: 'x', rows: Float64Array.of(2), to: '/g' }], [], [], [], [], []],
  ],
];

interface Scene {
  readonly storage: MemoryStorage;
  readonly file: File;
  readonly d: Dataset;
}

function scene(dtype: DType, options: object = {}, open: object = {}): Scene {
  const storage = memoryStorage();
  const file = File.createSync(storage, open);
  file.createGroup('g').createGroup('inner');
  file.createDataset('texts', { dtype: T.string(), shape: [1] });
  const d = file.createDataset('d', { dtype, shape: [6], maxShape: [null], ...options });
  return { storage, file, d };
}

const box = (start: number, count: number) => ({ start: [start], count: [count] });

describe.each(CASES)('logged %s', (_, dtype, values) => {
  test('are read before the flush, after it, and by others', async () => {
    const { storage, file, d } = scene(dtype);
    d.write(values.slice(0, 4) as never, box(0, 4));
    expect(d.readSync(box(0, 4))).toEqual(values.slice(0, 4));
    file.flushSync();
    expect(d.readSync(box(0, 4))).toEqual(values.slice(0, 4));
    d.write(values.slice(4) as never, box(4, 2));
    d.write([values[5]] as never, box(0, 1));
    const expected = [values[5], ...values.slice(1)];
    expect(d.readSync()).toEqual(expected);
    expect(await d.read()).toEqual(expected);
    await file.close();
    const again = await File.open(storage, { mode: 'r' });
    expect(again.dataset('d').readSync()).toEqual(expected);
    expect(await again.dataset('d').readMany([5, 0, 0], [1, 2, 2])).toEqual([
      expected[5],
      expected[0],
      expected[1],
      expected[0],
      expected[1],
    ]);
    await again.close();
  });

  test('with filters, in chunks', () => {
    const { storage, file, d } = scene(dtype, { filters: ['shuffle', { deflate: 4 }], chunks: [4] });
    d.write(values as never);
    file.flushSync();
    d.write([values[3]] as never, box(5, 1));
    file.closeSync();
    const again = File.openSync(storage);
    expect(again.dataset('d').readSync()).toEqual([...values.slice(0, 5), values[3]]);
  });

  test('that nobody wrote are empty', () => {
    const { storage, file, d } = scene(dtype);
    const empty = d.readSync();
    d.write([values[2]] as never, box(2, 1));
    file.closeSync();
    const again = File.openSync(storage).dataset('d').readSync() as unknown[];
    expect(again[0]).toEqual((empty as unknown[])[0]);
    expect(again[2]).toEqual(values[2]);
  });
});

describe('references', () => {
  test('lead to an object wherever it moves, and nowhere once it is gone', () => {
    const { storage, file, d } = scene(T.reference);
    d.write(['/g', '/texts', '/g/inner'], box(0, 3));
    file.flushSync();
    file.attributes.set('note', 1);
    file.group('g').attributes.set('note', 'x');
    file.move('texts', 'g/words');
    file.flushSync();
    file.delete('g/inner');
    file.createGroup('g/inner');
    file.flushSync();
    expect(d.readSync(box(0, 3))).toEqual(['/g', '/g/words', '']);
    file.closeSync();
    const again = File.openSync(storage, { mode: 'r+' });
    expect(again.dataset('d').readSync(box(0, 3))).toEqual(['/g', '/g/words', '']);
    // A number is never given twice.
    again.dataset('d').write(['/g/inner'], box(3, 1));
    again.closeSync();
    const last = File.openSync(storage);
    expect(last.dataset('d').readSync(box(0, 4))).toEqual(['/g', '/g/words', '', '/g/inner']);
    expect([...last.group('g').attributes.keys()]).toEqual(['note']);
    expect([...last.attributes.keys()]).toEqual(['note']);
    const first = File.openSync(storage, { asOf: 1 });
    expect(first.dataset('d').readSync(box(0, 3))).toEqual(['/g', '/texts', '/g/inner']);
  });

  test('to nothing are refused, and nothing is posted', () => {
    const { file, d } = scene(T.reference);
    expect(() => d.write(['/g', '/nothing'], box(0, 2))).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    expect(file.pending).toEqual({ requests: 0, bytes: 0 });
  });
});
