import { spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, type Group, H5LogError, T } from 'h5log';
import { compact, replay, seal, verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const directory = temporaryDirectory();
const at = (name: string): string => join(directory, name);

/** A log of several commits; `from` tells its values from those of others. */
function makeLog(name: string, from: number, options: { filters?: boolean } = {}): string {
  const path = at(name);
  const file = File.createSync(path, { publish: 'never' });
  const filters = options.filters ? [{ deflate: 6 }] : [];
  const a = file.createDataset('a', { dtype: 'int32', shape: [40], filters });
  const b = file.createDataset('g/b', { dtype: 'int32', shape: [40], filters });
  for (let i = 0; i < 40; i++) {
    a.write(Int32Array.of(from + i), { start: [i], count: [1] });
    b.write(Int32Array.of(from + 1000 + i), { start: [39 - i], count: [1] });
    // Written twice: the order of blocks counts.
    if (i > 0) a.write(Int32Array.of(from + 2000 + i), { start: [i - 1], count: [1] });
    if (i % 7 === 0) file.flushSync();
  }
  file.closeSync();
  return path;
}

const values = (path: string, name: string): number[] => {
  const file = File.openSync(path);
  try {
    return [...file.dataset(name, 'int32').readSync()];
  } finally {
    file.closeSync();
  }
};

/** The values, or the code of the error. */
const outcome = (path: string, name: string): number[] | string => {
  try {
    return values(path, name);
  } catch (error) {
    if (error instanceof H5LogError) return error.code;
    throw error;
  }
};

const tool = (name: string, ...args: string[]): void => {
  const { status, stderr, error } = spawnSync(`/usr/bin/${name}`, args, { encoding: 'utf8' });
  if (error || status !== 0) throw new Error(`${name} ${args.join(' ')}: ${status} ${stderr}`);
};

withOracle(['python', 'h5dump'], 'a log that other programs copied', () => {
  test('by h5repack, with elements that point elsewhere: what they point to moved with them', async () => {
    const path = at('pointing.h5');
    const file = File.createSync(path, { publish: 'never' });
    const texts = file.createDataset('texts', { dtype: T.string(), shape: [4] });
    const records = file.createDataset('g/records', {
      dtype: T.compound({ s: T.string(), list: T.vlen('int16'), to: T.reference }),
      shape: [2],
      filters: [{ deflate: 6 }],
    });
    texts.write(['one', 'two', '', 'vier']);
    file.flushSync();
    records.write([
      { s: 'a', list: Int16Array.of(1, 2), to: '/texts' },
      { s: '', list: new Int16Array(0), to: '' },
    ]);
    texts.write(['zwei'], { start: [1], count: [1] });
    file.closeSync();
    const read = (from: string): unknown[] => {
      const found = File.openSync(from);
      const lists = ['texts', 'g/records'].map((name) => found.dataset(name).readSync());
      found.closeSync();
      return lists;
    };
    const expected = read(path);
    const moved = at('pointing-moved.h5');
    tool('h5repack', path, moved);
    expect(read(moved)).toEqual(expected);
    for (const [name, make] of [
      ['replayed', replay],
      ['compacted', compact],
    ] as const) {
      const made = at(`pointing-${name}.h5`);
      await make(moved, made);
      expect(read(made), name).toEqual(expected);
    }
    const sealed = at('pointing-sealed.h5');
    await seal(moved, { to: sealed });
    expect(read(sealed)).toEqual(expected);
  });

  test.each([
    ['plain', {}],
    ['filtered', { filters: true }],
  ])('by h5repack, %s: is read by the difference, and can only be read', async (kind, options) => {
    const path = makeLog(`whole-${kind}.h5`, 5000, options);
    const copy = at(`repacked-${kind}.h5`);
    tool('h5repack', path, copy);
    for (const name of ['a', 'g/b']) expect(values(copy, name)).toEqual(values(path, name));
    expect(() => File.openSync(copy, { mode: 'r+' })).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringContaining('compact') as string }),
    );
    expect(() => File.openSync(copy, { asOf: 2 })).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    await compact(copy, at(`compacted-${kind}.h5`));
    await replay(copy, at(`replayed-${kind}.h5`));
    for (const name of ['a', 'g/b']) expect(values(at(`compacted-${kind}.h5`), name)).toEqual(values(path, name));
    const replayed = await File.open(at(`replayed-${kind}.h5`));
    expect([...(await replayed.dataset('a', 'int32').read())]).toEqual(values(path, 'a'));
    await replayed.close();
    expect((await verify(at(`compacted-${kind}.h5`))).sound).toBe(true);
    const again = File.openSync(at(`compacted-${kind}.h5`), { mode: 'r+' });
    again.dataset('a', 'int32').write(Int32Array.of(-1), { start: [0], count: [1] });
    again.closeSync();
    expect(values(at(`compacted-${kind}.h5`), 'a')[0]).toBe(-1);
  });

  test('by h5repack, of a file of 0.1: never other values', async () => {
    const folder = join(import.meta.dirname, '../fixtures/h5log-0.1');
    let refused = 0;
    for (const name of readdirSync(folder).filter((each) => each.endsWith('.h5') && !each.startsWith('subfiles'))) {
      const fixture = join(folder, name);
      const copy = at(`repacked-${name}`);
      try {
        tool('h5repack', fixture, copy);
      } catch {
        continue;
      }
      const [before, after] = [await File.open(fixture), await File.open(copy)];
      for (const [path, dataset] of datasets(before)) {
        const other = after.get(path) as Dataset;
        const expected = String(await dataset.read());
        let found: unknown;
        try {
          found = String(await other.read());
        } catch (error) {
          expect(error, `${name} ${path}`).toMatchObject({ code: 'FORMAT' });
          refused++;
          continue;
        }
        expect(found, path).toEqual(expected);
      }
      before.closeSync();
      after.closeSync();
    }
    expect(refused).toBeGreaterThan(20);
  });

  test('by h5py, a dataset into another log: is not one of that log', () => {
    const path = makeLog('from.h5', 0);
    const other = makeLog('to.h5', 100_000);
    const own = values(other, 'a');
    pythonSync(
      `import h5py, sys\nwith h5py.File(sys.argv[1], 'r') as f, h5py.File(sys.argv[2], 'r+') as t: f.copy('a', t, 'copied')`,
      [path, other],
    );
    expect(values(other, 'a')).toEqual(own);
    const file = File.openSync(other);
    expect(file.dataset('copied').shape).toEqual([]);
    file.closeSync();
    // Appended to, it stays so.
    const writing = File.openSync(other, { mode: 'r+' });
    writing.createDataset('new', { dtype: 'int32', shape: [1] }).write(Int32Array.of(7));
    writing.closeSync();
    expect([values(other, 'a'), values(other, 'new')]).toEqual([own, [7]]);
    const after = File.openSync(other);
    expect(after.dataset('copied').shape).toEqual([]);
    after.closeSync();
  });

  test('by h5py, a dataset within its file: the copy is not in the log, the dataset is', () => {
    const path = makeLog('within.h5', 0);
    const own = values(path, 'a');
    pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as f: f.copy('a', f, 'g/0copy')`, [path]);
    const shapes = (): unknown => {
      const file = File.openSync(path);
      const found = [file.dataset('g/0copy').shape, file.dataset('a').shape];
      file.closeSync();
      return found;
    };
    expect(shapes()).toEqual([[], [40]]);
    expect(values(path, 'a')).toEqual(own);
    const writing = File.openSync(path, { mode: 'r+' });
    writing.dataset('a', 'int32').write(Int32Array.of(-5), { start: [0], count: [1] });
    writing.closeSync();
    expect(shapes()).toEqual([[], [40]]);
    expect(values(path, 'a')).toEqual([-5, ...own.slice(1)]);
  });

  test('by h5copy, the log alone into another file: never other values', () => {
    const path = makeLog('group-from.h5', 0);
    const copy = at('group-to.h5');
    copyFileSync(makeLog('group-base.h5', 50_000), copy);
    const own = values(copy, 'a');
    pythonSync(
      `import h5py, sys\nwith h5py.File(sys.argv[1], 'r') as f, h5py.File(sys.argv[2], 'r+') as t:\n  del t['_LOG']\n  f.copy('_LOG', t)`,
      [path, copy],
    );
    for (const name of ['a', 'g/b']) expect([own, 'FORMAT', values(path, name)]).toContainEqual(outcome(copy, name));
  });
});

withOracle('python', 'a log in which h5py changed a value in place', () => {
  test('is repaired to the newest commit, with the value; --strict goes back to one without', async () => {
    const path = makeLog('edited.h5', 0);
    const own = values(path, 'a');
    const writing = File.openSync(path, { mode: 'r+' });
    writing.group('g').attributes.set('n', 1);
    writing.dataset('a', 'int32').write(Int32Array.of(-6), { start: [2], count: [1] });
    writing.flushSync();
    writing.dataset('a', 'int32').write(Int32Array.of(-7), { start: [3], count: [1] });
    writing.closeSync();
    pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as f: f['g'].attrs.modify('n', 5.0)`, [path]);
    const newest = File.openSync(path);
    const { sequence } = newest;
    newest.closeSync();
    const result = await verify(path, { repairTo: at('edited-repaired.h5') });
    expect(result).toMatchObject({ sound: false, repaired: { sequence } });
    const repaired = File.openSync(at('edited-repaired.h5'));
    expect(repaired.group('g').attributes.get('n')).toBe(5);
    repaired.closeSync();
    expect(values(at('edited-repaired.h5'), 'a')).toEqual(own.with(3, -7).with(2, -6));
    const strict = await verify(path, { repairTo: at('edited-strict.h5'), strict: true });
    expect(strict.repaired?.sequence).toBe(result.newestSound);
    expect(result.newestSound).toBe(sequence - 2);
    expect(values(at('edited-strict.h5'), 'a')).toEqual(own);
  });
});

function* datasets(group: Group): Iterable<[string, Dataset]> {
  for (const [, child] of group.children()) {
    if (child?.kind === 'dataset') yield [child.path, child];
    else if (child) yield* datasets(child);
  }
}
