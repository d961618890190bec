import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseCdl } from '../src/bench/cdl.ts';
import { type Decomposition, readMap, runsOf } from '../src/bench/decomposition.ts';
import { generateHeader, generateMap } from '../src/bench/e3sm.ts';
import { FileReader } from '../src/bench/e3sm-files.ts';
import { type PlannedFile, planFiles } from '../src/bench/e3sm-plan.ts';
import { median } from '../src/bench/workload.ts';
import { solo } from '../src/comm/solo.ts';
import { COMMAND, runCommand } from './built.ts';
import { LAUNCHERS, type Launcher, runMpi } from './mpi.ts';
import { type MpiTask, mpiLacks, WAYS, writeWithMpi } from './peers/h5py-mpi.ts';
import type { Comparison, Result } from './table.ts';

const RANKS = [1, 2, 4];
const ROUNDS = 2;
/** Each rank compiles for itself, and with more ranks than cores that goes on for ten repetitions and more. */
const REPEAT = 60;
/** Of the others, which take longer. */
const PEER_REPEAT = 3;
const PEER = 'h5py-mpi';
const DATA = fileURLToPath(new URL('../../shared/e3sm/', import.meta.url));
const MAP = join(DATA, 'map_f_case_16p.h5');
const HEADERS = ['f_case_h0.txt', 'f_case_h1.txt'].map((name) => join(DATA, name));

/** Seconds of the first time in a process, and the median of the later ones. */
interface Times {
  readonly cold: number;
  readonly warm: number;
}

/** What is written, and how our command is told. */
interface Case {
  readonly files: readonly PlannedFile[];
  readonly map: readonly Decomposition[];
  readonly args: readonly string[];
}

export interface E3smComparisons {
  readonly comparisons: readonly Comparison[];
  /** Lines that say what did not run, and why. */
  readonly skipped: readonly string[];
  /** Whether it was the F case; otherwise something was made up. */
  readonly isReal: boolean;
  /** How our command is told to write it. */
  readonly args: readonly string[];
}

/** The files of E3SM on 1, 2 and 4 ranks: ours with all that ranks can be, and parallel HDF5. */
export async function compareE3sm(
  folder: string,
  withPeers: boolean,
  onTurn: (program: string, round: number) => void,
): Promise<E3smComparisons> {
  const isReal = existsSync(MAP);
  const skipped = new Set<string>();
  if (!isReal) skipped.add('the F case of E3SM: its headers and map are not in ../shared/e3sm; one is made up');
  const written = isReal ? await realCase() : madeUpCase();
  const lacks = withPeers ? await mpiLacks() : undefined;
  if (lacks !== undefined) skipped.add(`${PEER}: ${lacks}`);
  const comparisons: Comparison[] = [];
  for (const ranks of RANKS) {
    const best = new Map<string, Result>();
    const ways = new Map<string, Result>();
    for (let round = 0; round < ROUNDS; round++) {
      for (const { program, launcher } of oursOn(ranks)) {
        onTurn(`${program} on ${ranks}`, round);
        const times = await ours(written.args, ranks, launcher);
        if (times) keep(best, { program, ...times });
        else skipped.add(`${program}: ${launcher} is not installed`);
      }
      if (!withPeers || lacks !== undefined) continue;
      onTurn(`${PEER} on ${ranks}`, round);
      await peer(folder, written, ranks, ways, round === 0);
    }
    const data = isReal ? 'the F case of E3SM, 33 MiB' : 'a case like those of E3SM';
    const what = `Write ${data}, on ${ranks} rank${ranks === 1 ? '' : 's'}`;
    comparisons.push({
      id: `e3sm/${ranks}`,
      what,
      results: [...best.values(), ...fastest(ways)] as unknown as Comparison['results'],
    });
  }
  return { comparisons, skipped: [...skipped], isReal, args: written.args };
}

