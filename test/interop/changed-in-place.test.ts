// Files that other programs have changed without making them longer: superblock and commit records do not say so.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { compact, replay, seal } from 'h5log/tools';
import { expect, test } from 'vitest';
import { sessionOf } from '../../src/api/handle.ts';
import { driveSync } from '../../src/storage/io.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();
let made = 0;

type Way = 'never' | 'close';

/** A file with room for what others will add, once they have deleted something: groups before and behind the datasets, and data. */
function make(publish: Way, fill: (file: File) => void, behind: (file: File) => void = () => {}): string {
  const path = join(folder, `${made++}.h5`);
  const file = File.createSync(path, { publish });
  addRoom(file, 'results');
  file.createDataset('spare', { dtype: 'int32', shape: [4096] }).write(new Int32Array(4096).fill(7));
  file.flushSync();
  fill(file);
  file.flushSync();
  addRoom(file, 'late');
  behind(file);
  file.closeSync();
  return path;
}

function addRoom(file: File, name: string): void {
  for (let i = 0; i < 12; i++) file.createGroup(`${name}/g${i}`).attributes.set('text', 'x'.repeat(2000));
}

/** Runs lines of Python with the file, open for writing, as `f`: it does not become longer. */
function h5py(path: string, ...lines: string[]): void {
  const { size } = statSync(path);
  const program = ['import sys, h5py, numpy as np', "f = h5py.File(sys.argv[1], 'r+')", ...lines, 'f.close()'];
  pythonSync(program.join('\n'), [path]);
  expect(statSync(path).size).toBe(size);
}

/** What h5py shows. */
const seen = (path: string, ...names: string[]): unknown[] =>
  JSON.parse(
    pythonSync(
      'import sys, json, h5py\nwith h5py.File(sys.argv[1]) as f: print(json.dumps([f[n][()].tolist() for n in sys.argv[2:]]))',
      [path, ...names],
    ),
  );

/** Opens a file for reading, and looks at it. */
function look<T>(path: string, see: (file: File) => T): T {
  const file = File.openSync(path);
  try {
    return see(file);
  } finally {
    file.closeSync();
  }
}

/** The values of a dataset; null if it has none. */
const valuesOf = (path: string, name: string): unknown =>
  look(path, (file) => {
    const dataset = file.dataset(name) as Dataset;
    const values = dataset.readSync() as unknown;
    return dataset.shape.length === 0 ? null : [...(values as Iterable<unknown>)];
  });

/** Opens a file for writing, and changes it. */
function change(path: string, todo: (file: File) => void, publish?: Way): void {
  const file = File.openSync(path, { mode: 'r+', ...(publish && { publish }) });
  todo(file);
  file.closeSync();
}

const write = (file: File, name: string, ...values: number[]): void =>
  file.dataset(name, 'int32').write(Int32Array.from(values), { start: [0], count: [values.length] });

const addX = (file: File): void => {
  file.createDataset('x', { dtype: 'int32', shape: [4] }).write(Int32Array.of(1, 2, 3, 4));
};

/** The header of the copy comes before that of the original, or behind it. */
const places: readonly (readonly [string, string])[] = [
  ['below', 'results'],
  ['behind', 'late'],
];

