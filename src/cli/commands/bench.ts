import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import type { Figure } from '../../bench/workload.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { command, json } from '../command.ts';
import { makeFolder, sharedFolder } from '../context.ts';
import { columns, counted, seconds } from '../print.ts';
import { benchE3sm, checkE3sm, E3SM_HEADLINE, type E3smOutcome, e3smOptions } from './bench-e3sm.ts';

const WORKLOADS = ['e3sm', 'small', 'stream', 'flushes', 'open', 'replay', 'seal', 'layouts'] as const;
type Name = (typeof WORKLOADS)[number];

export default command({
  name: 'bench',
  summary: 'measure how fast standard workloads are written and read',
  details: [
    'small: 1,000,000 rows of 1x3 float64, posted one by one, in order and shuffled. stream: 1 GiB in blocks of 1 MiB, written in eight ways, compared with plain writes. flushes: 100,000 ' +
      'commits of 1 KiB. open: opens a file of 4,000,000 blocks. replay, seal: the commands of that name on 1,000,000 small blocks and on 1 GiB in tiles. layouts: logs shared, by group and by dataset, with encoded and classic tables, on 1, 4 and 16 threads. Each workload reads back and checks ' +
      'what it wrote. Times are the best of all repetitions.',
    'e3sm: the output files of the E3SM climate model. Each header is a CDL text, as ncdump -h prints it; the map, an HDF5 file of E3SM-IO, says which process writes which elements of a ' +
      'variable. Every variable becomes a dataset with its attributes; all data is posted, flushed and closed. Times are those of the slowest rank: of the first repetition (cold), and the ' +
      'median of the later ones (warm). Ranks are threads, or under mpiexec the ranks of the job; no other workload runs under mpiexec.',
    'all: every workload but layouts; e3sm with generated files unless --header and --map are given.',
    '--external measures another program for comparison: it runs a shell command as often as the workload and takes the last number in the last line of its output as seconds. ' +
      'The program gets its task in H5LOG_BENCH_WORKLOAD, H5LOG_BENCH_FOLDER (an empty directory) and H5LOG_BENCH_SCALE. It is compared with the main figure of the workload: small/shuffled/write, ' +
      'stream/async-lent, flushes/total, open/first, replay/small, seal/tiles, layouts/many/1/dataset/open-first, or the warm total of e3sm.',
  ],
  positionals: [{ name: 'WORKLOAD', help: `${WORKLOADS.join(', ')}, all`, choices: [...WORKLOADS, 'all'], many: true }],
  options: {
    scale: {
      type: 'number',
      value: 'X',
      otherwise: '1',
      help: 'fraction of the full size, not for e3sm; 0.1 is a tenth',
    },
    repeat: { type: 'count', value: 'N', least: 1, default: 5, help: 'number of repetitions' },
    external: { type: 'text', value: 'CMD', help: 'measure another program, which prints its seconds' },
    out: { type: 'text', value: 'DIR', otherwise: 'a temporary directory', help: 'keep the files in this directory' },
    ...e3smOptions,
    json,
  },
  examples: [
    { command: 'bench small stream --scale 0.1 --repeat 3', says: 'takes a few seconds' },
    {
      command: "bench small --external 'python3 rows.py'",
      says: 'compared with another program, which prints how many seconds it took',
    },
    {
      command: 'bench e3sm --generate --ranks 2 --read',
      says: 'without input files: with a generated header and map',
    },
    {
      command: 'bench e3sm --header h0.txt --header h1.txt --map map.h5 --double --records 1,2',
      says: 'the published benchmark of the F case, 33.4 MiB',
    },
  ],
  async run({ values, positionals, context }) {
    const { repeat, external, scale = 1 } = values;
    const { comm, progress } = context;
    const names = chosen(positionals);
    const generated = positionals.includes('all') && values.header.length === 0 && values.map === undefined;
    const e3sm = { ...values, generate: values.generate || generated };
    checkScale(values.scale, names);
    checkRanks(names, external, comm);
    if (names.includes('e3sm')) checkE3sm(e3sm, context);
    else refuseE3smOptions(values, names);

    const figures: Figure[] = [];
    let outcome: E3smOutcome | undefined;
    const folders = new OutputFolders(values.out, comm);
    for (const [i, name] of names.entries()) {
      const own: Figure[] = [];
      const show = (done: number): void => progress.show((i + done) / names.length, name);
      let headline = E3SM_HEADLINE;
      if (name === 'e3sm') {
        outcome = await benchE3sm(e3sm, repeat, () => folders.of(name), context);
        if (!values.json) for (const line of outcome.lines) context.print(line);
        own.push(...outcome.figures);
      } else {
        const workload = await findWorkload(name);
        headline = workload.headline;
        const options = { folder: folders.of(name), scale, repeat, onProgress: show };
        for await (const figure of workload.run(options)) own.push(figure);
      }
      if (external !== undefined) {
        const ours = own.find(({ id }) => id === headline)?.value as number;
        const task = { workload: name, folder: folders.external(name), scale };
        own.push(...(await measureExternal(external, task, repeat, ours)));
      }
      // e3sm has printed its own table.
      const shown = name === 'e3sm' ? own.filter(({ id }) => id !== headline) : own;
      if (!values.json) for (const line of figureLines(shown)) context.print(line);
      figures.push(...own);
      folders.remove(name);
    }
    if (values.json) context.printJson({ scale, repeat, ...outcome?.facts, figures });
    return outcome && !outcome.isRight ? 1 : 0;
  },
});

