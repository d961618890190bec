import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Dataset } from '../api/dataset.ts';
import { File } from '../api/file.ts';
import type { Group } from '../api/group.ts';
import { solo } from '../comm/solo.ts';
import { rankModule } from '../comm/threads/run.ts';
import { runThreads } from '../threads.ts';
import { stat } from '../tools/stat/stat.ts';
import { e3sm, generateHeader, generateMap } from './e3sm.ts';
import layoutsRank, { type LayoutTask, type LayoutTimes, pathOf, rowAt } from './layouts-rank.ts';
import { Best, type Figure, scaledSize, secondsSince, steps, type Workload, wrongValue } from './workload.ts';

/** What is compared: which datasets share a log, and how tables are written. */
const LAYOUTS: Readonly<Record<string, LayoutTask['create']>> = {
  shared: {},
  group: { logs: 'group' },
  dataset: { logs: 'dataset' },
  'shared-classic': { table: { format: 'classic' } },
  'group-classic': { logs: 'group', table: { format: 'classic' } },
  'dataset-classic': { logs: 'dataset', table: { format: 'classic' } },
};
const THREADS = [1, 4, 16];

/** Flushes of several threads: 500 logs of 200 would take minutes. */
const FLUSHES_TOGETHER = 40;

/** Elements that the first read is about. */
const FIRST = 100;
/** How often a file is opened for it: the first time mostly measures code that has not run before. */
const OPENINGS = 15;

interface Case {
  readonly name: string;
  readonly what: string;
  /** A dataset that is read, and an element of it with its value. */
  readonly one: { readonly path: string; readonly at: readonly number[]; readonly value: number } | null;
  write(path: string, layout: LayoutTask['create'], threads: number): Promise<LayoutTimes>;
}

function rowsCase(name: string, what: string, size: Pick<LayoutTask, 'datasets' | 'rows' | 'flushes'>): Case {
  const last = Math.floor(size.datasets / 2);
  return {
    name,
    what,
    one: { path: pathOf(last), at: [rowAt(1, size.rows), 0], value: 1 },
    async write(path, create, threads) {
      if (threads === 1) return layoutsRank(solo(), { path, create, ...size });
      const task: LayoutTask = { path, create, ...size, flushes: Math.min(size.flushes, FLUSHES_TOGETHER) };
      const [times] = await runThreads<LayoutTimes>(threads, rankModule('layouts-rank', import.meta.url), task);
      return times as LayoutTimes;
    },
  };
}

function e3smCase(scale: number): Case {
  const sizes = { columns: scaledSize(866, scale, 100), cells: scaledSize(285, scale), grid: scaledSize(2000, scale) };
  const input = { headers: [generateHeader(sizes)], map: generateMap(sizes) };
  return {
    name: 'e3sm',
    what: 'E3SM F, generated',
    one: null,
    async write(path, create, threads) {
      const { times } = await e3sm([path], { ...input, ranks: threads, create });
      const [{ post, flush, close }] = times as [(typeof times)[number]];
      return { post, flush: flush + close };
    },
  };
}

