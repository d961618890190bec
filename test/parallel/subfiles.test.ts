import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { beforeAll, describe, expect, test } from 'vitest';
import { count } from '../counts.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { full, repeats, seed } from '../seed.ts';
import { canDropRights, withoutRights } from '../storage/scratch.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { Seen } from './commits-rank.ts';
import { runRanks } from './run-ranks.ts';
import type { Program, Session, States } from './sessions-rank.ts';

const program = new URL('./sessions-rank.ts', import.meta.url);
const RANKS = 5;
const folder = temporaryDirectory();
const at = (name: string): string => join(folder, `${name}.h5`);

const numbers = (file: File): number[] => [...(file.dataset('/t').readSync() as Int32Array)];

const once = (path: string, session: Session, more: readonly Session[] = []): Program => ({
  path,
  seed: 1,
  sessions: [session, ...more],
});

/** Every state, in the file and through asOf. */
function expectStates(path: string, states: States): number {
  const sequences = Object.keys(states).map(Number);
  const last = Math.max(...sequences);
  const file = File.openSync(path);
  expect(file.sequence).toBe(last);
  expect(numbers(file)).toEqual(states[last]);
  file.closeSync();
  for (const sequence of sequences) {
    const then = File.openSync(path, { asOf: sequence });
    expect({ sequence, numbers: numbers(then) }).toEqual({ sequence, numbers: states[sequence] });
    then.closeSync();
  }
  return sequences.length;
}

describe('files of several ranks', () => {
  const from = seed('sessions of several ranks');
  const programs: Program[] = [];
  let results: States[] = [];

  beforeAll(async () => {
    const counts = [1, 2, 3, 5];
    const appends = (flushes: number): Session[] => [2, 5, 1, 3].map((ranks) => ({ ranks, flushes }));
    for (let i = 0; i < repeats(20); i++) {
      for (const subfiles of [0, 1, 2, 3]) {
        const ranks = counts[(i + subfiles) % 4] as number;
        const first = { ranks, flushes: 5, subfiles };
        programs.push({ path: at(`p${i}-${subfiles}`), seed: from + i, sessions: [first, ...appends(4)] });
      }
    }
    // Reads between these flushes made an index of blocks in two files that was sorted and then grew.
    programs.push({
      path: at('grown'),
      seed: 1655559670,
      sessions: [{ ranks: 3, flushes: 5, subfiles: 2 }, ...appends(4)],
    });
    // Tables and records are merged many times over.
    programs.push({
      path: at('long'),
      seed: from,
      sessions: [
        { ranks: 3, flushes: full ? 600 : 150, subfiles: 2 },
        { ranks: 5, flushes: 100 },
        { ranks: 2, flushes: 50 },
      ],
    });
    programs.push({
      path: at('long-plain'),
      seed: from,
      sessions: [
        { ranks: 3, flushes: 150, subfiles: 0 },
        { ranks: 5, flushes: 50 },
      ],
    });
    results = (await runRanks<States[]>(RANKS, program, programs))[0] as States[];
  }, 600_000);

  test('hold what was written last, by flush and by rank, however many ranks wrote and appended', () => {
    let states = 0;
    programs.forEach(({ path }, i) => {
      states += expectStates(path, results[i] as States);
    });
    count('sessions of several ranks', { files: programs.length, states });
    expect(states).toBeGreaterThan(programs.length * 10);
  });
});

test.skipIf(!canDropRights)('a folder of subfiles that may not be read is an error of the system', () => {
  const path = at('private');
  const file = File.createSync(path, { subfiles: 1 });
  file.createDataset('t', { dtype: 'int32', shape: [2] }).write([1, 2]);
  file.closeSync();
  chmodSync(folder, 0o755);
  chmodSync(`${path}.subfiles`, 0o700);
  withoutRights(() => {
    expect(() => File.openSync(path)).toThrow(
      expect.objectContaining({ code: 'STORAGE', cause: expect.objectContaining({ code: 'EACCES' }) }),
    );
  });
});

test('without its subfiles a file shows its structure, and is not written', () => {
  const path = at('alone');
  const file = File.createSync(path, { subfiles: 1 });
  file.createDataset('t', { dtype: 'int32', shape: [4] }).write([1, 2, 3, 4]);
  file.closeSync();
  const storage = memoryStorage(readFileSync(path));
  const reader = File.openSync(storage);
  expect([...reader.keys()]).toEqual(['t']);
  expect(() => reader.dataset('t').readSync()).toThrow('the data of this file is in subfiles');
  reader.closeSync();
  expect(() => File.openSync(storage, { mode: 'r+' })).toThrow(
    expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringContaining('opened by its path') }),
  );
});

test('a flush costs the same however many there were', async () => {
  const path = at('many');
  await runRanks(RANKS, program, [once(path, { ranks: 2, flushes: 1, subfiles: 2 })]);
  const file = File.openSync(path, { mode: 'r+' });
  const t = file.dataset('/t');
  const times = Array.from({ length: repeats(40_000) }, (_, i) => {
    const from = performance.now();
    t.write(Int32Array.of(i), { start: [i % 40], count: [1] });
    file.flushSync();
    return performance.now() - from;
  });
  file.closeSync();
  const middle = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1] as number;
  const [early, late] = [middle(times.slice(500, 1000)), middle(times.slice(-500))];
  process.stdout.write(
    `a flush with 2 subfiles: ${early.toFixed(2)} ms early, ${late.toFixed(2)} ms after ${times.length}\n`,
  );
  expect(late).toBeLessThan(3 * early + 0.5);
});

