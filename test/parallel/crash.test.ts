import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { beforeAll, describe, expect, test } from 'vitest';
import { sessionOf } from '../../src/api/handle.ts';
import type { H5LogError } from '../../src/base/errors.ts';
import { count } from '../counts.ts';
import { full, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type Appending, copyTo, type Making } from './crash-rank.ts';
import { LAYOUTS } from './layouts.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./crash-rank.ts', import.meta.url);
const RANKS = 4;
const SUBFILES = 3;
const FLUSHES = 4;
const SUPERBLOCK = 48;

const folder = temporaryDirectory();
const copies = join(folder, 'copies');
let states: number[][] = [];

const master = (sequence: number, from = copies): string => join(from, String(sequence), 'a.h5');
const subfile = (sequence: number, g: number, from = copies): string => `${master(sequence, from)}.subfiles/a.h5.${g}`;

const make = (path: string, where: string, create: Making['create'] = {}): Promise<number[][][]> => {
  const making: Making = { path, subfiles: SUBFILES, create, flushes: FLUSHES, copies: where };
  return runRanks<number[][]>(RANKS, program, { work: 'make', making });
};

beforeAll(async () => {
  states = (await make(join(folder, 'a.h5'), copies))[0] as number[][];
});

const numbers = (path: string, options: { asOf?: number } = {}): number[] => {
  const file = File.openSync(path, options);
  try {
    return [...(file.dataset('/t').readSync() as Int32Array)];
  } finally {
    file.closeSync();
  }
};

/** How far a file had come when the crash was: nothing of the flush, all but its superblock, everything. */
type Progress = 'old' | 'written' | 'new';

function bytesAt(progress: Progress, old: string, now: string): Buffer {
  const bytes = readFileSync(progress === 'old' ? old : now);
  if (progress === 'written') readFileSync(old).copy(bytes, 0, 0, SUPERBLOCK);
  return bytes;
}

let made = 0;

/** A file as a crash in the flush behind `sequence` leaves it. */
function crashed(sequence: number, main: Progress, parts: readonly Progress[], from = copies): string {
  const path = join(folder, `crash${made++}`, 'a.h5');
  mkdirSync(`${path}.subfiles`, { recursive: true });
  writeFileSync(path, bytesAt(main, master(sequence, from), master(sequence + 1, from)));
  parts.forEach((progress, g) => {
    const [old, now] = [subfile(sequence, g, from), subfile(sequence + 1, g, from)];
    writeFileSync(`${path}.subfiles/a.h5.${g}`, bytesAt(progress, old, now));
  });
  return path;
}

const PROGRESS: readonly Progress[] = ['old', 'written', 'new'];

/** Every way to choose one for each subfile. */
function combinations(count: number): Progress[][] {
  if (count === 0) return [[]];
  return combinations(count - 1).flatMap((rest) => PROGRESS.map((one) => [...rest, one]));
}

describe('a crash between the commits of subfiles', () => {
  const layouts = LAYOUTS.map((create) => [JSON.stringify(create), create] as const);
  const some = full ? layouts : [layouts[0], layouts[1 + (seed('layouts of crashed ranks') % (layouts.length - 1))]];
  test.each(some as typeof layouts)(
    'at any point leaves the old state until the master is there, and then the new one: %s',
    async (_, create) => {
      const place = join(folder, `layout${made++}`);
      mkdirSync(place);
      const from = join(place, 'copies');
      const [states] = (await make(join(place, 'a.h5'), from, create)) as [number[][]];
      const left: Appending[] = [];
      // Half of the flushes, unless all are asked for: the first ones, or the last.
      const half = FLUSHES / 2;
      const first = full ? 1 : 1 + half * (seed('a crash between subfiles') % 2);
      for (let sequence = first; sequence < first + (full ? FLUSHES : half); sequence++) {
        for (const parts of combinations(SUBFILES)) {
          for (const main of ['old', 'written'] as const) {
            const path = crashed(sequence, main, parts, from);
            expect({ sequence, main, parts, found: numbers(path) }).toEqual({
              sequence,
              main,
              parts,
              found: states[sequence],
            });
            left.push({ path, before: states[sequence] as number[] });
          }
        }
        const path = crashed(sequence, 'new', ['new', 'new', 'new'], from);
        expect(numbers(path)).toEqual(states[sequence + 1]);
        left.push({ path, before: states[sequence + 1] as number[] });
      }
      // One rank goes on from a third of them, several ranks from the others.
      const alone = left.filter((_, i) => i % 3 === 0);
      for (const { path, before } of alone) {
        const file = File.openSync(path, { mode: 'r+' });
        file.dataset('/t').write(Int32Array.of(7, 7, 7), { start: [4], count: [3] });
        file.closeSync();
        const expected = [...before];
        expected.fill(7, 4, 7);
        expect({ path, found: numbers(path) }).toEqual({ path, found: expected });
      }
      const together = left.filter((_, i) => i % 3 !== 0);
      for (const ranks of [2, 5]) {
        const files = together.filter((_, i) => i % 2 === ranks % 2);
        const wrong = await runRanks<string[]>(ranks, program, { work: 'append', files });
        expect(wrong.flat()).toEqual([]);
      }
      count('a crash between subfiles', { states: left.length });
    },
    300_000,
  );

  test('asOf finds every earlier state in each of them', () => {
    const path = crashed(3, 'old', ['new', 'written', 'old']);
    for (let sequence = 1; sequence <= 3; sequence++)
      expect(numbers(path, { asOf: sequence })).toEqual(states[sequence]);
  });

  test('a flush in which only one group has data changes no other subfile', () => {
    for (const g of [0, 1]) expect(readFileSync(subfile(3, g)).equals(readFileSync(subfile(2, g)))).toBe(true);
    expect(readFileSync(subfile(3, 2)).equals(readFileSync(subfile(2, 2)))).toBe(false);
  });
});