/** Where logs live and how tables are written: what each way costs, from posting to reading. */
export const layouts: Workload = {
  name: 'layouts',
  summary: 'logs shared, by group, by dataset; encoded and classic tables; 1, 4 and 16 threads',
  async *run({ folder, scale, repeat, onProgress }) {
    const rows = scaledSize(1_000_000, scale, 100);
    const each = scaledSize(4000, scale, 50);
    const flushes = Math.min(200, each);
    const cases = [
      e3smCase(Math.min(1, scale)),
      rowsCase('small', `${rows.toLocaleString('en')} rows of 1x3 float64`, { datasets: 1, rows, flushes: 1 }),
      rowsCase(
        'many',
        `500 datasets, ${(500 * each).toLocaleString('en')} rows in ${flushes} flushes (several threads: at most ${FLUSHES_TOGETHER})`,
        { datasets: 500, rows: each, flushes },
      ),
    ];
    const done = steps(cases.length * THREADS.length * Object.keys(LAYOUTS).length * repeat, onProgress);
    const path = join(folder, 'layouts.h5');
    for (const each of cases) {
      for (const threads of THREADS) {
        const best = new Map(Object.keys(LAYOUTS).map((name) => [name, new Best()]));
        const bytes = new Map<string, { file: number; tables: number }>();
        // Layout by layout in each round: what disturbs a round disturbs all of them.
        for (let round = 0; round < repeat; round++) {
          for (const [name, create] of Object.entries(LAYOUTS)) {
            const seconds = best.get(name) as Best;
            const { post, flush } = await each.write(path, create, threads);
            seconds.add('post', post);
            seconds.add('flush', flush);
            readBack(path, each, seconds);
            if (!bytes.has(name))
              bytes.set(name, { file: statSync(path).size, tables: (await stat(path)).tables.bytes });
            await done();
          }
        }
        for (const [name, seconds] of best) yield* figuresOf(each, threads, name, seconds, bytes.get(name));
      }
    }
  },
};

/** Opens the file and reads a little of one dataset, several times, then everything. */
function readBack(path: string, { one, name }: Case, seconds: Best): void {
  for (let turn = 1; turn < OPENINGS; turn++) openAndReadFirst(path, one, seconds).file.closeSync();
  const { file, dataset } = openAndReadFirst(path, one, seconds);
  const all = performance.now();
  readAll(file);
  seconds.add('read', secondsSince(all));
  if (one) {
    const [found] = dataset.readSync({ start: one.at, count: one.at.map(() => 1) }) as Float64Array;
    if (found !== one.value) throw wrongValue(`${path} (${name})`, one.at, found, one.value);
  }
  file.closeSync();
}

function openAndReadFirst(path: string, one: Case['one'], seconds: Best): { file: File; dataset: Dataset } {
  const begun = performance.now();
  const file = File.openSync(path);
  const opened = secondsSince(begun);
  const chosen = one?.path ?? [...file.keys()].find((key) => key.startsWith('LEVELS')) ?? '';
  const dataset = file.dataset(chosen);
  const from = performance.now();
  const first = dataset.readSync({ count: firstCount(dataset.shape) });
  seconds.add('first', secondsSince(from));
  seconds.add('open', opened);
  seconds.add('open-first', secondsSince(begun));
  if ((first as ArrayLike<unknown>).length !== FIRST) throw wrongValue(path, [], first, `${FIRST} elements`);
  return { file, dataset };
}

function readAll(group: Group): void {
  for (const [, object] of group.children()) {
    if (object instanceof Dataset) object.readSync();
    else if (object) readAll(object);
  }
}

/** A box at the beginning with as many elements as are wanted: some dimension is long enough. */
function firstCount(shape: readonly number[]): number[] {
  const long = shape.findIndex((size) => size >= FIRST);
  return shape.map((_, d) => (d === long ? FIRST : 1));
}

const SECONDS: readonly (readonly [id: string, what: string])[] = [
  ['flush', 'flush'],
  ['open', 'open'],
  ['first', 'first read'],
  ['open-first', 'open and first read'],
  ['read', 'full read'],
];

function* figuresOf(
  { name, what }: Case,
  threads: number,
  layout: string,
  seconds: Best,
  bytes: { file: number; tables: number } | undefined,
): Generator<Figure, void, undefined> {
  const id = `layouts/${name}/${threads}/${layout}`;
  const title = `${what}, ${threads === 1 ? '1 thread' : `${threads} threads`}, ${layout.replace('-', ', ')}: post`;
  yield { id, what: title, value: seconds.of('post'), unit: 's' };
  for (const [metric, words] of SECONDS)
    yield { id: `${id}/${metric}`, what: words, value: seconds.of(metric), unit: 's' };
  yield { id: `${id}/file`, what: 'file', value: bytes?.file ?? 0, unit: 'bytes' };
  yield { id: `${id}/tables`, what: 'tables', value: bytes?.tables ?? 0, unit: 'bytes' };
}