describe('on disk', () => {
  const programs = [
    once(at('four'), { ranks: 4, flushes: 3, subfiles: 2 }),
    once(at('few'), { ranks: 2, flushes: 3, subfiles: 5 }),
    once(at('one'), { ranks: 3, flushes: 3, subfiles: 1 }),
    once(at('node'), { ranks: 3, flushes: 3, subfiles: 'node' }),
    once(at('env-empty'), { ranks: 3, flushes: 2, environment: { H5VL_LOG_NSUBFILES: '' } }),
    once(at('env-negative'), { ranks: 3, flushes: 2, environment: { H5VL_LOG_NSUBFILES: '-1' } }),
    once(at('env-zero'), { ranks: 3, flushes: 2, environment: { H5VL_LOG_NSUBFILES: '0' } }),
    once(at('env-three'), { ranks: 5, flushes: 2, environment: { H5VL_LOG_NSUBFILES: '3' } }),
  ];
  beforeAll(async () => {
    await runRanks(RANKS, program, programs);
  });

  const subfilesOf = (name: string): string[] => readdirSync(`${at(name)}.subfiles`).sort();

  test('subfiles are where the original has them, in a folder with the rights that the umask leaves', () => {
    expect(subfilesOf('four')).toEqual(['four.h5.0', 'four.h5.1']);
    expect(statSync(`${at('four')}.subfiles`).mode & 0o777).toBe(0o777 & ~process.umask());
    expect(subfilesOf('few')).toEqual(['few.h5.0', 'few.h5.1']);
    expect(subfilesOf('one')).toEqual(['one.h5.0']);
    // All threads are on one machine.
    expect(hostname()).not.toBe('');
    for (const name of ['node', 'env-empty', 'env-negative']) expect(subfilesOf(name)).toEqual([`${name}.h5.0`]);
    expect(() => subfilesOf('env-zero')).toThrow(/ENOENT/);
    expect(subfilesOf('env-three')).toHaveLength(3);
  });

  withOracle('python', 'h5py', () => {
    const script = `
import h5py, sys, json, struct
def show(path):
    f = h5py.File(path, 'r')
    out = {'keys': sorted(f.keys()), 'counts': [int(x) for x in f.attrs['_int_att']], 'sections': []}
    if '_LOG' in f:
        k = 0
        while '_md_%d' % k in f['_LOG']:
            b = f['_LOG']['_md_%d' % k][:].tobytes()
            out['sections'].append(struct.unpack('<q', b[:8])[0])
            k += 1
        out['logs'] = len([n for n in f['_LOG'] if n.startswith('_ld_')])
    return out
print(json.dumps([show(p) for p in sys.argv[1:]]))
`;
    interface Shown {
      readonly keys: string[];
      readonly counts: number[];
      readonly sections: number[];
      readonly logs?: number;
    }
    const show = (name: string): Shown[] => {
      const parts = subfilesOf(name).map((part) => join(`${at(name)}.subfiles`, part));
      return JSON.parse(pythonSync(script, [at(name), ...parts])) as Shown[];
    };

    test.each([
      ['four', 2],
      ['few', 2],
      ['env-three', 3],
    ])('%s: master and subfiles hold what those of the original hold', (name, count) => {
      const [master, ...parts] = show(name) as [Shown, ...Shown[]];
      expect(master.keys).not.toContain('_LOG');
      expect(master.keys).toContain('t');
      expect(master.counts.slice(0, 3)).toEqual([1, 0, 0]);
      expect((master.counts[3] as number) & 0x200).toBe(0x200);
      expect(master.counts[4]).toBe(count);
      expect(parts).toHaveLength(count);
      for (const { keys, counts, sections, logs } of parts) {
        expect(keys).toEqual(['_LOG']);
        expect(counts[1]).toBe(logs);
        expect(counts[2]).toBe(sections.length);
        expect((counts[3] as number) & 0x200).toBe(0);
        expect(counts[4]).toBe(count);
        if (sections.length > 0) expect(counts[0]).toBe(1);
      }
    });
  });
});

describe('commits', () => {
  const listing = new URL('./commits-rank.ts', import.meta.url);

  test.each([
    [1, 0],
    [1, 1],
    [3, 0],
    [3, 2],
  ])('of %i ranks with %i subfiles: flush() and commits() say the same of each', async (ranks, subfiles) => {
    const path = at(`commits-${ranks}-${subfiles}`);
    const size = (name: string): number => statSync(name).size;
    for (const { flushed, listed, idle, again } of await runRanks<Seen>(ranks, listing, { path, subfiles })) {
      expect(listed).toEqual(flushed);
      expect(again).toEqual(flushed);
      expect(idle).toEqual(flushed.at(-1));
      const files = subfiles === 0 ? [] : readdirSync(`${path}.subfiles`).map((name) => join(`${path}.subfiles`, name));
      const total = [path, ...files].reduce((sum, name) => sum + size(name), 0);
      const counted = flushed.reduce((sum, { bytes }) => sum + bytes, 0);
      // All but superblocks and what a new subfile holds before its first commit.
      expect(total - counted).toBeGreaterThanOrEqual(0);
      expect(total - counted).toBeLessThan(2048 * (1 + subfiles));
    }
    const file = File.openSync(path);
    expect(file.commits()).toHaveLength(41);
    file.closeSync();
  });
});