function errorOf(work: () => unknown): { code: string; message: string } {
  try {
    work();
  } catch (error) {
    const { code, message } = error as H5LogError;
    return { code, message };
  }
  return { code: 'fine', message: '' };
}

describe('a subfile that is not the right one is FORMAT and is named', () => {
  const last = 1 + FLUSHES;
  const whole = (): string => {
    const path = join(folder, `damaged${made++}`, 'a.h5');
    copyTo(master(last), join(path, '..'));
    return path;
  };
  const damages: readonly [string, (path: string, other: string) => void, RegExp][] = [
    ['missing', (path) => unlinkSync(path), /is missing/],
    ['of another file of that shape', (path, other) => copyFileSync(other, path), /another file/],
    ['empty', (path) => writeFileSync(path, ''), /./],
    ['cut in the middle', (path) => truncateSync(path, 600), /./],
    ['from an older copy', (path) => copyFileSync(subfile(last - 1, 1), path), /./],
    ['from the oldest copy', (path) => copyFileSync(subfile(1, 1), path), /./],
    ['not HDF5', (path) => writeFileSync(path, 'x'.repeat(5000)), /./],
    ['another subfile of the same file', (path) => copyFileSync(subfile(last, 0), path), /./],
  ];
  let other = '';
  beforeAll(async () => {
    other = join(folder, 'other');
    mkdirSync(other);
    await make(join(other, 'a.h5'), join(other, 'copies'));
  });

  test.each(damages)('%s', async (_name, damage, text) => {
    const path = whole();
    const part = `${path}.subfiles/a.h5.1`;
    damage(part, join(other, 'a.h5.subfiles', 'a.h5.1'));
    const reading = errorOf(() => numbers(path));
    const writing = errorOf(() => File.openSync(path, { mode: 'r+' }).closeSync());
    for (const { code, message } of [reading, writing]) {
      expect({ code, message }).toMatchObject({ code: 'FORMAT' });
      expect(message).toContain('a.h5.1');
      expect(message).toMatch(text);
    }
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test('one of a copy that went another way', async () => {
    // Two copies of one file, each written on in its own way, with blocks of the same size.
    const [a, b] = [whole(), whole()];
    const write = (path: string, value: number): void => {
      const file = File.openSync(path, { mode: 'r+' });
      file.dataset('/t').write(new Int32Array(5).fill(value), { start: [0], count: [5] });
      file.closeSync();
    };
    write(a, 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    write(b, 2);
    copyFileSync(`${b}.subfiles/a.h5.0`, `${a}.subfiles/a.h5.0`);
    expect(errorOf(() => numbers(a))).toMatchObject({ code: 'FORMAT' });
  });

  test('one that only its number tells from the right one', () => {
    const path = join(folder, 'twins', 'a.h5');
    copyTo(master(0), join(path, '..'));
    copyFileSync(`${path}.subfiles/a.h5.0`, `${path}.subfiles/a.h5.1`);
    const found = errorOf(() => File.openSync(path));
    expect(found).toMatchObject({ code: 'FORMAT', message: expect.stringMatching(/another subfile/) });
  });

  test('a Blob of a master can be listed; its data is UNSUPPORTED', async () => {
    const file = await File.open(new Blob([readFileSync(master(last))]));
    expect([...file.keys()]).toEqual(['t']);
    expect(file.dataset('/t').shape).toEqual([12]);
    expect(file.attributes.get('k')).toBe(FLUSHES);
    await expect(file.dataset('/t').read()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    await file.close();
  });
});

describe('creating over a file with subfiles', () => {
  const fresh = [70, 70, 71, 71, 72, 72, 73, 73, 0, 0, 0, 0];
  let after = '';

  beforeAll(async () => {
    after = join(folder, 'after');
    const path = join(folder, 'again', 'a.h5');
    copyTo(master(1 + FLUSHES), join(path, '..'));
    const making: Making = { path, subfiles: SUBFILES, flushes: 0, copies: after };
    await runRanks(RANKS, program, { work: 'replace', making });
  });

  /** The new master, with the subfiles that had not got their names when it ended; the old ones stand where they stood. */
  function halfway(named: readonly boolean[]): string {
    const path = join(folder, `half${made++}`, 'a.h5');
    copyTo(master(1 + FLUSHES), join(path, '..'));
    copyFileSync(join(after, 'a.h5'), path);
    const file = File.openSync(join(after, 'a.h5'));
    const token = sessionOf(file).now(
      sessionOf(file).structure.attribute(sessionOf(file).structure.root, '_token'),
    ) as Uint8Array;
    file.closeSync();
    const text = Buffer.from(token).toString('hex');
    named.forEach((isNamed, g) => {
      const name = `a.h5.${g}${isNamed ? '' : `.${text}.new`}`;
      copyFileSync(join(after, 'a.h5.subfiles', `a.h5.${g}`), join(`${path}.subfiles`, name));
    });
    return path;
  }

  test('opens right when it ended before all subfiles had their names', async () => {
    const files: Appending[] = [];
    // Of five ranks two share a subfile.
    const shared: Appending[] = [];
    for (let bits = 0; bits < 2 ** SUBFILES; bits++) {
      const named = Array.from({ length: SUBFILES }, (_, g) => (bits & (1 << g)) !== 0);
      expect({ named, found: numbers(halfway(named)) }).toEqual({ named, found: fresh });
      files.push({ path: halfway(named), before: fresh });
      shared.push({ path: halfway(named), before: fresh });
      const path = halfway(named);
      const file = File.openSync(path, { mode: 'r+' });
      file.dataset('/t').write(Int32Array.of(5), { start: [0], count: [1] });
      file.closeSync();
      expect(numbers(path)).toEqual([5, ...fresh.slice(1)]);
    }
    expect((await runRanks<string[]>(3, program, { work: 'append', files })).flat()).toEqual([]);
    expect((await runRanks<string[]>(5, program, { work: 'append', files: shared })).flat()).toEqual([]);
  });

  test.each([0, 1, 2])('leaves nothing stale: %i subfiles over 3', (subfiles) => {
    const path = join(folder, `over${subfiles}`, 'a.h5');
    copyTo(master(1 + FLUSHES), join(path, '..'));
    const file = File.createSync(path, { subfiles });
    file.createDataset('/t', { dtype: 'int32', shape: [1] }).write(Int32Array.of(3));
    file.closeSync();
    expect(numbers(path)).toEqual([3]);
    if (subfiles === 0) expect(existsSync(`${path}.subfiles`)).toBe(false);
    // One rank has one group.
    else expect(readdirSync(`${path}.subfiles`)).toEqual(['a.h5.0']);
  });

  test('leaves files of others in that folder alone', () => {
    const path = join(folder, 'shared', 'a.h5');
    copyTo(master(1 + FLUSHES), join(path, '..'));
    for (const name of ['notes.txt', 'a.h5.bak', 'b.h5.0', 'a.h5.1.new'])
      writeFileSync(`${path}.subfiles/${name}`, 'x');
    File.createSync(path).closeSync();
    expect(readdirSync(`${path}.subfiles`).sort()).toEqual(['a.h5.1.new', 'a.h5.bak', 'b.h5.0', 'notes.txt']);
  });

  test('that fails leaves the old file whole', () => {
    const path = join(folder, 'fails', 'a.h5');
    copyTo(master(1 + FLUSHES), join(path, '..'));
    expect(errorOf(() => File.createSync(path, { exclusive: true, subfiles: 2 })).code).toBe('EXISTS');
    // The master cannot get its name.
    renameSync(path, `${path}.kept`);
    mkdirSync(join(path, 'in the way'), { recursive: true });
    expect(errorOf(() => File.createSync(path, { subfiles: 1 })).code).toBe('STORAGE');
    rmSync(path, { recursive: true });
    renameSync(`${path}.kept`, path);
    expect(numbers(path)).toEqual(states[1 + FLUSHES]);
    expect(readdirSync(`${path}.subfiles`).sort()).toEqual(['a.h5.0', 'a.h5.1', 'a.h5.2']);
    expect(readdirSync(join(path, '..')).sort()).toEqual(['a.h5', 'a.h5.subfiles']);
  });

  test('can be renamed together with its folder, but not without', () => {
    const path = join(folder, 'moved', 'a.h5');
    copyTo(master(1 + FLUSHES), join(path, '..'));
    const to = join(folder, 'moved', 'b.h5');
    renameSync(path, to);
    expect(errorOf(() => numbers(to))).toMatchObject({ code: 'FORMAT' });
    cpSync(`${path}.subfiles`, `${to}.subfiles`, { recursive: true });
    for (const g of [0, 1, 2]) renameSync(`${to}.subfiles/a.h5.${g}`, `${to}.subfiles/b.h5.${g}`);
    expect(numbers(to)).toEqual(states[1 + FLUSHES]);
  });
});
