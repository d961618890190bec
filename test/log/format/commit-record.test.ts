import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { lookup3 } from '../../../src/base/checksum.ts';
import { encodeRecord, MAGIC, parseRecords, recordSize } from '../../../src/log/format/commit-record.ts';

const record = {
  sequence: 3,
  time: Date.UTC(2026, 0, 1),
  requests: 7,
  root: 1000,
  start: 500,
  end: 2000,
  kind: 2,
  version: 2,
  sectionsSummed: true,
  heapsFirst: true,
  world: 4,
  ranks: [
    { rank: 1, end: 600, checksum: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) },
    { rank: 3, end: 700, checksum: new Uint8Array(8) },
  ],
  rest: Uint8Array.of(8, 7, 6, 5, 4, 3, 2, 1),
} as const;

test('records that lie one after the other are read as they were written', () => {
  const bytes = encodeRecord(record);
  expect(bytes.length).toBe(recordSize(2));
  expect(parseRecords(Uint8Array.from([...bytes, ...bytes]), 0)).toEqual([record, record]);
});

test('a record of another version is refused by its number, although its checksum is right', () => {
  const bytes = encodeRecord(record);
  bytes[7] = 3;
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(bytes.length - 4, lookup3(bytes.subarray(0, -4)), true);
  expect(() => parseRecords(bytes, 100)).toThrow(
    'commit record of version 3: this h5log knows versions 1 to 2 (at byte 100)',
  );
});

test('a file whose last record is of another version is refused', () => {
  const storage = memoryStorage();
  File.createSync(storage).closeSync();
  const bytes = new Uint8Array(storage.blocking.size());
  storage.blocking.read(bytes, 0);
  const at = Buffer.from(bytes).lastIndexOf(MAGIC);
  bytes[at + 7] = 9;
  expect(() => File.openSync(memoryStorage(bytes))).toThrow(
    expect.objectContaining({ code: 'FORMAT', message: expect.stringContaining('commit record of version 9') }),
  );
});
