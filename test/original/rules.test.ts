import { chmodSync, cpSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, select } from 'h5log';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Checked, checkLogFile, readAsOriginal, type SeenFile, seenByH5py } from '../log/format/check-log.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { entry, i64, table } from './spelled.ts';

/*
 * The fourteen rules that make a file readable for the original. Each is shown twice: a file of ours keeps it, and the same file with
 * the rule broken, in its bytes or by h5py, is noticed by the checker that the other tests trust.
 */

/** The datasets of the file, with the flags of their entries; their numbers are their places in this list. */
const DATASETS = [
  ['a', 0x05], // two blocks over the whole inner dimension, encoded
  ['b', 0x15], // the same, of larger elements: a reference
  ['r', 0x20], // a block in record 0
  ['q', 0x30], // the same: a reference
  ['s', 0x00], // three elements
  ['t', 0x00], // three others
  ['v', 0x21], // a hundred blocks in record 0, the last entry
] as const;

function writeBase(path: string): void {
  const file = File.createSync(path, { publish: 'never' });
  const halves = select.blocks(
    [
      [0, 0],
      [2, 0],
    ],
    [
      [1, 5],
      [2, 5],
    ],
  );
  file.createDataset('a', { dtype: 'int8', shape: [6, 5] }).write(new Int8Array(15).fill(1), halves);
  file.createDataset('b', { dtype: 'int32', shape: [6, 5] }).write(new Int32Array(15).fill(2), halves);
  const record = { start: [0, 1], count: [1, 2] };
  for (const name of ['r', 'q'])
    file.createDataset(name, { dtype: 'int8', shape: [3, 4], maxShape: [null, 4] }).write([3, 4], record);
  file.createDataset('s', { dtype: 'int8', shape: [9] }).write([5, 6, 7], { start: [0], count: [3] });
  file.createDataset('t', { dtype: 'int8', shape: [9] }).write([8, 9, 10], { start: [4], count: [3] });
  file
    .createDataset('v', { dtype: 'int8', shape: [2, 200], maxShape: [null, 200] })
    .write(new Int8Array(100).fill(11), select.hyperslab({ start: [0, 0], stride: [1, 2], count: [1, 100] }));
  file.closeSync();
}

/** A file to be changed: its bytes, and where the entries are. */
interface Change {
  readonly bytes: Buffer;
  readonly entries: readonly number[];
}

type Mutation = ((change: Change) => void) | string;