withOracle('python', 'a dataset that was copied to where something else had been', () => {
  test.each(places)('published, %s the original: is a dataset of its own', (_, room) => {
    const path = make('close', addX);
    h5py(path, `del f['${room}'], f['spare']`, "f.copy('x', 'backup')", "f['backup'][0] = 9");
    // The bytes of both may be the same ones, and the copy is what its layout shows.
    expect(valuesOf(path, 'x')).toEqual(seen(path, 'x')[0]);
    expect(valuesOf(path, 'backup')).toEqual(seen(path, 'backup')[0]);
    for (let i = 0; i < 3; i++) {
      change(path, (file) => write(file, 'x', 10 + i, 20));
      expect([valuesOf(path, 'x'), valuesOf(path, 'backup')]).toEqual([
        [10 + i, 20, 3, 4],
        [9, 2, 3, 4],
      ]);
      expect(seen(path, 'x', 'backup')).toEqual([
        [10 + i, 20, 3, 4],
        [9, 2, 3, 4],
      ]);
    }
    change(path, (file) => {
      write(file, 'backup', 7, 7);
      file.dataset('backup').attributes.set('note', 'mine');
    });
    change(path, (file) => write(file, 'x', 5));
    const after = [
      [5, 20, 3, 4],
      [7, 7, 3, 4],
    ];
    expect([valuesOf(path, 'x'), valuesOf(path, 'backup')]).toEqual(after);
    expect(seen(path, 'x', 'backup')).toEqual(after);
  });

  test.each(places)('not published, %s the original: has no values', (_, room) => {
    const path = make('never', addX);
    h5py(path, `del f['${room}'], f['spare']`, "f.copy('x', 'backup')");
    expect([valuesOf(path, 'x'), valuesOf(path, 'backup')]).toEqual([[1, 2, 3, 4], null]);
    change(path, (file) => write(file, 'x', 10));
    expect([valuesOf(path, 'x'), valuesOf(path, 'backup')]).toEqual([[10, 2, 3, 4], null]);
    change(path, (file) => file.dataset('backup').attributes.set('a', 1));
    change(path, (file) => write(file, 'x', 11), 'close');
    expect([valuesOf(path, 'x'), valuesOf(path, 'backup')]).toEqual([[11, 2, 3, 4], null]);
    expect(seen(path, 'x')).toEqual([[11, 2, 3, 4]]);
  });

  test.each(places)('%s the original, which is then deleted: takes its place', (_, room) => {
    const path = make('close', addX);
    h5py(path, `del f['${room}'], f['spare']`, "f.copy('x', 'y')", "del f['x']");
    change(path, (file) => write(file, 'y', 10));
    change(path, (file) => write(file, 'y', 11));
    expect(valuesOf(path, 'y')).toEqual([11, 2, 3, 4]);
    expect(seen(path, 'y')).toEqual([[11, 2, 3, 4]]);
  });

  test('and copied back to where it had been: is the dataset', () => {
    const path = make('never', addX);
    h5py(path, "del f['results'], f['spare']", "f.copy('x', 'y')", "del f['x']", "f.copy('y', 'x')", "del f['y']");
    change(path, (file) => write(file, 'x', 10));
    expect(valuesOf(path, 'x')).toEqual([10, 2, 3, 4]);
  });

  test.each(places)('with a group of others, %s them', (_, room) => {
    const path = make('close', (file) => {
      file.createDataset('g/x', { dtype: 'int32', shape: [4] }).write(Int32Array.of(1, 2, 3, 4));
      file.createDataset('g/h/y', { dtype: 'int32', shape: [4] }).write([5, 6, 7, 8]);
    });
    h5py(path, `del f['${room}'], f['spare']`, "f.copy('g/x', 'spare')", `f.copy('g/h/y', '${room}')`);
    for (let i = 0; i < 2; i++) {
      change(path, (file) => {
        write(file, 'g/x', 100 + i);
        write(file, 'g/h/y', 200 + i);
      });
      const after = [
        [100 + i, 2, 3, 4],
        [200 + i, 6, 7, 8],
        [1, 2, 3, 4],
        [5, 6, 7, 8],
      ];
      const names = ['g/x', 'g/h/y', 'spare', room];
      expect(names.map((name) => valuesOf(path, name))).toEqual(after);
      expect(seen(path, ...names)).toEqual(after);
    }
  });

  test.each(places)('%s the original: tools leave the copy as it is', async (_, room) => {
    const path = make('close', addX);
    h5py(path, `del f['${room}'], f['spare']`, "f.copy('x', 'backup')", "f['backup'][0] = 9");
    change(path, (file) => write(file, 'x', 10), 'never');
    const now = [
      [10, 2, 3, 4],
      [9, 2, 3, 4],
    ];
    for (const tool of [compact, replay]) {
      const to = join(folder, `${made++}.h5`);
      await tool(path, to);
      expect(
        ['x', 'backup'].map((name) => valuesOf(to, name)),
        tool.name,
      ).toEqual(now);
      expect(seen(to, 'x', 'backup'), tool.name).toEqual(now);
      if (tool === compact) {
        change(to, (file) => write(file, 'x', 11), 'close');
        expect(seen(to, 'x', 'backup')).toEqual([[11, 2, 3, 4], now[1]]);
      }
    }
    await seal(path);
    expect(['x', 'backup'].map((name) => valuesOf(path, name))).toEqual(now);
    const text = pythonSync("import sys, h5py\nf = h5py.File(sys.argv[1])\nprint(list(f['x'].attrs))", [path]);
    expect(text.trim()).toBe('[]');
  });
});

