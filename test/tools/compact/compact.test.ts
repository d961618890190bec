import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, solo } from 'h5log';
import { runThreads } from 'h5log/threads';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { compact, diff, publish, verify } from '../../../src/tools.ts';
import { count } from '../../counts.ts';
import { Machine } from '../../log/model/machine.ts';
import { type StepKind, WEIGHTS } from '../../log/model/program.ts';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import {
  contentsExpected,
  contentsOf,
  expectedOf,
  folder as fixtures,
  misread,
  readable,
} from '../../original/fixtures.ts';
import scripted, { WORKERS } from '../../parallel/scripted.ts';
import { random, repeats, seed, some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { factsOf } from '../facts.ts';

const folder = temporaryDirectory();
let files = 0;
const fresh = (name = 'file'): string => join(folder, `${name}-${files++}.h5`);
const sizeOf = (path: string): number => statSync(path).size;

async function mustReadEqual(path: string, options = {}): Promise<string> {
  const out = fresh('compact');
  await compact(path, out, options);
  expect(factsOf(out)).toEqual(factsOf(path));
  const { sound, problems, commits } = await verify(out);
  expect(problems).toEqual([]);
  expect(sound).toBe(true);
  expect(commits.length).toBeLessThan(4);
  return out;
}

test('one process of an MPI job compacts and publishes a file by itself', async () => {
  const path = fresh();
  for (const mode of ['close', 'never'] as const) {
    const file = await File.create(path, { publish: mode });
    file.createDataset('x', { dtype: 'int8', shape: [2] }).write([1, 2]);
    await file.close();
    vi.stubEnv('OMPI_COMM_WORLD_SIZE', '4');
    vi.stubEnv('OMPI_COMM_WORLD_RANK', '0');
    try {
      const out = fresh();
      await compact(path, out);
      expect((await publish(path)).sequence).toBeGreaterThan(0);
      expect((await diff(path, out)).same).toBe(true);
    } finally {
      vi.unstubAllEnvs();
    }
  }
});

describe('a file that was overwritten 50 times', () => {
  const numbers = random(seed('compact'));
  const shape = [200, 300];
  const filters = [[], ['shuffle' as const, { deflate: 1 }]];
  const cases = filters.flatMap((filter) =>
    [null, [40, 60]].flatMap((chunks) =>
      ['whole', 'parts', 'rows', 'every row'].map((how) => ({ filters: filter, chunks, how })),
    ),
  );

  test.each(cases)(
    'in $how, with filters $filters and chunks $chunks, becomes as small as a fresh one',
    async (options) => {
      const { filters: filter, chunks, how } = options;
      const layout = { shape, filters: filter, ...(chunks && { chunks }) };
      const path = fresh();
      const file = File.createSync(path);
      const dataset = file.createDataset('a', { dtype: 'float64', ...layout });
      const value = (): number => Math.floor(numbers() * 1000);
      dataset.write(Float64Array.from({ length: 60_000 }, value));
      file.flushSync();
      for (let i = 0; i < 50; i++) {
        if (how === 'whole') dataset.write(Float64Array.from({ length: 60_000 }, value));
        else if (how === 'every row') {
          for (let k = 0; k < 4; k++)
            dataset.write(Float64Array.from({ length: 300 }, value), {
              start: [(i * 4 + k) % 200, 0],
              count: [1, 300],
            });
        } else if (how === 'rows') {
          for (let k = 0; k < 20; k++)
            dataset.write(Float64Array.from({ length: 300 }, value), {
              start: [Math.floor(numbers() * 200), 0],
              count: [1, 300],
            });
        } else {
          const [r, c] = [Math.floor(numbers() * 150), Math.floor(numbers() * 200)];
          dataset.write(Float64Array.from({ length: 5000 }, value), { start: [r, c], count: [50, 100] });
        }
        file.flushSync();
      }
      file.closeSync();
      const out = await mustReadEqual(path);
      const ideal = fresh('ideal');
      const again = File.createSync(ideal);
      again
        .createDataset('a', { dtype: 'float64', ...layout })
        .write(File.openSync(path).dataset('a', 'float64').readSync());
      again.closeSync();
      const [before, after, least] = [path, out, ideal].map(sizeOf) as [number, number, number];
      process.stdout.write(
        `compact: overwritten 50 times in ${how}, filters ${filter.length}, chunks ${chunks}: ${before} to ${after} bytes, fresh ${least}, ratio ${(after / least).toFixed(3)}\n`,
      );
      expect(after / least).toBeLessThanOrEqual(1.1);
    },
  );
});

describe('what is in a file', () => {
  test('stays: names, attributes, links, references, order, fill, chunks, filters, maximum shapes', async () => {
    const path = fresh();
    const file = File.createSync(path);
    const options = { dtype: 'int32', shape: [4, 6], maxShape: [null, 10], fill: -7, chunks: [2, 3] } as const;
    const z = file.createDataset('z/_y/x', { ...options, filters: ['shuffle', { deflate: 2 }, 'fletcher32'] });
    file.createDataset('gone', { dtype: 'int8', shape: [100] }).write(new Int8Array(100).fill(1));
    file.createDataset('_a', { dtype: 'float32', shape: [3], maxShape: [null] }).write([1, 2, 3]);
    file.createDataset('scalar', { dtype: 'uint8', shape: [] }).write([9]);
    file.createDataset('empty', { dtype: 'uint8', shape: [0, 3], maxShape: [null, 3] });
    file.createDataset('unwritten', { dtype: 'int64', shape: [3], fill: 5n });
    file.attributes.set('names', ['one', 'two', 'three']);
    file.attributes.set('_hidden', 'text');
    z.attributes.set('_ID2', Int32Array.of(1, 2));
    file.flushSync();
    z.write(Int32Array.from({ length: 24 }, (_, i) => i));
    file.flushSync();
    z.write([100], { start: [1, 1], count: [1, 1] });
    z.resize([3, 5]);
    file.delete('gone');
    file.createHardLink('again', 'z/_y/x');
    file.createSoftLink('soft', '/z/_y');
    file.createSoftLink('dangling', '/nothing');
    file.createExternalLink('elsewhere', 'other.h5', '/d');
    file.dataset('_a').resize([1]);
    file.dataset('_a').resize([4]);
    file.closeSync();
    const out = await mustReadEqual(path);
    expect(sizeOf(out)).toBeLessThan(sizeOf(path));
    const both = File.openSync(out, { mode: 'r+' });
    // It goes on as any other file does: numbers of datasets are not given twice.
    both.createDataset('new', { dtype: 'int8', shape: [2] }).write([1, 2]);
    both.dataset('_a').resize([6]);
    both.closeSync();
    const file2 = File.openSync(out);
    expect(file2.dataset('_a').readSync()).toEqual(Float32Array.of(1, 0, 0, 0, 0, 0));
    expect(file2.dataset('new').readSync()).toEqual(Int8Array.of(1, 2));
    expect(file2.commits()).toHaveLength(3);
    file2.closeSync();
    expect((await verify(out)).problems).toEqual([]);
  });

  test('is copied in little memory, in several commits if need be', async () => {
    const path = fresh();
    const file = File.createSync(path, { table: { merge: false, encode: false, share: false, compress: false } });
    const d = file.createDataset('d', { dtype: 'int32', shape: [20_000, 4], maxShape: [null, 4] });
    for (let step = 0; step < 3; step++) {
      for (let i = 0; i < 20_000; i += 2 + (step % 2)) d.write([i, step], { start: [i, step], count: [1, 2] });
      file.flushSync();
    }
    file.closeSync();
    const out = fresh('compact');
    await compact(path, out, { memory: 2 ** 20 });
    expect(factsOf(out)).toEqual(factsOf(path));
    const { problems, commits } = await verify(out);
    expect(problems).toEqual([]);
    expect(commits.length).toBeGreaterThan(1);
  });

  test('of random programs reads equal', { timeout: 600_000 }, async () => {
    const first = seed('compact of random programs');
    let [programs, before, after] = [0, 0, 0];
    for (let n = 0; n < repeats(300); n++) {
      const numbers = random(first + n);
      const weights = Object.values(WEIGHTS)[n % Object.keys(WEIGHTS).length] as Readonly<Record<StepKind, number>>;
      const storage = (['memory', 'faulty', 'delayed'] as const)[n % 3] ?? 'memory';
      const setup = { storage, create: { checksum: n % 4 > 0 }, seed: first + n };
      const machine = await Machine.start(setup, folder);
      for (let i = 0; i < 3; i++) await machine.step({ kind: 'create', seed: first + 7 * n + i });
      for (let i = 0; i < 30; i++)
        await machine.step({ kind: chosen(weights, numbers()), seed: Math.floor(numbers() * 2 ** 31) });
      const path = fresh('program');
      writeFileSync(path, await machine.end());
      expect((await verify(path)).problems, `program ${first + n}`).toEqual([]);
      const out = await mustReadEqual(path, n % 2 ? { memory: 2 ** 20 } : {});
      programs++;
      before += sizeOf(path);
      after += sizeOf(out);
    }
    count('compact of random programs', { programs, 'bytes before': before, 'bytes after': after });
  });

  function chosen(weights: Readonly<Record<StepKind, number>>, at: number): StepKind {
    const all = Object.entries(weights) as [StepKind, number][];
    let left = at * all.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [kind, weight] of all) {
      left -= weight;
      if (left < 0) return kind;
    }
    return 'write';
  }
});