/** One rank is one process, whoever starts it. */
function oursOn(ranks: number): readonly { program: string; launcher?: Launcher }[] {
  if (ranks === 1) return [{ program: 'h5log' }];
  const launchers = Object.entries(LAUNCHERS) as [Launcher, string][];
  const onMpi = launchers.map(([launcher, name]) => ({ program: `h5log ${name}`, launcher }));
  return [{ program: 'h5log threads' }, ...onMpi];
}

async function ours(args: readonly string[], ranks: number, launcher?: Launcher): Promise<Times | undefined> {
  const all = ['bench', 'e3sm', ...args, '--repeat', String(REPEAT), '--json'];
  const outcome = launcher
    ? await runMpi(launcher, ranks, [process.execPath, COMMAND, ...all])
    : await runCommand([...all, '--ranks', String(ranks)]);
  if (typeof outcome === 'string') return undefined;
  return timesOf((JSON.parse(outcome.stdout) as { times: { total: number }[] }).times.map(({ total }) => total));
}

async function peer(
  folder: string,
  written: Case,
  ranks: number,
  ways: Map<string, Result>,
  isChecked: boolean,
): Promise<void> {
  const { files, map } = written;
  const dealt = map.map((of) => ({ of, runs: Array.from({ length: ranks }, (_, rank) => runsOf(of, rank, ranks)) }));
  for (const way of WAYS) {
    // It would not end this time either.
    if (ways.get(way)?.unfinished) continue;
    const own = mkdtempSync(join(folder, 'e3sm-'));
    const task: MpiTask = { folder: own, files, dealt, ranks, repeat: PEER_REPEAT };
    const outcome = await writeWithMpi(way, task);
    if ('moreThan' in outcome) {
      const result = { program: PEER, seconds: outcome.moreThan, part: 1, unfinished: true, remark: way };
      if (!ways.has(way)) ways.set(way, result);
    } else {
      if (isChecked) checkFiles(outcome.paths, written);
      keep(ways, { program: PEER, ...timesOf(outcome.times) }, way);
    }
    rmSync(own, { recursive: true });
  }
}

/** One way, of those that ended if any did. */
function fastest(ways: ReadonlyMap<string, Result>): Result[] {
  const time = ({ seconds, unfinished }: Result): number => (unfinished ? Number.POSITIVE_INFINITY : seconds);
  return [...ways.values()].sort((a, b) => (time(a) < time(b) ? -1 : 1)).slice(0, 1);
}

function timesOf([cold, ...warm]: readonly number[]): Times {
  return { cold: cold as number, warm: median(warm) };
}

/** The best of all turns, of the cold times as of the warm ones. */
function keep(best: Map<string, Result>, { program, cold, warm }: { program: string } & Times, way?: string): void {
  const before = best.get(way ?? program);
  const seconds = Math.min(warm, before?.seconds ?? warm);
  const least = Math.min(cold, before?.cold ?? cold);
  best.set(way ?? program, { program, seconds, part: 1, cold: least, ...(way !== undefined && { remark: way }) });
}

/** Every value that parallel HDF5 has written, read with another library. */
function checkFiles(paths: readonly string[], { files, map }: Case): void {
  const checked = { verified: 0, wrong: 0, first: undefined };
  const reader = new FileReader(solo(), map);
  files.forEach((file, i) => {
    reader.read(paths[i] as string, file, checked);
  });
  if (checked.wrong > 0)
    throw new Error(`${PEER} wrote ${checked.wrong} wrong values: ${JSON.stringify(checked.first)}`);
}

async function realCase(): Promise<Case> {
  const map = await readMap(MAP);
  const files = plan(
    HEADERS.map((path) => readFileSync(path, 'utf8')),
    map,
    [1, 2],
  );
  const args = [...HEADERS.flatMap((path) => ['--header', path]), '--map', MAP, '--double', '--records', '1,2'];
  return { files, map, args };
}

function madeUpCase(): Case {
  const map = generateMap();
  return { files: plan([generateHeader()], map, []), map, args: ['--generate', '--double'] };
}

function plan(headers: readonly string[], map: readonly Decomposition[], records: readonly number[]): PlannedFile[] {
  return planFiles(headers.map(parseCdl), map, { records, sizes: {}, double: true });
}