/** Makes a file one of a version whose datasets do not say where they are. */
function forgetAddresses(path: string): void {
  const names = look(path, (file) => [...file.keys()].filter((name) => file.get(name)?.kind === 'dataset'));
  pythonSync(
    `import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as f:\n  for n in sys.argv[2:]: del f[n].attrs['_at']`,
    [path, ...names],
  );
  change(path, (file) => {
    for (const name of names) file.dataset(name).attributes.set('a', 1);
  });
}

withOracle(
  'python',
  'a file of an earlier version in which a dataset was copied to where something else had been',
  () => {
    test.each(['never', 'close'] as const)('published %s: the first of both is the dataset', (publish) => {
      const path = make(publish, addX);
      forgetAddresses(path);
      change(path, (file) => addRoom(file, 'later'));
      const deleted = publish === 'never' ? "del f['later']" : "del f['later'], f['spare']";
      h5py(path, deleted, "f.copy('x', 'y')", "assert '_at' not in f['y'].attrs");
      for (let i = 0; i < 2; i++) {
        change(path, (file) => write(file, 'x', 10 + i));
        expect(valuesOf(path, 'x')).toEqual([10 + i, 2, 3, 4]);
        expect(valuesOf(path, 'y')).toEqual(publish === 'never' ? null : [1, 2, 3, 4]);
      }
    });
  },
);

withOracle('python', 'a tree in which h5py has made a reference where something else had been', () => {
  test('leads to the newest state', () => {
    const path = make('close', addX);
    h5py(path, "del f['results'], f['spare']", "f['late/g1'].attrs['to'] = f['x'].ref");
    for (let i = 0; i < 2; i++) {
      change(path, (file) => file.dataset('x').attributes.set('step', i));
      expect(look(path, (file) => file.group('late/g1').attributes.get('to'))).toBe('/x');
      const step = "import sys, h5py\nf = h5py.File(sys.argv[1])\nprint(f[f['late/g1'].attrs['to']].attrs['step'])";
      expect(Number(pythonSync(step, [path]))).toBe(i);
    }
  });
});

/** A file with references to objects, which have numbers. */
function makeReferring(publish: Way): string {
  return make(publish, (file) => {
    addX(file);
    file.createGroup('g').attributes.set('a', 1);
    file.createDataset('ends', { dtype: T.reference, shape: [3] }).write(['/x', '/g', '/results'] as never);
  });
}

