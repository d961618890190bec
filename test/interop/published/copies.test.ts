// Copies of published files by other programs: h5log reads from them what was there, or refuses.

import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { File, H5LogError, T } from 'h5log';
import { compact, replay } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { pythonSync, runSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();
const at = (name: string): string => join(folder, name);

const NAMES = ['/rows', '/whole', '/packed', '/g/tiles', '/texts', '/ends', '/empty'] as const;
/** Those that every program can copy. */
const NUMBERS = ['/rows', '/whole', '/packed', '/g/tiles'] as const;
type State = Readonly<Record<string, unknown>>;

/** A published log; `newer`: some of it has been written since, and others do not see it. `from` tells its values from those of others. */
function make(name: string, newer: boolean, from: number): { path: string; newest: State; seen: State } {
  const path = at(name);
  const numbers = (length: number, more = 0): Int32Array => Int32Array.from({ length }, (_, i) => from + more + i);
  const file = File.createSync(path, { publish: 'flush' });
  const rows = file.createDataset('rows', { dtype: 'int32', shape: [0, 5], maxShape: [null, 5], chunks: [4, 5] });
  file.createDataset('whole', { dtype: 'int32', shape: [30, 20] }).write(numbers(600, 1000));
  const packed = { shape: [50], maxShape: [80], chunks: [8], filters: ['shuffle', { deflate: 6 }] } as const;
  file.createDataset('packed', { dtype: 'int32', ...packed }).write(numbers(50, 2000));
  const tiles = { shape: [12, 12], maxShape: [null, null], chunks: [5, 5], fill: -9 } as const;
  file.createDataset('g/tiles', { dtype: 'int32', ...tiles });
  file.createDataset('texts', { dtype: T.string(), shape: [3], maxShape: [null] }).write(['a', `${from}`, '']);
  file.createDataset('ends', { dtype: T.reference, shape: [2] }).write(['/whole', '/g/tiles']);
  file.createDataset('empty', { dtype: 'int32', shape: [0], maxShape: [null] });
  for (let i = 0; i < 3; i++) {
    rows.append(numbers(15, 100 * i));
    file.dataset('g/tiles', 'int32').write(numbers(20, 300 * i), { start: [4 * i, 3], count: [4, 5] });
    file.flushSync();
  }
  file.closeSync();
  const seen = stateOf(path);
  if (newer) {
    const more = File.openSync(path, { mode: 'r+', publish: 'never' });
    more.dataset('rows', 'int32').append(numbers(10, 5000));
    for (const dataset of ['rows', 'whole', 'g/tiles'])
      more.dataset(dataset, 'int32').write(numbers(4, 6000), { start: [2, 2], count: [2, 2] });
    more.dataset('packed', 'int32').write(numbers(4, 7000), { start: [6], count: [4] });
    more.dataset('texts').write(['newer'] as never, { start: [2], count: [1] });
    more.dataset('empty', 'int32').append(numbers(2));
    more.closeSync();
  }
  return { path, newest: stateOf(path), seen };
}

/** The values of a dataset, or the code of the error. */
function read(file: File, path: string): unknown {
  try {
    const dataset = file.dataset(path);
    return { shape: [...dataset.shape], values: Array.from(dataset.readSync() as ArrayLike<unknown>) };
  } catch (error) {
    if (error instanceof H5LogError) return error.code;
    throw error;
  }
}

/** What h5log reads of each dataset, or the code of the error that refuses the file. */
function outcomeOf(path: string, under = ''): State | string {
  let file: File;
  try {
    file = File.openSync(path);
  } catch (error) {
    if (error instanceof H5LogError) return error.code;
    throw error;
  }
  const state = Object.fromEntries(NAMES.map((name) => [name, read(file, `${under}${name}`)]));
  file.closeSync();
  return state;
}

withOracle('h5dump', 'copies of logs that were never published', () => {
  const tools = [
    ['h5repack', '-f', 'GZIP=3'],
    ['h5repack', '-l', 'CHUNK=5'],
  ] as const;
  test.each(tools)('%s %s %s: what is in a log that cannot be read is refused', (tool, ...options) => {
    const path = at('never.h5');
    const file = File.createSync(path, { publish: 'never' });
    file.createDataset('x', { dtype: 'int32', shape: [3] }).write(Int32Array.of(1, 2, 3));
    file.closeSync();
    const copy = at('never-copy.h5');
    rmSync(copy, { force: true });
    runSync(tool, [...options, path, copy]);
    const copied = File.openSync(copy);
    expect(read(copied, '/x')).toBe('FORMAT');
    copied.closeSync();
  });
});

function stateOf(path: string, under = ''): State {
  const state = outcomeOf(path, under);
  if (typeof state === 'string') throw new Error(`${path}: ${state}`);
  return state;
}

const SEEN = `
import h5py, json, sys
with h5py.File(sys.argv[1]) as f:
    def values(d):
        flat = d[()].ravel().tolist()
        return [v.decode() if isinstance(v, bytes) else (f[v].name if v else '') if isinstance(v, h5py.Reference) else v for v in flat]
    print(json.dumps({n: {'shape': list(f[p + n].shape), 'values': values(f[p + n])} for p in sys.argv[2:3] for n in sys.argv[3:] if p + n in f}))
`;

/** What h5py reads of each dataset. */
const byH5py = (path: string, under = ''): State =>
  JSON.parse(pythonSync(SEEN, [path, under, ...NAMES])) as Record<string, unknown>;

/** References are to objects of the file: a copy of one dataset alone has lost them. */
const withoutEnds = ({ '/ends': _ends, ...rest }: State): State => rest;

const KINDS = [
  ['published', false],
  ['with newer blocks', true],
] as const;

withOracle(['python', 'h5dump', 'ncdump'], 'copies of published files', () => {
  describe.each(KINDS)('of a file %s', (kind, newer) => {
    const original = make(`original-${newer}.h5`, newer, 10_000);
    const copy = at(`copy-${newer}.h5`);

    test('h5py sees what was published', () => {
      expect(byH5py(original.path)).toEqual(original.seen);
      if (newer) expect(original.newest).not.toEqual(original.seen);
    });

    test('h5repack: h5log reads the newest, others what they saw before', () => {
      rmSync(copy, { force: true });
      runSync('h5repack', [original.path, copy]);
      // Texts of the layout were moved by libhdf5, those of the log with the log: a mixture is refused.
      expect(stateOf(copy)).toEqual({ ...original.newest, ...(newer ? { '/texts': 'FORMAT' } : {}) });
      expect(byH5py(copy)).toEqual(original.seen);
      expect(() => File.openSync(copy, { mode: 'r+' })).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    });

    test('h5repack, then compact and replay: the same values, where texts are not a mixture', async () => {
      rmSync(copy, { force: true });
      runSync('h5repack', [original.path, copy]);
      for (const [name, write] of Object.entries({ compact, replay })) {
        const out = at(`${name}-${newer}.h5`);
        rmSync(out, { force: true });
        if (newer) await expect(write(copy, out)).rejects.toMatchObject({ code: 'FORMAT' });
        else {
          await write(copy, out);
          expect(stateOf(out), name).toEqual(original.newest);
          expect(byH5py(out), name).toEqual(original.newest);
        }
      }
    });

    const tools = [
      ['h5repack', '-f', 'GZIP=3'],
      ['h5repack', '-l', 'CHUNK=5'],
      ['h5repack', '-L'],
      ['nccopy'],
      ['nccopy', '-d', '3'],
      ['nccopy', '-k', 'classic'],
    ] as const;
    test.each(tools)('%s %s %s: right or refused', (tool, ...options) => {
      rmSync(copy, { force: true });
      try {
        runSync(tool, [...options.filter((option) => option !== undefined), original.path, copy]);
      } catch (error) {
        // A tool that cannot copy such a file has not made one.
        expect(String(error), kind).toMatch(/NetCDF|cannot|unable/i);
        return;
      }
      const outcome = stateOf(copy);
      // A log whose bytes are in chunks, or were left behind, is ignored: the copy has what others saw.
      const expected = options.includes('-L') ? original.newest : original.seen;
      for (const name of NUMBERS) expect(outcome[name], `${tool} ${name}`).toEqual(expected[name]);
      for (const name of NAMES)
        expect([expected[name], 'FORMAT', 'NOT_FOUND'], `${tool} ${name}`).toContainEqual(outcome[name]);
      expect(() => File.openSync(copy, { mode: 'r+' })).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    });

    test('h5copy, every dataset into a new file: what others saw', () => {
      rmSync(copy, { force: true });
      for (const name of NAMES) runSync('h5copy', ['-p', '-i', original.path, '-o', copy, '-s', name, '-d', name]);
      expect(withoutEnds(stateOf(copy))).toEqual(withoutEnds(original.seen));
      expect(withoutEnds(byH5py(copy))).toEqual(withoutEnds(original.seen));
      // Nothing of the log came along: the file is an ordinary one.
      const file = File.openSync(copy, { mode: 'r+' });
      expect(file.connector).toBe('native');
      file.dataset('rows', 'int32').append(Int32Array.from({ length: 5 }, (_, i) => -i - 1));
      file.closeSync();
      expect(byH5py(copy)['/rows']).toEqual(stateOf(copy)['/rows']);
    });

    test('h5py, every dataset into another log: ordinary datasets beside it', () => {
      const other = make(`other-${newer}.h5`, newer, 500_000);
      pythonSync(
        `import h5py, sys
with h5py.File(sys.argv[1]) as f, h5py.File(sys.argv[2], 'r+') as t:
    t.create_group('copied/g')
    for name in sys.argv[3:]: f.copy(name, t, 'copied' + name)`,
        [original.path, other.path, ...NAMES],
      );
      const check = (): void => {
        expect(stateOf(other.path)).toEqual(other.newest);
        expect(withoutEnds(stateOf(other.path, '/copied'))).toEqual(withoutEnds(original.seen));
      };
      check();
      // Written and published again, they stay apart.
      const file = File.openSync(other.path, { mode: 'r+', publish: 'close' });
      file.createDataset('more', { dtype: 'int32', shape: [1] }).write(Int32Array.of(1));
      file.closeSync();
      check();
      expect(withoutEnds(byH5py(other.path))).toEqual(withoutEnds(other.newest));
      expect(withoutEnds(byH5py(other.path, '/copied'))).toEqual(withoutEnds(original.seen));
    });

    test('h5py, a dataset within its file: the copy is an ordinary one', () => {
      copyFileSync(original.path, copy);
      pythonSync(
        `import h5py, sys
with h5py.File(sys.argv[1], 'r+') as f:
    f.copy('rows', f, '0rows')
    f.copy('packed', f, 'g/0packed')`,
        [copy],
      );
      const copied = (): unknown[] => {
        const file = File.openSync(copy);
        const found = ['/0rows', '/g/0packed'].map((name) => read(file, name));
        file.closeSync();
        return found;
      };
      const expected = [original.seen['/rows'], original.seen['/packed']];
      expect(copied()).toEqual(expected);
      expect(stateOf(copy)).toEqual(original.newest);
      const file = File.openSync(copy, { mode: 'r+', publish: 'close' });
      file.dataset('packed', 'int32').write(Int32Array.of(1), { start: [0], count: [1] });
      file.closeSync();
      expect(copied()).toEqual(expected);
      expect(byH5py(copy)).toEqual(stateOf(copy));
    });
  });
});
