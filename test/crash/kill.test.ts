import { appendFileSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { type CreateOptions, type Dataset, File, type Group } from '../../src/index.ts';
import { count } from '../counts.ts';
import { oracle, pythonSync, run, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { compile, type Program, startProgram } from './program.ts';
import { applyCommit, commitOf, expectSameLayouts, FOREIGN } from './states.ts';

const directory = temporaryDirectory();
const before = { h5py: join(directory, 'h5py.h5'), h5log: join(directory, 'h5log.h5') };

/** How a trial begins: what is at the path, and what the child does with it. */
const beginnings = [
  { task: 'create', before: null },
  { task: 'exclusive', before: null },
  { task: 'create', before: 'h5py' },
  { task: 'create', before: 'h5log' },
  { task: 'open', before: 'h5log' },
  { task: 'open', before: 'h5py' },
] as const;
type Beginning = (typeof beginnings)[number];

type Publish = NonNullable<CreateOptions['publish']>;
/** When the child publishes; together with the beginnings every pair occurs. */
const kinds: readonly Publish[] = ['auto', 'never', 'close', 'flush', { interval: 3 }];

function prepare(): void {
  pythonSync(
    `import h5py, sys
with h5py.File(sys.argv[1], 'w') as f:
    g = f.create_group('${FOREIGN}')
    for i in range(50):
        g.create_dataset(f'd{i}', data=list(range(i))).attrs['text'] = 'h5py ' * i`,
    [before.h5py],
  );
  const file = File.createSync(before.h5log);
  for (let n = 1; n <= 40; n++) {
    applyCommit(file, n);
    file.flushSync();
  }
  file.closeSync();
}

/** The line after which the child dies, how many of them, and how many milliseconds later. */
function moment(chance: () => number): { after: string; count: number; delay: number } {
  const delay = chance() < 0.3 ? 0 : chance() * 4;
  const kind = chance();
  if (kind < 0.2) return { after: 'start', count: 1, delay: chance() * 8 };
  if (kind < 0.25) return { after: 'ready', count: 1, delay };
  if (kind < 0.35) return { after: 'closing', count: 1 + Math.floor(chance() * 2), delay: delay / 4 };
  if (kind < 0.4) return { after: 'closed', count: 1, delay };
  if (kind < 0.7) return { after: 'begin', count: 1 + Math.floor(chance() * 80), delay: delay / 4 };
  return { after: 'commit', count: 1 + Math.floor(chance() * 80), delay };
}

async function killed(writer: Program, chance: () => number): Promise<void> {
  const { after, count, delay } = moment(chance);
  let seen = 0;
  writer.onLine = (line) => {
    if (!line.startsWith(after) || ++seen !== count) return;
    // Busy, because a timer is late by up to a millisecond.
    for (const end = performance.now() + delay; performance.now() < end; );
    writer.kill();
  };
  await writer.end();
  expect(writer.errors).toBe('');
  expect(writer.child.signalCode).toBe('SIGKILL');
}

const totals = {
  trials: 0,
  early: 0,
  unpublished: 0,
  ahead: 0,
  commits: 0,
  leftovers: 0,
  mostLeftovers: 0,
  remaining: 0,
  shown: 0,
  current: 0,
  netcdf: 0,
};

/** What h5py put there is all there still. */
function expectForeign(file: File): void {
  const group = file.group(FOREIGN);
  expect([...group.keys()]).toHaveLength(50);
  for (let i = 0; i < 50; i++) expect(group.dataset(`d${i}`).attributes.get('text')).toBe('h5py '.repeat(i));
}

const images = join(directory, 'images');

/** Keeps a copy of a file for other programs, with what they should see. */
async function keepImage(path: string, file: File, n: number, name: string): Promise<void> {
  if (file.connector === 'log') expectSameLayouts(file, File.openSync(path, { connector: 'native' }));
  const isCurrent = file.published === file.sequence;
  const all = [...objectsOf(file)];
  const datasets = all.flatMap(([, object]) => (object?.kind === 'dataset' ? [object] : []));
  const values = isCurrent ? Object.fromEntries(datasets.map((each) => [each.path, valuesOf(each)])) : {};
  // libnetcdf opens no file with a link that leads nowhere, whoever wrote it.
  const netcdf = file.published !== null && all.every(([, object]) => object !== undefined);
  const image = join(images, `${name}.h5`);
  copyFileSync(path, image);
  appendFileSync(join(images, 'list'), `${JSON.stringify({ file: image, commit: n, values, netcdf })}\n`);
  if (file.published !== null && file.connector === 'log') totals.shown++;
  if (isCurrent && file.connector === 'log') totals.current++;
  if (!netcdf) return;
  totals.netcdf++;
  if (oracle('ncdump')) await run('ncdump', ['-h', image]);
}

const valuesOf = (dataset: Dataset): unknown[] =>
  Array.from(dataset.readSync() as ArrayLike<unknown>, (value) => (typeof value === 'bigint' ? Number(value) : value));

function* objectsOf(group: Group): Iterable<[string, Group | Dataset | undefined]> {
  for (const [name, child] of group.children()) {
    yield [name, child];
    if (child?.kind === 'group') yield* objectsOf(child);
  }
}

/** Lets h5py, and xarray where there is one, look at every file that was kept. */
async function lookAtImages(): Promise<void> {
  const lines = (await run(oracle('xarray') ? 'xarray' : 'python', [LOOK, join(images, 'list')])).trim().split('\n');
  const looked = JSON.parse(lines.pop() as string) as { h5py: number; xarray: number };
  expect(lines).toEqual([]);
  count('kill -9', { 'images shown to h5py': looked.h5py, 'images shown to xarray': looked.xarray });
}

const LOOK = join(import.meta.dirname, 'look.py');

async function checkAfterKill(path: string, beginning: Beginning, lines: readonly string[]): Promise<void> {
  const last = (word: string): number => {
    const found = lines.findLast((line) => line.startsWith(`${word} `));
    return found === undefined ? -1 : Number(found.slice(word.length));
  };
  const [reported, begun] = [last('commit'), last('begin')];
  totals.commits += lines.filter((line) => line.startsWith('commit')).length;
  if (reported < 0) totals.early++;

  const here = readdirSync(dirname(path)).filter((name) => name !== basename(path));
  totals.leftovers += here.length;
  totals.mostLeftovers = Math.max(totals.mostLeftovers, here.length);

  if (!lines.includes('ready')) {
    totals.unpublished++;
    if (beginning.before === null && !existsSync(path)) return createAnew(path);
    // Whole and unchanged, or whole and new; one that was opened may have been grown already.
    if (beginning.before && readFileSync(path).equals(readFileSync(before[beginning.before]))) return createAnew(path);
  }
  await run('h5dump', ['-H', path]);
  const ours = beginning.task === 'open' && beginning.before === 'h5py';
  const first = beginning.task === 'open' && beginning.before === 'h5log' ? 40 : 0;
  const file = File.openSync(path);
  const n = commitOf(file);
  if (ours) expectForeign(file);
  else expect(file.has(FOREIGN)).toBe(false);
  await keepImage(path, file, n, basename(dirname(path)));
  file.closeSync();
  expect(n).toBeGreaterThanOrEqual(Math.max(reported, first));
  expect(n).toBeLessThanOrEqual(Math.max(begun, first));
  if (n > reported) totals.ahead++;
  await goOn(path, n, ours);
}

async function createAnew(path: string): Promise<void> {
  File.createSync(path).closeSync();
  await goOn(path, 0, false);
}

/** Where a superblock of version 2 or 3 has the end of the file. */
const EOF_AT = 28;

/** The next writer takes the lock over, commits, and leaves nothing but the file. */
async function goOn(path: string, n: number, foreign: boolean): Promise<void> {
  const file = File.openSync(path, { mode: 'r+' });
  applyCommit(file, n + 1);
  file.flushSync();
  file.closeSync();
  await run('h5dump', ['-H', path]);
  const again = File.openSync(path);
  expect(commitOf(again)).toBe(n + 1);
  if (foreign) expectForeign(again);
  again.closeSync();
  const rest = readdirSync(dirname(path)).filter((name) => name !== basename(path));
  // Killed before the lock had its name: the next takeover of a lock sweeps it away.
  expect(rest.filter((name) => !/^run\.h5\.lock\.[0-9a-f]{16}\.new$/.test(name))).toEqual([]);
  expect(rest.length).toBeLessThanOrEqual(1);
  totals.remaining += rest.length;
  // The file is cut to its contents, which publishing makes some 40 KiB longer with each commit.
  const { size } = statSync(path);
  expect(Number(readFileSync(path).readBigUInt64LE(EOF_AT))).toBe(size);
  expect(size).toBeLessThan(2 ** 20 + 48 * 2 ** 10 * (n + 1));
}

withOracle(['h5dump', 'python'], 'a writer killed with SIGKILL', () => {
  const trials = repeats(300);

  test(`at ${trials} moments: the file is whole, at the last commit it reported or one begun since`, async () => {
    prepare();
    mkdirSync(images);
    const writer = compile('writer.ts');
    const chosen = seed('kill -9');
    let trial = 0;
    const one = async (): Promise<void> => {
      while (trial < trials) {
        const k = trial++;
        const chance = random(chosen + 7919 * k);
        const beginning = beginnings[k % beginnings.length] as Beginning;
        mkdirSync(join(directory, String(k)));
        const path = join(directory, String(k), 'run.h5');
        if (beginning.before) copyFileSync(before[beginning.before], path);
        const durability = chance() < 0.75 ? 'process' : 'power';
        const publish = kinds[k % kinds.length] as Publish;
        const isOrdinary = beginning.task === 'open' && beginning.before === 'h5py';
        const child = startProgram(writer, [
          ...[path, beginning.task, durability, String(chosen + k), '12', '0'],
          ...(isOrdinary ? [] : [JSON.stringify(publish)]),
        ]);
        await killed(child, chance);
        try {
          await checkAfterKill(path, beginning, child.lines);
        } catch (error) {
          throw new Error(
            `trial ${k} (${JSON.stringify(beginning)}, ${durability}, ${JSON.stringify(publish)}), after ${child.lines.slice(-4).join(', ')}`,
            {
              cause: error,
            },
          );
        }
        totals.trials++;
      }
    };
    // Three, so that the two cores have work while one of them waits.
    await Promise.all([one(), one(), one()]);
    await lookAtImages();
    if (trials >= 30) expect(Math.min(totals.shown, totals.current, totals.netcdf)).toBeGreaterThan(0);
    count('kill -9', { trials: totals.trials, commits: totals.commits });
    console.log(
      `kill -9: ${totals.trials} trials, ${totals.early} before the first commit, ${totals.unpublished} before the file was open, ` +
        `${totals.commits} commits reported, ${totals.ahead} files one ahead of the report, ` +
        `${totals.leftovers} files left beside (at most ${totals.mostLeftovers}), ${totals.remaining} after the next writer; ` +
        `${totals.shown} files had been published, ${totals.current} to their last commit, ${totals.netcdf} shown to ncdump and xarray`,
    );
  }, 1_200_000);
});
