// Object references in published datasets: what h5py writes into them counts, as everything else that it writes does.

import { closeSync, copyFileSync, openSync as openFile, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type DatasetOptions, File, T } from 'h5log';
import { compact, replay, seal, verify } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { pythonSync, withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();

const NAMES = ['/x', '/y', '/z', '/g/deep'] as const;

/** Runs lines of Python with the file, open for writing, as `f`. */
function h5py(path: string, ...lines: string[]): void {
  pythonSync(['import sys, h5py, numpy as np', "f = h5py.File(sys.argv[1], 'r+')", ...lines, 'f.close()'].join('\n'), [
    path,
  ]);
}

const SEEN = `
import sys, json, h5py
def name(r):
    if not r: return ''
    try: return sys.modules['h5py'].File(sys.argv[1])[r].name or 'gone'
    except Exception: return 'broken'
with h5py.File(sys.argv[1]) as f:
    d = f[sys.argv[2]][()]
    flat = d.ravel().tolist()
    print(json.dumps([[name(r) for r in v] if hasattr(v, '__len__') else name(v) for v in flat]))
`;

/** The address that an element has. */
const ADDRESS = `
import sys, h5py
with h5py.File(sys.argv[1]) as f: print(h5py.h5o.get_info(f[f['ends'][int(sys.argv[2])]].id).addr)
`;

/** Writes over the header that an element leads to. */
function damageHeader(path: string, address: number): void {
  const file = openFile(path, 'r+');
  writeSync(file, new Uint8Array(16), 0, 16, address);
  closeSync(file);
}

/** What h5py reads. */
const byH5py = (path: string, dataset = 'ends'): unknown => JSON.parse(pythonSync(SEEN, [path, dataset]));

function byH5log(path: string, dataset = 'ends'): unknown {
  const file = File.openSync(path);
  try {
    return [...(file.dataset(dataset).readSync() as Iterable<unknown>)];
  } finally {
    file.closeSync();
  }
}

/** A published file with some objects, and references to them. */
function make(
  name: string,
  ends: readonly string[],
  options: Partial<DatasetOptions<typeof T.reference>> = {},
): string {
  const path = join(folder, `${name}.h5`);
  const file = File.createSync(path, { publish: 'close' });
  for (const each of NAMES) file.createDataset(each, { dtype: 'int32', shape: [2] }).write(Int32Array.of(1, 2));
  file.createDataset('ends', { dtype: T.reference, shape: [ends.length], ...options }).write(ends as never);
  file.closeSync();
  return path;
}

/** Changes the header of an object, which moves it; others are not shown. */
function move(path: string, ...names: string[]): void {
  const file = File.openSync(path, { mode: 'r+', publish: 'never' });
  for (const name of names) {
    const { attributes } = name === '/' ? file : (file.get(name) as { attributes: typeof file.attributes });
    attributes.set('moved', ((attributes.get('moved') as number | undefined) ?? 0) + 1);
  }
  file.closeSync();
}

/** Makes others see everything. */
function publish(path: string): void {
  const file = File.openSync(path, { mode: 'r+', publish: 'close' });
  file.dataset('x').attributes.set('published', Date.now());
  expect(file.publishSync().without).toEqual([]);
  file.closeSync();
}

/** What everybody reads, now and after everything that writes the file anew. */
async function expectKept(path: string, expected: readonly unknown[], dataset = 'ends'): Promise<void> {
  expect(byH5log(path, dataset)).toEqual(expected);
  publish(path);
  expect(byH5log(path, dataset)).toEqual(expected);
  expect(byH5py(path, dataset)).toEqual(expected);
}

async function expectCopied(path: string, expected: readonly unknown[], dataset = 'ends'): Promise<void> {
  for (const way of ['compact', 'replay', 'seal'] as const) {
    const copy = `${path.slice(0, -3)}-${way}.h5`;
    if (way === 'compact') await compact(path, copy, { force: true });
    else if (way === 'replay') await replay(path, copy, { force: true });
    else {
      copyFileSync(path, copy);
      await seal(copy);
    }
    expect(byH5log(copy, dataset), way).toEqual(expected);
    expect(byH5py(copy, dataset), way).toEqual(expected);
  }
}

const LAYOUTS: readonly [string, Partial<DatasetOptions<typeof T.reference>>][] = [
  ['contiguous', {}],
  ['chunks', { maxShape: [null], chunks: [3] }],
  ['filtered chunks', { maxShape: [null], chunks: [3], filters: ['shuffle', { deflate: 4 }] }],
];

withOracle('python', 'references that h5py writes', () => {
  describe.each(LAYOUTS)('in %s', (layout, options) => {
    const name = (test: string): string => `${layout.replace(' ', '-')}-${test}`;

    test('are read, and stay', async () => {
      const path = make(name('written'), ['/x', '/y', '/z', '/x'], options);
      h5py(path, "f['ends'][1] = f['g/deep'].ref", "f['ends'][3] = f['g'].ref");
      const expected = ['/x', '/g/deep', '/z', '/g'];
      await expectCopied(path, expected);
      await expectKept(path, expected);
      await expectCopied(path, expected);
    });

    test('null references are', async () => {
      const path = make(name('null'), ['/x', '/y', '/z', '/x'], options);
      h5py(path, "f['ends'][0:2] = np.array([h5py.Reference()] * 2, dtype=h5py.ref_dtype)");
      await expectCopied(path, ['', '', '/z', '/x']);
      await expectKept(path, ['', '', '/z', '/x']);
    });

    test('where h5log has newer ones, those count', async () => {
      const path = make(name('newer'), ['/x', '/y', '/z', '/x'], options);
      const file = File.openSync(path, { mode: 'r+', publish: 'never' });
      file.dataset('ends').write(['/g'] as never, { start: [1], count: [1] });
      file.closeSync();
      h5py(path, "f['ends'][1] = f['z'].ref", "f['ends'][2] = f['x'].ref");
      await expectCopied(path, ['/x', '/g', '/x', '/x']);
      await expectKept(path, ['/x', '/g', '/x', '/x']);
    });

    test('h5log writes over them', async () => {
      const path = make(name('over'), ['/x', '/y', '/z', '/x'], options);
      h5py(path, "f['ends'][1] = f['z'].ref", "f['ends'][2] = f['x'].ref");
      const file = File.openSync(path, { mode: 'r+' });
      const ends = file.dataset('ends');
      ends.write(['/g/deep'] as never, { start: [2], count: [1] });
      expect([...(ends.readSync() as never as string[])]).toEqual(['/x', '/z', '/g/deep', '/x']);
      file.flushSync();
      expect([...(ends.readSync() as never as string[])]).toEqual(['/x', '/z', '/g/deep', '/x']);
      file.closeSync();
      await expectKept(path, ['/x', '/z', '/g/deep', '/x']);
    });

    test('to objects that h5py made, which h5log moves', async () => {
      const path = make(name('made'), ['/x', '/y', '/z', '/x'], options);
      h5py(
        path,
        "f['new'] = np.arange(3)",
        "f.create_group('h')",
        "f['ends'][0] = f['new'].ref",
        "f['ends'][3] = f['h'].ref",
      );
      const expected = ['/new', '/y', '/z', '/h'];
      expect(byH5log(path)).toEqual(expected);
      await expectCopied(path, expected);
      // It moves twice before others see where it is.
      move(path, 'new', 'h', 'y');
      expect(byH5log(path)).toEqual(expected);
      move(path, 'new', 'h', '/');
      expect(byH5log(path)).toEqual(expected);
      await expectCopied(path, expected);
      await expectKept(path, expected);
    });

    test('to copies that h5py made of objects', async () => {
      const path = make(name('copies'), ['/x', '/y', '/g', '/x'], options);
      h5py(path, "f.copy('x', 'a')", "f.copy('g', 'b')", "f['ends'][1] = f['a'].ref", "f['ends'][3] = f['b'].ref");
      const expected = ['/x', '/a', '/g', '/b'];
      expect(byH5log(path)).toEqual(expected);
      await expectCopied(path, expected);
      move(path, 'a', 'x', 'b');
      expect(byH5log(path)).toEqual(expected);
      move(path, 'a', 'b', 'g');
      expect(byH5log(path)).toEqual(expected);
      await expectCopied(path, expected);
      await expectKept(path, expected);
      h5py(path, "f['ends'][0] = f['b'].ref", "f['ends'][2] = f['ends'][1]");
      await expectKept(path, ['/b', '/a', '/a', '/b']);
    });

    test('to objects that h5log has moved since it published', async () => {
      const path = make(name('moved'), ['/x', '/y', '/z', '/x'], options);
      move(path, 'x', 'g/deep', 'g');
      // The address of what is no longer in the present structure is copied as well.
      h5py(path, "f['ends'][1] = f['g/deep'].ref", "f['ends'][2] = f['ends'][0]");
      const expected = ['/x', '/g/deep', '/x', '/x'];
      expect(byH5log(path)).toEqual(expected);
      move(path, 'x', 'g/deep', 'g');
      await expectCopied(path, expected);
      await expectKept(path, expected);
    });

    test('to objects that are gone lead nowhere', async () => {
      const path = make(name('gone'), ['/x', '/y', '/z', '/x'], options);
      h5py(path, "f['new'] = np.arange(3)", "f['ends'][1] = f['new'].ref", "del f['new']", "del f['z']");
      expect(byH5log(path)).toEqual(['/x', '', '', '/x']);
      await expectKept(path, ['/x', '', '', '/x']);
    });
  });

  describe.each(LAYOUTS.slice(1))('in %s that grow and shrink', (layout, options) => {
    const name = (test: string): string => `${layout.replace(' ', '-')}-${test}`;

    test('h5py appends, and h5log goes on', async () => {
      const path = make(name('grown'), ['/x', '/y', '/z', '/x'], options);
      h5py(path, "d = f['ends']", 'd.resize((8,))', "d[5] = f['y'].ref", "d[7] = f['g'].ref");
      const file = File.openSync(path, { mode: 'r+' });
      file.dataset('ends').append(['/g/deep'] as never);
      file.closeSync();
      const expected = ['/x', '/y', '/z', '/x', '', '/y', '', '/g', '/g/deep'];
      await expectKept(path, expected);
      await expectCopied(path, expected);
    });

    test('what h5py cuts off stays gone', async () => {
      const path = make(name('cut'), ['/x', '/y', '/z', '/x', '/y'], options);
      h5py(path, "d = f['ends']", 'd.resize((2,))', 'd.resize((4,))', "d[3] = f['g'].ref");
      await expectCopied(path, ['/x', '/y', '', '/g']);
      await expectKept(path, ['/x', '/y', '', '/g']);
    });

    test('what h5log cuts off stays gone', async () => {
      const path = make(name('cut-here'), ['/x', '/y', '/z', '/x', '/y'], options);
      h5py(path, "f['ends'][1] = f['g'].ref");
      const file = File.openSync(path, { mode: 'r+', publish: 'never' });
      const ends = file.dataset('ends');
      ends.resize([2]);
      ends.resize([4]);
      file.closeSync();
      await expectCopied(path, ['/x', '/g', '', '']);
      await expectKept(path, ['/x', '/g', '', '']);
    });
  });

  describe('in other types', () => {
    const RECORD = T.compound({ n: 'int32', text: T.string(), to: T.reference, both: T.array(T.reference, [2]) });
    const record = (n: number, to: string, ...both: string[]) => ({ n, text: `number ${n}`, to, both });

    test.each([
      ['contiguous', {}],
      ['packed', { maxShape: [null], chunks: [2], filters: [{ deflate: 2 }] }],
    ] as const)('compounds and arrays, %s', async (layout, options) => {
      const path = make(`records-${layout}`, ['/x']);
      const file = File.openSync(path, { mode: 'r+' });
      file
        .createDataset('records', { dtype: RECORD, shape: [3], ...options } as DatasetOptions<typeof RECORD>)
        .write([record(0, '/x', '/y', ''), record(1, '/g', '', '/z'), record(2, '', '/x', '/x')]);
      file.closeSync();
      h5py(
        path,
        "f['new'] = 1",
        "d = f['records']",
        'v = d[1]',
        "v['n'] = 10",
        "v['text'] = 'a longer text'",
        "v['to'] = f['new'].ref",
        "v['both'][0] = f['g/deep'].ref",
        'd[1] = v',
      );
      const changed = { n: 10, text: 'a longer text', to: '/new', both: ['/g/deep', '/z'] };
      const expected = [record(0, '/x', '/y', ''), changed, record(2, '', '/x', '/x')];
      expect(byH5log(path, 'records')).toEqual(expected);
      move(path, 'new', 'x');
      const more = File.openSync(path, { mode: 'r+', publish: 'never' });
      more.dataset('records').write([record(7, '/new', '/y', '/z')] as never, { start: [2], count: [1] });
      more.closeSync();
      expected[2] = record(7, '/new', '/y', '/z');
      expect(byH5log(path, 'records')).toEqual(expected);
      for (const way of [compact, replay, seal]) {
        const copy = join(folder, `records-${layout}-${way.name}.h5`);
        if (way === seal) await seal(path, { to: copy, force: true });
        else await way(path, copy, { force: true });
        expect(byH5log(copy, 'records'), way.name).toEqual(expected);
      }
      publish(path);
      expect(byH5log(path, 'records')).toEqual(expected);
      const seen =
        "print([[f[r['to']].name, f[r['both'][1]].name, r['text'].decode()] for r in h5py.File(sys.argv[1])['records'][1:]])";
      expect(pythonSync(`import sys, h5py\nf = h5py.File(sys.argv[1])\n${seen}`, [path]).trim()).toBe(
        "[['/new', '/z', 'a longer text'], ['/new', '/z', 'number 7']]",
      );
    });

    test('sequences of them, which h5log never publishes, are refused where they count', async () => {
      const path = make('sequences', ['/x']);
      const file = File.openSync(path, { mode: 'r+', publish: 'never' });
      const lists = file.createDataset('lists', { dtype: T.vlen(T.reference), shape: [3] });
      lists.write([['/y']] as never, { start: [0], count: [1] });
      file.closeSync();
      expect(byH5log(path, 'lists')).toEqual([['/y'], [], []]);
      h5py(path, "f['lists'][1] = [f['x'].ref, f['z'].ref]");
      expect(() => byH5log(path, 'lists')).toThrow(
        expect.objectContaining({ code: 'FORMAT', object: '/lists', message: expect.stringMatching(/sequences/) }),
      );
      await expect(replay(path, join(folder, 'sequences-replay.h5'))).rejects.toMatchObject({ code: 'FORMAT' });
      await expect(compact(path, join(folder, 'sequences-compact.h5'))).rejects.toMatchObject({ code: 'FORMAT' });
      await expect(seal(path, { to: join(folder, 'sequences-seal.h5') })).rejects.toMatchObject({ code: 'FORMAT' });
      expect(byH5log(path)).toEqual(['/x']);
      // What h5log writes over all of them counts.
      const again = File.openSync(path, { mode: 'r+', publish: 'never' });
      again.dataset('lists').write([['/z'], [], ['/g']] as never);
      again.closeSync();
      expect(byH5log(path, 'lists')).toEqual([['/z'], [], ['/g']]);
      expect(pythonSync("import sys, h5py\nprint(len(h5py.File(sys.argv[1])['lists'][1]))", [path]).trim()).toBe('2');
    });
  });

  test('to objects whose attributes h5py changes, which may damage the headers that they had before', () => {
    const next = random(seed('attributes that h5py changes'));
    const pick = (n: number): number => Math.floor(next() * n);
    const objects = ['x', 'y', 'z', 'g'];
    for (let i = repeats(40); i > 0; i--) {
      const path = make('attributes', ['/x', '/y', '/z', '/g', '']);
      let made = 0;
      for (let session = 0; session < 3; session++) {
        const file = File.openSync(path, { mode: 'r+', publish: 'never' });
        for (let k = 0; k < 6; k++) {
          const name = objects[pick(4)] as string;
          const { attributes } = name === 'g' ? file.group(name) : file.dataset(name);
          const attribute = `a${pick(10)}`;
          if (pick(3) === 0 && attributes.has(attribute)) attributes.delete(attribute);
          else attributes.set(attribute, 'w'.repeat(pick(300)));
          if (pick(2) === 0) file.flushSync();
        }
        file.closeSync();
        // Always others: HDF5 1.10.8 cannot replace an attribute in dense storage that lists attributes in the order of their creation.
        const lines = Array.from(
          { length: 1 + pick(12) },
          () => `f['${objects[pick(4)]}'].attrs['b${made++}'] = 'v' * ${1 + pick(300)}`,
        );
        for (const [place, name] of objects.entries())
          if (pick(2) === 0) lines.push(`f['ends'][${place}] = f['${name}'].ref`);
        h5py(path, ...lines);
        expect(byH5log(path)).toEqual(['/x', '/y', '/z', '/g', '']);
      }
    }
  });

  test('an address whose header is damaged leads to what was published', async () => {
    const path = make('damaged', ['/x', '/y', '/x']);
    const address = Number(pythonSync(ADDRESS, [path, '0']));
    // Another program has the place of the old header, and refers to something else in one of the elements.
    move(path, 'x', 'y');
    damageHeader(path, address);
    h5py(path, "f['new'] = 1", "f['ends'][2] = f['new'].ref", "del f['new']");
    expect(byH5log(path)).toEqual(['/x', '/y', '']);
    await expectCopied(path, ['/x', '/y', '']);
    await expectKept(path, ['/x', '/y', '']);
  });

  test('an address that h5py wrote leads to its object when the header there is damaged', async () => {
    const path = make('damaged-later', ['/x', '/y', '/z', '/x']);
    // The first is where it was published, the second has moved since.
    move(path, 'x');
    h5py(path, "f['ends'][2] = f['y'].ref", "f['ends'][3] = f['x'].ref", "f['ends'][0] = f['z'].ref");
    const addresses = [2, 3].map((i) => Number(pythonSync(ADDRESS, [path, String(i)])));
    move(path, 'x', 'y', 'z');
    move(path, 'x');
    for (const address of addresses) damageHeader(path, address);
    const expected = ['/z', '/y', '/y', '/x'];
    expect(byH5log(path)).toEqual(expected);
    await expectCopied(path, expected);
    await expectKept(path, expected);
  });

  test('objects that move in the session that has published them', async () => {
    const path = make('same-session', ['/x', '/y', '/x']);
    const file = File.openSync(path, { mode: 'r+', publish: 'never' });
    file.dataset('x').attributes.set('a', 1);
    file.publishSync();
    file.dataset('x').attributes.set('b', 1);
    file.flushSync();
    file.dataset('x').attributes.set('c', 1);
    file.closeSync();
    const published = Number(pythonSync(ADDRESS, [path, '0']));
    damageHeader(path, published);
    expect(byH5log(path)).toEqual(['/x', '/y', '/x']);
    await expectKept(path, ['/x', '/y', '/x']);
  });

  test('an object has as many addresses as layouts may have of it', () => {
    const path = make('many', ['/x', '/y']);
    for (let i = 0; i < 20; i++) {
      const file = File.openSync(path, { mode: 'r+', publish: 'close' });
      file.dataset('x').attributes.set('a', i);
      file.flushSync();
      file.dataset('x').attributes.set('b', i);
      file.closeSync();
    }
    const sizes = "print(h5py.File(sys.argv[1])['x'].attrs['_number'].size)";
    expect(Number(pythonSync(`import sys, h5py\n${sizes}`, [path]))).toBeLessThanOrEqual(3);
    expect(byH5log(path)).toEqual(['/x', '/y']);
  });

  test('compact leaves out the addresses that objects had in its input: others are there now', async () => {
    const path = make('addresses', ['/x', '/y', '/z', '/g/deep']);
    move(path, 'x', 'y', 'g');
    publish(path);
    const copy = join(folder, 'addresses-compact.h5');
    await compact(path, copy, { force: true });
    expect(byH5log(copy)).toEqual(['/x', '/y', '/z', '/g/deep']);
    const stored = File.openSync(copy, { connector: 'native' });
    for (const name of NAMES) expect(stored.dataset(name).attributes.get('_number')).toHaveLength(1);
    stored.closeSync();
    await expectKept(copy, ['/x', '/y', '/z', '/g/deep']);
  });

  test.each([
    ['an object of the log', 'w', ["f['ends'][1] = f['w'].ref"]],
    ['a copy', 'copy', ["f.copy('x', 'copy')", "f['ends'][1] = f['copy'].ref"]],
  ])('%s that h5log deletes before it has a number is gone', async (what, name, lines) => {
    const path = make(`deleted-${what.replaceAll(' ', '-')}`, ['/x', '/y', '/z']);
    const file = File.openSync(path, { mode: 'r+', publish: 'close' });
    file.createDataset('w', { dtype: 'int32', shape: [2] }).write(Int32Array.of(1, 2));
    file.closeSync();
    h5py(path, ...lines);
    expect(byH5log(path)).toEqual(['/x', `/${name}`, '/z']);
    const again = File.openSync(path, { mode: 'r+', publish: 'never' });
    again.delete(name);
    again.closeSync();
    expect(byH5log(path)).toEqual(['/x', '', '/z']);
    await expectCopied(path, ['/x', '', '/z']);
    await expectKept(path, ['/x', '', '/z']);
  });

  test('a copy that h5py has made and deleted is gone', async () => {
    const path = make('deleted-by-h5py', ['/x', '/y', '/z']);
    // Something behind it, or the file would end before it.
    h5py(path, "f.copy('x', 'copy')", "f['ends'][1] = f['copy'].ref", "f['last'] = 1");
    h5py(path, "del f['copy']");
    expect(byH5log(path)).toEqual(['/x', '', '/z']);
    await expectKept(path, ['/x', '', '/z']);
  });

  test('verify repairs no such file to an earlier state', async () => {
    const path = make('repaired', ['/x', '/y']);
    move(path, 'x');
    h5py(path, "f['ends'][1] = f['z'].ref");
    const repaired = join(folder, 'repaired-to.h5');
    await verify(path, { repairTo: repaired });
    expect(byH5log(repaired)).toEqual(['/x', '/z']);
  });

  test('earlier commits, and asynchronous reads', async () => {
    const path = make('later', ['/x', '/y', '/z'], { maxShape: [null], chunks: [2] });
    h5py(path, "f['new'] = 1", "d = f['ends']", "d[2] = f['new'].ref");
    const file = File.openSync(path, { mode: 'r+', publish: 'never' });
    file.dataset('new').attributes.set('moved', 1);
    file.flushSync();
    const { sequence } = file;
    file.dataset('ends').write(['/g'] as never, { start: [0], count: [1] });
    file.closeSync();
    const earlier = File.openSync(path, { asOf: sequence });
    expect([...(earlier.dataset('ends').readSync() as never as string[])]).toEqual(['/x', '/y', '/new']);
    earlier.closeSync();
    const bytes = new Blob([readFileSync(path)]);
    const remote = await File.open(bytes);
    expect([...((await remote.dataset('ends').read()) as never as string[])]).toEqual(['/g', '/y', '/new']);
    await remote.close();
    const lazy = await File.open(bytes, { lazy: true });
    await lazy.load('/ends');
    expect([...((await lazy.dataset('ends').read()) as never as string[])]).toEqual(['/g', '/y', '/new']);
    await lazy.close();
  });

  test('a file that is opened and closed stays as it is, unless h5py refers to what has no number', () => {
    const path = make('left', ['/x', '/y']);
    const opened = (): number => {
      const file = File.openSync(path, { mode: 'r+' });
      file.closeSync();
      return statSync(path).size;
    };
    const { size } = statSync(path);
    expect(opened()).toBe(size);
    h5py(path, "f['ends'][1] = f['x'].ref");
    expect(opened()).toBe(size);
  });
});
