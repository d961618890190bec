import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Table } from '../../src/log/format/table-read.ts';
import { folder } from './fixtures.ts';
import { spelled } from './spelled.ts';

/** Every entry of a table with its blocks. */
function decoded(bytes: Uint8Array, rank: number): unknown[] {
  const table = new Table(bytes, 0);
  return [...table.entries()].map((entry) => {
    const starts = new Float64Array(entry.count * rank);
    const counts = new Float64Array(entry.count * rank);
    table.blocks(entry, { rank, starts, counts, at: 0 });
    const { at, section, id, flags, offset, size, record, holder, body } = entry;
    return { at, section, id, flags, offset, size, record, holder, body, starts: [...starts], counts: [...counts] };
  });
}

// One rank, two float64 datasets /ra and /rb of shape (3, 4, 5), unlimited in dimension 0: the same block in each record.
const RECORDS = spelled(`
  01 00 00 00 00 00 00 00              | 000 one section
  28 01 00 00 00 00 00 00              | 008 it ends at 296, the size of the table
  44 00 00 00 00 00 00 00 20 00 00 00  | 010 68 bytes, dataset 0, REC
  a0 0b 00 00 00 00 00 00              | 01c file offset 2976
  a0 00 00 00 00 00 00 00              | 024 160 bytes: 4 x 5 x 8
  00 00 00 00 00 00 00 00              | 02c record 0
  00 00 00 00 00 00 00 00              | 034 start of dimension 1
  00 00 00 00 00 00 00 00              | 03c start of dimension 2
  04 00 00 00 00 00 00 00              | 044 count of dimension 1
  05 00 00 00 00 00 00 00              | 04c count of dimension 2
  24 00 00 00 01 00 00 00 10 00 00 00  | 054 36 bytes, dataset 1, REF; REC is dropped: the same record
  40 0c 00 00 00 00 00 00              | 060 file offset 3136
  a0 00 00 00 00 00 00 00              | 068 160 bytes
  bc ff ff ff ff ff ff ff              | 070 -68: the entry at 010
  2c 00 00 00 00 00 00 00 30 00 00 00  | 078 44 bytes, dataset 0, REF and REC
  e0 0c 00 00 00 00 00 00              | 084 file offset 3296
  a0 00 00 00 00 00 00 00              | 08c 160 bytes
  01 00 00 00 00 00 00 00              | 094 record 1
  98 ff ff ff ff ff ff ff              | 09c -104: the entry at 010
  2c 00 00 00 01 00 00 00 30 00 00 00  | 0a4 44 bytes, dataset 1, REF and REC
  80 0d 00 00 00 00 00 00              | 0b0 file offset 3456
  a0 00 00 00 00 00 00 00              | 0b8 160 bytes
  01 00 00 00 00 00 00 00              | 0c0 record 1
  6c ff ff ff ff ff ff ff              | 0c8 -148: the entry at 010
  2c 00 00 00 00 00 00 00 30 00 00 00  | 0d0 44 bytes, dataset 0, REF and REC
  20 0e 00 00 00 00 00 00              | 0dc file offset 3616
  a0 00 00 00 00 00 00 00              | 0e4 160 bytes
  02 00 00 00 00 00 00 00              | 0ec record 2
  40 ff ff ff ff ff ff ff              | 0f4 -192: the entry at 010
  2c 00 00 00 01 00 00 00 30 00 00 00  | 0fc 44 bytes, dataset 1, REF and REC
  c0 0e 00 00 00 00 00 00              | 108 file offset 3776
  a0 00 00 00 00 00 00 00              | 110 160 bytes
  02 00 00 00 00 00 00 00              | 118 record 2
  14 ff ff ff ff ff ff ff              | 120 -236: the entry at 010
`);

test('records of two datasets that share a selection: every field, to the last byte', () => {
  expect(RECORDS).toHaveLength(296);
  const body = { flags: 0x20, at: 0x34, end: 0x54 };
  const expected = [
    { at: 0x10, id: 0, flags: 0x20, offset: 2976, record: 0 },
    { at: 0x54, id: 1, flags: 0x10, offset: 3136, record: 0 },
    { at: 0x78, id: 0, flags: 0x30, offset: 3296, record: 1 },
    { at: 0xa4, id: 1, flags: 0x30, offset: 3456, record: 1 },
    { at: 0xd0, id: 0, flags: 0x30, offset: 3616, record: 2 },
    { at: 0xfc, id: 1, flags: 0x30, offset: 3776, record: 2 },
  ].map(({ record, ...rest }) => ({
    ...rest,
    record,
    section: 0,
    size: 160,
    holder: 0,
    body,
    starts: [record, 0, 0],
    counts: [1, 4, 5],
  }));
  expect(decoded(RECORDS, 3)).toEqual(expected);
});

test('these are the bytes that the original wrote into recshare_1r', () => {
  const file = readFileSync(join(folder, 'recshare_1r.h5'));
  expect(file.indexOf(RECORDS)).toBe(3936);
});

test('no byte is left over and none is missing: a table that is longer or shorter is refused', () => {
  const longer = Buffer.concat([RECORDS, Buffer.alloc(8)]);
  longer.writeBigInt64LE(304n, 8);
  expect(() => decoded(longer, 3)).toThrow(/table entry of 0 bytes/);
  const shorter = Buffer.from(RECORDS.subarray(0, 288));
  shorter.writeBigInt64LE(288n, 8);
  expect(() => decoded(shorter, 3)).toThrow(/table entry of 44 bytes where 36 are left/);
  const ragged = Buffer.from(RECORDS);
  ragged.writeInt32LE(60, 0x10); // the first entry claims to be one coordinate shorter: what follows is none
  expect(() => decoded(ragged, 3)).toThrow(expect.objectContaining({ code: 'FORMAT' }));
});

// Dimensions (6, 5), blocks (0,0)+(1,5) and (2,0)+(2,5), several and encoded with the step 5 of the original.
test('encoded blocks that span the inner dimension', () => {
  const body = spelled(`
    02 00 00 00              | two blocks
    05 00 00 00 00 00 00 00  | step of dimension 0: the size of dimension 1
    00 00 00 00 00 00 00 00  | start 0 x 5 + 0
    0a 00 00 00 00 00 00 00  | start 2 x 5 + 0
    0a 00 00 00 00 00 00 00  | count 1 x 5 + 5
    0f 00 00 00 00 00 00 00  | count 2 x 5 + 5
  `);
  const head = spelled(`
    01 00 00 00 00 00 00 00              | one section
    58 00 00 00 00 00 00 00              | it ends at 88
    48 00 00 00 07 00 00 00 05 00 00 00  | 72 bytes, dataset 7, MUL and ENC
    00 04 00 00 00 00 00 00              | file offset 1024
    78 00 00 00 00 00 00 00              | 120 bytes: (5 + 10) x 8
  `);
  const bytes = Buffer.concat([head, body]);
  expect(bytes).toHaveLength(88);
  expect(decoded(bytes, 2)).toEqual([
    {
      at: 16,
      section: 0,
      id: 7,
      flags: 0x05,
      offset: 1024,
      size: 120,
      record: -1,
      holder: 7,
      body: { flags: 0x05, at: 48, end: 88 },
      starts: [0, 0, 2, 0],
      counts: [1, 5, 2, 5],
    },
  ]);
});
