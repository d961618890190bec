import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { type CreateOptions, File, select } from 'h5log';
import { beforeAll, expect, test } from 'vitest';
import { checkLogFile, type SeenFile, seenByH5py } from '../log/format/check-log.ts';
import { withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { i64, spelled } from './spelled.ts';

interface Golden {
  readonly table?: NonNullable<CreateOptions['table']>;
  readonly write: (file: File) => void;
  /** All bytes of the last table; `=ld` is the file offset of the last log. */
  readonly bytes?: string;
}

const PLAIN = { encode: false, share: false, compress: false };
const row = (start: number[], count: number[]) => ({ start, count });

/** One of each form that is written. */
const FORMS: Readonly<Record<string, Golden>> = {
  'one block': {
    write: (file) =>
      file.createDataset('d', { dtype: 'int16', shape: [4, 6] }).write([1, 2, 3, 4, 5, 6], row([1, 2], [2, 3])),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      4c 00 00 00 00 00 00 00  | which ends at 76, the size of the table
      3c 00 00 00              | entry of 60 bytes: 28 + 2 x 16
      00 00 00 00              | dataset 0
      00 00 00 00              | no flags
      =ld                      | its data is the log's first
      0c 00 00 00 00 00 00 00  | 12 bytes: 2 x 3 x 2
      01 00 00 00 00 00 00 00  | start 1
      02 00 00 00 00 00 00 00  |       2
      02 00 00 00 00 00 00 00  | count 2
      03 00 00 00 00 00 00 00  |       3`,
  },
  'a block within a record': {
    write: (file) =>
      file
        .createDataset('d', { dtype: 'int16', shape: [3, 4], maxShape: [null, 4] })
        .write([1, 2], row([2, 1], [1, 2])),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      44 00 00 00 00 00 00 00  | to 68
      34 00 00 00 00 00 00 00  | 52 bytes: 28 + 8 + 16; dataset 0
      20 00 00 00              | REC
      =ld                      | data
      04 00 00 00 00 00 00 00  | 4 bytes
      02 00 00 00 00 00 00 00  | record 2
      01 00 00 00 00 00 00 00  | start of dimension 1
      02 00 00 00 00 00 00 00  | count of dimension 1`,
  },
  'a record of one dimension': {
    write: (file) => file.createDataset('d', { dtype: 'int8', shape: [5], maxShape: [null] }).write([1], row([3], [1])),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      34 00 00 00 00 00 00 00  | to 52
      24 00 00 00 00 00 00 00  | 36 bytes: 28 + 8; dataset 0
      20 00 00 00              | REC
      =ld                      | data
      01 00 00 00 00 00 00 00  | 1 byte
      03 00 00 00 00 00 00 00  | record 3, and nothing else to say`,
  },
  'a scalar, written twice': {
    write: (file) => {
      const d = file.createDataset('d', { dtype: 'float64', shape: [] });
      d.write(1);
      d.write(2);
    },
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      48 00 00 00 00 00 00 00  | to 72
      1c 00 00 00 00 00 00 00  | 28 bytes, a header alone; dataset 0
      00 00 00 00              | no flags
      =ld                      | data
      08 00 00 00 00 00 00 00  | 8 bytes
      1c 00 00 00 00 00 00 00  | the second: entries of their own, as blocks of a scalar take no bytes
      00 00 00 00              | no flags
      =ld+8                    | its data is behind the first's: it wins
      08 00 00 00 00 00 00 00  | 8 bytes`,
  },
  'several blocks': {
    table: PLAIN,
    write: (file) =>
      file.createDataset('d', { dtype: 'int8', shape: [4, 6] }).write(
        [1, 2, 3, 4, 5, 6],
        select.blocks(
          [
            [0, 1],
            [2, 2],
          ],
          [
            [1, 2],
            [1, 4],
          ],
        ),
      ),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      70 00 00 00 00 00 00 00  | to 112
      60 00 00 00 00 00 00 00  | 96 bytes: 28 + 4 + 2 x 32; dataset 0
      01 00 00 00              | MUL
      =ld                      | data of both, one behind the other
      06 00 00 00 00 00 00 00  | 6 bytes: 2 + 4
      02 00 00 00              | two blocks: 32 bits, so that what follows is not aligned
      00 00 00 00 00 00 00 00  | start of the first
      01 00 00 00 00 00 00 00  |
      02 00 00 00 00 00 00 00  | start of the second
      02 00 00 00 00 00 00 00  |
      01 00 00 00 00 00 00 00  | only then the counts: of the first
      02 00 00 00 00 00 00 00  |
      01 00 00 00 00 00 00 00  | of the second
      04 00 00 00 00 00 00 00  |`,
  },
  'several blocks within a record': {
    write: (file) =>
      file.createDataset('d', { dtype: 'int8', shape: [2, 6], maxShape: [null, 6] }).write(
        [1, 2, 3],
        select.blocks(
          [
            [1, 0],
            [1, 3],
          ],
          [
            [1, 2],
            [1, 1],
          ],
        ),
      ),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      58 00 00 00 00 00 00 00  | to 88
      48 00 00 00 00 00 00 00  | 72 bytes: 28 + 8 + 4 + 2 x 16; dataset 0
      21 00 00 00              | MUL and REC; one dimension is left, which is never encoded
      =ld                      | data
      03 00 00 00 00 00 00 00  | 3 bytes
      01 00 00 00 00 00 00 00  | record 1, before the number of blocks
      02 00 00 00              | two blocks
      00 00 00 00 00 00 00 00  | starts 0
      03 00 00 00 00 00 00 00  |        3
      02 00 00 00 00 00 00 00  | counts 2
      01 00 00 00 00 00 00 00  |        1`,
  },
  'several blocks, encoded': {
    write: (file) =>
      file.createDataset('d', { dtype: 'int8', shape: [6, 5] }).write(
        new Int8Array(15).fill(1),
        select.blocks(
          [
            [0, 0],
            [2, 0],
          ],
          [
            [1, 5],
            [2, 5],
          ],
        ),
      ),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      58 00 00 00 00 00 00 00  | to 88
      48 00 00 00 00 00 00 00  | 72 bytes: 28 + 4 + 8 + 2 x 16; dataset 0
      05 00 00 00              | MUL and ENC
      =ld                      | data
      0f 00 00 00 00 00 00 00  | 15 bytes
      02 00 00 00              | two blocks
      06 00 00 00 00 00 00 00  | step of dimension 0: the size of dimension 1 plus one; that of dimension 1 is 1
      00 00 00 00 00 00 00 00  | start 0 x 6 + 0
      0c 00 00 00 00 00 00 00  | start 2 x 6 + 0
      0b 00 00 00 00 00 00 00  | count 1 x 6 + 5
      11 00 00 00 00 00 00 00  | count 2 x 6 + 5`,
  },
  'several blocks within a record, encoded': {
    write: (file) =>
      file.createDataset('d', { dtype: 'int8', shape: [2, 6, 5], maxShape: [null, 6, 5] }).write(
        new Int8Array(15).fill(1),
        select.blocks(
          [
            [1, 0, 0],
            [1, 2, 0],
          ],
          [
            [1, 1, 5],
            [1, 2, 5],
          ],
        ),
      ),
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      60 00 00 00 00 00 00 00  | to 96
      50 00 00 00 00 00 00 00  | 80 bytes: 28 + 8 + 4 + 8 + 2 x 16; dataset 0
      25 00 00 00              | MUL, ENC and REC
      =ld                      | data
      0f 00 00 00 00 00 00 00  | 15 bytes
      01 00 00 00 00 00 00 00  | record 1
      02 00 00 00              | two blocks
      06 00 00 00 00 00 00 00  | step of dimension 1
      00 00 00 00 00 00 00 00  | start 0 x 6 + 0
      0c 00 00 00 00 00 00 00  | start 2 x 6 + 0
      0b 00 00 00 00 00 00 00  | count 1 x 6 + 5
      11 00 00 00 00 00 00 00  | count 2 x 6 + 5`,
  },
  'a reference': {
    write: (file) => {
      for (const name of ['a', 'b'])
        file.createDataset(name, { dtype: name === 'a' ? 'int8' : 'int16', shape: [9] }).write([1, 2], row([4], [2]));
    },
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      60 00 00 00 00 00 00 00  | to 96
      2c 00 00 00 00 00 00 00  | 44 bytes: 28 + 16; dataset 0
      00 00 00 00              | no flags
      =ld                      | data
      02 00 00 00 00 00 00 00  | 2 bytes
      04 00 00 00 00 00 00 00  | start 4
      02 00 00 00 00 00 00 00  | count 2
      24 00 00 00 01 00 00 00  | 36 bytes: 28 + 8; dataset 1
      10 00 00 00              | REF
      =ld+2                    | data behind that of the first
      04 00 00 00 00 00 00 00  | 4 bytes: the same elements, but of two bytes
      d4 ff ff ff ff ff ff ff  | -44: the entry before`,
  },
  'references to a record, the same and another': {
    table: { merge: false },
    write: (file) => {
      const [a, b] = ['a', 'b'].map((name) =>
        file.createDataset(name, { dtype: 'int8', shape: [3, 4], maxShape: [null, 4] }),
      );
      a?.write([1, 2], row([0, 1], [1, 2]));
      b?.write([3, 4], row([0, 1], [1, 2]));
      b?.write([5, 6], row([2, 1], [1, 2]));
    },
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      9c 00 00 00 00 00 00 00  | to 156
      34 00 00 00 00 00 00 00  | 52 bytes: 28 + 8 + 16; dataset 0
      20 00 00 00              | REC
      =ld                      | data
      02 00 00 00 00 00 00 00  | 2 bytes
      00 00 00 00 00 00 00 00  | record 0
      01 00 00 00 00 00 00 00  | start of dimension 1
      02 00 00 00 00 00 00 00  | count of dimension 1
      2c 00 00 00 01 00 00 00  | 44 bytes: 28 + 8 + 8; dataset 1
      30 00 00 00              | REF and REC, although the record is the same
      =ld+2                    | data
      02 00 00 00 00 00 00 00  | 2 bytes
      00 00 00 00 00 00 00 00  | record 0
      cc ff ff ff ff ff ff ff  | -52: the first entry
      2c 00 00 00 01 00 00 00  | 44 bytes; dataset 1
      30 00 00 00              | REF and REC
      =ld+4                    | data
      02 00 00 00 00 00 00 00  | 2 bytes
      02 00 00 00 00 00 00 00  | record 2
      a0 ff ff ff ff ff ff ff  | -96: the first entry`,
  },
  'a reference to several encoded blocks, of elements of another size': {
    write: (file) => {
      const where = select.blocks(
        [
          [0, 0],
          [2, 0],
        ],
        [
          [1, 5],
          [2, 5],
        ],
      );
      for (const name of ['a', 'b'])
        file
          .createDataset(name, { dtype: name === 'a' ? 'int8' : 'int32', shape: [6, 5] })
          .write(new Array(15).fill(1), where);
    },
    bytes: `
      01 00 00 00 00 00 00 00  | one section
      7c 00 00 00 00 00 00 00  | to 124
      48 00 00 00 00 00 00 00  | 72 bytes: 28 + 4 + 8 + 2 x 16; dataset 0
      05 00 00 00              | MUL and ENC
      =ld                      | data
      0f 00 00 00 00 00 00 00  | 15 bytes
      02 00 00 00              | two blocks
      06 00 00 00 00 00 00 00  | step 5 + 1
      00 00 00 00 00 00 00 00  | starts
      0c 00 00 00 00 00 00 00  |
      0b 00 00 00 00 00 00 00  | counts
      11 00 00 00 00 00 00 00  |
      24 00 00 00 01 00 00 00  | 36 bytes; dataset 1
      15 00 00 00              | REF; MUL and ENC as in the entry it refers to
      =ld+15                   | data
      3c 00 00 00 00 00 00 00  | 60 bytes
      b8 ff ff ff ff ff ff ff  | -72`,
  },
  'a compressed entry': {
    table: { compress: 2 },
    write: (file) =>
      file
        .createDataset('d', { dtype: 'int8', shape: [200] })
        .write(new Int8Array(100).fill(1), select.hyperslab({ start: [0], stride: [2], count: [100] })),
  },
  'compressed entries within a record, the last not': {
    table: { compress: 2, share: false },
    write: (file) => {
      const d = file.createDataset('d', { dtype: 'int8', shape: [2, 200], maxShape: [null, 200] });
      for (const record of [0, 1])
        d.write(new Int8Array(100).fill(1), select.hyperslab({ start: [record, 0], stride: [1, 2], count: [1, 100] }));
    },
  },
  'a merged table': {
    write: (file) => {
      const [a, b] = ['a', 'b'].map((name) => file.createDataset(name, { dtype: 'int32', shape: [4, 6] }));
      for (let i = 0; i < 16; i++) {
        (i % 2 === 0 ? a : b)?.write([MARK + i, 0], row([i % 4, 1], [1, 2]));
        file.flushSync();
      }
    },
  },
};

/** Values that are found nowhere else in the file. */
const MARK = 0x5a17c300;

withOracle('python', 'the bytes of a table', () => {
  const folder = temporaryDirectory();
  const images = new Map<string, { image: Buffer; seen: SeenFile }>();

  beforeAll(() => {
    mkdirSync(folder, { recursive: true });
    const paths = Object.entries(FORMS).map(([, { table, write }], i) => {
      const path = join(folder, `${i}.h5`);
      const file = File.createSync(path, { publish: 'never', ...(table && { table }) });
      write(file);
      file.closeSync();
      return path;
    });
    seenByH5py(paths).forEach((seen, i) => {
      images.set(Object.keys(FORMS)[i] as string, { image: readFileSync(paths[i] as string), seen });
    });
  });

  /** The last table of a file and the place of the last log, as h5py finds them. */
  const tableOf = (name: string): { bytes: Buffer; ld: number; image: Buffer } => {
    const { image, seen } = images.get(name) as { image: Buffer; seen: SeenFile };
    checkLogFile(image, seen);
    const last = (prefix: string) => {
      const count = seen.log.filter((member) => member.startsWith(prefix)).length;
      const found = seen.datasets.find(({ path }) => path === `/_LOG/${prefix}${count - 1}`);
      return { offset: found?.offset as number, size: found?.shape[0] as number };
    };
    const { offset, size } = last('_md_');
    return { bytes: image.subarray(offset, offset + size), ld: last('_ld_').offset, image };
  };

  const spelledOut = Object.entries(FORMS).filter(([, { bytes }]) => bytes !== undefined);

  test.each(spelledOut)('%s', (name, { bytes }) => {
    const { bytes: found, ld } = tableOf(name);
    expect(found.toString('hex')).toBe(spelled(bytes as string, { ld }).toString('hex'));
  });

  const evens = Array.from({ length: 100 }, (_, i) => 2 * i);
  const ones = new Array<number>(100).fill(1);

  test('a compressed entry: n as it is, then a zlib stream of what follows otherwise', () => {
    const { bytes, ld } = tableOf('a compressed entry');
    const head = spelled(
      `
      01 00 00 00 00 00 00 00  | one section
      =end                     | to the end of the table
      =size                    | size of the entry and, 32 bits each, dataset 0
      `,
      { end: bytes.length, size: bytes.length - 16 },
    );
    expect(bytes.subarray(0, 24).toString('hex')).toBe(head.toString('hex'));
    expect(bytes.subarray(24, 48).toString('hex')).toBe(
      spelled(
        `
        09 00 00 00              | MUL and compressed; one dimension is never encoded
        =ld                      | data
        64 00 00 00 00 00 00 00  | 100 bytes
        64 00 00 00              | 100 blocks, not compressed`,
        { ld },
      ).toString('hex'),
    );
    // A zlib stream: deflate with a window of 32 KiB, and a header that is a multiple of 31.
    expect([bytes[48], bytes.readUInt16BE(48) % 31]).toEqual([0x78, 0]);
    expect(inflateSync(bytes.subarray(48)).equals(i64(...evens, ...ones))).toBe(true);
  });

  test('compressed entries within a record: the record number before n; the last of a table is not compressed', () => {
    const { bytes, ld } = tableOf('compressed entries within a record, the last not');
    const first = bytes.readInt32LE(16);
    expect(bytes.subarray(20, 56).toString('hex')).toBe(
      spelled(
        `
        00 00 00 00              | dataset 0
        29 00 00 00              | MUL, REC and compressed
        =ld                      | data
        64 00 00 00 00 00 00 00  | 100 bytes
        00 00 00 00 00 00 00 00  | record 0
        64 00 00 00              | 100 blocks`,
        { ld },
      ).toString('hex'),
    );
    expect(inflateSync(bytes.subarray(56, 16 + first)).equals(i64(...evens, ...ones))).toBe(true);
    const last = spelled(
      `
      68 06 00 00 00 00 00 00  | 1640 bytes: 28 + 8 + 4 + 100 x 16; dataset 0
      21 00 00 00              | MUL and REC
      =ld+100                  | data
      64 00 00 00 00 00 00 00  | 100 bytes
      01 00 00 00 00 00 00 00  | record 1
      64 00 00 00              | 100 blocks`,
      { ld },
    );
    expect(bytes.subarray(16 + first).equals(Buffer.concat([last, i64(...evens, ...ones)]))).toBe(true);
  });

  test('a merged table: one section, entries in the order of their data, equal selections once', () => {
    const { bytes, image } = tableOf('a merged table');
    const places = Array.from({ length: 16 }, (_, i) => {
      const mark = Buffer.alloc(4);
      mark.writeInt32LE(MARK + i);
      const at = image.indexOf(mark);
      expect([at > 0, image.indexOf(mark, at + 1)]).toEqual([true, -1]);
      return [`d${i}`, at] as const;
    });
    const full = (i: number): string => `
      3c 00 00 00 0${i % 2} 00 00 00  | 60 bytes; dataset
      00 00 00 00              | no flags
      =d${i}                   | data
      08 00 00 00 00 00 00 00  | 8 bytes
      0${i % 4} 00 00 00 00 00 00 00  | start
      01 00 00 00 00 00 00 00  |
      01 00 00 00 00 00 00 00  | count
      02 00 00 00 00 00 00 00  |`;
    // The first four are full, each later one refers to the full one with the same row.
    const reference = (i: number): string => `
      24 00 00 00 0${i % 2} 00 00 00  | 36 bytes; dataset
      10 00 00 00              | REF
      =d${i}                   | data
      08 00 00 00 00 00 00 00  | 8 bytes
      =back${i}                | how far back the full entry is`;
    const at = (i: number): number => (i < 4 ? 16 + 60 * i : 16 + 240 + 36 * (i - 4));
    const back = places.map((_, i) => [`back${i}`, at(i % 4) - at(i)] as const);
    const text = `
      01 00 00 00 00 00 00 00  | one section
      =end                     | to the end
      ${places.map((_, i) => (i < 4 ? full(i) : reference(i))).join('')}`;
    const numbers = { ...Object.fromEntries([...places, ...back]), end: 16 + 4 * 60 + 12 * 36 };
    expect(bytes.toString('hex')).toBe(spelled(text, numbers).toString('hex'));
  });

  test('every form of entry is there', () => {
    const flags = new Set(
      [...images.values()].flatMap(({ image, seen }) => [...checkLogFile(image, seen).flags.keys()]),
    );
    expect([...flags].sort((a, b) => a - b)).toEqual([
      0x00, 0x01, 0x05, 0x09, 0x10, 0x15, 0x20, 0x21, 0x25, 0x29, 0x30,
    ]);
  });
});
