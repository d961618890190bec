import fc from 'fast-check';
import { type CreateOptions, File, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { ClassicTable, ClassicWriter, openTable } from '../../../src/log/format/classic.ts';
import { mergeTables } from '../../../src/log/format/table-merge.ts';
import { runs } from '../../seed.ts';

// Written by hand from the document of the classic format, field by field: `=ld` is the file offset of the data log.

interface Golden {
  readonly options?: CreateOptions['table'];
  readonly write: (file: File) => void;
  /** Bytes of the last table. */
  readonly little: string;
  readonly big: string;
}

const box = (start: number[], count: number[]) => ({ start, count });

const FORMS: Readonly<Record<string, Golden>> = {
  'a subarray': {
    write: (file) =>
      file.createDataset('d', { dtype: 'int16', shape: [4, 6] }).write([1, 2, 3, 4, 5, 6], box([1, 2], [2, 3])),
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 | logvol_metadata
      31                                           | VERSION '1'
      01 00 00 00                                  | format: LOGVOL_CLASSIC = ONE
      01 00 00 00 00 00 00 00                      | num_entries
      00 00 00 00                                  | big_endian: FALSE
      00 00 00 00 00 00 00 00                      | dsetid
      00 00 00 00                                  | selection_type: SUBARRAY
      01 00 00 00 00 00 00 00                      | start 1
      02 00 00 00 00 00 00 00                      |       2
      02 00 00 00 00 00 00 00                      | count 2
      03 00 00 00 00 00 00 00                      |       3
      00 00 00 00                                  | filter: NONE
      =ld+16                                       | dataptr: behind the header of the data log
      00 00 00 00 00 00 00 00                      | nextptr: there is none
      00 00 00 00 00 00 00 00                      | directory: dataset 0
      02 00 00 00 00 00 00 00                      | of 2 dimensions
      02 00 00 00 00 00 00 00                      | elements of 2 bytes
      1c 00 00 00 00 00 00 00                      | first entry at 28
      01 00 00 00 00 00 00 00                      | 1 dataset`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 | logvol_metadata
      31                                           | VERSION '1'
      00 00 00 01                                  | format: LOGVOL_CLASSIC = ONE
      00 00 00 00 00 00 00 01                      | num_entries
      00 00 00 01                                  | big_endian: TRUE
      00 00 00 00 00 00 00 00                      | dsetid
      00 00 00 00                                  | selection_type: SUBARRAY
      00 00 00 00 00 00 00 01                      | start 1
      00 00 00 00 00 00 00 02                      |       2
      00 00 00 00 00 00 00 02                      | count 2
      00 00 00 00 00 00 00 03                      |       3
      00 00 00 00                                  | filter: NONE
      =ld+16                                       | dataptr
      00 00 00 00 00 00 00 00                      | nextptr
      00 00 00 00 00 00 00 00                      | directory: dataset 0
      00 00 00 00 00 00 00 02                      | of 2 dimensions
      00 00 00 00 00 00 00 02                      | elements of 2 bytes
      00 00 00 00 00 00 00 1c                      | first entry at 28
      00 00 00 00 00 00 00 01                      | 1 dataset`,
  },
  'a scalar': {
    write: (file) => file.createDataset('d', { dtype: 'float64', shape: [] }).write(1.5),
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      01 00 00 00                                     | LOGVOL_CLASSIC
      01 00 00 00 00 00 00 00                         | num_entries
      00 00 00 00  00 00 00 00 00 00 00 00            | FALSE; dsetid 0
      00 00 00 00                                     | SUBARRAY, of no dimensions
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      00 00 00 00 00 00 00 00                         | directory: dataset 0
      00 00 00 00 00 00 00 00                         | of no dimensions
      08 00 00 00 00 00 00 00                         | elements of 8 bytes
      1c 00 00 00 00 00 00 00                         | first entry
      01 00 00 00 00 00 00 00                         | 1 dataset`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      00 00 00 01                                     | LOGVOL_CLASSIC
      00 00 00 00 00 00 00 01                         | num_entries
      00 00 00 01  00 00 00 00 00 00 00 00            | TRUE; dsetid 0
      00 00 00 00                                     | SUBARRAY, of no dimensions
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      00 00 00 00 00 00 00 00                         | directory: dataset 0
      00 00 00 00 00 00 00 00                         | of no dimensions
      00 00 00 00 00 00 00 08                         | elements of 8 bytes
      00 00 00 00 00 00 00 1c                         | first entry
      00 00 00 00 00 00 00 01                         | 1 dataset`,
  },
  'points, of which two are neighbours': {
    write: (file) =>
      file.createDataset('d', { dtype: 'int8', shape: [4, 4] }).write(
        [7, 8, 9],
        select.points([
          [0, 1],
          [0, 2],
          [3, 0],
        ]),
      ),
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      01 00 00 00                                     | LOGVOL_CLASSIC
      01 00 00 00 00 00 00 00                         | num_entries
      00 00 00 00  00 00 00 00 00 00 00 00            | FALSE; dsetid 0
      01 00 00 00                                     | selection_type: POINT
      03 00 00 00 00 00 00 00                         | num_point
      00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 | start 0, 1
      00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 | start 0, 2
      03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 | start 3, 0
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 | directory: dataset 0 of 2 dimensions
      01 00 00 00 00 00 00 00 1c 00 00 00 00 00 00 00 | elements of 1 byte, first entry
      01 00 00 00 00 00 00 00                         | 1 dataset`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      00 00 00 01                                     | LOGVOL_CLASSIC
      00 00 00 00 00 00 00 01                         | num_entries
      00 00 00 01  00 00 00 00 00 00 00 00            | TRUE; dsetid 0
      00 00 00 01                                     | selection_type: POINT
      00 00 00 00 00 00 00 03                         | num_point
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 | start 0, 1
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 | start 0, 2
      00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00 | start 3, 0
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 | directory: dataset 0 of 2 dimensions
      00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 1c | elements of 1 byte, first entry
      00 00 00 00 00 00 00 01                         | 1 dataset`,
  },
  'one point alone': {
    write: (file) => file.createDataset('d', { dtype: 'int8', shape: [9] }).write([7], select.points([[5]])),
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      01 00 00 00 01 00 00 00 00 00 00 00             | LOGVOL_CLASSIC, num_entries
      00 00 00 00  00 00 00 00 00 00 00 00            | FALSE; dsetid 0
      01 00 00 00                                     | POINT
      01 00 00 00 00 00 00 00                         | num_point
      05 00 00 00 00 00 00 00                         | start
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 | directory: dataset 0 of 1 dimension
      01 00 00 00 00 00 00 00 1c 00 00 00 00 00 00 00 | elements of 1 byte, first entry
      01 00 00 00 00 00 00 00                         | 1 dataset`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      00 00 00 01 00 00 00 00 00 00 00 01             | LOGVOL_CLASSIC, num_entries
      00 00 00 01  00 00 00 00 00 00 00 00            | TRUE; dsetid 0
      00 00 00 01                                     | POINT
      00 00 00 00 00 00 00 01                         | num_point
      00 00 00 00 00 00 00 05                         | start
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 | directory: dataset 0 of 1 dimension
      00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 1c | elements of 1 byte, first entry
      00 00 00 00 00 00 00 01                         | 1 dataset`,
  },
  'three entries of two datasets, each with a pointer to the next of its own': {
    write: (file) => {
      const a = file.createDataset('a', { dtype: 'int8', shape: [9] });
      const b = file.createDataset('b', { dtype: 'int16', shape: [9] });
      a.write([1, 2], box([0], [2]));
      b.write([3, 4], box([2], [2]));
      a.write([5, 6], box([6], [2]));
    },
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      01 00 00 00                                     | LOGVOL_CLASSIC
      03 00 00 00 00 00 00 00                         | num_entries
      00 00 00 00  00 00 00 00 00 00 00 00            | at 28: FALSE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 | start 0, count 2
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      50 00 00 00 00 00 00 00                         | nextptr: 80
      00 00 00 00  00 00 00 00 00 00 00 00            | at 80: FALSE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      06 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 | start 6, count 2
      00 00 00 00                                     | NONE
      =ld+18                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr: none
      00 00 00 00  01 00 00 00 00 00 00 00            | at 132: FALSE; dsetid 1
      00 00 00 00                                     | SUBARRAY
      02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 | start 2, count 2
      00 00 00 00                                     | NONE
      =ld+20                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr: none
      00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 | directory: dataset 0 of 1 dimension
      01 00 00 00 00 00 00 00 1c 00 00 00 00 00 00 00 | elements of 1 byte, first entry at 28
      01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 | dataset 1 of 1 dimension
      02 00 00 00 00 00 00 00 84 00 00 00 00 00 00 00 | elements of 2 bytes, first entry at 132
      02 00 00 00 00 00 00 00                         | 2 datasets`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      00 00 00 01                                     | LOGVOL_CLASSIC
      00 00 00 00 00 00 00 03                         | num_entries
      00 00 00 01  00 00 00 00 00 00 00 00            | at 28: TRUE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 | start 0, count 2
      00 00 00 00                                     | NONE
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 50                         | nextptr: 80
      00 00 00 01  00 00 00 00 00 00 00 00            | at 80: TRUE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 06 00 00 00 00 00 00 00 02 | start 6, count 2
      00 00 00 00                                     | NONE
      =ld+18                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr: none
      00 00 00 01  00 00 00 00 00 00 00 01            | at 132: TRUE; dsetid 1
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 02 | start 2, count 2
      00 00 00 00                                     | NONE
      =ld+20                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr: none
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 | directory: dataset 0 of 1 dimension
      00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 1c | elements of 1 byte, first entry at 28
      00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 01 | dataset 1 of 1 dimension
      00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 84 | elements of 2 bytes, first entry at 132
      00 00 00 00 00 00 00 02                         | 2 datasets`,
  },
  'data that deflate made smaller': {
    write: (file) =>
      file
        .createDataset('d', { dtype: 'int8', shape: [4096], chunks: [4096], filters: [{ deflate: 9 }] })
        .write(new Int8Array(4096)),
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      01 00 00 00 01 00 00 00 00 00 00 00             | LOGVOL_CLASSIC, num_entries
      00 00 00 00  00 00 00 00 00 00 00 00            | FALSE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 00 00 10 00 00 00 00 00 00 | start 0, count 4096
      01 00 00 00                                     | filter: ZLIB
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      =stored                                         | bytes of the stream: nothing else says how many
      00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 | directory: dataset 0 of 1 dimension
      01 00 00 00 00 00 00 00 1c 00 00 00 00 00 00 00 | elements of 1 byte, first entry
      01 00 00 00 00 00 00 00                         | 1 dataset`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      00 00 00 01 00 00 00 00 00 00 00 01             | LOGVOL_CLASSIC, num_entries
      00 00 00 01  00 00 00 00 00 00 00 00            | TRUE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 10 00 | start 0, count 4096
      00 00 00 01                                     | filter: ZLIB
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      =stored                                         | bytes of the stream
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 | directory: dataset 0 of 1 dimension
      00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 1c | elements of 1 byte, first entry
      00 00 00 00 00 00 00 01                         | 1 dataset`,
  },
  'data of other filters': {
    write: (file) =>
      file
        .createDataset('d', { dtype: 'int16', shape: [2048], chunks: [2048], filters: ['shuffle', { deflate: 9 }] })
        .write(new Int16Array(2048)),
    little: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      01 00 00 00 01 00 00 00 00 00 00 00             | LOGVOL_CLASSIC, num_entries
      00 00 00 00  00 00 00 00 00 00 00 00            | FALSE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 00 00 08 00 00 00 00 00 00 | start 0, count 2048
      02 00 00 00                                     | filter: TWO, those of the dataset
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      =stored                                         | bytes of the stream
      00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 | directory: dataset 0 of 1 dimension
      02 00 00 00 00 00 00 00 1c 00 00 00 00 00 00 00 | elements of 2 bytes, first entry
      01 00 00 00 00 00 00 00                         | 1 dataset`,
    big: `
      6c 6f 67 76 6f 6c 5f 6d 65 74 61 64 61 74 61 31 | logvol_metadata1
      00 00 00 01 00 00 00 00 00 00 00 01             | LOGVOL_CLASSIC, num_entries
      00 00 00 01  00 00 00 00 00 00 00 00            | TRUE; dsetid 0
      00 00 00 00                                     | SUBARRAY
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 08 00 | start 0, count 2048
      00 00 00 02                                     | filter: TWO, those of the dataset
      =ld+16                                          | dataptr
      00 00 00 00 00 00 00 00                         | nextptr
      =stored                                         | bytes of the stream
      00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 | directory: dataset 0 of 1 dimension
      00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 1c | elements of 2 bytes, first entry
      00 00 00 00 00 00 00 01                         | 1 dataset`,
  },
};

const DATA = Buffer.from('logvol_data1');

function spelled(text: string, numbers: Readonly<Record<string, number>>, big: boolean): Buffer {
  const parts = text.split('\n').map((line) => {
    const digits = (line.split('|')[0] as string).trim();
    const named = /^=(\w+)(?:\+(\d+))?$/.exec(digits);
    if (!named) return Buffer.from(digits.replaceAll(' ', ''), 'hex');
    const value = BigInt((numbers[named[1] as string] as number) + Number(named[2] ?? 0));
    const bytes = Buffer.alloc(8);
    if (big) bytes.writeBigInt64BE(value);
    else bytes.writeBigInt64LE(value);
    return bytes;
  });
  return Buffer.concat(parts);
}

function imageOf(table: CreateOptions['table'], write: (file: File) => void): Buffer {
  const storage = memoryStorage();
  const file = File.createSync(storage, { table: { format: 'classic', ...table }, publish: 'never' });
  write(file);
  file.closeSync();
  const bytes = Buffer.alloc(storage.blocking.size());
  storage.blocking.read(bytes, 0);
  return bytes;
}

describe('the bytes of a classic table', () => {
  for (const [name, { write, little, big }] of Object.entries(FORMS)) {
    test.each([
      ['little', little],
      ['big', big],
    ])(`${name}, %s-endian`, (order, text) => {
      const image = imageOf({ bigEndian: order === 'big' }, write);
      const ld = image.indexOf(DATA);
      const md = image.indexOf('logvol_metadata1');
      // The table follows the data.
      const expected = spelled(text, { ld, stored: md - ld - 16 }, order === 'big');
      expect(image.subarray(md, md + expected.length).toString('hex')).toBe(expected.toString('hex'));
      // data_magic and format: LOGVOL_CLASSIC = ONE
      expect(image.subarray(ld, ld + 16).toString('hex')).toBe(
        Buffer.concat([DATA, Buffer.from(order === 'big' ? [0, 0, 0, 1] : [1, 0, 0, 0])]).toString('hex'),
      );
      const file = File.openSync(image);
      for (const path of file.keys()) file.dataset(path).readSync();
      file.closeSync();
    });
  }
});

describe('a classic table', () => {
  test('may have entries of both byte orders: each says which it has', () => {
    const writers = (['little', 'big'] as const).map((order) => new ClassicWriter(order));
    writers.forEach((writer, i) => {
      writer.add({
        ...{ id: 7, shape: [9], records: false, key: null, offset: 1000 + i, size: 1, elementSize: 1, filter: 0 },
        blocks: { rank: 1, starts: Float64Array.of(3 + i), counts: Float64Array.of(1), from: 0, to: 1 },
      });
    });
    const options = { merge: true, encode: true, share: true, compressFrom: Infinity, classic: 'big' as const };
    const bytes = mergeTables(
      writers.map((writer) => ({ bytes: writer.finish(), address: 0 })),
      () => ({ shape: [9], records: false }),
      options,
    );
    const table = openTable(bytes, 0);
    expect([...table.entries()].map(({ id, offset, flags }) => [id, offset, flags])).toEqual([
      [7, 1000, 0],
      [7, 1001, 0x200],
    ]);
    expect(table.placesOf(7).length).toBe(2);
    expect(table.placesOf(8)).toEqual([]);
  });

  test('gives back what was written, whatever it is', () => {
    const block = fc.record({
      id: fc.nat(5),
      start: fc.array(fc.nat(2 ** 31 - 1), { minLength: 3, maxLength: 3 }),
      count: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 3, maxLength: 3 }),
      offset: fc.maxSafeNat(),
    });
    const property = fc.property(fc.array(block), fc.constantFrom('little' as const, 'big' as const), (all, order) => {
      const writer = new ClassicWriter(order);
      for (const { id, start, count, offset } of all)
        writer.add({
          ...{ id, shape: [1, 1, 1], records: false, key: null, offset, size: 0, elementSize: 2, filter: 0 },
          blocks: { rank: 3, starts: Float64Array.from(start), counts: Float64Array.from(count), from: 0, to: 1 },
        });
      const table = new ClassicTable(writer.finish(), 0);
      const seen = Array.from(table.entries(), (entry) => {
        const [starts, counts] = [new Float64Array(3), new Float64Array(3)];
        table.blocks(entry, { rank: 3, starts, counts, at: 0 });
        return { id: entry.id, start: [...starts], count: [...counts], offset: entry.offset };
      });
      expect(seen).toEqual(all);
      for (const id of new Set(all.map((one) => one.id)))
        expect(table.placesOf(id)).toEqual([...table.entries()].filter((entry) => entry.id === id).map(({ at }) => at));
    });
    fc.assert(property, runs('classic tables', 2000));
  });

  test('is FORMAT or read, whatever happened to its bytes', () => {
    const writer = new ClassicWriter('little');
    for (let i = 0; i < 6; i++)
      writer.add({
        ...{ id: i % 2, shape: [9, 9], records: false, key: null, offset: 100 * i, size: 50, elementSize: 2 },
        ...{ filter: i % 3, points: i === 3 },
        blocks: { rank: 2, starts: Float64Array.of(i, 1), counts: Float64Array.of(2, 2), from: 0, to: 1 },
      });
    const whole = writer.finish();
    const change = fc.tuple(fc.nat(whole.length - 1), fc.constantFrom(0, 1, 2, 0x7f, 0x80, 0xff));
    const property = fc.property(
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.option(fc.nat(whole.length)),
      (changes, cut) => {
        const bytes = whole.slice(0, cut ?? whole.length);
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        const read = (): void => {
          const table = openTable(bytes, 0);
          for (const entry of table.entries()) {
            expect(entry.count).toBeLessThanOrEqual(bytes.length);
            const [starts, counts] = [new Float64Array(2 * entry.count), new Float64Array(2 * entry.count)];
            table.blocks(entry, { rank: 2, starts, counts, at: 0 });
          }
          for (const id of [0, 1]) table.placesOf(id);
        };
        try {
          read();
        } catch (error) {
          expect(error).toMatchObject({ code: 'FORMAT' });
        }
      },
    );
    fc.assert(property, runs('damaged classic tables', 20_000));
  });
});

describe('options', () => {
  test.each([
    [{ bigEndian: true }, /bigEndian is for tables/],
    [{ format: 'classic', encode: true }, /encode/],
    [{ format: 'other' }, /"original" or "classic"/],
  ])('%j is refused', (table, message) => {
    expect(() => File.createSync(memoryStorage(), { table: table as never })).toThrow(
      expect.objectContaining({ code: 'OPTION', message: expect.stringMatching(message) }),
    );
  });
});