withOracle('python', 'an object that references lead to, and that was copied to where something else had been', () => {
  test.each(places.flatMap(([place, room]) => (['never', 'close'] as const).map((way) => [way, place, room] as const)))(
    'published %s, %s the original: they lead to the original',
    async (publish, _, room) => {
      const path = makeReferring(publish);
      h5py(path, `del f['${room}'], f['spare']`, "f.copy('x', 'a')", "f.copy('g', 'b')");
      const expected = ['/x', '/g', room === 'late' ? '/results' : ''];
      expect(valuesOf(path, 'ends')).toEqual(expected);
      change(path, (file) => {
        file.group('g').attributes.set('a', 2);
        file.group('b').attributes.set('a', 3);
        write(file, 'x', 10);
      });
      expect(valuesOf(path, 'ends')).toEqual(expected);
      // A reference to a copy leads to the copy.
      change(path, (file) => file.dataset('ends').write(['/b', '/a'] as never, { start: [1], count: [2] }));
      expect(valuesOf(path, 'ends')).toEqual(['/x', '/b', '/a']);
      change(path, (file) => {
        file.group('b').attributes.set('a', 4);
        write(file, 'x', 11);
      });
      change(path, (file) => file.move('x', 'y'), 'close');
      const now = ['/y', '/b', '/a'];
      expect(valuesOf(path, 'ends')).toEqual(now);
      expect([valuesOf(path, 'y'), valuesOf(path, 'a')]).toEqual([
        [11, 2, 3, 4],
        publish === 'never' ? null : [1, 2, 3, 4],
      ]);
      for (const tool of [compact, replay]) {
        const to = join(folder, `${made++}.h5`);
        await tool(path, to);
        expect(valuesOf(to, 'ends'), tool.name).toEqual(now);
      }
      await seal(path);
      expect(valuesOf(path, 'ends')).toEqual(now);
    },
  );
});

withOracle('python', 'a log with a copy, read on demand', () => {
  test.each<readonly [string, string]>([...places, ['none', '']])('%s', async (_, room) => {
    const path = make('close', addX);
    if (room !== '') h5py(path, `del f['${room}'], f['spare']`, "f.copy('x', 'backup')", "f['backup'][0] = 9");
    const file = await File.open(new Blob([readFileSync(path)]), { lazy: true });
    await file.load('x');
    const { requests } = file.storageStatistics();
    expect([...(await file.dataset('x', 'int32').read())]).toEqual([1, 2, 3, 4]);
    expect(requests).toBeGreaterThan(0);
    if (room !== '') {
      await file.load('backup');
      expect([...(await file.dataset('backup', 'int32').read())]).toEqual([9, 2, 3, 4]);
    }
    await file.close();
    const eager = await File.open(new Blob([readFileSync(path)]));
    for (const name of room === '' ? ['x'] : ['x', 'backup'])
      expect([...(await eager.dataset(name, 'int32').read())]).toEqual(valuesOf(path, name));
    await eager.close();
  });
});

/** Where a dataset is, and where it says that it is. */
const addressesOf = (path: string, name: string): number[] =>
  JSON.parse(
    pythonSync(
      "import sys, json, h5py\nd = h5py.File(sys.argv[1])[sys.argv[2]]\nprint(json.dumps([h5py.h5o.get_info(d.id).addr, int(d.attrs['_at'][0])]))",
      [path, name],
    ),
  ) as number[];

withOracle('python', 'a dataset that a program has moved which does not know what it says', () => {
  test.each(['x', 'backup'])(
    'is what comes first, or is not before where it was, and says where it is once it is written; %s changes',
    (wrong) => {
      const path = make('close', addX);
      // Both are elsewhere than they say: so an earlier version leaves what it has moved.
      h5py(path, "del f['late'], f['spare']", "f.copy('x', 'backup')", "f['x'].attrs.modify('_at', np.array([4711]))");
      const [x = 0, xSays] = addressesOf(path, 'x');
      expect(xSays).not.toBe(x);
      if (wrong === 'x') change(path, (file) => write(file, 'x', 10));
      else change(path, (file) => write(file, 'backup', 11));
      const after = [
        [wrong === 'x' ? 10 : 1, 2, 3, 4],
        [wrong === 'x' ? 1 : 11, 2, 3, 4],
      ];
      for (let i = 0; i < 2; i++) {
        expect([valuesOf(path, 'x'), valuesOf(path, 'backup')]).toEqual(after);
        expect(seen(path, 'x', 'backup')).toEqual(after);
        change(path, (file) => file.dataset('x').attributes.set('a', i));
      }
      const [is, says] = addressesOf(path, 'x');
      expect(says).toBe(is);
    },
  );
});