describe('files of several ranks', () => {
  const script = new URL('../../parallel/scripted.ts', import.meta.url);
  const alone = fresh('solo');
  beforeAll(() => {
    scripted(solo(), { path: alone });
  });

  test.each([0, 1, 3])('of %i subfiles become one', async (subfiles) => {
    const path = fresh('ranks');
    await runThreads(WORKERS, script, { path, ...(subfiles > 0 && { subfiles }) });
    const out = await mustReadEqual(path);
    expect(factsOf(out)).toEqual(factsOf(alone));
    expect(existsSync(`${out}.subfiles`)).toBe(false);
  });

  test('a file with subfiles is replaced by one without', async () => {
    const path = fresh('ranks');
    await runThreads(2, script, { path, subfiles: 2 });
    await compact(alone, path, { force: true });
    expect(existsSync(`${path}.subfiles`)).toBe(false);
    expect(factsOf(path)).toEqual(factsOf(alone));
  });
});

describe('files of the original', () => {
  test.each(some(readable, 'files to compact'))('%s', async (name) => {
    const out = fresh('original');
    await compact(join(fixtures, name), out);
    const file = File.openSync(out);
    expect(contentsOf(file)).toEqual(contentsExpected(expectedOf(name)));
    file.closeSync();
    expect((await verify(out)).problems).toEqual([]);
  });

  test.each(misread)('%s, which it cannot read itself', async (name) => {
    const out = fresh('original');
    let readableHere = true;
    try {
      factsOf(join(fixtures, name));
    } catch {
      readableHere = false;
    }
    if (!readableHere) await expect(compact(join(fixtures, name), out)).rejects.toMatchObject({ code: 'FORMAT' });
    else await mustReadEqual(join(fixtures, name));
  });
});