/** What breaks a rule, and what the checker says then. */
const BROKEN: Readonly<Record<string, readonly [Mutation, RegExp]>> = {
  '1: an unknown flag': [at(4, 8, 0x02), /flags 0x2/],
  '1: no blocks': [({ bytes, entries }) => bytes.writeInt32LE(0, (entries[6] as number) + 36), /0 blocks/],
  '2: steps from the sizes alone': [
    ({ bytes, entries }) => {
      i64(5, 0, 10, 10, 15).copy(bytes, (entries[0] as number) + 32);
    },
    /block 0,0 2,0/,
  ],
  '3: a reference without its record number': [at(3, 8, 0x10), /a reference of 44 bytes/],
  '4: a reference to a reference': [
    ({ bytes, entries }) => back(bytes, entries[3] as number, entries[1] as number),
    /no full entry before it/,
  ],
  '4: a reference forward': [
    ({ bytes, entries }) => back(bytes, entries[3] as number, entries[4] as number),
    /no full entry before it/,
  ],
  '4: a reference into an entry': [
    ({ bytes, entries }) => back(bytes, entries[1] as number, (entries[0] as number) + 4),
    /no full entry before it/,
  ],
  '4: a record that refers to what is none': [
    ({ bytes, entries }) => back(bytes, entries[3] as number, entries[0] as number),
    /a reference from 48 to 5/,
  ],
  '4: references without their bit': [
    "a = f.attrs['_int_att']; a[3] &= ~8; f.attrs.modify('_int_att', a)",
    /without bit 0x008/,
  ],
  '4: a reference to a dataset that is gone': ["del f['a']", /a dataset that is gone/],
  '4: a reference to another number of dimensions': [
    "for n, v in (('_dims', 3), ('_mdims', -1)): f['q'].attrs.create(n, [v, 4, 1], dtype='<i8')",
    /a reference to 2 dimensions from 3/,
  ],
  '5: a reference with the size of the other dataset': [
    ({ bytes, entries }) => bytes.writeBigInt64LE(15n, (entries[1] as number) + 20),
    /15 bytes, 15 elements/,
  ],
  '6: entries out of order': [
    ({ bytes, entries: { 4: s = 0, 5: t = 0 } }) => {
      const [one, other] = [bytes.readBigInt64LE(s + 12), bytes.readBigInt64LE(t + 12)];
      bytes.writeBigInt64LE(other, s + 12);
      bytes.writeBigInt64LE(one, t + 12);
    },
    /the one before ends at/,
  ],
  '7: shared data': [
    ({ bytes, entries: { 4: s = 0, 5: t = 0 } }) => bytes.writeBigInt64LE(bytes.readBigInt64LE(s + 12), t + 12),
    /the one before ends at/,
  ],
  '7: a size that is not the true one': [
    ({ bytes, entries }) => bytes.writeBigInt64LE(2n, (entries[5] as number) + 20),
    /2 bytes, 3 elements/,
  ],
  '8: a compressed record at the end': [at(6, 8, 0x29), /a compressed record is the last/],
  '9: six counts': [
    "f.attrs.create('_int_att', list(f.attrs['_int_att']) + [0], dtype='<i4')",
    /_int_att is not 5 x i32/,
  ],
  '9: counts of 64 bits': [
    "f.attrs.create('_int_att', list(f.attrs['_int_att']), dtype='<i8')",
    /_int_att is not 5 x i32/,
  ],
  '9: a number that was never given': [at(4, 4, 7), /dataset 7/],
  ...Object.fromEntries(
    [0x001, 0x010, 0x100, 0x200, 0x400].map((bit) => [
      `9: the bit 0x${bit.toString(16)}`,
      [`a = f.attrs['_int_att']; a[3] |= ${bit}; f.attrs.modify('_int_att', a)`, /configuration 0x/] as const,
    ]),
  ),
  '10: a dataset that is no anchor': ["f['g/x'] = [1, 2]", /\/g\/x is no anchor/],
  '10: an anchor without a number': ["del f['s'].attrs['_ID']", /_ID of \/s/],
  '11: a filter on an anchor': [
    `
d = f.create_dataset('z', (4,), 'i1', chunks=(2,), compression='gzip')
for name in ('_dims', '_mdims'): d.attrs.create(name, [4], dtype='<i8')
d.attrs.create('_ID', [6], dtype='<i4')`,
    /\/z is no anchor/,
  ],
  '12: data outside of every log': [
    ({ bytes, entries }) => bytes.writeBigInt64LE(2n ** 30n, (entries[6] as number) + 12),
    /lies in no log/,
  ],
  '14: a log that is not counted': [
    "f['_LOG'].create_dataset('_ld_1', (1,), 'u1')",
    /2 datasets _ld_, _int_att says 1/,
  ],
  '14: a table that is not counted': [
    "f['_LOG'].create_dataset('_md_1', (1,), 'u1')",
    /2 datasets _md_, _int_att says 1/,
  ],
};

/** Changes files with h5py, each by a script of its own. */
const CHANGE = `
import sys, json, h5py
for change in json.load(sys.stdin):
    with h5py.File(change['path'], 'r+') as f:
        exec(change['script'], {'f': f})
`;

/** Puts a number of 32 bits into an entry. */
function at(which: number, offset: number, value: number): Mutation {
  return ({ bytes, entries }) => {
    bytes.writeInt32LE(value, (entries[which] as number) + offset);
  };
}

/** Makes the reference at `from` lead to `to`. */
function back(bytes: Buffer, from: number, to: number): void {
  bytes.writeBigInt64LE(BigInt(to - from), from + bytes.readInt32LE(from) - 8);
}

/** Everybody that may read the file may write it too, as far as the process lets new files be written. */
function checkMode(path: string): void {
  const { mode } = statSync(path);
  const readers = (mode & 0o444) >> 1;
  const umask = process.umask();
  if ((mode & 0o222) !== (readers & ~umask)) throw new Error(`mode 0${(mode & 0o777).toString(8)}`);
}

