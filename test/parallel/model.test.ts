import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { File } from 'h5log';
import { runThreads } from 'h5log/threads';
import { afterAll, expect, test } from 'vitest';
import { count } from '../counts.ts';
import { checkLogFile, readAsOriginal, seenByH5py } from '../log/format/check-log.ts';
import { checkSums } from '../log/format/check-sums.ts';
import { h5dump, visitWithH5py, withOracle } from '../oracles.ts';
import { repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { fileOf, type ProgramsDone } from './model-rank.ts';

/*
 * Random programs that several ranks run on one file, each posting and reading by itself; every rank also keeps plain arrays in
 * memory, and everything it reads must agree with them. A program that fails prints its seed: with H5LOG_SEED set to that it is
 * the first one to run.
 */

const PROGRAMS = repeats(1000);
const RANKS = [2, 3, 4, 5];
const module = new URL('./model-rank.ts', import.meta.url);
const folder = temporaryDirectory();
const first = seed('log model of several ranks');
const ranksOf = (program: number): number => 2 + (program % 4);
const seeds = Array.from({ length: PROGRAMS }, (_, i) => first + i);

/** Every file that was made, and how many subfiles it has. */
const made = new Map<string, number>();
const totals = { programs: 0, steps: 0, commits: 0, compared: 0, failures: 0, refused: 0, seconds: 0 };

for (const ranks of [...RANKS].sort((a, b) => Number(b === ranksOf(first)) - Number(a === ranksOf(first)))) {
  test(`random programs of ${ranks} ranks do to a file what they do to arrays`, { timeout: 3_600_000 }, async () => {
    const mine = seeds.filter((program) => ranksOf(program) === ranks);
    const from = performance.now();
    const done = await runThreads<ProgramsDone>(ranks, module, { seeds: mine, folder }, { timeout: 60_000 });
    totals.seconds += Math.round((performance.now() - from) / 1000);
    const figures = done.map((rank) => rank.figures);
    // What all ranks count alike counts once; what each does by itself is added up.
    for (const name of ['programs', 'steps', 'commits', 'failures'] as const) {
      expect(new Set(figures.map((rank) => rank[name])).size, name).toBe(1);
      totals[name] += figures[0]?.[name] ?? 0;
    }
    for (const rank of figures) {
      totals.compared += rank.compared;
      totals.refused += rank.refused;
    }
    mine.forEach((program, i) => {
      made.set(fileOf(folder, program), done[0]?.parts[i] ?? 0);
    });
    expect(figures[0]?.programs).toBe(mine.length);
  });
}

const others = { files: 0, numbered: 0, split: 0, objects: 0, entries: 0, sections: 0, sums: 0, bytes: 0 };

const subfilesOf = (path: string, parts: number): string[] =>
  Array.from({ length: parts }, (_, g) => `${path}.subfiles/${basename(path)}.${g}`);

withOracle(['h5dump', 'python'], 'files of several ranks', () => {
  test('keep the rules of the format and are read by others', { timeout: 1_200_000 }, () => {
    // Others look for a log in one place only, and find no numbered ones.
    const hasNumbered = (path: string): boolean => readFileSync(path).includes('_LOGS');
    const plain = [...made].flatMap(([path, parts]) => (parts > 0 || hasNumbered(path) ? [] : [path]));
    const numbered = [...made].flatMap(([path, parts]) => (parts === 0 && hasNumbered(path) ? [path] : []));
    others.numbered += numbered.length;
    expect(others.numbered).toBeGreaterThan(0);
    for (let i = 0; i < plain.length; i += 50) checkFiles(plain.slice(i, i + 50));
    const split = [...made]
      .filter(([, parts]) => parts > 0)
      .flatMap(([path, parts]) => [path, ...subfilesOf(path, parts)])
      .concat(numbered);
    for (let i = 0; i < split.length; i += 50) {
      const paths = split.slice(i, i + 50);
      h5dump('-A', ...paths);
      others.split += paths.length;
      others.objects += visitWithH5py(paths);
    }
    expect(others.files).toBeGreaterThan(0);
  });
});

function checkFiles(paths: readonly string[]): void {
  h5dump('-A', ...paths);
  seenByH5py(paths).forEach((seen, k) => {
    const path = paths[k] as string;
    const bytes = readFileSync(path);
    const checked = checkLogFile(bytes, seen);
    others.files++;
    others.entries += checked.entries.length;
    others.sections += checked.sections;
    others.sums += checkSums(bytes);
    const file = File.openSync(path);
    for (const { id, path: name } of checked.anchors.values()) {
      const raw = readAsOriginal(bytes, checked, id);
      if (!raw) continue;
      const ours = file.dataset(name.replaceAll('/__', '/_')).readSync(undefined, { raw: true });
      if (!raw.equals(ours)) throw new Error(`${path} ${name}: others read something else`);
      others.bytes += raw.length;
    }
    file.closeSync();
  });
}

afterAll(() => {
  const { compared, failures, refused, ...done } = totals;
  count('log model of 2 to 5 ranks', {
    ...done,
    'values compared': compared,
    'faults met': failures,
    'posts refused': refused,
  });
  count('log model of 2 to 5 ranks, read by others', others);
});