withOracle(['python', 'h5dump'], 'ordinary datasets beside those of the log', () => {
  test.each([
    ['latest', 0],
    ['earliest', 0],
    ['earliest', 512],
  ])('are copied as they are stored: %s, user block of %i bytes', async (libver, block) => {
    const path = fresh('h5py');
    pythonSync(
      `
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver=sys.argv[2], userblock_size=int(sys.argv[3])) as f:
    f['contiguous'] = np.arange(1000.0)
    f.create_dataset('chunked', data=np.arange(10000).reshape(100, 100), chunks=(30, 40), compression='gzip', shuffle=True)
    f.create_dataset('growing', data=np.arange(300), chunks=(7,), maxshape=(None,))
    f.create_dataset('both', data=np.arange(300).reshape(20, 15), chunks=(7, 4), maxshape=(None, None))
    f['g/scalar'] = 5
    f['g'].attrs['text'] = 'variable'
    f['g'].attrs['empty'] = ''
    f['g'].attrs['texts'] = ['', 'a', '']
    f['g'].attrs['ref'] = f['contiguous'].ref
    f['type'] = np.dtype([('a', 'i4'), ('b', 'f8')])
    f.create_dataset('typed', shape=(3,), dtype=f['type'])
    f['typed'][:] = np.array([(1, 2.0), (3, 4.0), (5, 6.0)], dtype=[('a', 'i4'), ('b', 'f8')])
    layout = h5py.VirtualLayout(shape=(500,), dtype='f8')
    layout[:] = h5py.VirtualSource('.', 'contiguous', shape=(1000,))[::2]
    f.create_virtual_dataset('virtual', layout)
`,
      [path, libver, String(block)],
    );
    const file = File.openSync(path, { mode: 'r+' });
    const d = file.createDataset('logged', { dtype: 'int32', shape: [100] });
    for (let i = 0; i < 20; i++) {
      d.write(new Int32Array(100).fill(i));
      file.flushSync();
    }
    file.attributes.set('ours', ['a', 'b']);
    file.closeSync();
    const out = fresh('compact');
    await compact(path, out);
    const look = `
import h5py, numpy as np, sys, hashlib
def facts(path):
    found = {}
    with h5py.File(path, 'r') as f:
        def visit(name, o):
            if name.startswith('_LOG'): return
            found[name] = [type(o).__name__, sorted((k, str(v)) for k, v in o.attrs.items() if not k.startswith('_') and not isinstance(v, h5py.Reference))]
            if isinstance(o, h5py.Dataset) and o.shape is not None:
                found[name] += [str(o.dtype), o.shape, o.maxshape, o.chunks, o.compression, hashlib.sha256(o[()].tobytes()).hexdigest()]
        f.visititems(visit)
        found['ref'] = f[f['g'].attrs['ref']].name
    return found
a, b = facts(sys.argv[1]), facts(sys.argv[2])
assert a == b, [(k, a.get(k), b.get(k)) for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
print(len(a))
`;
    expect(Number(pythonSync(look, [path, out]))).toBeGreaterThan(10);
    expect(h5dump('-H', out)).toContain('logged');
    const again = File.openSync(out);
    expect(again.dataset('logged').readSync()).toEqual(new Int32Array(100).fill(19));
    expect(again.attributes.get('ours')).toEqual(['a', 'b']);
    again.closeSync();
    expect((await verify(out)).problems).toEqual([]);
  });

  test('are copied with what their elements point to, in a file that stays ordinary', async () => {
    const path = fresh('h5py');
    pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], 'w') as f: f['names'] = ['a', 'bc']`, [path]);
    const file = File.openSync(path, { mode: 'r+' });
    file.createDataset('d', { dtype: 'int8', shape: [1] }).write([1]);
    file.closeSync();
    const out = fresh('compact');
    expect(await compact(path, out)).toMatchObject({ datasets: 0, copied: 2 });
    expect(await diff(path, out)).toMatchObject({ same: true });
  });

  test('a file without a log stays one without, and loses what nobody uses', async () => {
    const path = fresh('h5py');
    const make = `
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f:
    f['gone'] = np.arange(100_000)
    f['d'] = np.arange(10)
    f['e'] = 'text'
    del f['gone']`;
    pythonSync(make, [path]);
    const out = fresh('compact');
    const seen: unknown[] = [];
    const made = await compact(path, out, {
      progress: ({ datasets, total, dataset }) => seen.push([datasets, total, dataset]),
    });
    expect(made).toMatchObject({
      datasets: 0,
      copied: 2,
      blocks: 0,
      blocksBefore: 0,
      kept: 0,
      bytes: statSync(out).size,
    });
    expect(made.bytes).toBeLessThan(made.bytesBefore / 10);
    expect(seen).toEqual([
      [0, 2, '/d'],
      [1, 2, '/e'],
    ]);
    expect((await diff(path, out)).same).toBe(true);
    const file = File.openSync(out);
    expect(file.commits().length).toBeLessThanOrEqual(1);
    file.closeSync();
    await expect(compact(path, path)).rejects.toMatchObject({ code: 'OPTION' });
    await expect(compact(path, out)).rejects.toMatchObject({ code: 'EXISTS' });
  });
});

describe('compact', () => {
  const path = fresh('small');
  beforeAll(() => {
    const file = File.createSync(path, { publish: 'never' });
    file.createDataset('d', { dtype: 'int32', shape: [1000] }).write(new Int32Array(1000).fill(3));
    file.closeSync();
  });

  test('replaces a file only if it is told to', async () => {
    const out = fresh('taken');
    writeFileSync(out, 'precious');
    await expect(compact(path, out)).rejects.toMatchObject({ code: 'EXISTS' });
    expect(readFileSync(out, 'utf8')).toBe('precious');
    await compact(path, out, { force: true });
    expect(factsOf(out)).toEqual(factsOf(path));
  });

  test('leaves nothing behind when it fails', async () => {
    const broken = fresh('broken');
    const bytes = readFileSync(path);
    writeFileSync(broken, bytes.subarray(0, bytes.length - 100));
    const before = readdirSync(folder).sort();
    await expect(compact(broken, fresh('never'))).rejects.toMatchObject({ code: 'FORMAT' });
    await expect(compact(fresh('missing'), fresh('never'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const signal = AbortSignal.abort();
    await expect(compact(path, fresh('never'), { signal })).rejects.toBe(signal.reason);
    const controller = new AbortController();
    const progress = (): void => controller.abort();
    await expect(compact(path, fresh('never'), { signal: controller.signal, progress })).rejects.toThrow();
    expect(readdirSync(folder).sort()).toEqual(before);
  });

  test('refuses to write over its input, and options that are none', async () => {
    await expect(compact(path, path, { force: true })).rejects.toMatchObject({ code: 'OPTION' });
    await expect(compact(path, fresh(), { memory: 5 })).rejects.toMatchObject({ code: 'OPTION' });
    await expect(compact(path, fresh(), { force: 1 as never })).rejects.toMatchObject({ code: 'OPTION' });
  });

  test.each([null, [10, 20]])('copies streams that are wholly visible as they are, with chunks %j', async (chunks) => {
    const packed = fresh('packed');
    const file = File.createSync(packed, { publish: 'never' });
    const options = {
      dtype: 'float64',
      shape: [400, 100],
      filters: [{ deflate: 1 }],
      ...(chunks && { chunks }),
    } as const;
    const d = file.createDataset('d', options);
    const next = random(seed('streams that are copied'));
    for (let i = 0; i < 4; i++) {
      d.write(Float64Array.from({ length: 10_000 }, next), { start: [i * 100, 0], count: [100, 100] });
      file.flushSync();
    }
    const before = (await compact(packed, fresh())).kept;
    expect(before).toBe(chunks ? 200 : 4);
    d.write([1], { start: [3, 3], count: [1, 1] });
    file.closeSync();
    const { kept, blocks } = await compact(packed, fresh());
    expect([kept, blocks]).toEqual(chunks ? [199, 200] : [3, 4]);
  });

  test('tells how far it is and what it did', async () => {
    const seen: string[] = [];
    const result = await compact(path, fresh(), { progress: ({ dataset }) => seen.push(dataset) });
    expect(seen).toContain('/d');
    expect(result).toMatchObject({
      datasets: 1,
      copied: 0,
      blocksBefore: 1,
      blocks: 1,
      kept: 0,
      bytesBefore: sizeOf(path),
    });
  });
});
