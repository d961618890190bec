import { expect, test } from 'vitest';
import { mergeTables } from '../../src/log/format/table-merge.ts';
import { Table } from '../../src/log/format/table-read.ts';
import { entry, i32, i64, table } from './spelled.ts';

// H5Dwrite_n may write several blocks to one place. In a record of a one-dimensional dataset (MUL and REC), and in a scalar (MUL),
// blocks take no bytes: the entry says how many there are and nothing else.
const RECORD = entry(0, 0x21, 1000, 12, i64(5), i32(3));
const SCALAR = entry(1, 0x01, 1012, 16, i32(2));

const OPTIONS = { merge: true, encode: true, share: true, compressFrom: Infinity };

/** The only block of each entry, how often it was written, and its data. */
function decoded(bytes: Uint8Array): unknown[] {
  const reader = new Table(bytes, 0);
  return [...reader.entries()].map((found) => {
    const rank = found.id === 0 ? 1 : 0;
    const starts = new Float64Array(found.count * rank);
    const counts = new Float64Array(found.count * rank);
    reader.blocks(found, { rank, starts, counts, at: 0 });
    const { count, times, offset, size } = found;
    return { count, times, offset, size, starts: [...starts], counts: [...counts] };
  });
}

const EXPECTED = [
  { count: 1, times: 3, offset: 1000, size: 12, starts: [5], counts: [1] },
  { count: 1, times: 2, offset: 1012, size: 16, starts: [], counts: [] },
];

test('several elements written to one record or to a scalar are one block, of which the last element counts', () => {
  expect([RECORD.length, SCALAR.length]).toEqual([40, 32]);
  expect(decoded(table([RECORD, SCALAR]))).toEqual(EXPECTED);
});

test('they stay what they are, to the byte, when tables are merged', () => {
  const shapes = [
    { shape: [9], records: true },
    { shape: [], records: false },
  ];
  const parts = [
    { bytes: table([RECORD]), address: 0 },
    { bytes: table([SCALAR]), address: 0 },
  ];
  const whole = mergeTables(parts, (id) => shapes[id], OPTIONS);
  expect(Buffer.from(whole).toString('hex')).toBe(table([RECORD, SCALAR]).toString('hex'));
});

test('a file that claims two thousand million of them costs nothing', () => {
  const claimed = entry(1, 0x01, 1000, 2 ** 31 - 1, i32(2 ** 31 - 1));
  expect(decoded(table([claimed]))).toMatchObject([{ count: 1, times: 2 ** 31 - 1 }]);
});

test('where blocks do take bytes, an entry without them is refused, and so is a reference to one', () => {
  const plain = entry(0, 0x01, 1000, 12, i32(3));
  expect(() => decoded(table([plain]))).toThrow(expect.objectContaining({ code: 'FORMAT' }));
  const reference = entry(0, 0x31, 1012, 12, i64(6), i64(-RECORD.length));
  expect(() => decoded(table([RECORD, reference]))).toThrow(/a selection that takes no bytes/);
});