function chosen(positionals: readonly string[]): readonly Name[] {
  const named = positionals.filter(isName);
  // What compares many ways of writing takes longer than all others together.
  const all = positionals.includes('all') ? WORKLOADS.filter((name) => name !== 'layouts') : [];
  return [...new Set([...all, ...named])];
}

function isName(word: string): word is Name {
  return (WORKLOADS as readonly string[]).includes(word);
}

function checkScale(scale: number | undefined, names: readonly Name[]): void {
  if (scale !== undefined && !(scale > 0)) throw new H5LogError('OPTION', `--scale is a number above 0, not ${scale}`);
  if (scale !== undefined && names.every((name) => name === 'e3sm'))
    throw new H5LogError('OPTION', '--scale does not apply to e3sm, whose size follows from the headers and --records');
}

function checkRanks(names: readonly Name[], external: string | undefined, { size }: Communicator): void {
  if (size === 1) return;
  const [other] = names.filter((name) => name !== 'e3sm');
  if (other !== undefined)
    throw new H5LogError('OPTION', `${other} runs in one process, not on ${size} ranks; start it without mpiexec`);
  if (external !== undefined)
    throw new H5LogError(
      'OPTION',
      `--external compares with one process, not with ${size} ranks; start it without mpiexec`,
    );
}

function refuseE3smOptions(values: Readonly<Record<string, unknown>>, names: readonly Name[]): void {
  for (const option of Object.keys(e3smOptions)) {
    const value = values[option];
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
    if (isGiven) throw new H5LogError('OPTION', `--${option} is for the workload e3sm, not for ${names.join(', ')}`);
  }
}

async function findWorkload(name: Name) {
  const { workloads } = await import('../../bench/workloads.ts');
  const found = workloads.find((workload) => workload.name === name);
  if (!found) throw new Error(`there is no ${name} among the workloads`);
  return found;
}

/** Measures another program: its best time, and the ratio to ours. */
async function measureExternal(
  external: string,
  task: { workload: string; folder: string; scale: number },
  repeat: number,
  ours: number,
): Promise<Figure[]> {
  const { runExternal } = await import('../../bench/external.ts');
  const times: number[] = [];
  for (let round = 0; round < repeat; round++) {
    rmSync(task.folder, { recursive: true, force: true });
    mkdirSync(task.folder, { recursive: true });
    times.push(await runExternal(external, task));
  }
  const value = Math.min(...times);
  const id = `${task.workload}/external`;
  return [
    { id, what: `external: ${external}`, value, unit: 's' },
    { id: `${id}/ratio`, what: 'our time', value: value / ours, unit: 'x' },
  ];
}

/** The directories that workloads write to: --out, or a temporary one per workload, removed after it because it may hold gigabytes. */
class OutputFolders {
  readonly #out: string | undefined;
  readonly #comm: Communicator;
  #temporary: string | undefined;

  constructor(out: string | undefined, comm: Communicator) {
    this.#out = out;
    this.#comm = comm;
  }

  of(name: Name): string {
    if (this.#out === undefined) this.#temporary ??= sharedFolder(this.#comm);
    const folder = this.#out ?? join(this.#temporary as string, name);
    makeFolder(this.#comm, folder);
    return folder;
  }

  external(name: Name): string {
    return join(this.of(name), `${name}-external`);
  }

  /** Removes the files of a workload unless --out keeps them. */
  remove(name: Name): void {
    if (this.#temporary === undefined) return;
    this.#comm.barrier();
    if (this.#comm.rank === 0) rmSync(join(this.#temporary, name), { recursive: true, force: true });
  }
}

/** One row per figure. A figure whose id extends the id of the row (`a/b/ratio` after `a/b`) is appended to that row. */
function figureLines(figures: readonly Figure[]): string[] {
  const rows: string[][] = [];
  let before = '';
  for (const figure of figures) {
    if (before !== '' && figure.id.startsWith(`${before}/`)) rows.at(-1)?.push(`${shown(figure)} ${figure.what}`);
    else {
      rows.push([figure.what, shown(figure)]);
      before = figure.id;
    }
  }
  return columns(rows);
}

function shown({ value, unit }: Figure): string {
  if (unit === 's') return seconds(value);
  if (unit === 'count') return counted(value);
  if (unit === 'bytes' || value >= 1000) return `${counted(value)} ${unit}`;
  return `${value.toPrecision(3)} ${unit}`;
}
