import { copyFileSync, mkdirSync, readdirSync, statSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { alike, Failed, fullDisk, Told } from './errors-rank.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./errors-rank.ts', import.meta.url);

/** All ranks were told the same. */
function agreed<T extends Told>(ranks: readonly (readonly T[])[]): readonly T[] {
  const said = ranks.map((list) => list.map(({ name, outcome }) => ({ name, outcome })));
  for (const other of said) expect(other).toEqual(said[0]);
  return ranks[0] as readonly T[];
}

const regularFile = 'import h5py, sys\nf = h5py.File(sys.argv[1], "w")\nf["x"] = [1]\nf.close()';

withOracle('python', 'beginnings that fail', () => {
  test('an error when a file is made or opened is thrown on all ranks, and nothing is changed', async () => {
    const folder = temporaryDirectory();
    const there = join(folder, 'there.h5');
    const made = File.createSync(there);
    made.createDataset('/t', { dtype: 'int32', shape: [1000] }).write(new Int32Array(1000));
    made.closeSync();
    for (const name of ['truncated.h5', 'locked.h5', 'blocked.h5']) copyFileSync(there, join(folder, name));
    truncateSync(join(folder, 'truncated.h5'), statSync(there).size - 100);
    writeFileSync(join(folder, 'text.h5'), 'not a file of that kind'.repeat(100));
    writeFileSync(join(folder, 'blocked.h5.subfiles'), 'in the way');
    pythonSync(regularFile, [join(folder, 'regular.h5')]);
    const holder = File.openSync(join(folder, 'locked.h5'), { mode: 'r+' });
    const told = agreed(await runRanks<Told[]>(3, program, { work: 'beginnings', path: folder }));
    holder.closeSync();
    const codes = Object.fromEntries(told.map(({ name, outcome }) => [name, outcome.code]));
    expect(codes).toEqual({
      exists: 'EXISTS',
      'not found': 'NOT_FOUND',
      'not found r+': 'NOT_FOUND',
      'no folder': 'NOT_FOUND',
      'no folder, subfiles': 'NOT_FOUND',
      locked: 'LOCKED',
      'locked create': 'LOCKED',
      'regular r+': 'UNSUPPORTED',
      regular: 'fine',
      'H5VL_LOG_NSUBFILES=two': 'OPTION',
      'H5VL_LOG_NSUBFILES=1.5': 'OPTION',
      truncated: 'FORMAT',
      'truncated r+': 'FORMAT',
      'not HDF5': 'FORMAT',
      'a storage': 'UNSUPPORTED',
      'a storage r+': 'UNSUPPORTED',
      'unknown commit': 'NOT_FOUND',
      'asOf r+': 'OPTION',
      'create {"onBufferFull":"flush"}': 'OPTION',
      'create {"commitOnSignal":true}': 'OPTION',
      'create {"storage":"mpi-io"}': 'OPTION',
      'create {"timeout":-1}': 'OPTION',
      'create {"timeout":0}': 'OPTION',
      'create {"subfiles":-1}': 'OPTION',
      'create {"subfiles":1.5}': 'OPTION',
      'create {"subfiles":"some"}': 'OPTION',
      'create {"durability":"none"}': 'OPTION',
      'create {"table":{"compress":"much"}}': 'OPTION',
      'folder of subfiles is a file': 'STORAGE',
      fine: 'fine',
      'fine new': 'fine',
    });
    for (const { name, outcome } of told.filter((one) => one.outcome.code !== 'fine')) {
      expect(`${name}: ${outcome.message}`).toMatch(/rank \d/);
      expect({ name, rank: outcome.rank }).toEqual({ name, rank: expect.any(Number) });
    }
    // Nothing stays behind: no locks, no files that were begun.
    expect(readdirSync(folder).filter((name) => /\.(lock|new)$/.test(name))).toEqual([]);
    expect(readdirSync(join(folder, 'new.h5.subfiles'))).toEqual(['new.h5.0', 'new.h5.1']);
    File.openSync(join(folder, 'blocked.h5')).closeSync();
  });
});

