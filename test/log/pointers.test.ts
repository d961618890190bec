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

test('nested texts in several heap collections are read as often as one likes', async () => {
  const dtype = T.vlen(T.string());
  const values = [['a'], ['x'.repeat(70_000), 'b'], [], ['c'], ['y'.repeat(70_000)], ['d']];
  const { storage, file, d } = scene(dtype);
  d.write(values);
  file.closeSync();
  const again = File.openSync(storage).dataset('d');
  for (let time = 0; time < 3; time++) expect(again.readSync()).toEqual(values);
  expect(await again.read()).toEqual(values);
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

describe('posts that point elsewhere', () => {
  test('count with what they point to, and flush when the buffer is full', () => {
    const { storage, file, d } = scene(T.string(), {}, { bufferLimit: 200, onBufferFull: 'flush' });
    for (let i = 0; i < 6; i++) {
      d.write([`value ${i} of thirty characters`] as never, box(i, 1));
      expect(file.pending.bytes).toBeLessThanOrEqual(200);
    }
    expect(file.sequence).toBe(1);
    // More than the limit by itself, after a flush of what was there.
    d.write(['x'.repeat(5000)] as never, box(2, 1));
    d.append(['y'.repeat(500)] as never);
    file.closeSync();
    const texts = File.openSync(storage).dataset('d').readSync() as string[];
    expect(texts.map(({ length }) => length)).toEqual([28, 28, 5000, 28, 28, 28, 500]);
  });

  test('that find no room are refused as a whole', () => {
    const { file, d } = scene(T.string(), {}, { bufferLimit: 100 });
    const full = expect.objectContaining({ code: 'BUFFER_FULL' });
    d.write(['a'] as never, box(0, 1));
    const { pending } = file;
    expect(() => d.write(['x'.repeat(200)] as never, box(1, 1))).toThrow(full);
    expect(() => d.append(['x'.repeat(200)] as never)).toThrow(full);
    expect(() => d.writeMany(['x'.repeat(99), 'y'] as never, [1, 3], [1, 1])).toThrow(full);
    expect(file.pending).toEqual(pending);
    expect(d.shape).toEqual([6]);
    expect(d.readSync()).toEqual(['a', '', '', '', '', '']);
  });

  test('of a wrong value leave nothing behind', () => {
    const { file, d } = scene(T.vlen(T.string()));
    const wrong = [['a'], ['b', 5]] as never;
    expect(() => d.write(wrong, box(0, 2))).toThrow(expect.objectContaining({ code: 'DTYPE' }));
    expect(file.pending).toEqual({ requests: 0, bytes: 0 });
  });

  test('are read while and after a dataset is resized', () => {
    const { storage, file, d } = scene(T.string());
    d.write(['a', 'b', 'c', 'd', 'e', 'f'] as never);
    d.resize([3]);
    d.resize([5]);
    expect(d.readSync()).toEqual(['a', 'b', 'c', '', '']);
    file.flushSync();
    d.resize([1]);
    d.resize([4]);
    expect(d.readSync()).toEqual(['a', '', '', '']);
    file.closeSync();
    expect(File.openSync(storage).dataset('d').readSync()).toEqual(['a', '', '', '']);
  });

  test('to a dataset that is deleted before the flush leave no trace', () => {
    const { storage, file, d } = scene(T.string());
    d.write(['a', 'b', 'c', 'd', 'e', 'f'] as never);
    file.delete('d');
    file.closeSync();
    const again = File.openSync(storage);
    expect([...again.keys()]).toEqual(['g', 'texts']);
    expect(again.dataset('texts').readSync()).toEqual(['']);
  });

  test('in columns', async () => {
    const { file, d } = scene(RECORD);
    const columns = {
      n: Int32Array.of(1, 2),
      s: ['x', 'y'],
      rows: [Float64Array.of(1), new Float64Array(0)],
      to: ['/g', ''],
    };
    d.write(columns as never, box(1, 2), { columns: true } as never);
    file.flushSync();
    expect(await d.read(box(1, 2), { columns: true } as never)).toEqual(columns);
  });

  test('make a file of version 2, which h5log 0.1 refuses; others stay of version 1', () => {
    const versionsIn = (bytes: Uint8Array): number[] => {
      const text = Buffer.from(bytes);
      const found: number[] = [];
      for (let at = text.indexOf('H5LCMT\0'); at >= 0; at = text.indexOf('H5LCMT\0', at + 1))
        found.push(text[at + 7] ?? 0);
      return found;
    };
    const plain = memoryStorage();
    const file = File.createSync(plain, { publish: 'never' });
    file.createDataset('n', { dtype: 'int8', shape: [1] });
    file.closeSync();
    expect(Math.max(...versionsIn(plain.bytes()))).toBe(1);
    const { storage, file: pointing } = scene(T.string(), {}, { publish: 'never' });
    pointing.closeSync();
    expect(Math.max(...versionsIn(storage.bytes()))).toBe(2);
    const again = File.openSync(storage, { mode: 'r+' });
    again.delete('d');
    again.delete('texts');
    again.closeSync();
    expect(versionsIn(storage.bytes()).at(-1)).toBe(2);
  });
});