withOracle('python', 'a file that the original reads', () => {
  const folder = temporaryDirectory();
  const base = join(folder, 'base.h5');
  let image = Buffer.alloc(0);
  let seen = null as unknown as SeenFile;
  let checked = null as unknown as Checked;
  const broken = new Map<string, { image: Buffer; seen: SeenFile }>();
  const numbered = (rule: number): string[] => Object.keys(BROKEN).filter((name) => name.startsWith(`${rule}:`));

  beforeAll(() => {
    writeBase(base);
    image = readFileSync(base);
    seen = seenByH5py([base])[0] as SeenFile;
    checked = checkLogFile(image, seen);
    const start = seen.datasets.find(({ path }) => path === '/_LOG/_md_0')?.offset as number;
    const entries = checked.entries.map((found) => start + found.at);
    const scripts: { path: string; script: string }[] = [];
    const paths = Object.values(BROKEN).map(([mutation], i) => {
      const path = join(folder, `broken-${i}.h5`);
      cpSync(base, path);
      if (typeof mutation === 'string') {
        scripts.push({ path, script: mutation.trim() });
      } else {
        const bytes = Buffer.from(image);
        mutation({ bytes, entries });
        expect(bytes.equals(image)).toBe(false);
        writeFileSync(path, bytes);
      }
      return path;
    });
    pythonSync(CHANGE, [], JSON.stringify(scripts));
    seenByH5py(paths).forEach((file, i) => {
      const path = paths[i] as string;
      broken.set(Object.keys(BROKEN)[i] as string, { image: readFileSync(path), seen: file });
    });
  });

  /** Breaking the rule is noticed, and for the reason that it should be. */
  const expectNoticed = (rule: number): void => {
    expect(numbered(rule).length).toBeGreaterThan(0);
    for (const name of numbered(rule)) {
      const file = broken.get(name) as { image: Buffer; seen: SeenFile };
      expect(() => checkLogFile(file.image, file.seen), name).toThrow((BROKEN[name] as [unknown, RegExp])[1]);
    }
  };

  const found = (name: string) =>
    checked.entries[DATASETS.findIndex(([own]) => own === name)] as Checked['entries'][number];
  const setting = (index: number): number => checked.counts[index] as number;

  test('rule 1: entries are single, several, within a record, encoded; nothing else', () => {
    expect(checked.entries.map(({ flags }) => flags)).toEqual(DATASETS.map(([, flags]) => flags));
    expectNoticed(1);
  });

  test('rule 2: steps come from the sizes plus one, so that division gives back blocks over a whole dimension', () => {
    const from = (seen.datasets.find(({ path }) => path === '/_LOG/_md_0')?.offset as number) + found('a').at;
    expect(image.readBigInt64LE(from + 32)).toBe(6n);
    expect(found('a').blocks).toEqual([
      { start: [0, 0], count: [1, 5] },
      { start: [2, 0], count: [2, 5] },
    ]);
    expectNoticed(2);
  });

  test('rule 3: a reference keeps its record number, also for the same record', () => {
    expect(found('q')).toMatchObject({ flags: 0x30, blocks: [{ start: [0, 1], count: [1, 2] }] });
    expectNoticed(3);
  });

  test('rule 4: a reference leads to a full entry before it, of the same kind, and its bit is set', () => {
    expect(setting(3) & 0x008).toBe(0x008);
    expectNoticed(4);
  });

  test('rule 5: references between elements of different sizes have their own size', () => {
    expect([found('a').size, found('b').size]).toEqual([15, 60]);
    const bytes = readAsOriginal(image, checked, 1);
    const file = File.openSync(base);
    expect(Buffer.from(file.dataset('b').readSync(undefined, { raw: true })).equals(bytes as Buffer)).toBe(true);
    file.closeSync();
    expectNoticed(5);
  });

  test('rule 6: entries are in the order of their data', () => {
    const offsets = checked.entries.map(({ offset }) => offset);
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    expectNoticed(6);
  });

  test('rule 7: no two share data, and sizes are true', () => {
    const [log] = seen.datasets.filter(({ path }) => path === '/_LOG/_ld_0');
    expect(checked.entries.reduce((sum, { size }) => sum + size, 0)).toBe(log?.shape[0]);
    expectNoticed(7);
  });

  test('rule 8: a compressed record is never the last of a table', () => {
    const path = join(folder, 'compressed.h5');
    const file = File.createSync(path, { publish: 'never', table: { compress: 2, share: false } });
    const v = file.createDataset('v', { dtype: 'int8', shape: [2, 200], maxShape: [null, 200] });
    const cells = (record: number) => select.hyperslab({ start: [record, 0], stride: [1, 2], count: [1, 100] });
    v.write(new Int8Array(100).fill(1), cells(0));
    v.write(new Int8Array(100).fill(2), cells(1));
    file.flushSync();
    v.write(new Int8Array(100).fill(3), cells(1));
    file.closeSync();
    const [own] = seenByH5py([path]) as [SeenFile];
    expect(checkLogFile(readFileSync(path), own).entries.map(({ flags }) => flags)).toEqual([0x29, 0x21, 0x21]);
    expectNoticed(8);
  });

  test('rule 9: five counts, numbers below the first of them, no bit that means something else', () => {
    expect(checked.counts).toEqual([7, 1, 1, 0x00e, 1]);
    expectNoticed(9);
  });

  test('rule 10: every dataset outside of the log group is an anchor', () => {
    expect(seen.links.filter((link) => link.startsWith('_'))).toEqual(['_LOG']);
    expect(checked.anchors.size).toBe(DATASETS.length);
    expectNoticed(10);
  });

  test('rule 11: no filters on anchors, also of filtered datasets', () => {
    const path = join(folder, 'filtered.h5');
    const file = File.createSync(path, { publish: 'never' });
    const d = file.createDataset('d', {
      dtype: 'int8',
      shape: [40],
      chunks: [10],
      filters: ['shuffle', { deflate: 9 }],
    });
    d.write(new Int8Array(40).fill(1));
    file.closeSync();
    const [own] = seenByH5py([path]) as [SeenFile];
    checkLogFile(readFileSync(path), own);
    expect(own.datasets.map(({ filters }) => filters).every((count) => count === 0)).toBe(true);
    expectNoticed(11);
  });

  test('rule 12: all data lies in a log, one may span others, and bytes behind the end do no harm', () => {
    const path = join(folder, 'spanning.h5');
    const file = File.createSync(path, { publish: 'never' });
    const d = file.createDataset('d', { dtype: 'int8', shape: [40] });
    for (let i = 0; i < 20; i++) {
      d.write([i], { start: [i * 2], count: [1] });
      file.flushSync();
    }
    const expected = d.readSync();
    file.closeSync();
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(1000, 0xff)]));
    const [own] = seenByH5py([path]) as [SeenFile];
    const logs = own.datasets.filter(({ path: name }) => name.startsWith('/_LOG/_ld_'));
    expect(checkLogFile(readFileSync(path), own).entries).toHaveLength(20);
    expect(logs.length).toBeLessThan(20);
    expect((logs[0]?.shape[0] as number) > 16).toBe(true);
    const reader = File.openSync(path);
    expect(reader.dataset('d').readSync()).toEqual(expected);
    reader.closeSync();
    expectNoticed(12);
  });

  test('rule 13: whoever may read the file may write it', () => {
    checkMode(base);
    expect(statSync(base).mode & 0o777).toBe(0o666 & ~process.umask());
    const closed = join(folder, 'closed.h5');
    cpSync(base, closed);
    chmodSync(closed, 0o444);
    expect(() => checkMode(closed)).toThrow('mode 0444');
  });

  describe('rule 14: the original can append', () => {
    /** What the original does at the end of a session, with h5py: a log, a table, other counts, all in place. */
    const APPEND = `
import sys, h5py
from h5py import h5d, h5p, h5s, h5t
path, log, table = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with h5py.File(path, 'r+') as f:
    a = f.attrs['_int_att']
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    places = []
    for name, size in (('_ld_%d' % a[1], log), ('_md_%d' % a[2], table)):
        d = h5d.create(f['_LOG'].id, name.encode(), h5t.STD_B8LE, h5s.create_simple((size,)), plist)
        places.append(d.get_offset())
    a[1] += 1
    a[2] += 1
    f.attrs.modify('_int_att', a)
print(places[0], places[1])
`;

    test('and we read what it appended, and append again', () => {
      const path = join(folder, 'appended.h5');
      cpSync(base, path);
      const size = table([entry(4, 0, 0, 2, i64(7, 2))]).length;
      const places = pythonSync(APPEND, [path, '2', String(size)])
        .trim()
        .split(' ')
        .map(Number);
      const bytes = readFileSync(path);
      Buffer.from([77, 78]).copy(bytes, places[0]);
      table([entry(4, 0, places[0] as number, 2, i64(7, 2))]).copy(bytes, places[1]);
      writeFileSync(path, bytes);
      const expected = [5, 6, 7, 0, 0, 0, 0, 77, 78];
      const file = File.openSync(path, { mode: 'r+' });
      expect([...file.dataset('s', 'int8').readSync()]).toEqual(expected);
      file.dataset('s').write([79], { start: [8], count: [1] });
      file.closeSync();
      const reader = File.openSync(path);
      expect([...reader.dataset('s', 'int8').readSync()]).toEqual([...expected.slice(0, 8), 79]);
      reader.closeSync();
      const [own] = seenByH5py([path]) as [SeenFile];
      expect(checkLogFile(readFileSync(path), own).counts.slice(0, 3)).toEqual([7, 3, 3]);
    });

    test('because the names that it will use are free', () => {
      expectNoticed(14);
    });
  });

  test('every mutation belongs to a rule', () => {
    const counted = Array.from({ length: 14 }, (_, i) => numbered(i + 1).length);
    expect(counted.reduce((a, b) => a + b, 0)).toBe(Object.keys(BROKEN).length);
    process.stdout.write(`rules of the original: ${Object.keys(BROKEN).length} ways to break them, all noticed\n`);
  });
});