describe.each([
  [0, 0],
  [0, 2],
  [2, 0],
  [2, 1],
  [2, 3],
])('with %i subfiles, a flush that fails on rank %i', (subfiles, odd) => {
  test('fails on all ranks with the same error, commits nothing, and can be tried again', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const ranks = await runRanks<Failed[]>(4, program, { work: 'flushes', path, odd, subfiles });
    const told = agreed(ranks);
    for (const { name, outcome } of told) {
      // Ranks that write only once, or look at nothing, have nothing that can fail later.
      if (outcome.code === 'fine') expect(name).toMatch(/second|third|looking/);
      else expect({ name, code: outcome.code, rank: outcome.rank }).toEqual({ name, code: 'STORAGE', rank: odd });
      if (outcome.code !== 'fine') expect(outcome.message).toMatch(new RegExp(`^rank ${odd}: `));
    }
    ranks.forEach((list, rank) => {
      let round = 0;
      for (const { name, outcome, sequence, requests, committed } of list) {
        if (name === 'close') continue;
        round++;
        const fine = outcome.code === 'fine';
        const before = round === 1 ? 0 : (round - 1) * 10 + rank;
        expect({ name, sequence, requests, committed }).toEqual({
          name,
          sequence: fine ? 1 : 0,
          requests: fine ? 0 : 1,
          committed: fine ? round * 10 + rank : before,
        });
      }
    });
    expect(told.find(({ name }) => name === 'detached')?.outcome.message).toMatch(/\/t/);
    expect(told.filter(({ name }) => name === 'writing')[0]?.outcome.code).toBe('STORAGE');
    // After discard() the last commit stands and the lock is gone.
    const file = File.openSync(path, { mode: 'r+' });
    expect([...(file.dataset('/t').readSync() as Int32Array).filter((_, i) => i % 64 === 0)]).toEqual([40, 41, 42, 43]);
    file.closeSync();
  });
});

test.each([0, 2])(
  'creating that fails on rank %i fails on all, and the old file stays until the new one is there',
  async (odd) => {
    const path = join(temporaryDirectory(), 'a.h5');
    const making = { work: 'flushes', path, odd: 0, subfiles: 2 };
    await runRanks(4, program, making);
    const told = agreed(await runRanks<Told[]>(4, program, { work: 'creations', path, odd }));
    for (const { name, outcome } of told) {
      if (outcome.code !== 'fine')
        expect({ name, code: outcome.code, rank: outcome.rank }).toEqual({ name, code: 'STORAGE', rank: odd });
      if (name.includes('left') && outcome.code !== 'fine' && !name.startsWith('rename'))
        expect(name).toMatch(/left: a\.h5\.0,a\.h5\.1 with t$/);
    }
    expect(told.filter(({ outcome }) => outcome.code === 'STORAGE').length).toBeGreaterThan(6);
    expect(readdirSync(join(path, '..')).filter((name) => /lock|new/.test(name))).toEqual([]);
  },
);

withOracle('python', 'another program between flushes', () => {
  test('is noticed by all ranks: STORAGE, and nothing is committed', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const how = new SharedArrayBuffer(4);
    const state = new Int32Array(how);
    const run = runRanks<Told[]>(3, program, { work: 'strangers', path, how });
    let running = true;
    const over = run.finally(() => {
      running = false;
    });
    for (const done of [1, 3]) {
      while (running && Atomics.load(state, 0) !== done) await new Promise((resolve) => setTimeout(resolve, 10));
      if (done === 1)
        pythonSync('import h5py, sys\nf = h5py.File(sys.argv[1], "r+")\nf.attrs["x"] = 1\nf.close()', [`${path}0`]);
      else unlinkSync(`${path}1`);
      Atomics.store(state, 0, done + 1);
      Atomics.notify(state, 0);
    }
    const told = agreed(await over);
    for (const { name, outcome } of told) {
      expect({ name, code: outcome.code, rank: outcome.rank }).toEqual({ name, code: 'STORAGE', rank: 0 });
    }
    expect(told[0]?.outcome.message).toMatch(/another program changed the file/);
    expect(told[2]?.outcome.message).toMatch(/removed or replaced/);
    const file = File.openSync(`${path}0`);
    expect(file.attributes.get('x')).toBe(1n);
    expect([...(file.dataset('/t').readSync() as Int32Array)]).toEqual([0, 0, 0]);
    file.closeSync();
  });
});

test.each(['write', 'sync'] as const)('with power, a %s that fails is repeated where that is safe', async (call) => {
  const path = join(temporaryDirectory(), 'a.h5');
  for (const { codes, size } of await runRanks<ReturnType<typeof fullDisk>>(2, program, {
    work: 'full disk',
    path,
    call,
  })) {
    expect(codes).toEqual(new Array(5).fill('STORAGE'));
    // What failed to sync must not be written to the same place again; what was not written needs no more room.
    if (call === 'write') expect(size).toBeLessThan(2 ** 20);
    else expect(size).toBeGreaterThan(5 * 2 ** 19);
  }
  const file = File.openSync(path);
  const bytes = file.dataset('/t').readSync() as Uint8Array;
  expect([bytes[0], bytes[2 ** 18 - 1], bytes[2 ** 18], bytes[2 ** 19 - 1]]).toEqual([1, 1, 2, 2]);
  file.closeSync();
});

test('what all ranks do wrong is an error on all of them, and the file can still be used', async () => {
  const path = join(temporaryDirectory(), 'a.h5');
  mkdirSync(join(path, '..', 'other'));
  const ranks = await runRanks<ReturnType<typeof alike>>(2, program, { work: 'alike', path });
  for (const { name, outcome } of agreed(ranks.map(({ told }) => told))) {
    expect({ name, code: outcome.code, message: outcome.message }).toMatchObject({ name, code: name });
  }
  for (const { keys } of ranks) expect(keys).toEqual(['t']);
});