/** Every dataset of the log says where it is. */
function mustBeRight(file: File): number {
  const { structure, storage } = sessionOf(file);
  let checked = 0;
  const all = new Set([structure.root]);
  for (const node of all) {
    for (const link of node.links.values()) {
      const target = driveSync(storage, structure.loader.follow(link));
      if (target) all.add(target);
    }
    if (!node.attributes.has('_ID')) continue;
    expect(driveSync(storage, structure.attribute(node, '_at'))).toEqual(BigInt64Array.of(BigInt(node.address)));
    checked++;
  }
  return checked;
}

test('every dataset says where it is, in every state of a file, behind a user block, and when it was compacted', async () => {
  const path = join(folder, 'states.h5');
  const file = File.createSync(path, { publish: 'flush' });
  const options = [
    {},
    { maxShape: [null] },
    { filters: ['shuffle'] as const, chunks: [2] },
    { attributes: { text: 'some text', n: 5 } },
    { attributes: { long: 'x'.repeat(4000) } },
    { attributes: { dense: 'x'.repeat(70_000) } },
    { maxShape: [null], attributes: { long: 'x'.repeat(1000) } },
  ];
  for (const [i, each] of options.entries())
    file.createDataset(`g/d${i}`, { dtype: 'int32', shape: [4], ...each }).write(Int32Array.of(1, 2, 3, i));
  file.flushSync();
  for (let step = 0; step < 12; step++) {
    for (const i of options.keys()) {
      const dataset = file.dataset(`g/d${i}`, 'int32');
      if ((i + step) % 3 === 0) dataset.write(Int32Array.of(step), { start: [0], count: [1] });
      if ((i + step) % 4 === 0) dataset.attributes.set(`a${step % 5}`, 'y'.repeat(30 * step));
      if ((i + step) % 5 === 0 && dataset.maxShape[0] === null) dataset.resize([4 + step]);
    }
    file.createDataset(`new${step}`, { dtype: 'int8', shape: [1] });
    if (step === 6) file.createHardLink('link', 'g/d3');
    file.flushSync();
    mustBeRight(file);
  }
  file.closeSync();
  const { length } = look(path, (reader) => [...reader.commits()]);
  for (let asOf = 0; asOf < length; asOf++) {
    const reader = File.openSync(path, { asOf });
    expect(mustBeRight(reader)).toBe(asOf === 0 ? 0 : options.length + asOf - 1);
    reader.closeSync();
  }
  const moved = join(folder, 'user-block.h5');
  writeFileSync(moved, Buffer.concat([Buffer.alloc(512), readFileSync(path)]));
  expect(look(moved, mustBeRight)).toBe(options.length + 12);
  const compacted = join(folder, 'compacted.h5');
  await compact(path, compacted);
  expect(look(compacted, mustBeRight)).toBe(options.length + 12);
  change(compacted, (again) => write(again, 'g/d1', 5));
  expect(look(compacted, mustBeRight)).toBe(options.length + 12);
});

test('a user may have an attribute of that name', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  const x = file.createDataset('x', { dtype: 'int32', shape: [2], attributes: { _at: 5 } });
  x.write(Int32Array.of(1, 2));
  file.closeSync();
  const again = File.openSync(storage);
  expect([...again.dataset('x').attributes.keys()]).toEqual(['_at']);
  expect(again.dataset('x').attributes.get('_at')).toBe(5);
  again.closeSync();
  const ordinary = File.createSync(memoryStorage(), { connector: 'native' });
  const y = ordinary.createDataset('y', { dtype: 'int32', shape: [2] });
  y.attributes.set('_at', BigInt64Array.of(0n), { dtype: 'int64' });
  ordinary.flushSync();
  expect(y.attributes.get('_at')).toEqual(BigInt64Array.of(0n));
  ordinary.closeSync();
});
