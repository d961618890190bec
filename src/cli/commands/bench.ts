import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import type { Figure } from '../../bench/workload.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { command, json } from '../command.ts';
import { makeFolder, sharedFolder } from '../folders.ts';
import { nearest } from '../parse.ts';
import { columns, counted, seconds } from '../print.ts';
import { benchE3sm, checkE3sm, E3SM_HEADLINE, type E3smOutcome, e3smOptions } from './bench-e3sm.ts';

const WORKLOADS = ['e3sm', 'small', 'stream', 'flushes', 'open', 'replay', 'seal'] as const;
type Name = (typeof WORKLOADS)[number];

export default command({
  name: 'bench',
  summary: 'measure how fast known workloads are written and read',
  details: [
    'small: 1,000,000 rows of 1x3 float64, posted one by one, in order and shuffled. stream: 1 GiB in blocks of 1 MiB, in eight ways, against plain writes. flushes: 100,000 commits of 1 KiB. ' +
      'open: a file of 4,000,000 blocks is opened. replay, seal: the commands of that name on 1,000,000 small blocks and on 1 GiB in tiles. All of them read back and check what they wrote. ' +
      'Times are the best of all repetitions.',
    'e3sm: the files of the E3SM climate model. Headers are CDL texts, as ncdump -h prints them, a file each; the map, an HDF5 file of E3SM-IO, says which process writes which ' +
      'elements of a variable. Every variable becomes a dataset with its attributes; then all is posted, flushed, closed. Times are those of the slowest rank: of the first time (cold), and the ' +
      'median of the later ones (warm). Ranks are threads, or under mpiexec, where no other workload runs, the ranks of the job.',
    'all: every workload; e3sm is made up unless there are --header and --map.',
    'Another program can be measured beside: --external runs a command of the shell, as often as the workload, and takes the seconds from it: the last number in the last line that it prints. ' +
      'It finds what to do in H5LOG_BENCH_WORKLOAD, H5LOG_BENCH_FOLDER (an empty directory) and H5LOG_BENCH_SCALE. It is compared with the figure that stands for the whole: small/shuffled/write, stream/async-lent, ' +
      'flushes/total, open/first, replay/small, seal/tiles, or of e3sm the warm total.',
  ],
  positionals: [{ name: 'WORKLOAD', help: `${WORKLOADS.join(', ')}, all`, many: true }],
  options: {
    scale: {
      type: 'number',
      value: 'X',
      otherwise: '1',
      help: 'which part of the size to do, but for e3sm; 0.1 is a tenth',
    },
    repeat: { type: 'count', value: 'N', least: 1, default: 5, help: 'how often to do it all' },
    external: { type: 'text', value: 'CMD', help: 'another program that does the same and prints its seconds' },
    out: { type: 'text', value: 'DIR', otherwise: 'a temporary one', help: 'keep the files, in this directory' },
    ...e3smOptions,
    json,
  },
  examples: [
    { command: 'bench small stream --scale 0.1 --repeat 3', says: 'in a few seconds' },
    {
      command: "bench small --external 'python3 rows.py'",
      says: 'beside another program, which prints how many seconds it took',
    },
    {
      command: 'bench e3sm --generate --ranks 2 --read',
      says: 'without any file: a header and a map that are made up',
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
    const madeUp = positionals.includes('all') && values.header.length === 0 && values.map === undefined;
    const e3sm = { ...values, generate: values.generate || madeUp };
    checkScale(values.scale, names);
    checkRanks(names, external, comm);
    if (names.includes('e3sm')) checkE3sm(e3sm, context);
    else refuseE3smOptions(values, names);

    const figures: Figure[] = [];
    let outcome: E3smOutcome | undefined;
    const places = new Places(values.out, comm);
    for (const [i, name] of names.entries()) {
      const own: Figure[] = [];
      const show = (done: number): void => progress.show((i + done) / names.length, name);
      let headline = E3SM_HEADLINE;
      if (name === 'e3sm') {
        outcome = await benchE3sm(e3sm, repeat, () => places.of(name), context);
        if (!values.json) for (const line of outcome.lines) context.print(line);
        own.push(...outcome.figures);
      } else {
        const workload = await shipped(name);
        headline = workload.headline;
        const options = { folder: places.of(name), scale, repeat, onProgress: show };
        for await (const figure of workload.run(options)) own.push(figure);
      }
      if (external !== undefined) {
        const ours = own.find(({ id }) => id === headline)?.value as number;
        const task = { workload: name, folder: places.external(name), scale };
        own.push(...(await besides(external, task, repeat, ours)));
      }
      // Of e3sm there is a table of its own already.
      const shown = name === 'e3sm' ? own.filter(({ id }) => id !== headline) : own;
      if (!values.json) for (const line of figureLines(shown)) context.print(line);
      figures.push(...own);
      places.leave(name);
    }
    if (values.json) context.printJson({ scale, repeat, ...outcome?.facts, figures });
    return outcome && !outcome.isRight ? 1 : 0;
  },
});

function chosen(positionals: readonly string[]): readonly Name[] {
  for (const word of positionals) {
    if (word === 'all' || isName(word)) continue;
    const meant = nearest(word, [...WORKLOADS, 'all']);
    const hint = meant === undefined ? '' : ` (did you mean ${meant}?)`;
    throw new H5LogError('OPTION', `there is no workload ${word}${hint}; there are ${WORKLOADS.join(', ')}, and all`);
  }
  return positionals.includes('all') ? WORKLOADS : [...new Set(positionals.filter(isName))];
}

function isName(word: string): word is Name {
  return (WORKLOADS as readonly string[]).includes(word);
}

function checkScale(scale: number | undefined, names: readonly Name[]): void {
  if (scale !== undefined && !(scale > 0)) throw new H5LogError('OPTION', `--scale is a number above 0, not ${scale}`);
  if (scale !== undefined && names.every((name) => name === 'e3sm'))
    throw new H5LogError('OPTION', '--scale is not for e3sm, whose size the headers and --records say');
}

function checkRanks(names: readonly Name[], external: string | undefined, { size }: Communicator): void {
  if (size === 1) return;
  const [other] = names.filter((name) => name !== 'e3sm');
  if (other !== undefined)
    throw new H5LogError(
      'OPTION',
      `${other} is measured in one process, not on ${size} ranks; start it without mpiexec`,
    );
  if (external !== undefined)
    throw new H5LogError('OPTION', `--external runs one program, beside one process, not beside ${size} ranks`);
}

function refuseE3smOptions(values: Readonly<Record<string, unknown>>, names: readonly Name[]): void {
  for (const option of Object.keys(e3smOptions)) {
    const value = values[option];
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
    if (isGiven) throw new H5LogError('OPTION', `--${option} is for the workload e3sm, not for ${names.join(', ')}`);
  }
}

async function shipped(name: Name) {
  const { workloads } = await import('../../bench/workloads.ts');
  const found = workloads.find((workload) => workload.name === name);
  if (!found) throw new Error(`there is no ${name} among the workloads`);
  return found;
}

/** Another program's best time, and how it compares with ours. */
async function besides(
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

/** Where workloads write: the directory that was asked for, or some for a time, one after the other, because each may hold gigabytes. */
class Places {
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

  /** Removes what is not to be kept. */
  leave(name: Name): void {
    if (this.#temporary === undefined) return;
    this.#comm.barrier();
    if (this.#comm.rank === 0) rmSync(join(this.#temporary, name), { recursive: true, force: true });
  }
}

/** A row for each figure; one that belongs to the figure before it, because its name begins with that one's, stands in the same row. */
export function figureLines(figures: readonly Figure[]): string[] {
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
