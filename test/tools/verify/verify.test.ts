import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { runThreads } from 'h5log/threads';
import { beforeAll, describe, expect, test } from 'vitest';
import { sessionOf } from '../../../src/api/handle.ts';
import { verify } from '../../../src/tools.ts';
import { count } from '../../counts.ts';
import { Draft } from '../../interop/driver.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { folder as fixtures, readable } from '../../original/fixtures.ts';
import { WORKERS } from '../../parallel/scripted.ts';
import { full, noise, random, repeats, seed, some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { factsOf } from '../facts.ts';

const folder = temporaryDirectory();
let files = 0;
const fresh = (name = 'file'): string => join(folder, `${name}-${files++}.h5`);
const script = new URL('../../parallel/scripted.ts', import.meta.url);
const blocks = new URL('./many-blocks.ts', import.meta.url);

function flipped(bytes: Uint8Array, at: number, bit: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] as number) ^ (1 << bit);
  return copy;
}

function flipInFile(path: string, at: number, bit = 3): void {
  writeFileSync(path, flipped(readFileSync(path), at, bit));
}

/** A file of many commits, with everything that commits can hold. */
function makeFile(size: number, flushes: number, checksum = true, publish: 'never' | 'flush' = 'never'): Uint8Array {
  const storage = memoryStorage();
  const file = File.createSync(storage, { checksum, publish });
  const numbers = random(size);
  const rows = Math.ceil(size / flushes / 800);
  const a = file.createDataset('g/a', { dtype: 'float64', shape: [rows * 4, 100], maxShape: [null, 100] });
  const z = file.createDataset('z', {
    dtype: 'int32',
    shape: [50, 40],
    chunks: [10, 40],
    filters: ['shuffle', { deflate: 1 }],
  });
  file.attributes.set('names', ['a', 'b']);
  for (let i = 0; i < flushes; i++) {
    a.write(
      Float64Array.from({ length: rows * 100 }, () => numbers()),
      { start: [(i % 4) * rows, 0], count: [rows, 100] },
    );
    if (i % 5 === 0)
      z.write(
        Int32Array.from({ length: 400 }, () => numbers() * 1e9),
        { start: [i % 40, 0], count: [10, 40] },
      );
    if (i === 3) file.createDataset('short', { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
    if (i === 10) file.delete('short');
    if (i % 7 === 0) file.attributes.set(`note ${i}`, 'x'.repeat(i + 1));
    file.flushSync();
  }
  file.closeSync();
  return storage.bytes();
}

describe('a single flipped bit', () => {
  test('anywhere in a file of 10 MB is found', { timeout: 600_000 }, async () => {
    const bytes = makeFile(10_000_000, 60);
    expect(bytes.length).toBeGreaterThan(9_500_000);
    const clean = await verify(memoryStorage(bytes));
    expect(clean).toMatchObject({ sound: true, checksums: true, problems: [], newestSound: 60, bytes: bytes.length });
    expect(clean.commits.map(({ good }) => good)).toEqual(new Array(61).fill(true));
    const numbers = random(seed('verify: flipped bits'));
    const trials = repeats(200);
    const missed: number[] = [];
    for (let n = 0; n < trials; n++) {
      const at = Math.floor(numbers() * bytes.length);
      const { sound, problems } = await verify(memoryStorage(flipped(bytes, at, Math.floor(numbers() * 8))));
      if (sound || problems.length === 0) missed.push(at);
    }
    expect(missed).toEqual([]);
    count('verify: flipped bits', { found: trials });
  });

  test.each(['never', 'flush'] as const)(
    'in any byte of a small file that publishes %s is found, and the commits that are called good read as they did',
    {
      timeout: 600_000,
    },
    async (publish) => {
      const bytes = makeFile(10_000, 20, true, publish);
      const step = full ? 7 : 331;
      const truth = new Map<number, string>();
      for (let asOf = 0; asOf <= 20; asOf++) truth.set(asOf, contents(bytes, asOf));
      let [looked, compared] = [0, 0];
      for (let at = seed('verify: every byte') % step; at < bytes.length; at += step) {
        const damaged = flipped(bytes, at, at % 8);
        const { sound, newestSound, commits } = await verify(memoryStorage(damaged));
        expect(sound, `byte ${at}`).toBe(false);
        looked++;
        const good = commits.filter(({ good: isGood }) => isGood).map(({ sequence }) => sequence);
        expect(newestSound).toBe(good.at(-1) ?? null);
        if (at < 48) expect(newestSound, `superblock, byte ${at}`).toBe(20);
        // Through the superblock, if that is whole and so is what it names.
        if (at < 48 || !commits.at(-1)?.good) continue;
        for (const asOf of good) {
          expect(contents(damaged, asOf), `byte ${at}, commit ${asOf}`).toBe(truth.get(asOf));
          compared++;
        }
      }
      count(`verify: every byte, publish ${publish}`, { 'bytes flipped': looked, 'good commits compared': compared });
    },
  );

  function contents(bytes: Uint8Array, asOf: number): string {
    const file = File.openSync(memoryStorage(bytes), { asOf });
    const found: unknown[] = [[...file.attributes]];
    for (const path of ['g/a', 'z', 'short']) {
      const dataset = file.get(path);
      found.push(
        dataset?.kind === 'dataset'
          ? [dataset.shape, Buffer.from(dataset.readSync(undefined, { raw: true })).toString('base64')]
          : null,
      );
    }
    file.closeSync();
    return JSON.stringify(found);
  }
});

describe('repairTo', () => {
  const bytes = makeFile(100_000, 30);
  const whole = fresh('whole');
  beforeAll(() => writeFileSync(whole, bytes));

  test.each([
    ['zeroed', (copy: Uint8Array) => copy.fill(0, 0, 48)],
    ['full of noise', (copy: Uint8Array) => copy.set(noise(48, seed('a superblock of noise')))],
    ['of another time', (copy: Uint8Array) => copy.set(new Uint8Array(8), 28)],
  ])('gives the last commit back when the superblock is %s', async (_what, destroy) => {
    const path = fresh('destroyed');
    const copy = bytes.slice();
    destroy(copy);
    writeFileSync(path, copy);
    expect(() => File.openSync(path)).toThrow();
    const out = fresh('repaired');
    const result = await verify(path, { repairTo: out });
    expect(result).toMatchObject({ sound: false, newestSound: 30, repaired: { sequence: 30, bytes: bytes.length } });
    expect(result.problems[0]?.what).toMatch(/superblock is lost/);
    expect(factsOf(out)).toEqual(factsOf(whole));
    expect(await verify(out)).toMatchObject({ sound: true, newestSound: 30 });
    expect(Buffer.compare(readFileSync(out), bytes)).toBe(0);
  });

  test('finds the last commit although a file of this kind lies in the data, whose superblock is gone as well', async () => {
    const inner = makeFile(30_000, 40);
    const path = fresh('nested');
    const file = File.createSync(path);
    const d = file.createDataset('d', { dtype: 'uint8', shape: [inner.length] });
    d.write(inner);
    file.closeSync();
    const before = factsOf(path);
    const copy = readFileSync(path).fill(0, 0, 48);
    writeFileSync(path, copy);
    const out = fresh('repaired');
    expect((await verify(path, { repairTo: out })).newestSound).toBe(1);
    expect(factsOf(out)).toEqual(before);
  });

  test('goes back to the newest commit without the damage', async () => {
    const history = sessionOf(File.openSync(whole)).log?.main.history() ?? [];
    const last = history.at(-1) as (typeof history)[number];
    const path = fresh('data');
    writeFileSync(path, flipped(bytes, last.start + 50, 1));
    const out = fresh('repaired');
    const result = await verify(path, { repairTo: out });
    expect(result).toMatchObject({ sound: false, newestSound: 29, repaired: { sequence: 29 } });
    expect(result.commits.map(({ good }) => good)).toEqual([...new Array(30).fill(true), false]);
    expect(result.problems[0]).toMatchObject({
      offset: last.start,
      what: expect.stringMatching(/data of rank 0 in commit 30/),
    });
    expect(factsOf(out)).toEqual(factsOf(whole, { asOf: 29 }));
    expect(await verify(out)).toMatchObject({ sound: true, newestSound: 29 });
    // It can be written on.
    const file = File.openSync(out, { mode: 'r+' });
    file.dataset('g/a').write([5], { start: [0, 0], count: [1, 1] });
    file.closeSync();
    expect(await verify(out)).toMatchObject({ sound: true, newestSound: 30 });
  });

  test('keeps what is newer than damage that it does not use', async () => {
    const history = sessionOf(File.openSync(whole)).log?.main.history() ?? [];
    // The root of an early commit: nobody but that commit needs it.
    const { root } = history[2] as (typeof history)[number];
    const path = fresh('dead');
    writeFileSync(path, flipped(bytes, root + 20, 1));
    const out = fresh('repaired');
    const { newestSound, commits, sound } = await verify(path, { repairTo: out });
    expect([sound, newestSound]).toEqual([false, 30]);
    expect(commits[2]?.good).toBe(false);
    expect(commits[30]?.good).toBe(true);
    expect(factsOf(out)).toEqual(factsOf(whole));
  });

  test('replaces a file only if it is told to, and leaves nothing when there is nothing to save', async () => {
    const out = fresh('taken');
    writeFileSync(out, 'precious');
    await expect(verify(whole, { repairTo: out })).rejects.toMatchObject({ code: 'EXISTS' });
    expect(readFileSync(out, 'utf8')).toBe('precious');
    await verify(whole, { repairTo: out, force: true });
    expect(factsOf(out)).toEqual(factsOf(whole));
    await expect(verify(whole, { repairTo: whole, force: true })).rejects.toMatchObject({ code: 'OPTION' });
    const path = fresh('noise');
    writeFileSync(path, noise(5000, seed('a file of noise')));
    const before = readdirSync(folder).sort();
    await expect(verify(path, { repairTo: fresh('never') })).rejects.toMatchObject({ code: 'FORMAT' });
    expect(readdirSync(folder).sort()).toEqual(before);
  });

  test('of a file that was cut off gives the commits before the cut', async () => {
    const history = sessionOf(File.openSync(whole)).log?.main.history() ?? [];
    const path = fresh('cut');
    writeFileSync(path, bytes.subarray(0, (history[20] as (typeof history)[number]).end + 100));
    const out = fresh('repaired');
    const { newestSound, sound } = await verify(path, { repairTo: out });
    expect([sound, newestSound]).toEqual([false, 20]);
    expect(factsOf(out)).toEqual(factsOf(whole, { asOf: 20 }));
  });
});

describe('files of several ranks', () => {
  const filesOf = (path: string): string[] => [
    path,
    ...(existsSync(`${path}.subfiles`)
      ? readdirSync(`${path}.subfiles`).map((name) => join(`${path}.subfiles`, name))
      : []),
  ];
  const copyOf = (path: string): string => {
    const copy = fresh('copy');
    copyFileSync(path, copy);
    for (const [g] of filesOf(path).slice(1).entries())
      cpSync(join(`${path}.subfiles`, `${basename(path)}.${g}`), join(`${copy}.subfiles`, `${basename(copy)}.${g}`));
    return copy;
  };

  test.each([
    ['one file', {}, script],
    ['2 subfiles', { subfiles: 2 }, script],
    ['a large table, written by its ranks', {}, blocks],
    ['large tables in subfiles', { subfiles: 2 }, blocks],
  ])('%s: flipped bits are found in every file', { timeout: 300_000 }, async (_what, options, program) => {
    const path = fresh('ranks');
    await runThreads(WORKERS, program, { path, ...options });
    const clean = await verify(path);
    expect(clean.problems).toEqual([]);
    expect(clean).toMatchObject({ sound: true, checksums: true });
    const numbers = random(seed('verify: files of ranks'));
    const files = filesOf(path).length;
    for (let n = 0; n < repeats(60); n++) {
      const copy = copyOf(path);
      const file = filesOf(copy)[n % files] as string;
      const at = Math.floor(numbers() * statSync(file).size);
      flipInFile(file, at, Math.floor(numbers() * 8));
      const { sound } = await verify(copy);
      expect(sound, `${file}, byte ${at}`).toBe(false);
      for (const each of filesOf(copy)) rmSync(each);
    }
    count('verify: files of ranks', { 'flipped bits found': repeats(60) });
  });

  test('with subfiles: a destroyed superblock, of the file or of a subfile, loses nothing', async () => {
    const path = fresh('ranks');
    await runThreads(WORKERS, script, { path, subfiles: 3 });
    const facts = factsOf(path);
    const { newestSound } = await verify(path);
    for (const n of [0, 1, 3]) {
      const copy = copyOf(path);
      const file = filesOf(copy)[n] as string;
      writeFileSync(file, readFileSync(file).fill(0, 0, 48));
      const out = fresh('repaired');
      const result = await verify(copy, { repairTo: out });
      expect(result.sound).toBe(false);
      expect(result.repaired?.sequence).toBe(newestSound);
      expect(factsOf(out)).toEqual(facts);
      expect(await verify(out)).toMatchObject({ sound: true, newestSound });
    }
  });

  test('with subfiles: damage in one of them takes the whole back to a state without it', async () => {
    const path = fresh('ranks');
    await runThreads(WORKERS, script, { path, subfiles: 2 });
    const last = sessionOf(File.openSync(path)).log?.stores[1]?.history().at(-1);
    const copy = copyOf(path);
    flipInFile(filesOf(copy)[2] as string, (last?.start ?? 0) + 10);
    const out = fresh('repaired');
    const { repaired, problems } = await verify(copy, { repairTo: out });
    expect(problems[0]?.what).toContain(`${basename(copy)}.1`);
    expect(repaired?.sequence).toBe((last?.sequence ?? 0) - 1);
    expect(factsOf(out)).toEqual(factsOf(path, { asOf: (last?.sequence ?? 0) - 1 }));
  });

  test('with subfiles: a missing one is damage', async () => {
    const path = fresh('ranks');
    await runThreads(2, script, { path, subfiles: 2 });
    rmSync(filesOf(path)[1] as string);
    const { sound, problems, newestSound } = await verify(path);
    expect([sound, newestSound]).toEqual([false, null]);
    expect(problems[0]?.what).toMatch(/subfile 0 is missing/);
  });
});

describe('files without checksums', () => {
  test.each(some(readable, 'files to verify'))('of the original: %s', async (name) => {
    const result = await verify(join(fixtures, name));
    expect(result.problems).toEqual([]);
    expect(result).toMatchObject({ sound: true, checksums: false });
    expect(result.commits).toMatchObject([{ sequence: 0, time: null, good: true }]);
  });

  test('of ours: structure and tables are looked at, in every commit', async () => {
    const bytes = makeFile(20_000, 10, false);
    expect(await verify(memoryStorage(bytes))).toMatchObject({ sound: true, checksums: false, newestSound: 10 });
    const { log, structure } = sessionOf(File.openSync(memoryStorage(bytes)));
    const table = log?.main.committed.tables.at(-1)?.address ?? 0;
    const outside = flipped(bytes, table + 16 + 12 + 5, 4); // the offset of the first entry
    const { sound, problems, commits } = await verify(memoryStorage(outside));
    expect(sound).toBe(false);
    expect(problems[0]).toMatchObject({ object: '/g/a', what: expect.stringMatching(/not inside the log/) });
    expect(commits.at(-1)?.good).toBe(false);
    expect(commits.at(-2)?.good).toBe(true);
    const header = await verify(memoryStorage(flipped(bytes, structure.root.address + 9, 4)));
    expect(header).toMatchObject({ sound: false, newestSound: 9 });
  });
});

describe('the state of other files', () => {
  test('a file that is still open, or was left behind by a crash, is sound', async () => {
    const path = fresh('open');
    const file = File.createSync(path);
    const d = file.createDataset('d', { dtype: 'int32', shape: [1000] });
    d.write(new Int32Array(1000));
    file.flushSync();
    d.write(new Int32Array(1000).fill(1));
    expect(await verify(path)).toMatchObject({ sound: true, newestSound: 1 });
    file.discard();
  });

  test('a missing file, one that is no file, wrong options', async () => {
    await expect(verify(fresh('missing'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const path = fresh('text');
    writeFileSync(path, 'this is no HDF5 file');
    expect(await verify(path)).toMatchObject({ sound: false, commits: [], newestSound: null, checksums: false });
    await expect(verify(path, { force: 1 as never })).rejects.toMatchObject({ code: 'OPTION' });
    const signal = AbortSignal.abort();
    await expect(verify(path, { signal })).rejects.toBe(signal.reason);
  });

  test('a storage that cannot block is looked at in the same way', async () => {
    const bytes = makeFile(1_000_000, 10);
    const { read, size, close } = memoryStorage(bytes);
    expect(await verify({ name: 'far away', read, size, close })).toMatchObject({ sound: true, newestSound: 10 });
    const damaged = memoryStorage(flipped(bytes, 500_000, 1));
    const far = { name: 'far away', read: damaged.read, size: damaged.size, close: damaged.close };
    expect(await verify(far)).toMatchObject({ path: 'far away', sound: false });
  });

  test('progress comes to its end', async () => {
    const seen: number[] = [];
    let most = 0;
    await verify(memoryStorage(makeFile(100_000, 5)), {
      progress: ({ bytes, total }) => {
        seen.push(bytes);
        most = total;
      },
    });
    expect(seen.at(-1)).toBe(most);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
  });

  withOracle('python', 'files of h5py', () => {
    const make = (path: string, libver: string): string =>
      pythonSync(
        `
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver=sys.argv[2]) as f:
    f['contiguous'] = np.arange(1000.0)
    f.create_dataset('chunked', data=np.arange(10000).reshape(100, 100), chunks=(30, 40), compression='gzip')
    f.create_dataset('growing', data=np.arange(300), chunks=(7,), maxshape=(None,))
    f.create_dataset('both', data=np.arange(300).reshape(20, 15), chunks=(7, 4), maxshape=(None, None))
    f['g'] = h5py.SoftLink('/nothing')
    f['names'] = ['a', 'bc']
    f.attrs['text'] = 'variable'
    for i in range(20): f['chunked'].attrs[str(i)] = i
`,
        [path, libver],
      );

    test.each(['earliest', 'latest'])('without a log, %s: structure only', async (libver) => {
      const path = fresh('h5py');
      make(path, libver);
      const result = await verify(path);
      expect(result.problems).toEqual([]);
      expect(result).toMatchObject({ sound: true, checksums: false, commits: [], newestSound: null });
      const bytes = readFileSync(path);
      const at = bytes.indexOf(libver === 'latest' ? 'OHDR' : 'TREE');
      flipInFile(path, at, 0);
      const damaged = await verify(path);
      expect(damaged.sound).toBe(false);
      writeFileSync(path, bytes.subarray(0, bytes.length - 10));
      expect((await verify(path)).sound).toBe(false);
    });

    test('with a user block before it, a file whose superblock is lost is given back', async () => {
      const path = fresh('block');
      pythonSync(
        `import h5py, sys\nwith h5py.File(sys.argv[1], 'w', userblock_size=1024) as f: f.create_group('theirs').attrs['x'] = 5`,
        [path],
      );
      Draft.addLog(path);
      const file = File.openSync(path, { mode: 'r+' });
      const d = file.createDataset('d', { dtype: 'int32', shape: [100] });
      for (let i = 0; i < 20; i++) {
        d.write(new Int32Array(100).fill(i));
        file.flushSync();
      }
      file.closeSync();
      expect(await verify(path)).toMatchObject({ sound: true, newestSound: 19 });
      const facts = factsOf(path);
      writeFileSync(path, readFileSync(path).fill(7, 0, 100).fill(0, 1024, 1072));
      const out = fresh('repaired');
      expect(await verify(path, { repairTo: out })).toMatchObject({ sound: false, newestSound: 19 });
      expect(factsOf(out)).toEqual(facts);
      expect(readFileSync(out)[50]).toBe(7);
    });

    test('a state that it made of a file of ours is no damage', async () => {
      const path = fresh('both');
      writeFileSync(path, makeFile(20_000, 5));
      pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as f: f.create_group('theirs').attrs['x'] = 5`, [
        path,
      ]);
      const result = await verify(path);
      expect(result.problems).toEqual([]);
      // It changes the root group in place, so that it is still the same commit.
      expect(result).toMatchObject({ sound: true, checksums: true, newestSound: 5 });
      const file = File.openSync(path, { mode: 'r+' });
      file.attributes.set('ours', 1);
      file.closeSync();
      expect(await verify(path)).toMatchObject({ sound: true, problems: [], newestSound: 6 });
      // Damage in the data is still damage.
      const bytes = readFileSync(path);
      const { start } = sessionOf(File.openSync(path)).log?.main.history()[3] ?? { start: 0 };
      expect(await verify(memoryStorage(flipped(bytes, start + 9, 2)))).toMatchObject({ sound: false });
      const facts = factsOf(path);
      writeFileSync(path, readFileSync(path).fill(0, 0, 48));
      const out = fresh('repaired');
      expect((await verify(path, { repairTo: out })).newestSound).toBe(6);
      expect(factsOf(out)).toEqual(facts);
    });
  });
});
